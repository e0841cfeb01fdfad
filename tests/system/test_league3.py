"""A real league of three learners: one exploiter is accepted, one rejected, and the main has
patched it.

Rock-paper-scissors. The main's curriculum plants the weakness: at first it only meets a bot that
always takes scissors, so it always takes rock.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from league.agent.history_policy import answers
from league.agent.snapshot import load_snapshot
from league.games.exact import game_tree, rules_of, table_of
from league.games.registry import make_batched
from league.gates import GateState
from league.ids import SnapshotName
from league.rpc.client import MatchmakerClient
from league.runs.blobs import BlobFolder
from league.stats.gates import Certificate
from matchmaker.api.server import MatchmakerServer
from matchmaker.settings import MatchmakerSettings
from matchmaker.tools.fsck import fsck

MATCHES, N_STEPS = 32, 16
PLANTED = 6_000
"""Steps for which the main only meets who always takes scissors."""
SURE = 0.8
SETTINGS = f"""
extends = "league3-board"

[game]
name = "matrix:rps"

[learner]
steps = 40_000
matches = {MATCHES}
n_steps = {N_STEPS}
batch_size = 128
snapshot_interval = 2_000
ent_coef = 0.1
ent_coef_final = 0.03

[exploiter]
generation_steps = 4_000

[[curriculum.stages]]
name = "planted"
mix = "scissors"
max_steps = {PLANTED}

[[curriculum.stages]]
name = "league"
mix = "league"

[matchmaker.mixes]
scissors = {{ always-scissors = 1.0 }}

[evaluator]
matches_per_snapshot = 60

"""


def events(run: Path, kind: str) -> list[dict[str, object]]:
    words = [
        sys.executable,
        "-m",
        "league",
        "watch",
        "--run-dir",
        str(run),
        "--kind",
        kind,
        "--json",
    ]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def patched_weakness(run: Path) -> str:
    """An exploiter of the planted weakness, which the main has patched after that weakness was no
    more taught: each of its victims is of that time, and takes rock.
    """
    settings = MatchmakerSettings(game="matrix:rps")
    with (
        MatchmakerServer(run / "league.db", settings=settings, read_only=True) as server,
        MatchmakerClient(server.address, wait_seconds=5) as client,
    ):
        gates, digests = client.gates(), {one.name: one.digest for one in client.players()}
    tree = game_tree(rules_of(make_batched("matrix:rps", 1)))

    def takes_rock(name: str) -> bool:
        network, _ = load_snapshot(BlobFolder(run / "blobs"), digests[name])
        table_KA = table_of(tree, lambda asked: answers(network, asked))
        return bool((table_KA[:, 0] >= SURE).all())

    told = []
    for gate in gates:
        victims = [test.victim for test in gate.victims]
        weak = [
            name
            for name in victims
            if SnapshotName.parse(name).step <= PLANTED and takes_rock(name)
        ]
        patched = [patch.snapshot for patch in gate.patches if patch.main == "main"]
        later = [name for name in patched if SnapshotName.parse(name).step > PLANTED]
        told.append((gate.candidate, gate.state.value, victims, weak, later))
        if gate.state is GateState.ACCEPTED and weak == victims and later:
            return gate.candidate
    raise AssertionError(f"nobody exploits the planted weakness and is patched: {told}")


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_planted_weakness_is_found_and_patched(tmp_path: Path) -> None:
    run, config = tmp_path / "run", tmp_path / "planted.toml"
    config.write_text(SETTINGS)
    command = [
        sys.executable,
        "-m",
        "league.cluster.main",
        "--headless",
        "--cpu",
        "--config",
        str(config),
    ]
    log = tmp_path / "run.log"
    with log.open("w") as out:
        league = subprocess.Popen([*command, "--run-dir", str(run)], stdout=out, stderr=out)
        league.wait()
    assert league.returncode == 0, log.read_text()

    listed = [sys.executable, "-m", "league", "exploiters", "--run-dir", str(run)]
    table = subprocess.run(listed, capture_output=True, text=True, check=True).stdout
    head, *lines = [line.split("\t") for line in table.splitlines()]
    rows = [dict(zip(head, line, strict=True)) for line in lines]
    states = {row["candidate"]: row["state"] for row in rows}
    assert "accepted" in states.values(), table
    assert "rejected" in states.values(), table
    patched = {
        row["candidate"]
        for row in rows
        if row["state"] == "accepted" and row["patched_by"] == "main"
    }
    assert patched, table

    candidate = patched_weakness(run)
    assert candidate in patched, table
    file = tmp_path / "certificate.json"
    subprocess.run([*listed, candidate, "--out", str(file)], check=True)
    certificate = Certificate.from_json(file.read_text())
    assert certificate.subject.opponent.startswith("main@")
    assert certificate.estimate.low > 0.5
    assert len(set(certificate.seeds)) == certificate.gate.results

    kinds = ("gate_opened", "gate_decided", "exploiter_patched")
    opened, decided, patches = (events(run, kind) for kind in kinds)
    assert len(opened) >= len(decided) >= 2
    assert patches
    assert fsck(run / "league.db")[0] == []
