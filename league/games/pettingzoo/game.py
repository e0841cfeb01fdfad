"""Runs the batched game over PettingZoo environments.

Shape suffixes: N matches, R rows, 2 seats, A action width, O observation width, V width of a
seat's view, K reward terms, S stats.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from league.errors import ConfigError
from league.games.base import CHOICE, EXTERNAL, BotSpec, GameSpec
from league.games.choice_game import mixed
from league.games.hosted import HostedGame, Pool, check_options, inherited
from league.games.pettingzoo.environment import MOST_NAMED, Face, build
from league.games.pettingzoo.workers import seen_type
from league.games.registry import users_path

MAX_FRAMES = 1000
STATS = ("illegal_moves", "moves", "reward")
_ILLEGAL, _MOVES, _REWARD = range(3)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


class PettingZooGame(HostedGame):
    """Plays N matches of an environment.

    The observation of a seat has two parts (`GameSpec`). The seat's own part shows which seat it is
    (2 numbers), whether it has to act (1) and its legal choices (A). The rest is the observation
    that the environment gives to the seat. A seat that makes an illegal choice loses the match at
    once.

    Args:
        num_matches: matches that step together.
        argument: `MODULE` or `MODULE:FACTORY`. Without a factory the module's `parallel_env`, `env`
            or `raw_env` makes the environment, in this order.
        max_frames: steps after which a match ends with its rewards so far. None is 1000.
        step_seconds: longest time that one call of the environment may take before its match fails.
        workers: processes that hold the environments. 0 chooses by matches and processor cores.
        options: the environment's options.

    Raises:
        ConfigError: there is no such environment, it doesn't have two players, or the league
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
        check_options(step_seconds, workers)
        env = build(argument, options)
        try:
            face = Face(env, argument)
            spec = _spec(argument, face, dict(getattr(env, "metadata", {})), max_frames)
        finally:
            env.close()
        start = {"argument": argument, "options": options, "step_seconds": step_seconds}
        pool = Pool(
            [sys.executable, "-P", "-m", "league.games.pettingzoo.workers", json.dumps(start)],
            argument,
            matches=num_matches,
            workers=workers,
            step_seconds=step_seconds,
            env=inherited(users_path()),
            stdout=2,  # environments print, and our standard output is for answers
        )
        super().__init__(spec, num_matches, pool, seen_type(face))
        self._options = options
        self.totals_N2 = np.zeros((num_matches, 2))
        self._seen_N["legal"][:, :, 0] = True
        self._nothing = self._seen_N[0].copy()
        self.observations_N2O[:, :, :2] = np.eye(2)
        self.show(np.arange(num_matches))
        self.final_observations_N2O[:] = self.observations_N2O  # no seat acts in it

    def begin(self, rows: NDArray[np.intp]) -> None:
        """Begins the matches of `seeds_N` in `rows`. A match that can't begin is broken."""
        self.totals_N2[rows] = 0.0
        super().begin(rows)

    def show(self, rows: NDArray[np.intp]) -> None:
        """Writes the observations and legal choices of `rows`."""
        seen_R, own_size = self._seen_N[rows], self.spec.own_size
        self.observations_N2O[rows, :, 2] = seen_R["acting"]
        self.observations_N2O[rows, :, own_size:] = seen_R["views"]
        if self.legal_N2A is not None:
            self.legal_N2A[rows] = self.observations_N2O[rows, :, 3:own_size] = seen_R["legal"]

    def play_frame(self, actions_N2A: NDArray[np.uint8]) -> None:
        """Plays a frame, and chooses for bots."""
        bots_N2, chosen_N2A = self.bots_N2 != EXTERNAL, actions_N2A.copy()
        if bots_N2.any():
            draws_N2 = draws(self.seeds_N, self.frames_N)
            random_N2A = (
                random_keys(draws_N2, self.spec.action_size)
                if self.legal_N2A is None
                else random_choices(draws_N2, self.legal_N2A)
            )
            chosen_N2A[bots_N2] = random_N2A[bots_N2]
        super().play_frame(chosen_N2A)

    def count(self, rows: NDArray[np.intp]) -> None:
        """Adds rewards and stats of a frame."""
        seen_R = self._seen_N[rows]
        self.reward_terms_N2K[rows, :, 0] += seen_R["rewards"]
        self.totals_N2[rows] += seen_R["rewards"]
        self.stats_N2S[rows, :, _MOVES] += self.observations_N2O[rows, :, 2]  # who acted
        self.stats_N2S[rows, :, _ILLEGAL] += seen_R["illegal"]
        self.stats_N2S[rows, :, _REWARD] += seen_R["rewards"]

    def end(self, rows: NDArray[np.intp]) -> NDArray[np.float64]:
        """Returns the lead by earned rewards. An illegal choice decides against its seat."""
        seen_R = self._seen_N[rows]
        self.final_observations_N2O[rows, :, self.spec.own_size :] = seen_R["views"]
        return seen_R["lead"].astype(np.float64)

    def own_state(self) -> dict[str, NDArray]:
        """Returns the seeds, and the rewards so far."""
        return super().own_state() | {"totals_N2": self.totals_N2}

    def rules_text(self) -> str:
        """Adds the environment's options."""
        return f"{super().rules_text()} {json.dumps(self._options, sort_keys=True, default=str)}"

    def clipped(self) -> Counter[str]:
        """Counts observed values outside the bounds of their spaces since the last call."""
        total: Counter[str] = Counter()
        for counts in self.ask_all("clipped", range(self.num_matches)):
            total.update(counts)
        return Counter(dict(total.most_common(MOST_NAMED)))

    def frame(self, match: int) -> dict[str, Any]:
        """Returns a match as text: the environment's, or the observation of the seat to act."""
        text = self._broken.get(match, "")
        if not text and self._pool.pids:
            text = self.ask("text", match)
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


def _spec(argument: str, face: Face, metadata: dict[str, Any], max_frames: int | None) -> GameSpec:
    package = sys.modules.get("pettingzoo")
    # the seat (2), whether it is to act (1), and its legal choices
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
    """Hashes 64 random bits for each seat from the match's seed and frame.

    So the draws of a match don't depend on other matches, and a saved match needs no random state.

    Args:
        seeds_N: uint64, the matches' seeds.
        frames_N: int32, the frames played.

    Returns:
        uint64[N, 2].
    """
    moments_N2 = 2 * frames_N.astype(np.uint64)[:, None] + np.array([[1, 2]], np.uint64)
    return mixed(mixed(seeds_N)[:, None] + moments_N2 * _GOLDEN)


def random_choices(draws_N2: NDArray[np.uint64], legal_N2A: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """Chooses among the legal choices with equal probability.

    Args:
        draws_N2: uint64, random bits.
        legal_N2A: bool, the legal choices.

    Returns:
        uint8[N, 2, A], one-hot.
    """
    places_N2A = legal_N2A.cumsum(axis=2)
    chosen_N2 = draws_N2 % places_N2A[:, :, -1].astype(np.uint64)
    return (legal_N2A & (places_N2A == chosen_N2[:, :, None].astype(np.int64) + 1)).astype(np.uint8)


def random_keys(draws_N2: NDArray[np.uint64], size: int) -> NDArray[np.uint8]:
    """Presses each key with probability 1/2.

    Args:
        draws_N2: uint64, random bits.
        size: A, the number of keys.

    Returns:
        uint8[N, 2, A].
    """
    numbers_A = np.arange(1, size + 1, dtype=np.uint64) * _GOLDEN
    return (mixed(draws_N2[:, :, None] + numbers_A) >> np.uint64(63)).astype(np.uint8)
