"""Compares ways of training in a league: trains arms for equal time, and measures their mains.

    OMP_NUM_THREADS=1 .venv/bin/python tests/bench/league_pays.py GAME FOLDER --seeds 5 --minutes 20
    [--start CHECKPOINT.pt] [--arms bots pfsp] [--baseline today] [--until 23:30]

An arm is `bin/start-league` with the game's preset (`laptop`, or `board` for games of choices) and
the changes in `ARMS`. Each run stops after the given minutes, which all its processes share. A seed
is the same in every arm. With `--start`, all mains begin with the weights, optimizer, step size and
return scale of a checkpoint (or with the weights of a snapshot), skip the curriculum, and use the
final values of the schedules as constants. Without `--start` they begin with new weights and the
preset's schedules, which stay near their first values.

A piece is one arm with one seed. Finished pieces are skipped, so the same command continues a
study. With `--until`, no piece begins that would end after that time. Two commands can run at the
same time if `--now` splits the seeds between them, and each has its own core (`taskset -c 0`).
`--engine ray` gives each seed a core of a Ray cluster. Its nodes must see the folder and Kumite at
the same paths. The first command fixes all options but the arms. They include the number of seeds,
so there is no p-value until an arm has all its seeds.

The measures below are in payoff per match, where a win is 1 and a loss is -1 (in small games, the
game's payoff):

    processor_seconds  CPU time of the training. On a busy machine it differs between arms
    steps              steps of the main
    exploited          value of the best of `--tries` exploiters. In small games, value of a best
                       response
    beyond_placebo     `exploited` less the value that the same amount of self-play reaches
    to_60%             steps until an exploiter had 60 % of the points, or all its steps
    exploited_mixture  in small games: `exploited` for the mixture of the later half's snapshots
    worst_past         the main's lowest value against any of its snapshots
    unmet_bots         the main's value against the bots that no arm trains with, such as held-out
                       bots
    performance        relative population performance: the value of the best mixture of the arm's
                       snapshots against the best mixture of the baseline's (Balduzzi et al. 2019)
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import itertools
import json
import math
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import tomlkit
from numpy.typing import NDArray
from scipy import stats

sys.path.insert(0, str(Path(__file__).parents[2]))  # learner.py in this folder is not the package
from evaluator.benchmark.scores import Benchmark
from league.agent.history_policy import answers
from league.agent.snapshot import load_snapshot
from league.contest.league import League
from league.errors import InvalidInput
from league.games import exact
from league.games.registry import game_spec, make_batched
from league.players import CATEGORIES, PlayerKind
from league.runs.blobs import SUFFIX, BlobFolder
from league.service import die_with_parent
from league.settings.base import resolve
from league.stats.structure.cycles import holm
from league.stats.structure.equilibria import relative_performance

PLAIN, PFSP = {"within_snapshots": "uniform"}, {"within_snapshots": "pfsp_hard"}
NO_EVALUATOR = {"evaluators": 0}
"""For arms that choose opponents without clean matches."""
ARMS: dict[str, dict[str, Any]] = {
    "bots": {"mix": {"bots": 1.0}, "supervisor": NO_EVALUATOR},
    "latest": {"mix": {"self": 1.0}, "supervisor": NO_EVALUATOR},
    "uniform": {"mix": {"snapshots": 1.0}, "matchmaker": PLAIN, "supervisor": NO_EVALUATOR},
    "past_and_bots": {"mix": {"snapshots": 0.61, "bots": 0.39}, "matchmaker": PLAIN},
    "pfsp": {"mix": {"self": 0.35, "snapshots": 0.65}, "matchmaker": PFSP},
    "exploiters": {
        "mix": {"self": 0.35, "snapshots": 0.45, "exploiters": 0.1, "bots": 0.1},
        "matchmaker": PFSP,
    },
    "today": {"mix": {}},
}
"""The changes of each arm to the preset. `bots` are the bots of the preset's mix in its
proportions, or `random` if the mix has no bots. `past_and_bots` is what `laptop` used before.
"""
FOREVER = 1_000_000_000
"""Number of steps of a run. The clock ends the run earlier."""
ROOT = Path(__file__).parents[2]
Values = Callable[[Sequence[str], Sequence[str]], NDArray[np.float64]]
"""Computes the mean payoff per match of each of R players against each of C others, `[R, C]`.
Players are bots or weights files.
"""


# -- training ------------------------------------------------------------------------------------


def preset_of(game: str, mix: Mapping[str, float]) -> str:
    """Returns the preset for a game. If the mix has exploiters, it is the preset with
    exploiters.
    """
    names = ("laptop", "league3") if game == "brawl" else ("board", "league3-board")
    return names["exploiters" in mix]


def settings_of(arm: str, game: str, seed: int, started: bool) -> dict[str, Any]:
    """Returns the content of a piece's settings file."""
    changes = ARMS[arm]
    mix, preset = dict(changes["mix"]), preset_of(game, changes["mix"])
    own = resolve(preset, None, [f"game.name={json.dumps(game)}"], environment={})
    last = own["curriculum"]["stages"][-1]
    matchmaker, supervisor = ({**changes.get(name, {})} for name in ("matchmaker", "supervisor"))
    if mix:
        weights = own["matchmaker"]["mixes"][last["mix"]]
        bots = {name: weight for name, weight in weights.items() if name not in CATEGORIES}
        bots = bots or {"random": 1.0}
        part = mix.pop("bots", 0.0) / sum(bots.values())
        mix |= {name: part * weight for name, weight in bots.items() if part}
        matchmaker["mixes"] = {last["mix"]: mix}
    settings = {
        "extends": preset,
        "game": {"name": game},
        "learner": {"steps": FOREVER, "seed": seed},
        "matchmaker": matchmaker,
        "supervisor": supervisor,
    }
    if started:
        stage = {key: value for key, value in last.items() if value is not None}
        settings["curriculum"] = {"stages": [stage]}
        rates = {rate: own["learner"][f"{rate}_final"] for rate in ("learning_rate", "ent_coef")}
        constant = [f"learner.{rate}={value}" for rate, value in rates.items() if value is not None]
        supervisor["learners"] = [  # exploiters keep their schedules
            {**one, "set": [*one["set"], *(constant if one["role"] == "main" else ())]}
            for one in own["supervisor"]["learners"]
        ]
    return settings


def train(folder: Path, settings: Mapping[str, Any], start: str | None, minutes: float) -> float:
    """Trains for the given minutes, counted from the main's start. Returns the CPU time in
    seconds.
    """
    run, file, log = folder / "run", folder / "settings.toml", folder / "log.txt"
    shutil.rmtree(run, ignore_errors=True)  # left by an interrupted piece
    file.write_text(tomlkit.dumps(settings))
    words = [sys.executable, die_with_parent.__file__, str(os.getpid()), sys.executable, "-m"]
    words += ["league.cluster.main", "--headless", "--config", str(file), "--run-dir", str(run)]
    words += ["--from", start] if start else []
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with log.open("w") as output:
        process = subprocess.Popen(words, cwd=ROOT, stdout=output, stderr=output)
        while process.poll() is None and not (run / "learner-main" / "monitor.csv").exists():
            time.sleep(0.2)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(60 * minutes)
            raise SystemExit(f"the run ended by itself: see {log}")
        process.send_signal(signal.SIGTERM)
        process.wait(60)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if not snapshots_of(run):
        raise SystemExit(f"{run} has no snapshot: give more --minutes")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


# -- what the mains are worth --------------------------------------------------------------------


def snapshots_of(run: Path) -> dict[int, str]:
    """Returns the files of a main's snapshots by their steps, the oldest first."""
    with League(run_dir=run).connect() as client:
        players = client.players(kinds=[PlayerKind.SNAPSHOT])
    own = sorted((one.step, one.digest) for one in players if one.name.startswith("main@"))
    return {step: str(run / "blobs" / f"{digest}{SUFFIX}") for step, digest in own}


def spread(names: Sequence[str], count: int) -> list[str]:
    """Returns at most `count` evenly spaced names, including the first and the last."""
    places = np.linspace(0, len(names) - 1, min(count, len(names))).round().astype(int)
    return [names[place] for place in places]


def played(run: Path, matches: int, seed: int) -> Values:
    """Returns a function that measures values by clean matches under a run's settings."""

    def values(rows: Sequence[str], columns: Sequence[str]) -> NDArray[np.float64]:
        found = [Benchmark(row, columns, matches, seed=seed, run_dir=run).run() for row in rows]
        scores = [[of[name] for name in columns] for of in found]
        return np.array([[(one.wins - one.losses) / one.matches for one in of] for of in scores])

    return values


def computed(tree: exact.GameTree, table: Callable[[str], exact.Table]) -> Values:
    """Returns a function that computes exact values in a small game, averaged over both seats."""
    first_K1 = (tree.players_K == 0)[:, None]

    def value(row: str, column: str) -> float:
        mine, theirs = table(row), table(column)
        as_first, as_second = np.where(first_K1, mine, theirs), np.where(first_K1, theirs, mine)
        return (exact.expected_value(tree, as_first) - exact.expected_value(tree, as_second)) / 2

    return lambda rows, columns: np.array(
        [[value(row, column) for column in columns] for row in rows]
    )


def table_of(tree: exact.GameTree, player: str) -> exact.Table:
    """Returns the policy of a bot or a weights file in a small game."""
    if player in (bots := {bot.name: bot for bot in tree.rules.bots}):
        return exact.strategy_table(tree, bots[player].strategy)
    network, _ = load_snapshot(BlobFolder(Path(player).parent), Path(player).stem)
    return exact.table_of(tree, lambda asked: answers(network, asked))


def mixture(tree: exact.GameTree, tables: Sequence[exact.Table]) -> exact.Table:
    """Returns the policy of a player that draws one of the tables uniformly before each match.

    In an infoset, a table's weight is the probability that its own choices lead there.
    """
    sum_KA, reach_K1 = np.zeros(tree.legal_KA.shape), np.zeros((len(tree.infosets_K), 1))
    for table_KA in tables:
        by_view_VA, reach_V = tree.legal_VA.astype(float), np.ones(len(tree.players_V))
        by_view_VA[tree.infosets_K] = table_KA
        for level, after in itertools.pairwise(tree.levels):
            goes_E = level.next_E != exact.END
            view_E2 = level.views_M2[level.nodes_E[goes_E]]
            taken_E2 = by_view_VA[view_E2, level.choices_E2[goes_E]]
            reach_V[after.views_M2[level.next_E[goes_E]]] = reach_V[view_E2] * taken_E2
        sum_KA += reach_V[tree.infosets_K, None] * table_KA
        reach_K1 += reach_V[tree.infosets_K, None]
    return np.divide(sum_KA, reach_K1, out=exact.uniform_table(tree), where=reach_K1 > 0.0)


def asked(*words: str) -> Any:
    """Runs `bin/league … --json`, and returns the printed value."""
    command = [sys.executable, "-m", "league", *words, "--json"]
    return json.loads(subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout)


def exploited(run: Path, study: Mapping[str, Any], seed: int) -> dict[str, float]:
    """Measures how exploitable a run's last snapshot is."""
    words = ["--tries", str(study["tries"]), "--steps", str(study["exploit_steps"])]
    words += ["--matches", str(4 * study["matches"]), "--seed", str(seed), "--placebo"]
    (found,) = asked("exploit", "main", "--run-dir", str(run), *words)
    most = max(one["value"]["value"] for one in found["tries"])
    to_60 = min(one["reached"].get("60%", one["steps"]) for one in found["tries"])
    beyond = most - found["placebo"]["value"]["value"]
    return {"exploited": most, "beyond_placebo": beyond, "to_60%": to_60}


def measured(run: Path, baseline: Path, study: Mapping[str, Any], seed: int) -> dict[str, float]:
    """Measures the main of a run."""
    game, own = study["game"], snapshots_of(run)
    *_, last = own.values()
    batched = make_batched(game, 1)
    try:
        tree = exact.game_tree(exact.rules_of(batched))
    except InvalidInput:
        values = played(run, study["matches"], seed << 20)
        found = {"steps": max(own), **exploited(run, study, seed)}
    else:
        policy = functools.cache(functools.partial(table_of, tree))
        values = computed(tree, policy)
        later = [policy(player) for step, player in own.items() if 2 * step >= max(own)]
        found = {"steps": max(own), "exploited": exact.exploitability(tree, policy(last))}
        found["exploited_mixture"] = exact.exploitability(tree, mixture(tree, later))
    finally:
        batched.close()
    population = spread(list(own.values()), study["population"])
    if len(population) > 1:
        found["worst_past"] = float(values([last], population[:-1]).min())
    settings = resolve(preset_of(game, {}), None, [f"game.name={json.dumps(game)}"], environment={})
    met = {name for mix in settings["matchmaker"]["mixes"].values() for name in mix}
    if unmet := [bot.name for bot in game_spec(game).bots if bot.name not in met]:
        found["unmet_bots"] = float(values([last], unmet).mean())
    rivals = spread(list(snapshots_of(baseline).values()), study["population"])
    is_other = rivals != population
    found["performance"] = relative_performance(values(population, rivals)) if is_other else 0.0
    return found


# -- the table -----------------------------------------------------------------------------------


def mean_words(values: Sequence[float]) -> str:
    """Formats a mean and half the width of its 95 % interval (Student's t)."""
    mean, figure = np.mean(values), "{:,.0f}" if np.max(np.abs(values)) >= 1_000 else "{:.3f}"
    if len(values) == 1:
        return figure.format(mean)
    reach = stats.t.ppf(0.975, len(values) - 1) * stats.sem(values)
    return f"{figure} ± {figure}".format(mean, reach)


def p_values(less: Mapping[str, Sequence[float]], seeds: int) -> dict[str, float]:
    """Returns the p-values of paired t-tests against the baseline, for arms with all seeds. They
    have Holm's adjustment over the arms. `less` has each arm's differences from the baseline.
    """
    full = [arm for arm, values in less.items() if len(values) == seeds > 1]
    found = np.array([stats.ttest_1samp(less[arm], 0.0).pvalue for arm in full])
    return dict(zip(full, holm(found).tolist(), strict=True))


def table(
    results: Mapping[str, Mapping[int, Mapping[str, float]]], baseline: str, seeds: int
) -> str:
    """Returns the measures in Markdown, with a row for each arm."""
    rows = {arm: [arm, f"{len(found)} of {seeds}"] for arm, found in results.items()}
    names = dict.fromkeys(name for by in results.values() for one in by.values() for name in one)
    for name in names:
        values = {
            arm: {seed: one[name] for seed, one in found.items() if name in one}
            for arm, found in results.items()
        }
        base = values[baseline]
        less = {
            arm: [value - base[seed] for seed, value in found.items() if seed in base]
            for arm, found in values.items()
            if arm != baseline
        }
        p = p_values(less, seeds)
        for arm, row in rows.items():
            cell = mean_words([*values[arm].values()]) if values[arm] else ""
            if less.get(arm):
                cell += f" ({mean_words(less[arm])}{f', p {p[arm]:.2g}' if arm in p else ''})"
            row.append(cell)
    lines = [["arm", "seeds", *names], ["---"] * (2 + len(names)), *rows.values()]
    note = f"mean ± 95 % (less {baseline}, seed by seed; paired t-test, Holm's p over the arms)"
    return "\n".join([*(f"| {' | '.join(line)} |" for line in lines), "", note])


# -- the study -----------------------------------------------------------------------------------


def blotto(coins: int = 5, fields: int = 3) -> str:
    """Returns Colonel Blotto as a table of payoffs: the player with more coins on more fields gets
    1.
    """
    ways = [way for way in itertools.product(range(coins + 1), repeat=fields) if sum(way) == coins]
    ways_WF = np.array(ways)
    won_WW = np.sign(np.sign(ways_WF[:, None] - ways_WF).sum(-1))
    return "".join(",".join(map(str, row)) + "\n" for row in won_WW)


def opened(options: argparse.Namespace) -> dict[str, Any]:
    """Returns the options of the study in a folder. The first command fixes them."""
    free = ("arms", "until", "folder", "now", "engine")
    study = {name: value for name, value in vars(options).items() if name not in free}
    folder = options.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    if study["game"] == "blotto":
        (folder / "blotto.csv").write_text(blotto())
        study["game"] = f"matrix:{folder}/blotto.csv"
    if start := study["start"]:
        study["start"] = str(folder / start.name)
        if not Path(study["start"]).exists():  # a run keeps only its newest three
            shutil.copyfile(start, study["start"])
    file = folder / "study.json"
    if not file.exists():
        file.write_text(json.dumps(study, indent=1) + "\n")
    for name, value in json.loads(file.read_text()).items():
        if study[name] != value:
            raise SystemExit(f"{file} has {name} {value}, not {study[name]}: use another folder")
    return study


def moment(text: str) -> float:
    """Returns the Unix time of HH:MM today, or of an ISO time."""
    return datetime.fromisoformat(text if "T" in text else f"{date.today()}T{text}").timestamp()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("game", help="brawl, kuhn, leduc, matrix:brps, blotto, ...")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--arms", nargs="+", choices=ARMS, default=list(ARMS))
    parser.add_argument("--baseline", choices=ARMS, default="today")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--minutes", type=float, default=20.0, help="of all processes of an arm")
    parser.add_argument("--start", type=Path, help="checkpoint or snapshot that all mains are")
    parser.add_argument("--matches", type=int, default=100, help="clean ones of two players")
    parser.add_argument("--population", type=int, default=5, help="snapshots that stand for an arm")
    parser.add_argument("--tries", type=int, default=3, help="exploiters of a main")
    parser.add_argument("--exploit-steps", type=int, default=500_000, help="of each exploiter")
    parser.add_argument("--now", type=int, nargs="+", metavar="SEED", help="train these alone")
    parser.add_argument("--until", type=moment, default=math.inf, metavar="HH:MM")
    parser.add_argument("--engine", choices=("local", "ray"), default="local")
    options = parser.parse_args()
    study = opened(options)
    if options.engine == "ray":
        from on_nodes import run_seeds  # the tests of this file do not find its neighbours

        seeds = range(study["seeds"]) if options.now is None else options.now
        run_seeds(options.folder, [__file__, *sys.argv[1:]], "--now", seeds)
    arms = [options.baseline, *(arm for arm in options.arms if arm != options.baseline)]
    results: dict[str, dict[int, dict[str, float]]] = {arm: {} for arm in arms}
    batched = make_batched(study["game"], 1)
    batched.reset(np.zeros(1, np.uint64))
    batched.step(batched.idle_actions())  # so that brawl compiles before the first arm is timed
    batched.close()
    longest = 0.0  # duration of a measurement
    for seed, arm in itertools.product(range(study["seeds"]), arms):
        folder, baseline = (options.folder / f"{one}-{seed}" for one in (arm, options.baseline))
        file, trained = folder / "result.json", folder / "trained"
        left = options.until - time.time() - longest
        if not file.exists() and options.now and seed not in options.now:
            continue
        if not file.exists() and left < (0 if trained.exists() else 60 * study["minutes"]):
            continue
        if not file.exists():
            folder.mkdir(exist_ok=True)
            if not trained.exists():
                settings = settings_of(arm, study["game"], seed, bool(study["start"]))
                used = train(folder, settings, study["start"], study["minutes"])
                trained.write_text(f"{used:.1f}")
            began, used = time.monotonic(), float(trained.read_text())
            found = {"processor_seconds": used}
            found |= measured(folder / "run", baseline / "run", study, seed)
            (part,) = asked("mix", str(folder / "run"), "--last", "1")["parts"]
            mix = {kind: round(one["share"], 3) for kind, one in part["kinds"].items()}
            content = {"measures": found, "mix": mix, "seconds": time.monotonic() - began}
            file.write_text(json.dumps(content, indent=1) + "\n")
            print(f"{arm}, seed {seed}: {json.dumps(found)}, mix {json.dumps(mix)}", flush=True)
        done = json.loads(file.read_text())
        longest, results[arm][seed] = max(longest, done["seconds"]), done["measures"]
    print(table(results, options.baseline, study["seeds"]))


if __name__ == "__main__":
    main()
