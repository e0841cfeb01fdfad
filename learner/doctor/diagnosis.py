"""All findings of one examination, the systems they belong to, and what causes what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from learner.doctor.causes import Cause, primary_causes
from learner.doctor.checks_game import GAME_CHECKS
from learner.doctor.checks_learning import LEARNING_CHECKS
from learner.doctor.evidence import Evidence
from learner.doctor.findings import REASONS, SYSTEMS, Finding, Verdict

_SEVERITY = (Verdict.UNKNOWN, Verdict.OK, Verdict.WARNING, Verdict.FAILURE)


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
        """What to mend, failures first, each with its consequences."""
        return primary_causes(self.findings)

    @property
    def verdict(self) -> Verdict:
        """The worst of all."""
        return worst(self.findings)

    def systems(self) -> dict[str, Verdict]:
        """Verdict by system: the worst of its reasons."""
        by_system = {
            name: [finding for finding in self.findings if finding.reason.system == name]
            for name in SYSTEMS
        }
        return {name: worst(findings) for name, findings in by_system.items() if findings}

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


def worst(findings: Sequence[Finding]) -> Verdict:
    """The worst verdict; of nothing it is unknown."""
    return max(
        (finding.verdict for finding in findings), key=_SEVERITY.index, default=Verdict.UNKNOWN
    )


def judge(evidence: Evidence) -> tuple[Finding, ...]:
    """Every reason that a set-up can be judged by, in the order of `REASONS`."""
    return ordered([check(evidence) for check in (*GAME_CHECKS, *LEARNING_CHECKS)])


def ordered(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """One finding a reason, the worst where there are several, in the order of `REASONS`."""
    chosen: dict[str, Finding] = {}
    for finding in findings:
        held = chosen.get(finding.key)
        if held is None or _SEVERITY.index(finding.verdict) > _SEVERITY.index(held.verdict):
            chosen[finding.key] = finding
    return tuple(chosen[key] for key in REASONS if key in chosen)
