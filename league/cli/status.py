"""Defines ``league status``, ``watch`` and ``match``: a league's state, events and matches."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.filesize import decimal

from league.console.options import AsJson, Heading
from league.console.output import plain, print_pairs, print_table, share, when
from league.console.text import long_duration, speed
from league.contest.command import LeagueCommand, LeagueContext
from league.errors import InvalidInput, nearest
from league.gates import CandidateGate
from league.players import EVENT_KINDS, Event, MatchRecord, PlayerKind, PlayerState
from league.status import LeagueStatus, WorkerStatus

if TYPE_CHECKING:
    from league.rpc.client import MatchmakerClient

app = typer.Typer(rich_help_panel=Heading.LOOK, add_completion=False)

WORKERS = "worker player does step# rate# leases# seen#"
NODES = " node"
SHARES = "player category configured# expected# realised# matches#"
SINCE = " since_change# matches_since#"
CANDIDATES = "candidate weight# chance# drawn"
SPARED = "rate leases player step"
"""Columns of workers that are left out on a narrow terminal."""
MOST_CANDIDATES = 15
NOT_SERVING = 5
"""Exit status of `league status` while the service is not serving. No error has this status."""


@app.command(cls=LeagueCommand)
def status(context: LeagueContext, as_json: AsJson = False) -> int:
    """Shows health, log, disk, open leases and gates, workers, and shares of opponents.

    The exit status is 5 if the service's health is NOT_SERVING.
    """
    with context.league.connect() as client:
        shown, gates = client.status(), client.gates(open_only=True)
        rivals = list(_set_aside(client))
    trouble = shown.vitals.trouble
    health, tests = "NOT_SERVING" if trouble else "SERVING", list(map(_gate_line, gates))
    if as_json:
        extra = {"health": health, "gates": tests}
        print(json.dumps(asdict(shown) | extra, indent=1, default=lambda enum: enum.value))
        return NOT_SERVING if trouble else 0
    headline = "health", health + (f": {trouble}" if trouble else "")
    lines = [*(("rival", line) for line in rivals), *(("gate", line) for line in tests)]
    print_pairs([headline, *_facts(shown), *lines])
    if shown.workers:
        print()
        rows = [_worker_row(worker, shown.vitals.now) for worker in shown.workers]
        if shown.has_nodes:
            rows = [(*row, one.node) for row, one in zip(rows, shown.workers, strict=True)]
        print_table("Workers", WORKERS + (NODES if shown.has_nodes else ""), rows, spared=SPARED)
    if shown.shares:
        print()
        shares = [
            (row.player, row.category, share(row.configured, 1), share(row.expected, 1),
             share(row.realised, 1), f"{row.matches:,}",
             *((share(row.realised_since, 1), f"{row.matches_since:,}") if shown.changes else ()))
            for row in shown.shares
        ]  # fmt: skip
        print_table("Opponents", SHARES + (SINCE if shown.changes else ""), shares)
    return NOT_SERVING if trouble else 0


def _facts(league: LeagueStatus) -> Iterator[tuple[str, str]]:
    """Yields facts about the league as names and values."""
    vitals = league.vitals
    has_free = vitals.disk_free_bytes >= 0
    free = f", {decimal(vitals.disk_free_bytes)} free on its disk" if has_free else ""
    up = long_duration(vitals.now - vitals.started_at) if vitals.started_at else "unknown"
    yield "game", f"{league.game}, Kumite {league.version}, up {up}"
    yield "log", f"{league.log_position:,} results, {vitals.event_position:,} events"
    yield "disk", f"{decimal(vitals.store_bytes)} of log{free}"
    yield "leases", f"{league.open_leases:,} open of {vitals.assignments:,} assigned"
    for worker in filter(league.is_silent, league.workers):
        since = long_duration(vitals.now - worker.last_beat_at)
        yield "silent", f"{worker.worker}, without a heartbeat for {since}: it hangs or has ended"
    troubles = {
        worker.trouble: worker.is_quarantined for worker in league.workers if worker.trouble
    }
    for trouble, is_quarantined in troubles.items():  # workers that disagree share one text
        yield "quarantine" if is_quarantined else "disagree", trouble
    if league.pause is not None:
        since = f"{league.pause.by} at {when(league.pause.at)}"
        yield "paused", f"by {since}: learners hold until `bin/league resume`"
    for change in league.changes:
        yield "mix", f"{change.mix}: {change.by} set {change.words} at {when(change.at)}"
    for epoch in league.epochs:
        if epoch.games:
            since = f"since result {epoch.after_position + 1:,}"
            draws = f"{100 * epoch.draw_probability:.1f}% draws expected"
            yield f"epoch ({epoch.book.value})", f"{since}: {draws} by {epoch.games:,} matches"


def _set_aside(client: MatchmakerClient) -> Iterator[str]:
    """Yields a sentence for each rival in quarantine, and the reason if its last match failed."""
    for player in client.players(states=[PlayerState.QUARANTINED]):
        if player.kind is PlayerKind.RIVAL:
            newest, _ = client.matches(player=player.name, limit=1)
            result = client.match(newest[0].match_id).result if newest else None
            why = f". Its newest match failed: {result.failure}" if result and result.failed else ""
            yield f"{player.name} is in quarantine and not drawn{why}"


def _gate_line(gate: CandidateGate) -> str:
    """Returns a line about an open gate: candidate, current victim, wins, draws and losses."""
    test = gate.playing or gate.victims[0]
    counts = f"{test.wins}-{test.draws}-{test.losses}"
    return f"{gate.candidate} against {test.victim}, {counts} so far"


def _worker_row(worker: WorkerStatus, now: float) -> tuple[str, ...]:
    return (
        worker.worker,
        worker.player,
        f"{worker.activity} ({worker.mix})" if worker.mix else worker.doing,
        f"{worker.step:,}" if worker.player else "",
        speed(worker.metrics),
        str(worker.open_leases),
        f"{long_duration(max(0.0, now - worker.last_beat_at))} ago",
    )


@app.command(cls=LeagueCommand)
def watch(
    context: LeagueContext,
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
    with context.league.connect() as client:
        try:
            for event in client.watch(after=-1 if new else after):
                if not kind or event.kind in kind:
                    print(_event_json(event) if as_json else event_line(event), flush=True)
        except KeyboardInterrupt:
            pass


def event_line(event: Event) -> str:
    """Returns an event as a tab-separated line."""
    match_id = _data(event).get("match_id")
    text = f"{event.text} (match {match_id})" if match_id else event.text
    return f"{event.position}\t{when(event.at)}\t{event.kind}\t{plain(text)}"


def _event_json(event: Event) -> str:
    fields = {name: value for name, value in vars(event).items() if name != "data_json"}
    return json.dumps(fields | {"data": _data(event)}, sort_keys=True)


def _data(event: Event) -> dict[str, Any]:
    return json.loads(event.data_json) if event.data_json else {}


@app.command(cls=LeagueCommand)
def match(
    context: LeagueContext,
    match_id: Annotated[
        str, typer.Argument(metavar="ID", help="A match id, or its beginning (see `watch`).")
    ],
) -> None:
    """Shows everything that the log knows about a match, and why it was made."""
    with context.league.connect() as client:
        record = client.match(match_id)
    why = json.loads(record.why_json or "{}")
    print_pairs([*_match_facts(record), *(("why", line) for line in _reasons(record, why))])
    weights = why.get("candidates", {}).get(record.assignment.category, [])
    if len(weights) < 2:
        return
    total, chosen = math.fsum(weight for _, weight in weights), record.assignment.opponent.name
    rows = [
        (name, f"{weight:.4g}", share(weight, total) if total else "equal",
         "drawn" if name == chosen else "")
        for name, weight in sorted(weights, key=lambda pair: -pair[1])
    ]  # fmt: skip
    shown = [row for place, row in enumerate(rows) if place < MOST_CANDIDATES or row[3]]
    print()
    print_table(f"Candidates of the category {record.assignment.category!r}", CANDIDATES, shown)


def _match_facts(record: MatchRecord) -> Iterator[tuple[str, str]]:
    """Yields facts about a match: the players, the lease, the outcome, and each seat's stats."""
    assigned, result = record.assignment, record.result
    yield "match", f"{assigned.match_id}, number {assigned.ordinal} of the league"
    for seat, player in enumerate(assigned.seats):
        digest = f", weights {player.digest[:12]}" if player.digest else ""
        learner = ", the learner" if assigned.learner_seat == seat else ""
        yield f"seat {seat}", f"{player.name} ({player.kind.value}{digest}{learner})"
    yield from (("book", assigned.book.value), ("seed", str(assigned.seed)))
    yield from (("worker", record.worker), ("lease", record.lease_state))
    if assigned.replaces:
        yield "carries on", assigned.replaces
    if record.lost_branch:
        text = "the learner went back to a checkpoint before this match: it is not rated"
        yield "lost branch", text
    if result is None or result.failed:
        failed = result and f"failed, so never rated: {result.failure}"
        yield "result", failed or "none yet"
        return
    names = [player.name for player in assigned.seats]
    won = {0.0: f"{names[1]} won", 0.5: "a draw", 1.0: f"{names[0]} won"}[result.outcome]
    yield "result", f"{won} after {result.frames} frames"
    yield "reported", f"{when(result.finished_at)}, result {record.log_position} of the log"
    for seat, played in enumerate(result.seats):
        numbers = [f"{name} {value:g}" for name, value in sorted(played.stats.items())]
        if played.step_end > played.step_start:
            numbers.insert(0, f"learner steps {played.step_start} to {played.step_end}")
        yield f"stats {seat}", ", ".join(numbers) or "none"


def _reasons(record: MatchRecord, why: dict[str, Any]) -> Iterator[str]:
    """Yields sentences on how the matchmaker drew the opponent."""
    if not why:
        yield "the log has no record of the draw"
        return
    if why.get("rule") == "pairing":
        yield (
            f"{record.worker} asked for {why['player']} against {why['opponent']} by name: pairs "
            f"of matches on one seed, seats swapped, seeds derived from {why['seed']}"
        )
    else:
        category = record.assignment.category
        shares = ", ".join(f"{name} {share(part, 1)}" for name, part in why["shares"].items())
        within = why["candidates"].get(category, [])
        rule = why.get("rules", {}).get(category, why["rule"])
        if len(within) == 1:
            rule = "of the only one there was"
        roles = f", its role by {why['roles']}" if "roles" in why else ""
        yield f"{why['player']} asked for an opponent under the mix {why['mix']!r}{roles}"
        if changed := why.get("changed"):
            yield f"{changed['by']} had changed this mix at {when(changed['at'])}"
        yield (
            f"category {category!r} was drawn out of {shares} (which include the shares of empty "
            "categories)"
        )
        chosen = record.assignment.opponent.name
        yield f"within it the rule {rule} chose {chosen} out of {len(within)}"
        chance = share(why["probability"], 1)
        yield f"together its chance was {chance}; draw seed {why['draw_seed']}"
    yield (
        f"decided on the log up to result {why['log_position']} and event "
        f"{why['event_position']}, policy {why['policy_hash']}"
    )
