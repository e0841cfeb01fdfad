"""Prints steps per second and the GPU's busy share during a run's training.

    python tests/bench/gpu_summary.py RUN GPU_BUSY_CSV [--warm 20]

Both are measured over the same time, from `--warm` seconds after the learner's first update to its
last update, by the times in its TensorBoard files. This leaves out the run's start and its last
evaluation. GPU_BUSY_CSV has rows "time, busy %, MiB used" as nvidia-smi writes them.
"""

from __future__ import annotations

import argparse
import csv
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

STEPS = "progress/steps"


@dataclass(frozen=True)
class Reading:
    """Describes a reading of nvidia-smi: Unix time in seconds, the busy share of the time since the
    previous reading in %, and used memory in MiB.
    """

    at: float
    busy: float
    used: float


def updates(run: Path) -> list[tuple[float, int]]:
    """Returns the Unix time at which each of the learner's updates ended, and its steps
    until then.
    """
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found: list[tuple[float, int]] = []
    for folder in sorted(
        {path.parent for path in run.glob("learner-main/tensorboard/**/events.*")}
    ):
        events = EventAccumulator(str(folder), size_guidance={"scalars": 0})
        events.Reload()
        if STEPS in events.Tags()["scalars"]:
            found += [(event.wall_time, int(event.value)) for event in events.Scalars(STEPS)]
    return sorted(found)


def readings(path: Path) -> list[Reading]:
    """Reads the readings of nvidia-smi. Rows that nvidia-smi could not fill ("[N/A]") are
    left out.
    """
    found = []
    for row in csv.reader(path.open()):
        try:
            time = datetime.strptime(row[0].strip(), "%Y/%m/%d %H:%M:%S.%f").timestamp()
            found.append(Reading(time, float(row[1]), float(row[2])))
        except (ValueError, IndexError):
            continue
    return found


def summary(marks: list[tuple[float, int]], busy: list[Reading], warm: float) -> str:
    """Returns the lines to print. They say so if there was too little to measure."""
    counted = [mark for mark in marks if mark[0] >= marks[0][0] + warm]
    if len(counted) < 2:
        return f"steps/s: not measured, fewer than two updates {warm:g} s after the first one"
    (begun, first), (ended, last) = counted[0], counted[-1]
    rate = (last - first) / (ended - begun)
    lines = [f"{last - first} steps in {ended - begun:.1f} s of training: {rate:.0f} steps/s"]
    within = [one for one in busy if begun <= one.at <= ended]
    if within:
        share = sum(one.busy for one in within) / len(within)
        used = max(one.used for one in within)
        lines.append(
            f"GPU busy {share:.1f} % of that time, at most {used:.0f} MiB used "
            f"({len(within)} readings)"
        )
    else:
        lines.append("GPU busy share: not measured, nvidia-smi gave no reading in that time")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("busy", type=Path)
    parser.add_argument(
        "--warm", type=float, default=20.0, help="seconds left out at the beginning"
    )
    options = parser.parse_args()
    marks = updates(options.run)
    print(
        summary(marks, readings(options.busy), options.warm)
        if marks
        else "steps/s: there was no update"
    )


if __name__ == "__main__":
    main()
