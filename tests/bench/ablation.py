"""What the agent's parts are worth: trainings of equal steps that differ in one thing, and clean
matches.

    OMP_NUM_THREADS=1 python tests/bench/ablation.py FOLDER [--cells baseline window ...] [--seeds 1
    2 3]
        [--steps 1500000] [--jobs 2]          # trains and plays what FOLDER has no result of yet
    python tests/bench/ablation.py FOLDER --report [--plot ablation.png]

Every training is a matchmaker and a learner, one thread each, of the preset `laptop` with one
stage: the league's mix from the first step, in the fixed shares of the notes (70 % snapshots, 5 %
constant, 15 % based, 10 % random). The last snapshot then plays clean matches against three of
these bots and those held out: as many pairs for every cell, on the same seeds. A cell's figures are
over all its seeds.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import signal
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parents[2]))  # learner.py beside this file is not the package
from practice import clean_scores, load_network

from league.games.registry import game_spec
from league.metrics import wilson_interval
from league.players import PlayerKind
from league.rpc.client import MatchmakerClient

BASE = """
[learner]
steps = {steps}
seed = {seed}

[matchmaker]
adaptive = 0.0

[matchmaker.mixes]
league = {mix}

[[curriculum.stages]]
name = "league"
mix = "league"
reward = "laptop"
"""
MIX = "{ snapshots = 70.0, constant = 5.0, based = 15.0, random = 10.0 }"
CELLS: dict[str, tuple[str, str]] = {  # what it is, and lines laid over BASE
    "baseline": ("streaming encoder, history, LSTM, no RNaD, 70/30 mix", ""),
    "window": ("windowed encoder", '[agent]\nencoder = "window"\n'),
    "no-history": ("the encoder sees the present entry alone", "[agent]\nhistory = false\n"),
    "no-lstm": ("the LSTM is cleared before every decision", "[agent]\nrecurrent = false\n"),
    "rnad": ("RNaD as by default (alpha 0.01, portfolio of 5)", "[regularisation]\nalpha = 0.01\n"),
    "self-play": ("snapshots only, no bots", ""),
}
SEEN = ("constant", "based", "random")
FRAME_SKIP = 4


def settings_of(cell: str, steps: int, seed: int) -> str:
    """The settings file of a training."""
    mix = "{ snapshots = 1.0 }" if cell == "self-play" else MIX
    return BASE.format(steps=steps, seed=seed, mix=mix) + CELLS[cell][1]


def train(folder: Path, cell: str, seed: int, steps: int) -> float:
    """Trains to the end, or goes on with a training that was stopped; returns the seconds it
    took now.
    """
    folder.mkdir(parents=True, exist_ok=True)
    settings = folder / "settings.toml"
    settings.write_text(settings_of(cell, steps, seed))
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    log = (folder / "log.txt").open("a")
    started = time.monotonic()
    common = ["--preset", "laptop", "--config", str(settings)]
    service = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "matchmaker",
            "--db",
            str(folder / "league.db"),
            "--port",
            "0",
            *common,
        ],
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,
        env=environment,
    )
    try:
        assert service.stdout is not None
        port = service.stdout.readline().split()[1]  # it says `ready PORT`
        address = f"127.0.0.1:{port}"
        learner = [
            sys.executable,
            "-m",
            "learner",
            "--matchmaker",
            address,
            "--run-dir",
            str(folder),
            "--cpu",
            "--ranks",
            "1",
        ]
        subprocess.run([*learner, *common], stdout=log, stderr=log, env=environment, check=True)
        with MatchmakerClient(address) as client:
            last = max(client.players(kinds=[PlayerKind.SNAPSHOT]), key=lambda player: player.step)
        (folder / "last.txt").write_text(f"{last.step} {last.digest}")
    finally:
        service.send_signal(signal.SIGTERM)
        service.wait()
    return time.monotonic() - started


def judge(folder: Path, pairs: int) -> dict[str, list[list[float]]]:
    """Scores of the last snapshot in clean matches, `[pairs, 2]` by bot."""
    _, digest = (folder / "last.txt").read_text().split()
    network = load_network(folder, digest)
    return {
        bot: clean_scores(network, bot, pairs=pairs, frame_skip=FRAME_SKIP).tolist()
        for bot in (*SEEN, *held_out())
    }


def held_out() -> list[str]:
    """Bots that no training may name."""
    return [bot.name for bot in game_spec("brawl").bots if bot.held_out]


def work(root: Path, cell: str, seed: int, steps: int, pairs: int) -> None:
    folder = root / f"{cell}-{seed}"
    if (folder / "result.json").exists():
        return
    seconds = train(folder, cell, seed, steps)
    result = {
        "cell": cell,
        "seed": seed,
        "steps": steps,
        "seconds": seconds,
        "scores": judge(folder, pairs),
    }
    (folder / "result.json").write_text(json.dumps(result))
    wins = {name: np.mean(np.array(scores) == 1.0) for name, scores in result["scores"].items()}
    told = " ".join(f"{name} {share:.0%}" for name, share in wins.items())
    print(f"{cell} seed {seed}: {seconds:,.0f} s; {told}", flush=True)


def results_of(root: Path) -> dict[str, list[dict[str, Any]]]:
    """Results by cell, in the order of `CELLS`, by seed."""
    found = [json.loads(path.read_text()) for path in root.glob("*/result.json")]
    by_cell = {cell: [r for r in found if r["cell"] == cell] for cell in CELLS}
    return {cell: sorted(rs, key=lambda r: r["seed"]) for cell, rs in by_cell.items() if rs}


def wins_of(result: dict[str, Any], bots: list[str]) -> np.ndarray:
    """1 for a win, 0 for all else, of every match against `bots` in one order."""
    return np.concatenate([np.array(result["scores"][bot]).ravel() == 1.0 for bot in bots]).astype(
        float
    )


def difference(
    cell: list[dict[str, Any]], base: list[dict[str, Any]], bots: list[str]
) -> tuple[float, float]:
    """Mean difference of the share of wins, seed by seed, and its 95 % half width by Student's t.

    The trainings are the sample: matches alone would tell how well three agents were measured, not
    what another training would give.
    """
    mine = {r["seed"]: wins_of(r, bots) for r in cell}
    theirs = {r["seed"]: wins_of(r, bots) for r in base}
    gaps = [float((mine[seed] - theirs[seed]).mean()) for seed in mine if seed in theirs]
    if len(gaps) < 2:
        return (gaps[0] if gaps else math.nan), math.nan
    t = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776}[len(gaps)]
    return statistics.mean(gaps), t * statistics.stdev(gaps) / len(gaps) ** 0.5


def report(root: Path) -> None:
    """Prints the table in Markdown."""
    groups = {**{bot: [bot] for bot in SEEN}, "held-out": held_out()}
    results = results_of(root)
    print(
        f"| cell | {' | '.join(groups)} | held-out by seed | held-out against baseline | s a run |"
    )
    print("|---|" + "---|" * (len(groups) + 3))
    for cell, runs in results.items():
        shares = []
        for bots in groups.values():
            wins = np.concatenate([wins_of(run, bots) for run in runs])
            interval = wilson_interval(int(wins.sum()), len(wins))
            shares.append(
                f"{wins.mean():.1%} [{100 * interval.low:.1f}, {100 * interval.high:.1f}]"
            )
        by_seed = ", ".join(f"{wins_of(run, groups['held-out']).mean():.0%}" for run in runs)
        gap, half = difference(runs, results.get("baseline", []), groups["held-out"])
        against = "" if cell == "baseline" else f"{100 * gap:+.1f} ± {100 * half:.1f}"
        seconds = statistics.mean(run["seconds"] for run in runs)
        print(f"| {cell} | {' | '.join(shares)} | {by_seed} | {against} | {seconds:,.0f} |")


def plot(root: Path, out: Path) -> None:
    """A dot for each training, a bar for their mean, by group of bots."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    groups = {"constant": ["constant"], "based": ["based"], "held-out bots": held_out()}
    results = results_of(root)
    figure, axes = plt.subplots(
        1, len(groups), figsize=(10, 3.2), sharey=True, layout="constrained"
    )
    for axis, (title, bots) in zip(axes, groups.items(), strict=True):
        for row, runs in enumerate(results.values()):
            shares = [100 * wins_of(run, bots).mean() for run in runs]
            axis.barh(row, statistics.mean(shares), color="#c9d6e8", height=0.65)
            axis.plot(shares, [row] * len(shares), "o", color="#1f4e8c", markersize=4)
        axis.set_title(title, fontsize=10)
        axis.set_xlim(0, 100)
        axis.set_xlabel("wins in clean matches (%)", fontsize=9)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_yticks(range(len(results)), list(results))
    axes[0].invert_yaxis()
    figure.savefig(out, dpi=130)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--cells", nargs="+", choices=CELLS, default=list(CELLS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--steps", type=int, default=1_500_000)
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--report", action="store_true")
    parser.add_argument("--plot", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    if not options.report:
        with ThreadPoolExecutor(options.jobs) as pool:
            waiting = [
                pool.submit(work, options.folder, cell, seed, options.steps, options.pairs)
                for seed in options.seeds
                for cell in options.cells
            ]
            for job in waiting:
                job.result()
    report(options.folder)
    if options.plot:
        plot(options.folder, options.plot)


if __name__ == "__main__":
    main()
