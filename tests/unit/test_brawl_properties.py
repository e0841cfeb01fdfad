"""What holds in every match: bounds and order; symmetry by the fair rules, and what they switch
off.
"""

from __future__ import annotations

import numpy as np
import pytest
from arena import RIGHT_GROUND_Y, Arena
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from league.errors import ConfigError
from league.games.brawl import rules
from league.games.brawl.game import BrawlGame
from league.games.brawl.layout import PLACES
from league.games.brawl.moves import MOVE_TYPES, UNARMED
from league.games.brawl.spec import BOTS
from league.games.brawl.stage import RULES, STAGES

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


def begun(stage: str, by: str, seed: int, bots: tuple[int, int], max_frames: int) -> BrawlGame:
    matches = 6
    game = BrawlGame(matches, stage=stage, rules=by, max_frames=max_frames)
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


@pytest.mark.long
@settings(max_examples=20, deadline=None)
@given(by=st.sampled_from(RULES), **conditions)
def test_everything_stays_in_its_bounds_and_in_order(
    stage: str, by: str, seed: int, density: float, bots: tuple[int, int], max_frames: int
) -> None:
    game = begun(stage, by, seed, bots, max_frames)
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
@example(stage="warehouse", seed=2048084, density=0.53125, bots=(-1, -1), max_frames=500)
@example(stage="warehouse", seed=17517, density=0.0, bots=(2, 8), max_frames=69)
def test_by_the_fair_rules_swapped_seats_play_the_same_match(
    stage: str, seed: int, density: float, bots: tuple[int, int], max_frames: int
) -> None:
    game = begun(stage, "fair", seed, bots, 10_000)
    other = begun(stage, "fair", seed, bots[::-1], 10_000)
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
    """Makes the matches of `other`, which have just begun, the mirror images of those of `game`."""
    other._players_N2[:], other._matches_N[:] = game._players_N2, game._matches_N
    for name in ("x", "side", "facing", "last_x"):
        other._players_N2[name] *= -1
    other._matches_N["weapons"] = game._matches_N["weapons"][:, [1, 0, *range(2, PLACES)]]


@pytest.mark.parametrize("bot", ["external", *SYMMETRIC_BOTS])
def test_on_the_flat_stage_a_match_and_its_mirror_image_are_played_alike(bot: str) -> None:
    n = 24
    game, image = (BrawlGame(n, stage="flat", rules="fair", max_frames=10_000) for _ in range(2))
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


def struck_together(by: str) -> tuple[float, ...]:
    """The damage of two who strike each other in the same frame."""
    arena = Arena(rules=by)
    arena.put(0, 4.0, RIGHT_GROUND_Y)
    arena.put(1, 4.8, RIGHT_GROUND_Y, facing=-1)
    arena.play("D J", "A J")
    arena.play(frames=25)
    return arena.of(0, "damage"), arena.of(1, "damage")


def test_of_two_blows_in_one_frame_that_of_seat_0_counts_and_by_the_fair_rules_both() -> None:
    assert struck_together("ai2") == (0, 13)
    assert struck_together("fair") == (13, 13)


@pytest.mark.parametrize("keys", ["space", "A D space", "A D J"])
def test_in_the_air_keys_without_a_direction_turn_to_the_left_but_by_the_fair_rules(
    keys: str,
) -> None:
    facing = []
    for by in RULES:
        arena = Arena(rules=by)
        arena.put(0, 4.0, -3.0, grounded=False, facing=1)
        arena.play(keys)
        facing.append(arena.of(0, "facing"))
    assert facing == [-1, 1]


def test_both_directions_pressed_in_one_frame_count_as_right_then_left_but_by_the_fair_rules() -> (
    None
):
    """A turn that ends while both are held goes the way that was pressed last."""
    ended = []
    for by in RULES:
        arena = Arena(rules=by)
        arena.put(0, 4.5, RIGHT_GROUND_Y, facing=1)
        arena.play("A")
        arena.put(0, 4.5, RIGHT_GROUND_Y, facing=1, state=rules.TURNAROUND, state_left=0)
        arena.play("A D")
        ended.append(arena.of(0, "state"))
    assert ended == [rules.WALKING, rules.STANDING]


def test_who_is_knocked_out_can_be_hit_but_by_the_fair_rules() -> None:
    hits = []
    for by in RULES:
        arena = Arena(rules=by)
        arena.put(1, 0.0, 8.2, grounded=False, stocks=3)
        arena.play()
        arena.put(0, 0.0, 7.8, grounded=False)
        arena.play("J")
        for _ in range(15):
            arena.game._players_N2[0, 0]["y"] = 7.8
            arena.play()
        hits.append(arena.stat("hits"))
        arena.put(0, 4.0, RIGHT_GROUND_Y)
        arena.play(frames=90)
        assert arena.fields(1, "damage", "stocks", "stun_left") == (0, 2, 0)
        assert arena.of(1, "state") != rules.KO
    assert hits[0] > hits[1] == 0


def test_a_box_cut_to_whole_units_reaches_further_but_by_the_fair_rules() -> None:
    hits = []
    for by in RULES:
        arena = Arena(rules=by)
        arena.put(0, 4.0, RIGHT_GROUND_Y)
        arena.play("S J")
        for _ in range(16):
            arena.put(1, 4.8, RIGHT_GROUND_Y - 0.6, grounded=False)
            arena.play()
        hits.append(arena.stat("hits"))
    assert hits == [1, 0]


def test_a_stage_or_rules_of_no_known_name_are_refused() -> None:
    with pytest.raises(ConfigError, match="unfair"):
        BrawlGame(1, rules="unfair")
    with pytest.raises(ConfigError, match="round"):
        BrawlGame(1, stage="round")
