"""Describes a population: several mains of a league, each with its own settings (PBT).

At intervals, a main (a member) whose clean matches show that another member is better copies that
member's weights and settings, and perturbs the settings. See Jaderberg et al., "Population based
training of neural networks" (2017).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

FINAL = "_final"
"""Ending of a schedule's last value, which changes together with its first value."""


@dataclass(frozen=True, kw_only=True)
class Member:
    """Describes a main at its newest comparison with the other mains.

    Attributes:
        player: the live player.
        step: its steps at that time.
        values: its settings that may change, by name, such as "learning_rate".
        evaluation: number of the evaluation whose matches the next comparison uses, 0 without it.
    """

    player: str
    step: int
    values: Mapping[str, float] = field(default_factory=dict)
    evaluation: int = 0
    at: float = 0.0


@dataclass(frozen=True, kw_only=True)
class MemberCopy:
    """Records that a member took over another member's weights.

    Attributes:
        number: position in the log.
        player: the live player that took the weights over.
        step: its steps at that time.
        source: the snapshot with the weights, and `digest` its weights.
        values: the settings with which the member continues, by name.
        score: mean value of a match for the other member, above 0: its payoff, or points from -1
            to 1. `low` and `high` are the ends of the interval with this `confidence`.
        matches: number of clean matches between the two.
    """

    number: int
    player: str
    step: int
    source: str
    digest: str
    values: Mapping[str, float]
    score: float
    low: float
    high: float
    confidence: float
    matches: int
    at: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Population:
    """Holds a league's members and all copies, the oldest first."""

    members: tuple[Member, ...] = ()
    copies: tuple[MemberCopy, ...] = ()
