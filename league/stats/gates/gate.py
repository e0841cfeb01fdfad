"""A gate counts results in the order of assignment until its test decides, and certifies that."""

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
"""By how much a certificate's figures may differ from what its counts give, relative above 1."""


class Verdict(Enum):
    """What a gate says after the results so far."""

    ACCEPT = "accept"
    REJECT = "reject"
    CONTINUE = "continue"


@dataclass(frozen=True)
class Result:
    """The candidate's score in a match, or its mean over a pair, and its place in the order."""

    ordinal: int
    score: float


@dataclass(frozen=True, kw_only=True)
class Gate:
    """A sequential test and all that it has counted. It is immutable: `take` returns another one.

    The candidate and its opponent must be frozen: a test says nothing about a player that changes.
    Results come in assignment order (`settled`).

    Attributes:
        limit: after this many results a gate that has not decided rejects, which makes acceptance
            only rarer; 0 for none.
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
        """Whether it counts pairs of matches on one seed, once from each seat."""
        return self.test.cells == 5

    @property
    def results(self) -> int:
        """How many matches or pairs are counted."""
        return sum(self.counts)

    @property
    def matches(self) -> int:
        """How many matches are counted."""
        return self.results * (2 if self.paired else 1)

    @property
    def llr(self) -> float:
        """The log-likelihood ratio of what is counted."""
        return self.test.llr(self.counts)

    @property
    def verdict(self) -> Verdict:
        """Follows from the counts alone, so that anyone can check it."""
        llr = self.llr
        if llr >= self.risks.upper:
            return Verdict.ACCEPT
        if llr <= self.risks.lower or 0 < self.limit <= self.results:
            return Verdict.REJECT
        return Verdict.CONTINUE

    def take(self, results: Iterable[Result]) -> Gate:
        """The gate after these results, up to the one that decides; later ones are left out.
        Raises `InvalidInput` when one is out of order or no score of this test.
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


# --- which results may be counted


@dataclass(frozen=True, kw_only=True)
class Assigned:
    """A match that was assigned for a gate, in place `ordinal` of all assignments.

    Attributes:
        is_open: its lease can still bring a result.
        score: the candidate's 1, ½ or 0; None without a result, or when the match failed.
        pair: what the two matches of a pair share, such as their seed.
        margin: what the candidate was paid more than its opponent; None without payoffs.
        coin: from 0 to 1, drawn for the pair, or for the match where there are none.
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
    """Results before the oldest open lease, in assignment order; matches without one are skipped.

    Short matches end first, and counting them first would favour a player that wins or loses
    quickly. With `paired` these are mean scores of whole pairs, placed by their first match; half
    a pair would favour a seat.

    With `most`, the largest margin that there can be, a result with a margin m counts as a win or a
    loss by its sign, with probability |m| / `most`, else not at all; a draw counts as often as a
    margin of one `stake`. So the share of the points is that of what was at stake, and results are
    counted independently of each other: tests of shares hold as they stand. Margins beyond `most`
    count as `most`, and the tests do not hold.

    Raises:
        InvalidInput: a pair has over two results.
    """
    groups: dict[int, list[Assigned]] = defaultdict(list)
    for match in sorted(assigned, key=lambda match: match.ordinal):
        groups[match.pair if paired else match.ordinal].append(match)
    found, wanted = [], 2 if paired else 1
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
        found.append(Result(matches[0].ordinal, score))
    return found


# --- certificates


@dataclass(frozen=True, kw_only=True)
class Subject:
    """The two players of a test. Digests are of their weights, "" for a bot, which has none."""

    game: str
    book: str
    candidate: str
    candidate_digest: str
    opponent: str
    opponent_digest: str


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """A gate's decision with its evidence; made by `certify`, immutable, to and from JSON.

    Attributes:
        seeds: of the matches counted (one for each pair), in the order counted.
        mean: their share of the points.
        wilson: the 95 % interval of the mean as if the number of matches had been fixed before and,
            for pairs, as if each pair were one match, which is safe however the two depend on each
            other.
        estimate: the score with the stopping allowed for.
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
        """Readable JSON that `from_json` takes."""
        return _adapter().dump_json(self, indent=2).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """The certificate in `text`. Raises `DataCorrupt` when it is none, or its verdict and
        figures don't follow from its counts.
        """
        try:
            read: Self = _adapter().validate_json(text)
            wanted = certify(read.gate, read.subject, read.seeds)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            place = "".join(f"{part}: " for part in first["loc"])
            raise DataCorrupt(f"this is no certificate of a gate: {place}{first['msg']}") from None
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
        found = {name: getattr(self, name) for name in ("llr", "lower", "upper", "mean")}
        for name in ("wilson", "estimate"):
            found |= {f"{name}.{key}": value for key, value in vars(getattr(self, name)).items()}
        return found


def certify(gate: Gate, subject: Subject, seeds: tuple[int, ...]) -> Certificate:
    """The certificate of a gate that has decided, with one seed for each of its results."""
    found = estimate(gate.test, gate.counts, gate.risks)
    if gate.verdict is Verdict.CONTINUE or found is None:
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
        estimate=found,
    )


@cache
def _adapter() -> TypeAdapter[Any]:
    return TypeAdapter(Certificate)
