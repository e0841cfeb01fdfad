"""``league analyze``: which opponents an agent's strategy latent recognises."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from league.console.options import Assignments, Blobs, GameName, Heading, Seed
from league.console.output import print_pairs, print_table, say
from league.console.text import interval
from league.contest.command import LeagueContext, SeveralPlayers
from league.metrics import Measured
from league.runs.files import write_whole
from league.views.report import finite, make_folder

app = typer.Typer(rich_help_panel=Heading.MEASURE, add_completion=False)

PROBED = (
    ("latent", "latent", "any"),
    ("untrained", "untrained", "any"),
    ("seen", "view", "any"),
    ("match mean", "latent", "mean of a match"),
)
"""For each probe (a classifier of the opponent): its name in the report, and the words that the
table shows in the columns "reading" and "moment".
"""
PROBES = "reading moment matches# share# interval# chance# shuffled# p_value#"
OPPONENTS = "opponent matches# named# mostly_called called# silhouette# moved# drift# interval#"
ATTENTION = "attention mean_age_seconds# 5_percent# 95_percent# entropy_share# fixed_share#"


@app.command(cls=SeveralPlayers)
def analyze(
    context: LeagueContext,
    player: Annotated[
        str, typer.Argument(metavar="PLAYER", help="A snapshot, or a .safetensors file.")
    ],
    against: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME...",
            help="Bots, snapshots or .safetensors files, two or more (default: all bots of the "
            "game, and 3 other snapshots of the league).",
        ),
    ] = None,
    matches: Annotated[
        int, typer.Option(min=4, max=10_000, help="Against each opponent, seats swapped.")
    ] = 20,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write analysis.json and .png there."),
    ] = None,
    seed: Seed = 0,
    blobs: Blobs = None,
    game: GameName = None,
    assignments: Assignments = None,
) -> None:
    """Finds out which opponents an agent's strategy latent recognises."""
    from evaluator.analysis.study import Study
    from league.contest.members import Finder

    finder = Finder(context.league, game, blobs, assignments or ())
    study = Study.of(finder, player, against or ())
    if out is not None:
        make_folder(out)  # before anything is played
    report = study.run(matches=matches, seed=seed, pictures=out is not None)
    _show(report)
    if out is not None:
        if report["points"]["tsne"] is None:
            say("(no t-SNE without scikit-learn: bin/bootstrap --all)")
        from league.views.strategy_figure import draw  # matplotlib takes a second to load

        write_whole(out / "analysis.json", json.dumps(finite(report), indent=1) + "\n")
        write_whole(out / "analysis.png", draw(report))
        say(f"{out} has all numbers in analysis.json, drawn in analysis.png")


def _show(report: dict[str, Any]) -> None:
    rows = [
        (reading, moment, str(report["matches"]), *_shares(report["probes"][key], report["chance"]))
        for key, reading, moment in PROBED
    ]
    rows += [
        ("latent", f"after {row['seconds']:g} s", str(row["matches"]),
         *_shares(row["latent"], row["chance"]))
        for row in report["after"]
    ]  # fmt: skip
    print_table(
        "How often a linear probe names the opponent", PROBES, rows, spared="chance matches"
    )
    names, rows = [opponent["name"] for opponent in report["opponents"]], []
    for index, opponent in enumerate(report["opponents"]):
        called = max(range(len(names)), key=opponent["named"].__getitem__)
        drift = opponent["drift"]
        rows.append(
            (opponent["name"], str(opponent["matches"]), f"{opponent['named'][index]:.1%}",
             names[called], f"{opponent['named'][called]:.1%}", f"{opponent['silhouette']:.3f}",
             *((f"{drift['moved']:.3f}", f"{drift['share']:.3f}",
                f"{drift['low']:.3f}–{drift['high']:.3f}") if drift else ("", "", "")))
        )  # fmt: skip
    print()
    print_table("Opponents", OPPONENTS, rows, spared="matches moved interval called silhouette")
    rows = [
        (name, *(f"{value:.3f}" for value in figures["summary"]))
        for name, figures in report["attention"].items()
        if figures["summary"]
    ]
    print()
    print_table(f"What {report['player']} looked at", ATTENTION, rows, spared="fixed_share")
    groups, drift = report["silhouette"], report["drift"]
    lines = [
        (
            "silhouette",
            f"{groups['value']:.3f} ({groups['low']:.3f} to {groups['high']:.3f}), of shuffled "
            f"opponents {groups['chance_low']:.3f} to {groups['chance_high']:.3f}",
        )
    ]
    if drift:
        words = f"{drift['share']:.3f} ({drift['low']:.3f} to {drift['high']:.3f})"
        lines.append(("drift", f"{words}, in random order {report['drift_by_chance']:.3f}"))
    print()
    print_pairs([*lines, ("verdict", report["verdict"])])


def _shares(probe: dict[str, float], chance: float) -> tuple[str, ...]:
    shown = interval(Measured(probe["value"], probe["low"], probe["high"]))
    shuffled = interval(Measured(chance, probe["chance_low"], probe["chance_high"]))
    return f"{probe['value']:.1%}", shown, f"{chance:.1%}", shuffled, f"{probe['p_value']:.3f}"
