"""A learner and an evaluator that share no folder with their league: an address and a token."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from evaluator_league import register_bots_and_live, register_snapshot
from killed_learner import NEVER, live
from remote_league import files
from waiting import wait_for

from league.contest.joining import join
from league.errors import ConfigError, Refused
from league.players import Book, PlayerKind
from league.rpc.client import MatchmakerClient
from league.runs.blobs import BlobFolder
from league.security.credentials import Credentials, of_run
from league.security.roles import AccessRole
from league.security.settings import SecuritySettings
from league.security.tokens import TokenFile
from league.service.settings import OperationsSettings
from league.settings.base import Sections, resolve
from league.views.dashboard.pages import curves
from league.views.dashboard.source import Source
from matchmaker.main import MatchmakerServer
from matchmaker.settings import MatchmakerSettings
from matchmaker.tools.fsck import full_scan

BATCH = (
    *("learner.matches=4", "learner.n_steps=16", "learner.batch_size=64", "learner.n_epochs=1"),
    *("agent.size='tiny'", "agent.encoder='none'", "game.match_seconds=2", "game.frame_skip=4"),
    *("curriculum.stages=[{name='league', mix='league'}]", "matchmaker.matches_per_draw=1"),
    *("matchmaker.mixes={league={snapshots=1.0}}", "evaluator.matches_per_snapshot=6"),
)


def settings() -> Sections:
    return resolve("smoke", None, BATCH, environment={})


@pytest.fixture
def server(tmp_path: Path) -> Iterator[MatchmakerServer]:
    """A league with tokens and a snapshot, in a folder of its own."""
    sections = settings()
    (tmp_path / "league").mkdir()
    with MatchmakerServer(
        tmp_path / "league" / "league.db",
        settings=MatchmakerSettings.of(sections),
        security=SecuritySettings(tokens=True),
        operations=OperationsSettings(log_calls=True),
        sections=sections,
    ) as running:
        yield running


@pytest.fixture
def client(server: MatchmakerServer, tmp_path: Path) -> Iterator[MatchmakerClient]:
    """An operator of the league."""
    shown = of_run(tmp_path / "league", "operator", environment={})
    with MatchmakerClient(server.address, credentials=shown) as operator:
        register_bots_and_live(operator)
        register_snapshot(operator, tmp_path / "league", 1000)
        yield operator


@pytest.fixture
def elsewhere(client: MatchmakerClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Another machine: a working folder and a home of its own, and a worker's token."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(folder))
    token = TokenFile(tmp_path / "league").add(AccessRole.WORKER, "bob")
    monkeypatch.setenv("KUMITE_TOKEN", token)
    return folder


@pytest.fixture
def start(elsewhere: Path) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Starts a worker there, with an address and nothing else of the league."""
    started: list[subprocess.Popen[bytes]] = []

    def begin(*words: str) -> subprocess.Popen[bytes]:
        with (elsewhere / f"{words[0]}.log").open("wb") as log:
            started.append(subprocess.Popen([sys.executable, "-m", *words], stdout=log, stderr=log))
        return started[-1]

    yield begin
    for process in started:
        if process.poll() is None:
            process.kill()
        process.wait()


def of_bob(caplog: pytest.LogCaptureFixture, method: str) -> int:
    """How many calls of a method the holder of the token has made."""
    calls = [vars(record) for record in caplog.records if hasattr(record, "method")]
    return sum(
        (call["method"], call["token"], call["code"]) == (method, "bob", "OK") for call in calls
    )


@pytest.mark.long
def test_a_learner_and_an_evaluator_join_with_an_address_and_a_token(
    server: MatchmakerServer,
    client: MatchmakerClient,
    elsewhere: Path,
    start: Callable[..., subprocess.Popen[bytes]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    words = ("--matchmaker", server.address)
    learner = start("learner", *words, "--cpu", "--steps", "128")
    assert learner.wait() == 0, (elsewhere / "learner.log").read_text()
    (made,) = [one for one in client.players(kinds=[PlayerKind.SNAPSHOT]) if one.step == 128]
    assert made.name == "main-2@128", "main is another learner's"
    assert of_bob(caplog, "GetBlob") >= 1, "the weights of main@1000 came over the wire"
    assert of_bob(caplog, "PutBlob") >= 1
    theirs = BlobFolder(elsewhere.parent / "league" / "blobs")
    assert theirs.is_whole(made.digest)
    (joined,) = (elsewhere / "runs").iterdir()
    assert (joined / "learner-main-2" / "monitor.csv").is_file()
    assert not (elsewhere.parent / "league" / "learner-main-2").exists()
    played = {cell.column for cell in client.payoff(Book.TRAIN) if cell.row == "main-2"}
    assert "main@1000" in played

    with contextlib.closing(Source(client, run_dir=elsewhere.parent / "league")) as source:
        assert "curves of main-2 are on another machine" in str(next(iter(curves.show(source, {}))))

    (joined / "blobs").rename(elsewhere / "gone")  # the evaluator fetches its own
    before = of_bob(caplog, "GetBlob")
    evaluator = start("evaluator", *words, "--name", "evaluator-bob")
    wait_for(lambda: {"main-2@128", "main@1000"} <= {one.player.name for one in client.ratings()})
    evaluator.terminate()
    assert evaluator.wait() == 0, (elsewhere / "evaluator.log").read_text()
    assert of_bob(caplog, "GetBlob") >= before + 2
    assert list((joined / "replays").iterdir())


@pytest.mark.long
def test_a_kill_in_the_middle_of_an_upload_loses_nothing(
    server: MatchmakerServer, client: MatchmakerClient, elsewhere: Path
) -> None:
    flags = ["--matchmaker", server.address, "--cpu", "--steps", "128", "--name", "bobs"]
    league, log = elsewhere.parent / "league", elsewhere / "learner.log"
    before = files(league)
    assert live(flags, "in an upload", 1, log) == -9, log.read_text()
    assert [one.step for one in client.players(kinds=[PlayerKind.SNAPSHOT])] == [1000]
    wait_for(lambda: files(league) == before)
    assert live(flags, *NEVER, log) == 0, log.read_text()
    (made,) = [one for one in client.players(kinds=[PlayerKind.SNAPSHOT]) if one.step == 128]
    assert (made.name, BlobFolder(league / "blobs").is_whole(made.digest)) == ("bobs@128", True)
    assert client.status().open_leases == 0
    with server.store.read() as reader:
        assert list(full_scan(reader)) == []


# --- what a machine takes from a league


def sent(folder: Path, assignments: Sequence[str] = (), **changes: Any) -> Path:
    """The folder of a machine that joins a league whose settings have these changes, with flags of
    its own.
    """
    sections = {name: {**section} for name, section in settings().items()}
    for name, value in changes.items():
        section, _, key = name.partition("__")
        sections.setdefault(section, {})[key] = value
    folder.mkdir(exist_ok=True)
    with MatchmakerServer(folder / "league.db", sections=sections) as server:
        return join(server.address, Credentials(), assignments, wait_seconds=5)


def test_settings_of_this_machine_stay_its_own(tmp_path: Path) -> None:
    changes = {
        "learner__wandb": "online",
        "evaluator__device": "cuda:7",
        "security__host": "0.0.0.0",
    }
    folder = sent(tmp_path / "league", operations__metrics_port=9999, **changes)
    assert json.loads((folder / "joined.json").read_text())["address"].startswith("127.0.0.1:")
    assert folder.stat().st_mode & 0o077 == 0
    here, theirs = resolve(file=folder / "config.toml", environment={}), settings()
    assert here["learner"] == theirs["learner"]
    assert (here["learner"]["wandb"], here["evaluator"]["device"]) == ("off", "cpu")
    assert here["security"]["host"] == "127.0.0.1"
    assert here["operations"]["metrics_port"] == 0
    assert here["matchmaker"]["mixes"] == {"league": {"snapshots": 1.0}}


@pytest.mark.parametrize("name", ["python:evil:Game", "pettingzoo:evil", "ai2:/tmp", 7, ["brawl"]])
def test_a_league_does_not_choose_the_code_that_runs_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: object
) -> None:
    (tmp_path / "evil.py").write_text("open('ran', 'w')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ConfigError, match="runs code of this machine"):
        sent(tmp_path / "league", game__name=name)
    assert not (tmp_path / "ran").exists()
    assert not (tmp_path / "runs").exists()


def test_a_game_that_the_user_names_too_is_played(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("0,1\n-1,0\n")
    name = f"matrix:{tmp_path / 'mine.csv'}"
    plain = {"game__reward": "dense", "game__frame_skip": 1, "game__match_seconds": 0.0}
    with pytest.raises(ConfigError, match="name the game here too"):
        sent(tmp_path / "league", ["game.name=brawl"], game__name=name, **plain)
    folder = sent(tmp_path / "league", [f"game.name={name}"], game__name=name, **plain)
    assert resolve(file=folder / "config.toml", environment={})["game"]["name"] == name


def test_settings_that_mean_nothing_here_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"127\.0\.0\.1.*tempo"):
        sent(tmp_path / "league", learner__tempo=3)
    with pytest.raises(ConfigError, match=r"learner\] steps"):
        sent(tmp_path / "league", learner__steps="\x1b[2J")


def test_a_matchmaker_without_settings_says_so(tmp_path: Path) -> None:
    with (
        MatchmakerServer(tmp_path / "league.db") as server,
        pytest.raises(Refused, match="without the settings"),
    ):
        join(server.address, Credentials(), wait_seconds=5)
