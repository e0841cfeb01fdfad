"""What a sequential test may get wrong, and the bounds on its log-likelihood ratio that follow."""

from __future__ import annotations

import math
from dataclasses import dataclass

from league.errors import InvalidInput


@dataclass(frozen=True, kw_only=True)
class Risks:
    """The error rates that are allowed.

    `alpha`: how often a candidate as weak as the null hypothesis is accepted; `beta`: how often one
    as strong as the alternative is rejected. Raises `InvalidInput` unless both are positive and
    their sum is below 1.
    """

    alpha: float = 0.05
    beta: float = 0.05

    def __post_init__(self) -> None:
        for name, risk in (("alpha", self.alpha), ("beta", self.beta)):
            if not 0.0 < risk < 1.0:
                raise InvalidInput(
                    f"{name} {risk:g} is no error rate: give a share between 0 and 1, as 0.05"
                )
        if self.alpha + self.beta >= 1.0:
            raise InvalidInput(
                f"alpha {self.alpha:g} and beta {self.beta:g} add up to 1 or more, a coin does as well: "
                "give smaller ones"
            )

    @property
    def lower(self) -> float:
        """Wald's A = ln(β/(1 − α)), −2.9444 at 5 %: the test rejects at or below it."""
        return math.log(self.beta / (1.0 - self.alpha))

    @property
    def upper(self) -> float:
        """Wald's B = ln((1 − β)/α), 2.9444 at 5 %: the test accepts at or above it.

        Source: A. Wald, "Sequential tests of statistical hypotheses", Annals of Mathematical
        Statistics 16 (1945). The error rates α', β' that these bounds have hold α' <= α/(1 − β), β'
        <= β/(1 − α) and α' + β' <= α + β.
        """
        return math.log((1.0 - self.beta) / self.alpha)
