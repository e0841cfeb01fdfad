"""Defines ``league evaluations``, which shows and cancels requested evaluations."""

from __future__ import annotations

from typing import Annotated

import typer

from league.console.options import Heading
from league.console.output import is_terminal, operator, print_table, say, when
from league.contest.command import LeagueCommand, LeagueContext
from league.errors import InvalidInput
from league.evaluations import Report

app = typer.Typer(rich_help_panel=Heading.LOOK, add_completion=False)

LONGEST = 20
"""If the opponents' names have more characters than this, a list on a terminal shows the number of
opponents instead. The view of a single evaluation shows all names.
"""
LISTED = "number# state player against book matches# wanted# by at"


@app.command(cls=LeagueCommand)
def evaluations(
    context: LeagueContext,
    number: Annotated[
        int | None, typer.Argument(metavar="NUMBER", help="The evaluation; without it: list them.")
    ] = None,
    open_only: Annotated[
        bool, typer.Option("--open", help="List only evaluations that are open.")
    ] = False,
    cancel: Annotated[
        int | None, typer.Option(metavar="NUMBER", help="Cancel this evaluation.")
    ] = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Follow NUMBER to its end, or all without an end.")
    ] = False,
) -> int:
    """Shows the evaluations that were requested with `eval --queue`, or cancels one."""
    from league.contest.evaluations import follow, line_of, show

    if cancel is not None:
        if number is not None or open_only or watch:
            raise InvalidInput("--cancel NUMBER ends one evaluation: give nothing else with it")
        context.league.require_running("cancel")
    with context.league.connect() as client:
        if cancel is not None:
            was_open = client.report(cancel).is_open
            ended = client.cancel_evaluation(cancel, "it is not wanted any more", operator())
            what = "now" if was_open else "since before, so there is nothing to cancel"
            say(f"evaluation {cancel} is {ended.state.value} {what}")
        elif number is not None:
            return show(follow(client, number) if watch else client.report(number))
        elif watch:
            for report in client.watch_reports():
                print(line_of(report), flush=True)
        else:
            rows = list(map(_row, client.reports(open_only=open_only)))
            if not rows:
                say("(there is none: bin/league eval PLAYER --queue asks for one)")
            print_table("Evaluations", LISTED, rows, spared="at by book")
    return 0


def _row(report: Report) -> tuple[str, ...]:
    evaluation, against = report.evaluation, ", ".join(report.evaluation.opponents)
    if is_terminal() and len(against) > LONGEST:
        against = f"{len(evaluation.opponents)} opponents"
    return (
        *(
            str(evaluation.number),
            evaluation.state.value,
            evaluation.player,
            against,
            evaluation.book.value,
        ),
        *(str(report.matches_done), str(report.matches_total), evaluation.by, when(evaluation.at)),
    )
