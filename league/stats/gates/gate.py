"""A gate: a sequential test that takes results in the order in which their matches were
assigned.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Annotated

from pydantic import Field

from league.errors import InvalidInput
from league.stats.gates.bernoulli import BernoulliTest
from league.stats.gates.bounds import Risks
from league.stats.gates.hypotheses import Counts, checked_counts, unit
from league.stats.gates.multinomial import MultinomialTest

Test = Annotated[BernoulliTest | MultinomialTest, Field(discriminator="kind")]


class Verdict(Enum):
    """What a gate says after the results so far."""

    ACCEPT = "accept"
    REJECT = "reject"
    GO_ON = "go on"


@dataclass(frozen=True)
class Result:
    """The candidate's score in one match, or its mean over a pair; `ordinal` is its place in the
    order.
    """

    ordinal: int
    score: float


@dataclass(frozen=True, kw_only=True)
class Gate:
    """A sequential test and all that it has counted; taking results makes another one.

    The candidate and its opponent must be frozen: a bound says nothing of a player that changes.
    Results must come in assignment order, so of what is finished only that before the oldest open
    lease (`league.stats.gates.order`): short matches end first, and counting them first would
    favour whoever wins or loses quickly.

    `limit`: after so many results a gate that is still undecided rejects, which makes acceptance
    only rarer; 0 for none. `last`: the ordinal of the last result counted, -1 before the first.
    """

    test: Test
    risks: Risks = field(default_factory=Risks)
    limit: int = 0
    counts: Counts = ()
    last: int = -1

    def __post_init__(self) -> None:
        if self.limit < 0:
            raise InvalidInput(
                f"a limit of {self.limit} results can't be: give 0 for none, or a number above"
            )
        counts = self.counts or (0,) * self.test.cells
        object.__setattr__(self, "counts", checked_counts(counts, self.test.cells))

    @property
    def results(self) -> int:
        """How many matches or pairs are counted."""
        return sum(self.counts)

    @property
    def matches(self) -> int:
        """How many matches are counted."""
        return self.results * (2 if self.test.cells == 5 else 1)

    @property
    def llr(self) -> float:
        """The log-likelihood ratio of what is counted."""
        return self.test.llr(self.counts)

    @property
    def verdict(self) -> Verdict:
        """By the counts alone, so that anybody can check it."""
        llr = self.llr
        if llr >= self.risks.upper:
            return Verdict.ACCEPT
        if llr <= self.risks.lower or 0 < self.limit <= self.results:
            return Verdict.REJECT
        return Verdict.GO_ON

    def take(self, results: Iterable[Result]) -> Gate:
        """The gate after these results, one by one, up to the one that decides; what follows is
        left out.

        Raises `InvalidInput`, and counts none of them, when one is out of order or no score of this
        test.
        """
        cells, after = [], self.last
        for result in results:
            if result.ordinal <= after:
                raise InvalidInput(
                    f"result {result.ordinal} comes after {after}: a gate takes each result once, in the "
                    "order of assignment"
                )
            after = result.ordinal
            cells.append((result.ordinal, self._cell(result.score)))
        gate, verdict = self, self.verdict
        for ordinal, cell in cells:
            if verdict is not Verdict.GO_ON:
                break
            counts = (*gate.counts[:cell], gate.counts[cell] + 1, *gate.counts[cell + 1 :])
            gate = replace(gate, counts=counts, last=ordinal)
            verdict = gate.verdict
        return gate

    def _cell(self, score: float) -> int:
        cell = score * (self.test.cells - 1)
        if cell not in range(self.test.cells):
            allowed = ", ".join(f"{at / (self.test.cells - 1):g}" for at in range(self.test.cells))
            raise InvalidInput(
                f"{score!r} is no score of a {unit(self.test.cells)}: give one of {allowed}, the candidate's"
            )
        return int(cell)
