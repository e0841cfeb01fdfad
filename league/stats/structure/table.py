"""What is known of every pair: counts, and a posterior for the pairs that met seldom or never.

Shape suffixes: N players; `x_NN[i, j]` is of player i against player j.

A pair that never met is unknown, not even. What the ratings predict for it, p₀, is worth k games (k
is measured, see `measured_prior`), and the matches count on top. With w wins, d draws, l losses of
i against j

    P_ij = (k p₀ + w + d/2) / (k + w + d + l)

is the posterior's mean: p₀ for those who never met, the counted share for those who met often.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import gammaln, logit, ndtr

from league.errors import InvalidInput
from league.players import PayoffCell, Rating
from league.stats.ratings import BETA, RatingTable

Matrix = NDArray[np.float64]
SURE = 1e-3
"""A prediction stays this far from 0 and 1, a chance of a draw from the posterior too."""
PRIOR_GAMES = (1.0, 20.0)
"""Between these many games a rating's prediction is worth."""


@dataclass(frozen=True, kw_only=True)
class Table:
    """Counts of one book between N players, and what the ratings predict.

    `wins_NN[i, j]`: i beat j; the losses are its transpose. `predicted_NN` and its transpose sum to
    1. `prior_games`: what the prediction is worth, in games.
    """

    names: tuple[str, ...]
    wins_NN: Matrix
    draws_NN: Matrix
    predicted_NN: Matrix
    prior_games: float

    @cached_property
    def games_NN(self) -> Matrix:
        """Matches of each pair, the same from both sides."""
        games_NN: Matrix = self.wins_NN + self.wins_NN.T + self.draws_NN
        return games_NN

    @cached_property
    def known_NN(self) -> NDArray[np.bool_]:
        """Whether the pair has met; nobody meets itself."""
        known_NN: NDArray[np.bool_] = self.games_NN > 0
        return known_NN

    @cached_property
    def chance_NN(self) -> Matrix:
        """Posterior mean of the share that i gets of a match against j, a draw being half; ½ for
        i = j.
        """
        scored_NN = self.wins_NN + 0.5 * self.draws_NN
        k = self.prior_games
        return _mirrored((k * self.predicted_NN + scored_NN) / (k + self.games_NN))

    @cached_property
    def variance_NN(self) -> Matrix:
        """Posterior variance of that share: of a Beta, so never too small; 0 on the diagonal."""
        variance_NN: Matrix = (
            self.chance_NN * (1 - self.chance_NN) / (self.prior_games + self.games_NN + 1)
        )
        np.fill_diagonal(variance_NN, 0.0)
        return variance_NN

    def drawn(self, rng: np.random.Generator) -> Matrix:
        """Shares as they might be as well, one draw from the posterior: the Bayesian bootstrap of
        the counts.

        Chances of win, draw and loss come from a Dirichlet whose parameters are the counts and the
        k games of the prior (of which as many are draws as in the whole table, as far as p₀ leaves
        room). It resamples the counts as a bootstrap does (Rubin 1981, Annals of Statistics 9), but
        a pair that ended 3 : 0 does not do so in every sample, and one that never met does as the
        prior says.
        """
        rows, columns = np.triu_indices(len(self.names), 1)
        won_M, drew_M, lost_M = (
            rng.standard_gamma(x_NN[rows, columns]) for x_NN in self._parameters
        )
        drawn_NN = np.full(self.wins_NN.shape, 0.5)
        drawn_NN[rows, columns] = (won_M + 0.5 * drew_M) / (won_M + drew_M + lost_M)
        return np.clip(_mirrored(drawn_NN), SURE, 1 - SURE)

    @cached_property
    def _parameters(self) -> tuple[Matrix, Matrix, Matrix]:
        drew_NN = self.draw_chances(self.predicted_NN)
        won_NN = self.predicted_NN - 0.5 * drew_NN
        k, wins_NN, draws_NN = self.prior_games, self.wins_NN, self.draws_NN
        return k * won_NN + wins_NN, k * drew_NN + draws_NN, k * (1 - won_NN - drew_NN) + wins_NN.T

    def draw_chances(self, chance_NN: Matrix) -> Matrix:
        """Chances of a draw where players have these shares: in proportion to the room that a
        share leaves, 2 min(p, 1 − p), and over all matches as many as the table has.
        """
        room_NN = 2 * np.minimum(chance_NN, 1 - chance_NN)
        expected = float(np.sum(self.games_NN * room_NN))
        return room_NN * (min(float(self.draws_NN.sum()) / expected, 1.0) if expected else 0.0)


def _mirrored(x_NN: Matrix) -> Matrix:
    """The upper triangle, and below it what is left to 1, to the last bit; ½ on the diagonal."""
    upper_NN = np.triu(x_NN, 1)
    whole_NN: Matrix = upper_NN + np.tril(1.0 - upper_NN.T, -1)
    np.fill_diagonal(whole_NN, 0.5)
    return whole_NN


def logits(chance_NN: Matrix) -> Matrix:
    """log(p / (1 − p)), antisymmetric: what ratings add up in, so an Elo league is all
    transitive.
    """
    logits_NN = logit(chance_NN)
    return 0.5 * (logits_NN - logits_NN.T)


def margins(chance_NN: Matrix) -> Matrix:
    """2p − 1, antisymmetric: what a match is worth, wins less losses."""
    return chance_NN - chance_NN.T


def predicted_by_ratings(mu_N: Matrix, sigma_N: Matrix) -> Matrix:
    """Φ((μ_i − μ_j) / √(2β² + σ_i² + σ_j²)) of all pairs, as
    `league.stats.ratings.win_probability` of one.
    """
    spread_NN = np.sqrt(2 * BETA**2 + sigma_N[:, None] ** 2 + sigma_N[None, :] ** 2)
    predicted_NN = ndtr((mu_N[:, None] - mu_N[None, :]) / spread_NN)
    return _mirrored(np.clip(predicted_NN, SURE, 1 - SURE))


def measured_prior(wins_NN: Matrix, draws_NN: Matrix, predicted_NN: Matrix) -> float:
    """How many games the predictions are worth, by how well they foretell the pairs that met.

    The k in `PRIOR_GAMES` under which the counts are likeliest, each pair's share being drawn from
    Beta(k p₀, k (1 − p₀)): large where one number a player explains the league, small where players
    beat each other in cycles and no rating foretells anything. The ratings were made from the same
    pairs, so they foretell them better than they would others: with N ratings from M pairs, what is
    left unexplained is about 1 − (N − 1) / M of what it would be, and 1 / (k + 1) is made larger by
    that.
    """
    rows, columns = np.nonzero(np.triu(wins_NN + wins_NN.T + draws_NN, 1))
    if not len(rows):
        return PRIOR_GAMES[0]
    p_M, half_M = predicted_NN[rows, columns], 0.5 * draws_NN[rows, columns]
    won_M, lost_M = wins_NN[rows, columns] + half_M, wins_NN[columns, rows] + half_M

    def unlikeliness(log_k: float) -> float:
        k = np.exp(log_k)
        a_M, b_M = k * p_M, k * (1 - p_M)
        before = gammaln(a_M) + gammaln(b_M) - gammaln(k)
        after = gammaln(a_M + won_M) + gammaln(b_M + lost_M) - gammaln(k + won_M + lost_M)
        return float(np.sum(before - after))

    best = minimize_scalar(unlikeliness, bounds=np.log(PRIOR_GAMES), method="bounded")
    new_to_them = max(0.0, 1.0 - (len(predicted_NN) - 1) / len(rows))
    return float(np.clip((np.exp(best.x) + 1.0) * new_to_them - 1.0, *PRIOR_GAMES))


def table_of_book(names: Sequence[str], book: RatingTable, rows: int | None = None) -> Table:
    """Returns the counts between players and what the ratings predict.

    Args:
        names: players that `book` knows.
        book: it is only read.
        rows: count the matches of the first so many players only; None counts all.
    """
    place = {name: index for index, name in enumerate(names)}
    wins_NN, draws_NN = np.zeros((2, len(place), len(place)))
    for name in names[:rows]:
        for other, counts in book.payoff.row(name).items():
            mine, its = place[name], place.get(other)
            if its is not None:
                wins_NN[mine, its], wins_NN[its, mine] = counts.wins, counts.losses
                draws_NN[mine, its] = draws_NN[its, mine] = counts.draws
    columns = book.columns(names)
    return _table(tuple(names), wins_NN, draws_NN, columns.mu_N, np.sqrt(columns.variance_N))


def _table(
    names: tuple[str, ...], wins_NN: Matrix, draws_NN: Matrix, mu_N: Matrix, sigma_N: Matrix
) -> Table:
    predicted_NN = predicted_by_ratings(mu_N, sigma_N)
    prior_games = measured_prior(wins_NN, draws_NN, predicted_NN)
    return Table(
        names=names,
        wins_NN=wins_NN,
        draws_NN=draws_NN,
        predicted_NN=predicted_NN,
        prior_games=prior_games,
    )


def table_of(
    cells: Sequence[PayoffCell], ratings: Sequence[Rating], games_at_least: int = 1
) -> Table:
    """The table of a book's payoff cells and ratings, players in order of rating.

    Who has fewer than `games_at_least` matches in the book is left out, with all of its matches.
    Raises `InvalidInput` when fewer than two players are left.
    """
    kept = [rating for rating in ratings if rating.games >= max(games_at_least, 1)]
    if len(kept) < 2:
        raise InvalidInput(
            f"only {len(kept)} of the book's {len(ratings)} players have the matches asked for (at least "
            f"{games_at_least}): a structure needs two; wait for matches, or name another --book"
        )
    place = {rating.player.name: index for index, rating in enumerate(kept)}
    wins_NN, draws_NN = np.zeros((2, len(kept), len(kept)))
    for cell in cells:
        if cell.row in place and cell.column in place:
            wins_NN[place[cell.row], place[cell.column]] = cell.wins
            draws_NN[place[cell.row], place[cell.column]] = cell.draws
    mu_N, sigma_N = np.array([(rating.mu, rating.sigma) for rating in kept]).T
    return _table(tuple(place), wins_NN, draws_NN, mu_N, sigma_N)
