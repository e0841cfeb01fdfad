"""`bin/league tournament`: files, bots and members play, a kill costs nothing, and pages escape."""

from __future__ import annotations

import csv
import json
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from cli_league import rows, served
from rival_files import RUNS_RIGHT, predicts, stored
from rival_models import Original, onnx_model
from stable_baselines3 import PPO
from waiting import wait_for

from evaluator.tournament.entries import find_entries
from evaluator.tournament.formats import Format
from evaluator.tournament.playing import Plan, Tournament
from league.agent import rival_bundles
from league.agent.rivals import Limits
from league.cli.main import main
from league.contest.league import League
from league.contest.members import Finder
from league.players import Player, PlayerKind
from league.replay import Playback, load_replay
from league.runs.blobs import BlobFolder

Capture = pytest.CaptureFixture[str]
EVIL = "<script>alert(1)<"
"""A name that a page must escape. It has no slash, as it is also a file's."""


def played(capsys: Capture, *words: str, out: str = "out") -> list[dict[str, str]]:
    capsys.readouterr()
    status = main(["tournament", *words, "--out", out, "--workers", "2", "--films", "1"])
    captured = capsys.readouterr()
    assert status == 0, captured.err
    return rows(captured.out)


def results(out: str = "out") -> dict[str, Any]:
    return json.loads(Path(out, "results.json").read_text())


def refused(capsys: Capture, *words: str, status: int = 2) -> str:
    capsys.readouterr()
    assert main(["tournament", *words]) == status
    return capsys.readouterr().err


@pytest.fixture
def agents(tmp_path: Path) -> Path:
    """Eight entrants in a folder: four good files, of which two have the same name and one is a zip
    file with data, and others that fail.
    """
    folder = tmp_path / "agents"
    folder.mkdir()
    (folder / "anna.py").write_text(RUNS_RIGHT)
    (folder / f"{EVIL}.py").write_text(RUNS_RIGHT)
    (folder / "crash.py").write_text(predicts("raise ValueError('<i>bad</i>')"))
    (folder / "late.py").write_text(
        predicts(
            "self.n = getattr(self, 'n', 0) + 1; time.sleep(0.6 if self.n == 9 else 0)",
            "import time",
        )
    )
    (folder / "anna").mkdir()
    (folder / "anna" / "my_agent.py").write_text(RUNS_RIGHT)
    with zipfile.ZipFile(folder / "packed.zip", "w") as packed:
        packed.writestr("team/my_agent.py", predicts("return [len(open('data.txt').read())] * 10"))
        packed.writestr("team/data.txt", "seen")
    (folder / "notes.txt").write_text("no agent")
    return folder


@pytest.mark.long
def test_files_and_bots_play_without_a_league(agents: Path, capsys: Capture) -> None:
    words = [str(agents), "constant", "based", "--rounds", "1", "--seconds", "1", "--trust"]
    table = {row["entrant"]: row for row in played(capsys, *words)}
    assert set(table) == {
        *("anna", "anna (2)", EVIL, "crash", "late", "packed", "constant", "based")
    }
    found = results()
    assert len(found["matches"]) == 28 * 2
    for match in found["matches"]:
        pair = match["first"], match["second"]
        assert (match["failed"] == "crash") == ("crash" in pair)
        if match["failed"]:
            assert match["outcome"] == float(match["second"] == "crash"), "who fails loses"
            assert "ValueError: <i>bad</i> (crash.py, line 5)" in match["failure"]
        else:
            replay = load_replay(f"out/replays/{match['replay']}.replay")
            assert replay.seed == match["seed"] == 0
            order = pair if match["number"] % 2 == 0 else pair[::-1]
            assert tuple(seat.name for seat in replay.seats) == order, "seats are swapped"
            outcome = match["outcome"] if match["number"] % 2 == 0 else 1 - match["outcome"]
            assert replay.outcome == outcome
            with Playback(replay) as playback:
                assert len(list(playback.frames())) == match["frames"] == 30
        late = match["late_first"], match["late_second"]
        assert all(who == "late" for who, count in zip(pair, late, strict=True) if count >= 3)
    assert int(table["crash"]["crashes"]) == 14
    assert int(table["crash"]["losses"]) == 14
    assert int(table["crash"]["rank"]) == 8
    assert int(table["late"]["late"]) >= 12
    assert sum(int(row["wins"]) - int(row["losses"]) for row in table.values()) == 0
    elos = [row["elo"] for row in found["standings"]]
    assert sum(elos) / 8 == pytest.approx(1500, abs=0.01)
    assert all(row["elo_low"] < row["elo"] < row["elo_high"] for row in found["standings"])
    with open("out/standings.csv", newline="") as file:
        assert [row["entrant"] for row in csv.DictReader(file)] == list(table)
    page = Path("out/index.html").read_text()
    assert "<script" not in page
    assert "<i>bad" not in page
    assert "&lt;script&gt;alert(1)&lt;" in page
    assert "&lt;i&gt;bad" in page
    for link in re.findall(r'href="([^"]+)"', page):
        assert Path("out", link).is_file()
    assert len(re.findall(r'href="replays/', page)) == 21 * 2
    assert not re.search(r'(src|href)="(http|//)', page)


@pytest.mark.long
def test_a_late_decision_costs_its_time_and_not_the_match(agents: Path, capsys: Capture) -> None:
    words = [str(agents / "late.py"), "constant", "--rounds", "1", "--seconds", "90", "--trust"]
    (late,) = [row for row in played(capsys, *words) if row["entrant"] == "late"]
    assert late["crashes"] == "0"
    assert 2 <= int(late["late"]) < 200, "0.1 s of each match, and not all the rest of it"


def test_a_file_that_starts_late_on_a_busy_machine_plays_after_the_others(tmp_path: Path) -> None:
    """The file starts once a match of the others has ended."""
    free = tmp_path / "free"
    wait = f"import os, time\nwhile not os.path.exists({str(free)!r}): time.sleep(0.05)\n"
    (tmp_path / "slow.py").write_text(wait + predicts("pass"))
    free.touch()  # the check of the files is no part of this test
    words = [str(tmp_path / "slow.py"), "constant", "based"]
    finder = Finder(League(), None, None, ["game.match_seconds=1"])
    settings, entries = find_entries(finder, words, BlobFolder(tmp_path), trusted=True)
    free.unlink()
    plan = Plan(form=Format.ROUND_ROBIN, rounds=1, matches=2, seed=0, greedy=False, frame_skip=1)
    limits = Limits(start_seconds=6.0)
    played = Tournament(tmp_path / "out", plan, settings, entries, limits=limits)
    told = list[tuple[int, int, float]]()

    def on_match(*numbers: Any) -> None:
        free.touch()
        told.append(numbers)

    played.play(2, on_match)
    assert [done for done, *_ in told] == [2, 4, 6]
    assert all((left > 0.0) == (done < known) for done, known, left in told)
    assert [match.failure for match in played.matches] == [""] * 6


@pytest.mark.long
def test_models_play(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))  # no file is trusted yet
    models = tmp_path / "models"
    models.mkdir()
    PPO("MlpPolicy", Original(), n_steps=8, batch_size=8).save(models / "dora.zip")
    onnx_model(models / "emil.onnx")
    (models / "emil.onnx.txt").write_text("no agent")
    words = ["models", "models/emil.onnx", "--rounds", "1", "--seconds", "1"]
    assert "read them, then add --trust" in refused(capsys, *words)
    table = played(capsys, *words, "--trust")
    assert {row["entrant"] for row in table} == {"dora", "emil", "emil (2)"}
    assert {(row["kind"], row["crashes"]) for row in table} == {("file", "0")}
    assert len(results()["matches"]) == 3 * 2


def test_members_of_a_league_play(finished: Path, agents: Path, capsys: Capture) -> None:
    words = ["main", "main@1000", "based", str(agents / "anna.py"), "--run-dir", str(finished)]
    table = played(capsys, *words, "--rounds", "1", "--matches", "3", "--trust")
    assert {row["entrant"]: row["kind"] for row in table} == {
        **{"main@2000": "weights", "main@1000": "weights", "based": "bot", "anna": "file"},
    }
    found = results()
    assert (found["match_seconds"], found["frame_skip"]) == (4.0, 4), (
        "files keep the pace of weights"
    )
    assert len(found["matches"]) == 6 * 4, "an odd number of matches is made even"


def test_a_league_s_rival_plays_and_fails_by_its_name(
    finished: Path, capsys: Capture, tmp_path: Path
) -> None:
    run = tmp_path / "runs" / "one"
    shutil.copytree(finished, run)
    digest = stored(BlobFolder(run / "blobs"), predicts("1 / 0"), tmp_path)
    guest = Player(name="guest", game="brawl", kind=PlayerKind.RIVAL, digest=digest)
    with served(run, read_only=False):
        with League(run_dir=run).connect() as client:
            client.add_rival(guest, "anna@desk")
        table = played(capsys, "guest", "based", "guest", "--run-dir", str(run), "--rounds", "1")
    assert [(row["entrant"], row["kind"], row["crashes"]) for row in table] == [
        ("based", "bot", "0"),
        ("guest", "rival", "4"),
        ("guest (2)", "rival", "4"),
    ]
    both = [one for one in results()["matches"] if one["failed"] == "guest, guest (2)"]
    assert [one["outcome"] for one in both] == [0.5, 0.5], "if both fail, nobody wins"


def test_the_user_who_trusts_files_agrees_to_no_address(
    finished: Path, capsys: Capture, tmp_path: Path
) -> None:
    """The bundle would choose a file of this user that goes to the address as a token."""
    run, secret = tmp_path / "runs" / "one", tmp_path / "secret"
    shutil.copytree(finished, run)
    secret.write_text("word")
    bundle = rival_bundles.link("127.0.0.1:9", "brawl", "7", secret, None)
    digest = rival_bundles.bundles(BlobFolder(run / "blobs")).put(bundle)
    guest = Player(name="guest", game="brawl", kind=PlayerKind.RIVAL, digest=digest)
    with served(run, read_only=False):
        with League(run_dir=run).connect() as client:
            client.add_rival(guest, "anna@desk")
        said = refused(capsys, "guest", "based", "--run-dir", str(run), "--trust")
    assert "guest plays at an address" in said
    assert not rival_bundles.is_trusted(digest)


@pytest.mark.long
def test_a_killed_tournament_ends_as_if_it_had_not_been(
    finished: Path, capsys: Capture, tmp_path: Path
) -> None:
    words = ["main", "based", "random", "--run-dir", str(finished)]
    words += ["--rounds", "32", "--seconds", "4"]
    command = [sys.executable, "-m", "league", "tournament", *words, "--workers", "1"]
    log = tmp_path / "killed" / "matches.jsonl"
    process = subprocess.Popen(
        [*command, "--out", "killed"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    wait_for(lambda: log.exists() and log.read_bytes().count(b"\n"))
    process.kill()
    process.wait()
    assert log.read_bytes().count(b"\n") < 6
    with log.open("ab") as file:
        file.write(b'[{"stage": 0')  # as if the kill had cut a line short
    whole, again = played(capsys, *words), played(capsys, *words, out="killed")
    assert len(log.read_text().splitlines()) == 6
    assert again == whole
    assert results("killed") == results()
    assert len(results()["matches"]) == 32 * 2 * 3
    more = [word if word != "32" else "33" for word in words]
    played(capsys, *more, out="killed")
    assert len(results("killed")["matches"]) == 33 * 2 * 3, "rounds may be added"
    assert "another tournament (seed differs)" in refused(
        capsys, *words, "--out", "killed", "--seed", "1"
    )


@pytest.mark.parametrize(("form", "encounters"), [("swiss", 8), ("double-elimination", None)])
def test_other_formats_end_with_a_bracket(form: str, encounters: int, capsys: Capture) -> None:
    words = ["based", "constant", "random", "drunk", "aerial", "--format", form]
    table = played(capsys, *words, "--seconds", "20", "--matches", "2")
    found = results()
    met = [one for one in found["encounters"] if one["second"] is not None]
    assert all(one["result"] in (0, 0.5, 1) for one in met)
    page = Path("out/index.html").read_text()
    assert page.count('class="duel"') == len(found["encounters"])
    points = {row["entrant"]: float(row["points"]) for row in table}
    if form == "swiss":
        assert len(found["encounters"]) == 9
        assert list(points.values()) == sorted(points.values(), reverse=True)
    else:
        assert 8 <= len(met) <= 9
        assert {met[-1]["first"], met[-1]["second"]} == {row["entrant"] for row in table[:2]}


def test_a_drawn_elimination_goes_on_and_then_to_the_better_seed(capsys: Capture) -> None:
    words = ["constant", "constant", "--format", "double-elimination", "--seconds", "1"]
    table = played(capsys, *words, "--matches", "2")
    assert [(row["entrant"], row["draws"]) for row in table] == [
        ("constant", "24"),
        ("constant (2)", "24"),
    ], "five more pairs in each of two encounters"
    assert [one["result"] for one in results()["encounters"]] == [0.5, 0.5]
    assert [row["points"] for row in table] == ["1", "1"]


def test_entrants_are_checked(
    agents: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))  # no file is trusted yet
    anna = str(agents / "anna.py")
    assert "read it, then add --trust" in refused(capsys, anna, "based", "--out", "o")
    assert "1 entrant can't play" in refused(capsys, "based")
    assert "there is no file" in refused(capsys, "nobody.py", "based")
    (agents.parent / "empty").mkdir()
    assert "has no agents" in refused(capsys, "./empty", "based")
    assert "baset" in refused(capsys, "baset", "based", "--game", "brawl")
    assert "is a mixture" in refused(capsys, "based=1,random=2", "based")
    assert "brawl only" in refused(capsys, anna, anna, "--game", "kuhn", "--trust")
    assert "--rounds is for" in refused(
        capsys, "based", "random", "--format", "double-elimination", "--rounds", "2"
    )
    slow = agents / "slow.py"
    slow.write_text(predicts("time.sleep(0.1)", "import time"))
    finder = Finder(League(), None, None, [])
    find_entries(finder, [str(slow), "based"], BlobFolder(tmp_path), trusted=True)
    said = capsys.readouterr().err
    assert re.search(r"slow.py: \d+ ms a decision, so a match of 90 s takes up to \d+ min", said)
    bad = agents / "bad.zip"
    bad.write_bytes(b"PK no zip")
    assert "bad.zip can't be opened" in refused(capsys, str(bad), "based", "--trust")
    with zipfile.ZipFile(bad, "w") as packed:
        packed.writestr("my_agent.py", "")
        packed.writestr("../other.py", "")
    assert "bad.zip can't be opened" in refused(capsys, str(bad), "based", "--trust")
    with zipfile.ZipFile(bad, "w") as packed:
        packed.writestr("agent.py", "")
    assert "has no my_agent.py" in refused(capsys, str(bad), "based", "--trust")


def test_games_of_chips_and_cards_have_tournaments_too(capsys: Capture) -> None:
    table = played(capsys, "caller", "aggressive", "random", "--game", "leduc", "--rounds", "20")
    assert len(table) == 3
    assert len(results()["matches"]) == 120
