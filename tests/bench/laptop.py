"""Steps a second of `bin/start-league` as users start it, with the evaluator paused, capped and
free.

    python tests/bench/laptop.py FOLDER [--run RUN] [--seconds 60] [--rounds 2] [--shares 0 0.25 1]
        [--set SECTION.KEY=VALUE ...] [-- FLAGS OF start-league]

Each measurement starts the product, preset `laptop`, all of it: matchmaker, learner, evaluator.
Without `--run` a new league begins, whose opponents are bots; with it a copy of that run goes on
where it was, and its opponents are snapshots as well. Share 0 stops the evaluator's process while
it is measured (SIGSTOP), others set `evaluator.cpu_share`. The shares take turns: a machine that
changes its speed shows.

Steps are the learner's own, between two of its beats, updates included.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from league.cli.connection import League
from league.errors import LeagueError
from league.players import WorkerStatus
from league.settings.base import resolve
from league.settings.file import write_config

WARM_SECONDS = 15.0
MORE_STEPS = 100_000_000


def measure(folder: Path, share: float, options: argparse.Namespace) -> float:
    """Steps a second of one start."""
    run = folder / "run"
    shutil.rmtree(run, ignore_errors=True)
    changed = [*options.set, f"learner.steps={MORE_STEPS}"]
    command = ["bin/start-league", "--headless", "--run-dir", str(run), *options.flags]
    if options.run:
        shutil.copytree(
            options.run, run, ignore=shutil.ignore_patterns("replays", "lock", "*.lock")
        )
        write_config(run / "config.toml", resolve(file=run / "config.toml", assignments=changed))
    else:
        command += [word for one in changed for word in ("--set", one)]
    with (folder / "run.log").open("w") as log:
        process = subprocess.Popen(command, cwd=Path(__file__).parents[2], stdout=log, stderr=log)
    stopped: list[int] = []
    try:
        begun = beat(run, process, after=0)
        stopped = [] if share else evaluators(process.pid)
        for one in stopped:
            os.kill(one, signal.SIGSTOP)
        first = beat(run, process, after=begun.last_beat_at + WARM_SECONDS)
        last = beat(run, process, after=first.last_beat_at + options.seconds)
        return (last.step - first.step) / (last.last_beat_at - first.last_beat_at)
    finally:
        for one in stopped:
            os.kill(one, signal.SIGCONT)
        process.send_signal(signal.SIGINT)
        process.wait(timeout=120)


def beat(run: Path, process: subprocess.Popen[bytes], after: float) -> WorkerStatus:
    """The first beat of the learner at `after` or later that tells of steps made in this start."""
    known: int | None = None
    while process.poll() is None:
        # Nobody is asked while it is measured: an answer costs what the learner could have had.
        time.sleep(1.0 if time.time() >= after else 0.2)
        if time.time() < after:
            continue
        with suppress(LeagueError), League(run_dir=run).connect() as client:
            for worker in client.status().workers:
                if not worker.player or worker.activity == "done":
                    continue
                known = worker.step if known is None else known
                if worker.last_beat_at >= after and (after or worker.step > known):
                    return worker
    raise SystemExit(f"the league ended by itself: see {run.parent / 'run.log'}")


def evaluators(launcher: int) -> list[int]:
    found = subprocess.run(
        ["pgrep", "-P", str(launcher), "-f", "m evaluator"], stdout=subprocess.PIPE, text=True
    )
    if not found.stdout.strip():
        raise SystemExit("there is no evaluator to pause")
    return [int(number) for number in found.stdout.split()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--run", type=Path)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--shares", nargs="+", type=float, default=[0.0, 0.25, 1.0])
    parser.add_argument("--set", action="append", default=[], metavar="SECTION.KEY=VALUE")
    here = sys.argv[1:]
    cut = here.index("--") if "--" in here else len(here)
    options = parser.parse_args(here[:cut])
    options.flags = here[cut + 1 :]
    folder = options.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    rates: dict[float, list[float]] = {share: [] for share in options.shares}
    for number in range(options.rounds):
        for share in options.shares if number % 2 == 0 else reversed(options.shares):
            rates[share].append(measure(folder, share, options))
            print(f"evaluator's share {share:g}: {rates[share][-1]:,.0f} steps/s", flush=True)
    print(f"{os.cpu_count()} cores")
    for share, found in rates.items():
        each = ", ".join(f"{rate:,.0f}" for rate in found)
        print(
            f"| {f'{share:g}' if share else 'paused'} | {statistics.median(found):,.0f} | {each} |"
        )
    (folder / "laptop.json").write_text(
        json.dumps({str(share): found for share, found in rates.items()})
    )


if __name__ == "__main__":
    main()
