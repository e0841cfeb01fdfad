"""A lineage's average and the league's Nash mixture as players, in a run of rock-paper-scissors
whose main took rock, then paper, then scissors.
"""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cli_league import rows
from rps_agents import GAME, PAPER, ROCK, SCISSORS, rps_player

from league.cli.main import main
from league.errors import InvalidInput
from league.players import Assignment, MatchResult, Pairing, Player, PlayerKind, SeatResult
from league.rpc.client import MatchmakerClient
from league.runs.finding import FORMAT, live_address
from league.runs.folder import write_config
from league.settings.base import resolve
from matchmaker.api.server import MatchmakerServer
from matchmaker.settings import MatchmakerSettings

Capture = pytest.CaptureFixture[str]
CHOICES = {1000: ROCK, 2000: ROCK, 3000: PAPER, 4000: SCISSORS}


def result(match: Assignment) -> MatchResult:
    one, other = (CHOICES[player.step] for player in match.seats)
    return MatchResult(
        match_id=match.match_id,
        lease_token=match.lease_token,
        outcome={0: 0.5, 1: 1.0, 2: 0.0}[(one - other) % 3],
        frames=1,
        seats=tuple(SeatResult(player=p.name, digest=p.digest) for p in match.seats),
        finished_at=1.0,
    )


@pytest.fixture(scope="module")
def resting(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run's folder. Its average takes paper and scissors; the first snapshot, paper and
    scissors have met in clean matches.
    """
    run_dir = tmp_path_factory.mktemp("runs") / "rps-1"
    run_dir.mkdir()
    (run_dir / "run.json").write_text(json.dumps({"format": FORMAT, "version": "0.1.0"}))
    settings = resolve("board", assignments=[f'game.name="{GAME}"'], environment={})
    write_config(run_dir / "config.toml", settings)
    players = [rps_player(run_dir, "main", *one) for one in CHOICES.items()]
    live = Player(name="main", game=GAME, kind=PlayerKind.LIVE)
    with (
        MatchmakerServer(run_dir / "league.db", 0, MatchmakerSettings(game=GAME)) as server,
        MatchmakerClient(server.address) as client,
    ):
        client.register_players([live, *players])
        evaluator = client.open_incarnation("evaluator-0").number
        names = [f"main@{step}" for step in (1000, 3000, 4000)]
        met = [
            Pairing(player=one, opponent=other, pairs=50, book="eval", seed=1)
            for one, other in itertools.combinations(names, 2)
        ]
        matches = client.acquire_pairings(evaluator, met)
        client.report_results(evaluator, [result(match) for match in matches])
    return run_dir


@pytest.fixture
def run_dir(resting: Path) -> Iterator[Path]:
    settings = MatchmakerSettings(game=GAME)
    with MatchmakerServer(resting / "league.db", 0, settings):
        yield resting


def printed(capsys: Capture, run_dir: Path, *words: str, status: int = 0) -> str:
    capsys.readouterr()
    found = main([*words, "--run-dir", str(run_dir)])
    captured = capsys.readouterr()
    assert found == status, captured.err
    return captured.err if status else captured.out


def evaluated(capsys: Capture, run_dir: Path, *words: str) -> list[dict[str, Any]]:
    return json.loads(printed(capsys, run_dir, "eval", *words, "--json"))["scores"]


def test_a_mixture_is_evaluated(run_dir: Path, capsys: Capture) -> None:
    against = ["--against", "always-rock", "league@nash", "main@average=1,always-rock=3"]
    scores = evaluated(capsys, run_dir, "main@average", *against, "--matches", "48")
    assert {one["player"] for one in scores} == {"main@average"}
    assert [one["opponent"] for one in scores] == [
        *("always-rock", "league@nash", "main@average=0.25,always-rock=0.75")
    ]
    rock, nash, both = scores
    assert (rock["wins"], rock["losses"]) == (24, 24)
    assert rock["win_rate"]["value"] == 0.5
    assert nash["matches"] == nash["wins"] * 3 == nash["draws"] * 3
    assert both["win_rate"]["value"] == pytest.approx(0.75 * 0.5 + 0.25 * 0.25, abs=0.01)


def test_the_best_answer_to_the_last_snapshot_is_none_to_the_average(
    run_dir: Path, capsys: Capture
) -> None:
    words = ["compare", "always-rock", "--elo1", "200"]
    assert printed(capsys, run_dir, *words, "main@4000").count("always-rock is") == 1
    assert "Neither" in printed(capsys, run_dir, *words, "main@average")
    again = ["compare", "main@average", "main@3000=2,main@4000=2"]
    assert "main@average" in printed(capsys, run_dir, *again, status=2)


@pytest.mark.long
def test_a_folder_names_a_player_of_another_run(
    run_dir: Path, tmp_path: Path, capsys: Capture
) -> None:
    other = tmp_path / "rps-2"
    shutil.copytree(run_dir, other)
    rock, paper = f"{other}/main@1000", "main@3000"
    won = printed(capsys, run_dir, "compare", paper, rock, "--elo1", "200")
    assert won.count(f"{paper} is stronger than {rock}") == 1
    scores = printed(capsys, run_dir, "eval", f"{other}/main", "--against", rock, "--matches", "8")
    assert rows(scores)[0]["opponent"] == rock
    printed(capsys, run_dir, "compare", f"{other}/nobody", rock, status=2)
    printed(capsys, run_dir, "compare", f"{tmp_path}/none/main", rock, status=2)
    refused = printed(capsys, run_dir, "exploit", f"{other}/main", status=InvalidInput.exit_code)
    assert f"--run-dir {other} main" in refused


def test_one_member_plays_a_match(run_dir: Path, capsys: Capture) -> None:
    demos = [
        printed(capsys, run_dir, "demo", "main@average", "always-rock", "--seed", str(seed))
        for seed in range(8)
    ]
    drawn = ["main@3000 wins" in shown for shown in demos]
    assert 0 < sum(drawn) < 8
    assert ["main@4000" in shown for shown in demos] == [not paper for paper in drawn]
    words = ["record", "main@average", "always-rock", "--matches", "60"]
    both = rows(printed(capsys, run_dir, *words))[0]
    assert (both["player"], both["matches"], both["draws"]) == ("main@average", "60", "0")
    assert 10 < int(both["wins"]) < 50
    assert int(both["wins"]) % 2 == 0, "both matches of a pair are the same member's"


def test_its_exploitability_is_that_of_its_mixture(run_dir: Path, capsys: Capture) -> None:
    lines = printed(capsys, run_dir, "exploitability", "--json").splitlines()
    found = {row["player"]: row for row in map(json.loads, lines)}
    assert list(found) == [*(f"main@{step}" for step in CHOICES), "main@average"]
    assert found["main@4000"]["nash_conv"] == pytest.approx(2.0, abs=0.01)
    assert found["main@average"]["nash_conv"] == pytest.approx(1.0, abs=0.01)
    line = printed(capsys, run_dir, "exploitability", "league@nash", "--json")
    assert json.loads(line)["nash_conv"] == pytest.approx(0.0, abs=0.1)


@pytest.mark.long
def test_it_is_exploited(run_dir: Path, tmp_path: Path, capsys: Capture) -> None:
    """The best answer to paper and scissors in turn is scissors: it wins half a match."""
    quick = ["learner.matches=64", "learner.n_steps=4", "learner.batch_size=128"]
    words = ["--steps", "8k", "--tries", "1", "--matches", "400", "--json", "--start", "initial"]
    words += ["--out", str(tmp_path), *(word for one in quick for word in ("--set", one))]
    names = ["main@average", "main@4000", "always-rock=1,always-scissors=1"]
    shown = json.loads(printed(capsys, run_dir, "exploit", *names, *words))
    average, last, bots = shown
    assert [one["victim"] for one in shown[:2]] == names[:2]
    assert 0.35 < average["bound"] < average["tries"][0]["value"]["high"] < 0.7
    assert last["bound"] > 0.8
    assert bots["bound"] > 0.3
    (try_,) = average["tries"]
    assert try_["losses"] < 20
    assert min(try_["wins"], try_["draws"]) > 60
    digests = {one.stem for one in (run_dir / "blobs").glob("*.safetensors")}
    assert (last["mixture"], average["victim_digest"]) == ({}, "")
    assert list(average["mixture"].values()) == [0.5, 0.5]
    assert average["mixture"].keys() < digests
    assert bots["mixture"] == {"always-rock": 0.5, "always-scissors": 0.5}


def test_its_exploiter_begins_with_its_newest_member(
    run_dir: Path, tmp_path: Path, capsys: Capture
) -> None:
    words = ["--steps", "1", "--tries", "1", "--matches", "40", "--json", "--start", "victim"]
    words += ["--set", "learner.learning_rate=1e-9", "--set", "learner.learning_rate_final=1e-9"]
    words += ["--placebo", "--out", str(tmp_path)]
    (found,) = json.loads(printed(capsys, run_dir, "exploit", "main@average", *words))
    for one in (found["tries"][0], found["placebo"]):  # it still takes scissors
        assert one["losses"] == 0
        assert one["wins"] + one["draws"] == 40
        assert min(one["wins"], one["draws"]) > 5


def test_an_evaluator_plays_its_members(run_dir: Path, capsys: Capture) -> None:
    words = ["eval", "main@average", "--against", "league@nash", "--queue", "--matches", "12"]
    number = printed(capsys, run_dir, *words, status=2)
    assert "main@3000" in number
    printed(capsys, run_dir, *words[:2], "--against", "main@1000", *words[4:])
    with MatchmakerClient(live_address(run_dir) or "") as one:
        (asked,) = one.evaluations()
    assert (asked.player, asked.opponents) == ("main@3000=0.5,main@4000=0.5", ("main@1000",))


def test_who_takes_one_player_says_so(run_dir: Path, capsys: Capture) -> None:
    for name in ("main@average", "league@nash", "main@3000=1,main@4000=1"):
        assert f"{name!r} is a mixture" in printed(capsys, run_dir, "analyze", name, status=2)
    assert "other" in printed(capsys, run_dir, "eval", "other@average", status=2)
