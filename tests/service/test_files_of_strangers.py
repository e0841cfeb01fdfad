"""Files that anybody may have written (replays, weights) choose nothing that runs or is opened."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from game_run import SNAPSHOT, make_game_run

from league.agent.export import onnx_graph
from league.agent.snapshot import read_card
from league.cli.main import main
from league.errors import LeagueError
from league.games import registry
from league.games.settings import GameSettings
from league.players import Player, PlayerKind
from league.replay import Recipe, Replay, load_replay, save_replay, verify
from league.rpc.client import MatchmakerClient
from league.runs.blobs import BlobFolder
from learner.cloning.demonstrations import read_replays
from matchmaker.main import MatchmakerServer
from matchmaker.settings import MatchmakerSettings

MODULE = """
from pathlib import Path
Path({mark!r}).touch()
from league.games.poker import make_kuhn

def make(num_matches, *, max_frames=None, hands=1):
    return make_kuhn(num_matches, max_frames=max_frames)
"""
OWN = "python:their_game:make"


@pytest.fixture(scope="module")
def kuhn(tmp_path_factory: pytest.TempPathFactory) -> Replay:
    file = tmp_path_factory.mktemp("kuhn") / "kuhn.replay"
    assert main(["demo", "nash", "caller", "--game", "kuhn", "--save", str(file)]) == 0
    return load_replay(file)


@pytest.fixture
def mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A file that is there once a stranger's module or command has run."""
    found = tmp_path / "harmed"
    folder = tmp_path / "theirs"
    folder.mkdir()
    (folder / "their_game.py").write_text(MODULE.format(mark=str(found)))
    (folder / "table.csv").write_text("1,-1\n-1,1\n")
    (folder / "environment").mkdir()
    for name in ("environment", "agent"):
        (folder / "environment" / f"{name}.py").write_text("")
    python = folder / "python"
    python.write_text(f"#!/bin/sh\ntouch {found}\n")
    python.chmod(0o755)
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    yield found
    sys.modules.pop("their_game", None)
    registry._made_spec.cache_clear()


def hostile(mark: Path, kind: str) -> Recipe:
    options: dict[str, dict[str, object]] = {
        "pettingzoo:os:system": {"command": f"touch {mark}"},
        "pettingzoo:their_game": {},
        OWN: {},
        "ai2:.": {"python": "./python"},
        "matrix:table.csv": {},
        "showdown:gen9ou": {"teams": "."},
        "brawl": {"threads": "2"},
        "kuhn": {"argument": "x"},
    }
    return Recipe(name=kind, version="1", options=options[kind])


KINDS = (
    *("pettingzoo:os:system", "pettingzoo:their_game", OWN, "ai2:.", "matrix:table.csv"),
    *("showdown:gen9ou", "brawl", "kuhn"),
)
COMMANDS = (["replay"], ["render", "--out", "film.json"], ["attention", "--out", "seen.png"],
            ["showdown", "replay"])  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_a_replay_chooses_nothing_that_runs(
    kind: str, kuhn: Replay, mark: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = Path("match.replay")
    save_replay(file, replace(kuhn, recipe=hostile(mark, kind)))
    commands = COMMANDS if kind == OWN else COMMANDS[:1]
    for *words, end in [[*command, ""] for command in commands]:
        assert main([*words, str(file)]) == 2, end
        said = capsys.readouterr().err
        assert kind in said
        assert "--run-dir" in said
    with pytest.raises(LeagueError, match=kind):
        verify(load_replay(file))
    assert not mark.exists()
    assert "their_game" not in sys.modules


def test_a_match_of_ones_own_game_is_shown(
    kuhn: Replay, mark: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["game.options.hands=2"]
    make_game_run(tmp_path / "run", [f"game.name={OWN}", *options])
    flags = ["--game", OWN, "--set", *options]
    words = ["demo", "nash", "caller", *flags, "--save", "own.replay"]
    assert main(words) == 0
    shown = capsys.readouterr().out
    assert main(["replay", "own.replay"]) == 2
    assert main(["replay", "own.replay", "--game", OWN]) == 2, "with other options"
    capsys.readouterr()
    for named in (flags, ["--run-dir", str(tmp_path / "run")]):
        assert main(["replay", "own.replay", *named]) == 0, capsys.readouterr().err
        assert capsys.readouterr().out == shown


def test_replays_to_clone_from_have_the_options_of_the_run(kuhn: Replay, tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_text("1,-1\n-1,1\n")
    game = GameSettings(name=f"matrix:{table}")
    for rounds in (1, 2):
        recipe = Recipe(name=game.name, version=game.spec().version, options={"rounds": rounds})
        save_replay(tmp_path / "x.replay", replace(kuhn, recipe=recipe))
        with pytest.raises(LeagueError, match=r"x\.replay"):
            read_replays(tmp_path, game)


def test_weights_choose_nothing_that_runs(
    mark: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = tmp_path / "run"
    digest = make_game_run(run, [f"game.name={OWN}"])
    assert read_card(BlobFolder(run / "blobs"), digest).game == OWN
    mark.unlink()
    sys.modules.pop("their_game")
    file = str(run / "blobs" / f"{digest}.safetensors")
    assert main(["export", file, "--format", "folder", "--out", str(tmp_path / "out")]) == 2
    assert OWN in capsys.readouterr().err
    assert not mark.exists()
    monkeypatch.setattr(onnx_graph, "onnx_graph", lambda network, card: b"it takes seconds")
    named = ["--run-dir", str(run), "--format", "folder", "--out", str(tmp_path / "out")]
    assert main(["export", SNAPSHOT, *named]) == 0, capsys.readouterr().err


def status_of(address: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(address, timeout=60) as answer:
            return answer.status, answer.read().decode(errors="replace")
    except urllib.error.HTTPError as error:
        body = error.read().decode(errors="replace")
        return error.code, f"{error.headers['content-type']}: {body}"


def test_the_dashboard_names_a_replay_that_it_does_not_play(
    kuhn: Replay, mark: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    make_game_run(run, ["game.name=kuhn"])
    kept = run / "replays"
    kept.mkdir()
    save_replay(kept / "good.replay", kuhn)
    save_replay(kept / "hostile.replay", replace(kuhn, recipe=hostile(mark, KINDS[0])))
    save_replay(kept / "forged.replay", replace(kuhn, final="0" * 32))
    (kept / "cut.replay").write_bytes((kept / "good.replay").read_bytes()[:-1])
    command = [sys.executable, "-m", "league", "dashboard", "--run-dir", str(run)]
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=own
    ) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        said = {name: status_of(f"{address}/film/{name}") for name in ("good", "cut", "forged")}
        said["hostile"] = status_of(f"{address}/film/hostile")
        pages = {name: status_of(f"{address}/match?match={name}") for name in said}
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
    assert {name: code for name, (code, _) in said.items()} == {
        "good": 200, "cut": 422, "forged": 422, "hostile": 422
    }  # fmt: skip
    assert "pettingzoo:os:system" in said["hostile"][1]
    assert said["hostile"][1].startswith("text/plain")
    assert {code for code, _ in pages.values()} == {200}
    assert "Traceback" not in errors
    assert not mark.exists()


def test_a_strangers_league_chooses_nothing_that_is_imported(mark: Path, tmp_path: Path) -> None:
    settings = MatchmakerSettings(game=OWN)
    with (
        MatchmakerServer(tmp_path / "league.db", 0, settings) as server,
        MatchmakerClient(server.address) as client,
    ):
        client.register_players([Player(name="random", game=OWN, kind=PlayerKind.BOT)])
        assert main(["report", "random", "--address", server.address]) == 2  # it has no matches
    assert "their_game" not in sys.modules
    assert not mark.exists()
