"""What is known of pairs: counts, ratings where they are few, and draws of what might be as
well.
"""

import numpy as np
import pytest
from scipy.special import ndtr
from structure_games import RPS, chances, elo, played

from league.errors import InvalidInput
from league.players import PayoffCell, Player, PlayerKind, Rating
from league.stats.ratings import BETA
from league.stats.structure.table import (
    PRIOR_GAMES,
    Table,
    logits,
    margins,
    measured_prior,
    table_of,
)


def rating(name, mu=25.0, sigma=1.0, games=10):
    player = Player(name=name, game="brawl", kind=PlayerKind.BOT)
    return Rating(
        player=player, mu=mu, sigma=sigma, score=mu, wins=games, draws=0, losses=0, rank=1
    )


def cells(row, column, wins, draws, losses):
    return [
        PayoffCell(row=row, column=column, wins=wins, draws=draws, losses=losses),
        PayoffCell(row=column, column=row, wins=losses, draws=draws, losses=wins),
    ]


def test_counts_and_ratings_make_the_share():
    ratings = [rating("a", 30.0, 2.0), rating("b", 25.0, 1.0), rating("c", 20.0, 8.0)]
    table = table_of(cells("a", "b", 5, 2, 3) + cells("b", "c", 4, 0, 0), ratings)
    assert table.names == ("a", "b", "c")
    assert table.games_NN.tolist() == [[0, 10, 0], [10, 0, 4], [0, 4, 0]]
    p0 = ndtr(5.0 / np.sqrt(2 * BETA**2 + 2.0**2 + 1.0**2))
    k = table.prior_games
    assert table.predicted_NN[0, 1] == pytest.approx(p0)
    assert table.chance_NN[0, 1] == pytest.approx((k * p0 + 6) / (k + 10))
    assert table.chance_NN[2, 1] == pytest.approx(k * table.predicted_NN[2, 1] / (k + 4))


def test_a_pair_that_never_met_is_as_the_ratings_say_and_not_even():
    ratings = [rating("a", 40.0), rating("b", 25.0), rating("c", 20.0)]
    table = table_of(cells("a", "b", 5, 0, 0) + cells("b", "c", 4, 0, 1), ratings)
    assert not table.known_NN[0, 2]
    assert table.chance_NN[0, 2] == pytest.approx(ndtr(20.0 / np.sqrt(2 * BETA**2 + 2)), abs=1e-3)
    drawn = np.array(
        [table.drawn(np.random.default_rng(seed))[[0, 0], [2, 1]] for seed in range(400)]
    )
    assert drawn[:, 0].mean() == pytest.approx(table.chance_NN[0, 2], abs=0.02)
    even = Table(
        names=("a", "b"), wins_NN=np.zeros((2, 2)), draws_NN=np.zeros((2, 2)),
        predicted_NN=np.full((2, 2), 0.5), prior_games=2.0,
            matches_NN=np.zeros((2, 2)),
    )  # fmt: skip
    unknown = [even.drawn(np.random.default_rng(seed))[0, 1] for seed in range(400)]
    assert np.std(unknown) == pytest.approx(np.sqrt(1 / 12), abs=0.03), (
        "Beta(1, 1): anything is possible"
    )


def test_payoffs_are_antisymmetric_to_the_last_bit():
    rng = np.random.default_rng(0)
    table = played(chances(rng.normal(size=(1, 1)) + elo(rng.normal(size=12))), 7, rng, drawn=0.3)
    for chance_NN in (table.chance_NN, table.drawn(rng), table.drawn(rng)):
        for payoff_NN in (logits(chance_NN), margins(chance_NN)):
            assert (payoff_NN == -payoff_NN.T).all()
            assert np.isfinite(payoff_NN).all()


def test_draws_have_the_mean_and_spread_of_the_posterior():
    """Of 40 matches 33 are drawn: draws are outcomes, so the share is surer than a Beta says."""
    ratings = [rating("a", 25.0), rating("b", 25.0)]
    table = table_of(cells("a", "b", 6, 33, 1), ratings)
    drawn = np.array([table.drawn(np.random.default_rng(seed))[0, 1] for seed in range(1500)])
    assert drawn.mean() == pytest.approx(table.chance_NN[0, 1], abs=0.005)
    # Dirichlet: var(w + d/2) = (E[(w + d/2)²] − E²) / (n + 1), with the prior's games split alike.
    n = 40 + table.prior_games
    share = np.array([6, 33, 1]) / 40
    variance = (share @ np.array([1, 0.25, 0]) - (share @ np.array([1, 0.5, 0])) ** 2) / (n + 1)
    assert drawn.std() == pytest.approx(np.sqrt(variance), rel=0.12)
    assert drawn.var() < 0.5 * table.variance_NN[0, 1]


def test_ratings_are_worth_what_they_foretell():
    rng = np.random.default_rng(5)
    strengths = rng.normal(size=14)
    line = played(chances(elo(strengths)), 40, rng)
    told = chances(elo(strengths))
    assert measured_prior(line.wins_NN, line.draws_NN, told) > 10
    cyclic = played(np.kron(chances(3 * RPS), np.ones((4, 4))), 40, rng)
    assert measured_prior(cyclic.wins_NN, cyclic.draws_NN, np.full((12, 12), 0.5)) < 2
    nothing = np.zeros((3, 3))
    assert measured_prior(nothing, nothing, np.full((3, 3), 0.5)) == PRIOR_GAMES[0]


def test_who_has_few_games_is_left_out():
    ratings = [rating("a"), rating("b"), rating("new", games=3)]
    played_cells = cells("a", "b", 5, 0, 5) + cells("a", "new", 3, 0, 0)
    assert table_of(played_cells, ratings, 4).names == ("a", "b")
    assert table_of(played_cells, ratings, 3).names == ("a", "b", "new")
    with pytest.raises(InvalidInput, match=r"\b0\b.*\b3\b"):
        table_of(played_cells, ratings, 11)
    with pytest.raises(InvalidInput, match=r"\b0\b.*\b0\b"):
        table_of([], [])
