"""Who retires last: the snapshots in the Nash support, when they are looked for, who stands
behind whom.
"""

import json
from dataclasses import replace

import pytest

from league.players import Event, Player, PlayerKind, PlayerState
from league.stats.ratings import RatedGame, RatingTable
from matchmaker.acts.support import (
    FIRST_MATCHES,
    GROWTH,
    MOST_PLAYERS,
    NO_SUPPORT,
    Support,
    first_to_retire,
    is_due,
    newest_support,
    supporting,
)

RING = ("rock@1", "paper@1", "scissors@1")


def snapshot(name, **changes):
    return replace(Player(name=name, game="brawl", kind=PlayerKind.SNAPSHOT), **changes)


def bot(name, **changes):
    return replace(Player(name=name, game="brawl", kind=PlayerKind.BOT), **changes)


def table_of(*beaten, games=60):
    """Of pairs (winner, loser), each met so often."""
    table = RatingTable()
    for winner, loser in beaten:
        for game in range(games):
            seats = (winner, loser, 1.0) if game % 2 else (loser, winner, 0.0)
            table.fold(RatedGame(*seats))
    return table


def ring(*names):
    return [(one, names[place - 1]) for place, one in enumerate(names)]


def test_the_members_of_a_cycle_have_mass_and_who_all_of_them_beat_has_none():
    weak = [(name, "weak@1") for name in RING]
    found = supporting(map(snapshot, [*RING, "weak@1"]), table_of(*ring(*RING), *weak))
    assert found == list(RING)


def test_the_only_answer_to_somebody_has_mass_however_weak_otherwise():
    """`old` loses to everybody but `odd`, who beats everybody else."""
    strong = ("strong@1", "strong@2")
    beaten = [("odd@1", name) for name in strong] + [(name, "old@1") for name in strong]
    found = supporting(
        map(snapshot, [*strong, "odd@1", "old@1"]), table_of(*beaten, ("old@1", "odd@1"))
    )
    assert {"odd@1", "old@1"} <= set(found)


def test_bots_that_are_no_secret_count_but_never_as_names():
    players = [*map(snapshot, RING[:2]), bot(RING[2])]
    assert supporting(players, table_of(*ring(*RING))) == list(RING[:2])
    players[2] = bot(RING[2], held_out=True)
    assert supporting(players, table_of(*ring(*RING))) == ["paper@1"]  # who beats rock


@pytest.mark.parametrize(
    "state", [PlayerState.RETIRED, PlayerState.QUARANTINED, PlayerState.CANDIDATE]
)
def test_who_is_not_active_is_left_out(state):
    players = [snapshot(RING[0]), snapshot(RING[1]), snapshot(RING[2], state=state)]
    assert len(supporting(players, table_of(*ring(*RING)))) == 1


def test_without_clean_matches_nobody_has_mass():
    assert supporting(map(snapshot, RING), RatingTable()) == []


def test_the_newest_are_compared_where_there_are_too_many():
    names = [f"main@{step}" for step in range(MOST_PLAYERS + 1)]
    beaten = [(names[0], name) for name in names[1:]] + [(names[-1], name) for name in names[1:-1]]
    assert supporting(map(snapshot, names), table_of(*beaten, games=2)) == [names[-1]]


def test_the_support_retires_behind_the_others_and_milestones_and_the_newest_never():
    steps = [snapshot(f"main@{step}", milestone=step == 2) for step in range(1, 7)]
    support = Support(names=frozenset({"main@1", "main@4", "main@6"}))
    order = [player.name for player in first_to_retire(steps, support)]
    assert order == ["main@3", "main@5", "main@1", "main@4"]
    assert [p.name for p in first_to_retire(steps, NO_SUPPORT)] == [
        "main@1",
        "main@3",
        "main@4",
        "main@5",
    ]


def test_it_is_looked_for_when_a_lineage_is_full_and_the_clean_matches_have_grown():
    full = [snapshot("main@1"), snapshot("main@2")]
    last = Support(7, 1000)
    assert is_due(NO_SUPPORT, FIRST_MATCHES, full, 2)
    assert not is_due(NO_SUPPORT, FIRST_MATCHES - 1, full, 2)
    assert is_due(last, int(GROWTH * 1000) + 1, full, 2)
    assert not is_due(last, int(GROWTH * 1000) - 1, full, 2)
    assert not is_due(NO_SUPPORT, FIRST_MATCHES, full, 3)
    for other in (
        snapshot("second@1"),
        snapshot("main@3", state=PlayerState.RETIRED),
        bot("x"),
        None,
    ):
        assert not is_due(NO_SUPPORT, FIRST_MATCHES, [*full, *([other] if other else [])], 3)
    assert not is_due(NO_SUPPORT, FIRST_MATCHES, [], 2)


def test_the_newest_event_is_in_force():
    def event(position, names):
        data = json.dumps({"matches": 10 * position, "names": names})
        return Event(position=position, at=0.0, kind="nash_support", text="", data_json=data)

    found = newest_support([event(3, ["a@1"]), event(9, ["b@1", "b@2"])])
    assert found == Support(9, 90, frozenset({"b@1", "b@2"}))
    assert newest_support([]) == NO_SUPPORT
