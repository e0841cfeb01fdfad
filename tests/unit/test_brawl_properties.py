"""What holds in every match: bounds, order and symmetry."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from league.games.brawl import rules
from league.games.brawl.game import BrawlGame
from league.games.brawl.moves import MOVE_TYPES, UNARMED
from league.games.brawl.spec import BOTS
from league.games.brawl.stage import STAGES

A, D = rules.KEY_NAMES.index("A"), rules.KEY_NAMES.index("D")
SYMMETRIC_BOTS = [
    *("constant", "based", "aggressive", "defensive", "kiter", "aerial", "sig_spammer"),
    *("weapon_seeker", "edge_guarder"),
]


def keys(random: np.random.Generator, matches: int, density: float = 0.4) -> NDArray[np.uint8]:
    return (random.random((matches, 2, 10)) < density).astype(np.uint8)


conditions = {
    "stage": st.sampled_from(sorted(STAGES)),
    "seed": st.integers(0, 2**64 - 1),
    "density": st.floats(0.0, 1.0),
    "bots": st.tuples(*[st.integers(-1, len(BOTS) - 1)] * 2),
    "max_frames": st.integers(1, 900),
}


def begun(
    stage: str, seed: int, bots: tuple[int, int], max_frames: int, matches: int = 6, **options: bool
) -> BrawlGame:
    game = BrawlGame(matches, stage=stage, max_frames=max_frames, **options)
    game.bots_N2[:] = bots
    game.reset(np.random.default_rng(seed).integers(0, 2**64, matches, dtype=np.uint64))
    return game


def check_state(game: BrawlGame) -> None:
    """What is true between any two frames."""
    players, match = game._players_N2, game._matches_N
    assert np.abs(game.observations_N2O).max() <= 1.0
    assert np.isfinite(game.observations_N2O).all()
    assert np.isfinite(game.reward_terms_N2K).all()
    for name in ("x", "y", "vx", "vy", "damage"):
        assert np.isfinite(players[name]).all()
    assert ((players["damage"] >= 0) & (players["damage"] <= rules.MAX_DAMAGE)).all()
    assert ((players["state"] >= 0) & (players["state"] <= rules.TAUNT)).all()
    assert ((players["move"] >= 0) & (players["move"] < MOVE_TYPES)).all()
    assert ((players["air_jumps"] >= 0) & (players["air_jumps"] <= rules.AIR_JUMPS)).all()
    assert np.isin(players["facing"], (-1, 1)).all()
    assert ((players["state"] == rules.ATTACK) == (players["move"] != 0)).all()
    lying = (match["weapons"]["type"] != UNARMED).sum(axis=1)
    assert np.array_equal(lying, match["weapons_lying"])


@settings(max_examples=20, deadline=None)
@given(**conditions)
def test_everything_stays_in_its_bounds_and_in_order(
    stage: str, seed: int, density: float, bots: tuple[int, int], max_frames: int
) -> None:
    game = begun(stage, seed, bots, max_frames)
    random = np.random.default_rng(seed)
    stocks, damage = game._players_N2["stocks"].copy(), game._players_N2["damage"].copy()
    for _ in range(600):
        down = game._players_N2["state"] == rules.KO
        game.step(keys(random, 6, density))
        check_state(game)
        goes_on = ~game.ended_N
        now = game._players_N2
        assert (now["stocks"] <= stocks)[goes_on].all()
        assert (now["stocks"] >= stocks - 1)[goes_on].all()
        back = down & (now["state"] != rules.KO)
        assert ((now["damage"] >= damage) | back)[goes_on].all()
        # A respawned fighter is clean, and open to a hit in that very frame: only the dodge
        # protects.
        assert (now["damage"] == now["dealt"][:, ::-1])[back & goes_on[:, None]].all()
        stocks, damage = now["stocks"].copy(), now["damage"].copy()


@settings(max_examples=12, deadline=None)
@given(**conditions)
def test_swapped_seats_play_the_same_match(
    stage: str, seed: int, density: float, bots: tuple[int, int], max_frames: int
) -> None:
    game = begun(stage, seed, bots, 10_000)
    other = begun(stage, seed, bots[::-1], 10_000)
    other._players_N2[:] = game._players_N2[:, ::-1]
    random = np.random.default_rng(seed)
    for _ in range(min(max_frames, 500)):
        actions = keys(random, 6, density)
        game.step(actions)
        other.step(actions[:, ::-1])
        if game.ended_N.any():
            return
        assert np.array_equal(game.observations_N2O, other.observations_N2O[:, ::-1])
        assert np.array_equal(game.reward_terms_N2K, other.reward_terms_N2K[:, ::-1])


def reflect(game: BrawlGame, other: BrawlGame) -> None:
    """Makes the matches of `other` the mirror images of those of `game`."""
    other._players_N2[:], other._matches_N[:] = game._players_N2, game._matches_N
    for name in ("x", "vx", "side", "facing", "last_x"):
        other._players_N2[name] *= -1
    swapped = game._matches_N["weapons"][:, [1, 0, 3, 2]].copy()
    swapped["x"] *= -1
    other._matches_N["weapons"] = swapped


@pytest.mark.parametrize("bot", ["external", *SYMMETRIC_BOTS])
def test_on_the_flat_stage_a_match_and_its_mirror_image_are_played_alike(bot: str) -> None:
    n = 24
    game, image = (BrawlGame(n, stage="flat", max_frames=10_000) for _ in range(2))
    if bot != "external":
        game.bots_N2[:, 0] = image.bots_N2[:, 0] = game.spec.bot_index(bot)
    for each in (game, image):
        each.reset(np.arange(n, dtype=np.uint64))
    reflect(game, image)
    random = np.random.default_rng(8)
    running = np.ones(n, bool)
    armed = False
    for _ in range(1200):
        actions = keys(random, n, 0.3)
        mirrored = actions.copy()
        mirrored[:, :, [A, D]] = actions[:, :, [D, A]]
        game.step(actions)
        image.step(mirrored)
        assert np.array_equal(game.ended_N[running], image.ended_N[running])
        running &= ~game.ended_N
        for name in ("x", "y", "vx", "vy", "facing", "damage", "weapon"):
            one, other = game._players_N2[name][running], image._players_N2[name][running]
            sign = -1 if name in ("x", "vx", "facing") else 1
            assert np.array_equal(one, sign * other), name
        assert np.array_equal(game.reward_terms_N2K[running], image.reward_terms_N2K[running])
        armed |= (game._players_N2["weapon"][running] > 0).any()
    assert armed
    assert running.any()
