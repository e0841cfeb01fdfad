"""Defines the reasons for not learning that the doctor checks, and the verdicts on them.

If a part of a learner is broken, the checks of the parts that depend on it fail as well. Only the
broken part has to be fixed. So `primary_causes` lists the other findings as consequences of the
broken part's finding. In a run, the order in time counts too: a cause comes before what follows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Any, NamedTuple

import numpy as np


class Verdict(StrEnum):
    """Says whether a reason applies. `UNKNOWN` means that the reason can't be measured here."""

    UNKNOWN = "unknown"
    OK = "ok"
    WARNING = "warning"
    FAILURE = "failure"

    @property
    def severity(self) -> int:
        return list(Verdict).index(self)


class Reason(NamedTuple):
    """Describes a reason why an agent may not learn.

    Attributes:
        title: a few words.
        system: group of related reasons, such as `rewards`.
        leads_to: keys of the reasons that may follow from this reason, separated by spaces.
        leaves: keys of further reasons that follow if a run showed this reason before them: an
            update that broke the policy leaves its state in the weights for good.
    """

    title: str
    system: str
    leads_to: str = ""
    leaves: str = ""


FAILS = "F"
REASONS: Mapping[str, Reason] = {
    FAILS: Reason("The game fails its matches", "game"),
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
    "16": Reason("Learning rate wrong", "updates", "9 20 E V W", "11 12 18"),
    "17": Reason("Batch size wrong", "updates", "16 20 E V"),
    "18": Reason("Entropy too low", "updates", "9 A E W 16 11 17 20 V"),
    "19": Reason("Gamma too high or low", "rewards", "7 8 V"),
    "20": Reason("Update constraints too tight", "updates", "V"),
    "B": Reason("Win reward clipped on the way", "rewards", "8 10 V"),
    "C": Reason("Observations clipped", "observations", "1 4 11 12 13 14 16 17 18 20 E O V W"),
    "O": Reason("Opponents teach nothing", "opponents", "10 V W"),
    "V": Reason("Value estimates wrong", "flow"),
    "A": Reason("Normalisation drifts", "rewards", "E V"),
    "W": Reason("Wins of exactly 0 or 100 %", "opponents"),
    "E": Reason("Policy broke in an update", "updates", "", "9 11 12 16 18 20 A V W"),
    "M": Reason("Minimal agent learns nothing", "flow"),
}
"""The twenty reasons of the checklist in docs/doctor.md, and further reasons with letters as keys.
Reasons B, C, O and V are judged for every set-up. Reasons A, W and E need a run's files, and reason
M needs --emergency. If the game fails a match, the doctor reports only reason F.
"""
LEADS_TO: Mapping[str, frozenset[str]] = {
    key: frozenset({*reason.leads_to.split(), "M"}) - {key} for key, reason in REASONS.items()
}
"""For each reason, the other reasons whose checks may fail only because of this reason. Every
reason leads to M (the minimal agent learns nothing). There are no cycles.
"""
SYSTEMS = tuple(dict.fromkeys(reason.system for reason in REASONS.values()))
"""The systems that the reasons belong to, in the order of the reasons."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Holds the verdict on a reason, the measurement, and a fix (empty when all is well).

    `since` is the number of updates of the run after which the reason first showed. It is 0 for
    the game and the settings, which are the same from the start.
    """

    key: str
    measured: str
    verdict: Verdict
    fix: str = ""
    since: int = 0

    @property
    def title(self) -> str:
        return REASONS[self.key].title

    @property
    def is_bad(self) -> bool:
        return self.verdict in (Verdict.WARNING, Verdict.FAILURE)

    def explains(self, other: Finding) -> bool:
        """Whether `other` may follow from this finding, by its reason, its time and its weight."""
        if other.verdict.severity > self.verdict.severity:
            return False
        if other.key in LEADS_TO[self.key] and self.since <= other.since:
            return True
        return other.key in REASONS[self.key].leaves.split() and self.since < other.since


def judged(
    key: str,
    measured: str,
    *,
    failure: bool = False,
    warning: bool = False,
    fix: str,
    since: int = 0,
) -> Finding:
    """Makes a finding with the worst verdict that applies.

    Args:
        key: the reason's key in `REASONS`.
        measured: the measurement in words.
        failure: whether the verdict is a failure.
        warning: whether the verdict is at least a warning.
        fix: the fix. It is dropped if nothing is wrong.
        since: as in `Finding`.
    """
    verdict = Verdict.FAILURE if failure else Verdict.WARNING if warning else Verdict.OK
    fix = "" if verdict is Verdict.OK else fix
    return Finding(key=key, measured=measured, verdict=verdict, fix=fix, since=since)


def unknown(key: str, why: str) -> Finding:
    """Makes the finding for a reason that could not be measured here, and says why."""
    return Finding(key=key, measured=why, verdict=Verdict.UNKNOWN)


def ordered(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Returns the worst finding for each reason, in the order of `REASONS`."""
    worst: dict[str, Finding] = {}
    for finding in sorted(findings, key=lambda finding: -finding.verdict.severity):
        worst.setdefault(finding.key, finding)
    return tuple(worst[key] for key in REASONS if key in worst)


class Cause(NamedTuple):
    """Holds a finding that no other finding explains, and the findings that follow from it."""

    finding: Finding
    consequences: tuple[Finding, ...] = ()


def primary_causes(findings: Sequence[Finding]) -> tuple[Cause, ...]:
    """Returns every bad finding once: as a cause, or under the first cause that leads to it.

    Causes that are failures come first. A warning never explains a failure.
    """
    bad = [finding for finding in findings if finding.is_bad]
    bad.sort(key=lambda finding: -finding.verdict.severity)

    @cache
    def cause_of(finding: Finding) -> Finding:
        above = [other for other in bad if other.explains(finding)]
        return min(map(cause_of, above), key=bad.index, default=finding)

    causes = [finding for finding in bad if cause_of(finding) is finding]
    below: dict[Finding, list[Finding]] = {cause: [] for cause in causes}
    for finding in bad:
        if finding not in below:
            below[cause_of(finding)].append(finding)
    return tuple(Cause(cause, tuple(consequences)) for cause, consequences in below.items())


def systems_of(findings: Iterable[Finding]) -> dict[str, Verdict]:
    """Returns the verdict for each system: the worst verdict among the system's reasons."""
    worst: dict[str, Verdict] = {}
    for finding in sorted(findings, key=lambda finding: finding.verdict.severity):
        worst[REASONS[finding.key].system] = finding.verdict
    return {name: worst[name] for name in SYSTEMS if name in worst}


@dataclass(frozen=True)
class Diagnosis:
    """Collects the findings of an examination, by reason.

    Attributes:
        subject: the set-up or the run.
        seconds: length of the examination.
        findings: the findings, from `ordered`.
        curve: for each update, the mean reward of the minimal agent's matches. Empty without
            `--emergency`, which trains this agent.
        too_early: says how much more training a run needs before it can be judged, or "".
    """

    subject: str
    seconds: float
    findings: tuple[Finding, ...]
    curve: tuple[float, ...]
    too_early: str = ""

    @property
    def verdict(self) -> Verdict:
        """The worst verdict, but `UNKNOWN` if it is too early to call the run healthy."""
        worst = max(systems_of(self.findings).values(), key=lambda verdict: verdict.severity)
        return Verdict.UNKNOWN if self.too_early and worst is Verdict.OK else worst

    def to_json(self) -> dict[str, Any]:
        """Returns the values that `--json` writes."""
        return {
            "subject": self.subject,
            "verdict": self.verdict,
            "seconds": self.seconds,
            "systems": systems_of(self.findings),
            "causes": [
                {"reason": cause.key, "consequences": [finding.key for finding in consequences]}
                for cause, consequences in primary_causes(self.findings)
            ],
            "findings": [
                {
                    "reason": finding.key,
                    "title": finding.title,
                    "system": REASONS[finding.key].system,
                    "measured": finding.measured,
                    "verdict": finding.verdict,
                    "fix": finding.fix,
                }
                for finding in self.findings
            ],
            "curve": self.curve,
        }

    def lines(self) -> Iterator[str]:
        """Yields the report, line by line. Its last line repeats the verdict, because on a terminal
        the first line scrolls away.
        """
        counts = Counter(finding.verdict for finding in self.findings if finding.is_bad)
        bad = [f"{n} {kind}{'s' * (n > 1)}" for kind, n in sorted(counts.items())]
        found = ", ".join(bad)
        if self.too_early:
            found = f"{found or 'no fault yet'}, but {self.too_early}"
        headline = f"{self.subject}: {found or 'healthy'} ({self.seconds:.0f} s)"
        yield headline
        yield ", ".join(f"{name} {worst}" for name, worst in systems_of(self.findings).items())
        for finding in self.findings:
            line = f"{finding.key:>2}  {finding.title:<32} {finding.measured}"
            yield f"{finding.verdict:<8} {line}"
        if self.curve:
            parts = np.array_split(self.curve, min(8, len(self.curve)))
            rewards = " ".join(f"{part.mean():.3g}" for part in parts)
            yield f"minimal agent, reward of a match: {rewards}"
        for cause, consequences in primary_causes(self.findings):
            yield f"{cause.verdict}: {cause.title} ({cause.key})"
            yield f"  measured: {cause.measured}"
            yield f"  fix: {cause.fix}"
            for finding in consequences:
                yield f"  follows: {finding.title} ({finding.key})"
        yield headline
