"""Checks a sweep's choice against exact NashConv, and compares a population with fixed settings.

    nice -n 10 .venv/bin/python tests/bench/sweep.py sweep FOLDER [--repetitions 5] [--trials 16]

The game is Kuhn poker, where NashConv is exact: 0 in equilibrium. `sweep` repeats `bin/league
sweep` with another seed. A repetition succeeds if the best trial by league score, in clean matches
against the game's bots, is among the three best trials by the NashConv of the same mixture of
snapshots.
The same command continues. It interrupts the sweep while the file `--pause` exists.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))  # learner.py in this folder is not the package
from league.agent.history_policy import answers
from league.agent.snapshot import load_snapshot
from league.contest.league import League
from league.games import exact
from league.games.registry import make_batched
from league.ids import lineage_of
from league.players import PlayerKind, later_half
from league.runs.blobs import BlobFolder
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
NAMESPACE = ["unshare", "-rn", "bash", "-c", 'ip link set lo up; exec "$@"', "-"]
"""Runs a command without a network, because Ray listens on the machine's addresses."""


def run(words: list[str], pause: Path) -> None:
    """Runs a command, and interrupts it while the file `pause` exists."""
    tie = [sys.executable, die_with_parent.__file__]
    while True:
        while pause.exists():
            time.sleep(5)
        process = subprocess.Popen([*tie, str(os.getpid()), *words], cwd=ROOT)
        while process.poll() is None and not pause.exists():
            time.sleep(1)
        if process.poll() is not None:
            if process.returncode:
                raise SystemExit(f"{words} ended with {process.returncode}")
            return
        process.terminate()
        process.wait(120)


def nash_conv(run_dir: Path, to: int) -> float:
    """Returns the NashConv of the later half of main's snapshots up to the step `to`."""
    with League(run_dir=run_dir).connect() as client:
        players = client.players(kinds=[PlayerKind.SNAPSHOT])
    own = [one for one in players if lineage_of(one.name) == "main" and one.step <= to]
    played, blobs = make_batched("kuhn", 1), BlobFolder(run_dir / "blobs")
    tree = exact.game_tree(exact.rules_of(played))
    tables = []
    for one in later_half("main", own):
        network, _ = load_snapshot(blobs, one.digest)
        tables.append(exact.table_of(tree, lambda asked, network=network: answers(network, asked)))
    weights = [1.0 / len(tables)] * len(tables)
    return float(exact.nash_conv(tree, exact.average_table(tree, tables, weights)))


def sweep(folder: Path, repetition: int, trials: int, matches: int, pause: Path) -> bool:
    """Runs a repetition, prints its trials, and returns whether it succeeded."""
    file, out = folder / f"{repetition}.toml", folder / str(repetition)
    file.write_text(SETTINGS.format(seed=repetition))
    words = [*NAMESPACE, str(ROOT / ".venv/bin/python"), "-m", "league", "sweep", str(file)]
    words += ["--trials", str(trials), "--seed", str(repetition), "--matches", str(matches)]
    words += ["--rungs", "2", "--average", "--out", str(out)]
    began = time.monotonic()
    run(words, pause)
    found = []
    for record in sorted(out.glob("trial-*.json")):
        trial = json.loads(record.read_text())
        if trial["rungs"]:
            last = trial["rungs"][-1]
            truth = nash_conv(record.with_suffix(""), int(last["player"].split()[-1]))
            found.append((last["steps"], last["score"]["value"], truth, trial["settings"]))
    found.sort(key=lambda one: one[:2], reverse=True)
    by_truth = sorted(one[2] for one in found)
    place = by_truth.index(found[0][2]) + 1
    for steps, score, truth, settings in found:
        values = " ".join(f"{name}={value:g}" for name, value in settings.items())
        print(f"  {steps} steps, score {score:+.3f}, NashConv {truth:.3f}: {values}")
    spent = time.monotonic() - began
    print(
        f"repetition {repetition}: the best by score is number {place} of {len(found)} by NashConv "
        f"({found[0][2]:.3f}, least {by_truth[0]:.3f}), {spent:.0f} s",
        flush=True,
    )
    return place <= 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("study", choices=["sweep"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--trials", type=int, default=16)
    parser.add_argument("--matches", type=int, default=2000)
    parser.add_argument("--pause", type=Path, default=Path("/tmp/quiet"))
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    folder = options.folder.absolute()
    given = options.trials, options.matches, options.pause
    good = [sweep(folder, number, *given) for number in range(1, options.repetitions + 1)]
    print(f"among the three best in {sum(good)} of {len(good)} repetitions")


if __name__ == "__main__":
    main()
