"""The game against recordings of the original: record.py and record_matches.py in tests/data/ai2
say what they hold.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from league.games.brawl.game import BrawlGame
from league.games.brawl.moves import UNARMED
from league.games.brawl.rewards import TERMS
from league.games.brawl.rules import KO
from league.games.brawl.weapons import NEVER, SPAWNERS

RECORDINGS = Path(__file__).resolve().parents[1] / "data" / "ai2" / "recordings.npz"
MATCHES = RECORDINGS.with_name("matches.npz")
PLACES_EVERY = 300
"""Frames between two places that the whole matches keep."""
DRAWS_0 = np.uint64(2**64 - 0x9E3779B97F4A7C15)
"""Where a stream of random numbers stands before its number 0."""
OURS = {"jumps": "air_jumps", "stun": "stun_left"}
"""Fields that a player's record calls otherwise."""
SLOTS = {
    **{"dropped_x": ("slot2_x", 14), "dropped_y": ("slot2_y", 8), "dropped": ("slot2_type", 3)},
    **{"newer_x": ("slot3_x", 14), "newer_y": ("slot3_y", 8), "newer": ("slot3_type", 3)},
    **{"right_spawner": ("slot0_type", 3), "left_spawner": ("slot1_type", 3)},
}
"""Fields of the observation, each with its scale there."""


@dataclass
class Played:
    """S sequences: what both games showed after each frame, [S, F, 2 seats], by field.

    A sequence has `frames_S` frames of the F; after them the numbers mean nothing.
    """

    family_S: NDArray[np.str_]
    frames_S: NDArray[np.int32]
    original: dict[str, NDArray[np.float64]]
    ours: dict[str, NDArray[np.float64]]

    @property
    def error_SF2(self) -> NDArray[np.float64]:
        return np.hypot(*(self.ours[axis] - self.original[axis] for axis in "xy"))

    @property
    def end_error_S(self) -> NDArray[np.float64]:
        return self.error_SF2[np.arange(len(self.frames_S)), self.frames_S - 1].max(axis=1)

    @property
    def counts_SF(self) -> NDArray[np.bool_]:
        return np.arange(self.error_SF2.shape[1]) < self.frames_S[:, None]

    def kind_S(self, kind: str) -> NDArray[np.bool_]:
        return np.char.startswith(self.family_S, kind)


def begun(
    start_S24: NDArray[np.float32], comes_S2: NDArray[np.int32], max_frames: int | None = None
) -> BrawlGame:
    """Matches that begin as the recorded ones, with weapons that come when they came there."""
    game = BrawlGame(len(start_S24), max_frames=max_frames)
    sides = BrawlGame(64)
    sides.reset(np.arange(64, dtype=np.uint64))
    is_right_64 = sides._players_N2["side"][:, 0] > 0
    right, left = np.argmax(is_right_64), np.argmin(is_right_64)
    game.reset(np.where(start_S24[:, 0, 3] > 0, right, left).astype(np.uint64))
    for column, name in enumerate(("x", "y", "weapon")):
        game._players_N2[name] = start_S24[:, :, column]
    game._matches_N["weapons"]["comes"] = NEVER
    game._matches_N["weapons"]["comes"][:, :2] = np.where(comes_S2 > 0, comes_S2, NEVER)
    return game


def shown(game: BrawlGame, name: str) -> NDArray[np.float64]:
    if name == "dodge":
        is_dodging = game._players_N2["state"] == 7
        return np.where(is_dodging, game._players_N2["state_left"], 0.0)
    if name == "in_danger":
        return (game.reward_terms_N2K[:, :, TERMS.index("danger_zone")] < 0).astype(float)
    if name in SLOTS:
        field, scale = SLOTS[name]
        column = game.spec.observation_names.index(f"own {field}")
        return game.observations_N2O[:, :, column].astype(float) * scale
    return game._players_N2[OURS.get(name, name)].astype(float)


@cache
def played() -> Played:
    with np.load(RECORDINGS) as file:
        steps_SF2K = file["steps_KS2F"].transpose(1, 3, 2, 0)
        numbers = np.cumsum(steps_SF2K, axis=1, dtype=np.int32) / file["scale_K"]
        names, family_S, keys_SF2 = file["fields_K"], file["family_S"], file["keys_SF2"]
        frames_S, game = file["frames_S"], begun(file["start_S24"], file["comes_S2"])
    ours = {name: np.zeros(keys_SF2.shape) for name in names}
    for frame in range(keys_SF2.shape[1]):
        game.step((keys_SF2[:, frame, :, None] >> np.arange(10) & 1).astype(np.uint8))
        for name in names:
            ours[name][:, frame] = shown(game, name)
    original = {name: numbers[..., k] for k, name in enumerate(names)}
    return Played(family_S, frames_S, original, ours)


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
    assert (found.ours[name] == found.original[name])[found.counts_SF].mean() >= 0.99


def test_long_sequences_end_where_they_end_in_the_original() -> None:
    """Players between the platform and a ground, both of which push them."""
    found = played()
    error_S = found.end_error_S[found.kind_S("long")]
    assert len(error_S) >= 100
    assert (error_S <= 0.05).mean() >= 0.97


def test_weapons_are_shown_where_and_when_the_original_shows_them() -> None:
    """The newer of two that lie takes the older one's slot, and spawners wait for both."""
    found = played()
    these_S = found.kind_S("weapons")
    counts_SF = found.counts_SF[these_S]
    assert (found.original["newer"][these_S] > 0).any()
    assert (found.original["right_spawner"][these_S] > 0).any()
    for name, (_, scale) in SLOTS.items():
        near = np.abs(found.ours[name] - found.original[name])[these_S] <= 1e-4 * scale
        assert near[counts_SF].all(), name


def test_who_is_below_the_stage_is_in_danger_while_knocked_out_too() -> None:
    found = played()
    counts_SF = found.counts_SF & (found.error_SF2.max(axis=2) <= 0.005)
    is_out = (found.original["state"] == KO) & (found.original["in_danger"] > 0)
    assert is_out[counts_SF].sum() >= 500
    assert np.array_equal(
        found.ours["in_danger"][counts_SF], found.original["in_danger"][counts_SF]
    )


def test_hits_have_the_same_damage_and_launch() -> None:
    found = played()
    dealt = np.diff(found.original["damage"], axis=1)
    ours = np.diff(found.ours["damage"], axis=1)
    hits = dealt > 0
    # The launch shows two frames later at the latest.
    hits &= np.arange(hits.shape[1])[:, None] < found.frames_S[:, None, None] - 3
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
    given = (ours > 0) & (np.arange(ours.shape[1])[:, None] < found.frames_S[:, None, None] - 3)
    assert abs(given.sum() - len(s)) <= 0.02 * len(s)


def test_a_dropped_weapon_lies_where_it_lies_in_the_original() -> None:
    found = played()
    there = (found.original["dropped"] > 0) & found.counts_SF[:, :, None]
    assert there.any()
    for name in ("dropped", "dropped_x", "dropped_y"):
        near = np.abs(found.ours[name] - found.original[name]) <= 0.05
        assert near[there].mean() >= 0.95


class WholeMatches(NamedTuple):
    """What M matches showed here; tests/data/ai2/record_matches.py names the shapes."""

    outcomes_M: NDArray[np.float64]
    places_MT22: NDArray[np.float64]
    came_MPW: NDArray[np.int64]


def play_matches(recorded: dict[str, Any]) -> WholeMatches:
    """Plays the recorded keys alone; a weapon's place, kind and cooldown are drawn as there."""
    weapons_MPW = recorded["weapons_MPW"]
    actions_FM2A = np.unpackbits(recorded["actions_A2MF"], axis=-1).T
    game = begun(recorded["start_M24"], weapons_MPW["wait"][:, :, 0], len(actions_FM2A))
    outcomes_M = np.full(game.num_matches, np.nan)
    places, came_MPW = [], np.zeros(weapons_MPW.shape, int)
    spawners_MP = game._matches_N["weapons"][:, :SPAWNERS]
    next_MP1 = np.zeros((*spawners_MP.shape, 1), int)
    for frame, actions_M2A in enumerate(actions_FM2A):
        if frame % PLACES_EVERY == 0:
            places.append(np.stack([game._players_N2[axis] for axis in "xy"], axis=2))
        # A spawner that loses its weapon draws 0, and so waits for half its `cooldown`.
        spawners_MP["random"] = DRAWS_0
        spawners_MP["cooldown"] = 2 * np.take_along_axis(weapons_MPW["wait"], next_MP1, 2)[..., 0]
        was_empty_MP = spawners_MP["type"] == UNARMED
        game.step(actions_M2A)
        m, p = np.nonzero(was_empty_MP & (spawners_MP["type"] != UNARMED))
        w = next_MP1[m, p, 0]
        came_MPW[m, p, w] = frame + 1
        for ours, theirs in (("type", "kind"), ("x", "x"), ("shown_x", "x")):
            spawners_MP[ours][m, p] = weapons_MPW[theirs][m, p, w]
        next_MP1[m, p, 0] = np.minimum(w + 1, weapons_MPW.shape[2] - 1)
        ends_M = game.ended_N & np.isnan(outcomes_M)
        outcomes_M[ends_M] = game.outcomes_N[ends_M]
    return WholeMatches(outcomes_M, np.stack(places, axis=1), came_MPW)


def test_whole_matches_have_the_winners_and_weapons_of_the_original() -> None:
    with np.load(MATCHES) as file:
        recorded = dict(file)
    ours = play_matches(recorded)
    stocks_0_M, stocks_1_M = recorded["stocks_M2"].T
    winners_M = (1 + np.sign(stocks_0_M - stocks_1_M)) / 2
    assert len(winners_M) >= 20
    assert (ours.outcomes_M == winners_M).mean() >= 0.8

    far_MT22 = np.abs(ours.places_MT22 - recorded["places_MT22"] / 1000)
    is_near_MT = (far_MT22 <= 0.05).all(axis=(2, 3))
    together_MT = np.logical_and.accumulate(is_near_MT, axis=1)
    assert together_MT[:, -1].mean() >= 0.8

    until_M11 = PLACES_EVERY * (together_MT.sum(axis=1) - 1)[:, None, None]
    came_MPW, recorded_MPW = (
        np.where(came_MPW <= until_M11, came_MPW, 0)
        for came_MPW in (ours.came_MPW, recorded["weapons_MPW"]["came"])
    )
    assert (recorded_MPW > 0).sum() >= 500
    assert np.array_equal(came_MPW, recorded_MPW)


def table() -> str:
    """The sequences by family, for docs/game.md: python tests/unit/test_brawl_recordings.py."""
    found = played()
    kinds_S = np.array([name.partition(":")[0] for name in found.family_S])
    equal_SF2 = found.ours["state"] == found.original["state"]
    equal_S = (equal_SF2.mean(axis=2) * found.counts_SF).sum(axis=1) / found.frames_S
    lines = []
    for kind in dict.fromkeys(kinds_S):
        error = found.end_error_S[kinds_S == kind]
        lines.append(
            f"| {kind} | {len(error)} | {np.median(error):.4f} | {np.quantile(error, 0.9):.3f} | "
            f"{error.max():.2f} | {100 * (error <= 0.05).mean():.1f} | "
            f"{100 * equal_S[kinds_S == kind].mean():.2f} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
