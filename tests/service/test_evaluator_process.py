"""The evaluator as a process: signals, and what it says when something is wrong."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from evaluator_league import games, register_snapshot, write_config
from ports import free_port
from waiting import wait_for

import evaluator.main
from league.players import Book
from league.rpc.client import MatchmakerClient
from league.runs.blobs import BlobFolder
from league.service.priority import seconds_without_core
from matchmaker.main import MatchmakerServer


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


def test_it_waits_for_the_matchmaker_leaves_malformed_weights_out_and_ends_on_a_signal(
    tmp_path: Path, started: Callable[..., subprocess.Popen[str]]
) -> None:
    """The digests are right: only the content is not."""
    port = free_port()
    folder = tmp_path / "runs" / "new"
    address, config = f"127.0.0.1:{port}", write_config(tmp_path)
    process = started("--matchmaker", address, "--run-dir", str(folder), "--config", str(config))
    assert process.stderr is not None
    assert address in process.stderr.readline()
    with (
        MatchmakerServer(db=tmp_path / "league.db", port=port),
        MatchmakerClient(address, wait_seconds=5) as client,
    ):
        ready_port(process)
        assert folder.is_dir()
        whole = register_snapshot(client, folder, 10)
        blobs = BlobFolder(folder / "blobs")
        content = blobs.get(whole.digest)
        deep = b"[" * 100_000
        bad = {
            20: blobs.put(content[: len(content) // 2]),
            30: blobs.put(len(deep).to_bytes(8, "little") + deep),
            40: "0" * 64,
        }
        os.mkfifo(blobs.path(bad[40]))
        for step, digest in bad.items():
            player = replace(whole, name=f"main@{step}", step=step, digest=digest)
            client.register_players([player])
        wait_for(lambda: sum(games(client, Book.EVAL, "main@10").values()) >= 4)
        register_snapshot(client, folder, 50)
        wait_for(lambda: sum(games(client, Book.EVAL, "main@50").values()) >= 4)
        assert process.poll() is None
    time.sleep(2.5)  # longer than a heartbeat's interval: its thread most likely waits too, now
    process.terminate()
    process.terminate()
    _, errors = process.communicate()
    assert process.returncode == 0
    assert errors.count(address) <= 1, "it says once that it waits"
    for word in ("Traceback", "Exception in thread"):
        assert word not in errors
    told = [line for line in errors.splitlines() if "ERROR" in line]
    assert [sum(f"main@{step} " in line for line in told) for step in bad] == [1, 1, 1]
    assert len(told) == len(bad)


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="asks the scheduler of Linux")
def test_its_matches_let_a_learner_go_first_until_that_is_done(
    client: MatchmakerClient, tmp_path: Path, started: Callable[..., subprocess.Popen[str]]
) -> None:
    learner = client.open_incarnation("learner-main", "main").number
    own, step = os.nice(0), 0
    lower = min(19, own + 7)  # also where the tests themselves run under nice
    write_config(tmp_path, nice=lower)
    flags = ("--matchmaker", client.address, "--run-dir", str(tmp_path))
    process = started(*flags)
    ready_port(process)

    def nice() -> set[int]:
        """Of the evaluator's threads."""
        tasks = Path(f"/proc/{process.pid}/task").iterdir()
        return {os.getpriority(os.PRIO_PROCESS, int(task.name)) - own for task in tasks}

    for activity, expected in (("rollout", {0, lower - own}), ("done", {0})):
        while nice() != expected:  # another thread plays what comes next
            client.heartbeat(learner, step, activity=activity)
            step += 10
            newest = register_snapshot(client, tmp_path, step).name
            wait_for(lambda n=newest, e=expected: nice() == e or games(client, Book.EVAL, n))


@pytest.mark.skipif(sys.platform != "linux", reason="asks the scheduler of Linux")
def test_a_thread_knows_how_long_it_had_no_core() -> None:
    """Next to two busy loops it waits longer than it runs."""
    core = {min(os.sched_getaffinity(0))}

    def busy() -> float:
        """How long it waited, by how long it ran."""
        os.sched_setaffinity(0, core)  # of this thread alone
        while (ran := time.thread_time()) < 1.0 and seconds_without_core() < 0.1:
            pass
        return seconds_without_core() / ran

    loop = ["sh", "-c", "i=0; while [ $i -lt 30000000 ]; do i=$((i+1)); done"]  # ends by itself
    loops = [subprocess.Popen(loop) for _ in range(2)]
    try:
        for process in loops:
            os.sched_setaffinity(process.pid, core)
        with ThreadPoolExecutor(1) as executor:
            assert executor.submit(busy).result() > 1.3
    finally:
        for process in loops:
            process.kill()
            process.wait()


def test_mistakes_end_in_one_sentence(
    client: MatchmakerClient,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(signal, "signal", lambda number, handler: None)
    write_config(tmp_path)
    config = tmp_path / "mistaken.toml"
    config.write_text("[evaluator]\nmatches_per_snapsot = 12\n")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        for words, sentence, code in (
            (("--config", str(config)), "did you mean 'matches_per_snapshot'", 2),
            (
                ("--port", str(port), "--run-dir", str(tmp_path / "new"), "--preset", "smoke"),
                f"127.0.0.1:{port} can't be listened on",
                1,
            ),
            (("--run-dir", str(config / "below")), "can't be a run folder", 2),
            (("--preset", "labtop"), "no preset 'labtop': did you mean", 2),
        ):
            arguments = ["--matchmaker", client.address, "--run-dir", str(tmp_path), *words]
            assert evaluator.main.main(arguments) == code
            said = capsys.readouterr().err
            assert sentence in said
            assert (said.count("\n"), said[:11]) == (1, "evaluator: ")
    assert not (tmp_path / "new").exists()
