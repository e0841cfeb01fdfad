"""Connects a member of a league to a Showdown server, where it accepts a person's challenges."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import numpy as np
from poke_env import AccountConfiguration, ServerConfiguration
from poke_env.battle import AbstractBattle
from poke_env.player import Player

from league.agent.batched_policy import BatchedPolicy
from league.agent.contract import PlayingNetwork
from league.games.base import CHOICE
from league.games.showdown.kinds import BOTS, FORMATS
from league.games.showdown.observation import Writer

SEAT = "member"


class MemberOnServer(Player):
    """Plays battles as a bot or with a network, one battle at a time.

    Args:
        name: account name on the server, up to 18 letters.
        battle_format: one of `FORMATS`.
        port: port of the server on this machine.
        bot: index of the bot that plays, or None.
        load: returns the network that plays if there is no bot.
        team: the packed team, for formats in which players bring a team.
        seed: seed of all random choices.
    """

    def __init__(
        self,
        name: str,
        battle_format: str,
        port: int,
        *,
        bot: int | None,
        load: Callable[[str], PlayingNetwork],
        team: str | None,
        seed: int,
    ) -> None:
        self._kind, self._bot = FORMATS[battle_format], bot
        self._writer, self._rng = Writer(self._kind.active), np.random.default_rng(seed)
        self._policy = BatchedPolicy(
            1,
            load,
            seed=seed,
            action_size=len(self._kind.action_names),
            action_kind=CHOICE,
        )
        self._playing = ""
        super().__init__(
            account_configuration=AccountConfiguration(name, None),
            battle_format=battle_format,
            server_configuration=ServerConfiguration(
                f"ws://127.0.0.1:{port}/showdown/websocket", "http://127.0.0.1:9/action.php?"
            ),
            team=team,
            max_concurrent_battles=1,
            accept_open_team_sheet=False,
            log_level=logging.CRITICAL,  # the command says what went wrong
        )

    def choose_move(self, battle: AbstractBattle) -> Any:
        """Returns the member's choice in the form that poke-env sends."""
        return _Words(f"/choose {self._words(battle)}")

    def teampreview(self, battle: AbstractBattle) -> str:
        """Returns the member's choice of its team."""
        return f"/{self._words(battle)}"

    def _words(self, battle: AbstractBattle) -> str:
        legal_A = self._kind.legal(battle)
        if self._bot is not None:
            draw = int(self._rng.integers(1 << 62))
            action = self._kind.chosen(battle, BOTS[self._bot].name, legal_A, draw)
        else:
            if self._playing != battle.battle_tag:
                self._playing = battle.battle_tag
                self._policy.seat(0, SEAT)
            view_V = np.zeros(self._writer.width, np.float32)
            self._writer.write(battle, view_V)
            shown = self._kind.shown(legal_A).astype(np.float32)
            # This is the observation of `ShowdownGame`.
            seen_O = np.concatenate([np.ones(1, np.float32), shown, view_V])
            action = int(self._policy.act(seen_O[None], legal_A[None])[0].argmax())
        return self._kind.words(battle, action)


class _Words:
    """Wraps a message so that poke-env can send it as an order."""

    def __init__(self, message: str) -> None:
        self.message = message
