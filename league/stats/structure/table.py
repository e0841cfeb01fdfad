"""Builds tables of all pairs: counts, and a posterior for pairs that met seldom or never.

Shapes: N players. `x_NN[i, j]` is the value of player i against player j.

The ratings' prediction for a pair, p₀, counts as k games (`measured_prior`), and the pair's matches
are added. With w wins, d draws, l losses of i against j the posterior mean is

    P_ij = (k p₀ + w + d/2) / (k + w + d + l)

In games with payoffs, w and l are imaginary wins and losses that carry the same evidence as the
payments (`Stakes.counted`). There, a share P is a mean payoff of (2P − 1) stakes per match.
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
from league.stats.payoff import Counts, Stakes
from league.stats.ratings import BETA, RatingTable

Matrix = NDArray[np.float64]
OFF_BOUNDS = 1e-3
"""Least distance from 0 and 1 of predicted shares and of shares drawn from the posterior."""
PRIOR_GAMES = (1.0, 20.0)
"""Bounds of k."""


@dataclass(frozen=True, kw_only=True)
class Table:
    """Holds a book's counts between N players, and the predictions of its ratings.

    Attributes:
        wins_NN: wins of i over j. The transposed matrix has the losses.
        predicted_NN: shares of a match that the ratings predict. The matrix plus its transpose is 1
            everywhere.
        prior_games: k, the worth of a prediction in games.
        matches_NN: matches of each pair, which differ from the counts in games with payoffs.
        stake: worth of a win in the game's payoffs, 0 in games without payoffs.
    """

    names: tuple[str, ...]
    wins_NN: Matrix
    draws_NN: Matrix
    predicted_NN: Matrix
    prior_games: float
    matches_NN: Matrix
    stake: float = 0.0

    @cached_property
    def games_NN(self) -> Matrix:
        """Returns the number of games of each pair: wins plus losses plus draws. In games with
        payoffs it is not the number of matches, because wins and losses are then imaginary. The
        matrix is symmetric.
        """
        return np.asarray(self.wins_NN + self.wins_NN.T + self.draws_NN)

    @cached_property
    def known_NN(self) -> NDArray[np.bool_]:
        """Returns whether the pair has met."""
        return np.asarray(self.games_NN > 0)

    @cached_property
    def chance_NN(self) -> Matrix:
        """Returns the posterior mean of i's share of a match against j. A draw counts as half, and
        the diagonal is ½.
        """
        scored_NN = self.wins_NN + 0.5 * self.draws_NN
        k = self.prior_games
        return _mirrored((k * self.predicted_NN + scored_NN) / (k + self.games_NN))

    @cached_property
    def variance_NN(self) -> Matrix:
        """Returns the posterior variance of `chance_NN` (a Beta's), with 0 on the diagonal."""
        p_NN, games_NN = self.chance_NN, self.prior_games + self.games_NN
        variance_NN = np.asarray(p_NN * (1 - p_NN) / (games_NN + 1))
        np.fill_diagonal(variance_NN, 0.0)
        return variance_NN

    def drawn(self, rng: np.random.Generator) -> Matrix:
        """Draws a matrix of shares from the posterior, by the Bayesian bootstrap of the counts
        (Rubin 1981).

        Chances of win, draw and loss come from a Dirichlet whose parameters are the counts and the
        k games of the prior. Unlike in an ordinary bootstrap, a pair with a result of 3 : 0 also
        varies.
        """
        rows, columns = np.triu_indices(len(self.names), 1)
        won_M, drew_M, lost_M = (
            rng.standard_gamma(x_NN[rows, columns]) for x_NN in self._parameters
        )
        drawn_NN = np.full(self.wins_NN.shape, 0.5)
        drawn_NN[rows, columns] = (won_M + 0.5 * drew_M) / (won_M + drew_M + lost_M)
        return np.clip(_mirrored(drawn_NN), OFF_BOUNDS, 1 - OFF_BOUNDS)

    @cached_property
    def _parameters(self) -> tuple[Matrix, Matrix, Matrix]:
        drew_NN = self.draw_chances(self.predicted_NN)
        won_NN = self.predicted_NN - 0.5 * drew_NN
        k, wins_NN, draws_NN = self.prior_games, self.wins_NN, self.draws_NN
        return k * won_NN + wins_NN, k * drew_NN + draws_NN, k * (1 - won_NN - drew_NN) + wins_NN.T

    def draw_chances(self, chance_NN: Matrix) -> Matrix:
        """Returns each pair's probability of a drawn match, in proportion to 2 min(p, 1 − p). The
        probabilities are scaled so that the expected number of draws is the table's number.
        """
        room_NN = 2 * np.minimum(chance_NN, 1 - chance_NN)
        expected = float(np.sum(self.games_NN * room_NN))
        return room_NN * (min(float(self.draws_NN.sum()) / expected, 1.0) if expected else 0.0)


def _mirrored(x_NN: Matrix) -> Matrix:
    """Keeps the values above the diagonal, sets the diagonal to ½, and sets each value below it to
    1 minus its mirror image.
    """
    upper_NN = np.triu(x_NN, 1)
    whole_NN: Matrix = upper_NN + np.tril(1.0 - upper_NN.T, -1)
    np.fill_diagonal(whole_NN, 0.5)
    return whole_NN


def logits(chance_NN: Matrix) -> Matrix:
    """Returns log(p / (1 − p)), antisymmetric. In logits an Elo league is entirely transitive."""
    logits_NN = logit(chance_NN)
    return 0.5 * (logits_NN - logits_NN.T)


def margins(chance_NN: Matrix) -> Matrix:
    """Returns 2p − 1, the probability of a win minus the probability of a loss. The matrix is
    antisymmetric.
    """
    return chance_NN - chance_NN.T


def measured_prior(wins_NN: Matrix, draws_NN: Matrix, predicted_NN: Matrix) -> float:
    """Measures k, the number of games that a prediction is worth, by how well the predictions
    explain the pairs that met.

    It is the k in `PRIOR_GAMES` under which the counts are most likely if each pair's share is
    drawn from Beta(k p₀, k (1 − p₀)). k is large if one rating per player explains the league, and
    small if players beat each other in cycles. The N ratings were fitted to the same M pairs. So
    they explain these pairs better than new pairs: the unexplained part is smaller by a factor of
    about 1 − (N − 1) / M, and 1 / (k + 1) is corrected by this factor.

    Args:
        wins_NN: wins of i over j.
        draws_NN: draws.
        predicted_NN: shares that the ratings predict.

    Returns:
        k, in games.
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


def table_of_book(names: Sequence[str], book: RatingTable) -> Table:
    """Builds the table of the named players that `book` knows."""
    counts = [(name, other, its) for name in names for other, its in book.payoff.row(name).items()]
    columns = book.columns(names)
    return _table(names, counts, columns.mu_N, np.sqrt(columns.variance_N))


def table_of(
    cells: Sequence[PayoffCell], ratings: Sequence[Rating], games_at_least: int = 1
) -> Table:
    """Builds the table of a book's payoff cells and ratings, in the order of the ratings.

    Args:
        cells: the payoffs.
        ratings: the ratings.
        games_at_least: number of matches that a player needs. Other players are left out, with all
            of their matches.

    Raises:
        InvalidInput: fewer than two players are left.
    """
    counted = [rating for rating in ratings if rating.games >= max(games_at_least, 1)]
    if len(counted) < 2:
        raise InvalidInput(
            f"{len(counted)} of the book's {len(ratings)} players have at least {games_at_least} "
            "matches, and a structure needs two: wait for matches, or name another --book"
        )
    counts = [(cell.row, cell.column, cell) for cell in cells]
    mu_N, sigma_N = np.array([(rating.mu, rating.sigma) for rating in counted]).T
    return _table([rating.player.name for rating in counted], counts, mu_N, sigma_N)


def _table(
    names: Sequence[str],
    counts: Sequence[tuple[str, str, PayoffCell | Counts]],
    mu_N: Matrix,
    sigma_N: Matrix,
) -> Table:
    """Builds a table of the players in `names` from (player, other, counts). Counts of other
    players are ignored.

    The ratings predict Φ((μ_i − μ_j) / √(2β² + σ_i² + σ_j²)).
    """
    row_of = {name: index for index, name in enumerate(names)}
    stakes = Stakes.of(cell for _, _, cell in counts)
    wins_NN, draws_NN, matches_NN = np.zeros((3, len(row_of), len(row_of)))
    for name, other, cell in counts:
        mine, its = row_of.get(name), row_of.get(other)
        if mine is not None and its is not None:
            wins_NN[mine, its], draws, wins_NN[its, mine] = stakes.counted(cell)
            draws_NN[mine, its] = draws_NN[its, mine] = draws
            matches_NN[mine, its] = matches_NN[its, mine] = cell.games
    spread_NN = np.sqrt(2 * BETA**2 + sigma_N[:, None] ** 2 + sigma_N[None, :] ** 2)
    chance_NN = ndtr((mu_N[:, None] - mu_N[None, :]) / spread_NN)
    predicted_NN = _mirrored(np.clip(chance_NN, OFF_BOUNDS, 1 - OFF_BOUNDS))
    return Table(
        names=tuple(names),
        wins_NN=wins_NN,
        draws_NN=draws_NN,
        predicted_NN=predicted_NN,
        prior_games=measured_prior(wins_NN, draws_NN, predicted_NN),
        matches_NN=matches_NN,
        stake=stakes.stake,
    )
