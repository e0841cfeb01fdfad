"""By which hypotheses a gate decides: those in force when it was opened, as the log keeps them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from league.stats.gates import BernoulliTest, Gate, MultinomialTest, Risks


@dataclass(frozen=True, kw_only=True)
class Rules:
    """An exploiter's: shares of the points, of matches on a seed each.

    `after` is the newest assignment's ordinal then, `seed` that of its matches' seeds.
    """

    p0: float
    p1: float
    alpha: float
    beta: float
    limit: int
    after: int
    seed: int
    paired: ClassVar[bool] = False

    def gate(self) -> Gate:
        """The test against one victim before its first result."""
        return Gate(
            test=BernoulliTest(p0=self.p0, p1=self.p1),
            risks=Risks(alpha=self.alpha, beta=self.beta),
            limit=self.limit,
        )


@dataclass(frozen=True, kw_only=True)
class PairRules:
    """Those of a main's snapshot: logistic Elo, of pairs on one seed with the seats swapped.

    `limit` counts pairs; the rest as in `Rules`.
    """

    elo0: float
    elo1: float
    alpha: float
    beta: float
    limit: int
    after: int
    seed: int
    paired: ClassVar[bool] = True

    def gate(self) -> Gate:
        """The test against the one victim before its first pair."""
        return Gate(
            test=MultinomialTest(elo0=self.elo0, elo1=self.elo1),
            risks=Risks(alpha=self.alpha, beta=self.beta),
            limit=self.limit,
        )
