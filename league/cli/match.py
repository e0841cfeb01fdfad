"""``league match ID``: all that the log knows of a match, and why it was made, in words."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Mapping
from typing import Any

from league.cli import connect
from league.cli.output import Column, print_pairs, print_table, share, when
from league.players import MatchRecord, MatchResult, Player

SHOWN = 15
CANDIDATES = (
    Column("candidate"),
    Column("weight", number=True),
    Column("chance", number=True),
    Column("drawn"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    connect.add_arguments(parser)
    parser.add_argument("match", metavar="ID", help="a match id, or its beginning (see `watch`)")


def run(args: argparse.Namespace) -> int:
    with connect.connect(args) as client:
        record = client.match(args.match)
    why = json.loads(record.why_json or "{}")
    print_pairs(
        [*facts(record), *result_facts(record), *(("why", line) for line in reasons(record, why))]
    )
    rows = candidates(record, why)
    if rows:
        print()
        print_table(f"Candidates of the category {record.assignment.category!r}", CANDIDATES, rows)
    return 0


def facts(record: MatchRecord) -> list[tuple[str, str]]:
    """Who met whom, for whom, under which lease."""
    match = record.assignment
    told = [
        ("match", f"{match.match_id}, number {match.ordinal} of the league"),
        ("seat 0", _seat(match.seats[0], 0, match.learner_seat)),
        ("seat 1", _seat(match.seats[1], 1, match.learner_seat)),
        ("book", match.book.value),
        ("seed", str(match.seed)),
        ("worker", record.worker),
        ("lease", record.lease_state),
    ]
    if match.replaces:
        told.append(("carries on", match.replaces))
    if record.lost_branch:
        told.append(
            (
                "lost branch",
                "the learner went back to a checkpoint before this match: it is not rated",
            )
        )
    return told


def _seat(player: Player, seat: int, learner_seat: int) -> str:
    digest = f", weights {player.digest[:12]}" if player.digest else ""
    return f"{player.name} ({player.kind.value}{digest}{', the learner' if seat == learner_seat else ''})"


def result_facts(record: MatchRecord) -> list[tuple[str, str]]:
    """How it ended, and each seat's numbers."""
    result = record.result
    if result is None:
        return [("result", "none yet")]
    if result.failed:
        return [("result", f"failed, so never rated: {result.failure}")]
    told = [
        ("result", f"{_outcome(record, result)} after {result.frames} frames"),
        ("reported", f"{when(result.finished_at)}, result {record.log_position} of the log"),
    ]
    for seat, played in enumerate(result.seats):
        numbers = [f"{name} {value:g}" for name, value in sorted(played.stats.items())]
        if played.step_end > played.step_start:
            numbers.insert(0, f"learner steps {played.step_start} to {played.step_end}")
        told.append((f"stats {seat}", ", ".join(numbers) or "none"))
    return told


def _outcome(record: MatchRecord, result: MatchResult) -> str:
    if result.outcome == 0.5:
        return "a draw"
    return f"{record.assignment.seats[0 if result.outcome == 1.0 else 1].name} won"


def reasons(record: MatchRecord, why: Mapping[str, Any]) -> list[str]:
    """The draw in sentences."""
    if not why:
        return ["the log keeps no draw of it"]
    seen = (
        f"decided on what the log held up to result {why['log_position']} and event {why['event_position']}, "
        f"policy {why['policy_hash']}"
    )
    if why.get("rule") == "pairing":
        paired = (
            f"{record.worker} asked for {why['player']} against {why['opponent']} by name: "
            f"pairs of matches on one seed, seats swapped, seeds derived from {why['seed']}"
        )
        return [paired, seen]
    category = record.assignment.category
    shares = ", ".join(f"{name} {share(part, 1)}" for name, part in why["shares"].items())
    within = why["candidates"].get(category, [])
    rule = why.get("rules", {}).get(category, why["rule"])
    roles = f", its role by {why['roles']}" if "roles" in why else ""
    copies = (
        f"; near-copies share, as event {why['clusters']} found them" if why.get("clusters") else ""
    )
    return [
        f"{why['player']} asked for an opponent under the mix {why['mix']!r}{roles}",
        f"category {category!r} was drawn out of {shares} (empty categories' shares spread over these)",
        f"within it the rule {rule if len(within) > 1 else 'of the only one there was'} "
        f"chose {record.assignment.opponent.name} out of {len(within)}{copies}",
        f"together its chance was {share(why['probability'], 1)}; draw seed {why['draw_seed']}",
        seen,
    ]


def candidates(record: MatchRecord, why: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """The drawn category's players by weight, the heaviest `SHOWN` and the one that was drawn."""
    weighted = why.get("candidates", {}).get(record.assignment.category, [])
    if len(weighted) < 2:
        return []
    total = math.fsum(weight for _, weight in weighted)
    chosen = record.assignment.opponent.name
    rows = sorted(weighted, key=lambda pair: -pair[1])
    kept = rows[:SHOWN] + [pair for pair in rows[SHOWN:] if pair[0] == chosen]
    return [
        (
            name,
            f"{weight:.4g}",
            share(weight, total) if total else "equal",
            "drawn" if name == chosen else "",
        )
        for name, weight in kept
    ]
