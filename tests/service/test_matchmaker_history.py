"""The books after a restart, from any checkpoint, and as they were."""

import json
from contextlib import contextmanager
from dataclasses import replace

import pytest
from ratings_league import BOTS, books, pair, random_outcome, train
from small_league import small_league, snapshot

from league.errors import InvalidInput
from league.players import Book
from league.rpc.client import MatchmakerClient
from matchmaker.api.server import MatchmakerServer
from matchmaker.state import aggregates, history
from matchmaker.state.books import MARK_KINDS, Books, marks_of
from matchmaker.store.sqlite import SqliteStore


@pytest.fixture
def league(tmp_path):
    with small_league(tmp_path, mixes=BOTS) as made:
        yield made


def lived(league, seed=9):
    """A life with everything in it that ratings depend on."""
    incarnation = league.open()
    train(league, incarnation, 20, step=10_000)
    league.client.register_players([snapshot(10_000, parent="main@2000")])
    league.client.pin_rating("random", 12.0, "operator")
    train(league, incarnation, 15, random_outcome(seed), step=40_000)
    league.client.register_players([snapshot(40_000, parent="main@2000")])
    pair(league, "main@40000", "random", 5)
    incarnation = league.open(checkpoint=25)
    train(league, incarnation, 5, random_outcome(seed + 1), step=30_000)
    league.client.unpin_rating("random", "operator")
    train(league, incarnation, 5, step=50_000)
    league.client.pin_rating("based", 30.0, "operator")


def test_reopened_it_shows_the_same_bits_and_goes_on_as_if_it_had_never_stopped(tmp_path):
    with (
        small_league(tmp_path / "one", mixes=BOTS) as one,
        small_league(tmp_path / "two", mixes=BOTS) as two,
    ):
        lived(one)
        lived(two)
        before = books(one).state()
        train(two, two.open(checkpoint=two.client.status().log_position), 10, step=80_000)
        after = {book: two.client.ratings(book) for book in Book}
    with small_league(tmp_path / "one", snapshots=(), mixes=BOTS) as one:
        assert books(one).state()["tables"] == before["tables"]
        train(one, one.open(checkpoint=one.client.status().log_position), 10, step=80_000)
        numbers = {
            book: [(r.player.name, r.mu, r.sigma) for r in one.client.ratings(book)]
            for book in Book
        }
        assert numbers == {
            b: [(r.player.name, r.mu, r.sigma) for r in rs] for b, rs in after.items()
        }


def test_from_a_checkpoint_at_any_place_the_books_come_out_the_same(league):
    lived(league)
    with league.server.store.read() as reader:
        rows, marks = list(reader.results()), marks_of(reader.events_of(*MARK_KINDS))
        whole = Books.of_log(rows, marks).state()
        for place in range(0, len(rows) + 1, 4):
            position = rows[place - 1].position if place else 0
            part = Books.of_log(rows[:place], [m for m in marks if m.log_position < position])
            again = Books.restored(json.loads(json.dumps(part.state())))
            again.follow(rows, marks)  # what it holds already is passed over
            assert again.state()["tables"] == whole["tables"], f"behind result {position}"


def test_the_league_as_it_was(tmp_path):
    moments, kept = {}, []
    with small_league(tmp_path, mixes=BOTS) as league:

        def remember():
            league.clock.advance(60.0)
            shown = {book: league.client.ratings(book) for book in Book}
            moments[league.clock.now()] = (
                shown,
                league.client.payoff(Book.TRAIN),
                league.client.anchors(),
            )
            moments[league.clock.now()] += (
                league.client.players(),
                league.client.status().log_position,
            )
            kept.append(aggregates.keep(league.server.league, 1))
            league.clock.advance(60.0)

        incarnation = league.open()
        train(league, incarnation, 10, step=10_000)
        remember()
        league.client.pin_rating("random", 12.0, "operator")
        train(league, incarnation, 5, random_outcome(1), step=40_000)
        league.client.register_players([snapshot(40_000, parent="main@2000")])
        remember()
        incarnation = league.open(checkpoint=10)
        remember()
        train(league, incarnation, 5, step=50_000)
        pair(league, "main@40000", "random", 2)
        league.client.register_players(
            [replace(snapshot(40_000, parent="main@2000"), milestone=True)]
        )
        remember()
    for at, (shown, payoff, anchors, players, position) in moments.items():
        with past(tmp_path, repr(at)) as view:
            assert {b: view.tables[b].leaderboard(view.players) for b in Book} == shown
            assert view.tables[Book.TRAIN].payoff.cells() == payoff
            assert view.tables[Book.TRAIN].anchors() == anchors
            assert list(view.players.values()) == players
            assert view.log_position == position
    assert sum(kept) >= 3
    store = SqliteStore(tmp_path / "league.db", read_only=True)
    with store.read() as reader:
        assert aggregates.before(reader, 10**9, 10**9).log_position > 10
        last = max(row.event_position for row in reader.aggregates())
        assert aggregates.before(reader, 10**9, last - 1).log_position < position, (
            "nothing of later"
        )
    store.close()
    first = next(iter(moments.values()))
    with past(tmp_path, "10") as view:
        assert {b: view.tables[b].leaderboard(view.players) for b in Book} == first[0]
        assert list(view.players.values()) == first[3]


@contextmanager
def past(folder, at):
    with MatchmakerServer(folder / "league.db", read_only=True, at=at) as server:
        yield server.league.view


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("yesterday", "'yesterday' is no moment: give a time as 2026-11-21T14:00"),
        ("-5", "'-5' is no moment"),
        ("21", "there is no log position 21: the log holds 1 to 20"),
        ("2001-10-01", "2001-10-01 is before the league began"),
    ],
)
def test_moments_that_are_none(tmp_path, words, says):
    with small_league(tmp_path, mixes=BOTS) as league:
        train(league, league.open(), 20)
        with league.server.store.read() as reader, pytest.raises(InvalidInput, match=says):
            history.moment_of(reader, words)


def test_times_are_utc_unless_they_say_otherwise(tmp_path):
    with small_league(tmp_path, mixes=BOTS) as league:
        league.clock.advance(2_000_000_000.0)
        train(league, league.open(), 1)
        with league.server.store.read() as reader:
            for words in (
                "2040-01-01T12:00",
                "2040-01-01T12:00Z",
                "2040-01-01T14:00+02:00",
                "2209032000",
            ):
                assert history.moment_of(reader, words).at == 2209032000.0


def test_the_past_is_for_reading(tmp_path):
    with small_league(tmp_path):
        pass
    with pytest.raises(InvalidInput, match="the past can't be changed: add --read-only"):
        MatchmakerServer(tmp_path / "league.db", at="0")


def test_who_only_looks_sees_the_mix_that_was_drawn_by(tmp_path):
    """Not that of settings which nobody gave; and the one of then, not the newest."""
    for weight in (3.0, 1.0):
        with small_league(tmp_path, mixes={"league": {"random": weight, "based": 1.0}}) as league:
            incarnation = league.open()
            league.play(incarnation, 5)
            league.client.heartbeat(incarnation, 1, 1, "league")
    for at, share in ((None, 0.5), ("4", 0.75)):
        with (
            MatchmakerServer(tmp_path / "league.db", read_only=True, at=at) as server,
            MatchmakerClient(server.address, wait_seconds=5) as client,
        ):
            told = {one.category: one.configured for one in client.status().shares}
            assert told == {"random": pytest.approx(share), "based": pytest.approx(1.0 - share)}
