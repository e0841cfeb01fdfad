"""The batched game over PettingZoo environments.

A match is its seed and what was done in it: a match that is lost with its process, or loaded from a
saved state, is played again from these. Shape suffixes: N matches, 2 seats, A action width,
O observation width, V width of what the environment shows, K reward terms, S stats.
"""

from __future__ import annotations

import json
import weakref
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from league.errors import DataCorrupt, InvalidInput, Unavailable, VersionMismatch
from league.games.base import CHOICE, EXTERNAL, BatchedGame
from league.games.choice_game import mixed
from league.games.pettingzoo.pool import Pool
from league.games.pettingzoo.spaces import read
from league.games.pettingzoo.worker import Done, Task

_ILLEGAL, _MOVES, _REWARD = range(3)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MOST_RESTARTS = 20
_SAVED = (
    *("observations_N2O", "final_observations_N2O", "reward_terms_N2K", "ended_N", "outcomes_N"),
    *("frames_N", "final_frames_N", "stats_N2S", "final_stats_N2S", "bots_N2", "next_seeds_N"),
    *("seeds_N", "totals_N2"),
)


class PettingZooGame(BatchedGame):
    """N matches of one environment, played in worker processes that `reset` and `load` start.

    A seat's own part is which seat it is (2), whether it is to act (1) and its legal choices (A);
    the rest is what the environment shows it. Raises `ConfigError` for an environment that no
    league can play.
    """

    def __init__(
        self,
        num_matches: int,
        *,
        argument: str,
        options: Mapping[str, Any],
        max_frames: int | None,
        step_seconds: float,
        workers: int,
    ) -> None:
        if num_matches < 1:
            raise InvalidInput(f"{num_matches} matches can't be played: ask for at least 1")
        if max_frames is not None and max_frames < 1:
            raise InvalidInput(f"a match can't end after {max_frames} frames: allow at least 1")
        self.spec, face = read(argument, options, max_frames)
        self.num_matches = num_matches
        self._options, self._choices = dict(options), face.kind == CHOICE
        self._pool = Pool(
            argument, options, matches=num_matches, workers=workers, step_seconds=step_seconds
        )
        self._closed = False
        self._allocate(num_matches)
        self._finalizer = weakref.finalize(self, self._pool.close)

    def _allocate(self, n: int) -> None:
        spec = self.spec
        self.observations_N2O = np.zeros((n, 2, spec.observation_size), np.float32)
        self.final_observations_N2O = np.zeros((n, 2, spec.observation_size), np.float32)
        self.reward_terms_N2K = np.zeros((n, 2, len(spec.reward_terms)), np.float32)
        self.ended_N = np.zeros(n, np.bool_)
        self.outcomes_N = np.full(n, 0.5, np.float32)
        self.frames_N = np.zeros(n, np.int32)
        self.final_frames_N = np.zeros(n, np.int32)
        self.stats_N2S = np.zeros((n, 2, len(spec.stats)), np.float32)
        self.final_stats_N2S = np.zeros_like(self.stats_N2S)
        self.bots_N2 = np.full((n, 2), EXTERNAL, np.int8)
        self.seeds_N, self.next_seeds_N = np.zeros(n, np.uint64), np.zeros(n, np.uint64)
        self.totals_N2 = np.zeros((n, 2))
        self._acting_N2 = np.zeros((n, 2), np.bool_)
        self._legal_N2A = np.zeros((n, 2, spec.action_size), np.bool_)
        self._legal_N2A[:, :, 0] = True
        self.legal_N2A = self._legal_N2A if self._choices else None
        self._actions_N2A = np.zeros((n, 2, spec.action_size), np.uint8)
        self._played: list[list[NDArray[np.uint8]]] = [[] for _ in range(n)]
        self._lost = set(range(n))  # rows that have no environment in their match
        self._unbegun = set(range(n))
        self._broken: dict[int, str] = {}  # rows whose match failed; their next step says why
        for views_N2O in (self.observations_N2O, self.final_observations_N2O):
            views_N2O[:, :, :2] = np.eye(2)
            if self._choices:
                views_N2O[:, :, 3] = 1.0

    @property
    def worker_pids(self) -> list[int]:
        """The process ids of the running workers."""
        return self._pool.pids

    def reset(self, seeds: NDArray[np.uint64], where: NDArray[np.bool_] | None = None) -> None:
        """Begins a match from `seeds[n]` in every row, or in the rows where `where`.

        `next_seeds_N` of these rows becomes seed + 1. Raises `Unavailable` when no process can be
        started.
        """
        seeds_N, n = np.ascontiguousarray(seeds, np.uint64), self.num_matches
        where_N = np.ones(n, np.bool_) if where is None else np.array(where, np.bool_)
        if seeds_N.shape != (n,) or where_N.shape != (n,):
            raise InvalidInput(
                f"seeds {seeds_N.shape} and where {where_N.shape} must both have shape ({n},)"
            )
        self.seeds_N[where_N] = seeds_N[where_N]
        self.next_seeds_N[where_N] = seeds_N[where_N] + np.uint64(1)
        where_N[list(self._unbegun)] = True
        self._closed = False
        self._pool.start()
        self._begin(np.flatnonzero(where_N).tolist())

    def _begin(self, rows: Iterable[int]) -> None:
        """Begins the matches of `seeds_N` in `rows`; those that can't begin are broken."""
        tasks = {n: Task(row=n, seed=int(self.seeds_N[n])) for n in rows}
        for n in tasks:
            self._broken.pop(n, None)
            self._unbegun.discard(n)
            self._played[n] = []
        self.frames_N[list(tasks)] = 0
        self.stats_N2S[list(tasks)] = 0.0
        self.totals_N2[list(tasks)] = 0.0
        done, failed = self._run(tasks)
        for n, seen in done.items():
            self._show(n, seen)
        for n, reason in failed.items():
            self._broken[n] = reason
            own = self.spec.own_size
            nothing = np.zeros_like(self.observations_N2O[n, :, own:])
            self._show(n, Done(row=n, views_2V=nothing))

    def _run(self, tasks: Mapping[int, Task]) -> tuple[dict[int, Done], dict[int, str]]:
        """Runs each task until it is done or failed; replays matches that were lost before."""
        done: dict[int, Done] = {}
        failed: dict[int, str] = {}
        for _ in range(self.num_matches + _MOST_RESTARTS):  # each row may fail with its worker
            todo = [task for n, task in tasks.items() if n not in done and n not in failed]
            if not todo:
                return done, failed
            now, wrong, lost = self._pool.run([self._with_replay(task) for task in todo])
            done.update(now)
            failed.update(wrong)
            self._lost = (self._lost - now.keys()) | wrong.keys() | lost
        raise Unavailable("the environments' processes end again and again: see what they print")

    def _with_replay(self, task: Task) -> Task:
        n = task.row
        if task.seed is not None or n not in self._lost:
            return task
        views_2V = self.observations_N2O[n, :, self.spec.own_size :]
        seed = int(self.seeds_N[n])
        return replace(task, seed=seed, played=self._played[n], expected_2V=views_2V)

    def _show(self, n: int, seen: Done) -> None:
        """Writes what the seats of row `n` see and may do."""
        own = self.spec.own_size
        if seen.legal_2A is None:
            self._legal_N2A[n] = False
            self._legal_N2A[n, :, 0] = True
        else:
            self._legal_N2A[n] = seen.legal_2A
        self._acting_N2[n] = seen.acting_2
        self.observations_N2O[n, :, own:] = seen.views_2V
        self.observations_N2O[n, :, 2] = seen.acting_2
        if self._choices:
            self.observations_N2O[n, :, 3:own] = self._legal_N2A[n]

    def step(self, actions_N2A: NDArray[np.uint8], frames: int = 1) -> None:
        """Plays `frames` frames; in games of choices exactly 1.

        An illegal choice ends the match as a loss of the seat that made it. Raises `InvalidInput`
        for a wrong shape or number of frames, and for a row without a choice where no bot plays.
        """
        actions_N2A = np.ascontiguousarray(actions_N2A, np.uint8)
        self._check(actions_N2A, frames)
        if self._closed:
            raise InvalidInput(
                "the game was closed: reset it, or load a saved state, before the next step"
            )
        if self._unbegun:  # rows that no caller uses are stepped before a match is begun there
            self.reset(self.seeds_N, np.zeros(self.num_matches, np.bool_))
            actions_N2A = self.idle_actions()
        self.reward_terms_N2K[:] = 0.0
        self.ended_N[:] = False
        self.failures = {}
        for _ in range(frames):
            self._play_frame(actions_N2A)

    def _check(self, actions_N2A: NDArray[np.uint8], frames: int) -> None:
        wanted = (self.num_matches, 2, self.spec.action_size)
        if actions_N2A.shape != wanted:
            raise InvalidInput(f"actions have shape {actions_N2A.shape}: {wanted} is wanted")
        if frames < 1:
            raise InvalidInput(f"{frames} frames can't be played: ask for at least 1")
        if not self._choices:
            return
        if frames > 1:
            raise InvalidInput(
                f"{frames} frames can't be played at once: in {self.spec.name} one is a choice"
            )
        wrong_N2 = (self.bots_N2 == EXTERNAL) & ((actions_N2A != 0).sum(-1) != 1)
        if wrong_N2.any():
            n, seat = np.argwhere(wrong_N2)[0].tolist()
            names = np.array(self.spec.action_names)
            chosen = ", ".join(names[actions_N2A[n, seat] != 0]) or "nothing"
            raise InvalidInput(
                f"seat {seat} of match {n} chose {chosen}: exactly one choice is wanted"
            )

    def _play_frame(self, actions_N2A: NDArray[np.uint8]) -> None:
        """One frame of the matches that have not ended in this step; a row that ends begins its next."""
        self._actions_N2A = self._with_bots(actions_N2A)
        todo = np.flatnonzero(~self.ended_N).tolist()
        failed = {n: self._broken.pop(n) for n in todo if n in self._broken}
        tasks = {}
        for n in todo:
            if n not in failed:
                is_last = bool(self.frames_N[n] + 1 >= self.spec.max_frames)
                tasks[n] = Task(row=n, actions_2A=self._actions_N2A[n].copy(), is_last=is_last)
        done, raised = self._run(tasks)
        failed.update(raised)
        for n in failed:
            self._end(n, outcome=0.5)
            self.final_observations_N2O[n] = self.observations_N2O[n]
        for n, result in done.items():
            self._count(n, result)
        self.failures = {**self.failures, **failed}
        ended = [*failed, *(n for n, result in done.items() if result.ended)]
        if ended:
            self.seeds_N[ended] = self.next_seeds_N[ended]
            self.next_seeds_N[ended] += np.uint64(1)
            self._begin(ended)

    def _with_bots(self, actions_N2A: NDArray[np.uint8]) -> NDArray[np.uint8]:
        bots_N2 = self.bots_N2 != EXTERNAL
        chosen_N2A = actions_N2A.copy()
        if bots_N2.any():
            draws_N2 = draws(self.seeds_N, self.frames_N)
            random_N2A = (
                random_choices(draws_N2, self._legal_N2A)
                if self._choices
                else random_keys(draws_N2, self.spec.action_size)
            )
            chosen_N2A[bots_N2] = random_N2A[bots_N2]
        return chosen_N2A

    def _count(self, n: int, result: Done) -> None:
        """Rewards and stats of a frame of row `n`, and what it shows; or the match's end."""
        self._played[n].append(self._actions_N2A[n].copy())
        self.frames_N[n] += 1
        self.reward_terms_N2K[n, :, 0] += result.rewards_2
        self.totals_N2[n] += result.rewards_2
        stats_2S = self.stats_N2S[n]
        stats_2S[:, _MOVES] += self._acting_N2[n]
        stats_2S[:, _ILLEGAL] += result.illegal_2
        stats_2S[:, _REWARD] += result.rewards_2
        if not result.ended:
            self._show(n, result)
            return
        self.final_observations_N2O[n, :, self.spec.own_size :] = result.views_2V
        lead = float(self.totals_N2[n, 0] - self.totals_N2[n, 1])
        if any(result.illegal_2):
            lead = float(result.illegal_2[1]) - float(result.illegal_2[0])
        self._end(n, outcome=0.5 + 0.5 * float(np.sign(lead)))

    def _end(self, n: int, *, outcome: float) -> None:
        self.ended_N[n] = True
        self.outcomes_N[n] = outcome
        self.reward_terms_N2K[n, :, 1] = 2.0 * outcome - 1.0, 1.0 - 2.0 * outcome
        self.final_frames_N[n] = self.frames_N[n]
        self.final_stats_N2S[n] = self.stats_N2S[n]

    def save(self) -> dict[str, NDArray]:
        """A copy of the whole state: the arrays, and every match as its seed and actions."""
        state: dict[str, NDArray] = {name: getattr(self, name).copy() for name in _SAVED}
        played = [action_2A for row in self._played for action_2A in row]
        state["played"] = np.packbits(np.array(played, np.uint8))
        state["broken_N"] = np.array([n in self._broken for n in range(self.num_matches)])
        state["layout"] = self._layout()
        return state

    def load(self, state: dict[str, NDArray]) -> None:
        """Replays the saved matches up to where they were saved, and continues from there.

        Raises `DataCorrupt` when the arrays don't fit (then nothing has changed), or when a replay
        doesn't come to what was saved: the environment doesn't repeat a match by its seed, and
        `reset` is needed. A state of another environment or time limit is a `VersionMismatch`.
        """
        if not np.array_equal(state.get("layout", np.zeros(0, np.uint8)), self._layout()):
            raise VersionMismatch(
                "the saved matches are of another environment, version or time limit: "
                "begin new ones"
            )
        for name in _SAVED:
            _check_array(name, state.get(name), getattr(self, name))
        _check_array("broken_N", state.get("broken_N"), np.zeros(self.num_matches, np.bool_))
        frames = int(state["frames_N"].sum())
        bits = frames * 2 * self.spec.action_size
        _check_array("played", state.get("played"), np.zeros(-(-bits // 8), np.uint8))
        for name in _SAVED:
            getattr(self, name)[...] = state[name]
        actions_T2A = np.unpackbits(state["played"], count=bits).reshape(
            frames, 2, self.spec.action_size
        )
        ends = np.cumsum(self.frames_N)[:-1]
        self._played = [list(rows_T2A) for rows_T2A in np.split(actions_T2A, ends)]
        broken = np.flatnonzero(state["broken_N"]).tolist()
        self._broken = dict.fromkeys(broken, "it had failed when it was saved")
        self.failures, self._closed, self._unbegun = {}, False, set()
        self._lost = set(range(self.num_matches))
        self._pool.start()
        done, failed = self._run(
            {n: Task(row=n) for n in range(self.num_matches) if n not in self._broken}
        )
        for n, seen in done.items():
            self._show(n, seen)
        for n, reason in failed.items():
            self._broken[n] = reason
        for n, reason in failed.items():
            raise DataCorrupt(f"saved match {n} can't be continued: {reason}")

    def _layout(self) -> NDArray[np.uint8]:
        """What a saved state must share with this game to be continued."""
        options = json.dumps(self._options, sort_keys=True, default=str)
        text = f"{self.spec.name} {self.spec.version} {self.spec.max_frames} {options}"
        return np.frombuffer(text.encode(), np.uint8).copy()

    def played_N2A(self) -> NDArray[np.uint8]:
        """What both seats did in the last frame played, [N, 2, A], bots' too."""
        return self._actions_N2A.copy()

    def frame(self, match: int) -> dict:
        """Match `match` as text: the environment's own (ansi), or what the seat to act observes."""
        text = self._broken.get(match, "")
        if not text and self._pool.pids and match not in self._unbegun:
            done, _ = self._run({match: Task(row=match, draws=True)})
            text = done[match].text if match in done else ""
        return {
            "game": self.spec.name,
            "frame": int(self.frames_N[match]),
            "max_frames": self.spec.max_frames,
            "seats": [
                {"acts": bool(self._acting_N2[match, s]), "payoff": float(self.totals_N2[match, s])}
                for s in (0, 1)
            ],
            "text": text,
        }

    def close(self) -> None:
        """Ends the worker processes; `reset` and `load` start new ones. Safe to call again."""
        self._closed = True
        self._lost = self._unbegun = set(range(self.num_matches))
        self._pool.close()


def _check_array(name: str, value: Any, target: NDArray) -> None:
    if value is None or value.shape != target.shape or value.dtype != target.dtype:
        found = "missing" if value is None else f"{value.dtype}{value.shape}"
        raise DataCorrupt(
            f"saved array {name!r} is {found}, {target.dtype}{target.shape} is wanted: "
            "the state was saved with another number of matches or is damaged"
        )


def draws(seeds_N: NDArray[np.uint64], frames_N: NDArray[np.int32]) -> NDArray[np.uint64]:
    """64 random bits for each seat in its frame, [N, 2], hashed from the match's seed.

    So a match draws the same whatever it is played with, and a saved match holds no generator.
    """
    moments_N2 = 2 * frames_N.astype(np.uint64)[:, None] + np.array([[1, 2]], np.uint64)
    return mixed(mixed(seeds_N)[:, None] + moments_N2 * _GOLDEN)


def random_choices(draws_N2: NDArray[np.uint64], legal_N2A: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """One of the legal choices, each with equal probability; one-hot."""
    places_N2A = legal_N2A.cumsum(axis=2)
    chosen_N2 = draws_N2 % places_N2A[:, :, -1].astype(np.uint64)
    return (legal_N2A & (places_N2A == chosen_N2[:, :, None].astype(np.int64) + 1)).astype(np.uint8)


def random_keys(draws_N2: NDArray[np.uint64], size: int) -> NDArray[np.uint8]:
    """Each of `size` keys down with probability 1/2."""
    numbers_A = np.arange(1, size + 1, dtype=np.uint64) * _GOLDEN
    return (mixed(draws_N2[:, :, None] + numbers_A) >> np.uint64(63)).astype(np.uint8)
