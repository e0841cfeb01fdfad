"""Checks a sweep's choice against exact NashConv, and compares a population with fixed settings.

    nice -n 10 .venv/bin/python tests/bench/sweep.py sweep FOLDER [--trials 16] [--seed 1]
    nice -n 10 .venv/bin/python tests/bench/sweep.py population FOLDER [--repetitions 5]

The game is Kuhn poker, where NashConv is exact: 0 in equilibrium. `sweep` repeats `bin/league
sweep` with another seed. A repetition succeeds if the best trial, by its clean matches in the final
(or against the game's bots, with `--final 0`), is among the three best trials by the NashConv of
the same mixture of snapshots.

`population` trains three mains that copy each other, and one main with the preset's settings for
three times as many steps, so both take the same number of steps in all. It prints the NashConv of
the average of each main. The result of a population is its best rated main.

The same command continues. It interrupts the sweep while the file `--pause` exists.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))  # learner.py in this folder is not the package
from league.agent.history_policy import answers
from league.agent.snapshot import load_snapshot
from league.contest.league import League
from league.errors import Unavailable
from league.games import exact
from league.games.registry import make_batched
from league.ids import lineage_of
from league.players import PlayerKind, later_half
from league.runs.blobs import BlobFolder
from league.runs.finding import live_address
from league.service import die_with_parent

ROOT = Path(__file__).parents[2]
SETTINGS = """\
extends = "board"

[learner]
steps = 36_000
snapshot_interval = 4_000
seed = {seed}
learning_rate_final = "none"
ent_coef_final = "none"

[evaluator]
nice = 0

[sweep]
learner.learning_rate = {{ low = 1e-5, high = 1e-2, scale = "log" }}
learner.ent_coef = [0.0, 0.03, 0.1]
"""
PRESET = """\
extends = "board"

[learner]
steps = 120_000
snapshot_interval = 4_000
seed = {seed}

[evaluator]
nice = 0
"""
POPULATION = """\
extends = "board"

[learner]
steps = 40_000
snapshot_interval = 4_000
seed = {seed}

[evaluator]
nice = 0

[supervisor]
learners = [
  {{ name = "slow", set = [
    "learner.learning_rate=3e-4", "learner.learning_rate_final=3e-4", "learner.seed=1{seed}",
  ] }},
  {{ name = "main" }},
  {{ name = "fast", set = [
    "learner.learning_rate=3e-3", "learner.learning_rate_final=3e-3", "learner.seed=2{seed}",
  ] }},
]

[matchmaker]
population_interval = 8_000
"""
NAMESPACE = ["unshare", "-rn", "bash", "-c", 'ip link set lo up; exec "$@"', "-"]
"""Runs a command without a network, because Ray listens on the machine's addresses."""


def run(words: list[str], pause: Path, done: Callable[[], bool] = lambda: False) -> None:
    """Runs a command until it ends or is done, and interrupts it while the file `pause` exists."""
    tie = [sys.executable, die_with_parent.__file__]
    while True:
        while pause.exists():
            time.sleep(5)
        process = subprocess.Popen([*tie, str(os.getpid()), *words], cwd=ROOT)
        while process.poll() is None and not pause.exists():
            time.sleep(1)
            if done():
                process.kill()
                process.wait()
                return
        if process.poll() is not None:
            if process.returncode:
                raise SystemExit(f"{words} ended with {process.returncode}")
            return
        process.terminate()
        process.wait(120)


def nash_conv(run_dir: Path, to: int, main: str = "main") -> float:
    """Returns the NashConv of the later half of a main's snapshots up to the step `to`."""
    with League(run_dir=run_dir).connect() as client:
        players = client.players(kinds=[PlayerKind.SNAPSHOT])
    own = [one for one in players if lineage_of(one.name) == main and one.step <= to]
    played, blobs = make_batched("kuhn", 1), BlobFolder(run_dir / "blobs")
    tree = exact.game_tree(exact.rules_of(played))
    tables = []
    for one in later_half(main, own):
        network, _ = load_snapshot(blobs, one.digest)
        tables.append(exact.table_of(tree, lambda asked, network=network: answers(network, asked)))
    weights = [1.0 / len(tables)] * len(tables)
    return float(exact.nash_conv(tree, exact.average_table(tree, tables, weights)))


def sweep(
    folder: Path, repetition: int, trials: int, matches: int, final: int, pause: Path
) -> bool:
    """Runs a repetition, prints its trials, and returns whether it succeeded."""
    file, out = folder / f"{repetition}.toml", folder / str(repetition)
    file.write_text(SETTINGS.format(seed=repetition))
    words = [*NAMESPACE, str(ROOT / ".venv/bin/python"), "-m", "league", "sweep", str(file)]
    words += ["--trials", str(trials), "--seed", str(repetition), "--matches", str(matches)]
    words += ["--rungs", "2", "--average", "--final", str(final), "--out", str(out)]
    began = time.monotonic()
    run(words, pause)
    found = []
    with (out / "sweep.csv").open() as table:
        rows = {int(row["trial"]): row for row in csv.DictReader(table)}
    for record in sorted(out.glob("trial-*.json")):
        trial = json.loads(record.read_text())
        if trial["rungs"]:
            last = trial["rungs"][-1]
            truth = nash_conv(record.with_suffix(""), int(last["player"].split()[-1]))
            row = rows[trial["number"]]
            values = " ".join(f"{name}={value:g}" for name, value in trial["settings"].items())
            shown = f"score {last['score']['value']:+.3f}, NashConv {truth:.3f}: {values}"
            met = f"final {row['final']} ({row['final_low']} to {row['final_high']}), "
            key = last["steps"], last["score"]["value"]
            found.append((int(row["rank"]), key, truth, f"{last['steps']} steps, {met}{shown}"))
    found.sort()
    by_truth = sorted(truth for *_, truth, _ in found)
    places = [
        by_truth.index(best[2]) + 1 for best in (found[0], max(found, key=lambda one: one[1]))
    ]
    for *_, shown in found:
        print(f"  {shown}")
    spent = time.monotonic() - began
    print(
        f"repetition {repetition}: the best is number {places[0]} of {len(found)} by NashConv "
        f"({found[0][2]:.3f}, least {by_truth[0]:.3f}), by score alone number {places[1]}, "
        f"{spent:.0f} s",
        flush=True,
    )
    return places[0] <= 3


def train(folder: Path, text: str, pause: Path) -> dict[str, float]:
    """Trains a league until its mains are done. Returns the NashConv of each main's average, the
    main with the best rated newest snapshot first.
    """
    run_dir, file = folder / "run", folder / "settings.toml"
    folder.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    words = [str(ROOT / ".venv/bin/python"), "-m", "league.cluster.main", "--headless", "--cpu"]
    words += ["--no-dashboard", "--config", str(file), "--run-dir", str(run_dir)]
    if not (folder / "done").exists():
        run(words, pause, lambda: is_done(run_dir))
        (folder / "done").touch()
        while live_address(run_dir) is not None:  # the kernel ends the killed league's processes
            time.sleep(0.2)
    with League(run_dir=run_dir).connect() as client:
        rated = [one.player for one in client.ratings() if one.player.kind is PlayerKind.SNAPSHOT]
        copies = client.population().copies
    newest = {lineage_of(one.name): max(
        (other.step for other in rated if lineage_of(other.name) == lineage_of(one.name)),
    ) for one in rated}  # fmt: skip
    order = [lineage_of(one.name) for one in rated if one.step == newest[lineage_of(one.name)]]
    print(f"  {len(copies)} copies: " + ", ".join(f"{x.player} of {x.source}" for x in copies))
    return {name: nash_conv(run_dir, newest[name], name) for name in order}


def is_done(run_dir: Path) -> bool:
    if live_address(run_dir) is None:
        return False
    try:
        with League(run_dir=run_dir).connect() as client:
            learners = [one for one in client.status().workers if one.player]
    except Unavailable:
        return False
    return bool(learners) and all(one.activity == "done" for one in learners)


def population(folder: Path, seed: int, pause: Path) -> tuple[float, float]:
    """Trains both leagues with a seed. Returns the NashConv of the population and of the preset."""
    began = time.monotonic()
    copying = train(folder / f"population-{seed}", POPULATION.format(seed=seed), pause)
    alone = train(folder / f"preset-{seed}", PRESET.format(seed=seed), pause)
    found = next(iter(copying.values())), next(iter(alone.values()))
    each = " ".join(f"{name} {value:.3f}" for name, value in copying.items())
    spent = time.monotonic() - began
    print(f"seed {seed}: population {found[0]:.3f} ({each}), preset {found[1]:.3f}, {spent:.0f} s",
          flush=True)  # fmt: skip
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("study", choices=["sweep", "population"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1, help="the first repetition's seed")
    parser.add_argument("--trials", type=int, default=16)
    parser.add_argument("--matches", type=int, default=2000)
    parser.add_argument("--final", type=int, default=20_000)
    parser.add_argument("--pause", type=Path, default=Path("/tmp/quiet"))
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    folder = options.folder.absolute()
    numbers = range(options.seed, options.seed + options.repetitions)
    if options.study == "sweep":
        given = options.trials, options.matches, options.final, options.pause
        good = [sweep(folder, number, *given) for number in numbers]
        print(f"among the three best in {sum(good)} of {len(good)} repetitions")
        return
    found = [population(folder, number, options.pause) for number in numbers]
    wins = sum(ours < theirs for ours, theirs in found)
    means = [statistics.mean(values) for values in zip(*found, strict=True)]
    print(f"the population has the lower NashConv in {wins} of {len(found)} seeds; means: "
          f"population {means[0]:.3f}, preset {means[1]:.3f}")  # fmt: skip


if __name__ == "__main__":
    main()
