"""The game against recordings of the original: tests/data/ai2/record.py says what they hold."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from league.games.brawl.game import BrawlGame
from league.games.brawl.weapons import NEVER

RECORDINGS = Path(__file__).resolve().parents[1] / "data" / "ai2" / "recordings.npz"
OURS = {"jumps": "air_jumps", "stun": "stun_left"}
"""Fields that a player's record calls otherwise."""


@dataclass
class Played:
    """S sequences: what both games showed after each frame, [S, F, 2 seats], by field."""

    family_S: NDArray[np.str_]
    original: dict[str, NDArray[np.float64]]
    ours: dict[str, NDArray[np.float64]]

    @property
    def error_SF2(self) -> NDArray[np.float64]:
        return np.hypot(*(self.ours[axis] - self.original[axis] for axis in "xy"))

    @property
    def end_error_S(self) -> NDArray[np.float64]:
        return self.error_SF2[:, -1].max(axis=1)


def begun(start_S24: NDArray[np.float32]) -> BrawlGame:
    """Matches that begin as the recorded ones, without weapons that come."""
    game = BrawlGame(len(start_S24), loop="env.step")
    sides = BrawlGame(64)
    sides.reset(np.arange(64, dtype=np.uint64))
    is_right_64 = sides._players_N2["side"][:, 0] > 0
    right, left = np.argmax(is_right_64), np.argmin(is_right_64)
    game.reset(np.where(start_S24[:, 0, 3] > 0, right, left).astype(np.uint64))
    for column, name in enumerate(("x", "y", "weapon")):
        game._players_N2[name] = start_S24[:, :, column]
    game._matches_N["weapons"]["comes"] = NEVER
    return game


def shown(game: BrawlGame, name: str) -> NDArray[np.float64]:
    if name == "dodge":
        is_dodging = game._players_N2["state"] == 7
        return np.where(is_dodging, game._players_N2["state_left"], 0.0)
    if name.startswith("dropped"):
        place = game._matches_N["weapons"][:, 2]
        kind = np.where(place["type"] > 0, place["type"] + 1, 0)
        height = np.clip(place["shown_y"], -7.0, 7.0)
        found = {"dropped": kind, "dropped_x": place["shown_x"], "dropped_y": height}
        return np.repeat(found[name][:, None], 2, axis=1).astype(float)
    return game._players_N2[OURS.get(name, name)].astype(float)


@cache
def played() -> Played:
    with np.load(RECORDINGS) as file:
        numbers = np.cumsum(file["steps_SF2K"], axis=1, dtype=np.int32) / file["scale_K"]
        names, family_S, keys_SF2 = file["fields_K"], file["family_S"], file["keys_SF2"]
        game = begun(file["start_S24"])
    ours = {name: np.zeros(keys_SF2.shape) for name in names}
    for frame in range(keys_SF2.shape[1]):
        game.step((keys_SF2[:, frame, :, None] >> np.arange(10) & 1).astype(np.uint8))
        for name in names:
            ours[name][:, frame] = shown(game, name)
    original = {name: numbers[..., k] for k, name in enumerate(names)}
    return Played(family_S, original, ours)


def test_fighters_end_where_they_end_in_the_original() -> None:
    error_S = played().end_error_S
    assert len(error_S) >= 200
    assert np.median(error_S) <= 0.005
    assert np.quantile(error_S, 0.9) <= 0.05


@pytest.mark.parametrize(
    "name",
    ["state", "facing", "grounded", "jumps", "recoveries", "dodge", "stun", "move", "weapon"],
)
def test_what_is_shown_is_equal(name: str) -> None:
    found = played()
    assert (found.ours[name] == found.original[name]).mean() >= 0.99


def test_hits_have_the_same_damage_and_launch() -> None:
    found = played()
    dealt = np.diff(found.original["damage"], axis=1)
    ours = np.diff(found.ours["damage"], axis=1)
    hits = dealt > 0
    hits[:, -1] = False  # the launch shows a frame later at the latest
    s, f, seat = np.nonzero(hits)
    speed = [
        np.hypot(
            *(
                found.ours[axis][s, f + late, seat] - found.original[axis][s, f + late, seat]
                for axis in ("vx", "vy")
            )
        )
        for late in (1, 2)
    ]
    equal = (ours[s, f, seat] == dealt[s, f, seat]) & (np.maximum(*speed) <= 0.1)
    assert len(s) >= 100
    assert equal.mean() >= 0.98
    assert abs((ours > 0).sum() - len(s)) <= 0.02 * len(s)


def test_a_dropped_weapon_lies_where_it_lies_in_the_original() -> None:
    found = played()
    there = found.original["dropped"] > 0
    assert there.any()
    for name in ("dropped", "dropped_x", "dropped_y"):
        near = np.abs(found.ours[name] - found.original[name]) <= 0.05
        assert near[there].mean() >= 0.95


def table() -> str:
    """The sequences by family, for docs/game.md: python tests/unit/test_brawl_recordings.py."""
    found = played()
    kinds_S = np.array([name.partition(":")[0] for name in found.family_S])
    equal_S = (found.ours["state"] == found.original["state"]).mean(axis=(1, 2))
    lines = []
    for kind in dict.fromkeys(kinds_S):
        error = found.end_error_S[kinds_S == kind]
        lines.append(
            f"| {kind} | {len(error)} | {np.median(error):.4f} | {np.quantile(error, 0.9):.3f} | "
            f"{error.max():.2f} | {100 * equal_S[kinds_S == kind].mean():.2f} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
