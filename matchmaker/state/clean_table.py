"""The clean matches among some players, as analyses of a league's structure take them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from league.stats.ratings import RatingTable

if TYPE_CHECKING:  # it loads scipy, which takes half a second
    from league.stats.structure.table import Table


def clean_table(names: Sequence[str], table: RatingTable, rows: int | None = None) -> Table:
    """Counts between `names` and what the ratings predict for them.

    Args:
        table: the eval book's, which has all of `names`; it is only read.
        rows: matches of the first so many players are counted, None for those of all.
    """
    import numpy as np

    from league.stats.structure.table import Table, measured_prior, predicted_by_ratings

    place = {name: index for index, name in enumerate(names)}
    wins_NN, draws_NN = np.zeros((2, len(place), len(place)))
    for name in names[:rows]:
        for other, counts in table.payoff.row(name).items():
            mine, its = place[name], place.get(other)
            if its is not None:
                wins_NN[mine, its], wins_NN[its, mine] = counts.wins, counts.losses
                draws_NN[mine, its] = draws_NN[its, mine] = counts.draws
    beliefs = [table.belief(name) for name in names]
    mu_N, sigma_N = np.array([[belief.mu, belief.sigma] for belief in beliefs]).reshape(-1, 2).T
    predicted_NN = predicted_by_ratings(mu_N, sigma_N)
    return Table(
        names=tuple(names),
        wins_NN=wins_NN,
        draws_NN=draws_NN,
        predicted_NN=predicted_NN,
        prior_games=measured_prior(wins_NN, draws_NN, predicted_NN),
    )
