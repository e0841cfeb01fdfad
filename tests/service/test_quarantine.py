"""Players in quarantine: they are not drawn, nothing is lost, and a release restores them."""

import re

import pytest
from ratings_league import pair
from small_league import played, report, small_league

from league.errors import InvalidInput, NotFound, Refused
from league.players import Book, Pairing, Player, PlayerKind, PlayerState
from league.rpc.client import MatchmakerClient
from matchmaker.store.copies import player_states
from matchmaker.tools.fsck import full_scan

MIX = {"league": {"snapshots": 1.0, "based": 1.0}}
ACTIVE, RETIRED, QUARANTINED = PlayerState.ACTIVE, PlayerState.RETIRED, PlayerState.QUARANTINED


@pytest.fixture
def league(tmp_path):
    with small_league(tmp_path, mixes=MIX) as made:
        yield made


def state(client: MatchmakerClient, name: str) -> PlayerState:
    return next(player.state for player in client.players() if player.name == name)


def met(league, incarnation: int, count: int = 60) -> set[str]:
    assignments, _, _ = league.play(incarnation, count)
    return {player.name for match in assignments for player in match.seats} - {"main"}


def test_nobody_meets_it_until_it_is_released(league):
    incarnation = league.open()
    assert met(league, incarnation) == {"main@1000", "main@2000", "based"}
    assert league.client.quarantine("main@1000", "stands still", "anna@desk") is QUARANTINED
    assert met(league, incarnation) == {"main@2000", "based"}
    league.client.quarantine("based", "its file is another's", "anna@desk")
    assert met(league, incarnation) == {"main@2000"}, (
        "the share of an empty category goes to the others"
    )
    assert league.client.players(states=[QUARANTINED]) == [
        player for player in league.client.players() if player.name in ("main@1000", "based")
    ]
    assert league.client.release_player("based", "bert@desk") is ACTIVE
    assert league.client.release_player("main@1000", "bert@desk") is ACTIVE
    assert met(league, incarnation) == {"main@1000", "main@2000", "based"}
    with league.server.store.read() as reader:
        told = reader.events_of("player_quarantined", "player_released")
    words = [
        "anna@desk .*main@1000 .*: stands still",
        "anna@desk .*based .*: its file is another's",
        "bert@desk .*based .*active",
        "bert@desk .*main@1000 .*active",
    ]
    assert all(re.match(*pair) for pair in zip(words, [e.text for e in told], strict=True))


def test_its_results_stay_and_a_match_under_way_counts(league):
    incarnation = league.open()
    league.play(incarnation, 40)
    pair(league, "main@1000", "based", 4)
    before = league.client.payoff(Book.EVAL), league.client.ratings()
    under_way = league.client.acquire_matches(incarnation, 30, "league")
    league.client.quarantine("main@1000", "stands still", "anna")
    after = league.client.payoff(Book.EVAL), league.client.ratings()
    assert before[0] == after[0]
    assert [(r.player.name, r.mu) for r in before[1]] == [(r.player.name, r.mu) for r in after[1]]
    assert any("main@1000" in [p.name for p in match.seats] for match in under_way)
    assert all(verdict.accepted for verdict in report(league, incarnation, *map(played, under_way)))
    evaluator = league.client.open_incarnation("evaluator-0").number
    wanted = Pairing(player="main@1000", opponent="based", pairs=1, book=Book.EVAL, seed=1)
    with pytest.raises(Refused, match="main@1000"):
        league.client.acquire_pairings(evaluator, [wanted])


def test_released_it_is_what_it_would_be_without(tmp_path):
    """A player that was retired before is retired again, also after a restart."""
    with small_league(tmp_path, snapshots=(1000, 2000, 3000), mixes=MIX, max_saved=2) as league:
        assert state(league.client, "main@1000") is RETIRED
        league.client.quarantine("main@1000", "doubtful", "anna")
        league.client.quarantine("main@2000", "doubtful", "anna")
        assert state(league.client, "main@1000") is QUARANTINED
    with small_league(tmp_path, snapshots=(), mixes=MIX, max_saved=2) as league:
        assert state(league.client, "main@1000") is QUARANTINED
        assert league.client.release_player("main@1000", "anna") is RETIRED
        assert league.client.release_player("main@2000", "anna") is ACTIVE
        assert met(league, league.open()) == {"main@2000", "main@3000", "based"}


def test_the_league_as_it_was_has_them_in_the_state_of_then(league):
    league.client.quarantine("based", "doubtful", "anna")
    league.client.release_player("based", "anna")
    with league.server.store.read() as reader:
        put, out = reader.events_of("player_quarantined", "player_released")
        seen = [
            player_states(reader, position)["based"][0]
            for position in (put.position - 1, put.position, out.position)
        ]
    assert seen == [ACTIVE, QUARANTINED, ACTIVE]


def test_a_state_that_no_event_tells_of_is_found(tmp_path):
    with small_league(tmp_path, mixes=MIX, whole=False) as league:
        with league.server.store.read() as reader:
            assert full_scan(reader) == []
        league.client.quarantine("based", "doubtful", "anna")
        with league.server.store.write() as tx:
            tx.update_player(Player(name="based", game="brawl", kind=PlayerKind.BOT))
        with league.server.store.read() as reader:
            (finding,) = full_scan(reader)
            assert "based" in finding


def test_what_can_not_be_put_there_is_one_sentence(league):
    client = league.client
    for name, reason, error, words in (
        ("nobody", "x", NotFound, "'nobody'.*bin/league players"),
        (
            "main",
            "x",
            InvalidInput,
            "main",
        ),
        ("based", " ", InvalidInput, "based"),
    ):
        with pytest.raises(error, match=words):
            client.quarantine(name, reason, "anna")
    with pytest.raises(InvalidInput, match=r"based .*active"):
        client.release_player("based", "anna")
    client.quarantine("based", "x", "anna")
    with pytest.raises(InvalidInput, match="based"):
        client.quarantine("based", "x", "anna")
    assert [p.name for p in client.players(states=[QUARANTINED])] == ["based"]
