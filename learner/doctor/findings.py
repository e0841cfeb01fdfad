"""What the doctor can find: systems, reasons for not learning, verdicts, causes and consequences.

A broken part breaks what depends on it, and only the first is worth fixing: `primary_causes` puts
every other finding under the one that leads to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """How a reason was judged. `UNKNOWN`: this set-up gives no way to measure it."""

    OK = "ok"
    WARNING = "warning"
    FAILURE = "failure"
    UNKNOWN = "unknown"

    @property
    def is_bad(self) -> bool:
        return self in (Verdict.WARNING, Verdict.FAILURE)


_SEVERITY = (Verdict.UNKNOWN, Verdict.OK, Verdict.WARNING, Verdict.FAILURE)

SYSTEMS = (
    "observations",
    "actions",
    "rewards",
    "determinism",
    "flow",
    "opponents",
    "network",
    "components",
    "updates",
)
"""The eight system checks, and the updates that the last reasons are about."""


@dataclass(frozen=True, kw_only=True)
class Reason:
    """Why an agent may not learn: its key in reports, its name, the system that it belongs to."""

    key: str
    title: str
    system: str


_REASONS = (
    ("1", "Observations don't change", "observations"),
    ("2", "Actions have no effect", "actions"),
    ("3", "Game not deterministic", "determinism"),
    ("4", "Observation too large or small", "observations"),
    ("5", "Observations hold NaN or Inf", "observations"),
    ("6", "All rewards are zero", "rewards"),
    ("7", "Rewards too sparse", "rewards"),
    ("8", "Reward scale wrong", "rewards"),
    ("9", "Reward components imbalanced", "components"),
    ("10", "Reward not aligned with the goal", "components"),
    ("11", "Vanishing gradients", "flow"),
    ("12", "Exploding gradients", "flow"),
    ("13", "Network too small", "network"),
    ("14", "Network too large", "network"),
    ("15", "LSTM states not reset", "network"),
    ("16", "Learning rate wrong", "updates"),
    ("17", "Batch size wrong", "updates"),
    ("18", "Entropy too low", "updates"),
    ("19", "Gamma too high or low", "rewards"),
    ("20", "Update constraints too tight", "updates"),
    ("B", "Win reward clipped on the way", "rewards"),
    ("O", "Opponents teach nothing", "opponents"),
    ("V", "Value estimates wrong", "flow"),
    ("A", "Normalisation drifts", "rewards"),
    ("W", "Wins of exactly 0 or 100 %", "opponents"),
    ("E", "Policy broke in an update", "updates"),
    ("M", "Minimal agent learns nothing", "flow"),
)
REASONS = {key: Reason(key=key, title=title, system=system) for key, title, system in _REASONS}
"""The twenty reasons of the checklist, then further ones: B, O and V for every set-up, A, W and E
from a run's files, M with --emergency."""

LEADS_TO: Mapping[str, tuple[str, ...]] = {
    key: tuple(consequences.split())
    for key, consequences in {
        "5": "1 2 3 4 6 7 8 11 12 13 14 15 16 17 18 20 B V O",
        "3": "2 4 6 14 V",
        "1": "4 11 12 13 14 17 V",
        "4": "12 V",
        "2": "4 6 7 9 10 17 O",
        "6": "7 8 9 10 11 16 17 19 20 A B O V",
        "19": "7 8 V",
        "7": "8 9 17 O V",
        "8": "11 12 16 17 20 E V",
        "B": "8 10 V",
        "9": "10 V",
        "15": "9 12 13 14 V",
        "13": "17 V",
        "11": "13 14 16 17 20 V",
        "12": "13 14 16 17 18 20 E V",
        "16": "9 20 E V W",
        "17": "16 20 E V",
        "14": "V",
        "18": "9 A E W 16 11 17 20 V",
        "20": "V",
        "A": "E V",
        "O": "10 V W",
    }.items()
}
"""The reasons that each reason alone makes look bad. The graph has no circle."""
MINIMAL = "M"
"""Any other failure explains that the minimal agent learns nothing."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One reason judged: what was measured, the verdict, and the fix (empty when all is well)."""

    key: str
    measured: str
    verdict: Verdict
    fix: str = ""

    @property
    def reason(self) -> Reason:
        return REASONS[self.key]

    @property
    def severity(self) -> int:
        return _SEVERITY.index(self.verdict)


def judged(
    key: str, measured: str, *, failure: bool = False, warning: bool = False, fix: str
) -> Finding:
    """A finding with the worst verdict that holds; it keeps its fix where something is bad."""
    verdict = Verdict.FAILURE if failure else Verdict.WARNING if warning else Verdict.OK
    return Finding(key=key, measured=measured, verdict=verdict, fix=fix if verdict.is_bad else "")


def unknown(key: str, why: str) -> Finding:
    """A reason that could not be measured here."""
    return Finding(key=key, measured=why, verdict=Verdict.UNKNOWN)


@dataclass(frozen=True, kw_only=True)
class Cause:
    """A finding that nothing else explains, with those that follow from it."""

    finding: Finding
    consequences: tuple[Finding, ...] = ()


def primary_causes(findings: Sequence[Finding]) -> tuple[Cause, ...]:
    """Returns every bad finding once, as a cause or under the first cause that leads to it.

    Failures come first.
    """
    bad = [finding for finding in findings if finding.verdict.is_bad]
    bad.sort(key=lambda finding: -finding.severity)
    below = {finding.key: _consequences(finding, bad) for finding in bad}
    roots = [one for one in bad if not any(one.key in keys for keys in below.values())]
    consequences: dict[str, list[Finding]] = {root.key: [] for root in roots}
    for finding in bad:
        root = next((root for root in roots if finding.key in below[root.key]), None)
        if root is not None:
            consequences[root.key].append(finding)
    return tuple(Cause(finding=root, consequences=tuple(consequences[root.key])) for root in roots)


def _consequences(cause: Finding, bad: Sequence[Finding]) -> set[str]:
    """Keys of the bad findings that a chain of bad findings leads to from `cause`."""
    found: set[str] = set()
    open_ = [cause]
    while open_:
        current = open_.pop()
        for other in bad:
            if other.key not in found and other is not cause and _explains(current, other):
                found.add(other.key)
                open_.append(other)
    return found


def _explains(cause: Finding, other: Finding) -> bool:
    """Whether `other` may follow from `cause`: a warning never hides a failure."""
    follows = other.key == MINIMAL != cause.key or other.key in LEADS_TO.get(cause.key, ())
    return follows and cause.severity >= other.severity


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """What was examined, and every finding in the order of the reasons."""

    subject: str
    findings: tuple[Finding, ...]
    seconds: float = 0.0
    curve: tuple[float, ...] = ()
    """With `--emergency`: mean reward of the minimal agent's matches, update by update."""

    @property
    def causes(self) -> tuple[Cause, ...]:
        """What to fix, failures first, each with its consequences."""
        return primary_causes(self.findings)

    @property
    def verdict(self) -> Verdict:
        """The worst of all."""
        return max(self.findings, key=lambda finding: finding.severity).verdict

    def systems(self) -> dict[str, Verdict]:
        """Verdict by system: the worst of its reasons."""
        worst: dict[str, Finding] = {}
        for finding in self.findings:
            held = worst.setdefault(finding.reason.system, finding)
            if finding.severity > held.severity:
                worst[finding.reason.system] = finding
        return {name: worst[name].verdict for name in SYSTEMS if name in worst}

    def to_dict(self) -> dict[str, object]:
        """Plain values, for `--json`."""
        return {
            "subject": self.subject,
            "verdict": self.verdict.value,
            "seconds": round(self.seconds, 1),
            "systems": {name: verdict.value for name, verdict in self.systems().items()},
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
                    "title": finding.reason.title,
                    "system": finding.reason.system,
                    "measured": finding.measured,
                    "verdict": finding.verdict.value,
                    "fix": finding.fix,
                }
                for finding in self.findings
            ],
            "curve": list(self.curve),
        }


def ordered(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """One finding per reason, the worst where there are several, in the order of `REASONS`."""
    chosen: dict[str, Finding] = {}
    for finding in findings:
        if finding.key not in chosen or finding.severity > chosen[finding.key].severity:
            chosen[finding.key] = finding
    return tuple(chosen[key] for key in REASONS if key in chosen)
