"""Near-copies share the weight of one: whose rows are alike, what each has of a weight, when it
is due.
"""

import json

import pytest

from league.players import Event, Player, PlayerKind, PlayerState
from league.stats.ratings import RatedGame, RatingTable
from matchmaker.acts.clustering import (
    FIRST_MATCHES,
    GROWTH,
    NO_CLUSTERING,
    Clustering,
    is_due,
    near_copies,
    newest_clustering,
)


def snapshot(name, state=PlayerState.ACTIVE):
    return Player(name=name, game="brawl", kind=PlayerKind.SNAPSHOT, state=state)


def league(rates, games=60):
    """Rates by player and bot, played without chance."""
    table = RatingTable()
    for name, row in rates.items():
        for column, rate in row.items():
            for game in range(games):
                won = int((game + 1) * rate) > int(game * rate)
                table.fold(RatedGame(name, column, float(won)))
    return table


RATES = {
    "a@1": {"x": 0.9, "y": 0.2, "z": 0.5, "b@1": 0.5},
    "a@2": {"x": 0.1, "y": 0.8, "z": 0.5},
    "b@1": {"x": 0.9, "y": 0.2, "z": 0.5},
    "b@2": {"x": 0.9, "y": 0.8, "z": 0.9},
}


def test_rows_alike_are_near_copies():
    players = [snapshot(name) for name in RATES]
    assert near_copies(players, league(RATES), 0.1) == [["a@1", "b@1"]]
    assert near_copies(players, league(RATES), 0.01) == []  # 60 matches don't tell so exactly
    assert near_copies(players, league(RATES), 0.9) == [["a@1", "a@2", "b@1", "b@2"]]


def test_few_matches_make_no_copies():
    assert near_copies([snapshot(name) for name in RATES], league(RATES, games=4), 0.1) == []


def test_retired_and_unplayed_snapshots_and_others_are_not_compared():
    bot = Player(name="x", game="brawl", kind=PlayerKind.BOT)
    players = [snapshot("a@1"), snapshot("b@1", PlayerState.RETIRED), snapshot("c@1"), bot]
    assert near_copies(players, league(RATES), 0.1) == []
    assert near_copies([], RatingTable(), 0.1) == []


def test_a_league_without_clean_matches_has_no_copies():
    assert near_copies([snapshot(name) for name in RATES], RatingTable(), 0.1) == []


def test_a_clusters_weight_is_that_of_one_however_many_of_it_are_candidates():
    found = Clustering(7, 300, 0.1, {"a": 0, "b": 0, "c": 0, "x": 1, "y": 1})
    assert found.parts(["a", "new", "b", "c", "x"]) == pytest.approx([1 / 3, 1, 1 / 3, 1 / 3, 1])
    assert found.parts(["a", "b"]) == [0.5, 0.5]
    assert NO_CLUSTERING.parts(["a", "b"]) == [1.0, 1.0]


def test_it_is_looked_for_when_the_clean_matches_have_grown():
    last = Clustering(7, 1000, 0.1)
    assert not is_due(NO_CLUSTERING, FIRST_MATCHES - 1, 0.1)
    assert is_due(NO_CLUSTERING, FIRST_MATCHES, 0.1)
    assert not is_due(last, int(GROWTH * 1000) - 1, 0.1)
    assert is_due(last, int(GROWTH * 1000) + 1, 0.1)
    assert is_due(last, 1000, 0.05)  # another nearness is wanted


def test_the_newest_event_is_in_force():
    def event(position, clusters):
        data = json.dumps({"within": 0.1, "matches": 10 * position, "clusters": clusters})
        return Event(position=position, at=0.0, kind="clusters", text="", data_json=data)

    found = newest_clustering([event(3, [["a", "b"]]), event(9, [["a", "c"], ["d", "e"]])])
    assert found == Clustering(9, 90, 0.1, {"a": 0, "c": 0, "d": 1, "e": 1})
    assert newest_clustering([]) == NO_CLUSTERING
