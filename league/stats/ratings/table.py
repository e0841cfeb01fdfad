"""Keeps the ratings and payoffs of a book, which has the results of one kind of match. Ratings and
payoffs depend only on these results and on their order in the log.

Before each match of a learner, the learner's σ² grows by the drift since its last match. Other
players do not drift. A pinned player is an anchor: it keeps its points and affects only the others.

The share of draws, and the link function from ratings to predicted scores, are measured from the
log. If they changed with every result, no two results would be rated in the same way. So they
change only when an event of the log begins a new epoch. A book is due for its first epoch at
FIRST_GAMES rated results, and for the next epoch each time its results have grown by the factor
GROWTH. Ten million results make two dozen epochs. The matchmaker's next sweep opens a due epoch.
When an epoch begins, the share of draws and the link are measured from the games of the previous
epoch. The measurements apply to the games of the new epoch and are never revised.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from league.errors import InvalidInput
from league.players import Player, Rating
from league.stats.payoff import PayoffTable
from league.stats.ratings.belief import (
    FIRST_DRAW_PROBABILITY,
    NEWCOMER,
    NO_DRIFT,
    NORMAL_LINK,
    Belief,
    Drift,
    Link,
    draw_margin,
    rate,
    rate_points,
    spread,
)
from league.stats.recent import RecentScores

FIRST_GAMES = 1_000
GROWTH = 1.5
DRAWS_FLOOR, DRAWS_CEILING = 1e-3, 0.9
"""Bounds of the draw probability. Even if no game was drawn so far, a later game may be."""
PRIOR_GAMES = 100
"""In a measurement of the draw probability, its earlier value counts as this many games."""
_BIN, _BINS = 0.1, 51
"""Width and number of the bins of |t|. The last bin holds everything from 5 on."""
_SHARPNESS = np.round(np.arange(0.4, 1.6001, 0.01), 2)
_SHARES = np.round(np.arange(0.0, 1.0001, 0.1), 1)
_SHARPNESS_SIGMA = 0.2
"""Standard deviation of the prior of ln a, around 0."""
TREND = 16
"""A table keeps at most twice this number of a player's past scores. When it has that many, it
drops every other score.
"""


# --- epochs


def _zeros() -> list[float]:
    return [0.0] * _BINS


@dataclass
class PredictionRecord:
    """Records how well TrueSkill predicted results, as sums by bin of |t|, t = (μ₁ − μ₂)/c.

    A game is counted before it is rated, so its own result does not affect its prediction.

    Attributes:
        games: number of games.
        draws: number of drawn games.
        gaps: sum of |t|.
        narrowness: sum of 1/c in 1/points. Multiplying a draw margin by 1/c converts it into units
            of t.
        scores: points of the player believed to be stronger: 1 for a win, ½ for a draw.
    """

    games: list[float] = field(default_factory=_zeros)
    draws: list[float] = field(default_factory=_zeros)
    gaps: list[float] = field(default_factory=_zeros)
    narrowness: list[float] = field(default_factory=_zeros)
    scores: list[float] = field(default_factory=_zeros)

    def add(self, t: float, c: float, outcome: float) -> None:
        """Counts a game. `outcome` and the rating gap `t` are from the first player's point of
        view, so `t` may be negative.
        """
        index = min(int(abs(t) / _BIN), _BINS - 1)
        self.games[index] += 1.0
        self.draws[index] += outcome == 0.5
        self.gaps[index] += abs(t)
        self.narrowness[index] += 1.0 / c
        self.scores[index] += 1.0 - outcome if t < 0.0 else outcome

    def draw_probability(self, before: float) -> float:
        """Returns the share of drawn games, after adding PRIOR_GAMES imaginary games with the share
        `before`.

        Equal players draw more often than all players do (.15 against .10 in leagues of brawl,
        according to the fit), but only the ratings show which players are equal. Measuring the draw
        margin with the ratings would cause a feedback loop: a wide margin spreads the ratings, and
        spread ratings call for a wider margin. The plain share predicts equally well.
        """
        games = int(sum(self.games))
        share = (sum(self.draws) + PRIOR_GAMES * before) / (games + PRIOR_GAMES)
        return min(max(share, DRAWS_FLOOR), DRAWS_CEILING)

    def link(self, draw_probability: float) -> Link:
        """Returns the most likely link given the scores, on a grid with steps of .01 in the
        sharpness and .1 in the logistic share.
        """
        games_B = np.array(self.games)
        earned_B = np.clip(self.scores, 0.0, games_B)  # payoffs may earn more
        count_B = np.maximum(games_B, 1.0)
        t_B = np.array(self.gaps) / count_B
        e_B = draw_margin(draw_probability) * np.array(self.narrowness) / count_B
        best, most = NORMAL_LINK, -math.inf
        for sharpness in _SHARPNESS:
            prior = -((math.log(sharpness) / _SHARPNESS_SIGMA) ** 2) / 2.0
            for share in _SHARES:
                link = Link(float(sharpness), float(share))
                score_B = np.clip(link.score(t_B, e_B), 1e-12, 1.0 - 1e-12)
                likelihood = earned_B @ np.log(score_B) + (games_B - earned_B) @ np.log1p(-score_B)
                if likelihood + prior > most:
                    best, most = link, float(likelihood + prior)
        return best


@dataclass(frozen=True)
class Epoch:
    """Holds the measurements that apply to a book's results after `after_position`.

    The measurements were made when the book had `games` rated results.
    """

    after_position: int
    games: int
    draw_probability: float
    link: Link = NORMAL_LINK


# --- the table of a book


class BeliefColumns(NamedTuple):
    """Holds the ratings of N players in a book: mean (points), variance (points²), whether the
    player has matches in the book, and whether its strength is known. The strength of a player
    without matches counts as known if it has inherited a rating or its rating is pinned.
    """

    mu_N: NDArray[np.float64]
    variance_N: NDArray[np.float64]
    has_N: NDArray[np.bool_]
    knows_N: NDArray[np.bool_]


@dataclass(slots=True)
class _Standing:
    """Describes a player of a table.

    The variance of a learner includes its drift until `step`, a step of its training.
    """

    mu: float = NEWCOMER.mu
    sigma: float = NEWCOMER.sigma
    learns: bool = False
    step: int | None = None
    games: int = 0
    wins: int = 0
    draws: int = 0
    before_pin: Sequence[float] | None = None
    trend: list[float] = field(default_factory=list)

    @property
    def belief(self) -> Belief:
        return Belief(self.mu, self.sigma)

    @belief.setter
    def belief(self, belief: Belief) -> None:
        self.mu, self.sigma = belief.mu, belief.sigma

    @property
    def is_known(self) -> bool:
        """Returns whether the player has played, has inherited a rating, or is pinned."""
        return self.games > 0 or self.belief != NEWCOMER  # a pinned player has σ 0

    def take(self, outcome: float, belief: Belief) -> None:
        """Counts a match and takes the new rating `belief`, unless the player is pinned."""
        self.games += 1
        self.wins += outcome == 1.0
        self.draws += outcome == 0.5
        if self.before_pin is None:
            self.belief = belief
        stride = 1 << max(0, self.games.bit_length() - TREND.bit_length())
        if self.games == TREND * stride and stride > 1:
            self.trend = self.trend[1::2]
        if not self.games % stride:
            self.trend.append(round(self.belief.score, 2))


_UNKNOWN = _Standing()


class RatingTable:
    """Rates a book's results one by one. The same results give the same table, bit for bit.

    Attributes:
        drift: the growth of σ² of players that learn.
        epoch: the last epoch, whose measurements apply to the next games.
        payoff: counts of results by pair of players.
        recent: recent scores of players that learn.
        games: number of rated results.
        record: the quality of predictions since the last epoch began.
    """

    def __init__(
        self, drift: Drift = NO_DRIFT, draw_probability: float = FIRST_DRAW_PROBABILITY
    ) -> None:
        self.drift = drift
        self.epoch = Epoch(0, 0, draw_probability)
        self.payoff = PayoffTable()
        self.recent = RecentScores()
        self.games = 0
        self.record = PredictionRecord()
        self._standings: dict[str, _Standing] = {}

    @property
    def link(self) -> Link:
        """Returns the link that the last epoch measured."""
        return self.epoch.link

    def fold(
        self,
        seat0: str,
        seat1: str,
        outcome: float,
        step0: int = 0,
        step1: int = 0,
        margin: float | None = None,
    ) -> None:
        """Applies a result to the ratings. Matches of a player against itself are not rated.

        Args:
            seat0, seat1: names of the players.
            outcome: outcome of seat 0: 1, ½ or 0.
            step0, step1: learner steps of the players' weights. A frozen player's step is ignored.
            margin: seat 0's payoff minus seat 1's, None in games without payoffs. In games with
                payoffs, players are rated by the margin instead of the outcome.
        """
        if seat0 == seat1:
            return
        first, second = self._standing(seat0), self._standing(seat1)
        tau0, tau1 = self._tau(first, step0), self._tau(second, step1)
        grown = (
            Belief(first.mu, math.hypot(first.sigma, tau0)),
            Belief(second.mu, math.hypot(second.sigma, tau1)),
        )
        c = spread(*grown)
        paid = 0.0 if margin is None else margin / 2.0
        self.payoff.add(seat0, seat1, outcome, paid)
        stakes, points = self.payoff.stakes, outcome
        if stake := stakes.stake:
            points = 0.5 + paid / (2.0 * stake)
        self.record.add((first.mu - second.mu) / c, c, points)
        self.games += 1
        if first.learns or second.learns:
            margin = 2.0 * outcome - 1.0 if margin is None else margin
            self.recent.add_stake(margin)
            if first.learns:
                self.recent.add(seat0, seat1, margin, step0)
            if second.learns:
                self.recent.add(seat1, seat0, -margin, step1)
        if stake:
            rated = rate_points(*grown, points, stake**2 / stakes.square)
        else:
            rated = rate(*grown, outcome, self.epoch.draw_probability)
        first.take(outcome, rated[0])
        second.take(1.0 - outcome, rated[1])

    def _tau(self, standing: _Standing, step: int) -> float:
        """Returns τ in points. Before a match of a learner, τ² is added to the learner's σ²."""
        last_step = standing.step
        if not standing.learns or (last_step is not None and step <= last_step):
            return 0.0  # a match that began earlier may end later, so steps may go back
        standing.step = step
        if last_step is None or standing.before_pin is not None:
            return 0.0
        return math.sqrt(self.drift.variance(last_step, step))

    def _standing(self, name: str) -> _Standing:
        return self._standings.setdefault(name, _Standing())

    def learns(self, name: str) -> None:
        """Marks a player as learning. From now on, its σ² grows with its steps."""
        self._standing(name).learns = True

    def emptied(self) -> RatingTable:
        """Returns a table without results and pins, in which the same players count as learning."""
        table = RatingTable(self.drift)
        for name, standing in self._standings.items():
            if standing.learns:
                table.learns(name)
        return table

    def begin_epoch(self, position: int, draw_probability: float, link: Link) -> None:
        """Uses new measurements for predictions, and starts a new record.

        Args:
            position: log position after which the measurements apply.
            draw_probability: share of draws between equal players.
            link: the link function of predictions.
        """
        self.epoch = Epoch(position, self.games, draw_probability, link)
        self.record = PredictionRecord()

    def is_epoch_due(self) -> bool:
        """Returns whether there are enough new results to begin another epoch."""
        return self.games >= max(FIRST_GAMES, math.ceil(GROWTH * self.epoch.games))

    def next_epoch(self, position: int) -> Epoch | None:
        """Measures the epoch that begins after `position`, the newest result. Returns None if no
        epoch is due.
        """
        if not self.is_epoch_due():
            return None
        before, record = self.epoch.draw_probability, self.record
        return Epoch(position, self.games, record.draw_probability(before), record.link(before))

    def pin(self, name: str, mu: float) -> None:
        """Pins a player at `mu` points from now on. Its rating then never changes, and its strength
        counts as known.

        Raises:
            InvalidInput: `mu` is not finite.
        """
        if not math.isfinite(mu):
            raise InvalidInput(f"{name} can't be pinned at {mu}: use a finite number of points")
        standing = self._standing(name)
        if standing.before_pin is None:
            standing.before_pin = standing.mu, standing.sigma
        standing.mu, standing.sigma = mu, 0.0

    def unpin(self, name: str) -> None:
        """Restores the rating from before the pin, if the player is pinned."""
        standing = self._standing(name)
        if standing.before_pin is not None:
            standing.mu, standing.sigma = standing.before_pin
            standing.before_pin = None

    def anchors(self) -> dict[str, float]:
        """Returns μ of the pinned players."""
        pinned = ((n, s) for n, s in self._standings.items() if s.before_pin is not None)
        return {name: standing.mu for name, standing in pinned}

    def inherit(self, name: str, parent: str, step: int) -> None:
        """Gives a new snapshot its parent's rating, after the parent's drift up to `step`.

        Nothing changes if the parent's strength is unknown, or if the snapshot is pinned or has
        played.

        Args:
            name: the snapshot.
            parent: its parent.
            step: the learner's step at which the snapshot was frozen.
        """
        child = self._standing(name)
        if child.games or child.before_pin is not None or name == parent:
            return
        child.step = step
        source = self._standings.get(parent)
        if source is None or not source.is_known:
            return
        child.mu = source.mu
        if source.before_pin is None:  # a pinned parent passes on only its μ
            grown = 0.0 if source.step is None else self.drift.variance(source.step, step)
            child.sigma = min(math.hypot(source.sigma, math.sqrt(grown)), NEWCOMER.sigma)

    def state(self) -> dict[str, Any]:
        """Returns the table as lists and numbers that JSON keeps to the last bit."""
        return {
            "drift": dataclasses.asdict(self.drift),
            "epoch": dataclasses.asdict(self.epoch),
            "games": self.games,
            "players": {n: dataclasses.astuple(s) for n, s in self._standings.items()},
            "payoff": self.payoff.state(),
            "recent": self.recent.state(),
            "record": dataclasses.asdict(self.record),
        }

    @classmethod
    def restored(cls, state: Mapping[str, Any]) -> RatingTable:
        """Returns the table from which `state` was taken. Further results change both tables in the
        same way, to the last bit.
        """
        table = cls(Drift(**state["drift"]))
        epoch = dict(state["epoch"])
        table.epoch = Epoch(**epoch | {"link": Link(**epoch["link"])})
        table.games = state["games"]
        table._standings = {n: _Standing(*values) for n, values in state["players"].items()}
        for standing in table._standings.values():
            standing.before_pin = standing.before_pin and tuple(standing.before_pin)
        table.payoff = PayoffTable.restored(state["payoff"])
        table.recent = RecentScores.restored(state["recent"])
        table.record = PredictionRecord(**state["record"])
        return table

    def belief(self, name: str) -> Belief:
        """Returns a player's rating, which is a newcomer's if the book does not know the player."""
        return self._standings.get(name, _UNKNOWN).belief

    def has(self, name: str) -> bool:
        """Returns whether the player has a match in this book."""
        return self._standings.get(name, _UNKNOWN).games > 0

    def columns(self, names: Sequence[str]) -> BeliefColumns:
        """Returns the ratings of N players as arrays."""
        standings = [self._standings.get(name, _UNKNOWN) for name in names]
        mu_N = np.array([standing.mu for standing in standings], np.float64)
        sigma_N = np.array([standing.sigma for standing in standings], np.float64)
        has_N = np.array([standing.games > 0 for standing in standings], np.bool_)
        knows_N = has_N | (mu_N != NEWCOMER.mu) | (sigma_N != NEWCOMER.sigma)
        return BeliefColumns(mu_N, sigma_N**2, has_N, knows_N)

    def beliefs(self) -> dict[str, Belief]:
        """Returns the ratings of all players with a match in this book, by name."""
        return {
            name: standing.belief for name, standing in self._standings.items() if standing.games
        }

    def leaderboard(self, players: Mapping[str, Player]) -> list[Rating]:
        """Returns the ratings of all players with a match, best score first, then by name."""
        played = [(name, standing) for name, standing in self._standings.items() if standing.games]
        played.sort(key=lambda item: (-item[1].belief.score, item[0]))
        return [
            Rating(
                player=players[name],
                mu=standing.mu,
                sigma=standing.sigma,
                score=standing.belief.score,
                wins=standing.wins,
                draws=standing.draws,
                losses=standing.games - standing.wins - standing.draws,
                rank=rank,
                pinned=standing.before_pin is not None,
                trend=tuple(standing.trend),
            )
            for rank, (name, standing) in enumerate(played, start=1)
        ]
