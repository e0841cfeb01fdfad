"""The evaluator plays clean matches of a league's snapshots, and of any players on demand.

In a clean match both players are frozen: their weights don't change. Clean matches are played in
pairs. Both matches of a pair have the same seed, and the players swap seats.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evaluator.benchmark.scores import Benchmark

__all__ = ["Benchmark"]


def __getattr__(name: str) -> Any:
    """Imports `Benchmark` at its first use, because its modules take long to load."""
    if name not in __all__:
        raise AttributeError(f"module 'evaluator' has no attribute {name!r}")
    from evaluator.benchmark.scores import Benchmark

    return Benchmark
