"""Implements ``league simulate``: a league of made-up players, played with the real matchmaker."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Annotated, Any

from typer import Option, Typer

from league.console.options import Heading
from league.console.output import print_pairs, print_table, say
from league.errors import InvalidInput

app = Typer(rich_help_panel=Heading.TRAIN, add_completion=False)


@app.command()
def simulate(
    scenario: Annotated[
        str, Option(metavar="NAME", help="elo, rps, disc, blotto, drift, forget.")
    ] = "elo",
    players: Annotated[int, Option(min=1, metavar="N", help="All players.")] = 60,
    matches: Annotated[int, Option(min=1, metavar="N", help="Matches to assign.")] = 20_000,
    learners: Annotated[int, Option(min=1, metavar="N", help="Players that train.")] = 3,
    seed: Annotated[int, Option(metavar="N", help="The league's seed.")] = 0,
    clean: Annotated[
        float, Option(min=0, metavar="S", help="Share of clean matches, below 1.")
    ] = 0.3,
    faults: Annotated[
        float, Option(min=0, metavar="S", help="Share of the workers' turns that fail, below 1.")
    ] = 0.01,
    preset: Annotated[
        str | None, Option(metavar="NAME", help="Settings of the matchmaker to simulate.")
    ] = None,
    config: Annotated[
        Path | None, Option(metavar="FILE", help="A settings file to simulate.")
    ] = None,
    assignments: Annotated[
        list[str] | None, Option("--set", metavar="SECTION.KEY=VALUE", help="One setting.")
    ] = None,
    run_dir: Annotated[
        Path | None, Option(metavar="DIR", help="Keep the league there (default: nowhere).")
    ] = None,
    as_json: Annotated[bool, Option("--json", help="Print one object with all digits.")] = False,
    plot: Annotated[Path | None, Option(metavar="FILE", help="Draw it, as a .png.")] = None,
) -> int:
    """Simulates a league: the opponents that a rule gives, how well ratings predict, the speed.

    The exit status is 1 if the shares of opponents differ from the rule's.
    """
    for flag, share in (("clean", clean), ("faults", faults)):
        if not share < 1.0:
            raise InvalidInput(f"--{flag} {share:g} is no share: it must be 0 or more, below 1")
    if plot is not None and plot.suffix != ".png":
        raise InvalidInput(f"{plot} can't be drawn: name a file that ends in .png")
    from league.settings.base import resolve_run
    from matchmaker.settings import MatchmakerSettings
    from matchmaker.simulate.report import follows, report_of
    from matchmaker.simulate.simulation import Plan, Simulation

    plan = Plan(
        scenario=scenario,
        players=players,
        matches=matches,
        learners=learners,
        seed=seed,
        clean_share=clean,
        faults=faults,
        batch=max(16, min(256, matches // (2 * players))),
    )
    sections = resolve_run(None, preset, config, assignments or [], default=None)
    settings = MatchmakerSettings.of(sections)
    with tempfile.TemporaryDirectory() as scratch:
        folder = run_dir or Path(scratch)
        if (folder / "league.db").exists():
            raise InvalidInput(f"{folder} holds a league already: name another --run-dir")
        with Simulation(folder, settings, plan) as simulation:
            simulation.run()
            report = report_of(simulation)
    if as_json:
        print(json.dumps(report))
    else:
        _show(report)
    if plot is not None:
        from league.runs.files import write_whole
        from league.views.simulation_figure import draw  # matplotlib takes a second to load

        write_whole(plot, draw(report))
        say(f"{plot} shows it")
    if not follows(report):
        say("the shares are NOT those of the rule: chance does not do that")
        return 1
    return 0


def _table(title: str, rows: list[dict[str, Any]], words: str, *shares: str) -> None:
    """Prints a table with columns of words and of shares, and the number of matches. Without rows
    it prints nothing.
    """
    if rows:
        shown = [
            (
                *(str(row[name]) for name in words.split()),
                *("" if row[name] is None else f"{row[name]:.2%}" for name in shares),
                f"{row['matches']:,}",
            )
            for row in rows
        ]
        print_table(title, [*words.split(), *(f"{name}#" for name in (*shares, "matches"))], shown)


def _show(report: dict[str, Any]) -> None:
    columns = ("configured", "expected", "realised")
    _table("Opponents that learners got", report["shares"], "category", *columns)
    _table("Opponents by kind", report["groups"], "learner against", "realised", "by_the_truth")
    tenths = [
        {"book": book, **row} for book in ("eval", "train") for row in report["calibration"][book]
    ]
    title = "Scores as predicted before, and as played"
    _table(title, tenths, "book tenth", "predicted", "played")
    size = f"{report['players']:,} players, {report['matches']:,} matches"
    rule = report["rule"] + ("" if report["roles"] == "mix" else f", roles {report['roles']}")
    lines = [("league", f"{report['scenario']}, {size}, seed {report['seed']}"), ("rule", rule)]
    for name, key in (("categories", "category_fit"), ("opponents", "opponent_fit")):
        fit = report[key]
        chi2 = f"chi-squared {fit['chi2']:.1f} of {fit['freedom']} degrees of freedom"
        lines.append((name, f"{chi2}, p {fit['p_value']:.2g}"))
    if met := report["expected_scores"]["matches"]:
        error = report["expected_scores"]["error"]
        lines.append(
            ("sampling", f"a learner's score is off by {error:.2%} on average, {met:,} matches")
        )
    for learner, lost in report["forgotten"].items():
        when = f"after {lost['noticed_after']} matches"
        if lost["noticed_after"] is None:
            when = f"not in {lost['meetings']} matches"
        lines.append(("forgotten", f"{lost['opponent']} by {learner}: weight tripled {when}"))
    if ratings := report["ratings"]:
        errors = f"a pair's score is off by {ratings['trueskill_error']:.2%} on average"
        if ratings["fit_error"] is not None:
            errors += f", by the fit of all games {ratings['fit_error']:.2%}"
        lines.append(("ratings", f"{errors}, {ratings['players']:,} players in clean matches"))
    if report["snapshots_taken"]:
        lines.append(("snapshots", f"{report['snapshots_taken']:,} taken by learners"))
    for name in ("leases", "faults"):
        counts = (f"{count:,} {kind}" for kind, count in report[name].items())
        lines.append((name, ", ".join(counts) or "none"))
    print_pairs([*lines, ("speed", f"{report['speed']:,.0f} matches/s")])
