"""Tables and sentences of a profile: drawn on a terminal, tab-separated lines elsewhere."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from league.cli.output import Column, is_terminal, print_pairs, print_table, say
from learner.profile.round_trip import RoundTrip
from learner.profile.rows import Changes, Row, Spread
from learner.profile.sweep import AXES, CHANGES_LEARNING

PARTS = tuple(
    Column(name, name != "part")
    for name in ("part", "steps_per_second", "lowest", "highest", "share")
)
SPEEDS = ("steps_per_second", "lowest", "highest", "spread")
MIB = 1 << 20
WIDTH = 100


def number(value: float) -> str:
    """Whole, with separators."""
    return f"{value:,.0f}"


def print_row(row: Row, title: str, round_trip: RoundTrip | None) -> None:
    """One configuration: each part's speed and share, then what the process took of the machine."""
    shares = row.shares()
    lines = [_part(kind, row.part_steps_per_second(kind), shares[kind]) for kind in row.kinds]
    lines.append(_part("end to end", row.steps_per_second(), sum(shares.values())))
    print_table(
        title,
        PARTS,
        lines,
        caption=f"steps a second, {len(row.bursts)} bursts: median, least, most",
    )
    print()
    print_pairs(_taken(row, round_trip))


def _part(name: str, speed: Spread | None, share: float) -> list[str]:
    if speed is None:
        return [name, "", "", "", f"{share:.1%}"]
    return [
        name,
        *(number(value) for value in (speed.median, speed.lowest, speed.highest)),
        f"{share:.1%}",
    ]


def _taken(row: Row, round_trip: RoundTrip | None) -> list[tuple[str, str]]:
    cpu, by_cpu = row.cpu_cores(), row.steps_per_cpu_second()
    busy = f"{cpu.median:.2f} cores busy ({cpu.lowest:.2f} to {cpu.highest:.2f})"
    told = [
        ("cpu", f"{busy}, {number(by_cpu.median)} steps a second of CPU time"),
        *((name.replace("_", " ").removesuffix(" bytes"), f"{number(size / MIB)} MiB")
          for name, size in row.memory.items()),
    ]  # fmt: skip
    if row.gpu_busy_shares:
        share = Spread.of(row.gpu_busy_shares)
        told.append(("gpu busy", f"{share.median:.0%} of the time, by nvidia-smi"))
    if row.trace_gpu_busy_share is not None:
        told.append(("gpu busy in the trace", f"{row.trace_gpu_busy_share:.0%} of the time"))
    if round_trip is not None:
        milliseconds = round_trip.milliseconds
        told.append(
            (
                "matchmaker",
                f"{milliseconds.median:.2f} ms a match assigned and reported, {round_trip.batch} at a time "
                f"({milliseconds.lowest:.2f} to {milliseconds.highest:.2f}), beside the training",
            )
        )
    return told


def print_sweep(rows: Sequence[Row], best: Row, own: Changes, left_out: Sequence[str]) -> None:
    """All configurations, the fastest first, those that failed last."""
    ordered = sorted(rows, key=lambda row: -row.steps_per_second().median if row.counts else 0.0)
    columns = [Column(axis, True) for axis in AXES]
    columns += [
        Column(name, True) for name in (*SPEEDS, "per_cpu_second", "cpu_cores", "memory_mib")
    ]
    columns += [Column("slowest"), Column("note")]
    cells = [[*_cells(row), _note(row, best, own)] for row in ordered]
    print_table(
        "Sweep",
        columns,
        cells,
        caption=f"{' and '.join(CHANGES_LEARNING)} change what is learnt, too",
    )
    for reason in left_out:
        say(f"left out: {reason}")


def _cells(row: Row) -> list[str]:
    settings = [str(row.changes[axis]) for axis in AXES]
    if not row.counts:
        return [*settings, *[""] * 8]
    speed = row.steps_per_second()
    memory = row.memory.get("peak_gpu_reserved_bytes", row.memory["peak_resident_bytes"])
    return [
        *settings,
        *(number(value) for value in (speed.median, speed.lowest, speed.highest)),
        f"{speed.relative:.0%}",
        number(row.steps_per_cpu_second().median),
        f"{row.cpu_cores().median:.2f}",
        number(memory / MIB),
        f"{row.slowest()} {row.shares()[row.slowest()]:.0%}",
    ]


def _note(row: Row, best: Row, own: Changes) -> str:
    notes = ["recommended"] if row is best else []
    notes += ["as it is set"] if dict(row.changes) == dict(own) else []
    notes += [f"failed: {row.failure}"] if row.failure else []
    return ", ".join(notes)


def print_words(label: str, sentences: Sequence[str]) -> None:
    """Sentences under a label, wrapped."""
    for sentence in sentences:
        for line in textwrap.wrap(f"{label}: {sentence}", WIDTH, subsequent_indent="  "):
            print(line)


@contextmanager
def progress(cells: int, rounds: int, is_sweep: bool) -> Iterator[Callable[[list[Row]], None]]:
    """Shows rows while they grow: a table that is redrawn on a terminal, a line each elsewhere."""
    if is_terminal() and is_sweep:
        from rich.live import Live

        with Live(_drawn([], 0, cells * rounds), transient=True, refresh_per_second=4) as live:
            seen = 0

            def draw(rows: list[Row]) -> None:
                nonlocal seen
                seen += 1
                live.update(_drawn(rows, seen, len(rows) * rounds))

            yield draw
        return
    seen = 0

    def tell(rows: list[Row]) -> None:
        nonlocal seen
        seen += 1
        if is_sweep:
            counted = sum(row.counts for row in rows)
            failed = sum(bool(row.failure) for row in rows)
            total = len(rows) * rounds
            say(
                f"measurement {seen} of at most {total}: {counted} configurations known, {failed} failed"
            )

    yield tell


def _drawn(rows: Sequence[Row], seen: int, total: int) -> Any:
    from rich.table import Table

    table = Table(title=f"Measurement {seen} of at most {total}", title_justify="left")
    for name in (*AXES, *SPEEDS, "bursts"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        settings = [str(row.changes[axis]) for axis in AXES]
        if row.counts:
            speed = row.steps_per_second()
            figures = [number(value) for value in (speed.median, speed.lowest, speed.highest)]
            table.add_row(*settings, *figures, f"{speed.relative:.0%}", str(len(row.bursts)))
        else:
            table.add_row(*settings, "failed" if row.failure else "", "", "", "", "")
    return table
