"""TrueSkill ratings as a pure function of the results, in commit order, one table per book.

For two players TrueSkill has a closed form (Herbrich et al. 2006), used here with the `trueskill`
package's own truncated-Gaussian functions; a test holds it equal to `trueskill.rate_1vs1`. With
c² = 2β² + σ₁² + σ₂², t = (μ₁ − μ₂)/c, ε = Φ⁻¹((p_draw + 1)/2)·√2·β:

    μ₁ += σ₁²/c · v,  μ₂ −= σ₂²/c · v,  σᵢ² *= 1 − σᵢ²/c² · w,  v and w at (t, ε/c)

and before each match σ² += τ², where τ is 0 for a player that can't change.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

import trueskill

from league.payoff import PayoffTable
from league.players import Player, Rating

MU = 25.0
SIGMA = 25.0 / 3.0
BETA = 25.0 / 6.0
TAU_LIVE = 25.0 / 300.0
"""What a live player's σ grows by before each match, because its weights went on changing."""


@dataclass(frozen=True)
class Belief:
    """What is believed of a player's strength: a Gaussian. `sigma` is a step size, not an interval."""

    mu: float = MU
    sigma: float = SIGMA

    @property
    def score(self) -> float:
        """The conservative estimate that orders the leaderboard."""
        return self.mu - 3.0 * self.sigma


NEWCOMER = Belief()


@dataclass(frozen=True)
class RatedGame:
    """One result as a rating sees it. `tau0`, `tau1`: TAU_LIVE for a live player, else 0."""

    seat0: str
    seat1: str
    outcome: float
    tau0: float
    tau1: float
    draw_probability: float


def win_probability(first: Belief, second: Belief) -> float:
    """Φ((μ₁ − μ₂)/√(2β² + σ₁² + σ₂²)): how likely `first` beats `second`."""
    spread = math.sqrt(2 * BETA**2 + first.sigma**2 + second.sigma**2)
    return NormalDist().cdf((first.mu - second.mu) / spread)


def quality(first: Belief, second: Belief) -> float:
    """TrueSkill match quality √(2β²/c²)·exp(−(μ₁ − μ₂)²/(2c²)); .4472 for two newcomers."""
    c2 = 2 * BETA**2 + first.sigma**2 + second.sigma**2
    return math.sqrt(2 * BETA**2 / c2) * math.exp(-((first.mu - second.mu) ** 2) / (2 * c2))


@lru_cache
def _environment(draw_probability: float) -> trueskill.TrueSkill:
    return trueskill.TrueSkill(MU, SIGMA, BETA, 0.0, draw_probability)


@lru_cache
def _precise_environment(draw_probability: float) -> trueskill.TrueSkill:
    return trueskill.TrueSkill(MU, SIGMA, BETA, 0.0, draw_probability, backend="mpmath")


@lru_cache
def _draw_margin(draw_probability: float) -> float:
    return trueskill.calc_draw_margin(draw_probability, 2, _environment(draw_probability))


def rate(game: RatedGame, first: Belief, second: Belief) -> tuple[Belief, Belief]:
    """Beliefs of seat 0 and seat 1 after a match between them."""
    first, second = _drifted(first, game.tau0), _drifted(second, game.tau1)
    if game.outcome == 0.0:
        loser, winner = _update(first, second, False, game.draw_probability, winner_first=False)
        return loser, winner
    return _update(first, second, game.outcome == 0.5, game.draw_probability, winner_first=True)


def _drifted(belief: Belief, tau: float) -> Belief:
    return Belief(belief.mu, math.hypot(belief.sigma, tau)) if tau else belief


def _update(
    first: Belief, second: Belief, drawn: bool, draw_probability: float, *, winner_first: bool
) -> tuple[Belief, Belief]:
    """The closed form; gaps too wide for double precision are redone with arbitrary precision."""
    winner, loser = (first, second) if winner_first else (second, first)
    c = math.sqrt(2 * BETA**2 + winner.sigma**2 + loser.sigma**2)
    t, e = (winner.mu - loser.mu) / c, _draw_margin(draw_probability) / c
    env = _environment(draw_probability)
    try:
        v = env.v_draw(t, e) if drawn else env.v_win(t, e)
        w = env.w_draw(t, e) if drawn else env.w_win(t, e)
    except FloatingPointError:
        return _update_precisely(first, second, drawn, draw_probability, winner_first=winner_first)
    winner = _moved(winner, v, w, c)
    loser = _moved(loser, -v, w, c)
    return (winner, loser) if winner_first else (loser, winner)


def _moved(belief: Belief, v: float, w: float, c: float) -> Belief:
    share = belief.sigma**2 / c
    return Belief(belief.mu + share * v, belief.sigma * math.sqrt(1.0 - share / c * w))


def _update_precisely(
    first: Belief, second: Belief, drawn: bool, draw_probability: float, *, winner_first: bool
) -> tuple[Belief, Belief]:
    env = _precise_environment(draw_probability)
    ranks = [0, 0] if drawn else [0, 1] if winner_first else [1, 0]
    groups = [(env.create_rating(b.mu, b.sigma),) for b in (first, second)]
    (new_first,), (new_second,) = env.rate(groups, ranks)
    return Belief(new_first.mu, new_first.sigma), Belief(new_second.mu, new_second.sigma)


class RatingTable:
    """Beliefs and counts of one book, folded game by game. Folding the same games gives the same table."""

    def __init__(self) -> None:
        self._beliefs: dict[str, Belief] = {}
        self.payoff = PayoffTable()

    def fold(self, game: RatedGame) -> None:
        """Takes one more result in. A player against itself is never rated."""
        if game.seat0 == game.seat1:
            return
        self._beliefs[game.seat0], self._beliefs[game.seat1] = rate(
            game, self.belief(game.seat0), self.belief(game.seat1)
        )
        self.payoff.add(game.seat0, game.seat1, game.outcome)

    def belief(self, name: str) -> Belief:
        """A newcomer's belief for a player without a match in this book."""
        return self._beliefs.get(name, NEWCOMER)

    def has(self, name: str) -> bool:
        return name in self._beliefs

    def beliefs(self) -> dict[str, Belief]:
        """Every player with a match, by name."""
        return dict(self._beliefs)

    def leaderboard(self, players: Mapping[str, Player]) -> list[Rating]:
        """Best score first; equal scores by name."""
        order = sorted(self._beliefs, key=lambda name: (-self._beliefs[name].score, name))
        return [self._rating(players[name], rank) for rank, name in enumerate(order, start=1)]

    def _rating(self, player: Player, rank: int) -> Rating:
        belief, counts = self._beliefs[player.name], self.payoff.total(player.name)
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
    for game in games:
        table.fold(game)
    return table
