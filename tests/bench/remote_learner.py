"""Compares a learner on another machine with a learner in the run's folder: speed, and fetch times.

    OMP_NUM_THREADS=1 python tests/bench/remote_learner.py [--steps 65536] [--rounds 3]

The matchmaker is a separate process, and all traffic uses loopback. Opponents are snapshots with
the agent of preset `laptop` and random weights. First the script measures how long it takes to
fetch a snapshot from the run's folder, over gRPC, and from the cache. Then the two learners train
in turns, each with an empty cache.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import torch

from league.agent.architectures import network_of
from league.agent.config import AgentConfig, AgentSettings
from league.agent.snapshot import SnapshotCard, save_snapshot
from league.games.settings import GameSettings
from league.players import Player, PlayerKind, Role
from league.rpc.blobs import RemoteBlobs
from league.rpc.client import MatchmakerClient
from league.runs.blobs import BlobFolder
from league.settings.base import resolve

SETTINGS = """
[matchmaker.mixes]
league = { snapshots = 1.0 }

[[curriculum.stages]]
name = "league"
mix = "league"
"""


def add_snapshots(client: MatchmakerClient, blobs: BlobFolder, count: int) -> list[str]:
    """Registers snapshots with the agent of preset `laptop`. Returns their digests."""
    sections = resolve("laptop", environment={})
    spec = sections.of(GameSettings).spec()
    config = AgentConfig.of(sections.of(AgentSettings), spec)
    live = Player(name="main", game=spec.name, kind=PlayerKind.LIVE, role=Role.MAIN)
    client.register_players([live])
    digests = []
    for step in range(1, count + 1):
        torch.manual_seed(step)
        card = SnapshotCard(
            agent=config,
            game=spec.name,
            game_version=spec.version,
            frame_skip=sections["game"]["frame_skip"],
            step=step,
        )
        digests.append(save_snapshot(blobs, network_of(config), card))
        player = Player(
            name=f"main@{step}",
            game=spec.name,
            kind=PlayerKind.SNAPSHOT,
            role=Role.MAIN,
            digest=digests[-1],
            step=step,
        )
        client.register_players([player])
    return digests


def time_fetches(client: MatchmakerClient, blobs: BlobFolder, digests: list[str]) -> None:
    size = blobs.path(digests[0]).stat().st_size
    with tempfile.TemporaryDirectory() as cache:
        remote = RemoteBlobs(cache, client)
        for words, source in (("the folder", blobs), ("gRPC", remote), ("the cache", remote)):
            seconds = []
            for digest in digests:
                began = time.perf_counter()
                source.get(digest)
                seconds.append(time.perf_counter() - began)
            print(
                f"{size / 1e3:.0f} kB from {words}: median {1e3 * statistics.median(seconds):.1f} "
                f"ms, most {1e3 * max(seconds):.1f} ms of {len(digests)}",
                flush=True,
            )


def steps_per_second(client: MatchmakerClient, name: str, words: list[str], folder: Path) -> float:
    """Trains a learner to its end. Returns its steps per second after its first update."""
    process = subprocess.Popen(
        [sys.executable, "-m", "learner", "--cpu", "--ranks", "1", "--name", name, *words],
        cwd=folder,
        stderr=(folder / f"{name}.log").open("w"),
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
    )
    seen: list[tuple[float, int]] = []
    while process.poll() is None:
        for worker in client.status().workers:
            if worker.worker == f"learner-{name}" and worker.step > (seen[-1][1] if seen else 0):
                seen.append((worker.last_beat_at, worker.step))
        time.sleep(0.1)
    assert process.wait() == 0, (folder / f"{name}.log").read_text()
    (began, first), (ended, last) = seen[0], seen[-1]
    return (last - first) / (ended - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=65_536, help="of each learner")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--snapshots", type=int, default=40)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        run = Path(place) / "league"
        run.mkdir()
        config = run / "config.toml"
        config.write_text(SETTINGS)
        served = ["--preset", "laptop", "--config", str(config)]
        command = [sys.executable, "-m", "matchmaker", "--db", str(run / "league.db")]
        matchmaker = subprocess.Popen(
            [*command, "--port", "0", *served], stdout=subprocess.PIPE, text=True
        )
        assert matchmaker.stdout is not None
        try:
            address = f"127.0.0.1:{matchmaker.stdout.readline().split()[1]}"
            with MatchmakerClient(address) as client:
                blobs = BlobFolder(run / "blobs")
                time_fetches(client, blobs, add_snapshots(client, blobs, options.snapshots))
                rates: list[tuple[float, float]] = []
                trains = ["--matchmaker", address, "--steps", str(options.steps)]
                for number in range(1, options.rounds + 1):
                    elsewhere = Path(place) / f"elsewhere-{number}"
                    elsewhere.mkdir()
                    shared = [*trains, "--run-dir", str(run), *served]
                    near = steps_per_second(client, f"near-{number}", shared, run)
                    far = steps_per_second(client, f"far-{number}", trains, elsewhere)
                    rates.append((near, far))
                    print(f"round {number}: near {near:,.0f}, far {far:,.0f} steps/s", flush=True)
                ratio = statistics.median(far / near for near, far in rates)
                print(f"far / near: {ratio:.2f}, median of {len(rates)}")
        finally:
            matchmaker.terminate()
            matchmaker.wait()


if __name__ == "__main__":
    main()
