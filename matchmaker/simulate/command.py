"""``league simulate``: a league of made-up players, played through the real matchmaker."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from league.cli.output import Column, is_terminal, print_pairs, print_table, say
from league.errors import InvalidInput

SHOWN = 20
"""Lines of a table of opponents."""


def _columns(text: str, *numbers: str) -> tuple[Column, ...]:
    return (*map(Column, text.split()), *(Column(name, number=True) for name in numbers))


SHARES = _columns("category", "configured", "expected", "realised", "matches")
GROUPS = _columns("learner against", "realised", "by_the_truth", "matches")
TENTHS = _columns("tenth", "predicted", "played", "matches")


def simulate(
    scenario: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="elo, rps, disc, blotto, drift, or a .toml or .tsv file."
        ),
    ] = "elo",
    players: Annotated[int, typer.Option(min=1, metavar="N", help="All players.")] = 60,
    matches: Annotated[int, typer.Option(min=1, metavar="N", help="Matches to assign.")] = 20_000,
    learners: Annotated[int, typer.Option(min=1, metavar="N", help="Players that train.")] = 3,
    seed: Annotated[int, typer.Option(metavar="N", help="The league's seed.")] = 0,
    mix: Annotated[
        str, typer.Option(metavar="NAME", help="The mix that learners ask for.")
    ] = "league",
    clean: Annotated[
        float, typer.Option(min=0, metavar="S", help="Share of clean matches, below 1.")
    ] = 0.3,
    faults: Annotated[
        float,
        typer.Option(min=0, metavar="S", help="Share of the workers' turns that fail, below 1."),
    ] = 0.01,
    batch: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="Matches a turn (default: 16 to 256, by their number)."
        ),
    ] = None,
    preset: Annotated[
        str | None, typer.Option(metavar="NAME", help="Settings of the matchmaker to simulate.")
    ] = None,
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A settings file to simulate.")
    ] = None,
    assignments: Annotated[
        list[str] | None, typer.Option("--set", metavar="SECTION.KEY=VALUE", help="One setting.")
    ] = None,
    run_dir: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Keep the league there (default: nowhere).")
    ] = None,
    replay: Annotated[
        Path | None,
        typer.Option(metavar="RUN", help="Instead: what --policy would have drawn in this run."),
    ] = None,
    policy: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The settings file of the other policy.")
    ] = None,
    points: Annotated[
        int, typer.Option(min=1, metavar="N", help="Draws of the run to look at.")
    ] = 500,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one object with all digits.")
    ] = False,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw it, as a .png.")] = None,
) -> int:
    """Simulates a league: the opponents that a rule gives, how well ratings predict, the speed.

    The exit status is 1 when the shares of opponents are not those of the rule.
    """
    for flag, share in (("clean", clean), ("faults", faults)):
        if not share < 1.0:
            raise InvalidInput(f"--{flag} {share:g} is no share: it must be 0 or more, below 1")
    if (replay is None) != (policy is None):
        raise InvalidInput("--replay RUN and --policy FILE go together: give both")
    if plot is not None and plot.suffix != ".png":
        raise InvalidInput(f"{plot} can't be drawn: name a file that ends in .png")
    if replay is not None and policy is not None:
        return _replay(replay, policy, points, as_json)
    from league.settings.base import resolve
    from matchmaker.settings import MatchmakerSettings
    from matchmaker.simulate.report import follows, report_of
    from matchmaker.simulate.roster import set_up
    from matchmaker.simulate.simulation import Plan, Simulation

    settings = resolve(preset, config, assignments or []).of(MatchmakerSettings)
    truth, roster, settings = set_up(scenario, settings, players, learners, seed)
    plan = Plan(
        matches=matches,
        seed=seed,
        mix=mix,
        clean_share=clean,
        faults=faults,
        batch=batch or max(16, min(256, matches // (2 * players))),
    )
    with tempfile.TemporaryDirectory() as scratch:
        folder = run_dir or Path(scratch)
        if (folder / "league.db").exists():
            raise InvalidInput(f"{folder} holds a league already: name another --run-dir")
        with Simulation(folder, settings, truth, roster, plan) as simulation:
            simulation.run(_progress(matches))
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


def _replay(run: Path, policy: Path, points: int, as_json: bool) -> int:
    """Prints the shares by another policy next to those of a run; always returns 0."""
    from league.settings.base import resolve
    from matchmaker.settings import MatchmakerSettings
    from matchmaker.simulate.other_policy import Row, replayed

    settings = resolve(file=policy, environment={}).of(MatchmakerSettings)
    found = replayed(run, settings, points)
    tables = {kind: found.shares(by) for by, kind in enumerate(("categories", "opponents"))}
    if as_json:
        rows_by_kind = {kind: [row._asdict() for row in rows] for kind, rows in tables.items()}
        counts = {"draws": found.draws, "matches": found.matches, "distance": found.distance}
        print(json.dumps(counts | rows_by_kind))
        return 0
    for kind, rows in tables.items():
        shown = [(row.name, *(f"{share:.2%}" for share in row[1:])) for row in rows[:SHOWN]]
        print_table(f"Shares of {kind}", _columns("name", *Row._fields[1:]), shown)
    print_pairs(
        [
            ("draws", f"{found.draws:,}, of {found.matches:,} matches"),
            ("distance", f"{found.distance:.1%} of the matches would have gone to others"),
        ]
    )
    return 0


def _progress(matches: int) -> Callable[[int], None]:
    """Returns a callback that reports every twentieth part at a terminal."""
    shown = 0

    def report(assigned: int) -> None:
        nonlocal shown
        if is_terminal() and assigned * 20 // matches > shown:
            shown = assigned * 20 // matches
            say(f"{assigned:,} of {matches:,} matches")

    return report


def _show(report: dict[str, Any]) -> None:
    """Prints the report for a person."""
    shares = []
    for row in report["shares"]:
        parts = (f"{row[name]:.2%}" for name in ("configured", "expected", "realised"))
        shares.append((row["category"], *parts, f"{row['matches']:,}"))
    print_table("Opponents that learners got", SHARES, shares)
    groups = []
    for row in report["groups"]:
        ideal = "" if row["ideal"] is None else f"{row['ideal']:.1%}"
        played = f"{row['realised']:.1%}"
        groups.append((row["learner"], row["group"], played, ideal, f"{row['matches']:,}"))
    if groups:
        print_table("Opponents by kind", GROUPS, groups)
    for book, words in (("eval", "Clean matches"), ("train", "Training")):
        tenths = []
        for place, row in enumerate(report["calibration"][book], start=1):
            scores = f"{row['predicted']:.2%}", f"{row['played']:.2%}"
            tenths.append((str(place), *scores, f"{row['matches']:,}"))
        if tenths:
            print_table(f"{words}: scores as predicted before, and as played", TENTHS, tenths)
    print_pairs(_lines(report))


def _lines(report: dict[str, Any]) -> list[tuple[str, str]]:
    size = f"{report['players']:,} players, {report['matches']:,} matches"
    rule = report["rule"] + ("" if report["roles"] == "mix" else f", roles {report['roles']}")
    lines = [
        ("league", f"{report['scenario']}, {size}, seed {report['seed']}"),
        ("clock", f"{report['simulated_hours']:.1f} hours"),
        ("rule", rule),
    ]
    for name, key in (("categories", "category_fit"), ("opponents", "opponent_fit")):
        fit = report[key]
        chi2 = f"chi-squared {fit['chi2']:.1f} of {fit['freedom']} degrees of freedom"
        lines.append((name, f"{chi2}, p {fit['p_value']:.2g}"))
    ratings = report["ratings"]
    if ratings:
        errors = f"a pair's score is off by {ratings['trueskill_error']:.2%} on average"
        if ratings["fit_error"] is not None:
            errors += f", by the fit of all games {ratings['fit_error']:.2%}"
        lines += [
            ("ratings", f"of {ratings['players']:,} players in clean matches"),
            ("error", errors),
        ]
        if ratings["rank_correlation"] is not None:
            correlation = f"{ratings['rank_correlation']:.3f}"
            lines.append(("order", f"Spearman's correlation with the true one {correlation}"))
    if report["snapshots_taken"]:
        taken = f"{report['snapshots_taken']:,} taken by learners"
        resets = f"which started again {report['generations_begun']:,} times"
        lines.append(("snapshots", f"{taken}, {resets}"))
    for name in ("leases", "faults"):
        counts = (f"{count:,} {kind}" for kind, count in report[name].items())
        lines.append((name, ", ".join(counts) or "none"))
    rates = (f"{report['speed'][name]:,.0f}" for name in ("matches", "assignments", "results"))
    lines.append(
        ("speed", "{} matches/s in all; assigned at {}/s, reported at {}/s".format(*rates))
    )
    return lines
