"""Counts results in the order in which matches were assigned until a test decides, and certifies
the decision.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cache
from typing import Any, Final, Self

from pydantic import ConfigDict, TypeAdapter, ValidationError

from league.errors import DataCorrupt, InvalidInput, LeagueError
from league.metrics import Interval, wilson_interval
from league.stats.gates.bernoulli import Counts, Risks, checked_counts, mean_score, points, unit
from league.stats.gates.estimate import Estimate, estimate
from league.stats.gates.multinomial import Test

WARNING: Final = (
    "A test that stops once it has decided stops on good or bad luck: the mean of its matches is "
    "no rating. Rate from a number of matches that was fixed before."
)
TOLERANCE = 1e-6
"""Largest allowed difference between a certificate's figures and the figures computed from the
certificate's counts. The difference is relative for figures above 1.
"""


class Verdict(Enum):
    """Names the decision of a gate (a sequential test) after the results so far."""

    ACCEPT = "accept"
    REJECT = "reject"
    CONTINUE = "continue"


@dataclass(frozen=True)
class Result:
    """Gives a candidate's score in a match, or its mean score in a pair of matches.

    `ordinal` is the place of the match or pair in the order of assignment.
    """

    ordinal: int
    score: float


@dataclass(frozen=True, kw_only=True)
class Gate:
    """Holds a sequential test and the results that it has counted. It is immutable: `take` returns
    a new gate.

    The candidate and its opponent must be frozen, because a test says nothing about a player that
    changes. Results must come in the order in which their matches were assigned (`settled`).

    Attributes:
        limit: number of results after which an undecided gate rejects, 0 for no limit. The limit
            can only make acceptance rarer.
        last: the ordinal of the last result counted, -1 before the first.
    """

    test: Test
    risks: Risks = field(default_factory=Risks)
    limit: int = 0
    counts: Counts = ()
    last: int = -1

    def __post_init__(self) -> None:
        if self.limit < 0:
            raise InvalidInput(f"a limit of {self.limit} results can't be: give 0 for none")
        counts = self.counts or (0,) * self.test.cells
        object.__setattr__(self, "counts", checked_counts(counts, self.test.cells))

    @property
    def paired(self) -> bool:
        """Returns whether a result is a pair of matches on a common seed, with swapped seats."""
        return self.test.cells == 5

    @property
    def results(self) -> int:
        """Returns how many results (matches or pairs) are counted."""
        return sum(self.counts)

    @property
    def matches(self) -> int:
        """Returns how many matches are counted."""
        return self.results * (2 if self.paired else 1)

    @property
    def llr(self) -> float:
        """Returns the log-likelihood ratio of the counts."""
        return self.test.llr(self.counts)

    @property
    def verdict(self) -> Verdict:
        """Returns the decision. It follows from the counts alone, so anyone can check it."""
        llr = self.llr
        if llr >= self.risks.upper:
            return Verdict.ACCEPT
        if llr <= self.risks.lower or 0 < self.limit <= self.results:
            return Verdict.REJECT
        return Verdict.CONTINUE

    def take(self, results: Iterable[Result]) -> Gate:
        """Counts results, in order of assignment, up to the result that decides. Later results are
        left out.

        Raises:
            InvalidInput: a result is out of order, or has a score that this test does not count.
        """
        gate, after = self, self.last
        is_open = gate.verdict is Verdict.CONTINUE
        for result in results:
            if result.ordinal <= after:
                raise InvalidInput(
                    f"result {result.ordinal} comes after {after}: a gate takes each result once, "
                    "in the order of assignment"
                )
            after, cell = result.ordinal, self._cell(result.score)
            if is_open:
                counts = (*gate.counts[:cell], gate.counts[cell] + 1, *gate.counts[cell + 1 :])
                gate = replace(gate, counts=counts, last=after)
                is_open = gate.verdict is Verdict.CONTINUE
        return gate

    def _cell(self, score: float) -> int:
        cell = score * (self.test.cells - 1)
        if cell not in range(self.test.cells):
            allowed = ", ".join(f"{at / (self.test.cells - 1):g}" for at in range(self.test.cells))
            raise InvalidInput(
                f"{score!r} is no score of a {unit(self.test.cells)}: give one of {allowed}"
            )
        return int(cell)


# --- results that may be counted


@dataclass(frozen=True, kw_only=True)
class Assigned:
    """Describes a match that was assigned for a gate (a sequential test).

    Attributes:
        ordinal: the match's place in the order of all assignments.
        is_open: whether the match's lease can still bring a result.
        score: the candidate's score (1, ½ or 0), or None if the match failed or has no result.
        pair: a value that the two matches of a pair share, such as their seed.
        margin: the candidate's payoff minus its opponent's. None without payoffs.
        coin: a random number from 0 to 1, with which `settled` decides whether a result counts. The
            matches of a pair share this number.
    """

    ordinal: int
    is_open: bool
    score: float | None
    pair: int = 0
    margin: float | None = None
    coin: float = 0.0


def settled(
    assigned: Iterable[Assigned], *, paired: bool = False, stake: float = 0.0, most: float = 0.0
) -> list[Result]:
    """Returns the results of all matches that were assigned before the oldest match with an open
    lease, in the order of assignment. Matches without a result are left out.

    Short matches end first, so counting results as they arrive would give quick wins or quick
    losses too much weight. Counting only half of a pair would favour a seat.

    With `most`, a result with margin m counts as a win or a loss (by the sign of m) with
    probability |m| / `most`, and otherwise does not count. A draw counts with the same probability
    as a margin of `stake`. So the share of points among the counted results estimates the
    candidate's share of all that was at stake. Each result is counted independently of the others,
    so the error rates of a test of shares (docs/gates.md) still hold. Margins beyond `most` count
    as `most`. If there are such margins, the error rates do not hold.

    Args:
        paired: whether to return mean scores of whole pairs. A pair's place in the order is the
            place of its first match.
        stake: the mean size of the margins other than 0.
        most: the largest possible margin. 0 means that every result counts.

    Raises:
        InvalidInput: a pair has more than two results.
    """
    groups: dict[int, list[Assigned]] = defaultdict(list)
    for match in sorted(assigned, key=lambda match: match.ordinal):
        groups[match.pair if paired else match.ordinal].append(match)
    results, wanted = [], 2 if paired else 1
    for group, matches in groups.items():
        scores = [match.score for match in matches if match.score is not None]
        if len(scores) > wanted:
            raise InvalidInput(
                f"pair {group} has {len(scores)} results: a pair is one match from each seat"
            )
        if any(match.is_open for match in matches):
            break
        if len(scores) < wanted:
            continue
        score = sum(scores) / wanted
        margins = [match.margin for match in matches if match.margin is not None]
        if most and len(margins) == wanted:
            margin = sum(margins) / wanted
            size = abs(margin) or stake
            if size <= matches[0].coin * most:
                continue
            score = 0.5 + 0.5 * ((margin > 0.0) - (margin < 0.0))
        results.append(Result(matches[0].ordinal, score))
    return results


# --- certificates


@dataclass(frozen=True, kw_only=True)
class Subject:
    """Names the two players of a test, with the digests of their weights ("" for a bot without
    weights).
    """

    game: str
    book: str
    candidate: str
    candidate_digest: str
    opponent: str
    opponent_digest: str


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """Certifies a gate's decision with its evidence. `certify` makes a certificate.

    Attributes:
        seeds: seeds of the matches or pairs, in the order in which they were counted.
        mean: the candidate's share of the points in the counted matches.
        wilson: the 95 % interval of the mean as if the number of matches had been fixed in advance.
            A pair counts as a single match, which is safe however its matches depend on each other.
        estimate: the candidate's score, corrected for the bias of a test that stops early.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    subject: Subject
    gate: Gate
    verdict: Verdict
    llr: float
    lower: float
    upper: float
    seeds: tuple[int, ...]
    mean: float
    wilson: Interval
    estimate: Estimate
    warning: str = WARNING

    def to_json(self) -> str:
        """Returns readable JSON, from which `from_json` makes the certificate again."""
        return _adapter().dump_json(self, indent=2).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Reads a certificate.

        Raises:
            DataCorrupt: `text` is not a certificate, or its verdict and figures don't follow from
                its counts.
        """
        try:
            read: Self = _adapter().validate_json(text)
            wanted = certify(read.gate, read.subject, read.seeds)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            path = "".join(f"{key}: " for key in first["loc"])
            raise DataCorrupt(f"this is no certificate of a gate: {path}{first['msg']}") from None
        except LeagueError as error:
            raise DataCorrupt(f"this is no certificate of a gate: {error}") from None
        if read.verdict is not wanted.verdict:
            raise DataCorrupt(
                f"this certificate says {read.verdict.value!r}, but its counts give "
                f"{wanted.verdict.value!r}: it was altered"
            )
        figures = wanted._figures()
        for name, value in read._figures().items():
            if not abs(value - figures[name]) <= TOLERANCE * max(1.0, abs(figures[name])):
                raise DataCorrupt(
                    f"this certificate says {name} {value:g}, but its counts give "
                    f"{figures[name]:g}: it was altered"
                )
        return read

    def _figures(self) -> dict[str, float]:
        figures = {name: getattr(self, name) for name in ("llr", "lower", "upper", "mean")}
        for name in ("wilson", "estimate"):
            figures |= {f"{name}.{key}": value for key, value in vars(getattr(self, name)).items()}
        return figures


def certify(gate: Gate, subject: Subject, seeds: tuple[int, ...]) -> Certificate:
    """Certifies the decision of a gate (a sequential test).

    Args:
        gate: the gate.
        subject: the two players.
        seeds: a seed for each result of the gate.

    Raises:
        InvalidInput: the gate has not decided, or the numbers of seeds and results differ.
    """
    estimated = estimate(gate.test, gate.counts, gate.risks)
    if gate.verdict is Verdict.CONTINUE or estimated is None:
        raise InvalidInput(
            f"the gate of {subject.candidate} has not decided after {gate.results} results"
        )
    if len(seeds) != gate.results:
        raise InvalidInput(f"{len(seeds)} seeds were given for {gate.results} results")
    return Certificate(
        subject=subject,
        gate=gate,
        verdict=gate.verdict,
        llr=gate.llr,
        lower=gate.risks.lower,
        upper=gate.risks.upper,
        seeds=seeds,
        mean=mean_score(gate.counts),
        wilson=wilson_interval(points(gate.counts), gate.results),
        estimate=estimated,
    )


@cache
def _adapter() -> TypeAdapter[Any]:
    return TypeAdapter(Certificate)
