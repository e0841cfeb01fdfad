"""``league stage``: where in its curriculum a learner is, what would end the stage, another one
by hand.
"""

from __future__ import annotations

import argparse

from league.cli import connect
from league.cli.operator import operator
from league.cli.output import Column, print_pairs, print_table, say, share, when
from league.metrics import wilson_interval
from league.players import Book, PayoffCell
from league.rpc.client import MatchmakerClient
from league.stages import (
    NEXT,
    CurriculumStatus,
    Stage,
    evidence_after,
    goal_reached,
    named_stage,
    newest_evaluated,
    one_curriculum,
)

COLUMNS = (
    Column("on"),
    Column("stage"),
    Column("mix"),
    Column("reward"),
    Column("ends_by_wins"),
    Column("ends_by_steps"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "stage",
        nargs="?",
        metavar="STAGE",
        help=f"ask the learner to enter this stage ({NEXT}: the one behind the present); without: show them",
    )
    parser.add_argument(
        "--player", default="", metavar="NAME", help="the live player, where there are several"
    )
    connect.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    with connect.connect(args) as client:
        status = one_curriculum(client.curricula(), args.player)
        if args.stage is None:
            _show(client, status)
        else:
            # a wrong name is told even where nothing can be asked for
            named_stage(status, args.stage)
            connect.must_go_on(args, "ask")
            asked = client.ask_stage(args.stage, operator(), status.player)
            say(
                f"{status.player} is asked to enter stage {asked.stage!r}: it does before its next rollout"
            )
    return 0


def _show(client: MatchmakerClient, status: CurriculumStatus) -> None:
    rows = [_row(stage, stage == status.stage) for stage in status.stages]
    print_table(f"Stages of {status.player}", COLUMNS, rows)
    cells: list[PayoffCell] = []
    if status.stage.until_opponent:
        cells = client.payoff(Book.EVAL, columns=[status.stage.until_opponent])
    print_pairs(describe(status, cells))


def _row(stage: Stage, is_on: bool) -> tuple[str, ...]:
    wins = ""
    if stage.until_opponent:
        wins = f"{stage.until_win_rate:.0%} of {stage.min_matches} against {stage.until_opponent}"
    steps = "" if stage.max_steps is None else f"{stage.max_steps:,}"
    return ("*" if is_on else "", stage.name, stage.mix, stage.reward, wins, steps)


def describe(status: CurriculumStatus, cells: list[PayoffCell]) -> list[tuple[str, str]]:
    """Lines about the stage that is on. `cells` are the clean counts against the opponent of its
    goal.
    """
    place = status.place
    how = "by hand" if place.by_hand else "by itself"
    begun = f"{place.since_step:,} ({how})" if place.since_step or place.by_hand else "0"
    lines = [
        ("stage", status.stage.name),
        ("since step", begun),
        ("now at step", f"{status.step:,}"),
    ]
    if status.done:
        return [*lines, ("ended by", "nothing more: all steps are done")]
    lines += _ends(status, cells)
    if status.asked is not None:
        lines.append(
            ("asked for", f"{status.asked.stage} by {status.asked.by} at {when(status.asked.at)}")
        )
    return lines


def _ends(status: CurriculumStatus, cells: list[PayoffCell]) -> list[tuple[str, str]]:
    stage, place = status.stage, status.place
    goal = [("measured", _measured(status, cells))] if stage.until_opponent else []
    if place.index + 1 == len(status.stages):
        return [*goal, ("ended by", "the end of the run: it is the last stage")]
    if stage.manual:
        return [*goal, ("ended by", f"hand alone (bin/league stage {NEXT})")]
    ends = []
    if stage.until_opponent:
        ends.append(
            f"{stage.until_win_rate:.0%} wins against {stage.until_opponent} "
            f"in at least {stage.min_matches} clean matches"
        )
    if stage.max_steps is not None:
        left = max(0, place.since_step + stage.max_steps - status.step)
        ends.append(f"its time-out in {left:,} steps")
    return [*goal, ("ended by", ", or ".join(ends) or f"hand alone (bin/league stage {NEXT})")]


def _measured(status: CurriculumStatus, cells: list[PayoffCell]) -> str:
    """The newest evidence, its share of wins, and the Wilson interval around it."""
    stage = status.stage
    cell = newest_evaluated(cells, status.player, evidence_after(status.place))
    if cell is None:
        since = " frozen since then" if status.place.by_hand else ""
        return f"nothing yet: no snapshot{since} has been evaluated against {stage.until_opponent}"
    interval = wilson_interval(cell.wins, cell.games)
    few = "" if cell.games >= stage.min_matches else f", fewer than {stage.min_matches}"
    reached = "reached" if goal_reached(stage, cell) else "not reached"
    return (
        f"{cell.row} won {cell.wins} of {cell.games}{few}: {share(cell.wins, cell.games)} "
        f"(95 % Wilson interval {share(interval.low, 1)} to {share(interval.high, 1)}), goal {reached}"
    )
