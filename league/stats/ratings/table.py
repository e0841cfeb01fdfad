"""Ratings as a pure function of the results, in commit order, one table per book.

σ² of a player that learns grows before each of its matches by its drift since its last one; that of
all others never grows. A pinned player is known: it stays where it was put and moves only the
others.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from league.errors import InvalidInput
from league.players import Player, Rating
from league.stats.payoff import PayoffTable
from league.stats.ratings.belief import NEWCOMER, Belief, draw_margin
from league.stats.ratings.closed_form import fold
from league.stats.ratings.drift import NO_DRIFT, Drift
from league.stats.ratings.epochs import Epoch, is_due, next_epoch
from league.stats.ratings.link import Link
from league.stats.ratings.record import PredictionRecord

FIRST_DRAW_PROBABILITY = 0.1
"""Share of draws between equals that is expected before any was measured."""


_COLUMNS = ("_mus", "_variances", "_learns", "_steps", "_games", "_wins", "_draws")
"""Of a table, in the order in which its state tells them of each player."""


class RatedGame(NamedTuple):
    """One result as a rating sees it.

    Attributes:
        outcome: of seat 0, in {1, ½, 0}. step0: learner steps behind seat 0's weights when it
        played; of no matter for one that never learns.
    """

    seat0: str
    seat1: str
    outcome: float
    step0: int = 0
    step1: int = 0


def rate(
    first: Belief,
    second: Belief,
    outcome: float,
    *,
    draw_probability: float = FIRST_DRAW_PROBABILITY,
    tau0: float = 0.0,
    tau1: float = 0.0,
) -> tuple[Belief, Belief]:
    """Beliefs after one match; `outcome` is the first one's, τ in points by what each σ grows
    before it.
    """
    mus, variances = [first.mu, second.mu], [first.sigma**2, second.sigma**2]
    fold(mus, variances, ((0, 1, outcome, tau0**2, tau1**2),), draw_margin(draw_probability))
    return Belief(mus[0], math.sqrt(variances[0])), Belief(mus[1], math.sqrt(variances[1]))


class BeliefColumns(NamedTuple):
    """What a table believes of N players: points, points², whether it has matches, whether it
    knows any.
    """

    mu_N: NDArray[np.float64]
    variance_N: NDArray[np.float64]
    has_N: NDArray[np.bool_]
    knows_N: NDArray[np.bool_]


class RatingTable:
    """Beliefs and counts of one book, folded game by game. Folding the same games gives the same
    table.

    Attributes:
        drift: of the players that learn.
        epoch: what was measured last, and holds for the games to come.
        payoff: who beat whom how often.
        record: how the predictions came out.
    """

    def __init__(
        self, drift: Drift = NO_DRIFT, draw_probability: float = FIRST_DRAW_PROBABILITY
    ) -> None:
        self.drift = drift
        self.epoch = Epoch(0, 0, draw_probability)
        self.payoff = PayoffTable()
        self.record = PredictionRecord()
        self._number: dict[str, int] = {}
        self._mus: list[float] = []
        self._variances: list[float] = []
        self._learns: list[bool] = []
        self._steps: list[int | None] = []  # learner steps that a belief speaks of
        self._games: list[int] = []
        self._wins: list[int] = []
        self._draws: list[int] = []
        self._pinned: dict[int, tuple[float, float]] = {}  # number -> μ and σ² that it had before

    @property
    def link(self) -> Link:
        """What makes a win probability of two beliefs, as it was measured last."""
        return self.epoch.link

    def fold(self, game: RatedGame) -> None:
        """Takes one more result in. A player against itself is never rated."""
        self.fold_all((game,))

    def fold_all(self, games: Iterable[tuple[str, str, float, int, int]]) -> None:
        """Takes results in (`RatedGame`s, or plain tuples of the same), in order.

        Bit for bit the same as one by one, and quicker.
        """
        margin = draw_margin(self.epoch.draw_probability)
        fold(self._mus, self._variances, self._numbered(games), margin, self.record)

    def _numbered(
        self, games: Iterable[tuple[str, str, float, int, int]]
    ) -> Iterator[tuple[int, int, float, float, float]]:
        """What `fold` takes; all but the beliefs and the record moves on here."""
        number, played, learns, count = self._number, self._games, self._learns, self.payoff.add
        wins, draws = self._wins, self._draws
        for seat0, seat1, outcome, step0, step1 in games:
            if seat0 == seat1:
                continue
            if seat0 not in number or seat1 not in number:
                self._number_of(seat0)
                self._number_of(seat1)
            first, second = number[seat0], number[seat1]
            played[first] += 1
            played[second] += 1
            if outcome == 0.5:
                draws[first] += 1
                draws[second] += 1
            else:
                wins[first if outcome else second] += 1
            count(seat0, seat1, outcome)
            growth0 = self._growth(first, step0) if learns[first] else 0.0
            growth1 = self._growth(second, step1) if learns[second] else 0.0
            yield first, second, outcome, growth0, growth1

    def _growth(self, number: int, step: int) -> float:
        """What the variance grows by before this match; the steps are those of the match from
        now on.
        """
        known = self._steps[number]
        if known is None:
            self._steps[number] = step
        elif step > known:  # results come in as matches end, not as they began
            self._steps[number] = step
            if number not in self._pinned:
                return self.drift.variance(known, step)
        return 0.0

    def _number_of(self, name: str) -> int:
        number = self._number.get(name)
        if number is None:
            number = self._number[name] = len(self._mus)
            self._mus.append(NEWCOMER.mu)
            self._variances.append(NEWCOMER.sigma**2)
            self._learns.append(False)
            self._steps.append(None)
            for counts in (self._games, self._wins, self._draws):
                counts.append(0)
        return number

    def learns(self, name: str) -> None:
        """Names a player whose weights change: from now on it drifts with its steps."""
        self._learns[self._number_of(name)] = True

    def begin_epoch(self, position: int, draw_probability: float, link: Link | None = None) -> None:
        """From now on draws are expected so often; with a measured `link`, the next epoch measures
        from here.

        Without one, the draw probability was set by hand, and measuring goes on as it was.
        """
        if link is None:
            self.epoch = dataclasses.replace(self.epoch, draw_probability=draw_probability)
        else:
            games = self.record.total
            self.epoch = Epoch(position, games, draw_probability, link, self.record.copy())

    def is_epoch_due(self) -> bool:
        """Whether enough results came in since the last epoch to measure again."""
        return is_due(self.epoch.games, self.record.total)

    def next_epoch(self, position: int) -> Epoch | None:
        """The epoch that begins behind `position`, the newest result folded; None while it isn't
        due.
        """
        return next_epoch(self.epoch, position, self.record)

    def pin(self, name: str, mu: float) -> None:
        """Puts an anchor at `mu` points from now on: it never moves, and counts as known."""
        if not math.isfinite(mu):
            raise InvalidInput(
                f"{name} can't be pinned at {mu}: a finite number of points is wanted"
            )
        number = self._number_of(name)
        self._pinned.setdefault(number, (self._mus[number], self._variances[number]))
        self._mus[number], self._variances[number] = mu, 0.0

    def unpin(self, name: str) -> None:
        """Goes on from what was believed before the pin; one that is not pinned stays as it is."""
        number = self._number_of(name)
        if number in self._pinned:
            self._mus[number], self._variances[number] = self._pinned.pop(number)

    def anchors(self) -> dict[str, float]:
        """μ of the pinned players."""
        return {name: self._mus[n] for name, n in self._number.items() if n in self._pinned}

    def inherit(self, name: str, parent: str, step: int) -> None:
        """A new snapshot begins with what is believed of its parent, drifted up to `step`.

        A parent of which nothing is believed, a pinned snapshot and one that has played change
        nothing.
        """
        number, known = self._number_of(name), self._number.get(parent)
        if self._games[number] or number in self._pinned or known == number:
            return
        self._steps[number] = step
        if known is None or not self._is_known(known):
            return
        since, variance = self._steps[known], self._variances[known]
        grown = 0.0 if since is None else self.drift.variance(since, step)
        self._mus[number] = self._mus[known]
        if known not in self._pinned:  # what is known of an anchor is known of nobody else
            self._variances[number] = min(variance + grown, NEWCOMER.sigma**2)

    def _is_known(self, number: int) -> bool:
        believed = self._mus[number], self._variances[number]
        return self._games[number] > 0 or believed != (NEWCOMER.mu, NEWCOMER.sigma**2)

    def state(self) -> dict[str, Any]:
        """All of it as lists and numbers, which JSON keeps to the last bit; `restored` takes it
        back.
        """
        columns = (getattr(self, name) for name in _COLUMNS)
        return {
            "drift": dataclasses.asdict(self.drift),
            "epoch": dataclasses.asdict(self.epoch),
            "players": [list(player) for player in zip(self._number, *columns, strict=True)],
            "pinned": [[number, *before] for number, before in self._pinned.items()],
            "payoff": self.payoff.state(),
            "record": dataclasses.asdict(self.record),
        }

    @classmethod
    def restored(cls, state: Mapping[str, Any]) -> RatingTable:
        """The table that `state` was taken of; folding on gives the same bits as if it had never
        stopped.
        """
        table = cls(Drift(**state["drift"]))
        epoch = dict(state["epoch"])
        epoch |= {"link": Link(**epoch["link"]), "record": PredictionRecord(**epoch["record"])}
        table.epoch = Epoch(**epoch)
        names, *columns = zip(*state["players"], strict=True) if state["players"] else [()] * 8
        table._number = {name: number for number, name in enumerate(names)}
        for name, column in zip(_COLUMNS, columns, strict=True):
            setattr(table, name, list(column))
        table._pinned = {number: (mu, variance) for number, mu, variance in state["pinned"]}
        table.payoff = PayoffTable.restored(state["payoff"])
        table.record = PredictionRecord(**state["record"])
        return table

    def belief(self, name: str) -> Belief:
        """A newcomer's belief for a player that neither played in this book, nor inherited, nor
        is pinned.
        """
        number = self._number.get(name)
        return NEWCOMER if number is None else self._belief(number)

    def _belief(self, number: int) -> Belief:
        return Belief(self._mus[number], math.sqrt(self._variances[number]))

    def has(self, name: str) -> bool:
        """Whether it has a match in this book."""
        number = self._number.get(name)
        return number is not None and self._games[number] > 0

    def knows(self, name: str) -> bool:
        """Whether anything is believed of it: it has played, inherited or is pinned."""
        number = self._number.get(name)
        return number is not None and (number in self._pinned or self._is_known(number))

    def columns(self, names: Sequence[str]) -> BeliefColumns:
        """`belief`, `has` and `knows` of many players at once."""
        numbers = list(map(self._number.get, names))
        played = [n is not None and self._games[n] > 0 for n in numbers]
        pinned = [n in self._pinned for n in numbers]
        mu_N = np.array([NEWCOMER.mu if n is None else self._mus[n] for n in numbers], float)
        unknown = NEWCOMER.sigma**2
        variance_N = np.array(
            [unknown if n is None else self._variances[n] for n in numbers], float
        )
        has_N, is_pinned_N = np.array(played, bool), np.array(pinned, bool)
        is_told_N = (mu_N != NEWCOMER.mu) | (variance_N != unknown)
        return BeliefColumns(mu_N, variance_N, has_N, has_N | is_pinned_N | is_told_N)

    def beliefs(self) -> dict[str, Belief]:
        """Every player with a match, by name."""
        return {
            name: self._belief(number)
            for name, number in self._number.items()
            if self._games[number]
        }

    def leaderboard(self, players: Mapping[str, Player]) -> list[Rating]:
        """Best score first; equal scores by name."""
        beliefs = self.beliefs()
        order = sorted(beliefs, key=lambda name: (-beliefs[name].score, name))
        return [
            self._rating(players[name], beliefs[name], rank)
            for rank, name in enumerate(order, start=1)
        ]

    def _rating(self, player: Player, belief: Belief, rank: int) -> Rating:
        number = self._number[player.name]
        wins, draws, games = self._wins[number], self._draws[number], self._games[number]
        return Rating(
            player=player,
            mu=belief.mu,
            sigma=belief.sigma,
            score=belief.score,
            wins=wins,
            draws=draws,
            losses=games - wins - draws,
            rank=rank,
            pinned=number in self._pinned,
        )
