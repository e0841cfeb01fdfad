"""A torch profiler trace of two updates, and how long the GPU was busy in it."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch.profiler import ProfilerActivity, profile

if TYPE_CHECKING:
    from learner.profile.pipeline import Pipeline

ON_GPU = {"kernel", "gpu_memcpy", "gpu_memset"}
UPDATES = 2


def record_trace(pipeline: Pipeline, seconds: float, path: Path) -> float | None:
    """Plays and learns twice under torch's profiler and writes its trace for chrome://tracing or
    Perfetto.

    Updates that take long are cut to about `seconds`. Returns the share of the time in which the
    GPU was busy; None without one.
    """
    activities = [ProfilerActivity.CPU]
    if torch.cuda.is_available():
        activities.append(ProfilerActivity.CUDA)
    with profile(activities=activities) as recorded:
        for _ in range(UPDATES):
            pipeline.one_update(seconds)
    recorded.export_chrome_trace(str(path))
    if ProfilerActivity.CUDA not in activities:
        return None
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as file:
        return gpu_busy_share(json.load(file)["traceEvents"])


def gpu_busy_share(events: Iterable[Mapping[str, Any]]) -> float | None:
    """Share of a trace's time in which at least one kernel or copy ran; None when it has none.

    The time goes from the first event with a duration to the end of the last.
    """
    timed = [
        (float(e["ts"]), float(e["ts"]) + float(e["dur"]), e.get("cat"))
        for e in events
        if "dur" in e
    ]
    work = sorted((start, end) for start, end, kind in timed if kind in ON_GPU)
    if not work:
        return None
    busy, reached = 0.0, work[0][0]
    for start, end in work:
        busy += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    first, last = min(start for start, _, _ in timed), max(end for _, end, _ in timed)
    return busy / (last - first)
