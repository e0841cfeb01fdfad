"""Ratings follow the log: epochs, anchors, inheritance, lost branches, whatever happens to the
process.
"""

import json
import re
from dataclasses import replace

import pytest
from ratings_league import BOTS, at_step, belief, books, many, pair, train
from small_league import learner_wins, paid, played, report, small_league, snapshot

from league.errors import InvalidInput, NotFound
from league.players import Book, Pairing
from league.stats.ratings import NEWCOMER, Drift, Link
from league.stats.ratings.table import FIRST_GAMES, PRIOR_GAMES
from matchmaker.state.books import Books


@pytest.fixture
def league(tmp_path):
    with small_league(tmp_path, mixes=BOTS) as made:
        yield made


@pytest.mark.parametrize(
    ("outcome", "first", "second"),
    [(1.0, (29.396, 7.171), (20.604, 7.171)), (0.5, (25.0, 6.457), (25.0, 6.457))],
)
def test_the_known_numbers_come_out_of_the_service(league, outcome, first, second):
    """A draw probability, τ or β in another's place gives others."""
    evaluator = league.client.open_incarnation("evaluator-0").number
    pairing = Pairing(player="main@1000", opponent="based", pairs=1, book=Book.EVAL, seed=1)
    match = league.client.acquire_pairings(evaluator, [pairing])[0]
    report(league, evaluator, played(match, outcome))
    board = {rating.player.name: rating for rating in league.client.ratings()}
    for seat, expected in zip(match.seats, (first, second), strict=True):
        rating = board[seat.name]
        assert (round(rating.mu, 3), round(rating.sigma, 3)) == expected


def test_a_draw_that_pays_a_rounding_error_is_no_stake(league):
    incarnation = league.open()
    won, drawn = league.client.acquire_matches(incarnation, 2, "one")
    report(league, incarnation, paid(won, 2.5))
    report(league, incarnation, replace(paid(drawn, 1e-15), outcome=0.5))
    assert league.server.league.view.tables[Book.TRAIN].recent.stake == 5.0


def test_a_payoff_beyond_the_games_largest_is_refused(tmp_path):
    """It would make all other payoffs look like nothing."""
    with small_league(tmp_path, mixes=BOTS, largest_payoff=2.0) as league:
        incarnation = league.open()
        for payoff, accepted in ((2.0, True), (-2.0, True), (1e9, False), (-2.1, False)):
            (match,) = league.client.acquire_matches(incarnation, 1, "one")
            (verdict,) = report(league, incarnation, paid(match, payoff))
            assert verdict.accepted is accepted
            assert accepted or f"{payoff:g}" in verdict.reason


def test_clean_ratings_follow_payoffs_and_recompute_to_the_same_bits(league):
    evaluator = league.client.open_incarnation("evaluator-0").number
    pairing = Pairing(player="main@1000", opponent="based", pairs=20, book=Book.EVAL, seed=1)
    for number, match in enumerate(league.client.acquire_pairings(evaluator, [pairing])):
        payoff = -9.0 if number % 4 == 3 else 1.0  # it wins three of four
        mine = match.seats[0].name == "main@1000"
        report(league, evaluator, paid(match, payoff if mine else -payoff))
    board = [rating.player.name for rating in league.client.ratings()]
    assert board == ["based", "main@1000"]
    (cell,) = league.client.payoff(rows=["main@1000"])
    assert (cell.games, cell.wins, cell.paid) == (40, 30, -60.0)
    assert league.recomputed()[Book.EVAL].state() == (
        league.server.league.view.tables[Book.EVAL].state()
    )


def test_an_epoch_measures_draws_and_link_and_recomputes_to_the_same_bits(league):
    incarnation = league.open()
    many(league, incarnation, FIRST_GAMES - 1)
    league.server.sweep()
    assert belief_epoch(league).draw_probability == 0.1, "it is not due yet"
    many(league, incarnation, 1)
    league.server.sweep()
    epoch = belief_epoch(league)
    assert epoch.games == epoch.after_position == FIRST_GAMES
    assert epoch.draw_probability == pytest.approx(0.4, abs=0.05)
    assert epoch.link != Link(), "these results have nothing to do with strength"
    league.server.sweep()
    with league.server.store.read() as reader:
        epochs = [json.loads(event.data_json) for event in reader.events_of("rating_epoch")]
    (measured,) = [data for data in epochs if "sharpness" in data]
    assert (measured["book"], measured["games"]) == ("train", FIRST_GAMES)
    many(league, incarnation, 30, seed=4)
    with league.server.store.read() as reader:
        assert Books.of(reader).state()["tables"] == books(league).state()["tables"]


def belief_epoch(league, book=Book.TRAIN):
    return league.server.league.view.tables[book].epoch


def test_results_lost_after_an_epoch_leave_its_numbers_and_the_next_one_measures_anew(league):
    incarnation = league.open()
    many(league, incarnation, FIRST_GAMES + 200)
    league.server.sweep()
    before = belief_epoch(league)
    incarnation = league.open(checkpoint=FIRST_GAMES - 100)
    after = belief_epoch(league)
    assert (after.draw_probability, after.link) == (before.draw_probability, before.link)
    assert after.games == FIRST_GAMES - 100, "it held so many of those that count"
    for _ in range(2):
        league.play(incarnation, 300, mix="one")
    league.server.sweep()
    assert belief_epoch(league).games == FIRST_GAMES + 500
    expected = PRIOR_GAMES * before.draw_probability / (600 + PRIOR_GAMES)
    assert belief_epoch(league).draw_probability == pytest.approx(expected), (
        "nothing was drawn since"
    )


def test_a_snapshot_begins_as_its_learner_stands_and_stays_then(league):
    incarnation = league.open()
    train(league, incarnation, 10, step=20_000)
    main = belief(league, "main")
    league.client.register_players([snapshot(60_000, parent="main@2000")])
    child = belief(league, "main@60000")
    assert child.mu == main.mu
    assert child.sigma**2 == pytest.approx(
        main.sigma**2 + Drift().variance(20_000, 60_000), abs=1e-9
    )
    train(league, incarnation, 10, step=100_000)
    assert belief(league, "main@60000") == child, "the learner went on, it did not"
    pair(league, "main@60000", "based", 5)
    pair(league, "main@60000", "based", 5, book=Book.GREEDY)
    clean = belief(league, "main@60000", Book.EVAL)
    league.client.register_players([snapshot(90_000, parent="main@60000")])
    heir = belief(league, "main@90000", Book.EVAL)
    assert (heir.mu, heir.sigma > clean.sigma) == (clean.mu, True), (
        "no learner plays in the clean book"
    )
    assert belief(league, "main@90000", Book.GREEDY) == NEWCOMER, (
        "likelier keys are another player's"
    )
    assert "main@90000" not in [r.player.name for r in league.client.ratings()]


def test_a_result_is_credited_to_who_played_and_a_late_one_does_not_turn_back_the_learner(league):
    """Not to the version that is current when the result comes in."""
    incarnation = league.open()
    old = league.client.acquire_matches(incarnation, 1, "one")[0]
    evaluator = league.client.open_incarnation("evaluator-0").number
    pairing = Pairing(player="main@1000", opponent="main@2000", pairs=1, book=Book.EVAL, seed=1)
    clean = league.client.acquire_pairings(evaluator, [pairing])
    train(league, incarnation, 5, step=90_000)
    league.client.register_players([snapshot(90_000, parent="main@2000")])
    report(league, evaluator, *(played(match, 1.0) for match in clean))
    assert {r.player.name for r in league.client.ratings()} == {"main@1000", "main@2000"}
    before = belief(league, "main")
    report(league, incarnation, at_step(played(old, learner_wins(old)), 5_000))
    assert belief(league, "main").sigma < before.sigma, "weights of before add no drift"
    assert belief(league, "main@90000").mu == before.mu


def test_a_clean_book_sums_what_each_player_did_in_its_matches(league):
    """A failed match and one of a gate are not among them."""
    evaluator = league.client.open_incarnation("evaluator-0").number
    pairing = Pairing(player="main@1000", opponent="based", pairs=2, book=Book.EVAL, seed=1)
    matches = league.client.acquire_pairings(evaluator, [pairing])
    for place, (match, outcome) in enumerate(zip(matches, (1.0, 0.0, 1.0, 0.5), strict=True)):
        result = played(match, outcome, frames=100 * (place + 1))
        seats = [
            replace(seat, stats={"damage": place + 0.5 if seat.player == "based" else 8.0 * place})
            for seat in result.seats
        ]
        failed = place == 2
        report(league, evaluator, replace(result, seats=tuple(seats), failed=failed))
    asked = {"rows": ["main@1000", "based"], "with_stats": True}
    (its,), (mine,) = (
        [cell for cell in league.client.payoff(**asked) if cell.row == name]
        for name in ("based", "main@1000")
    )
    assert (mine.wins, mine.draws, mine.losses) == (2, 1, 0)
    assert (mine.seat0_wins, mine.seat0_games, mine.frames) == (1, 1, 700)
    assert mine.means == {"damage": (0.0 + 8.0 + 24.0) / 3}
    assert (its.wins, its.seat0_wins, its.seat0_games) == (0, 0, 2)
    assert (its.frames, its.means) == (700, {"damage": (0.5 + 1.5 + 3.5) / 3})
    (plain,) = league.client.payoff(rows=["main@1000"])
    assert (plain.games, plain.frames, plain.means) == (3, 0, {})


def test_a_climb_counts_a_learners_matches_by_what_it_had_last_frozen(tmp_path):
    with small_league(tmp_path, snapshots=(), mixes=BOTS | {"self": {"self": 1.0}}) as league:
        incarnation = league.open()
        train(league, incarnation, 2, step=500)
        train(league, incarnation, 1, step=500, mix="self")
        begun = league.client.acquire_matches(incarnation, 1, "one")[0]
        league.client.register_players([snapshot(1000)])
        train(league, incarnation, 3, step=1000, outcome=lambda match: 0.5)
        result = at_step(played(begun, learner_wins(begun)), 999)
        seats = tuple(replace(seat, step_end=1001) for seat in result.seats)
        report(league, incarnation, replace(result, seats=seats))
        league.client.register_players([snapshot(2000), snapshot(2000, "first:main", parent="")])
        train(league, incarnation, 4, step=2500)
        cells = league.client.payoff(Book.TRAIN, climb=True)
        counts = {}
        for cell in cells:
            known = counts.get(cell.row, (0, 0, 0))
            counts[cell.row] = (
                known[0] + cell.wins,
                known[1] + cell.draws,
                known[2] + cell.losses,
            )
        assert counts == {"main@0": (2, 0, 0), "main@1000": (1, 3, 0), "main@2000": (4, 0, 0)}
        assert {cell.column for cell in cells} <= {"based", "random", "constant"}
        (one, *_) = cells
        assert league.client.payoff(Book.TRAIN, [one.row], [one.column], climb=True) == [one]
        league.open(checkpoint=2)
        assert {cell.row for cell in league.client.payoff(Book.TRAIN, climb=True)} == {"main@0"}
        with pytest.raises(InvalidInput, match="eval"):
            league.client.payoff(Book.EVAL, climb=True)


def test_an_anchor_stays_where_it_was_put_and_moves_the_others(league):
    pair(league, "main@2000", "based", 3)
    assert league.client.pin_rating("based", 31.5, "operator@desk") == 6
    pair(league, "main@2000", "based", 3)
    board = {rating.player.name: rating for rating in league.client.ratings()}
    assert (board["based"].mu, board["based"].sigma, board["based"].pinned) == (31.5, 0.0, True)
    assert not board["main@2000"].pinned
    assert board["main@2000"].mu > 31.5
    assert league.client.anchors() == {"based": 31.5}
    event = next(e for e in events(league) if e.kind == "rating_pinned")
    assert re.search(r"^operator@desk .*\bbased\b.* 31\.50 .* 7\b", event.text)
    league.client.unpin_rating("based", "bert@desk")
    assert league.client.anchors() == {}
    assert belief(league, "based", Book.EVAL).mu < 25.0, "what was believed before the pin"
    event = next(e for e in events(league) if e.kind == "rating_unpinned")
    assert re.search(r"^bert@desk .*\bbased\b", event.text)


def events(league):
    with league.server.store.read() as reader:
        return reader.events(0, 10_000)


def test_an_anchor_counts_in_every_book_and_for_the_sampler(tmp_path):
    """A newcomer that is known to be weak is not taken for an equal of the learner."""
    with small_league(
        tmp_path, snapshots=(), mixes={"all": {"snapshots": 1.0, "based": 1.0}}
    ) as league:
        incarnation = league.open()
        train(league, incarnation, 1, mix="all")
        for name, mu in (("first:main@10", 5.0), ("second:main@10", 45.0)):
            one = replace(
                snapshot(10), name=name, digest=name.encode().hex().ljust(64, "0"), parent=""
            )
            league.client.register_players([one])
            league.client.pin_rating(name, mu, "operator")
            match = league.client.acquire_matches(incarnation, 1, "all")[0]
        why = json.loads(league.client.match(match.match_id).why_json)
        weights = dict(why["candidates"]["snapshots"])
        assert weights["first:main@10"] < 0.05 < 0.5 < weights["second:main@10"]


def test_pins_that_can_not_be_are_one_sentence(league):
    for name, mu, error, words in (
        ("nobody", 20.0, NotFound, "'nobody'"),
        ("main", 20.0, InvalidInput, "main"),
        ("based", float("nan"), InvalidInput, "nan"),
        ("based", 1e9, InvalidInput, "-1000"),
    ):
        with pytest.raises(error, match=words):
            league.client.pin_rating(name, mu, "operator")
    with pytest.raises(InvalidInput, match="based"):
        league.client.unpin_rating("based", "operator")
    assert league.client.anchors() == {}
