"""How moves are chosen and what a hit does; the table's figures are in test_brawl_figures.py."""

from __future__ import annotations

import pytest
from arena import RIGHT_GROUND_Y, Arena
from move_table import TABLE, begun

from league.games.brawl import moves, rules
from league.games.brawl.hits import knockback_speed
from league.games.brawl.moves import UNARMED


@pytest.mark.parametrize("facing", [1, -1])
@pytest.mark.parametrize("damage", [0.0, 150.0])
def test_a_hit_adds_its_knockback_and_stuns(facing: int, damage: float) -> None:
    arena = Arena()
    arena.put(0, 5.0, RIGHT_GROUND_Y, facing=facing)
    arena.put(1, 5.0 + 0.6 * facing, RIGHT_GROUND_Y, damage=damage)
    arena.play("D K" if facing > 0 else "A K")
    arena.play(frames=11)
    x = damage + 18
    speed = 0.096 * (45 + 55 * (x / 70 + x * x / 12000))
    assert arena.of(1, "vx") == pytest.approx(facing * speed)
    assert (arena.of(1, "state"), arena.of(1, "stun_left"), arena.of(1, "damage")) == (
        rules.STUN,
        9,
        x,
    )


@pytest.mark.parametrize("name", ["DLight", "SSig"])
def test_a_stunned_player_does_nothing_for_as_many_frames_as_the_move_says(name: str) -> None:
    arena = begun(UNARMED, name)
    while arena.of(1, "stun_left") == 0:
        arena.put(1, arena.of(0, "x") + 0.3, arena.of(0, "y"), grounded=False)
        arena.play()
    frames = 0
    while True:
        arena.play("", "space" if frames % 2 else "")
        if arena.of(1, "state") != rules.STUN:
            break
        frames += 1
    assert frames == TABLE[UNARMED, name].stuns[-1]


def test_the_jab_goes_on_only_when_it_hits() -> None:
    arena = begun(UNARMED, "NLight")
    arena.play(frames=6)
    arena.put(1, arena.of(0, "x") + 0.3, RIGHT_GROUND_Y)
    arena.play(frames=8)
    assert arena.stat("hits") == 0


def test_a_dodge_is_not_hit() -> None:
    arena = begun(UNARMED, "SLight")
    while arena.of(0, "state") == rules.ATTACK:
        arena.put(1, arena.of(0, "x") + 0.3, RIGHT_GROUND_Y, state=rules.DODGE, state_left=9)
        arena.play()
    assert arena.stat("hits") == 0


def test_a_trade_hits_both() -> None:
    arena = Arena()
    arena.put(0, 4.0, RIGHT_GROUND_Y)
    arena.put(1, 4.6, RIGHT_GROUND_Y, facing=-1)
    arena.play("K", "K")
    arena.put(0, 4.4, RIGHT_GROUND_Y, state=rules.ATTACK)
    arena.put(1, 4.6, RIGHT_GROUND_Y, facing=-1, state=rules.ATTACK)
    arena.play(frames=10)
    assert (arena.stat("hits", 0), arena.stat("hits", 1)) == (1, 1)
    assert (arena.of(0, "damage"), arena.of(1, "damage")) == (20, 20)


def test_a_grounded_player_hit_downward_bounces() -> None:
    arena = Arena()
    arena.put(1, 4.0, RIGHT_GROUND_Y)
    arena.put(0, 4.0, RIGHT_GROUND_Y - 1.6, grounded=False)
    arena.play("S K")
    while arena.stat("hits") == 0:
        arena.play()
    assert arena.of(1, "vy") == pytest.approx(-0.7 * knockback_speed(17.0, 48.0, 46.0), rel=0.15)


def test_recovery_is_spent_and_missed() -> None:
    arena = Arena()
    arena.put(0, 4.0, -3.0, grounded=False, recoveries=1)
    arena.play("K")
    assert (arena.of(0, "move"), arena.of(0, "recoveries")) == (moves.RECOVERY, 0)
    arena.put(0, 4.0, -3.0, grounded=False, recoveries=0, move=0)
    arena.play("K")
    assert arena.of(0, "move") == moves.NO_MOVE
