"""Transcripts of commands: ``tests/golden/SCENE/NAME.txt`` holds commands with all that they print.

Each is run again, command by command, in the folder that the fixture SCENE makes. Lines of stderr
begin with ``!``, and a line ``exit N`` follows where the exit status is not 0. After a change of
what is printed, run with UPDATE_GOLDEN=1 and read the difference.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import structure_league
from admission_league import admission_league
from cli_league import served
from evaluator_league import register_bots_and_live, register_snapshot, write_config
from exploiter_league import exploiter_league, loses_always, wins_always
from game_run import make_game_run

from league.cli.main import main
from league.rpc.client import MatchmakerClient
from league.runs.finding import FORMAT
from matchmaker.api.server import MatchmakerServer

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
FILES = sorted(GOLDEN.glob("*/*.txt"))
assert FILES, f"there are no transcripts in {GOLDEN}"


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    """A folder without a run, but a broken one and one of another format."""
    for folder, file, text in (
        ("broken", "league.db", "this is no database " * 100),
        ("old", "run.json", '{"format": 99, "version": "9.0"}'),
    ):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / file).write_text(text)
    return tmp_path


@pytest.fixture
def laptop(tmp_path: Path, served_run: Path) -> Path:
    """A run of brawl that is shown and not changed."""
    (tmp_path / "runs").symlink_to(served_run.parent)
    return tmp_path


@pytest.fixture
def resting(tmp_path: Path, finished: Path) -> Path:
    """The same run, that no matchmaker serves."""
    (tmp_path / "runs").symlink_to(finished.parent)
    return tmp_path


@pytest.fixture
def running(tmp_path: Path, finished: Path) -> Iterator[Path]:
    """The same run, that continues and can be changed, a second one without matches, and one that
    does not run.
    """
    shutil.copytree(finished, tmp_path / "runs" / "laptop-1")
    second, resting = tmp_path / "runs" / "second", tmp_path / "runs" / "resting"
    second.mkdir()
    resting.mkdir()
    (resting / "league.db").touch()
    with MatchmakerServer(second / "league.db") as server:
        with MatchmakerClient(server.address) as client:
            register_bots_and_live(client)
            register_snapshot(client, second, 3000)
        with served(tmp_path / "runs" / "laptop-1", read_only=False):
            yield tmp_path


@pytest.fixture
def structured(tmp_path: Path) -> Iterator[Path]:
    """A run whose players beat each other in a circle."""
    with (
        MatchmakerServer(tmp_path / "league.db") as server,
        MatchmakerClient(server.address) as client,
    ):
        structure_league.fill(client, unmet=[("weak", "paper")])
        yield tmp_path


@pytest.fixture
def exploited(tmp_path: Path) -> Iterator[Path]:
    """A run with an accepted and a rejected exploiter, and one that learns."""
    with exploiter_league(tmp_path) as league:
        league.to_the_end(league.freeze(league.begin(), 500), wins_always)
        league.to_the_end(league.freeze(league.begin(2, step=500), 900), loses_always)
        league.begin(3, step=900)
        yield tmp_path


@pytest.fixture
def gated(tmp_path: Path) -> Iterator[Path]:
    """A run whose main had a snapshot admitted and one rejected, and has one in its gate."""
    with admission_league(tmp_path) as league:
        league.register(2000)
        league.decide("main@2000", wins_always)
        league.register(3000)
        league.decide("main@3000", loses_always)
        league.register(4000)
        league.play(league.gate("main@4000"), wins_always, 4)
        yield tmp_path


@pytest.fixture
def games(tmp_path: Path) -> Iterator[Path]:
    """A run of kuhn, and the newest, one of brawl."""
    kuhn, brawl = tmp_path / "runs" / "kuhn-1", tmp_path / "runs" / "laptop-1"
    make_game_run(kuhn, ["game.name=kuhn"])
    make_game_run(brawl, ["game.name=brawl"])
    os.utime(kuhn / "run.json", (0, 0))
    with served(kuhn), served(brawl):
        yield tmp_path


@pytest.fixture
def filmed(tmp_path: Path) -> Path:
    """A run with replays: of a snapshot, of two bots, and a damaged one."""
    run = tmp_path / "runs" / "laptop-1"
    (run / "replays").mkdir(parents=True)
    (run / "run.json").write_text(json.dumps({"format": FORMAT, "version": "0.1.0"}))
    write_config(run)
    with MatchmakerServer(run / "league.db") as server:
        with MatchmakerClient(server.address) as client:
            register_bots_and_live(client)
            register_snapshot(client, run, 1000)
        for first, second, name in (
            ("based", "main@1000", "fe01"),
            ("based", "random", "ab12"),
        ):
            kept = ["--run-dir", str(run), "--save", str(run / "replays" / f"{name}.replay")]
            assert main(["demo", first, second, "--seed", "4", *kept]) == 0
    whole = (run / "replays" / "ab12.replay").read_bytes()
    (run / "replays" / "ab34.replay").write_bytes(whole[:-20])
    for time, name in enumerate(("fe01", "ab12", "ab34")):
        os.utime(run / "replays" / f"{name}.replay", (time, time))
    return tmp_path


def masked(line: str) -> str:
    """A line without tokens, digests, times and addresses.

    Nor does it hold what depends on a library or a processor: click's reasons, and more than two
    decimals in a line of CSV.
    """
    line = re.sub(r"(invalid value for '\S+': \S+ is not) .*(?= \(see )", r"\1 REASON", line)
    line = re.sub(r"(no such option: \S+) \(.*(?= \(see )", r"\1", line)
    line = re.sub(r"(?<=,)-?\d+\.\d{3,}(?=,|$)", lambda found: f"{float(found[0]):.2f}", line)
    line = re.sub(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\+00:00)?", "TIME", line)
    line = re.sub(r"^kumite-(\w+)-\S+$", r"kumite-\1-TOKEN", line)
    line = re.sub(r"127\.0\.0\.1:\d+", "ADDRESS", line)
    line = re.sub(r"\b[0-9a-f]{12,64}\b", "DIGEST", line)
    return re.sub(r"\S+@\S+(?= at TIME)", "SOMEBODY", line)


def transcript(command: str, capsys: pytest.CaptureFixture[str]) -> str:
    """The command with what it prints and its exit status."""
    capsys.readouterr()
    status = main(shlex.split(command))
    printed, said = capsys.readouterr()
    passing = ("(waiting for ", "(brawl is compiled ")
    notes = [line for line in said.splitlines() if not line.startswith(passing)]
    lines = [*printed.splitlines(), *(f"! {note}" for note in notes)]
    if status:
        lines.append(f"exit {status}")
    return "\n".join([f"$ league {command}", *map(masked, lines), ""])


@pytest.mark.parametrize(
    "file",
    [pytest.param(file, marks=pytest.mark.long) if file.stem == "demo" else file for file in FILES],
    ids=lambda file: f"{file.parent.name}/{file.stem}",
)
def test_commands_print_what_the_transcript_holds(
    file: Path,
    request: pytest.FixtureRequest,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = request.getfixturevalue(file.parent.name)
    (folder / "binary.txt").write_bytes(b"\xff\xfe\x00")
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(GOLDEN.parent / "contract")  # small_environments
    wanted = file.read_text(encoding="utf-8")
    commands = re.findall(r"^\$ league (.*)$", wanted, re.MULTILINE)
    assert commands, f"{file} holds no command"
    found = "".join(transcript(command, capsys) for command in commands)
    if os.environ.get("UPDATE_GOLDEN"):
        file.write_text(found, encoding="utf-8")
    assert found == wanted
