"""What a gate decided and on what ground, as a record that whoever reads it can check."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Self

from pydantic import ConfigDict, TypeAdapter, ValidationError

from league.errors import DataCorrupt, InvalidInput, LeagueError
from league.metrics import Interval, wilson_interval
from league.stats.gates.estimate import Estimate, estimated
from league.stats.gates.gate import Gate, Verdict
from league.stats.gates.hypotheses import mean_score, points

VERSION = 1
WARNING: Final = (
    "A test that stops when it has seen enough stops on good or bad luck: the mean of its matches is no "
    "rating. Rate from matches whose number was fixed before."
)
TOLERANCE = 1e-6


@dataclass(frozen=True, kw_only=True)
class Subject:
    """Who was tested against whom. Digests are of the weights, "" for a bot, which has none."""

    game: str
    book: str
    candidate: str
    candidate_digest: str
    opponent: str
    opponent_digest: str


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """A gate's decision with its ground; made by `certified`, immutable, to and from JSON.

    `seeds`: of the matches counted (for pairs, one a pair), in the order counted. `mean`: their
    share of the points, `wilson` its 95 % interval as if their number had been fixed before and,
    for pairs, as if each pair were one match, which is safe however the two depend on each other.
    `estimate`: the score with the stopping allowed for. `warning` is for whoever reads the file.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    version: int = VERSION
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
        """The certificate in `text`.

        Raises `DataCorrupt` when it is none, or its verdict and figures don't follow from its
        counts.
        """
        try:
            read: Self = _adapter().validate_json(text)
        except (ValidationError, LeagueError) as error:
            raise DataCorrupt(f"this is no certificate of a gate: {_reason(error)}") from None
        if read.version != VERSION:
            raise DataCorrupt(
                f"this certificate has version {read.version}, this program reads {VERSION}"
            )
        try:
            wanted = certified(read.gate, read.subject, read.seeds)
        except InvalidInput as error:
            raise DataCorrupt(f"this certificate contradicts itself: {error}") from None
        read._compare(wanted)
        return read

    def _compare(self, wanted: Certificate) -> None:
        if self.verdict is not wanted.verdict:
            raise DataCorrupt(
                f"this certificate says {self.verdict.value!r}, its counts say {wanted.verdict.value!r}: "
                "it was altered"
            )
        for name, said, follows in zip(_FIGURES, _figures(self), _figures(wanted), strict=True):
            if not abs(said - follows) <= TOLERANCE * max(1.0, abs(follows)):
                raise DataCorrupt(
                    f"this certificate says {name} {said:g}, its counts say {follows:g}: it was altered"
                )


_FIGURES = ("llr", "lower", "upper", "mean", "wilson.low", "wilson.high",
            "estimate.score", "estimate.low", "estimate.high")  # fmt: skip


def _figures(certificate: Certificate) -> tuple[float, ...]:
    return (
        certificate.llr,
        certificate.lower,
        certificate.upper,
        certificate.mean,
        certificate.wilson.low,
        certificate.wilson.high,
        certificate.estimate.score,
        certificate.estimate.low,
        certificate.estimate.high,
    )


def certified(gate: Gate, subject: Subject, seeds: tuple[int, ...]) -> Certificate:
    """The certificate of a gate that has decided.

    Raises `InvalidInput` when it has not, or `seeds` are not as many as its results.
    """
    verdict = gate.verdict
    if verdict is Verdict.GO_ON:
        raise InvalidInput(
            f"the gate of {subject.candidate} has not decided after {gate.results} results: it goes on"
        )
    if len(seeds) != gate.results:
        raise InvalidInput(
            f"{len(seeds)} seeds were given for {gate.results} results: give one for each"
        )
    estimate = estimated(gate.test, gate.counts, gate.risks)
    assert estimate is not None  # a gate without results goes on
    return Certificate(
        subject=subject,
        gate=gate,
        verdict=verdict,
        llr=gate.llr,
        lower=gate.risks.lower,
        upper=gate.risks.upper,
        seeds=seeds,
        mean=mean_score(gate.counts),
        wilson=wilson_interval(points(gate.counts), gate.results),
        estimate=estimate,
    )


@cache
def _adapter() -> TypeAdapter[Any]:
    return TypeAdapter(Certificate)


def _reason(error: ValidationError | LeagueError) -> str:
    if isinstance(error, LeagueError):
        return str(error)
    first = error.errors(include_url=False)[0]
    place = ".".join(str(part) for part in first["loc"])
    return f"{place}: {first['msg']}" if place else str(first["msg"])
