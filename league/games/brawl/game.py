"""Runs the batched game: preallocated arrays around the compiled step."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from league.errors import InvalidInput
from league.games.base import BatchedGame
from league.games.brawl import layout
from league.games.brawl.compiling import load
from league.games.brawl.kernel import reset_matches, step_matches
from league.games.brawl.moves import MOVE_NAMES, UNARMED, WEAPON_NAMES, move_tables
from league.games.brawl.rules import DODGE, KEY_NAMES
from league.games.brawl.spec import PLANNER, brawl_spec
from league.games.brawl.stage import stage as stage_named
from league.games.brawl.weapons import SPAWNERS

MOST_THREADS = 256
_SHOWN = (
    *("x", "y", "vx", "vy", "facing", "state", "damage", "stocks"),
    *("move_frame", "power", "power_frame", "stun_left"),
)
"""Fields of a player's record that a frame shows unchanged."""


class BrawlGame(BatchedGame):
    """Plays N matches of Warehouse Brawl. Call `reset` first.

    Args:
        num_matches: matches that step together.
        stage: a name in `stage.STAGES`.
        rules: "ai2" for the rules of the original game (UTMIST's), or "fair" (docs/game.md).
        variation: 0 to 1, how much every match differs from the original game (variation.py).
        loop: "run_match" for the loop of the original game's tournament, or "env.step" for the loop
            of its training.
        off_stage_starts: 0 to 1, the probability that a player begins off the stage's grounds
            (variation.py).
        max_frames: time limit in frames. None means 90 s.
        threads: number of threads that share the rows of a step. It doesn't change results. The
            default is 1, because a second core helps the learner more than the game
            (docs/benchmarks.md).

    Raises:
        ConfigError: an unknown option.
        InvalidInput: a size below 1, or too many threads.
    """

    def __init__(
        self,
        num_matches: int,
        *,
        stage: str = "warehouse",
        rules: str = "ai2",
        variation: float = 0.0,
        loop: str = "run_match",
        off_stage_starts: float = 0.0,
        max_frames: int | None = None,
        threads: int = 1,
    ) -> None:
        if not 1 <= threads <= MOST_THREADS:
            raise InvalidInput(f"{threads} threads can't play: ask for 1 to {MOST_THREADS}")
        super().__init__(brawl_spec(max_frames), num_matches)
        self.stage_name = stage
        self._options = f"{stage} {rules} {variation} {loop}"
        if off_stage_starts:
            self._options += f" {off_stage_starts}"
        stage_1 = stage_named(stage, rules, variation, loop, off_stage_starts)
        self._stage = stage_1[0]
        self._players_N2 = np.zeros((num_matches, 2), layout.PLAYER)
        self._matches_N = np.zeros(num_matches, layout.MATCH)
        self._plans_N2: NDArray[np.void] | None = None
        self._weapons_NP = self._matches_N["weapons"]
        self._arrays = (  # in the order of the kernel, the caller's arrays as records
            *(stage_1, move_tables(), self._players_N2, self._matches_N),
            *(
                self.observations_N2O.view(layout.OBSERVATION),
                self.stats_N2S.view(layout.STATS_ROW),
            ),
            *(np.zeros(1, layout.STATS_ROW), np.zeros(1, layout.TERMS_ROW)),
            self.final_observations_N2O.view(layout.OBSERVATION),
            self.final_stats_N2S.view(layout.STATS_ROW),
            self.reward_terms_N2K.view(layout.TERMS_ROW),
            *(self.ended_N, self.outcomes_N, self.frames_N, self.final_frames_N),
            *(self.bots_N2, self.next_seeds_N, self.idle_N),
        )
        step = 0, num_matches, self.idle_actions(), 1, self.spec.max_frames, self._arrays, None
        reset = self.idle_N, self.next_seeds_N, self._arrays
        load({reset_matches: reset, step_matches: step})
        cuts = [num_matches * thread // threads for thread in range(threads + 1)]
        self._parts = [(first, last) for first, last in pairwise(cuts) if first < last]
        self._pool = ThreadPoolExecutor(len(self._parts) - 1) if len(self._parts) > 1 else None

    def reset(self, seeds: NDArray[np.uint64], where: NDArray[np.bool_] | None = None) -> None:
        """Begins new matches, and sets `next_seeds_N` of their rows to seed + 1."""
        seeds_N, where_N = self.checked_seeds(seeds, where)
        reset_matches(where_N, seeds_N, self._arrays)
        self.next_seeds_N[where_N] = seeds_N[where_N] + np.uint64(1)

    def step(self, actions_N2A: NDArray[np.uint8], frames: int = 1) -> None:
        """Plays `frames` frames while the same keys are held."""
        actions_N2A = self.checked_actions(actions_N2A, frames)
        if self._plans_N2 is None and (self.bots_N2 >= PLANNER).any():
            self._plans_N2 = self._no_plans()
            call = 0, 1, actions_N2A, 1, self.spec.max_frames, self._arrays, self._scratch()
            load({step_matches: call})
        if self._pool is None:
            self._step(0, self.num_matches, actions_N2A, frames)
            return
        others = [
            self._pool.submit(self._step, first, last, actions_N2A, frames)
            for first, last in self._parts[1:]
        ]
        self._step(*self._parts[0], actions_N2A, frames)
        for other in others:
            other.result()

    def _step(self, first: int, last: int, actions_N2A: NDArray[np.uint8], frames: int) -> None:
        """Plays the rows `first` to `last` - 1, and touches no other row."""
        max_frames, scratch = self.spec.max_frames, self._scratch()
        step_matches(first, last, actions_N2A, frames, max_frames, self._arrays, scratch)

    def _no_plans(self) -> NDArray[np.void]:
        return np.zeros((self.num_matches, 2), layout.PLAN)

    def _scratch(self) -> tuple[NDArray, ...] | None:
        """Returns the plans of the planners (bots that search), and memory for the copies of a
        match in which planners try their plans. Returns None if no planner has played.
        """
        if self._plans_N2 is None:
            return None
        copied = (np.zeros(2, layout.PLAYER), np.zeros(1, layout.MATCH), np.zeros(1, layout.PLAN))
        unused = (np.zeros(1, layout.TERMS_ROW), np.zeros(1, layout.STATS_ROW))
        return (self._plans_N2, *copied, *unused)

    def close(self) -> None:
        """Ends the threads."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    def own_state(self) -> dict[str, NDArray]:
        """Returns the records of players, matches and plans as bytes."""
        state = {
            "players": self._players_N2.view(np.uint8),
            "matches": self._matches_N.view(np.uint8),
        }
        return state if self._plans_N2 is None else state | {"plans": self._plans_N2.view(np.uint8)}

    def load(self, state: dict[str, NDArray]) -> None:
        """Continues from a state that `save` returned, with plans if planners have played."""
        self._plans_N2 = self._no_plans() if "plans" in state else None
        super().load(state)

    def rules_text(self) -> str:
        """Returns the text of the rules, with the options and the memory layout of the records."""
        return f"{super().rules_text()} {self._options} {layout.PLAYER.descr} {layout.MATCH.descr}"

    def played_N2A(self) -> NDArray[np.uint8]:
        """Returns the keys that both seats held in the last frame, [N, 2, A], including bots."""
        bits_N2 = np.stack([self._matches_N["keys_0"], self._matches_N["keys_1"]], axis=1)
        return (bits_N2[..., None] >> np.arange(len(KEY_NAMES)) & 1).astype(np.uint8)

    def frame(self, match: int) -> dict:
        """Returns a match's current state: the stage in units, the players, and the weapons."""
        now = self._matches_N[match]
        return {
            "game": self.spec.name,
            "stage": self.stage_name,
            "frame": int(now["frame"]),
            "max_frames": self.spec.max_frames,
            "solids": self._stage["solids"].tolist(),
            "blast": [self._stage["blast_x"].item(), self._stage["blast_y"].item()],
            "platform": {
                "x": float(now["platform_x"]),
                "y": float(now["platform_y"]),
                "half_width": float(self._stage["platform_half_width"]),
                "half_height": float(self._stage["platform_half_height"]),
            },
            "players": [_player_frame(self._players_N2[match, seat]) for seat in range(2)],
            "weapons": _weapons_frame(self._weapons_NP[match], int(now["frame"])),
        }


def _player_frame(player: Any) -> dict[str, Any]:
    shown = {name: player[name].item() for name in _SHOWN}
    return shown | {
        "grounded": bool(player["grounded"]),
        "weapon": WEAPON_NAMES[player["weapon"]],
        "move": MOVE_NAMES.get(int(player["move"]), ""),
        "invulnerable": shown["state"] == DODGE,
        "keys": [name for bit, name in enumerate(KEY_NAMES) if player["keys"] >> bit & 1],
    }


def _weapons_frame(weapons_P: NDArray[np.void], frame: int) -> list[dict[str, Any]]:
    """Lists the weapons on the stage: whether each was dropped, and how many frames it stays."""
    return [
        {
            "x": float(weapon["x"]),
            "y": float(weapon["y"]),
            "type": WEAPON_NAMES[int(weapon["type"])],
            "dropped": p >= SPAWNERS,
            "ready": frame >= int(weapon["ready"]),
            "frames_left": int(weapon["leaves"]) - frame,
        }
        for p, weapon in enumerate(weapons_P)
        if weapon["type"] != UNARMED
    ]
