"""The evaluator as a process: signals, kills, and what it says when something is wrong."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import grpc
import pytest
from evaluating import wait_for
from evaluator_league import games, matchmaker_of, register_snapshot, write_config

import evaluator.main
from evaluator.reports.table import KEY, Report
from league.games.registry import game_spec
from league.players import Book
from league.rpc.client import MatchmakerClient
from league.v1 import evaluator_pb2 as e
from league.v1.evaluator_pb2_grpc import EvaluatorServiceStub
from matchmaker.main import MatchmakerServer

MATCHES = 16
BOTS = [bot.name for bot in game_spec("brawl").bots]


@pytest.fixture
def client(tmp_path: Path) -> Iterator[MatchmakerClient]:
    with matchmaker_of(tmp_path) as connection:
        yield connection


@pytest.fixture
def started() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts evaluators, and ends those that a failing test leaves."""
    processes: list[subprocess.Popen[str]] = []

    def start(*arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "evaluator", *arguments]
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )
        processes.append(process)
        return process

    yield start
    for process in processes:
        if process.poll() is None:
            process.kill()
        process.communicate()


def ready_port(process: subprocess.Popen[str]) -> int:
    assert process.stdout is not None
    word, port = process.stdout.readline().split()
    assert word == "ready"
    return int(port)


def drained(port: int) -> bool:
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        return (
            EvaluatorServiceStub(channel).GetEvaluatorStatus(e.GetEvaluatorStatusRequest()).drained
        )


def test_killed_and_stopped_it_goes_on_without_double_rows(
    client: MatchmakerClient, tmp_path: Path, started: Callable[..., subprocess.Popen[str]]
) -> None:
    write_config(tmp_path, matches_per_opponent=MATCHES, milestone_matches=2)
    register_snapshot(client, tmp_path, 10)
    arguments = ("--matchmaker", client.address, "--run-dir", str(tmp_path))

    def played() -> int:
        return sum(games(client, Book.EVAL, "main@10").values())

    process = started(*arguments)
    ready_port(process)
    wait_for(lambda: played() >= 4)
    process.kill()
    process.wait()
    at_kill = played()
    assert at_kill < MATCHES * len(BOTS)

    process = started(*arguments)
    ready_port(process)
    wait_for(lambda: played() >= at_kill + 4)
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0
    assert client.status().open_leases == 0
    assert played() < MATCHES * len(BOTS)

    process = started(*arguments)
    port = ready_port(process)
    wait_for(lambda: drained(port))
    process.terminate()
    assert process.wait(60) == 0
    assert games(client, Book.EVAL, "main@10") == dict.fromkeys(BOTS, MATCHES), (
        "nothing missing, nothing twice"
    )
    assert games(client, Book.GREEDY, "main@10") == dict.fromkeys(BOTS, MATCHES // 2)
    rows = Report(tmp_path / "evaluator" / "evaluation_results.csv").rows()
    keys = [tuple(row[name] for name in KEY) for row in rows]
    assert len(set(keys)) == len(keys) == 2 * len(BOTS)
    assert {row["matches"] for row in rows} == {str(MATCHES), str(MATCHES // 2)}


def test_it_waits_for_the_matchmaker_at_its_start_and_later_and_says_so(
    tmp_path: Path, started: Callable[..., subprocess.Popen[str]]
) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    folder = tmp_path / "runs" / "new"
    address = f"127.0.0.1:{port}"
    process = started("--matchmaker", address, "--run-dir", str(folder), "--preset", "smoke")
    assert process.stderr is not None
    waiting = f"INFO waiting for the matchmaker at {address}"
    assert waiting in process.stderr.readline()
    with MatchmakerServer(db=tmp_path / "league.db", port=port):
        ready_port(process)
        assert folder.is_dir()
    lines = iter(process.stderr.readline, "")
    assert any(waiting in line for line in lines)
    time.sleep(3.0)  # longer than a heartbeat's interval: its thread most likely waits too, now
    process.terminate()
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "waiting" not in errors.replace("stopped while waiting", ""), "it says so once"
    for word in ("ERROR", "Traceback", "Exception in thread"):
        assert word not in errors


def test_mistakes_end_in_one_sentence(
    client: MatchmakerClient,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(signal, "signal", lambda number, handler: None)
    write_config(tmp_path)
    config = tmp_path / "mistaken.toml"
    config.write_text("[evaluator]\nmatches_per_oponent = 4\n")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        for words, sentence, code in (
            (("--config", str(config)), "did you mean 'matches_per_opponent'", 2),
            (("--port", str(port)), f"127.0.0.1:{port} can't be listened on", 1),
            (("--run-dir", str(config / "below")), "can't be a run folder", 2),
            (("--preset", "labtop"), "no preset 'labtop': did you mean", 2),
        ):
            arguments = ["--matchmaker", client.address, "--run-dir", str(tmp_path), *words]
            assert evaluator.main.main(arguments) == code
            said = capsys.readouterr().err
            assert sentence in said
            assert (said.count("\n"), said[:11]) == (1, "evaluator: ")
