"""What a sweep measures and recommends, and what a profile prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

from pydantic import ValidationError

from league.cli.output import print_pairs, print_table
from league.errors import ConfigError
from league.settings.base import fault_of
from learner.profile.measuring import Measured
from learner.settings import LearnerSettings

Changes = Mapping[str, str | int]
AXES = ("matches", "batch_size", "threads", "precision")
"""Settings of [learner] that a sweep may change."""
CHANGES_LEARNING = ("matches", "batch_size")
"""Those of them that change what a step teaches: the rollouts, and the optimizer's steps."""
CLOSE = 0.03
"""Speeds that differ by less than this share count as equal."""
MIB = 1 << 20
STARVED = 0.85
"""Below this many cores a process on the CPU waits for something: a core, a worker, a sleep."""
ADVICE = {
    "game": "more matches share each call's fixed cost (learner.matches); a game with its own "
    "workers takes more of them in game.options",
    "opponents": "reading many snapshots' weights takes the time: more matches put several seats "
    "on each (learner.matches, matchmaker.matches_per_draw), a smaller league has fewer "
    "(matchmaker.mixes, matchmaker.max_saved)",
    "inference": "more matches make larger batches (learner.matches), a smaller agent is faster "
    "(agent.size)",
    "learning": "fewer passes (learner.n_epochs), a smaller agent (agent.size) or a GPU; on one, "
    "larger minibatches (learner.batch_size) and lower precision; --sweep tries them",
    "references": "fewer at once (regularisation.portfolio_size)",
    "other": "matches that begin and end, weights that are loaded, advantages: longer matches and "
    "larger rollouts have less of it",
}


def plan(
    learner: Mapping[str, Any], wanted: Mapping[str, Sequence[str | int]], cores: int, gpu: bool
) -> list[Changes]:
    """All combinations of each axis's values: those asked for, else some around the settings'.

    Leaves out those that can't be; raises `ConfigError` when that is all of them.
    """
    matches, batch, n_steps = (learner[name] for name in ("matches", "batch_size", "n_steps"))
    precision = learner["precision"]
    around: dict[str, Sequence[str | int]] = {
        "matches": [max(1, matches // 2), matches, matches * 2],
        "batch_size": [max(1, batch // n_steps // 2) * n_steps, batch, batch * 2],
        "threads": sorted({learner["threads"], 1, min(2, cores)}),
        "precision": [precision, *(["auto" if precision == "float32" else "float32"] * gpu)],
    }
    values = [wanted.get(axis) or around[axis] for axis in AXES]
    own = tuple(learner[axis] for axis in AXES)
    cells: list[Changes] = []
    fault = ""
    for combination in sorted(dict.fromkeys(product(*values)), key=lambda one: one != own):
        cell = dict(zip(AXES, combination, strict=True))
        try:
            LearnerSettings.model_validate({**learner, **cell})
            cells.append(cell)
        except ValidationError as error:
            first = error.errors()[0]
            reason = fault_of(first, map(str, first["loc"]), LearnerSettings, "learner")
            fault = f"{', '.join(f'{axis} {cell[axis]}' for axis in AXES)}: {reason}"
    if not cells:
        raise ConfigError(f"the sweep has no configuration that can be: {fault}")
    return cells


def recommended(rows: Sequence[Measured], own: Changes) -> Measured | None:
    """The fastest row; of those as fast within `CLOSE`, the one that changes least of `own`.

    What changes learning counts before what changes speed alone. None when nothing was measured.
    """
    counted = [row for row in rows if row.bursts]
    best = max((row.speed().median for row in counted), default=0.0)

    def cost(row: Measured) -> tuple[int, int, float]:
        different = [axis for axis in row.changes if row.changes[axis] != own[axis]]
        learning = sum(axis in CHANGES_LEARNING for axis in different)
        return learning, len(different), -row.speed().median

    equals = [row for row in counted if row.speed().median >= (1 - CLOSE) * best]
    return min(equals, key=cost, default=None)


def bottleneck(row: Measured, facts: Mapping[str, Any]) -> str:
    """What takes the most time and what to change, in one or two sentences."""
    kind, busy = row.slowest(), row.cpu_cores()
    said = f"{kind} takes {row.shares()[kind]:.0%} of the time: {ADVICE[kind]}."
    if facts["device"] == "cpu" and busy < STARVED:
        said += (
            f" The process kept only {busy:.2f} of a core busy: the rest of the time it waited for "
            f"a core that other work held (load average {facts['load_average']:.1f} on "
            f"{facts['cores']} cores at the start), for processes of the game, or in sleep."
        )
    return said


def doubt(best: Measured, before: Measured | None) -> str:
    """A warning when the recommended row's lead is no larger than the spread, else ""."""
    if before is None or before is best or not before.bursts:
        return ""
    ours, theirs = best.speed(), before.speed()
    if ours.lowest > theirs.highest:
        return ""
    return (
        f"the lead over the unchanged settings is within the spread ({ours} against {theirs}): "
        "measure again on a quiet machine, or with more --seconds, before you rely on it"
    )


def print_row(row: Measured, title: str) -> None:
    """Prints each part's speed and share, then what the process took of the machine."""
    speed = row.speed()
    lines = [
        [kind, f"{speed.median / share:,.0f}" if share else "", f"{share:.1%}"]
        for kind, share in row.shares().items()
    ]
    print_table(title, "part steps_per_second# share#", lines)
    print()
    pairs = [
        ("end to end", f"{speed} steps a second, {len(row.bursts)} bursts"),
        (
            "cpu",
            f"{row.cpu_cores():.2f} cores busy, {row.steps_per_cpu_second():,.0f} steps a second "
            "of CPU time",
        ),
    ]
    for name, size in row.memory.items():
        pairs.append((name.removesuffix("_bytes").replace("_", " "), f"{size / MIB:,.0f} MiB"))
    if row.gpu_busy_share is not None:
        pairs.append(("gpu busy", f"{row.gpu_busy_share:.0%} of the time, in the trace"))
    print_pairs(pairs)


def print_sweep(rows: Sequence[Measured], best: Measured, own: Changes) -> None:
    """Prints all configurations, the fastest first, those that failed last."""
    cells = []
    for row in sorted(rows, key=lambda row: -row.speed().median if row.bursts else 0.0):
        figures = [""] * 5
        if row.bursts:
            memory = row.memory.get("peak_gpu_bytes", row.memory["peak_resident_bytes"])
            figures = [f"{value:,.0f}" for value in (*row.speed(), memory / MIB)]
            figures.append(f"{row.slowest()} {row.shares()[row.slowest()]:.0%}")
        notes = ["recommended"] if row is best else []
        notes += ["unchanged"] if row.changes == own else []
        notes += [f"failed: {row.failure}"] if row.failure else []
        cells.append([*(str(row.changes[axis]) for axis in AXES), *figures, ", ".join(notes)])
    columns = [f"{name}#" for name in (*AXES, "steps/s", "lowest", "highest", "memory_mib")]
    caption = f"{' and '.join(CHANGES_LEARNING)} change what is learnt, too"
    print_table("Sweep", [*columns, "slowest", "note"], cells, caption=caption)
