"""What the doctor can find: systems, reasons for not learning, verdicts, causes and consequences.

A broken part breaks what depends on it, and only the first is worth fixing: `primary_causes` puts
every other finding under the one that leads to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class Verdict(StrEnum):
    """How a reason was judged. `UNKNOWN`: this set-up gives no way to measure it."""

    UNKNOWN = "unknown"
    OK = "ok"
    WARNING = "warning"
    FAILURE = "failure"

    @property
    def severity(self) -> int:
        return list(Verdict).index(self)

    @property
    def is_bad(self) -> bool:
        return self in (Verdict.WARNING, Verdict.FAILURE)


class Reason(NamedTuple):
    """Why an agent may not learn: its name, its system, and the reasons that it makes look bad."""

    title: str
    system: str
    leads_to: str = ""


REASONS: Mapping[str, Reason] = {
    "1": Reason("Observations don't change", "observations", "4 11 12 13 14 17 V"),
    "2": Reason("Actions have no effect", "actions", "4 6 7 9 10 17 O"),
    "3": Reason("Game not deterministic", "determinism", "2 4 6 14 V"),
    "4": Reason("Observation too large or small", "observations", "12 V"),
    "5": Reason(
        "Observations hold NaN or Inf",
        "observations",
        "1 2 3 4 6 7 8 11 12 13 14 15 16 17 18 20 B V O",
    ),
    "6": Reason("All rewards are zero", "rewards", "7 8 9 10 11 16 17 19 20 A B O V"),
    "7": Reason("Rewards too sparse", "rewards", "8 9 17 O V"),
    "8": Reason("Reward scale wrong", "rewards", "11 12 16 17 20 E V"),
    "9": Reason("Reward components imbalanced", "components", "10 V"),
    "10": Reason("Reward not aligned with the goal", "components"),
    "11": Reason("Vanishing gradients", "flow", "13 14 16 17 20 V"),
    "12": Reason("Exploding gradients", "flow", "13 14 16 17 18 20 E V"),
    "13": Reason("Network too small", "network", "17 V"),
    "14": Reason("Network too large", "network", "V"),
    "15": Reason("LSTM states not reset", "network", "9 12 13 14 V"),
    "16": Reason("Learning rate wrong", "updates", "9 20 E V W"),
    "17": Reason("Batch size wrong", "updates", "16 20 E V"),
    "18": Reason("Entropy too low", "updates", "9 A E W 16 11 17 20 V"),
    "19": Reason("Gamma too high or low", "rewards", "7 8 V"),
    "20": Reason("Update constraints too tight", "updates", "V"),
    "B": Reason("Win reward clipped on the way", "rewards", "8 10 V"),
    "O": Reason("Opponents teach nothing", "opponents", "10 V W"),
    "V": Reason("Value estimates wrong", "flow"),
    "A": Reason("Normalisation drifts", "rewards", "E V"),
    "W": Reason("Wins of exactly 0 or 100 %", "opponents"),
    "E": Reason("Policy broke in an update", "updates"),
    "M": Reason("Minimal agent learns nothing", "flow"),
}
"""The twenty reasons of the checklist, then further ones: B, O and V for every set-up, A, W and E
from a run's files, M with --emergency."""
LEADS_TO: Mapping[str, frozenset[str]] = {
    key: frozenset({*reason.leads_to.split(), "M"}) - {key} for key, reason in REASONS.items()
}
"""The reasons that each reason alone makes look bad; any failure explains M. It has no circle."""
SYSTEMS = tuple(dict.fromkeys(reason.system for reason in REASONS.values()))
"""The eight system checks, and the updates that the last reasons are about."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One reason judged: what was measured, the verdict, and the fix (empty when all is well)."""

    key: str
    measured: str
    verdict: Verdict
    fix: str = ""

    @property
    def title(self) -> str:
        return REASONS[self.key].title


def judged(
    key: str, measured: str, *, failure: bool = False, warning: bool = False, fix: str
) -> Finding:
    """A finding with the worst verdict that holds; it keeps its fix where something is bad."""
    verdict = Verdict.FAILURE if failure else Verdict.WARNING if warning else Verdict.OK
    return Finding(key=key, measured=measured, verdict=verdict, fix=fix if verdict.is_bad else "")


def unknown(key: str, why: str) -> Finding:
    """A reason that could not be measured here."""
    return Finding(key=key, measured=why, verdict=Verdict.UNKNOWN)


def ordered(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """One finding per reason, the worst where there are several, in the order of `REASONS`."""
    chosen: dict[str, Finding] = {}
    for finding in findings:
        known = chosen.setdefault(finding.key, finding)
        if finding.verdict.severity > known.verdict.severity:
            chosen[finding.key] = finding
    return tuple(chosen[key] for key in REASONS if key in chosen)


class Cause(NamedTuple):
    """A finding that nothing else explains, with those that follow from it."""

    finding: Finding
    consequences: tuple[Finding, ...] = ()


def primary_causes(findings: Sequence[Finding]) -> tuple[Cause, ...]:
    """Every bad finding once, as a cause or under the first cause that leads to it.

    Failures come first, and a warning never explains a failure.
    """
    bad = [finding for finding in findings if finding.verdict.is_bad]
    bad.sort(key=lambda finding: -finding.verdict.severity)
    below = {cause.key: _consequences(cause, bad) for cause in bad}
    roots = [one for one in bad if not any(one.key in keys for keys in below.values())]
    placed: dict[str, list[Finding]] = {root.key: [] for root in roots}
    for finding in bad:
        root = next((root for root in roots if finding.key in below[root.key]), None)
        if root is not None:
            placed[root.key].append(finding)
    return tuple(Cause(root, tuple(placed[root.key])) for root in roots)


def _consequences(cause: Finding, bad: Sequence[Finding]) -> set[str]:
    """Keys of the bad findings that a chain of bad findings leads to from `cause`."""
    found: set[str] = set()
    for other in bad:
        explained = other.key in LEADS_TO[cause.key]
        if explained and cause.verdict.severity >= other.verdict.severity:
            found |= {other.key} | _consequences(other, bad)
    return found


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """What was examined, and every finding in the order of the reasons.

    `curve` is, with `--emergency`, the mean reward of the minimal agent's matches by update.
    """

    subject: str
    findings: tuple[Finding, ...]
    seconds: float = 0.0
    curve: tuple[float, ...] = ()

    @property
    def causes(self) -> tuple[Cause, ...]:
        """What to fix, failures first, each with its consequences."""
        return primary_causes(self.findings)

    @property
    def verdict(self) -> Verdict:
        """The worst of all."""
        return max((one.verdict for one in self.findings), key=lambda one: one.severity)

    @property
    def headline(self) -> str:
        """«1 failure, 2 warnings», or «healthy»."""
        verdicts = [finding.verdict for finding in self.findings]
        counts = {kind: verdicts.count(kind) for kind in (Verdict.FAILURE, Verdict.WARNING)}
        words = [f"{count} {kind}{'s' * (count > 1)}" for kind, count in counts.items() if count]
        return ", ".join(words) or "healthy"

    def systems(self) -> dict[str, Verdict]:
        """Verdict by system: the worst of its reasons."""
        verdicts: dict[str, list[Verdict]] = {name: [] for name in SYSTEMS}
        for finding in self.findings:
            verdicts[REASONS[finding.key].system].append(finding.verdict)
        return {
            name: max(each, key=lambda one: one.severity) for name, each in verdicts.items() if each
        }

    def to_dict(self) -> dict[str, object]:
        """Plain values, for `--json`."""
        return {
            "subject": self.subject,
            "verdict": self.verdict.value,
            "seconds": round(self.seconds, 1),
            "systems": self.systems(),
            "causes": [
                {
                    "reason": cause.finding.key,
                    "consequences": [one.key for one in cause.consequences],
                }
                for cause in self.causes
            ],
            "findings": [
                {
                    "reason": finding.key,
                    "title": finding.title,
                    "system": REASONS[finding.key].system,
                    "measured": finding.measured,
                    "verdict": finding.verdict.value,
                    "fix": finding.fix,
                }
                for finding in self.findings
            ],
            "curve": list(self.curve),
        }
