"""Plays batched matches of any `ChoiceRules`, using only numpy.

The rules have players 0 and 1, and a batched game has seats 0 and 1. If the rules draw sides, the
match's seed decides which seat is player 0. Otherwise seat 0 is player 0. Shape suffixes: N
matches, 2 seats (or players), A actions, O observation width, K reward terms, S stats.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from league.errors import ConfigError
from league.games.base import CHOICE, BatchedGame, BotSpec, GameSpec
from league.games.choice_rules import ChoiceRules, probabilities_of

REWARD_TERMS = PAYOFF, WIN = ("payoff", "win")
FIRST = "first"
MAX_COUNTED = 32
"""Largest number of actions for which the stats have a count of each action."""

ROUNDING = 1e-9
"""A match is a draw if the size of a player's total payoff is at most this share of the largest
payoff. This keeps rounding errors, which depend on the order of addition, from deciding a match.
"""

_DEAL, _SIDE, _BOT = (
    np.uint64(salt) for salt in (0x243F6A8885A308D3, 0x13198A2E03707344, 0xA4093822299F31D0)
)


def mixed(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Returns splitmix64's next number for each state in `words` (Steele, Lea, Flood 2014).

    The constants are Vigna's (splitmix64.c).
    """
    z = words + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def choice_spec(rules: ChoiceRules) -> GameSpec:
    """Returns the spec of a game with these rules.

    The reward term `payoff` is in the game's own units. The preset `dense` scales this term so that
    a match pays at most 1. The preset `sparse` rewards only the outcome.
    """
    counted = rules.action_names if len(rules.action_names) <= MAX_COUNTED else ()
    return GameSpec(
        name=rules.name,
        version=rules.version,
        frames_per_second=1,
        observation_size=rules.observation_size,
        own_size=rules.own_size,
        observation_names=rules.observation_names,
        action_size=len(rules.action_names),
        action_names=rules.action_names,
        reward_terms=REWARD_TERMS,
        stats=(PAYOFF, FIRST, *(f"chose_{name}" for name in counted)),
        bots=tuple(BotSpec(name=bot.name, summary=bot.summary) for bot in rules.bots),
        max_frames=rules.longest,
        action_kind=CHOICE,
        payoff_unit=rules.payoff_unit,
        largest_payoff=rules.largest_payoff,
        reward_presets={
            "dense": {PAYOFF: 1.0 / (rules.largest_payoff or 1.0)},
            "sparse": {WIN: 1.0},
        },
    )


class ChoiceGame(BatchedGame):
    """Plays N matches of `rules`. Call `reset` first.

    Args:
        rules: the rules.
        num_matches: N, matches that step together.
        max_frames: None, or a time limit of at least `rules.longest` frames.

    Raises:
        InvalidInput: fewer than 1 match.
        ConfigError: a time limit that a match could exceed.
    """

    def __init__(self, rules: ChoiceRules, num_matches: int, max_frames: int | None = None) -> None:
        if max_frames is not None and max_frames < rules.longest:
            raise ConfigError(
                f"a match of {rules.name} has up to {rules.longest} frames, one a choice: it "
                f"can't end after {max_frames}, leave out the time limit"
            )
        n, self.rules = num_matches, rules
        super().__init__(choice_spec(rules), n)
        assert self.legal_N2A is not None
        self._legal_N2A = self.legal_N2A
        self._rows_N = np.arange(n)
        self._rows_N1 = self._rows_N[:, None]
        self._positions_N = rules.begin(np.zeros(n, np.int64))
        self._seeds_N = np.zeros(n, np.uint64)
        self._played_N2 = np.zeros((n, 2), np.intp)
        # the player in each seat (read the other way round, the seat of each player)
        self._players_N2 = np.tile(np.arange(2), (n, 1))
        self._paid_N = np.zeros(n, np.float64)  # to seat 0, in this match
        # the last position of each row's previous match, for pictures
        self._last_positions_N = self._positions_N.copy()
        self._last_players_N2 = self._players_N2.copy()
        self._begin(self._rows_N, self._seeds_N)

    def reset(self, seeds: NDArray[np.uint64], where: NDArray[np.bool_] | None = None) -> None:
        """Begins new matches, and sets `next_seeds_N` of their rows to seed + 1."""
        seeds_N, where_N = self.checked_seeds(seeds, where)
        rows = np.flatnonzero(where_N)
        self._begin(rows, seeds_N[rows])
        self.next_seeds_N[rows] = seeds_N[rows] + np.uint64(1)

    def _begin(self, rows: NDArray[np.intp], seeds_R: NDArray[np.uint64]) -> None:
        rules = self.rules
        deals_R = mixed(seeds_R ^ _DEAL) % np.uint64(rules.deals)
        self._positions_N[rows] = rules.begin(deals_R.astype(np.int64))
        swapped_R = (mixed(seeds_R ^ _SIDE) >> np.uint64(63)).astype(np.intp)
        if not rules.draws_sides:
            swapped_R[:] = 0
        self._players_N2[rows, 0], self._players_N2[rows, 1] = swapped_R, 1 - swapped_R
        self._seeds_N[rows] = seeds_R
        self._paid_N[rows] = 0.0
        self.frames_N[rows] = 0
        self.stats_N2S[rows] = 0.0
        self.stats_N2S[rows, :, 1] = 1 - self._players_N2[rows]
        self._show(rows)

    def _show(self, rows: NDArray[np.intp]) -> None:
        """Writes each seat's observation and legal choices."""
        positions = self._positions_N[rows]
        seats = (np.arange(len(rows))[:, None], self._players_N2[rows])
        self.observations_N2O[rows] = self.rules.observe(positions)[seats]
        self._legal_N2A[rows] = self.rules.legal(positions)[seats]

    def step(self, actions_N2A: NDArray[np.uint8], frames: int = 1) -> None:
        """Plays a choice in every match. If the method raises an error, no match has changed.

        Raises:
            InvalidInput: a wrong shape, several frames, or a seat without a bot that makes no
                choice, several choices or an illegal choice.
        """
        actions_N2A = self.checked_actions(actions_N2A, frames)
        choices_N2 = actions_N2A.argmax(-1)
        legal_N2 = self._legal_N2A[self._rows_N1, np.arange(2), choices_N2]
        self.refuse(~legal_N2, actions_N2A, "one legal choice")
        self._let_bots_choose(choices_N2)
        self._played_N2 = choices_N2
        decides_N2 = self._legal_N2A.sum(-1) > 1
        paid_N, ended_N = self.rules.play(
            self._positions_N, choices_N2[self._rows_N1, self._players_N2]
        )
        self.frames_N += 1
        paid_N = paid_N * (1 - 2 * self._players_N2[:, 0])  # to seat 0
        self._paid_N += paid_N
        close_N = np.abs(self._paid_N) <= ROUNDING * self.rules.largest_payoff
        won_N = np.where(close_N, 0.0, np.sign(self._paid_N))
        self.reward_terms_N2K[:, 0, 0] = paid_N
        self.reward_terms_N2K[:, 0, 1] = won_N * ended_N
        np.negative(self.reward_terms_N2K[:, 0], out=self.reward_terms_N2K[:, 1])
        self.stats_N2S[:, :, 0] += self.reward_terms_N2K[:, :, 0]
        if len(self.spec.stats) > 2:
            self.stats_N2S[self._rows_N1, np.arange(2), 2 + choices_N2] += decides_N2
        self.ended_N[:] = ended_N
        self.outcomes_N[ended_N] = (won_N[ended_N] + 1.0) / 2.0
        self._show(self._rows_N)
        ended = np.flatnonzero(ended_N)
        if len(ended):
            self._end(ended)

    def played_N2A(self) -> NDArray[np.uint8]:
        """Returns both seats' choices in the last frame, one-hot [N, 2, A], including bots."""
        return np.eye(self.spec.action_size, dtype=np.uint8)[self._played_N2]

    def _let_bots_choose(self, choices_N2: NDArray[np.intp]) -> None:
        """Draws the bots' choices. The random numbers depend only on the match's seed, the frame
        and the player, so that a match doesn't depend on its row.
        """
        for index, bot in enumerate(self.rules.bots):
            rows, seats = np.nonzero(self.bots_N2 == index)
            if not len(rows):
                continue
            players = self._players_N2[rows, seats]
            probabilities_RA = probabilities_of(
                bot.strategy, self._positions_N[rows], players, self._legal_N2A[rows, seats]
            )
            place_R = (2 * self.frames_N[rows] + players).astype(np.uint64)
            words_R = mixed(mixed(self._seeds_N[rows] ^ _BOT) + place_R)
            luck_R = (words_R >> np.uint64(32)).astype(np.float64) / 2.0**32
            sums_RA = probabilities_RA.cumsum(-1)
            choices_N2[rows, seats] = (sums_RA <= (luck_R * sums_RA[:, -1])[:, None]).sum(-1)

    def _end(self, rows: NDArray[np.intp]) -> None:
        """Stores the last frames of the matches in `rows`, and begins the next matches in these
        rows.
        """
        self.final_observations_N2O[rows] = self.observations_N2O[rows]
        self.final_frames_N[rows] = self.frames_N[rows]
        self.final_stats_N2S[rows] = self.stats_N2S[rows]
        self._last_positions_N[rows] = self._positions_N[rows]
        self._last_players_N2[rows] = self._players_N2[rows]
        seeds_R = self.next_seeds_N[rows]
        self._begin(rows, seeds_R)
        self.next_seeds_N[rows] = mixed(seeds_R)

    def own_state(self) -> dict[str, NDArray[Any]]:
        """Returns the positions (as bytes), seeds, players and payoffs of the matches."""
        return {
            "positions": self._positions_N.view(np.uint8),
            "seeds": self._seeds_N,
            "players": self._players_N2,
            "paid": self._paid_N,
        }

    def rules_text(self) -> str:
        """Returns the text of the rules, with the memory layout of a position."""
        return f"{super().rules_text()} {self.rules.record.descr}"

    def tree_rules(self) -> ChoiceRules:
        """Returns the rules."""
        return self.rules

    def frame(self, match: int) -> dict[str, Any]:
        """Returns a match's current state. `seats` describes both players by seat, and `table` the
        public part of the position.
        """
        return self._drawn(
            self._positions_N[match],
            self._players_N2[match],
            self.frames_N[match],
            self.stats_N2S[match],
        )

    def final_frame(self, match: int) -> dict[str, Any]:
        """Returns the previous match of a row after the match's last choice, with its payoffs."""
        end = self._drawn(
            self._last_positions_N[match],
            self._last_players_N2[match],
            self.final_frames_N[match],
            self.final_stats_N2S[match],
        )
        return {**end, "seats": [{**seat, "acts": False} for seat in end["seats"]], "ended": True}

    def _drawn(
        self,
        position: np.void,
        players_2: NDArray[np.intp],
        frames: int,
        stats_2S: NDArray[np.float32],
    ) -> dict[str, Any]:
        table = self.rules.describe(position)
        players = table.pop("players")
        return {
            "game": self.spec.name,
            "frame": int(frames),
            "max_frames": self.spec.max_frames,
            "seats": [
                {**players[player], "payoff": float(stats_2S[seat, 0])}
                for seat, player in enumerate(players_2)
            ],
            "table": table,
        }
