"""``league eval``, ``compare`` and ``ready``: matches of frozen players, played here and now."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from league.console.options import (
    AsJson,
    Assignments,
    Blobs,
    GameName,
    Greedy,
    Heading,
    Seed,
)
from league.console.output import print_table, progress, say
from league.console.text import interval, measured, number
from league.contest.command import LeagueCommand, LeagueContext, SeveralPlayers
from league.errors import InvalidInput
from league.evaluations import PAIRED
from league.players import Book
from league.views.report import finite, make_folder, write

if TYPE_CHECKING:  # these load numpy and torch
    from evaluator.benchmark.comparison import Comparison
    from evaluator.benchmark.scores import Benchmark, Score

app = typer.Typer(rich_help_panel=Heading.MEASURE, add_completion=False)

MEANS = (
    *("damage_ratio", "knockouts", "pickups", "falls", "damage_dealt", "damage_taken"),
    *("payoff", "reward", "seconds", "choices"),
)
"""Mean values that the table shows, if the game has them."""
SPARED = (
    *("losses", "draws", "wins", "damage_taken", "damage_dealt", "reward", "falls", "seconds"),
    *("pickups", "matches", "choices", "payoff", "knockouts", "damage_ratio"),
)
CHECKS = {"win_rate": 0.7, "damage_ratio": 2.0, "knockouts": 2.0, "pickups": 1.0,
          "seconds_per_fall": 60.0}  # fmt: skip
"""Values that a player must exceed against the bot `based` to pass `league ready`."""

Player = Annotated[
    str,
    typer.Argument(
        metavar="PLAYER",
        help="A bot, a snapshot, a .safetensors file, or a mixture: a=3,b=1, main@average, "
        "league@nash.",
    ),
]
Matches = Annotated[
    int,
    typer.Option(min=4, max=100_000, help="Against each opponent, made even: seats are swapped."),
]


@app.command("eval", cls=SeveralPlayers)
def evaluate(
    context: LeagueContext,
    player: Player,
    against: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME...", help="Opponents, as PLAYER (default: every bot)."),
    ] = None,
    matches: Matches = 100,
    greedy: Greedy = False,
    seed: Seed = 0,
    blobs: Blobs = None,
    game: GameName = None,
    assignments: Assignments = None,
    report: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write report.html, .json and .png there.")
    ] = None,
    queue: Annotated[
        bool, typer.Option("--queue", help="Ask the run's evaluators for the matches.")
    ] = False,
    wait: Annotated[
        bool, typer.Option("--wait", help="With --queue: wait until they are played.")
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Plays clean matches of PLAYER against others and shows what it does in them."""
    if queue:
        if report is not None:
            raise InvalidInput("--report is of matches that are played here: leave out --queue")
        if seed:
            raise InvalidInput("--seed is of matches that are played here: leave out --queue")
        from league.contest.evaluations import ask

        book = Book.GREEDY if greedy else Book.EVAL
        return ask(
            context.league, player, against or (), matches, book, game, wait=wait, as_json=as_json
        )
    if wait:
        raise InvalidInput("--wait is for --queue: matches that are played here are waited for")
    from evaluator.benchmark.scores import Benchmark
    from league.contest.members import Finder

    finder = Finder(context.league, game, blobs, assignments or ())
    settings = finder.settings([player, *(against or ())])
    opponents = against or [bot.name for bot in settings.spec().bots]
    if report is not None:
        make_folder(report)  # before anything is played
    benchmark = Benchmark(player, opponents, matches, greedy=greedy, seed=seed, finder=finder)
    scores = _played(benchmark)
    for score in scores:
        if score.failed:
            say(f"({score.failed} matches against {score.opponent} could not be finished)")
    facts = {"game": settings.name, "greedy": greedy, "seed": seed, "reward": settings.reward}
    if report is not None:
        from evaluator.reports.contents import of_benchmark

        for path in write(of_benchmark(scores, settings.spec(), facts), report):
            say(f"written: {path}")
    if as_json:
        print(json.dumps(finite(facts | {"scores": [asdict(score) for score in scores]})))
        return 0
    _print_scores(scores, greedy, matches)
    return 0


def _played(benchmark: Benchmark) -> list[Score]:
    """Plays a benchmark and shows its progress."""
    with progress() as show:
        found = benchmark.run(
            lambda name, done: show(f"{benchmark.agent} against {name}, matches played: {done}")
        )
    return list(found.values())


def _print_scores(scores: Sequence[Score], greedy: bool, asked: int) -> None:
    means = [name for name in MEANS if name in scores[0].means]
    rows = [
        (
            *(score.opponent, *map(str, (score.matches, score.wins, score.draws, score.losses))),
            *(f"{score.win_rate.value:.1%}", interval(score.win_rate)),
            *(measured(score.means[name]) for name in means),
        )
        for score in scores
    ]
    captions = ["means a match with their 95 % intervals; a draw is not a win."]
    if any(score.matches > asked for score in scores):
        captions.append(f"More than {asked} were played: {PAIRED}.")
    heads = ["opponent", "matches#", "wins#", "draws#", "losses#", "win_rate#", "interval#"]
    print_table(
        f"{scores[0].player}, {'greedy' if greedy else 'sampled'}",
        [*heads, *(f"{name}#" for name in means)],
        rows,
        caption=" ".join(captions),
        spared=SPARED,
    )
    if any(score.actions for score in scores):
        names = list(scores[0].actions or scores[-1].actions)
        least = sorted(names, key=lambda name: sum(score.actions[name].value for score in scores))
        print_table(
            "Share of its decisions with each",
            ["opponent", *(f"{name}#" for name in names)],
            [
                (score.opponent, *(f"{score.actions[name].value:.0%}" for name in names))
                for score in scores
            ],
            spared=least,
        )


@app.command(cls=LeagueCommand)
def ready(
    context: LeagueContext,
    player: Player,
    against: Annotated[str, typer.Option(metavar="NAME", help="The opponent.")] = "based",
    matches: Matches = 200,
    greedy: Greedy = False,
    seed: Seed = 0,
    blobs: Blobs = None,
    game: GameName = None,
    assignments: Assignments = None,
    as_json: AsJson = False,
) -> int:
    """Checks PLAYER against the bars for the end of training: wins, damage, survival and more."""
    from evaluator.benchmark.scores import Benchmark
    from league.contest.members import Finder

    finder = Finder(context.league, game, blobs, assignments or ())
    settings = finder.settings([player, against])
    if missing := {"damage_dealt", "knockouts", "falls", "pickups"} - {*settings.spec().stats}:
        raise InvalidInput(
            f"{settings.name} counts no {', '.join(sorted(missing))}: the checks are for brawl; "
            "bin/league eval measures players of any game"
        )
    benchmark = Benchmark(player, [against], matches, greedy=greedy, seed=seed, finder=finder)
    (score,) = _played(benchmark)
    checks = {name: score.win_rate if name == "win_rate" else score.means[name] for name in CHECKS}
    verdicts = {
        name: "pass" if mean.low > bar else "fail" if mean.high <= bar else "not shown"
        for (name, mean), bar in zip(checks.items(), CHECKS.values(), strict=True)
    }
    is_ready = set(verdicts.values()) == {"pass"}
    if as_json:
        rows = {
            name: asdict(mean) | {"bar": CHECKS[name], "verdict": verdicts[name]}
            for name, mean in checks.items()
        }
        facts = {"player": score.player, "opponent": score.opponent, "matches": score.matches}
        print(json.dumps(finite(facts | {"ready": is_ready, "checks": rows})))
        return int(not is_ready)
    lines = []
    for name, mean in checks.items():
        row = (number(mean.value), f"{number(mean.low)}–{number(mean.high)}", f"> {CHECKS[name]:g}")
        if name == "win_rate":
            row = f"{mean.value:.1%}", interval(mean), f"> {CHECKS[name]:.0%}"
        lines.append((name.replace("_", " "), *row, verdicts[name]))
    print_table(
        f"{score.player} against {score.opponent}, {score.matches} matches",
        "check value# interval# wanted verdict",
        lines,
        caption="pass: the whole 95 % interval is above; not shown: more --matches may decide",
    )
    short = [
        f"{name.replace('_', ' ')}: {word}" for name, word in verdicts.items() if word != "pass"
    ]
    if is_ready:
        say(f"{score.player} is ready: it passes all {len(verdicts)} checks")
    else:
        shown = "is not ready" if "fail" in verdicts.values() else "is not shown to be ready"
        say(f"{score.player} {shown} ({', '.join(short)})")
    return int(not is_ready)


@app.command(cls=LeagueCommand)
def compare(
    context: LeagueContext,
    first: Annotated[
        str, typer.Argument(metavar="A", help="A bot, a snapshot, a weights file or a mixture.")
    ],
    second: Annotated[
        str, typer.Argument(metavar="B", help="Another. Of another run: runs/bold/main.")
    ],
    elo0: Annotated[float, typer.Option(help="A lead in Elo that does not count.")] = 0.0,
    elo1: Annotated[float, typer.Option(help="A lead in Elo that is to be found.")] = 30.0,
    alpha: Annotated[float, typer.Option(help="How often a lead of elo0 may pass.")] = 0.05,
    beta: Annotated[float, typer.Option(help="How often a lead of elo1 may be missed.")] = 0.05,
    most: Annotated[
        int, typer.Option(min=2, max=100_000, help="Matches after which it stays undecided.")
    ] = 4000,
    greedy: Greedy = False,
    seed: Seed = 0,
    blobs: Blobs = None,
    game: GameName = None,
    assignments: Assignments = None,
    as_json: AsJson = False,
) -> None:
    """Plays A against B until a sequential test knows which one is stronger."""
    from evaluator.benchmark.comparison import compare as played
    from league.contest.members import Finder
    from league.stats.gates import Gate, MultinomialTest, Risks

    finder = Finder(context.league, game, blobs, assignments or ())
    gate = Gate(test=MultinomialTest(elo0=elo0, elo1=elo1), risks=Risks(alpha=alpha, beta=beta))
    with progress() as show:
        result = played(
            finder,
            (first, second),
            gate,
            most=most,
            seed=seed,
            greedy=greedy,
            on_pair=lambda seen: show(_standing(seen)),
        )
    if result.failed:
        say(f"({result.failed} matches could not be finished; their pairs do not count)")
    if not as_json:
        print(result.sentence())
        return
    facts: dict[str, Any] = {"first": result.first, "second": result.second}
    facts |= {"finding": result.finding.value, "sentence": result.sentence()}
    facts |= {"matches": result.matches, "failed": result.failed}
    facts |= {"elo": result.elo and asdict(result.elo)}
    if result.payoff is not None:
        facts |= {"payoff": asdict(result.payoff), "unit": f"{result.payoff_unit} per match"}
    facts["tests"] = [
        {"pairs": gate.counts, "llr": gate.llr, "verdict": gate.verdict.value}
        for gate in result.gates
    ]
    print(json.dumps(finite(facts | {"elo0": elo0, "elo1": elo1, "alpha": alpha, "beta": beta})))


def _standing(seen: Comparison) -> str:
    """Returns the line of progress. The name comes last, because a narrow terminal cuts the end."""
    gate = seen.gates[0]
    points = sum(n * score for n, score in zip(gate.counts, range(5), strict=True)) / 4
    won = f"{100 * points / max(gate.results, 1):.0f} % of the points go to {seen.first}"
    return f"{seen.matches:,} matches, not decided yet: {won}"
