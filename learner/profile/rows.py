"""What was measured, as values: a row per configuration, with medians and spread over its
bursts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from league.errors import LeagueError
from learner.profile.worker import Measured

Setting = str | int
Changes = Mapping[str, Setting]
"""Settings of [learner] by name, those that a configuration may differ in."""


@dataclass(frozen=True)
class Spread:
    """A median over bursts, the least and the most."""

    median: float
    lowest: float
    highest: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        return cls(median(values), min(values), max(values))

    @property
    def relative(self) -> float:
        """Width as a share of the median."""
        return (self.highest - self.lowest) / self.median if self.median else 0.0


@dataclass
class Row:
    """One configuration and all its bursts."""

    changes: Changes
    bursts: list[dict[str, Any]] = field(default_factory=list)
    memory: dict[str, int] = field(default_factory=dict)
    gpu_busy_shares: list[float] = field(default_factory=list)
    trace_gpu_busy_share: float | None = None
    failure: str = ""
    error: LeagueError | None = None
    warning: str = ""

    def add(self, measured: Measured) -> None:
        """Takes in what one process measured. A failure stays, whatever comes after it."""
        self.bursts += measured.bursts
        for name, size in measured.memory.items():
            self.memory[name] = max(size, self.memory.get(name, 0))
        if measured.gpu_busy_share is not None:
            self.gpu_busy_shares.append(measured.gpu_busy_share)
        self.trace_gpu_busy_share = measured.trace_gpu_busy_share or self.trace_gpu_busy_share
        self.failure = self.failure or measured.failure
        self.error = self.error or measured.error
        self.warning = self.warning or measured.warning

    @property
    def counts(self) -> bool:
        """Whether it was measured and nothing failed."""
        return bool(self.bursts) and not self.failure

    @property
    def whole(self) -> bool:
        """False when a burst was scaled up from the beginning of an update."""
        return all(burst["whole"] for burst in self.bursts)

    @property
    def kinds(self) -> list[str]:
        """The kinds of work that were told apart."""
        return list(self.bursts[0]["parts"])

    def _spread(self, value: Callable[[dict[str, Any]], float]) -> Spread:
        return Spread.of([value(burst) for burst in self.bursts])

    def steps_per_second(self) -> Spread:
        """From one end to the other."""
        return self._spread(lambda burst: burst["steps"] / burst["seconds"])

    def part_steps_per_second(self, kind: str) -> Spread | None:
        """What the part alone would do; None where it took no time."""
        if any(burst["parts"][kind] <= 0 for burst in self.bursts):
            return None
        return self._spread(lambda burst: burst["steps"] / burst["parts"][kind])

    def shares(self) -> dict[str, float]:
        """Share of the time by kind of work, over all bursts; they add up to 1."""
        total = sum(sum(burst["parts"].values()) for burst in self.bursts)
        return {
            kind: sum(burst["parts"][kind] for burst in self.bursts) / total for kind in self.kinds
        }

    def cpu_cores(self) -> Spread:
        """CPU time over wall clock: how many cores the process kept busy."""
        return self._spread(lambda burst: burst["cpu_seconds"] / burst["seconds"])

    def steps_per_cpu_second(self) -> Spread:
        """What the process's own CPU time gives, however busy the machine is."""
        return self._spread(lambda burst: burst["steps"] / burst["cpu_seconds"])

    def matches_ended(self) -> int:
        return sum(burst["matches_ended"] for burst in self.bursts)

    def slowest(self) -> str:
        """The kind of work that takes the most time."""
        shares = self.shares()
        return max(shares, key=lambda kind: shares[kind])

    def to_json(self) -> dict[str, Any]:
        """Plain values, as `--output` writes them."""
        told: dict[str, Any] = {
            "settings": dict(self.changes),
            "failure": self.failure or None,
            "warning": self.warning or None,
            "memory": self.memory,
            "bursts": self.bursts,
        }
        if not self.bursts:
            return told
        shares = self.shares()
        parts = {kind: (self.part_steps_per_second(kind), shares[kind]) for kind in self.kinds}
        return {
            **told,
            "whole_updates": self.whole,
            "steps_per_second": vars(self.steps_per_second()),
            "parts": {
                kind: {"share": share, "steps_per_second": None if speed is None else vars(speed)}
                for kind, (speed, share) in parts.items()
            },
            "steps_per_cpu_second": vars(self.steps_per_cpu_second()),
            "cpu_cores": vars(self.cpu_cores()),
            "gpu_busy_share": median(self.gpu_busy_shares) if self.gpu_busy_shares else None,
            "trace_gpu_busy_share": self.trace_gpu_busy_share,
            "matches_ended": self.matches_ended(),
        }
