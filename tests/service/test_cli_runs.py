"""Commands find their league: a running one at its matchmaker, a finished one with a reader."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from cli_league import rows

from league.cli.main import main

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def run_dir(finished: Path) -> Path:
    return finished


def test_watch_tells_what_happened_and_can_be_filtered(served_run: Path, capsys: Capture) -> None:
    assert main(["watch", "--run-dir", str(served_run), "--json"]) == 0
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [event["position"] for event in events] == list(range(1, len(events) + 1))
    kinds = {event["kind"] for event in events}
    kind = events[0]["kind"]
    assert main(["watch", "--run-dir", str(served_run), "--kind", kind]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert {line.split("\t")[2] for line in lines} == {kind}
    assert len(kinds) > 1
    assert main(["watch", "--run-dir", str(served_run), "--kind", "result"]) == 0
    found = re.findall(r"\(match ([0-9a-f]{32})\)$", capsys.readouterr().out, re.MULTILINE)
    assert json.loads((served_run / "ids.json").read_text())["gauntlet"] in found


def test_a_finished_run_is_read_and_its_reader_ended(run_dir: Path, capsys: Capture) -> None:
    before = (run_dir / "league.db").read_bytes()
    assert main(["ratings", "--run-dir", str(run_dir)]) == 0
    assert rows(capsys.readouterr().out)[0]["player"] == "main@2000"
    assert (run_dir / "league.db").read_bytes() == before
    children = subprocess.run(
        ["ps", "--ppid", str(os.getpid()), "-o", "args="], capture_output=True, text=True
    )
    assert "-m matchmaker" not in children.stdout


def test_a_live_run_is_asked_at_its_own_matchmaker(
    served_run: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    # would fail if it were called
    monkeypatch.setattr("league.cli.connection._read_only_matchmaker", None)
    assert main(["ratings", "--run-dir", str(served_run)]) == 0
    assert rows(capsys.readouterr().out)[0]["player"] == "main@2000"


def test_a_stale_announcement_does_not_mislead(run_dir: Path, capsys: Capture) -> None:
    announced = run_dir / "matchmaker.json"
    announced.write_text(json.dumps({"address": "127.0.0.1:1", "pid": os.getpid()}))
    try:
        assert main(["players", "--run-dir", str(run_dir), "--kind", "snapshot"]) == 0
    finally:
        announced.unlink()
    assert len(rows(capsys.readouterr().out)) == 2


def test_the_newest_run_is_meant_when_none_is_named(
    tmp_path: Path, served_run: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").symlink_to(served_run.parent)
    assert main(["players", "--kind", "live"]) == 0
    assert "laptop-1" in capsys.readouterr().err
    assert main(["demo", "main@1000", "based"]) == 0
    said = capsys.readouterr()
    assert said.err.count("laptop-1") == 1
    seconds = re.search(r"^0:(\d\d\.\d)\tmain@1000 against based", said.out, re.MULTILINE)
    assert seconds, said.out
    assert float(seconds[1]) <= 4.0, "the run's own match length"


def test_queries_load_neither_torch_nor_a_compiler(run_dir: Path) -> None:
    code = (
        "import sys; from league.cli.main import main; "
        "status = main(sys.argv[1:]); heavy = {'torch', 'numba', 'matchmaker'} & set(sys.modules); "
        "print(heavy, file=sys.stderr); sys.exit(status or len(heavy))"
    )
    words = ["ratings", "--run-dir", str(run_dir)]
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
