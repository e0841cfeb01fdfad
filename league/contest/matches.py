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
SHORTEST, LONGEST = 2, 12
"""Frames that a mistake lasts."""


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
    failures: dict[Bout, str] | None = None,
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
        disturb: share of the frames in which the pupil makes a mistake.
        failures: gets the reason of each match that failed.

    A learner from records alone sees only situations that the recorded player gets into, and is
    lost after its first mistake. Demonstrations with noise, where the noise is not learnt, cure
    that (DART, arXiv 1703.09327). A mistake holds what the player itself did at an earlier moment
    of the match: the right keys at a wrong time, which is the mistake that a clone makes.

    Raises:
        InvalidInput: pace or disturbance in a game that does not report what its bots do.
    """
    game = recipe.make(min(ROWS, len(bouts)))
    try:
        spec = game.spec
        if (pace > 1 or disturb) and game.played_N2A() is None:
            raise InvalidInput(
                f"{spec.name} does not report what its players do, so mistakes could not be "
                "marked: leave out --disturb and --pace"
            )
        policy = BatchedPolicy(
            2 * game.num_matches,
            load,
            seed=seed,
            action_size=spec.action_size,
            action_kind=spec.action_kind,
        )
        table = _Table(game, policy, BatchRecorder(game, recipe), pace, disturb, seed)
        waiting = list(reversed(bouts))
        while waiting or table.bouts:
            table.seat(waiting, greedy)
            actions_N2A = table.decide()
            for _ in range(max(frame_skip, pace)):
                table.step(actions_N2A)
                yield from table.finished({} if failures is None else failures)
    finally:
        game.close()


class _Table:
    """The rows of a game, each with a bout or idle; bouts begin where a decision does."""

    def __init__(
        self,
        game: BatchedGame,
        policy: BatchedPolicy,
        recorder: BatchRecorder,
        pace: int,
        disturb: float,
        seed: int,
    ) -> None:
        self._game, self._policy, self._recorder, self._pace = game, policy, recorder, pace
        self.bouts: dict[int, Bout] = {}
        rows = game.num_matches
        self._bots_N2 = np.full((rows, 2), EXTERNAL, np.int8)
        # Seats of pupils; those that decide every `pace` frames; frames that a mistake still lasts.
        self._pupil_N2, self._slow_N2 = np.zeros((2, rows, 2), np.bool_)
        self._left_N2 = np.zeros((rows, 2), np.int64)
        # Keys of the last decision, of the last frame, and of the mistake.
        self._held_N2A, self._last_N2A, self._wrong_N2A = np.zeros(
            (3, rows, 2, game.spec.action_size), np.uint8
        )
        # That a mistake begins in a frame without one.
        self._chance = disturb / ((SHORTEST + LONGEST) / 2 * (1.0 - disturb))
        self._rng = np.random.default_rng([seed, 2])
        self._mistakes: dict[int, list[tuple[int, int, int]]] = {}
        game.bots_N2[:], game.idle_N[:] = EXTERNAL, True
        game.reset(np.zeros(rows, np.uint64))

    def seat(self, waiting: list[Bout], greedy: bool) -> None:
        """Seats the next bouts in idle rows."""
        where_N = np.zeros(self._game.num_matches, np.bool_)
        seeds_N = np.zeros(self._game.num_matches, np.uint64)
        for row in range(self._game.num_matches):
            if row in self.bouts or not waiting:
                continue
            bout = self.bouts[row] = waiting.pop()
            where_N[row], seeds_N[row] = True, bout.seed
            self._game.idle_N[row] = False
            self._bots_N2[row] = bout.bots
            self._pupil_N2[row] = [seat.name == bout.pupil for seat in bout.seats]
            self._slow_N2[row] = self._pupil_N2[row] & (self._bots_N2[row] != EXTERNAL)
            self._left_N2[row], self._held_N2A[row], self._last_N2A[row] = 0, 0, 0
            self._mistakes[row] = []
            for seat, contender in enumerate(bout.seats):
                if bout.bots[seat] == EXTERNAL:
                    self._policy.seat(2 * row + seat, contender.digest, greedy=greedy)
        if where_N.any():
            self._game.reset(seeds_N, where_N)

    def decide(self) -> NDArray[np.uint8]:
        """Actions of the seats that the game does not play, `[N, 2, A]`."""
        game = self._game
        seats = 2 * game.num_matches
        legal_SA = None if game.legal_N2A is None else game.legal_N2A.reshape(seats, -1)
        actions_SA = self._policy.act(game.observations_N2O.reshape(seats, -1), legal_SA)
        actions_N2A = actions_SA.reshape(game.num_matches, 2, -1)
        if self._pace > 1:
            ahead_N2A = self._looked_ahead(actions_N2A)
            self._held_N2A = np.where(self._slow_N2[..., None], ahead_N2A, actions_N2A)
            return self._held_N2A
        return actions_N2A

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

    def step(self, actions_N2A: NDArray[np.uint8]) -> None:
        """Plays and records a frame, with the mistakes in it."""
        game = self._game
        begins_N2 = self._rng.random(self._left_N2.shape) < self._chance
        for row, seat in np.argwhere(begins_N2 & self._pupil_N2 & (self._left_N2 == 0)).tolist():
            if now := int(game.frames_N[row]):
                keys_2A = self._recorder.played(row, int(self._rng.integers(now)))
                frames = int(self._rng.integers(SHORTEST, LONGEST + 1))
                self._wrong_N2A[row, seat], self._left_N2[row, seat] = keys_2A[seat], frames
                self._mistakes[row].append((seat, now, frames))
        errs_N2 = self._left_N2 > 0
        slow_N2 = self._slow_N2 & (self._pace > 1)
        game.bots_N2[:] = np.where(slow_N2 | errs_N2, EXTERNAL, self._bots_N2)
        self._last_N2A = np.where(errs_N2[..., None], self._wrong_N2A, actions_N2A)
        legal_N2A = None if game.legal_N2A is None else game.legal_N2A.copy()
        game.step(self._last_N2A)
        self._recorder.note(self._last_N2A, legal_N2A)
        self._left_N2 = np.maximum(self._left_N2 - 1, 0)

    def finished(self, failures: dict[Bout, str]) -> Iterator[Replay]:
        """The matches that ended in the last frame; `failures` gets why others failed."""
        for row in map(int, np.flatnonzero(self._game.ended_N)):
            bout = self.bouts.pop(row, None)
            if bout is None:
                continue
            self._pupil_N2[row], self._game.idle_N[row] = False, True
            for seat in (0, 1):
                self._policy.vacate(2 * row + seat)
            if row in self._game.failures:
                failures[bout] = self._game.failures[row]
            else:
                yield self._recorder.finish(row, bout, tuple(self._mistakes[row]))
