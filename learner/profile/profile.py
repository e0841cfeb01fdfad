"""Carries a profile out: what is measured, in which processes, and what is told of it in the
end.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from league.agent.device import choose_device
from league.cli.output import say
from league.errors import LeagueError
from league.runs.files import write_whole
from league.settings.base import Sections, base_preset, lay_over, resolve
from learner.profile import machine, report, sweep, words
from learner.profile.command import PRESET, SECONDS, SWEEP_SECONDS
from learner.profile.opponents import make_snapshots, mix_of, snapshots_of_a_run
from learner.profile.preset import preset_text
from learner.profile.round_trip import RoundTrip, measure_round_trip
from learner.profile.rows import Changes, Row
from learner.profile.worker import Measured, Order, measure, session_settings, start_server
from learner.train.assembly import SessionSettings
from learner.train.membership import live_player

BURSTS = 5
"""Of a profile of one configuration; the first and the last tell how steady the machine is."""
FORMAT = 1
"""Of the JSON file; a reader of another number does not know it."""


@dataclass
class Profile:
    """All that is known when the measuring ends, or is broken off."""

    base: str | None
    sections: Sections
    own: Changes
    facts: dict[str, Any]
    rows: list[Row]
    snapshots_made: int = 0
    snapshots_of_a_run: int = 0
    round_trip: RoundTrip | None = None
    left_out: Sequence[str] = ()
    stopped: bool = False

    def best(self) -> Row | None:
        """The row that is recommended."""
        return sweep.recommended(self.rows, self.own)

    def before(self) -> Row | None:
        """The row of the settings as they are, where it was measured."""
        return next((row for row in self.rows if dict(row.changes) == dict(self.own)), None)

    def warnings(self, best: Row) -> list[str]:
        """What to know before the figures are used."""
        told = [words.doubt(best, self.before()), *(row.warning for row in self.rows)]
        return list(dict.fromkeys(sentence for sentence in told if sentence))

    def to_json(self) -> dict[str, Any]:
        """Plain values, as `--output` writes them."""
        best, trip = self.best(), self.round_trip
        return {
            "format": FORMAT,
            "written_at": time.time(),
            "preset": self.base,
            "machine": self.facts,
            "settings": self.sections,
            "league": {
                "snapshots_made": self.snapshots_made,
                "snapshots_of_a_run": self.snapshots_of_a_run,
            },
            "rows": [row.to_json() for row in self.rows],
            "left_out": list(self.left_out),
            "stopped": self.stopped,
            "recommended": None if best is None else self.rows.index(best),
            "bottleneck": None if best is None else words.bottleneck(best, self.facts),
            "matchmaker_ms_per_match": None if trip is None else vars(trip.milliseconds),
            "warnings": [] if best is None else self.warnings(best),
            "not_measured": [] if best is None else self.not_measured(best),
        }

    def not_measured(self, row: Row) -> list[str]:
        return words.not_measured(
            row,
            self.facts,
            self.snapshots_made,
            self.snapshots_of_a_run,
            self.round_trip is not None,
            int(self.sections["learner"].get("cpu_ranks", 1)),
        )


def run_profile(args: argparse.Namespace) -> int:
    """Measures what the command line asks for; returns the exit status."""
    base = base_preset(args.config) or args.preset or (None if args.config else PRESET)
    sections = resolve(base, args.config, args.assignments)
    settings: SessionSettings = session_settings(sections)
    device, sentence = choose_device(args.gpu, args.cpu)
    say(sentence)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    start_server()
    own = {axis: sections["learner"][axis] for axis in sweep.AXES}
    profile = Profile(base, sections, own, machine.facts(device), [])
    cells = _cells(args, profile, device)
    with tempfile.TemporaryDirectory(prefix="kumite-profile-") as folder:
        order = _prepare(profile, settings, Path(folder), device, args)
        try:
            _measure(profile, cells, order, args.sweep)
        except KeyboardInterrupt:
            profile.stopped = True
            say("stopped: what was measured until now follows")
    return _tell(profile, args)


def _cells(args: argparse.Namespace, profile: Profile, device: torch.device) -> list[Changes]:
    if not args.sweep:
        return [profile.own]
    wanted = {axis: getattr(args, axis) for axis in sweep.AXES if getattr(args, axis) is not None}
    planned = sweep.plan(
        profile.sections["learner"], wanted, machine.cores(), device.type == "cuda"
    )
    profile.left_out = planned.left_out
    return planned.cells


def _with(sections: Sections, changes: Changes) -> Sections:
    """`sections` with these values of [learner], checked."""
    return lay_over({**sections, "learner": {**sections["learner"], **changes}})


def _prepare(
    profile: Profile,
    settings: SessionSettings,
    folder: Path,
    device: torch.device,
    args: argparse.Namespace,
) -> Order:
    """Freezes the opponents and asks a matchmaker; the order lacks only the configuration."""
    mix = mix_of(profile.sections, settings)
    profile.snapshots_of_a_run = snapshots_of_a_run(profile.sections)
    wanted = profile.snapshots_of_a_run if mix.get("snapshots", 0) > 0 else 0
    say(f"freezing {wanted} fresh snapshots to play against")
    snapshots = make_snapshots(folder / "blobs", settings, wanted)
    profile.snapshots_made = len(snapshots)
    bursts = 1 if args.sweep else BURSTS
    seconds = args.seconds or (SWEEP_SECONDS if args.sweep else SECONDS)
    game = settings.game.make(1)
    try:
        profile.round_trip = measure_round_trip(
            profile.sections,
            game.spec,
            live_player("main", game),
            snapshots,
            folder,
            min(1.0, seconds / 4),
        )
    finally:
        game.close()
    return Order(
        sections=profile.sections,
        device=str(device),
        mix=mix,
        snapshots=tuple(snapshots),
        blobs=folder / "blobs",
        seconds=seconds / (sweep.ROUNDS if args.sweep else BURSTS),
        bursts=bursts,
        trace=None if args.trace is None else args.trace.absolute(),
    )


def _measure(profile: Profile, cells: Sequence[Changes], order: Order, is_sweep: bool) -> None:
    def one(changes: Changes, number: int) -> Measured:
        return measure(replace(order, sections=_with(profile.sections, changes)))

    rounds = sweep.ROUNDS if is_sweep else 1

    def instead(changes: Changes) -> Changes | None:
        return sweep.in_more_parts(profile.sections["learner"], changes) if is_sweep else None

    with report.progress(len(cells), rounds, is_sweep) as show:
        for rows in sweep.run_rounds(cells, rounds, one, instead):
            profile.rows = rows
            show(rows)


def _tell(profile: Profile, args: argparse.Namespace) -> int:
    """Writes the files, prints the report; raises when nothing could be measured."""
    if args.output is not None:
        write_whole(args.output, json.dumps(profile.to_json(), indent=1) + "\n")
    best = profile.best()
    if best is None:
        if profile.stopped:
            return 130
        raise _failure(profile.rows)
    if args.sweep:
        report.print_sweep(profile.rows, best, profile.own, profile.left_out)
        print()
    report.print_row(best, _title(profile, best), profile.round_trip)
    print()
    report.print_words("bottleneck", [words.bottleneck(best, profile.facts)])
    report.print_words("warning", profile.warnings(best))
    report.print_words("not measured", profile.not_measured(best))
    if args.write_preset is not None:
        text = preset_text(
            profile.base, profile.sections, profile.own, best, profile.rows, profile.facts
        )
        write_whole(args.write_preset, text)
        say(f"{args.write_preset} holds them: bin/start-league --config {args.write_preset}")
    return 130 if profile.stopped else 0


def _failure(rows: Sequence[Row]) -> LeagueError:
    for row in rows:
        if row.error is not None:
            return row.error
    reason = rows[0].failure if rows else "it was stopped"
    return LeagueError(
        f"nothing could be measured: {reason}; lower learner.matches or learner.batch_size"
    )


def _title(profile: Profile, row: Row) -> str:
    values: Mapping[str, Any] = row.changes
    told = ", ".join(f"{name} {value}" for name, value in values.items())
    return f"{profile.base or 'settings'} on {profile.facts['gpu'] or 'the CPU'}: {told}"
