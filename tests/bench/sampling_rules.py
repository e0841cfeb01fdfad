"""Compares the rules that draw opponents among snapshots, by exact NashConv in small games.

    nice -n 10 .venv/bin/python tests/bench/sampling_rules.py FOLDER [--games matrix:brps kuhn]
    [--seeds 1 2 3] [--rules self uniform pfsp_hard nash] [--steps 400000]

Each run is the preset `board` with an evaluator, on one core. With the rule `self` the agent meets
itself, as in the preset. With the other rules it meets its snapshots instead, in the same share of
the matches. NashConv is 0 in an equilibrium. It is printed for the last snapshot, for the average
of the later half of the snapshots, and for the league's Nash mixture. Runs that have their figures
are not repeated.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
PLAYERS = ("main", "main@average", "league@nash")
SETTINGS = """\
extends = "board"

[game]
name = "{game}"

[learner]
steps = {steps}
seed = {seed}

[matchmaker]
within_snapshots = "{within}"

[matchmaker.mixes]
league = {{ {category} = 0.95, random = 0.05 }}
"""


def measured(folder: Path, game: str, rule: str, seed: int, steps: int) -> list[float]:
    """Trains a league if it is not finished. Returns the NashConv of each of the `PLAYERS`."""
    out = folder / f"{game.replace(':', '-').replace('/', '-')}-{rule}-{seed}"
    done = out / "exploitability.json"
    if not done.exists():
        out.mkdir(parents=True, exist_ok=True)
        file = out / "settings.toml"
        category, within = ("self", "uniform") if rule == "self" else ("snapshots", rule)
        file.write_text(
            SETTINGS.format(game=game, steps=steps, seed=seed, within=within, category=category)
        )
        run = ["--run-dir", str(out / "run")]
        start = ["bin/start-league", "--config", str(file), "--headless", "--no-dashboard"]
        with (out / "log").open("a") as log:
            environment = {**os.environ, "OMP_NUM_THREADS": "1"}
            subprocess.run(
                [*start, "--cpu", "--ranks", "1", *run],
                cwd=ROOT,
                env=environment,
                stdout=log,
                check=True,
            )
        asked = ["bin/league", "exploitability", *PLAYERS, "--json", *run]
        found = subprocess.run(asked, cwd=ROOT, stdout=subprocess.PIPE, check=True)
        done.write_bytes(found.stdout)
    return [json.loads(row)["nash_conv"] for row in done.read_text().splitlines()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--games", nargs="+", default=["matrix:brps", "kuhn"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--rules", nargs="+", default=["self", "uniform", "pfsp_hard", "nash"])
    parser.add_argument("--steps", type=int, default=400_000)
    options = parser.parse_args()
    folder = options.folder.absolute()
    found: dict[tuple[str, str], list[list[float]]] = {}
    for game in options.games:
        for seed in options.seeds:
            for rule in options.rules:
                values = measured(folder, game, rule, seed, options.steps)
                found.setdefault((game, rule), []).append(values)
                shown = ", ".join(
                    f"{name} {value:.3f}" for name, value in zip(PLAYERS, values, strict=True)
                )
                print(f"{game}, {rule}, seed {seed}: {shown}", flush=True)
    for (game, rule), each in found.items():
        means = [statistics.mean(values) for values in zip(*each, strict=True)]
        shown = ", ".join(f"{name} {mean:.3f}" for name, mean in zip(PLAYERS, means, strict=True))
        print(f"{game}, {rule}, mean of {len(each)}: {shown}")


if __name__ == "__main__":
    main()
