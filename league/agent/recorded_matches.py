"""Plays many matches at once and records each as a replay.

The game plays its bots, one batched policy plays the snapshots.

Shape suffixes: N rows (matches at once), S seats, 2 seats of a match, A action width.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from league.agent.batched_policy import BatchedPolicy
from league.agent.contract import PlayingNetwork
from league.errors import InvalidInput
from league.games.base import EXTERNAL, BatchedGame
from league.replay import BatchRecorder, Bout, Contender, Recipe, Replay
from league.replay.recorder import keys_for_decision

ROWS = 64
"""Matches at once: more cost memory and gain little."""


def paired(
    first: Contender,
    second: Contender,
    bots: tuple[int, int],
    matches: int,
    seed: int,
    pupil: str = "",
) -> list[Bout]:
    """Matches of two players: each seed from `seed` on once from either seat.

    A player that meets itself gets a seed for each match: swapped seats would repeat the match.
    """
    one = Bout(seats=(first, second), bots=bots, seed=seed, pupil=pupil)
    if (first, bots[0]) == (second, bots[1]):
        return [replace(one, seed=seed + number) for number in range(matches)]
    straight = [replace(one, seed=seed + pair) for pair in range(-(-matches // 2))]
    swapped = [replace(bout, seats=(second, first), bots=(bots[1], bots[0])) for bout in straight]
    return [bout for pair in zip(straight, swapped, strict=True) for bout in pair][:matches]


def play_bouts(
    recipe: Recipe,
    bouts: Sequence[Bout],
    load: Callable[[str], PlayingNetwork],
    *,
    frame_skip: int,
    seed: int,
    greedy: bool = False,
    pace: int = 1,
    disturb: float = 0.0,
) -> Iterator[Replay]:
    """Plays all bouts, `ROWS` at once, and yields each when it has ended, without failed ones.

    The result depends on the arguments alone.

    Args:
        recipe: of the game.
        bouts: the matches; seats without a bot are played by the snapshot of their digest.
        load: digest → network.
        frame_skip: frames between a snapshot's decisions, sampled at temperature 1.
        seed: of the sampling.
        greedy: whether snapshots take the likeliest action instead.
        pace: frames between decisions of a bout's `pupil`, if it is a bot: it then plays as an
            agent that follows it would (`league.replay.recorder`).
        disturb: share of the frames in which the pupil does something else (`Disturbance`). Pace
            and disturbance are for games of keys that report what their bots do.
    """
    game = recipe.make(min(ROWS, len(bouts)))
    try:
        yield from _Table(game, recipe, bouts, load, frame_skip, seed, greedy, pace, disturb).play()
    finally:
        game.close()


class _Table:
    """The rows of a game, each with a bout or idle; bouts begin where a decision does."""

    def __init__(
        self,
        game: BatchedGame,
        recipe: Recipe,
        bouts: Sequence[Bout],
        load: Callable[[str], PlayingNetwork],
        frame_skip: int,
        seed: int,
        greedy: bool,
        pace: int,
        disturb: float,
    ) -> None:
        self._game, self._waiting = game, list(reversed(bouts))
        self._frame_skip, self._greedy, self._pace = max(frame_skip, pace), greedy, pace
        self._recorder = BatchRecorder(game, recipe)
        self._disturbance = Disturbance(game, disturb, seed) if disturb else None
        spec = game.spec
        self._batched_policy = BatchedPolicy(
            2 * game.num_matches,
            load,
            seed=seed,
            action_size=spec.action_size,
            action_kind=spec.action_kind,
        )
        self._bouts: dict[int, Bout] = {}
        self._bots_N2 = np.full((game.num_matches, 2), EXTERNAL, np.int8)
        # Bots that decide every `pace` frames; keys of the last decision and of the last frame.
        self._slow_N2 = np.zeros((game.num_matches, 2), np.bool_)
        self._held_N2A = np.zeros((game.num_matches, 2, spec.action_size), np.uint8)
        self._last_N2A = self._held_N2A.copy()
        game.bots_N2[:] = EXTERNAL
        game.reset(np.zeros(game.num_matches, np.uint64))

    def play(self) -> Iterator[Replay]:
        while self._waiting or self._bouts:
            self._begin()
            actions_N2A = self._decide()
            if self._pace > 1:
                ahead_N2A = self._looked_ahead(actions_N2A)
                actions_N2A = np.where(self._slow_N2[..., None], ahead_N2A, actions_N2A)
                self._held_N2A = actions_N2A
            for _ in range(self._frame_skip):
                self._step(actions_N2A)
                yield from self._finished()

    def _step(self, actions_N2A: NDArray[np.uint8]) -> None:
        """Plays and notes a frame."""
        self._game.bots_N2[:] = np.where(self._slow_N2, EXTERNAL, self._bots_N2)
        if self._disturbance is not None:
            actions_N2A = self._disturbance.before(actions_N2A)
        self._game.step(actions_N2A)
        self._recorder.note(actions_N2A)
        self._last_N2A = actions_N2A
        if self._disturbance is not None:
            self._disturbance.after(actions_N2A)

    def _begin(self) -> None:
        """Seats the next bouts in idle rows."""
        where_N = np.zeros(self._game.num_matches, np.bool_)
        seeds_N = np.zeros(self._game.num_matches, np.uint64)
        for row in range(self._game.num_matches):
            if row in self._bouts or not self._waiting:
                continue
            bout = self._bouts[row] = self._waiting.pop()
            where_N[row], seeds_N[row] = True, bout.seed
            self._bots_N2[row] = bout.bots
            self._held_N2A[row], self._last_N2A[row] = 0, 0
            first, second = (seat.name == bout.pupil for seat in bout.seats)
            self._slow_N2[row] = (
                (first, second) & (self._bots_N2[row] != EXTERNAL) & (self._pace > 1)
            )
            if self._disturbance is not None:
                self._disturbance.begin(row, (first, second))
            for seat, contender in enumerate(bout.seats):
                if bout.bots[seat] == EXTERNAL:
                    self._batched_policy.seat(2 * row + seat, contender.digest, greedy=self._greedy)
        if where_N.any():
            self._game.reset(seeds_N, where_N)

    def _decide(self) -> NDArray[np.uint8]:
        game = self._game
        seats = 2 * game.num_matches
        legal_SA = None if game.legal_N2A is None else game.legal_N2A.reshape(seats, -1)
        actions_SA = self._batched_policy.act(game.observations_N2O.reshape(seats, -1), legal_SA)
        return actions_SA.reshape(game.num_matches, 2, -1)

    def _looked_ahead(self, actions_N2A: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Keys that follow what each seat would do in the next `pace` frames, `[N, 2, A]`."""
        game, state = self._game, self._game.save()
        frames: list[NDArray[np.uint8]] = []
        game.bots_N2[:] = self._bots_N2
        continues_N11 = np.ones((game.num_matches, 1, 1), np.bool_)
        for _ in range(self._pace):
            game.step(actions_N2A)
            done_N2A = game.played_N2A()
            assert done_N2A is not None
            # After a match's end the next match follows: its last frame stays.
            frames.append(np.where(continues_N11, done_N2A, frames[-1] if frames else done_N2A))
            continues_N11 &= ~game.ended_N[:, None, None]
        game.load(state)
        return keys_for_decision(np.stack(frames), self._last_N2A, self._held_N2A)

    def _finished(self) -> Iterator[Replay]:
        game = self._game
        for row in map(int, np.flatnonzero(game.ended_N)):
            bout = self._bouts.pop(row, None)
            if bout is None:
                continue
            for seat in (0, 1):
                self._batched_policy.vacate(2 * row + seat)
            if row not in game.failures:
                spans = () if self._disturbance is None else self._disturbance.spans(row)
                yield self._recorder.finish(row, bout, spans)


SHORTEST, LONGEST = 2, 12
"""Frames that a mistake lasts."""
_REMEMBERED = 4096


class Disturbance:
    """Puts small mistakes into some seats' play, so that the record shows how a player recovers.

    A learner from records alone sees only situations that the recorded player gets into, and is
    lost after its first mistake. Demonstrations with noise, where the noise is not learnt, cure
    that (DART, arXiv 1703.09327). The noise is what the player itself did at another moment: the
    right keys at a wrong time, which is the mistake that a clone makes.

    Args:
        game: whose seats it takes over for a few frames at a time.
        share: of all frames.
        seed: of the mistakes.
    """

    def __init__(self, game: BatchedGame, share: float, seed: int) -> None:
        self._game = game
        mean = (SHORTEST + LONGEST) / 2
        # that a mistake begins in a frame without one
        self._chance = share / (mean * (1.0 - share))
        self._rng = np.random.default_rng([seed, 2])
        self._left_N2 = np.zeros((game.num_matches, 2), np.int64)
        self._on_N2 = np.zeros((game.num_matches, 2), np.bool_)
        self._keys_N2A = np.zeros((game.num_matches, 2, game.spec.action_size), np.uint8)
        self._memory_PA = np.zeros((_REMEMBERED, game.spec.action_size), np.uint8)
        self._remembered = 0
        self._spans: list[list[tuple[int, int, int]]] = [[] for _ in range(game.num_matches)]

    def begin(self, row: int, seats: tuple[bool, bool]) -> None:
        """Starts a match in `row`; `seats` says which seats are disturbed.

        Raises:
            InvalidInput: the game does not report what its players do.
        """
        if any(seats) and self._game.played_N2A() is None:
            raise InvalidInput(
                f"{self._game.spec.name} does not report what its players do, so mistakes could "
                "not be marked: leave out --disturb"
            )
        self._left_N2[row], self._spans[row] = 0, []
        self._on_N2[row] = seats

    def spans(self, row: int) -> tuple[tuple[int, int, int], ...]:
        """What was disturbed in the row's match: (seat, first frame, frames)."""
        return tuple(self._spans[row])

    def before(self, actions_N2A: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """The actions of the next frame with the mistakes in; disturbed bots don't play in it."""
        game = self._game
        drawn_N2 = self._rng.random(self._left_N2.shape) < self._chance
        begins_N2 = drawn_N2 & self._on_N2 & (self._left_N2 == 0)
        lasts_N2 = self._rng.integers(SHORTEST, LONGEST + 1, self._left_N2.shape)
        for row, seat in np.argwhere(begins_N2) if self._remembered else ():
            self._left_N2[row, seat] = lasts_N2[row, seat]
            place = self._rng.integers(min(self._remembered, _REMEMBERED))
            self._keys_N2A[row, seat] = self._memory_PA[place]
            self._spans[row].append((int(seat), int(game.frames_N[row]), int(lasts_N2[row, seat])))
        taken_N2 = self._left_N2 > 0
        game.bots_N2[taken_N2] = EXTERNAL
        return np.where(taken_N2[..., None], self._keys_N2A, actions_N2A)

    def after(self, actions_N2A: NDArray[np.uint8]) -> None:
        """Remembers what was done in the frame, with `actions_N2A` of the seats without bots."""
        done_N2A = self._game.played_N2A()
        done_N2A = actions_N2A if done_N2A is None else done_N2A
        for row, seat in np.argwhere(self._on_N2 & (self._left_N2 == 0))[:8]:
            self._memory_PA[self._remembered % _REMEMBERED] = done_N2A[row, seat]
            self._remembered += 1
        self._left_N2 = np.maximum(self._left_N2 - 1, 0)
