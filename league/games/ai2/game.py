"""Plays the original game (UTMIST's, which `brawl` reimplements) from a user's checkout.

Shape suffixes: N matches, R rows, 2 seats.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from league.errors import ConfigError
from league.games.ai2.observation import converted
from league.games.ai2.worker import SEEN
from league.games.base import BotSpec, GameSpec
from league.games.brawl import rules
from league.games.brawl.layout import OWN_FIELDS, SLOTS, TERMS_ROW
from league.games.brawl.moves import MOVE_NAMES, WEAPON_NAMES
from league.games.brawl.rewards import ANNEALED
from league.games.brawl.scoring import score
from league.games.brawl.spec import brawl_spec
from league.games.brawl.stage import stage
from league.games.hosted import HostedGame, Pool, check_options, inherited

BOTS = {
    "ConstantAgent": BotSpec(name="constant", summary="presses nothing"),
    "RandomAgent": BotSpec(
        name="random", summary="presses each key with probability 1/2 in every frame"
    ),
    "BasedAgent": BotSpec(
        name="based", summary="walks up to its opponent, jumps and strikes lightly within reach"
    ),
    "ClockworkAgent": BotSpec(
        name="clockwork", summary="plays a fixed list of keys once, then presses nothing"
    ),
}
"""The original game's own bots, by the names of their classes."""
UNHIT_FRAMES = 3 * rules.FRAMES_PER_SECOND
"""A player that falls after this many frames without being hit has fallen by its own mistake."""
STATS = (
    *("damage_dealt", "damage_taken", "knockouts", "falls", "falls_unhit", "attacks", "hits"),
    *("dodges", "air_frames", "distance_sum", "speed_sum", "pickups", "keys_pressed"),
    "spawn_side",
)
PYTHONS = (".venv/bin/python", "venv/bin/python")
"""Paths in a checkout where the checkout's own Python may be."""

_STATS_ROW = np.dtype([(name, np.float32) for name in STATS])
_REAL, _WHOLE = ("x", "y", "vx", "vy", "last_x", "dealt"), ("state", "grounded", "keys", "combos")
_EVENTS = ("fell", "equipped", "dropped", "moved_by_hand")
_SCORED = np.dtype(
    [
        *((name, np.float64) for name in _REAL),
        *((name, np.int32) for name in (*_WHOLE, *_EVENTS)),
    ],
    align=True,
)
"""The fields of a player that `brawl` needs to score a frame."""


class Ai2Game(HostedGame):
    """Plays N matches of the original game (UTMIST's), with the reward terms of `brawl`.

    Args:
        num_matches: matches that step together.
        argument: folder of the checkout.
        max_frames: frames after which the player with more stocks (lives) wins. None means 90 s.
        python: the Python that runs the original. "" means the Python in the checkout's `.venv` or
            `venv`.
        step_seconds: longest time for a frame of the original. If a frame takes longer, its process
            is ended, and the matches of this process fail.
        workers: number of processes. 0 derives it from the numbers of matches and processor cores.

    Raises:
        ConfigError: the folder holds no checkout, or there is no such Python.
    """

    def __init__(
        self,
        num_matches: int,
        *,
        argument: str = "",
        max_frames: int | None = None,
        python: str = "",
        step_seconds: float = 10.0,
        workers: int = 0,
    ) -> None:
        check_options(step_seconds, workers)
        folder = checkout_of(argument)
        worker = str(Path(__file__).with_name("worker.py"))
        pool = Pool(
            [_python(folder, python), worker, *BOTS, str(step_seconds)],
            f"matches of {folder}",
            matches=num_matches,
            workers=workers,
            step_seconds=step_seconds,
            cwd=folder,
            env=inherited({"PYTHONPATH": "", "PYTHONSAFEPATH": ""}),
            stdout=subprocess.DEVNULL,  # the original prints a lot
            stderr=subprocess.DEVNULL,
        )
        super().__init__(_spec(argument, folder, max_frames), num_matches, pool, SEEN)
        self._stage = stage("warehouse")[0]
        self._before_N = self._seen_N.copy()
        self._unhit_N2 = np.zeros((num_matches, 2), np.int32)  # frames since the last hit

    def request(self, verb: str, rows: list[int]) -> tuple[Any, ...]:
        """Returns a worker request's arguments after `rows`, including the indices of the bots that
        the worker plays.
        """
        return *super().request(verb, rows), self.bots_N2[rows].tolist()

    def begin(self, rows: NDArray[np.intp]) -> None:
        """Begins matches in `rows` with the seeds in `seeds_N`. A match that can't begin fails in
        the next step.
        """
        super().begin(rows)
        self._unhit_N2[rows] = UNHIT_FRAMES
        self._stats()["spawn_side"][rows] = np.sign(_shown(self._seen_N[rows], "x"))

    def show(self, rows: NDArray[np.intp]) -> None:
        """Writes the observations of `rows`."""
        self.observations_N2O[rows] = self._views(rows)

    def _views(self, rows: NDArray[np.intp]) -> NDArray[np.float32]:
        seen_R = self._seen_N[rows]
        own_R2 = converted(seen_R["raw"])
        return np.concatenate([own_R2, own_R2[:, ::-1], seen_R["keys"]], axis=2, dtype=np.float32)

    def _stats(self) -> NDArray[np.void]:
        """Returns the statistics by name, [N, 2]."""
        return self.stats_N2S.view(_STATS_ROW)[:, :, 0]

    def play_frame(self, actions_N2A: NDArray[np.uint8]) -> None:
        """Plays a frame. The workers report the bots' keys."""
        self._before_N = self._seen_N.copy()
        super().play_frame(actions_N2A)

    def count(self, rows: NDArray[np.intp]) -> None:
        """Adds a frame's reward terms and stats, from the original game's state before and after
        the frame.
        """
        then, now = self._before_N[rows], self._seen_N[rows]
        self._actions_N2A[rows] = now["keys"]
        players_R2 = np.zeros((len(rows), 2), _SCORED)
        for name in ("x", "y", "vx", "vy", "state", "grounded"):
            players_R2[name] = _shown(now, name)
        taken_R2 = now["taken"] - then["taken"]
        fell_R2 = _shown(now, "stocks") < _shown(then, "stocks")
        was_out_R2, state_R2 = _shown(then, "state") == rules.KO, players_R2["state"]
        had_R2, has_R2 = _shown(then, "weapon"), _shown(now, "weapon")
        by_hand_R2 = fell_R2 | (was_out_R2 & (state_R2 != rules.KO))
        players_R2["last_x"], players_R2["dealt"] = _shown(then, "x"), taken_R2[:, ::-1]
        players_R2["keys"] = now["keys"] @ (1 << np.arange(len(rules.KEY_NAMES)))
        players_R2["combos"] = now["combos"] - then["combos"]
        players_R2["fell"], players_R2["moved_by_hand"] = fell_R2, by_hand_R2
        players_R2["equipped"] = np.where(has_R2 != had_R2, has_R2, 0)
        players_R2["dropped"] = (has_R2 == 0) & (had_R2 != 0) & ~by_hand_R2
        paid, stats = self.reward_terms_N2K.view(TERMS_ROW), self.stats_N2S.view(_STATS_ROW)
        _score_rows(rows, players_R2, _gap(then), _gap(now), paid, stats)
        self._unhit_N2[rows] = np.where(taken_R2 > 0, 0, self._unhit_N2[rows] + 1)
        is_new_R2 = state_R2 != _shown(then, "state")
        begins_R2 = is_new_R2 | (_shown(now, "move") != _shown(then, "move"))
        for name, happened_R2 in (
            ("falls_unhit", fell_R2 & (self._unhit_N2[rows] >= UNHIT_FRAMES)),
            ("attacks", begins_R2 & (state_R2 == rules.ATTACK)),
            ("hits", taken_R2[:, ::-1] > 0),
            ("dodges", is_new_R2 & (state_R2 == rules.DODGE)),
            ("pickups", players_R2["equipped"] > 0),
        ):
            self._stats()[name][rows] += happened_R2

    def end(self, rows: NDArray[np.intp]) -> NDArray[np.float64]:
        """Writes the final observations. The player with more stocks left has won."""
        self.final_observations_N2O[rows] = self._views(rows)
        stocks_R2 = _shown(self._seen_N[rows], "stocks")
        return np.sign(stocks_R2[:, 0] - stocks_R2[:, 1])

    def own_state(self) -> dict[str, NDArray]:
        """Returns the seeds, and the frames since each player was last hit."""
        return super().own_state() | {"unhit_N2": self._unhit_N2}

    def frame(self, match: int) -> dict[str, Any]:
        """Returns a match's state in the form of `brawl`'s frames, but without the progress of
        attacks.
        """
        seen, stage = self._seen_N[match], self._stage
        weapons = seen["raw"][0, len(OWN_FIELDS) : len(OWN_FIELDS) + 3 * SLOTS].reshape(-1, 3)
        return {
            "game": self.spec.name,
            "stage": "warehouse",
            "frame": int(self.frames_N[match]),
            "max_frames": self.spec.max_frames,
            "solids": stage["solids"].tolist(),
            "blast": [stage["blast_x"].item(), stage["blast_y"].item()],
            "platform": {
                "x": float(seen["raw"][0, -4]),
                "y": float(seen["raw"][0, -3]),
                "half_width": float(stage["platform_half_width"]),
                "half_height": float(stage["platform_half_height"]),
            },
            "players": [_player_frame(seen["raw"][seat], seen["keys"][seat]) for seat in (0, 1)],
            "weapons": [
                {
                    "x": x,
                    "y": y,
                    "type": WEAPON_NAMES[max(1, int(kind) - 1)],  # a spawner hides the type
                    "dropped": kind > 1,
                    "ready": True,
                    "frames_left": rules.FRAMES_PER_SECOND,
                }
                for x, y, kind in weapons.tolist()
                if kind
            ],
        }


def _shown(seen_R: NDArray[np.void], name: str) -> NDArray[np.float64]:
    """Returns the field `name` of both players, [R, 2]."""
    return seen_R["raw"][:, :, OWN_FIELDS.index(name)]


def _gap(seen_R: NDArray[np.void]) -> NDArray[np.float64]:
    """Returns the distance between the players, [R]."""
    x_R2, y_R2 = _shown(seen_R, "x"), _shown(seen_R, "y")
    return np.hypot(x_R2[:, 0] - x_R2[:, 1], y_R2[:, 0] - y_R2[:, 1])


@njit
def _score_rows(
    rows: Any, players_R2: Any, last_gap_R: Any, gap_R: Any, paid_N21: Any, stats_N21: Any
) -> None:
    for r in range(rows.shape[0]):
        n, player_0, player_1 = rows[r], players_R2[r, 0], players_R2[r, 1]
        score(player_0, player_1, last_gap_R[r], gap_R[r], paid_N21[n, 0, 0], stats_N21[n, 0, 0])
        score(player_1, player_0, last_gap_R[r], gap_R[r], paid_N21[n, 1, 0], stats_N21[n, 1, 0])


def _player_frame(raw: NDArray[np.float64], keys: NDArray[np.uint8]) -> dict[str, Any]:
    shown = dict(zip(OWN_FIELDS, raw.tolist(), strict=False))
    state = int(shown["state"])
    return {
        **{name: shown[name] for name in ("x", "y", "vx", "vy")},
        "facing": 1 if shown["facing"] else -1,
        "state": state,
        "damage": shown["damage"] * rules.MAX_DAMAGE,
        "stocks": int(shown["stocks"]),
        "stun_left": int(shown["stun_left"]),
        "grounded": bool(shown["grounded"]),
        "weapon": WEAPON_NAMES[int(shown["weapon"])],
        "move": MOVE_NAMES.get(int(shown["move"]), ""),
        "invulnerable": state == rules.DODGE,
        "keys": [name for name, held in zip(rules.KEY_NAMES, keys, strict=True) if held],
    }


def checkout_of(argument: str) -> Path:
    """Returns the folder that `argument` names. Raises `ConfigError` unless it is a checkout."""
    if not argument:
        raise ConfigError("game 'ai2' needs a checkout of the original: name it as ai2:FOLDER")
    folder = Path(os.path.abspath(argument))
    for name in ("environment/environment.py", "environment/agent.py"):
        if not (folder / name).is_file():
            raise ConfigError(
                f"{folder} is no checkout of UTMIST-AI2: it has no {name}; clone "
                "https://github.com/UTMIST/UTMIST-AI2 and name that folder"
            )
    return folder


def _python(folder: Path, named: str) -> str:
    """Returns the path of the original game's Python. Raises `ConfigError` without it."""
    candidates = [named] if named else [str(folder / name) for name in PYTHONS]
    python = next((path for name in candidates if (path := shutil.which(name))), None)
    if python is None:
        raise ConfigError(
            f"there is no Python {' or '.join(candidates)}: make a virtual environment with the "
            "packages of the checkout's requirements.txt, or name its Python by --set "
            "game.options.python=PATH"
        )
    return os.path.abspath(python)


def _spec(argument: str, folder: Path, max_frames: int | None) -> GameSpec:
    """Returns `brawl`'s spec, with a digest of the checkout's rules as the version."""
    digest = hashlib.sha256()
    files = (folder / "environment").rglob("*")
    for path in sorted(path for path in files if path.suffix in (".py", ".json")):
        digest.update(path.read_bytes())
    like = brawl_spec(max_frames)
    presets = {
        name: weights for name, weights in like.reward_presets.items() if name not in ANNEALED
    }
    return replace(
        like,
        name=f"ai2:{argument}",
        version=digest.hexdigest()[:8],
        stats=STATS,
        bots=tuple(BOTS.values()),
        reward_presets=presets,
    )
