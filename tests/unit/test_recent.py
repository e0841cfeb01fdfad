"""What a learner scored lately: it forgets, neighbours share, payoffs count by their size."""

import json

import numpy as np
import pytest

from league.players import Book, Player, PlayerKind
from league.stats.ratings import RatingTable
from league.stats.recent import RecentScores
from matchmaker.sampling.candidates import Pool, candidates_of
from matchmaker.sampling.mixes import weights_of
from matchmaker.settings import MatchmakerSettings
from matchmaker.state.books import Books
from matchmaker.store.rows import ResultRow

MAIN = Player(name="main", game="brawl", kind=PlayerKind.LIVE)
OLD = Player(name="main@2000000", game="brawl", kind=PlayerKind.SNAPSHOT)


def scores_of(matches):
    """Of (opponent, outcome, step)."""
    scores = RecentScores()
    for opponent, outcome, step in matches:
        scores.add_stake(2.0 * outcome - 1.0)
        scores.add("main", opponent, 2.0 * outcome - 1.0, step)
    return scores


def test_a_match_counts_less_with_the_steps_and_matches_since():
    rng = np.random.default_rng(1)
    matches = [
        (str(rng.choice(["random", "based"])), float(rng.choice([0.0, 0.5, 1.0])), step)
        for step in np.cumsum(rng.integers(0, 5000, 300)).tolist()
    ]
    games_N, points_N = scores_of(matches).evidence("main", ["based", "random", "nobody"])
    now = matches[-1][2]
    for place, name in enumerate(["based", "random"]):
        met = [one for one in matches if one[0] == name]
        weights = np.array(
            [
                0.5 ** ((now - step) / 100_000) * 0.99**later
                for later, (*_, step) in zip(range(len(met))[::-1], met, strict=True)
            ]
        )
        assert games_N[place] == pytest.approx(weights.sum())
        assert points_N[place] == pytest.approx(weights @ np.array([one[1] for one in met]))
    assert (games_N[2], points_N[2]) == (0.0, 0.0)


def test_neighbours_in_a_lineage_count_by_distance_and_for_thirty_matches_at_most():
    near, far, other = "main@1950000", "main@1000000", "other@2000000"
    scores = scores_of([(near, 1.0, 0)] * 10 + [(far, 0.0, 0)] * 10 + [(other, 0.0, 0)] * 10)
    (games,), (points,) = scores.evidence("main", ["main@2000000"])
    once = sum(0.99**later for later in range(10))
    assert points == pytest.approx(once * np.exp(-0.25))
    assert games == pytest.approx(once * (np.exp(-0.25) + np.exp(-5.0)))
    many = scores_of([(near, 1.0, 0)] * 90 + [(OLD.name, 0.0, 0)])
    (games,), (points,) = many.evidence("main", [OLD.name])
    assert (games, points) == pytest.approx((31.0, 30.0))
    assert scores.evidence("main", ["based", "main.reference-5"])[0].tolist() == [0.0, 0.0]


def test_a_payoff_counts_by_its_size():
    """It wins three small ones of four: by their signs .75, by what it is paid less than half."""
    scores = RecentScores()
    for margin in (1.0, 1.0, 1.0, -5.0):
        scores.add_stake(margin)
        scores.add("main", "based", margin, 0)
    (games,), (points,) = scores.evidence("main", ["based"])
    paid = (0.99**3 + 0.99**2 + 0.99) - 5.0
    assert points == pytest.approx(games / 2 + paid / (2 * 2.0))
    for _ in range(30):
        scores.add("main", "random", -9.0, 0)
    assert scores.evidence("main", ["random"])[1].tolist() == [0.0], "no less than nothing"


def result(position, outcome, stats):
    return ResultRow(
        position=position, ordinal=position, event_position=position, incarnation=1,
        outcome=outcome, frames=1, failed=False, failure="", finished_at=0.0, received_at=0.0,
        late=False, step0=0, step1=0, end_step0=0, end_step1=0, stats_json=json.dumps(stats),
        match_id="", seat0="based", seat1="main", book=Book.TRAIN, category="based",
    )  # fmt: skip


def test_the_books_read_payoffs_from_results_and_count_wins_by_their_signs():
    books = Books()
    books.tables[Book.TRAIN].learns("main")
    paid = [{"payoff": 6.0, "first": 1.0}, {"payoff": -6.0, "first": 0.0}]
    small = [{"payoff": -1.0}, {"payoff": 1.0}]
    three = [(0.0, small), (0.0, small), (1.0, paid)]
    rows = [result(3 * turn + n, *one) for turn in range(5) for n, one in enumerate(three, 1)]
    books.add_results(rows)
    table = books.tables[Book.TRAIN]
    counts = table.payoff.counts("main", "based")
    assert (counts.wins, counts.losses, counts.paid) == (10, 5, -20.0)
    (games,), (points,) = table.recent.evidence("main", ["based"])
    assert points / games < 0.35
    assert table.recent.evidence("based", ["main"])[0].tolist() == [0.0], "it does not learn"
    without = Books()
    without.tables[Book.TRAIN].learns("main")
    without.add_results([row._replace(stats_json="[{}, {}]") for row in rows])
    bare = without.tables[Book.TRAIN]
    assert table.belief("main").mu < table.belief("based").mu, "it was paid less"
    assert bare.belief("main").mu > bare.belief("based").mu, "it won more"
    (games,), (points,) = bare.recent.evidence("main", ["based"])
    assert 0.6 < points / games < 0.7


def test_a_forgotten_opponent_weighs_three_times_as_much_within_twenty_meetings():
    """Known as well as can be: hundreds of matches against it and its neighbours, won at .9."""
    table = RatingTable()
    table.learns("main")
    names = [OLD.name, *(f"main@{step}" for step in range(1_800_000, 2_000_000, 50_000))]

    def weight():
        pool = Pool(MatchmakerSettings(), MAIN, {}, {Book.TRAIN: table, Book.EVAL: RatingTable()})
        return float(weights_of("pfsp_hard", candidates_of([OLD], pool))[0])

    for match in range(600):
        for name in names:
            table.fold("main", name, 0.0 if match % 10 == 0 else 1.0)
    before = weight()
    for match in range(20):
        table.fold("main", OLD.name, 1.0 if match % 10 in (0, 3, 7) else 0.0)
    assert weight() > 3.0 * before
