"""Ratings as a pure function of the results, in commit order, one table per book.

σ² of a player grows before each of its matches by τ² and by its drift since its last one; both are 0 for a
player that can't change. A pinned player is known: it stays where it was put and moves only the others.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from league.errors import InvalidInput
from league.payoff import PayoffTable
from league.players import PayoffCell, Player, Rating
from league.ratings.belief import BETA, NEWCOMER, Belief, draw_margin
from league.ratings.closed_form import fold
from league.ratings.drift import NO_DRIFT, Drift
from league.ratings.record import PredictionRecord

TAU_LIVE = 25.0 / 300.0
"""What a live player's σ grows by before each match where its steps are not told (TrueSkill's own τ)."""


@dataclass(frozen=True)
class RatedGame:
    """One result as a rating sees it.

    Attributes:
        outcome: of seat 0, in {1, ½, 0}.
        tau0: by what σ grows before the match, in points, whatever the steps.
        draw_probability: share of draws between equals that the ratings expect.
        step0: learner steps behind seat 0's weights when it played; None for one that can't change.
    """

    seat0: str
    seat1: str
    outcome: float
    tau0: float
    tau1: float
    draw_probability: float
    step0: int | None = None
    step1: int | None = None


def rate(game: RatedGame, first: Belief, second: Belief) -> tuple[Belief, Belief]:
    """Beliefs of seat 0 and seat 1 after a match between them."""
    mus, variances = [first.mu, second.mu], [first.sigma**2, second.sigma**2]
    games = ((0, 1, game.outcome, game.tau0**2, game.tau1**2),)
    fold(mus, variances, games, draw_margin(game.draw_probability))
    return Belief(mus[0], math.sqrt(variances[0])), Belief(mus[1], math.sqrt(variances[1]))


class RatingTable:
    """Beliefs and counts of one book, folded game by game. Folding the same games gives the same table."""

    def __init__(self, drift: Drift = NO_DRIFT) -> None:
        self.drift = drift
        self.payoff = PayoffTable()
        self.record = PredictionRecord()
        self._number: dict[str, int] = {}
        self._mus: list[float] = []
        self._variances: list[float] = []
        self._steps: list[int | None] = []  # learner steps that a belief speaks of
        self._games: list[int] = []
        self._pinned: set[str] = set()

    def fold(self, game: RatedGame) -> None:
        """Takes one more result in. A player against itself is never rated."""
        self.fold_all((game,))

    def fold_all(self, games: Iterable[RatedGame]) -> None:
        """Takes results in, in order: the same as one by one, and quicker."""
        for probability, part in groupby(games, key=lambda game: game.draw_probability):
            fold(self._mus, self._variances, self._numbered(part), draw_margin(probability))

    def _numbered(self, games: Iterable[RatedGame]) -> Iterator[tuple[int, int, float, float, float]]:
        """What `fold` takes; all but the beliefs moves on here."""
        for game in games:
            if game.seat0 == game.seat1:
                continue
            first, second = self._number_of(game.seat0), self._number_of(game.seat1)
            self._games[first] += 1
            self._games[second] += 1
            growth0 = self._growth(first, game.seat0, game.tau0, game.step0)
            growth1 = self._growth(second, game.seat1, game.tau1, game.step1)
            self._predict(first, second, growth0 + growth1, game.outcome)
            self.payoff.add(game.seat0, game.seat1, game.outcome)
            yield first, second, game.outcome, growth0, growth1

    def _predict(self, first: int, second: int, growth: float, outcome: float) -> None:
        c = math.sqrt(2.0 * BETA**2 + self._variances[first] + self._variances[second] + growth)
        self.record.add((self._mus[first] - self._mus[second]) / c, c, outcome)

    def _growth(self, number: int, name: str, tau: float, step: int | None) -> float:
        """What the variance grows by before this match; the steps are those of the match from now on."""
        if name in self._pinned:
            return 0.0
        growth = tau * tau
        if step is not None:
            known = self._steps[number]
            if known is None:
                self._steps[number] = step
            elif step > known:  # results come in as matches end, not as they began
                growth += self.drift.variance(known, step)
                self._steps[number] = step
        return growth

    def _number_of(self, name: str) -> int:
        number = self._number.get(name)
        if number is None:
            number = self._number[name] = len(self._mus)
            self._mus.append(NEWCOMER.mu)
            self._variances.append(NEWCOMER.sigma**2)
            self._steps.append(None)
            self._games.append(0)
        return number

    def pin(self, name: str, mu: float) -> None:
        """Puts an anchor at `mu` points from now on: it never moves, and counts as known."""
        if not math.isfinite(mu):
            raise InvalidInput(f"{name} can't be pinned at {mu}: a finite number of points is wanted")
        number = self._number_of(name)
        self._mus[number], self._variances[number] = mu, 0.0
        self._pinned.add(name)

    def inherit(self, name: str, parent: str, step: int) -> None:
        """A new snapshot begins with what is believed of its parent, drifted up to `step`.

        A parent of which nothing is believed, a pinned snapshot and one that has played change nothing.
        """
        known = self._number.get(parent)
        if known is None or parent == name or self._is_settled(name):
            return
        number, since = self._number_of(name), self._steps[known]
        grown = 0.0 if since is None else self.drift.variance(since, step)
        self._mus[number] = self._mus[known]
        self._variances[number] = min(self._variances[known] + grown, NEWCOMER.sigma**2)
        self._steps[number] = step

    def _is_settled(self, name: str) -> bool:
        return name in self._pinned or self.has(name)

    def state(self) -> dict[str, Any]:
        """All of it as lists and numbers, which JSON keeps to the last bit; `restored` takes it back."""
        cells = [cell for cell in self.payoff.cells() if cell.row < cell.column]
        return {
            "drift": dataclasses.asdict(self.drift),
            "players": [
                [name, self._mus[n], self._variances[n], self._steps[n], self._games[n], name in self._pinned]
                for name, n in self._number.items()
            ],
            "payoff": [[c.row, c.column, c.wins, c.draws, c.losses] for c in cells],
            "record": dataclasses.asdict(self.record),
        }

    @classmethod
    def restored(cls, state: Mapping[str, Any]) -> RatingTable:
        """The table that `state` was taken of; folding on gives the same bits as if it had never stopped."""
        table = cls(Drift(**state["drift"]))
        for name, mu, variance, step, games, is_pinned in state["players"]:
            number = table._number_of(name)
            table._mus[number], table._variances[number] = mu, variance
            table._steps[number], table._games[number] = step, games
            if is_pinned:
                table._pinned.add(name)
        fields = ("row", "column", "wins", "draws", "losses")
        cells = (PayoffCell(**dict(zip(fields, cell, strict=True))) for cell in state["payoff"])
        table.payoff = PayoffTable.of_cells(cells)
        table.record = PredictionRecord(**state["record"])
        return table

    def belief(self, name: str) -> Belief:
        """A newcomer's belief for a player that neither played in this book, nor inherited, nor is pinned."""
        number = self._number.get(name)
        return NEWCOMER if number is None else self._belief(number)

    def _belief(self, number: int) -> Belief:
        return Belief(self._mus[number], math.sqrt(self._variances[number]))

    def has(self, name: str) -> bool:
        """Whether it has a match in this book."""
        number = self._number.get(name)
        return number is not None and self._games[number] > 0

    def beliefs(self) -> dict[str, Belief]:
        """Every player with a match, by name."""
        return {name: self._belief(number) for name, number in self._number.items() if self._games[number]}

    def leaderboard(self, players: Mapping[str, Player]) -> list[Rating]:
        """Best score first; equal scores by name."""
        beliefs = self.beliefs()
        order = sorted(beliefs, key=lambda name: (-beliefs[name].score, name))
        return [self._rating(players[name], beliefs[name], rank) for rank, name in enumerate(order, start=1)]

    def _rating(self, player: Player, belief: Belief, rank: int) -> Rating:
        counts = self.payoff.total(player.name)
        return Rating(
            player=player,
            mu=belief.mu,
            sigma=belief.sigma,
            score=belief.score,
            wins=counts.wins,
            draws=counts.draws,
            losses=counts.losses,
            rank=rank,
        )


def recompute(games: Iterable[RatedGame]) -> RatingTable:
    """The table that results from all games in commit order."""
    table = RatingTable()
    table.fold_all(games)
    return table
