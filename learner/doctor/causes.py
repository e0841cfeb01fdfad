"""Causes and consequences: a broken part breaks what stands on it, and only the first is worth
mending.

`LEADS_TO[a]` are the reasons that `a` alone makes look bad. The graph has no circle.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from learner.doctor.findings import Finding, Verdict

LEADS_TO: Mapping[str, tuple[str, ...]] = {
    "5": (
        "1",
        "2",
        "3",
        "4",
        "6",
        "7",
        "8",
        "11",
        "12",
        "13",
        "14",
        "15",
        "16",
        "17",
        "18",
        "20",
        "B",
        "V",
        "O",
    ),
    "3": ("2", "4", "6", "14", "V"),
    "1": ("4", "11", "12", "13", "14", "17", "V"),
    "4": ("12", "V"),
    "2": ("4", "6", "7", "9", "10", "17", "O"),
    "6": ("7", "8", "9", "10", "11", "16", "17", "19", "20", "A", "B", "O", "V"),
    "19": ("7", "8", "V"),
    "7": ("8", "9", "17", "O", "V"),
    "8": ("11", "12", "16", "17", "20", "E", "V"),
    "B": ("8", "10", "V"),
    "9": ("10", "V"),
    "15": ("9", "12", "13", "14", "V"),
    "13": ("17", "V"),
    "11": ("13", "14", "16", "17", "20", "V"),
    "12": ("13", "14", "16", "17", "18", "20", "E", "V"),
    "16": ("9", "20", "E", "V", "W"),
    "17": ("16", "20", "E", "V"),
    "14": ("V",),
    "18": ("9", "A", "E", "W", "16", "11", "17", "20", "V"),
    "20": ("V",),
    "A": ("E", "V"),
    "O": ("10", "V", "W"),
}
MINIMAL = "M"
"""That the minimal agent learns nothing follows from any failure beside it."""


@dataclass(frozen=True, kw_only=True)
class Cause:
    """A finding that nothing else explains, with those that follow from it."""

    finding: Finding
    consequences: tuple[Finding, ...] = ()


def explains(cause: Finding, other: Finding) -> bool:
    """Whether `other` may follow from `cause`: a warning never hides a failure."""
    worse = cause.verdict is Verdict.WARNING and other.verdict is Verdict.FAILURE
    follows = other.key == MINIMAL != cause.key or other.key in LEADS_TO.get(cause.key, ())
    return follows and not worse


def primary_causes(findings: Sequence[Finding]) -> tuple[Cause, ...]:
    """Every bad finding once, as a cause or under the first cause that leads to it; failures
    first.
    """
    bad = [finding for finding in findings if finding.verdict.is_bad]
    bad.sort(key=lambda finding: finding.verdict is not Verdict.FAILURE)
    roots = [
        one
        for one in bad
        if not any(_reaches(other, one, bad) for other in bad if other is not one)
    ]
    owner: dict[str, list[Finding]] = {root.key: [] for root in roots}
    for finding in bad:
        root = next(
            (root for root in roots if root is not finding and _reaches(root, finding, bad)), None
        )
        if root is not None:
            owner[root.key].append(finding)
    return tuple(Cause(finding=root, consequences=tuple(owner[root.key])) for root in roots)


def _reaches(cause: Finding, other: Finding, bad: Sequence[Finding]) -> bool:
    """Whether a chain of bad findings leads from `cause` to `other`."""
    seen, open_ = {cause.key}, [cause]
    while open_:
        current = open_.pop()
        for following in bad:
            if following.key not in seen and explains(current, following):
                if following is other:
                    return True
                seen.add(following.key)
                open_.append(following)
    return False
