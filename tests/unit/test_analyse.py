"""The analysis of a league: the Nash support, and who retires last."""

import json
from dataclasses import replace

from league.players import Event, Player, PlayerKind, PlayerState
from league.stats.ratings import RatingTable
from matchmaker.acts.analyse import (
    FIRST_MATCHES,
    GROWTH,
    first_to_retire,
    is_due,
    nash_of,
)
from matchmaker.state.analysis import NO_ANALYSIS, Analysis, analysis_of

RING = ("rock@1", "paper@1", "scissors@1")


def snapshot(name, **changes):
    return replace(Player(name=name, game="brawl", kind=PlayerKind.SNAPSHOT), **changes)


def bot(name):
    return Player(name=name, game="brawl", kind=PlayerKind.BOT)


def played(rates, games=60):
    """Win rates by player and opponent, played without chance."""
    table = RatingTable()
    for name, row in rates.items():
        for column, rate in row.items():
            for game in range(games):
                won = int((game + 1) * rate) > int(game * rate)
                table.fold(name, column, float(won))
    return table


def supporting(players, table):
    return list(nash_of(players, table))


def ring(*names):
    return {one: {names[place - 1]: 1.0} for place, one in enumerate(names)}


def test_the_members_of_a_cycle_are_in_the_support_and_players_that_lose_to_all_are_not():
    table = played({name: row | {"weak@1": 1.0} for name, row in ring(*RING).items()})
    assert supporting(map(snapshot, [*RING, "weak@1"]), table) == list(RING)


def test_the_only_answer_to_a_player_is_in_the_support_however_weak_otherwise():
    """`old` loses to all but `odd`, which beats all others."""
    strong = {"strong@1": 1.0, "strong@2": 1.0}
    rates = {"odd@1": strong, "old@1": {"odd@1": 1.0}} | {n: {"old@1": 1.0} for n in strong}
    found = supporting(map(snapshot, [*strong, "odd@1", "old@1"]), played(rates))
    assert {"odd@1", "old@1"} <= set(found)


def test_bots_and_retired_snapshots_do_not_count():
    table, players = played(ring(*RING)), [snapshot(name) for name in RING]
    assert supporting(players, table) == list(RING)
    retired = snapshot(RING[2], state=PlayerState.RETIRED)
    for other in (bot(RING[2]), retired):
        assert supporting([*players[:2], other], table) == ["paper@1"]
    assert supporting(players, RatingTable()) == []


def test_the_support_retires_last_and_milestones_and_the_newest_never():
    steps = [snapshot(f"main@{step}", milestone=step == 2) for step in range(1, 7)]
    support = {"main@1", "main@4", "main@6"}
    order = [player.name for player in first_to_retire(steps, support)]
    assert order == ["main@3", "main@5", "main@1", "main@4"]
    plain = [player.name for player in first_to_retire(steps, ())]
    assert plain == ["main@1", "main@3", "main@4", "main@5"]


def test_it_is_due_when_the_clean_matches_have_grown():
    last = Analysis(1000)
    assert not is_due(NO_ANALYSIS, FIRST_MATCHES - 1)
    assert is_due(NO_ANALYSIS, FIRST_MATCHES)
    assert not is_due(last, int(GROWTH * 1000) - 1)
    assert is_due(last, int(GROWTH * 1000) + 1)


def test_an_analysis_is_read_from_its_event():
    data = {"matches": 90, "clusters": [["a", "c"]], "support": ["b"]}  # older logs had clusters
    event = Event(position=9, at=0.0, kind="analysis", text="", data_json=json.dumps(data))
    assert analysis_of(event) == Analysis(90, frozenset({"b"}))  # they had no shares
    shares = {"a": 0.0, "b": 1.0}
    event = replace(event, data_json=json.dumps(data | {"shares": shares}))
    assert analysis_of(event) == Analysis(90, frozenset({"b"}), shares)
