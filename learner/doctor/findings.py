"""What the doctor can find: the systems it looks at, the reasons for not learning, and a verdict
on each.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """How a reason was judged. `UNKNOWN`: this set-up gives no way to measure it, and that is
    said.
    """

    OK = "ok"
    WARNING = "warning"
    FAILURE = "failure"
    UNKNOWN = "unknown"

    @property
    def is_bad(self) -> bool:
        return self in (Verdict.WARNING, Verdict.FAILURE)


SYSTEMS = {
    "observations": "what the agent sees",
    "actions": "what it does has an effect",
    "rewards": "what it is paid for",
    "determinism": "a seed repeats a match",
    "flow": "values and gradients reach every part",
    "opponents": "whom it can learn from",
    "network": "size and memory of the agent",
    "components": "what each reward term pays",
    "updates": "how far an update moves",
}
"""The eight system checks, and the updates that the last reasons speak of."""


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
"""The twenty, then what shows beside them: B, O and V everywhere, A, W and E in a run's files, M by
--emergency."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One reason judged: what was measured, the verdict, and what to do about it (empty when all
    is well).
    """

    key: str
    measured: str
    verdict: Verdict
    fix: str = ""

    @property
    def reason(self) -> Reason:
        return REASONS[self.key]


def judged(
    key: str, measured: str, *, failure: bool = False, warning: bool = False, fix: str
) -> Finding:
    """A finding whose verdict is the worst that holds; its fix is kept where there is something
    to mend.
    """
    verdict = Verdict.FAILURE if failure else Verdict.WARNING if warning else Verdict.OK
    return Finding(key=key, measured=measured, verdict=verdict, fix=fix if verdict.is_bad else "")


def unknown(key: str, why: str) -> Finding:
    """A reason that could not be measured here."""
    return Finding(key=key, measured=why, verdict=Verdict.UNKNOWN)
