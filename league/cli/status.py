"""``league status``: one look at a league: its service, its disk, who works for it, whom they meet.

The exit status is 1 while the service's health is NOT_SERVING, so that scripts can ask.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from dataclasses import asdict
from enum import Enum
from itertools import groupby
from typing import Any

from league.cli import connect
from league.cli.output import Column, is_terminal, print_pairs, print_table, share
from league.exploiters import CandidateGate
from league.players import LeagueStatus, Share, WorkerStatus

WORKERS = (
    Column("worker"),
    Column("player"),
    Column("does"),
    Column("step", number=True),
    Column("rate", number=True),
    Column("leases", number=True),
    Column("seen", number=True),
)
SHARES = (
    Column("player"),
    Column("category"),
    Column("configured", number=True),
    Column("realised", number=True),
    Column("matches", number=True),
)
RATES = ("rate/steps_per_second", "rate/matches_per_second")
"""Of a worker's metrics, the speed that is shown: the first that it tells."""
BAR = 16


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of the command."""
    connect.add_arguments(parser)
    parser.add_argument("--json", action="store_true", help="everything, as one JSON object")


def run(args: argparse.Namespace) -> int:
    with connect.connect(args) as client:
        status, address = client.status(), client.address
        waiting = [gate_line(gate) for gate in client.gates(open_only=True)]
    if args.json:
        told = {"health": health(status), "gates": [words for _, words in waiting]}
        print(json.dumps(_plain(asdict(status)) | told, indent=1))
    elif is_terminal():
        _draw(status, address, waiting)
    else:
        print_pairs([*facts(status), *waiting])
        if status.workers:
            print()
            print_table(
                "Workers", WORKERS, [_worker_row(worker, status) for worker in status.workers]
            )
        if status.shares:
            print()
            print_table("Opponents", SHARES, _share_rows(status))
    return 1 if status.vitals.trouble else 0


def health(status: LeagueStatus) -> str:
    """As gRPC's health service says it."""
    return "NOT_SERVING" if status.vitals.trouble else "SERVING"


def facts(status: LeagueStatus) -> list[tuple[str, str]]:
    """The league in a few lines of name and value."""
    vitals = status.vitals
    free = (
        "" if vitals.disk_free_bytes < 0 else f", {size(vitals.disk_free_bytes)} free on its disk"
    )
    up = duration(vitals.now - vitals.started_at) if vitals.started_at else "unknown"
    lines = [
        ("health", health(status) + (f": {vitals.trouble}" if vitals.trouble else "")),
        ("game", f"{status.game}, Kumite {status.version}, up {up}"),
        ("log", f"{status.log_position:,} results, {vitals.event_position:,} events"),
        ("disk", f"{size(vitals.store_bytes)} of log{free}"),
        ("leases", f"{status.open_leases:,} open of {vitals.assignments:,} assigned"),
    ]
    for epoch in status.epochs:
        if epoch.games:
            lines.append(
                (
                    f"epoch ({epoch.book.value})",
                    f"since result {epoch.after_position + 1:,}: {100 * epoch.draw_probability:.1f}% draws "
                    f"expected, measured in {epoch.games:,} matches",
                )
            )
    return lines


def gate_line(gate: CandidateGate) -> tuple[str, str]:
    """A gate that is open: who waits, and how the matches against its present victim stand."""
    test = gate.playing or gate.victims[0]
    counts = f"{test.wins}-{test.draws}-{test.losses}"
    return "gate", f"{gate.candidate} against {test.victim}, {counts} so far"


def _worker_row(worker: WorkerStatus, status: LeagueStatus) -> tuple[str, ...]:
    return (
        worker.worker,
        worker.player,
        _activity(worker),
        f"{worker.step:,}" if worker.player else "",
        rate(worker),
        str(worker.open_leases),
        f"{duration(max(0.0, status.vitals.now - worker.last_beat_at))} ago",
    )


def _activity(worker: WorkerStatus) -> str:
    return f"{worker.activity} ({worker.mix})" if worker.mix else worker.activity


def rate(worker: WorkerStatus) -> str:
    """A worker's speed with its unit, "" when it tells none."""
    for name in RATES:
        if name in worker.metrics:
            unit = "steps/s" if "steps" in name else "matches/s"
            return f"{worker.metrics[name]:,.{0 if worker.metrics[name] >= 10 else 1}f} {unit}"
    return ""


def _share_rows(status: LeagueStatus) -> list[tuple[str, ...]]:
    return [
        (
            one.player,
            one.category,
            share(one.configured, 1),
            share(one.realised, 1),
            f"{one.matches:,}",
        )
        for one in status.shares
    ]


def size(count: float) -> str:
    """Bytes for people, in powers of ten as disks are sold."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


def duration(seconds: float) -> str:
    """«12 s», «3 min», «2 h 5 min», «4 d 3 h»."""
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if seconds < 60:
        return f"{seconds:.0f} s"
    if hours < 1:
        return f"{minutes:.0f} min"
    if days < 1:
        return f"{hours:.0f} h {minutes % 60:.0f} min"
    return f"{days:.0f} d {hours % 24:.0f} h"


def _plain(value: Any) -> Any:
    """Without enums, as JSON wants it."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value.value if isinstance(value, Enum) else value


def _draw(status: LeagueStatus, address: str, waiting: list[tuple[str, str]]) -> None:
    """For a person, in as few columns as 40."""
    from rich.console import Console, Group
    from rich.table import Table
    from rich.text import Text

    from league.views.terminal import marks

    console = Console(highlight=False)
    good = not status.vitals.trouble
    console.print(Text.assemble(("● ", marks.GOOD if good else marks.POOR), (address, "bold")))
    grid = Table.grid(padding=(0, 2))
    for name, value in [*facts(status), *waiting]:
        style = marks.POOR if name == "health" and not good else ""
        grid.add_row(Text(name, marks.FAINT), Text(value, style))
    parts: list[Any] = [grid]
    for worker in status.workers:
        parts += ["", Text(worker.worker, "bold"), *_worker_lines(worker, status)]
    for player, shares in groupby(status.shares, key=lambda one: one.player):
        parts += ["", Text(f"whom {player} meets: set › met", "bold"), _share_grid(shares)]
    console.print(Group(*parts))


def _worker_lines(worker: WorkerStatus, status: LeagueStatus) -> Iterable[Any]:
    from rich.padding import Padding

    from league.views.terminal import marks

    _, player, does, step, speed, _, seen = _worker_row(worker, status)
    trains = f"{player} at step {step}" if player else ""
    told = (does, trains, speed, marks.counted(worker.open_leases, "lease"), f"seen {seen}")
    yield Padding(" · ".join(part for part in told if part), (0, 0, 0, 2))


def _share_grid(shares: Iterable[Share]) -> Any:
    from rich.table import Table
    from rich.text import Text

    from league.views.terminal import marks

    grid = Table.grid(padding=(0, 1))
    for one in shares:
        numbers = f"{marks.percent(one.configured)} › {marks.percent(one.realised)}"
        grid.add_row(f"  {one.category}", marks.bar(one.realised, BAR), Text(numbers))
    return grid
