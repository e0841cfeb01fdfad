"""The game contract: N two-seat matches that step together over preallocated arrays.

Shape suffixes: N matches, 2 seats, A action width, O observation width, K reward terms, S stats.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from league.errors import DataCorrupt, InvalidInput, VersionMismatch
from league.players import Assignment, MatchResult, PlayerKind, SeatResult

EXTERNAL = -1
"""In `BatchedGame.bots`: this seat's actions come from the caller."""

KEYS, CHOICE = "keys", "choice"
"""What an action `[A]` is: any set of A keys that are down (MultiBinary), or a one-hot choice of
one of A (Discrete), of which a match may allow only some at a time.
"""


@dataclass(frozen=True, kw_only=True)
class BotSpec:
    """A scripted player that the game itself plays. Its place in `GameSpec.bots` is its index."""

    name: str
    summary: str
    held_out: bool = False


@dataclass(frozen=True, kw_only=True)
class GameSpec:
    """What a learner must know of a game. `version` changes with the rules.

    `observation[:own_size]` is one's own part; the rest, what one sees of the opponent, is what the
    agent's encoder keeps a history of. A game whose observations can't be split so puts the whole
    of them into the rest, and what is left (the seat, whose turn it is) into the own part.
    """

    name: str
    version: str
    frames_per_second: int
    observation_size: int
    own_size: int  # at least 1, less than observation_size
    action_size: int
    action_names: tuple[str, ...]
    reward_terms: tuple[str, ...]
    stats: tuple[str, ...]  # per seat and match: "damage_dealt", "knockouts", ...
    bots: tuple[BotSpec, ...]
    max_frames: int
    action_kind: str = KEYS
    # names of the numbers, for people; may be empty
    observation_names: tuple[str, ...] = ()
    reward_presets: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Weights by preset and term; every game has `dense` and `sparse` (the outcome alone)."""
    places: tuple[int, ...] = ()
    """Where in the own part, and in the rest alike, a place in [-1, 1] stands: edges of a stage
    are sharp, so the agent sees it in waves too."""
    ids: tuple[tuple[int, ...], ...] = ()
    """Vocabularies: the size of each, then the places in the observation where a number of it
    stands, written as its share of the size. The agent learns an embedding of each.
    """
    payoff_unit: str = ""
    """Unit of payoffs, as "chips"; "" in games without."""
    largest_payoff: float | None = None
    """The most that a match can pay to a player, in the unit of the stat `payoff`. None in games
    without payoffs, and where the game does not tell its bound.
    """
    older_versions: tuple[str, ...] = ()
    """Versions with other rules, whose agents see the first of the numbers, or all, and have the
    same actions.
    """

    def bot_index(self, name: str) -> int:
        """Index of the bot called `name`; raises KeyError."""
        return {bot.name: index for index, bot in enumerate(self.bots)}[name]


_SAVED = (
    *("observations_N2O", "final_observations_N2O", "reward_terms_N2K", "ended_N", "outcomes_N"),
    *("frames_N", "final_frames_N", "stats_N2S", "final_stats_N2S", "bots_N2", "next_seeds_N"),
)


class BatchedGame(ABC):
    """N matches in step. The arrays below are allocated once and overwritten by `reset` and `step`.

    Attributes:
        observations_N2O: float32 in [-1, 1], seat s's own half first; after a match ended it is
            already the next match's first observation.
        final_observations_N2O: last observation of the match that ended in this step (rows where
            `ended_N`; others are stale).
        reward_terms_N2K: float32, raw (unweighted) value of each term over this step's frames.
        ended_N: bool, whether the match ended in this step.
        outcomes_N: float32, for seat 0: 1 win, 0.5 draw, 0 loss (rows where `ended_N`).
        frames_N: int32, frames played of the current match.
        final_frames_N: int32, length in frames of the match that ended in this step.
        stats_N2S, final_stats_N2S: float32, behaviour totals of the current and the ended match.
        bots_N2: int8, EXTERNAL or the index of the bot that plays the seat; write it at any time.
        next_seeds_N: uint64, seed with which the match restarts in place when it ends; write it at
            any time. After a restart it is replaced by a value derived from itself.
        legal_N2A: bool, which choices a seat has now; None in games of keys, where all are free. A
            seat with nothing to decide (it is the other's turn) has one, whose choice changes
            nothing.
        idle_N: bool, rows that the caller doesn't use; write it at any time. A slow game plays no
            frames in them, and a quick one need not look.
        failures: by row, why a match that ended in this step could not be played to its end (an
            environment that hangs): it has no outcome and must not be rated. Emptied by `step`.
    """

    legal_N2A: NDArray[np.bool_] | None = None
    failures: Mapping[int, str] = MappingProxyType({})

    def __init__(self, spec: GameSpec, num_matches: int) -> None:
        """Allocates the arrays; raises `InvalidInput` for less than one match or frame."""
        if num_matches < 1:
            raise InvalidInput(f"{num_matches} matches can't be played: ask for at least 1")
        if spec.max_frames < 1:
            raise InvalidInput(f"a match can't end after {spec.max_frames} frames: allow 1 or more")
        n, self.spec, self.num_matches = num_matches, spec, num_matches
        self.observations_N2O = np.zeros((n, 2, spec.observation_size), np.float32)
        self.final_observations_N2O = np.zeros_like(self.observations_N2O)
        self.reward_terms_N2K = np.zeros((n, 2, len(spec.reward_terms)), np.float32)
        self.ended_N = np.zeros(n, np.bool_)
        self.outcomes_N = np.full(n, 0.5, np.float32)
        self.frames_N, self.final_frames_N = np.zeros((2, n), np.int32)
        self.stats_N2S, self.final_stats_N2S = np.zeros((2, n, 2, len(spec.stats)), np.float32)
        self.bots_N2 = np.full((n, 2), EXTERNAL, np.int8)
        self.next_seeds_N = np.zeros(n, np.uint64)
        self.idle_N = np.zeros(n, np.bool_)
        if spec.action_kind == CHOICE:
            self.legal_N2A = np.ones((n, 2, spec.action_size), np.bool_)

    @abstractmethod
    def reset(self, seeds: NDArray[np.uint64], where: NDArray[np.bool_] | None = None) -> None:
        """Begins a match from `seeds[n]` in every row, or in the rows where `where`.

        `next_seeds_N` of these rows changes: write it when other matches shall follow.
        """

    @abstractmethod
    def step(self, actions_N2A: NDArray[np.uint8], frames: int = 1) -> None:
        """Plays `frames` frames with the keys held (bots decide in every frame).

        A match that ends stops there and restarts in place from its next seed; the rest of the
        frames is not played in it. In games of choices a frame is one choice and `frames` is 1; a
        row without any choice made (all zero) is refused with `InvalidInput` unless a bot sits
        there.
        """

    @abstractmethod
    def frame(self, match: int) -> dict:
        """One match's current state as a small JSON-able dict, for renderers."""

    def checked_seeds(
        self, seeds: NDArray[np.uint64], where: NDArray[np.bool_] | None
    ) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
        """What `reset` was given, `where` as a mask; raises `InvalidInput` for a wrong shape."""
        seeds_N, wanted = np.ascontiguousarray(seeds, np.uint64), (self.num_matches,)
        where_N = np.ones(wanted, np.bool_) if where is None else np.array(where, np.bool_)
        if seeds_N.shape != wanted or where_N.shape != wanted:
            raise InvalidInput(
                f"seeds {seeds_N.shape} and where {where_N.shape} must both have shape {wanted}"
            )
        return seeds_N, where_N

    def checked_actions(self, actions: NDArray[np.uint8], frames: int) -> NDArray[np.uint8]:
        """What `step` was given; raises `InvalidInput` for a wrong shape or number of frames, and
        in games of choices for a seat without a bot that made none or several.
        """
        is_exact = getattr(actions, "dtype", None) == np.uint8
        actions_N2A = np.ascontiguousarray(actions if is_exact else pressed(actions), np.uint8)
        wanted = (self.num_matches, 2, self.spec.action_size)
        if actions_N2A.shape != wanted:
            raise InvalidInput(f"actions have shape {actions_N2A.shape}: {wanted} is wanted")
        if frames < 1:
            raise InvalidInput(f"{frames} frames can't be played: ask for at least 1")
        if self.spec.action_kind == CHOICE:
            if frames > 1:
                raise InvalidInput(
                    f"{frames} frames can't be played at once: in {self.spec.name} one is a choice"
                )
            self.refuse((actions_N2A != 0).sum(-1) != 1, actions_N2A, "one choice")
        return actions_N2A

    def refuse(
        self, wrong_N2: NDArray[np.bool_], actions_N2A: NDArray[np.uint8], wanted: str
    ) -> None:
        """Raises `InvalidInput` if a seat without a bot chose wrongly; it names the first."""
        wrong_N2 = wrong_N2 & (self.bots_N2 == EXTERNAL)
        if wrong_N2.any():
            row, seat = np.argwhere(wrong_N2)[0].tolist()
            names = np.array(self.spec.action_names)
            chosen = ", ".join(names[actions_N2A[row, seat] != 0]) or "nothing"
            raise InvalidInput(
                f"seat {seat} of match {row} chose {chosen}: exactly {wanted} is wanted"
            )

    def own_state(self) -> dict[str, NDArray]:
        """The game's own arrays by name, which `save` copies and `load` overwrites."""
        return {}

    def rules_text(self) -> str:
        """What two games must share for one to continue the other's saved matches."""
        return f"{self.spec.name} {self.spec.version} {self.spec.max_frames}"

    def save(self) -> dict[str, NDArray]:
        """A copy of the whole state, arrays by name, from which `load` continues bit for bit."""
        rules = np.frombuffer(self.rules_text().encode(), np.uint8)
        return {name: array.copy() for name, array in self._state().items()} | {"rules": rules}

    def load(self, state: dict[str, NDArray]) -> None:
        """Continues from what `save` returned.

        Raises `DataCorrupt` when it does not fit (of another number of matches, damaged), and
        `VersionMismatch` when it was played under other rules, options or another time limit.
        """
        if bytes(state.get("rules", np.zeros(0, np.uint8))) != self.rules_text().encode():
            raise VersionMismatch(
                f"the saved matches were played under other rules than {self.spec.name}'s here, "
                "with other options or another time limit: begin new ones"
            )
        targets = self._state()
        for name, target in targets.items():
            check_saved(state, name, target)
        for name, target in targets.items():
            target[...] = state[name]

    def _state(self) -> dict[str, NDArray]:
        shared = {name: getattr(self, name) for name in _SAVED}
        choices = {} if self.legal_N2A is None else {"legal_N2A": self.legal_N2A}
        return shared | choices | self.own_state()

    def time_left_N(self) -> NDArray[np.float32]:
        """Share of the match still to come, 1 at the start and 0 at the time limit."""
        return (1.0 - self.frames_N / self.spec.max_frames).astype(np.float32)

    def idle_actions(self) -> NDArray[np.uint8]:
        """What unused seats do, [N, 2, A]: no key, or the first choice that is legal."""
        actions_N2A = np.zeros((self.num_matches, 2, self.spec.action_size), np.uint8)
        if self.legal_N2A is not None:
            np.put_along_axis(actions_N2A, self.legal_N2A.argmax(-1)[..., None], 1, -1)
        return actions_N2A

    def played_N2A(self) -> NDArray[np.uint8] | None:
        """What both seats did in the frame played last, [N, 2, A], the game's own bots too.

        None if the game doesn't report it; a replay then lets the bots play again.
        """
        return None

    def clipped(self) -> Mapping[str, int]:
        """How many observed values a game had to clip since the last call.

        Returns:
            Counts by AGENT/INDEX/LOW/HIGH: a number of an agent's observation, and the bounds that
            it must keep. Empty where nothing is clipped.
        """
        return {}

    def final_frame(self, match: int) -> dict | None:
        """How this row's last match ended, in the form of `frame`, with "ended": True; for pictures
        alone.

        None where the game keeps no frame of it.
        """
        return None

    def close(self) -> None:  # noqa: B027 (to override where something runs)
        """Ends what the game runs outside of this process (most run nothing). Twice is fine."""


def pressed(keys: Any) -> NDArray[np.bool_]:
    """Which keys are down: those above 0.5. Raises `InvalidInput` for NaN and for words."""
    numbers = np.asarray(keys)
    if numbers.dtype.kind not in "biuf" or np.isnan(numbers).any():
        raise InvalidInput(f"keys are {keys!r:.200}: give 0 or 1 for each")
    return numbers > 0.5


def check_saved(state: Mapping[str, NDArray], name: str, target: NDArray) -> None:
    """Raises `DataCorrupt` unless `state` has an array `name` of `target`'s shape and type."""
    value = state.get(name)
    if value is None or value.shape != target.shape or value.dtype != target.dtype:
        found = "missing" if value is None else f"{value.dtype}{value.shape}"
        raise DataCorrupt(
            f"saved array {name!r} is {found}, {target.dtype}{target.shape} is wanted: "
            "the state was saved with another number of matches or is damaged"
        )


def match_result(
    assignment: Assignment,
    game: BatchedGame,
    n: int,
    steps: tuple[int, int] = (0, 0),
    failure: str = "",
) -> MatchResult:
    """The result of the match in row `n` for the matchmaker; `steps` are a learner's at both ends.

    The matchmaker counts a match with a `failure` and never rates it.
    """
    seats = []
    for player, numbers in zip(assignment.seats, game.final_stats_N2S[n].tolist(), strict=True):
        start, end = steps if player.kind is PlayerKind.LIVE else (player.step, player.step)
        seats.append(
            SeatResult(
                player=player.name,
                digest=player.digest,
                step_start=start,
                step_end=end,
                stats={} if failure else dict(zip(game.spec.stats, numbers, strict=True)),
            )
        )
    return MatchResult(
        match_id=assignment.match_id,
        lease_token=assignment.lease_token,
        outcome=0.5 if failure else float(game.outcomes_N[n]),
        frames=0 if failure else int(game.final_frames_N[n]),
        seats=(seats[0], seats[1]),
        failed=bool(failure),
        failure=failure,
        finished_at=time.time(),
    )
