"""``league status``, ``watch`` and ``match``: what happens in a league, and why."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.filesize import decimal

from league.cli.connection import League, with_league
from league.cli.options import AsJson
from league.cli.output import plain, print_pairs, print_table, share, when
from league.errors import InvalidInput, nearest
from league.exploiters import CandidateGate
from league.players import (
    EVENT_KINDS,
    Event,
    LeagueStatus,
    MatchRecord,
    MatchResult,
    Player,
    Share,
    WorkerStatus,
)
from league.views.text import long_duration

WORKERS = "worker player does step# rate# leases# seen#"
SHARES = "player category configured# realised# matches#"
CANDIDATES = "candidate weight# chance# drawn"
RATES = {"rate/steps_per_second": "steps/s", "rate/matches_per_second": "matches/s"}
"""Metrics of a worker that are its speed, with their units; the first that it reports counts."""
SPARED = ("rate", "leases", "player", "step")
"""Columns of workers that a narrow terminal leaves out."""
MOST_CANDIDATES = 15


@with_league
def status(league: League, as_json: AsJson = False) -> int:
    """Shows health, log, disk, open leases and gates, workers, and shares of opponents.

    The exit status is 1 while the service's health is NOT_SERVING.
    """
    with league.connect() as client:
        found = client.status()
        gates = [_gate_line(gate) for gate in client.gates(open_only=True)]
    if as_json:
        extra = {"health": _health(found), "gates": [text for _, text in gates]}
        print(json.dumps(asdict(found) | extra, indent=1, default=lambda enum: enum.value))
    else:
        print_pairs([*_facts(found), *gates])
        if found.workers:
            print()
            rows = [_worker_row(worker, found) for worker in found.workers]
            print_table("Workers", WORKERS, rows, spared=SPARED)
        if found.shares:
            print()
            print_table("Opponents", SHARES, [_share_row(one) for one in found.shares])
    return 1 if found.vitals.trouble else 0


def _health(found: LeagueStatus) -> str:
    return "NOT_SERVING" if found.vitals.trouble else "SERVING"


def _facts(found: LeagueStatus) -> list[tuple[str, str]]:
    """The league in a few lines of name and value."""
    vitals = found.vitals
    trouble = f": {vitals.trouble}" if vitals.trouble else ""
    has_free = vitals.disk_free_bytes >= 0
    free = f", {decimal(vitals.disk_free_bytes)} free on its disk" if has_free else ""
    up = long_duration(vitals.now - vitals.started_at) if vitals.started_at else "unknown"
    lines = [
        ("health", _health(found) + trouble),
        ("game", f"{found.game}, Kumite {found.version}, up {up}"),
        ("log", f"{found.log_position:,} results, {vitals.event_position:,} events"),
        ("disk", f"{decimal(vitals.store_bytes)} of log{free}"),
        ("leases", f"{found.open_leases:,} open of {vitals.assignments:,} assigned"),
    ]
    for epoch in found.epochs:
        if epoch.games:
            text = (
                f"since result {epoch.after_position + 1:,}: {100 * epoch.draw_probability:.1f}% "
                f"draws expected, measured in {epoch.games:,} matches"
            )
            lines.append((f"epoch ({epoch.book.value})", text))
    return lines


def _gate_line(gate: CandidateGate) -> tuple[str, str]:
    """An open gate: its candidate, and the counts against its present victim."""
    test = gate.playing or gate.victims[0]
    counts = f"{test.wins}-{test.draws}-{test.losses}"
    return "gate", f"{gate.candidate} against {test.victim}, {counts} so far"


def _worker_row(worker: WorkerStatus, found: LeagueStatus) -> tuple[str, ...]:
    seen = max(0.0, found.vitals.now - worker.last_beat_at)
    return (
        worker.worker,
        worker.player,
        f"{worker.activity} ({worker.mix})" if worker.mix else worker.activity,
        f"{worker.step:,}" if worker.player else "",
        _rate(worker),
        str(worker.open_leases),
        f"{long_duration(seen)} ago",
    )


def _rate(worker: WorkerStatus) -> str:
    for name, unit in RATES.items():
        if name in worker.metrics:
            return f"{worker.metrics[name]:,.{0 if worker.metrics[name] >= 10 else 1}f} {unit}"
    return ""


def _share_row(one: Share) -> tuple[str, ...]:
    shares = share(one.configured, 1), share(one.realised, 1)
    return (one.player, one.category, *shares, f"{one.matches:,}")


@with_league
def watch(
    league: League,
    after: Annotated[int, typer.Option(metavar="N", help="Begin after event N.")] = 0,
    new: Annotated[bool, typer.Option("--new", help="Only events from now on.")] = False,
    kind: Annotated[
        list[str] | None,
        typer.Option(help=f"Only this kind; repeatable: {', '.join(EVENT_KINDS)}."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per line.")] = False,
) -> None:
    """Shows the league's events as they come. Ctrl-C ends it."""
    for name in kind or []:
        if name not in EVENT_KINDS:
            hint = nearest(name, EVENT_KINDS) or f"there are {', '.join(EVENT_KINDS)}"
            raise InvalidInput(f"there is no kind of event {name!r}: {hint}")
    with league.connect() as client:
        try:
            for event in client.watch(after=-1 if new else after):
                if not kind or event.kind in kind:
                    print(_event_json(event) if as_json else event_line(event), flush=True)
        except KeyboardInterrupt:
            pass


def event_line(event: Event) -> str:
    """An event as one tab-separated line."""
    match_id = _data(event).get("match_id")
    text = f"{event.text} (match {match_id})" if match_id else event.text
    return f"{event.position}\t{when(event.at)}\t{event.kind}\t{plain(text)}"


def _event_json(event: Event) -> str:
    fields = {name: value for name, value in vars(event).items() if name != "data_json"}
    return json.dumps(fields | {"data": _data(event)}, sort_keys=True)


def _data(event: Event) -> dict[str, Any]:
    return json.loads(event.data_json) if event.data_json else {}


@with_league
def match(
    league: League,
    match_id: Annotated[
        str, typer.Argument(metavar="ID", help="A match id, or its beginning (see `watch`).")
    ],
) -> None:
    """Shows all that the log knows of a match, and why it was made."""
    with league.connect() as client:
        record = client.match(match_id)
    why = json.loads(record.why_json or "{}")
    reasons = [("why", line) for line in _reasons(record, why)]
    print_pairs([*_match_facts(record), *_result_facts(record), *reasons])
    rows = _candidates(record, why)
    if rows:
        print()
        print_table(f"Candidates of the category {record.assignment.category!r}", CANDIDATES, rows)


def _match_facts(record: MatchRecord) -> list[tuple[str, str]]:
    """The players, the learner, and the lease."""
    assigned = record.assignment
    facts = [
        ("match", f"{assigned.match_id}, number {assigned.ordinal} of the league"),
        ("seat 0", _seat(assigned.seats[0], assigned.learner_seat == 0)),
        ("seat 1", _seat(assigned.seats[1], assigned.learner_seat == 1)),
        ("book", assigned.book.value),
        ("seed", str(assigned.seed)),
        ("worker", record.worker),
        ("lease", record.lease_state),
    ]
    if assigned.replaces:
        facts.append(("carries on", assigned.replaces))
    if record.lost_branch:
        text = "the learner went back to a checkpoint before this match: it is not rated"
        facts.append(("lost branch", text))
    return facts


def _seat(player: Player, is_learner: bool) -> str:
    digest = f", weights {player.digest[:12]}" if player.digest else ""
    return f"{player.name} ({player.kind.value}{digest}{', the learner' if is_learner else ''})"


def _result_facts(record: MatchRecord) -> list[tuple[str, str]]:
    """The outcome, and the numbers of each seat."""
    result = record.result
    if result is None:
        return [("result", "none yet")]
    if result.failed:
        return [("result", f"failed, so never rated: {result.failure}")]
    facts = [
        ("result", f"{_outcome(record, result)} after {result.frames} frames"),
        ("reported", f"{when(result.finished_at)}, result {record.log_position} of the log"),
    ]
    for seat, played in enumerate(result.seats):
        numbers = [f"{name} {value:g}" for name, value in sorted(played.stats.items())]
        if played.step_end > played.step_start:
            numbers.insert(0, f"learner steps {played.step_start} to {played.step_end}")
        facts.append((f"stats {seat}", ", ".join(numbers) or "none"))
    return facts


def _outcome(record: MatchRecord, result: MatchResult) -> str:
    if result.outcome == 0.5:
        return "a draw"
    return f"{record.assignment.seats[0 if result.outcome == 1.0 else 1].name} won"


def _reasons(record: MatchRecord, why: Mapping[str, Any]) -> list[str]:
    """How the matchmaker drew the opponent, in sentences."""
    if not why:
        return ["the log has no record of the draw"]
    seen = (
        f"decided on the log up to result {why['log_position']} and event "
        f"{why['event_position']}, policy {why['policy_hash']}"
    )
    if why.get("rule") == "pairing":
        return [
            f"{record.worker} asked for {why['player']} against {why['opponent']} by name: pairs "
            f"of matches on one seed, seats swapped, seeds derived from {why['seed']}",
            seen,
        ]
    category = record.assignment.category
    shares = ", ".join(f"{name} {share(part, 1)}" for name, part in why["shares"].items())
    within = why["candidates"].get(category, [])
    rule = why.get("rules", {}).get(category, why["rule"])
    roles = f", its role by {why['roles']}" if "roles" in why else ""
    clusters = why.get("analysis")
    copies = f"; near-copies share their weight, by event {clusters}" if clusters else ""
    return [
        f"{why['player']} asked for an opponent under the mix {why['mix']!r}{roles}",
        f"category {category!r} was drawn out of {shares} (which include the shares of empty "
        "categories)",
        f"within it the rule {rule if len(within) > 1 else 'of the only one there was'} "
        f"chose {record.assignment.opponent.name} out of {len(within)}{copies}",
        f"together its chance was {share(why['probability'], 1)}; draw seed {why['draw_seed']}",
        seen,
    ]


def _candidates(record: MatchRecord, why: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """The heaviest candidates of the drawn category, and the one that was drawn."""
    weighted = why.get("candidates", {}).get(record.assignment.category, [])
    if len(weighted) < 2:
        return []
    total = math.fsum(weight for _, weight in weighted)
    chosen = record.assignment.opponent.name
    rows = sorted(weighted, key=lambda pair: -pair[1])
    kept = rows[:MOST_CANDIDATES] + [pair for pair in rows[MOST_CANDIDATES:] if pair[0] == chosen]
    return [
        (
            name,
            f"{weight:.4g}",
            share(weight, total) if total else "equal",
            "drawn" if name == chosen else "",
        )
        for name, weight in kept
    ]
