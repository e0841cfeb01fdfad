"""Mixtures that have a name: who is in them, and that no player can have it."""

from __future__ import annotations

import pytest

from league.errors import InvalidName, NotFound
from league.evaluations import members_of
from league.ids import NASH, averaged_lineage, checked_player_name
from league.players import Player, PlayerKind, PlayerState, Role


def snapshot(name: str, state: PlayerState = PlayerState.ACTIVE, role: Role = Role.MAIN) -> Player:
    step = int(name.rpartition("@")[2])
    return Player(
        name=name, game="kuhn", kind=PlayerKind.SNAPSHOT, role=role, state=state, step=step
    )


def members(who: str, *players: Player, **nash: float) -> dict[str, float]:
    return members_of(who, lambda: players, lambda: nash)


def test_an_average_is_the_later_half_of_the_active_snapshots_in_equal_parts() -> None:
    steps = [snapshot(f"main@{step}") for step in (100, 20, 30, 9, 50)]
    other = snapshot("other@400")
    half = members("main@average", *steps, other)
    assert half == pytest.approx({"main@30": 1 / 3, "main@50": 1 / 3, "main@100": 1 / 3})
    assert members("main@average", *steps[:2], other) == {"main@100": 1.0}
    assert members("other@average", *steps, other) == {"other@400": 1.0}
    away = [snapshot(f"main@{s}", s_) for s, s_ in ((99, PlayerState.RETIRED),
            (98, PlayerState.QUARANTINED), (97, PlayerState.CANDIDATE))]  # fmt: skip
    assert members("main@average", *away, steps[0]) == {"main@100": 1.0}
    assert members("first:main@average", snapshot("first:main@7")) == {"first:main@7": 1.0}
    with pytest.raises(NotFound, match="main"):
        members("main@average", *away, other)


def test_named_mixtures_are_parts_of_others() -> None:
    found = members("main@average=1,league@nash=2,based=1", snapshot("main@1"), based=0.75, b=0.25)
    assert found == pytest.approx({"main@1": 0.25, "based": 0.625, "b": 0.125})
    with pytest.raises(NotFound, match=NASH):
        members("league@nash", snapshot("main@1"))


def test_no_player_can_have_the_name_of_a_mixture() -> None:
    for name in ("main@average", "first:main@average", NASH):
        with pytest.raises(InvalidName):
            checked_player_name(name)
    assert [averaged_lineage(name) for name in ("main@average", "main@5", "main", NASH)] == [
        *("main", "", "", "")
    ]
