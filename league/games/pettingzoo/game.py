"""The batched game over PettingZoo environments.

A match is its seed and what was done in it: a saved match is played again from these. Shape
suffixes: N matches, R rows, 2 seats, A action width, O observation width, V width of what the
environment shows, K reward terms, S stats.
"""

from __future__ import annotations

import json
import sys
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from league.errors import ConfigError, DataCorrupt, InvalidInput
from league.games.base import CHOICE, EXTERNAL, BatchedGame, BotSpec, GameSpec, check_saved
from league.games.choice_game import mixed
from league.games.pettingzoo.environment import Face, build
from league.games.pettingzoo.workers import Pool, seen_type

MAX_FRAMES = 1000
STATS = ("illegal_moves", "moves", "reward")
_ILLEGAL, _MOVES, _REWARD = range(3)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


class PettingZooGame(BatchedGame):
    """N matches of one environment, played in worker processes that `reset` and `load` start.

    A seat's own part is which seat it is (2), whether it is to act (1) and its legal choices (A);
    the rest is what the environment shows it.

    Args:
        num_matches: matches that step together.
        argument: `MODULE` or `MODULE:FACTORY`. A module's `parallel_env` makes the environment,
            else its `env`, else its `raw_env`, with `options`.
        max_frames: steps after which a match ends with its rewards so far; None is 1000.
        step_seconds: longest time that one call of the environment may take before its match fails.
        workers: processes that hold the environments; 0 chooses by matches and processor cores.

    Raises:
        ConfigError: there is no such environment, it isn't one of two players, or the league
            doesn't support its spaces.
    """

    def __init__(
        self,
        num_matches: int,
        *,
        argument: str = "",
        max_frames: int | None = None,
        step_seconds: float = 10.0,
        workers: int = 0,
        **options: Any,
    ) -> None:
        if not argument:
            raise ConfigError(
                "game 'pettingzoo' needs an environment: name it as pettingzoo:MODULE"
            )
        if step_seconds <= 0 or workers < 0:
            raise ConfigError(
                f"step_seconds = {step_seconds}, workers = {workers}: take seconds above 0 and "
                "workers from 0"
            )
        env = build(argument, options)
        try:
            face = Face(env, argument)
            spec = _spec(argument, face, dict(getattr(env, "metadata", {})), max_frames)
        finally:
            env.close()
        super().__init__(spec, num_matches)
        n, self._options = num_matches, options
        self._pool = Pool(argument, options, matches=n, workers=workers, step_seconds=step_seconds)
        weakref.finalize(self, self._pool.close)
        self.seeds_N = np.zeros(n, np.uint64)
        self.totals_N2 = np.zeros((n, 2))
        self._actions_N2A = np.zeros((n, 2, spec.action_size), np.uint8)
        self._played: list[list[NDArray[np.uint8]]] = [[] for _ in range(n)]
        self._seen_N = np.zeros(n, seen_type(face))  # what the workers answered last
        self._seen_N["legal"][:, :, 0] = True
        self._nothing = self._seen_N[0].copy()
        self._broken: dict[int, str] = {}  # rows whose match failed; their next step says why
        self.observations_N2O[:, :, :2] = np.eye(2)
        self._show(np.arange(n))
        self.final_observations_N2O[:] = self.observations_N2O  # no seat acts in it

    @property
    def worker_pids(self) -> list[int]:
        """The process ids of the running workers."""
        return self._pool.pids

    def reset(self, seeds: NDArray[np.uint64], where: NDArray[np.bool_] | None = None) -> None:
        """Begins a match from `seeds[n]` in every row, or in the rows where `where`.

        `next_seeds_N` of these rows becomes seed + 1. Raises `Unavailable` when no process can be
        started.
        """
        seeds_N, where_N = self.checked_seeds(seeds, where)
        self.seeds_N[where_N] = seeds_N[where_N]
        self.next_seeds_N[where_N] = seeds_N[where_N] + np.uint64(1)
        if not self._pool.pids:  # every row has a match from the first reset on
            where_N[:] = True
            self._pool.start()
        self._begin(np.flatnonzero(where_N))

    def _begin(self, rows: NDArray[np.intp]) -> None:
        """Begins the matches of `seeds_N` in `rows`; those that can't begin are broken."""
        self.frames_N[rows], self.stats_N2S[rows], self.totals_N2[rows] = 0, 0.0, 0.0
        for n in rows.tolist():
            self._broken.pop(n, None)
            self._played[n] = []
        self._broken |= self._have_begun(rows.tolist())
        self._seen_N[[n for n in rows.tolist() if n in self._broken]] = self._nothing
        self._show(rows)

    def _have_begun(self, rows: list[int]) -> dict[int, str]:
        """Has the workers begin matches and play what was played in them; why rows failed."""
        return self._run(
            "begin", rows, lambda own: (self.seeds_N[own], [self._played[n] for n in own])
        )

    def _run(
        self, verb: str, rows: list[int], arguments: Callable[[list[int]], tuple[Any, ...]]
    ) -> dict[int, str]:
        """Has the workers do `verb`; why rows failed, also those of a worker that died which were
        not asked for.
        """
        answers, failed = self._pool.run(verb, rows, arguments)
        for own, (seen_R, wrong) in answers:
            self._seen_N[own] = seen_R
            failed |= wrong
        return failed

    def _show(self, rows: NDArray[np.intp]) -> None:
        """Writes what the seats of `rows` see and may do."""
        seen_R, own = self._seen_N[rows], self.spec.own_size
        self.observations_N2O[rows, :, 2] = seen_R["acting"]
        self.observations_N2O[rows, :, own:] = seen_R["views"]
        if self.legal_N2A is not None:
            self.legal_N2A[rows] = self.observations_N2O[rows, :, 3:own] = seen_R["legal"]

    def step(self, actions_N2A: NDArray[np.uint8], frames: int = 1) -> None:
        """Plays `frames` frames; in games of choices exactly 1.

        An illegal choice ends the match as a loss of the seat that made it. Raises `InvalidInput`
        for a wrong shape or number of frames, and for a row without a choice where no bot plays.
        """
        actions_N2A = self.checked_actions(actions_N2A, frames)
        if not self._pool.pids:
            raise InvalidInput(
                "no match was begun, or the game was closed: reset it, or load a saved state"
            )
        self.reward_terms_N2K[:] = 0.0
        self.ended_N[:] = False
        self.failures = {}
        for _ in range(frames):
            self._play_frame(actions_N2A)

    def _play_frame(self, actions_N2A: NDArray[np.uint8]) -> None:
        """One frame of the matches that have not ended in this step; a row that ends begins its
        next one.
        """
        self._actions_N2A = self._with_bots(actions_N2A)
        todo = np.flatnonzero(~self.ended_N).tolist()
        failed = {n: self._broken.pop(n) for n in todo if n in self._broken}
        going = [n for n in todo if n not in failed]
        is_last_N = self.frames_N + 1 >= self.spec.max_frames
        lost = self._run("step", going, lambda own: (self._actions_N2A[own], is_last_N[own]))
        failed |= {n: lost.pop(n) for n in going if n in lost}
        self._broken |= lost  # their matches began in this step, in a process that has died since
        self.failures = {**self.failures, **failed}
        played = np.array([n for n in todo if n not in failed], np.intp)
        ended = np.concatenate([np.array(list(failed), np.intp), self._count(played)])
        if len(ended):
            self._end(ended)
            self.seeds_N[ended] = self.next_seeds_N[ended]
            self.next_seeds_N[ended] += np.uint64(1)
            self._begin(ended)

    def _with_bots(self, actions_N2A: NDArray[np.uint8]) -> NDArray[np.uint8]:
        bots_N2, chosen_N2A = self.bots_N2 != EXTERNAL, actions_N2A.copy()
        if bots_N2.any():
            draws_N2 = draws(self.seeds_N, self.frames_N)
            random_N2A = (
                random_keys(draws_N2, self.spec.action_size)
                if self.legal_N2A is None
                else random_choices(draws_N2, self.legal_N2A)
            )
            chosen_N2A[bots_N2] = random_N2A[bots_N2]
        return chosen_N2A

    def _count(self, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        """Rewards and stats of a frame, and what it shows; returns the rows whose match ended."""
        for n in rows.tolist():
            self._played[n].append(self._actions_N2A[n])
        seen_R = self._seen_N[rows]
        acted_R2 = self.observations_N2O[rows, :, 2]
        self.frames_N[rows] += 1
        self.reward_terms_N2K[rows, :, 0] += seen_R["rewards"]
        self.totals_N2[rows] += seen_R["rewards"]
        self.stats_N2S[rows, :, _MOVES] += acted_R2
        self.stats_N2S[rows, :, _ILLEGAL] += seen_R["illegal"]
        self.stats_N2S[rows, :, _REWARD] += seen_R["rewards"]
        self._show(rows[~seen_R["ended"]])
        return rows[seen_R["ended"]]

    def _end(self, rows: NDArray[np.intp]) -> None:
        """Ends the matches in `rows`; a failed one counts as a draw and is never rated."""
        own, seen_R = self.spec.own_size, self._seen_N[rows]
        lead_R = np.sign(self.totals_N2[rows, 0] - self.totals_N2[rows, 1])
        illegal_R2 = seen_R["illegal"].astype(np.float64)
        lead_R = np.where(illegal_R2.any(1), illegal_R2[:, 1] - illegal_R2[:, 0], lead_R)
        self.final_observations_N2O[rows, :, own:] = seen_R["views"]
        failed = [n for n in rows.tolist() if n in self.failures]
        lead_R[np.isin(rows, failed)] = 0.0
        self.final_observations_N2O[failed] = self.observations_N2O[failed]
        self.ended_N[rows] = True
        self.outcomes_N[rows] = 0.5 + 0.5 * lead_R
        self.reward_terms_N2K[rows, :, 1] = np.stack([lead_R, 0.0 - lead_R], 1)
        self.final_frames_N[rows] = self.frames_N[rows]
        self.final_stats_N2S[rows] = self.stats_N2S[rows]

    def own_state(self) -> dict[str, NDArray]:
        """The seeds, and the rewards so far."""
        return {"seeds_N": self.seeds_N, "totals_N2": self.totals_N2}

    def rules_text(self) -> str:
        """With the environment's options."""
        return f"{super().rules_text()} {json.dumps(self._options, sort_keys=True, default=str)}"

    def save(self) -> dict[str, NDArray]:
        """A copy of the whole state: the arrays, and every match as its seed and actions."""
        broken_N = np.isin(np.arange(self.num_matches), list(self._broken))
        played = [action_2A for row in self._played for action_2A in row]
        bits = np.packbits(np.stack(played)) if played else np.zeros(0, np.uint8)
        return super().save() | {"played": bits, "broken_N": broken_N}

    def load(self, state: dict[str, NDArray]) -> None:
        """Continues from what `save` returned: plays every match again up to where it was.

        Raises `DataCorrupt` when it does not fit, or when a match goes another way.
        """
        check_saved(state, "broken_N", np.zeros(self.num_matches, np.bool_))
        check_saved(state, "frames_N", self.frames_N)
        frames, size = int(state["frames_N"].sum()), self.spec.action_size
        check_saved(state, "played", np.zeros(-(-frames * 2 * size // 8), np.uint8))
        super().load(state)
        actions_T2A = np.unpackbits(state["played"], count=frames * 2 * size)
        rows = np.split(actions_T2A.reshape(frames, 2, size), np.cumsum(self.frames_N)[:-1])
        self._played = [list(row_T2A) for row_T2A in rows]
        broken = np.flatnonzero(state["broken_N"]).tolist()
        self._broken = dict.fromkeys(broken, "it had failed when it was saved")
        self.failures = {}
        self._pool.start()
        good = [n for n in range(self.num_matches) if n not in self._broken]
        failed = self._have_begun(good)
        for n in good:
            seen_2V = self.observations_N2O[n, :, self.spec.own_size :]
            if n in failed or not np.array_equal(self._seen_N["views"][n], seen_2V):
                otherwise = "the environment doesn't repeat a match by its seed"
                raise DataCorrupt(f"saved match {n} can't be continued: {failed.get(n, otherwise)}")

    def played_N2A(self) -> NDArray[np.uint8]:
        """What both seats did in the last frame played, [N, 2, A], bots' too."""
        return self._actions_N2A.copy()

    def frame(self, match: int) -> dict[str, Any]:
        """Match `match` as text: the environment's own (ansi), or what the seat to act observes."""
        text = self._broken.get(match, "")
        if not text and self._pool.pids:
            answers, failed = self._pool.run("text", [match], lambda own: ())
            self._broken |= failed
            text = answers[0][1] if answers else failed[match]
        acting_2 = self.observations_N2O[match, :, 2]
        return {
            "game": self.spec.name,
            "frame": int(self.frames_N[match]),
            "max_frames": self.spec.max_frames,
            "seats": [
                {"acts": bool(acts), "payoff": float(paid)}
                for acts, paid in zip(acting_2, self.totals_N2[match], strict=True)
            ],
            "text": text,
        }

    def close(self) -> None:
        """Ends the worker processes; `reset` and `load` start new ones. Safe to call again."""
        self._pool.close()


def _spec(argument: str, face: Face, metadata: dict[str, Any], max_frames: int | None) -> GameSpec:
    package = sys.modules.get("pettingzoo")
    # which seat (2), whether it is to act (1), and its legal choices
    own_size = 3 + (face.action_size if face.kind == CHOICE else 0)
    noun = "choice" if face.kind == CHOICE else "key"
    random = BotSpec(name="random", summary="makes any legal choice with equal probability")
    return GameSpec(
        name=f"pettingzoo:{argument}",
        version=f"{getattr(package, '__version__', '0')} {metadata.get('name', argument)}",
        frames_per_second=max(1, round(float(metadata.get("render_fps") or 1))),
        observation_size=own_size + face.view_size,
        own_size=own_size,
        action_size=face.action_size,
        action_names=tuple(f"{noun} {n}" for n in range(face.action_size)),
        reward_terms=("reward", "win"),
        stats=STATS,
        bots=(random,),
        max_frames=MAX_FRAMES if max_frames is None else max_frames,
        action_kind=face.kind,
        reward_presets={"dense": {"reward": 1.0}, "sparse": {"win": 1.0}},
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
