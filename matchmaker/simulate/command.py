"""``league simulate``: a league of made-up players, played through the real matchmaker."""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer

from league.cli.output import Column, is_terminal, print_pairs, print_table, say
from league.errors import InvalidInput

SHOWN = 20
"""Lines of a table of opponents."""
SHARES = (
    Column("category"),
    Column("configured", number=True),
    Column("expected", number=True),
    Column("realised", number=True),
    Column("matches", number=True),
)
GROUPS = (
    Column("learner"),
    Column("against"),
    Column("realised", number=True),
    Column("by_the_truth", number=True),
    Column("matches", number=True),
)
TENTHS = (
    Column("tenth"),
    Column("predicted", number=True),
    Column("played", number=True),
    Column("matches", number=True),
)


def simulate(
    scenario: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="elo, rps, disc, blotto, drift, or a .toml or .tsv file."
        ),
    ] = "elo",
    players: Annotated[int, typer.Option(min=1, metavar="N", help="All players.")] = 60,
    matches: Annotated[int, typer.Option(min=1, metavar="N", help="Matches to hand out.")] = 20_000,
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
        typer.Option(
            min=0, metavar="S", help="Share of the workers' turns that go wrong, below 1."
        ),
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
    args = argparse.Namespace(**locals() | {"assignments": assignments or [], "json": as_json})
    for flag, share in (("clean", clean), ("faults", faults)):
        if not share < 1.0:
            raise InvalidInput(f"--{flag} {share:g} is no share: it must be 0 or more, below 1")
    if (args.replay is None) != (args.policy is None):
        raise InvalidInput(
            "--replay RUN and --policy FILE go together: what would FILE have drawn in RUN?"
        )
    if args.replay is not None:
        return _replay(args)
    if args.plot is not None and args.plot.suffix != ".png":
        raise InvalidInput(f"{args.plot} can't be drawn: name a file that ends in .png")
    from matchmaker.simulate.report import follows

    report = _simulated(args)
    if args.json:
        print(json.dumps(report))
    else:
        show(report)
    if args.plot is not None:
        from league.runs.files import write_whole
        from league.views.simulation_figure import draw  # matplotlib takes a second to load

        write_whole(args.plot, draw(report))
        say(f"{args.plot} shows it")
    if not follows(report):
        say("the shares are NOT those of the rule: chance does not do that")
        return 1
    return 0


def _simulated(args: argparse.Namespace) -> dict[str, Any]:
    from league.settings.base import resolve
    from matchmaker.settings import MatchmakerSettings
    from matchmaker.simulate.roster import set_up
    from matchmaker.simulate.simulation import Plan, Simulation

    sections = resolve(args.preset, args.config, args.assignments)
    settings = sections.of(MatchmakerSettings)
    from matchmaker.simulate.report import report_of

    scenario, roster, settings = set_up(
        args.scenario, settings, args.players, args.learners, args.seed
    )
    plan = Plan(
        matches=args.matches,
        seed=args.seed,
        mix=args.mix,
        clean_share=args.clean,
        faults=args.faults,
        batch=args.batch or max(16, min(256, args.matches // (2 * args.players))),
    )
    with tempfile.TemporaryDirectory() as scratch:
        folder = args.run_dir or Path(scratch)
        if (folder / "league.db").exists():
            raise InvalidInput(f"{folder} holds a league already: name another --run-dir")
        with Simulation(folder, settings, scenario, roster, plan) as simulation:
            simulation.run(_progress(args.matches))
            return report_of(simulation)


def _replay(args: argparse.Namespace) -> int:
    """Shares by another policy beside those of a run; always 0."""
    from league.settings.base import resolve
    from matchmaker.settings import MatchmakerSettings
    from matchmaker.simulate.other_policy import Row, replayed

    found = replayed(
        args.replay, resolve(file=args.policy, environment={}).of(MatchmakerSettings), args.points
    )
    tables = {kind: found.shares(by) for by, kind in enumerate(("categories", "opponents"))}
    if args.json:
        told = {kind: [row._asdict() for row in rows] for kind, rows in tables.items()}
        counts = {"draws": found.draws, "matches": found.matches, "distance": found.distance}
        print(json.dumps(counts | told))
        return 0
    columns = (Column("name"), *(Column(name, number=True) for name in Row._fields[1:]))
    for kind, rows in tables.items():
        shown = [(row.name, *(f"{share:.2%}" for share in row[1:])) for row in rows[:SHOWN]]
        print_table(f"Shares of {kind}", columns, shown)
    print_pairs(
        [
            ("draws", f"{found.draws:,}, of {found.matches:,} matches"),
            ("distance", f"{found.distance:.1%} of the matches would have gone to others"),
        ]
    )
    return 0


def _progress(matches: int) -> Any:
    """Tells a person at a terminal how far it is, every twentieth part."""
    told = [0]

    def tell(assigned: int) -> None:
        if is_terminal() and assigned * 20 // matches > told[0]:
            told[0] = assigned * 20 // matches
            say(f"{assigned:,} of {matches:,} matches")

    return tell


def show(report: dict[str, Any]) -> None:
    """The report for a person."""
    print_table("Whom learners were given", SHARES, [_share_row(row) for row in report["shares"]])
    if report["groups"]:
        print_table("Opponents by kind", GROUPS, [_group_row(row) for row in report["groups"]])
    for book, words in (("eval", "Clean matches"), ("train", "Training")):
        if report["calibration"][book]:
            rows = [
                _tenth_row(place, row)
                for place, row in enumerate(report["calibration"][book], start=1)
            ]
            print_table(f"{words}: scores as predicted before, and as played", TENTHS, rows)
    print_pairs(_lines(report))


def _share_row(row: dict[str, Any]) -> tuple[str, ...]:
    parts = (f"{row[name]:.2%}" for name in ("configured", "expected", "realised"))
    return (row["category"], *parts, f"{row['matches']:,}")


def _group_row(row: dict[str, Any]) -> tuple[str, ...]:
    ideal = "" if row["ideal"] is None else f"{row['ideal']:.1%}"
    return (row["learner"], row["group"], f"{row['realised']:.1%}", ideal, f"{row['matches']:,}")


def _tenth_row(place: int, row: dict[str, Any]) -> tuple[str, ...]:
    return (str(place), f"{row['predicted']:.2%}", f"{row['played']:.2%}", f"{row['matches']:,}")


def _lines(report: dict[str, Any]) -> list[tuple[str, str]]:
    speed, leases = report["speed"], report["leases"]
    size = f"{report['players']:,} players, {report['matches']:,} matches"
    rates = (f"{speed[name]:,.0f}" for name in ("matches", "assignments", "results"))
    rule = (
        report["rule"] if report["roles"] == "mix" else f"{report['rule']}, roles {report['roles']}"
    )
    lines = [
        ("league", f"{report['scenario']}, {size}, seed {report['seed']}"),
        ("clock", f"{report['simulated_hours']:.1f} hours"),
        ("rule", rule),
        ("categories", _fit_words(report["category_fit"])),
        ("opponents", _fit_words(report["opponent_fit"])),
    ]  # fmt: skip
    if report["ratings"]:
        lines += _rating_lines(report["ratings"])
    if report["snapshots_taken"]:
        told = f"{report['snapshots_taken']:,} taken by learners"
        lines.append(("snapshots", f"{told}, who began anew {report['generations_begun']:,} times"))
    lines += [
        ("leases", ", ".join(f"{count:,} {name}" for name, count in leases.items())),
        (
            "faults",
            ", ".join(f"{count:,} {name}" for name, count in report["faults"].items()) or "none",
        ),
        ("speed", "{} matches/s in all; handed out at {}/s, taken at {}/s".format(*rates)),
    ]
    return lines


def _fit_words(fit: dict[str, Any]) -> str:
    return f"chi-squared {fit['chi2']:.1f} of {fit['freedom']} degrees of freedom, p {fit['p_value']:.2g}"


def _rating_lines(ratings: dict[str, Any]) -> list[tuple[str, str]]:
    errors = f"a pair's score is off by {ratings['trueskill_error']:.2%} on average"
    if ratings["fit_error"] is not None:
        errors += f", by the fit of all games {ratings['fit_error']:.2%}"
    lines = [("ratings", f"of {ratings['players']:,} players in clean matches"), ("error", errors)]
    if ratings["rank_correlation"] is not None:
        order = f"Spearman's correlation with the true one {ratings['rank_correlation']:.3f}"
        lines.append(("order", order))
    return lines
