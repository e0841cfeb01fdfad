"""Runs the batched game over PettingZoo environments.

Shape suffixes: N matches, R rows, 2 seats, S stats.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from league.errors import ConfigError
from league.games.base import CHOICE, GameSpec
from league.games.hosted import Pool, check_options, inherited
from league.games.pettingzoo.environment import Face, build
from league.games.registry import users_path
from league.games.seen import MOST_NAMED, WIN, SeenGame, seen_spec

MAX_FRAMES = 1000
STATS = ("illegal_moves", "moves", "reward")
_ILLEGAL = 0


class PettingZooGame(SeenGame):
    """Plays N matches of an environment. A seat's view is its observation. A seat that makes an
    illegal choice loses the match at once.

    Args:
        num_matches: matches that step together.
        argument: `MODULE` or `MODULE:FACTORY`. Without a factory, the module's `parallel_env` makes
            the environment, or else its `env`, or else its `raw_env`.
        max_frames: steps after which a match ends with its rewards so far. None means 1000.
        step_seconds: longest time for a call of an environment. If a call takes longer, its process
            is ended, and the matches of this process fail.
        workers: number of processes. 0 derives it from the numbers of matches and processor cores.
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
            stdout=2,  # environments may print, so keep them off our standard output
        )
        super().__init__(spec, num_matches, pool)
        self._options = options

    def count(self, rows: NDArray[np.intp]) -> None:
        """Adds the rewards and stats of the last frame."""
        super().count(rows)
        self.stats_N2S[rows, :, _ILLEGAL] += self._seen_N["illegal"][rows]

    def rules_text(self) -> str:
        """Returns the text of the rules, with the environment's options."""
        return f"{super().rules_text()} {json.dumps(self._options, sort_keys=True, default=str)}"

    def clipped(self) -> Counter[str]:
        """Counts observed values outside the bounds of their spaces since the last call."""
        total: Counter[str] = Counter()
        for counts in self.ask_all("clipped", range(self.num_matches)):
            total.update(counts)
        return Counter(dict(total.most_common(MOST_NAMED)))


def _spec(argument: str, face: Face, metadata: dict[str, Any], max_frames: int | None) -> GameSpec:
    package = sys.modules.get("pettingzoo")
    noun = "choice" if face.kind == CHOICE else "key"
    return seen_spec(
        name=f"pettingzoo:{argument}",
        version=f"{getattr(package, '__version__', '0')} {metadata.get('name', argument)}",
        frames_per_second=max(1, round(float(metadata.get("render_fps") or 1))),
        view_size=face.view_size,
        action_names=tuple(f"{noun} {n}" for n in range(face.action_size)),
        action_kind=face.kind,
        terms=("reward",),
        stats=STATS,
        max_frames=MAX_FRAMES if max_frames is None else max_frames,
        reward_presets={"dense": {"reward": 1.0}, "sparse": {WIN: 1.0}},
    )
