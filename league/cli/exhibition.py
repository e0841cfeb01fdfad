"""One match between two members, frame by frame, with what happened in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from league.cli.cast import Member, check_sizes
from league.errors import InvalidInput
from league.games.base import CHOICE, EXTERNAL, BatchedGame
from league.games.drawing.lines import seat_text
from league.replay import Take, end_frame

HARD_HIT = 12.0
"""Damage within one frame that is worth a word, in points."""


class Hands(Protocol):
    """Chooses keys for one seat."""

    frame_skip: int

    def keys(
        self, observation_O: NDArray[np.float32], legal_A: NDArray[np.bool_] | None
    ) -> NDArray[np.uint8]: ...


@dataclass(frozen=True)
class Moment:
    """One frame as the game draws it, and what just happened."""

    frame: dict[str, Any]
    happened: tuple[str, ...] = ()


@dataclass(frozen=True)
class Ending:
    """How it ended: the winner's seat (None for a draw), frames played, totals by seat and stat."""

    winner: int | None
    frames: int
    stats: tuple[dict[str, float], dict[str, float]]


class RecordedHands:
    """What a seat did in a match that was recorded, [T, A]."""

    frame_skip = 1

    def __init__(self, actions_TA: NDArray[np.uint8]) -> None:
        self._actions = iter(actions_TA)

    def keys(
        self, observation_O: NDArray[np.float32], legal_A: NDArray[np.bool_] | None
    ) -> NDArray[np.uint8]:
        return next(self._actions)


class _SnapshotHands:
    """A snapshot's keys, held for as many frames as it was trained with."""

    def __init__(self, member: Member, game: BatchedGame, *, seed: int, greedy: bool) -> None:
        import torch

        from league.agent.batched_policy import BatchedPolicy
        from league.agent.snapshot import load_snapshot, read_card

        # A row is too little to share: threads that wait for a busy core take five times as long.
        torch.set_num_threads(1)
        assert member.blobs is not None
        blobs = member.blobs
        card = read_card(blobs, member.digest)
        if card.game != game.spec.name:
            raise InvalidInput(
                f"{member.name} plays {card.game}, this is {game.spec.name}: name another member"
            )
        check_sizes(member.name, card.agent, game.spec)
        self.frame_skip = card.frame_skip
        self._batched_policy = BatchedPolicy(
            1, lambda digest: load_snapshot(blobs, digest)[0], seed=seed
        )
        self._batched_policy.seat(0, member.digest, greedy=greedy)

    def keys(
        self, observation_O: NDArray[np.float32], legal_A: NDArray[np.bool_] | None
    ) -> NDArray[np.uint8]:
        return self._batched_policy.act(
            observation_O[None], None if legal_A is None else legal_A[None]
        )[0]


@dataclass
class Exhibition:
    """A match of `game` (one match) between two members. `ending` is there once `moments` ran out.

    `hands` play seats that have no bot, instead of the members' own; `take` records what was done.
    """

    game: BatchedGame
    members: Sequence[Member]
    seed: int
    greedy: bool = False
    hands: Sequence[Hands] | None = None
    take: Take | None = None
    ending: Ending | None = field(default=None, init=False)

    def moments(self) -> Iterator[Moment]:
        """The match from its first frame to the last before its end."""
        game = self.game
        hands = [self._hands_of(seat, member) for seat, member in enumerate(self.members)]
        game.bots_N2[0] = [
            EXTERNAL if member.bot is None else member.bot for member in self.members
        ]
        game.reset(np.array([self.seed], np.uint64))
        actions_N2A = game.idle_actions()
        before = game.frame(0)
        yield Moment(before, tuple(self._hands(before)))
        for played in range(game.spec.max_frames + 1):
            for seat, hand in enumerate(hands):
                if hand is not None and played % hand.frame_skip == 0:
                    legal_A = None if game.legal_N2A is None else game.legal_N2A[0, seat]
                    actions_N2A[0, seat] = hand.keys(game.observations_N2O[0, seat], legal_A)
            legal_N2A = None if game.legal_N2A is None else game.legal_N2A.copy()
            if self.take is not None:
                self.take.note(actions_N2A[0])
            game.step(actions_N2A)
            chosen = tuple(self._choices(legal_N2A))
            if game.ended_N[0]:
                self.ending = self._end()
                if game.spec.action_kind == CHOICE:
                    yield Moment(end_frame(game, before), chosen)
                return
            now = game.frame(0)
            yield Moment(now, (*chosen, *self._differences(before, now)))
            before = now

    def _hands_of(self, seat: int, member: Member) -> Hands | None:
        if member.bot is not None:
            return None
        if self.hands is not None:
            return self.hands[seat]
        return _SnapshotHands(member, self.game, seed=2 * self.seed + seat, greedy=self.greedy)

    def _hands(self, frame: dict[str, Any]) -> Iterator[str]:
        """What each seat begins with, in games that deal something."""
        for member, seat in zip(self.members, frame.get("seats", ()), strict=False):
            if said := seat_text(seat):
                yield f"{member.name} has {said}"

    def _choices(self, legal_N2A: NDArray[np.bool_] | None) -> Iterator[str]:
        """What was chosen in the frame just played, where there was a choice."""
        played_N2A = self.game.played_N2A()
        if legal_N2A is None or played_N2A is None:
            return
        for seat, member in enumerate(self.members):
            if legal_N2A[0, seat].sum() > 1:
                yield f"{member.name}: {self.game.spec.action_names[played_N2A[0, seat].argmax()]}"

    def _end(self) -> Ending:
        outcome = float(self.game.outcomes_N[0])
        names = self.game.spec.stats
        first, second = (
            dict(zip(names, map(float, row), strict=True)) for row in self.game.final_stats_N2S[0]
        )
        winner = None if outcome == 0.5 else int(outcome == 0.0)
        return Ending(winner, int(self.game.final_frames_N[0]), (first, second))

    def _differences(self, before: dict[str, Any], now: dict[str, Any]) -> Iterator[str]:
        """Knock-outs and hard hits, for games that draw players with stocks and damage."""
        for seat, (old, new) in enumerate(
            zip(before.get("players", ()), now.get("players", ()), strict=True)
        ):
            name, other = self.members[seat].name, self.members[1 - seat].name
            hit = new["damage"] - old["damage"]
            if hit >= HARD_HIT:
                yield f"{other} hits {name} for {hit:.0f} (damage {new['damage']:.0f})"
            if new["stocks"] < old["stocks"]:
                yield f"{name} is knocked out at damage {old['damage']:.0f}, {_stocks(new['stocks'])} left"


def _stocks(count: int) -> str:
    return "1 stock" if count == 1 else f"{count} stocks"
