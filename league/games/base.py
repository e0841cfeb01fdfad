"""Defines the game contract: N two-seat matches that step together over preallocated arrays.

Shape suffixes: N matches, 2 seats, A action width, O observation width, K reward terms, S stats.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from league.errors import DataCorrupt, InvalidInput, VersionMismatch
from league.players import Assignment, MatchResult, PlayerKind, SeatResult

if TYPE_CHECKING:
    from league.games.choice_rules import TreeRules

EXTERNAL = -1
"""Value of `BatchedGame.bots_N2` for a seat whose actions come from the caller."""

KEYS, CHOICE = "keys", "choice"
"""The two kinds of actions. Both are arrays `[A]` of 0 and 1. With KEYS, a player holds any subset
of A keys (MultiBinary). With CHOICE, the array is one-hot: a player picks a single choice out of A
(Discrete), and the state of the match decides which choices are legal.
"""
_LAYOUT = ("C", "W")
"""Layout of the arrays that games get: contiguous and writable. For arrays of another layout, such
as those from `np.frombuffer`, brawl would be compiled once more.
"""


@dataclass(frozen=True, kw_only=True)
class BotSpec:
    """Describes a scripted player that the game itself plays. The bot's index is its position in
    `GameSpec.all_bots`.
    """

    name: str
    summary: str
    held_out: bool = False


@dataclass(frozen=True, kw_only=True)
class GameSpec:
    """Describes a game to a learner. `version` changes with the rules.

    `observation[:own_size]` is the own part, which describes the seat itself. The rest describes
    the opponent as the seat sees it, and the agent's encoder keeps a history of the rest. A game
    that can't split its observation in this way puts the whole observation into the rest. The own
    part must not be empty, so it then holds facts that exist in every such game: the seat's number,
    whether the seat has to act, and the legal choices.
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
    yardsticks: tuple[BotSpec, ...] = ()
    """Slow bots that play only if they are named explicitly. They never become players of a league.
    Their indices follow the indices of `bots`.
    """
    action_kind: str = KEYS
    action_words: tuple[str, ...] = ()  # the effect of each key, for people (may be empty)
    # names of the observed numbers, for people (may be empty)
    observation_names: tuple[str, ...] = ()
    reward_presets: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Weights by preset and term. Every game has `dense` and `sparse` (the outcome alone)."""
    places: tuple[int, ...] = ()
    """Indices of the observed numbers that are positions, in [-1, 1]. Each index is used twice: it
    counts from the start of the own part and from the start of the rest. Near the edge of a stage,
    a small change of a position matters, so the agent's network also gets sines and cosines of
    these positions."""
    ids: tuple[tuple[int, ...], ...] = ()
    """Vocabularies of ids. Each entry describes a vocabulary: first its size, then the indices of
    the observed numbers that hold ids of this vocabulary. Such a number is an id divided by the
    vocabulary's size. The agent learns an embedding of each vocabulary.
    """
    payoff_unit: str = ""
    """Unit of payoffs, such as "chips", or "" in games without payoffs."""
    largest_payoff: float | None = None
    """Largest payoff that a player can get from a match, in the unit of the stat `payoff`. None if
    the game has no payoffs or states no bound.
    """
    older_versions: tuple[str, ...] = ()
    """Older versions of the rules whose agents can still play this version. Such an agent has the
    same actions, and reads the whole observation or only the first numbers of it.
    """
    training_options: tuple[str, ...] = ()
    """Options that apply only to matches in which a learner trains."""

    @property
    def all_bots(self) -> tuple[BotSpec, ...]:
        """The bots and the yardsticks, by index."""
        return (*self.bots, *self.yardsticks)

    def bot_index(self, name: str) -> int:
        """Returns the index of the bot or yardstick called `name`, or raises `KeyError`."""
        return {bot.name: index for index, bot in enumerate(self.all_bots)}[name]


_SAVED = (
    *("observations_N2O", "final_observations_N2O", "reward_terms_N2K", "ended_N", "outcomes_N"),
    *("frames_N", "final_frames_N", "stats_N2S", "final_stats_N2S", "bots_N2", "next_seeds_N"),
)


class BatchedGame(ABC):
    """Holds N matches that step together. Each match has a row in the arrays below. When a match
    ends, the next match takes its row. `reset` and `step` overwrite the arrays in place.

    Attributes:
        observations_N2O: float32 in [-1, 1], the own part (about the seat itself) first. After a
            match has ended, the row holds the next match's first observation.
        final_observations_N2O: last observation of the match that ended in this step. Only rows
            with `ended_N` are valid.
        reward_terms_N2K: float32, raw (unweighted) value of each term over this step's frames.
        ended_N: bool, whether the match ended in this step.
        outcomes_N: float32, for seat 0: 1 win, 0.5 draw, 0 loss. Only rows with `ended_N` are
            valid.
        frames_N: int32, number of frames that were played in the current match.
        final_frames_N: int32, length in frames of the match that ended in this step.
        stats_N2S: float32, totals of the behaviour statistics over the current match.
        final_stats_N2S: float32, the totals of the match that ended in this step.
        bots_N2: int8, the index of the bot that plays the seat, or EXTERNAL. Callers may write it
            at any time.
        next_seeds_N: uint64, seed of the next match in the row. Callers may write it at any time.
            When that match begins, a seed derived from this seed replaces it.
        legal_N2A: bool, the choices that a seat has now. It is None in games that are played with
            keys, because every key is always allowed. A seat that waits for its turn has a single
            legal choice, which has no effect.
        idle_N: bool, rows whose match is paused. Callers may write it at any time. Brawl and hosted
            games (`league/games/hosted.py`) play no frames in these rows. Other games may ignore
            it.
        absent_N: bool, rows whose match can't begin yet, because the worker process that plays it
            is being started again (`league/games/workers/`). `step` plays nothing in these rows and
            ignores their actions. `begin_absent` begins these matches.
        failures: for each failed row, the reason why the match that ended in this step could not be
            played to its end (for example, its environment hung). Such a match has no outcome and
            must not be rated. `step` empties this mapping.
    """

    legal_N2A: NDArray[np.bool_] | None = None
    failures: Mapping[int, str] = MappingProxyType({})

    def __init__(self, spec: GameSpec, num_matches: int) -> None:
        """Allocates the arrays. Raises `InvalidInput` for fewer than 1 match or frame."""
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
        self.absent_N = np.zeros(n, np.bool_)
        if spec.action_kind == CHOICE:
            self.legal_N2A = np.ones((n, 2, spec.action_size), np.bool_)

    @abstractmethod
    def reset(self, seeds: NDArray[np.uint64], where: NDArray[np.bool_] | None = None) -> None:
        """Begins new matches, and sets a new seed in `next_seeds_N` for each of their rows.

        Args:
            seeds: [N], the seed of each row's match.
            where: [N], the rows in which to begin a match. None begins a match in all rows.

        Raises:
            InvalidInput: a wrong shape.
        """

    @abstractmethod
    def step(self, actions_N2A: NDArray[np.uint8], frames: int = 1) -> None:
        """Plays frames while the same keys are held. Bots decide in every frame.

        If a match ends, its row begins the next match from the next seed, and skips the remaining
        frames of this step.

        Args:
            actions_N2A: [N, 2, A], held keys or a one-hot choice. The actions of bots' seats are
                ignored.
            frames: frames to play. In games of choices each choice is a frame, and `frames` is 1.

        Raises:
            InvalidInput: a wrong shape or number of frames, or no choice for a seat without a bot.
        """

    def fail(self, reasons: Mapping[int, str]) -> None:
        """Marks matches as failed, and begins the next match in their rows. Call it after `step`.

        Args:
            reasons: the reasons by row, which are added to `failures`.
        """
        if not reasons:
            return
        rows = list(reasons)
        now_N = np.zeros(self.num_matches, np.bool_)
        now_N[rows] = True
        now_N &= ~self.ended_N  # rows that ended in this step have begun their next match already
        self.final_observations_N2O[now_N] = self.observations_N2O[now_N]
        self.final_frames_N[now_N] = self.frames_N[now_N]
        self.final_stats_N2S[now_N] = self.stats_N2S[now_N]
        self.reward_terms_N2K[rows], self.outcomes_N[rows] = 0.0, 0.5
        self.ended_N[rows] = True
        self.failures = {**self.failures, **reasons}
        self.reset(self.next_seeds_N, now_N)

    def begin_absent(self, everywhere: bool = False) -> None:  # noqa: B027 (few games need it)
        """Begins the matches of `absent_N` that can begin now. If all matches are absent, it waits.

        Args:
            everywhere: whether to wait until no match is absent.
        """

    @abstractmethod
    def frame(self, match: int) -> dict:
        """Returns a match's current state as a small JSON-able dict, for renderers."""

    def checked_seeds(
        self, seeds: NDArray[np.uint64], where: NDArray[np.bool_] | None
    ) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
        """Checks the arguments of `reset`. A wrong shape raises `InvalidInput`.

        Returns:
            uint64[N] seeds, and a bool[N] mask of the rows.
        """
        seeds_N, wanted = np.require(seeds, np.uint64, _LAYOUT), (self.num_matches,)
        where_N = np.ones(wanted, np.bool_) if where is None else np.array(where, np.bool_)
        if seeds_N.shape != wanted or where_N.shape != wanted:
            raise InvalidInput(
                f"seeds {seeds_N.shape} and where {where_N.shape} must both have shape {wanted}"
            )
        return seeds_N, where_N

    def checked_actions(self, actions: NDArray[np.uint8], frames: int) -> NDArray[np.uint8]:
        """Checks the arguments of `step`, and empties `failures`.

        Args:
            actions: keys or choices by row and seat.
            frames: frames to play.

        Returns:
            uint8[N, 2, A] actions.

        Raises:
            InvalidInput: a wrong shape or number of frames. In games of choices, also no
                choice or several choices for a seat without a bot.
        """
        is_exact = getattr(actions, "dtype", None) == np.uint8
        actions_N2A = np.require(actions if is_exact else pressed(actions), np.uint8, _LAYOUT)
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
        self.failures = {}
        return actions_N2A

    def refuse(
        self, wrong_N2: NDArray[np.bool_], actions_N2A: NDArray[np.uint8], wanted: str
    ) -> None:
        """Refuses wrong choices of seats without a bot.

        Args:
            wrong_N2: bool[N, 2], the wrong choices.
            actions_N2A: the actions, for the message.
            wanted: the right choice, in words.

        Raises:
            InvalidInput: there is a wrong choice. The message names the first.
        """
        wrong_N2 = wrong_N2 & (self.bots_N2 == EXTERNAL)
        if wrong_N2.any():
            row, seat = np.argwhere(wrong_N2)[0].tolist()
            names = np.array(self.spec.action_names)
            chosen = ", ".join(names[actions_N2A[row, seat] != 0]) or "nothing"
            raise InvalidInput(
                f"seat {seat} of match {row} chose {chosen}: exactly {wanted} is wanted"
            )

    def refuse_illegal(self, actions_N2A: NDArray[np.uint8]) -> None:
        """Refuses illegal choices of seats without a bot. Raises `InvalidInput`, which names the
        first illegal choice.
        """
        if self.legal_N2A is not None:
            legal_N2 = np.asarray((actions_N2A.astype(np.bool_) & self.legal_N2A).any(-1))
            self.refuse(~legal_N2, actions_N2A, "one legal choice")

    def own_state(self) -> dict[str, NDArray]:
        """Returns the arrays that only this kind of game has, by name. `save` copies the arrays,
        and `load` overwrites them.
        """
        return {}

    def rules_text(self) -> str:
        """Returns a text that identifies the rules and options. A game can load the saved matches
        of another game only if both games have the same text."""
        return f"{self.spec.name} {self.spec.version} {self.spec.max_frames}"

    def save(self) -> dict[str, NDArray]:
        """Copies the whole state, as arrays by name. `load` continues from it bit for bit."""
        rules = np.frombuffer(self.rules_text().encode(), np.uint8)
        return {name: array.copy() for name, array in self._state().items()} | {"rules": rules}

    def load(self, state: dict[str, NDArray]) -> None:
        """Continues from a state that `save` returned.

        Raises:
            DataCorrupt: the state is damaged or has another number of matches.
            VersionMismatch: the matches were played under other rules, options or another time
                limit.
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
        """Returns the remaining share of each match's time: 1 at the start, 0 at the limit."""
        return (1.0 - self.frames_N / self.spec.max_frames).astype(np.float32)

    def idle_actions(self) -> NDArray[np.uint8]:
        """Returns actions for seats that nobody plays, [N, 2, A]: no key, or the first legal
        choice.
        """
        actions_N2A = np.zeros((self.num_matches, 2, self.spec.action_size), np.uint8)
        if self.legal_N2A is not None:
            np.put_along_axis(actions_N2A, self.legal_N2A.argmax(-1)[..., None], 1, -1)
        return actions_N2A

    def played_N2A(self) -> NDArray[np.uint8] | None:
        """Returns the actions of both seats in the last frame, [N, 2, A], including the game's own
        bots.

        A game that doesn't report its bots' actions returns None. In its replays the bots decide
        again.
        """
        return None

    def clipped(self) -> Mapping[str, int]:
        """Counts the observed values that the game had to clip since the last call.

        Returns:
            A count for each number that was clipped. Its key is AGENT/INDEX/LOW/HIGH: the agent,
            the index of the number in the agent's observation, and the number's bounds.
        """
        return {}

    def tree_rules(self) -> TreeRules | None:
        """Returns the rules from which `league.games.exact` computes exact values. A game whose
        tree can't be walked returns None.
        """
        return None

    def final_frame(self, match: int) -> dict | None:
        """Returns the last frame of the previous match in row `match`, for pictures.

        The frame has the same form as the result of `frame`, with "ended": True. A game that keeps
        no last frame returns None.
        """
        return None

    def close(self) -> None:  # noqa: B027 (to override where something runs)
        """Ends the processes and threads of the game, if it has any. It is safe to call again."""


def pressed(keys: Any) -> NDArray[np.bool_]:
    """Returns a mask of the pressed keys, whose values are above 0.5. Raises `InvalidInput` for NaN
    and for values that are not numbers.
    """
    numbers = np.asarray(keys)
    if numbers.dtype.kind not in "biuf" or np.isnan(numbers).any():
        raise InvalidInput(f"keys are {keys!r:.200}: give 0 or 1 for each")
    return numbers > 0.5


def check_saved(state: Mapping[str, NDArray], name: str, target: NDArray) -> None:
    """Checks an array of a saved state.

    Args:
        state: the saved arrays by name.
        name: the array to check.
        target: an array of the wanted shape and type.

    Raises:
        DataCorrupt: the array is missing or has another shape or type.
    """
    value = state.get(name)
    if value is None or value.shape != target.shape or value.dtype != target.dtype:
        actual = "missing" if value is None else f"{value.dtype}{value.shape}"
        raise DataCorrupt(
            f"saved array {name!r} is {actual}, {target.dtype}{target.shape} is wanted: "
            "the state was saved with another number of matches or is damaged"
        )


def match_result(
    assignment: Assignment,
    game: BatchedGame,
    n: int,
    steps: tuple[int, int] = (0, 0),
    failure: str = "",
    late: tuple[int, int] = (0, 0),
) -> MatchResult:
    """Returns the result of an ended match in row `n`, for the matchmaker.

    Args:
        steps: a learner's training steps at the start and the end of the match.
        failure: the reason why the match failed, or "". The matchmaker counts a failed match and
            never rates it.
        late: number of late decisions by seat. A number above 0 is added to the seat's statistics.
    """
    seats = []
    rows = zip(assignment.seats, game.final_stats_N2S[n].tolist(), late, strict=True)
    for player, numbers, late_decisions in rows:
        stats = {} if failure else dict(zip(game.spec.stats, numbers, strict=True))
        if late_decisions and not failure:
            stats["late_decisions"] = float(late_decisions)
        start, end = steps if player.kind is PlayerKind.LIVE else (player.step, player.step)
        seats.append(
            SeatResult(
                player=player.name,
                digest=player.digest,
                step_start=start,
                step_end=end,
                stats=stats,
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
