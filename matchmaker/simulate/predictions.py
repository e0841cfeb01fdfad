"""What the ratings predicted of each match when it was handed out, and what came of it.

Shape suffixes: G games.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from league.players import Assignment, Book
from league.stats.ratings import BETA, Belief
from league.stats.ratings.belief import draw_margin
from matchmaker.sampling.candidates import learner_belief, opponent_belief
from matchmaker.state.view import LeagueView

Array = NDArray[np.float64]
TENTHS = 10


@dataclass(frozen=True)
class Tenth:
    """A tenth of all matches, by how they were predicted: mean predicted and played score."""

    predicted: float
    played: float
    matches: int


@dataclass
class Predictions:
    """Of one book, from seat 0's side; a player against itself is left out."""

    predicted: list[Array] = field(default_factory=list)
    played: list[Array] = field(default_factory=list)

    def add(self, view: LeagueView, matches: Sequence[Assignment], outcome_G: Array) -> None:
        """`matches` of one book, as ratings see them now."""
        rated = [
            place
            for place, match in enumerate(matches)
            if match.seats[0].name != match.seats[1].name
        ]
        if not rated:
            return
        book = matches[0].book
        with view.lock:
            pairs = [_beliefs(view, matches[place]) for place in rated]
            epoch = view.tables[book].epoch
        values_G4 = np.array(
            [[first.mu, first.sigma, second.mu, second.sigma] for first, second in pairs]
        )
        mu0_G, sigma0_G, mu1_G, sigma1_G = values_G4.T
        c_G = np.sqrt(2 * BETA**2 + sigma0_G**2 + sigma1_G**2)
        t_G, e_G = (mu0_G - mu1_G) / c_G, draw_margin(epoch.draw_probability) / c_G
        self.predicted.append(epoch.link.score(t_G, e_G))
        self.played.append(outcome_G[rated])

    def tenths(self) -> list[Tenth]:
        """From the surest loss to the surest win; none of fewer than ten matches."""
        if sum(map(len, self.predicted)) < TENTHS:
            return []
        predicted_G, played_G = np.concatenate(self.predicted), np.concatenate(self.played)
        order = np.argsort(predicted_G, kind="stable")
        return [
            Tenth(float(predicted_G[part].mean()), float(played_G[part].mean()), len(part))
            for part in np.array_split(order, TENTHS)
        ]


def _beliefs(view: LeagueView, match: Assignment) -> tuple[Belief, Belief]:
    """Of seats 0 and 1: in training those that opponents are drawn by, else the book's own."""
    first, second = match.seats
    if match.book is not Book.TRAIN:
        table = view.tables[match.book]
        return table.belief(first.name), table.belief(second.name)
    mine = learner_belief(match.seats[match.learner_seat], view.tables)
    theirs = opponent_belief(match.opponent, mine, view.tables)
    return (mine, theirs) if match.learner_seat == 0 else (theirs, mine)
