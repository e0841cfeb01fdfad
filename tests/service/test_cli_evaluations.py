"""``league eval --queue`` asks the run's evaluators, and ``league evaluations`` shows what for."""

from __future__ import annotations

import hashlib
import json
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cli_league import rows, served
from evaluator_league import matchmaker_of, register_bots_and_live, register_snapshot
from small_league import played

from league.cli.main import main
from league.errors import DataCorrupt
from league.evaluations import Evaluation, EvaluationState, targets
from league.games.registry import game_spec
from league.players import Book, Pairing, Player, PlayerKind
from league.rpc.client import MatchmakerClient
from league.runs.finding import live_address
from matchmaker.api.server import MatchmakerServer

Said = tuple[int, str, str]
Call = Callable[..., Said]


@pytest.fixture
def run(tmp_path: Path, finished: Path) -> Iterator[Path]:
    """A run that continues."""
    path = tmp_path / "runs" / "laptop-1"
    shutil.copytree(finished, path)
    with served(path, read_only=False):
        yield path


@pytest.fixture
def client(run: Path) -> Iterator[MatchmakerClient]:
    with MatchmakerClient(live_address(run) or "", wait_seconds=5) as client:
        yield client


@pytest.fixture
def call(run: Path, capsys: pytest.CaptureFixture[str]) -> Call:
    """Runs a command for the run: its exit status and what it printed and said."""

    def called(*words: str) -> Said:
        capsys.readouterr()
        return main([*words, "--run-dir", str(run)]), *capsys.readouterr()

    return called


def newest(client: MatchmakerClient) -> Evaluation:
    return client.evaluations()[-1]


def play(client: MatchmakerClient, asked: Evaluation) -> None:
    number = client.open_incarnation("evaluator-9").number
    wanted = [
        Pairing(
            player=one.player,
            opponent=one.opponent,
            pairs=one.until // 2,
            book=one.book,
            seed=0,
            until=one.until,
        )
        for one in targets(asked)
    ]
    client.report_results(number, map(played, client.acquire_pairings(number, wanted)))


def test_a_queue_that_nobody_plays_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with matchmaker_of(tmp_path) as client:
        words = ["eval", "based", "--against", "constant", "--queue", "--address", client.address]
        client.open_incarnation("learner-main", player="main")
        assert main([*words, "--matches", "20"]) == 0
        assert "bin/evaluator" in capsys.readouterr().err
        client.open_incarnation("evaluator-0")
        assert main([*words, "--matches", "40"]) == 0
        assert "bin/evaluator" not in capsys.readouterr().err


def test_it_prints_the_number_of_the_evaluation(call: Call, client: MatchmakerClient) -> None:
    words = ("main", "--against", "main@1000", "based=3,random=1", "--matches", "39")
    status, out, err = call("eval", *words, "--queue", "--greedy")
    asked = newest(client)
    assert (status, out) == (0, f"{asked.number}\n")
    assert err.startswith(f"evaluation {asked.number} of main@2000 ")
    assert (asked.player, asked.opponents) == ("main@2000", ("main@1000", "based=0.75,random=0.25"))
    assert (asked.matches, asked.book) == (40, Book.GREEDY), "whole pairs"
    assert "@" in asked.by


def test_every_other_bot_is_met_when_none_is_named(call: Call, client: MatchmakerClient) -> None:
    assert call("eval", "based", "--queue")[0] == 0
    bots = {bot.name for bot in game_spec("brawl").bots}
    assert {*newest(client).opponents} == bots - {"based"}


def test_they_are_listed_and_shown(call: Call, client: MatchmakerClient) -> None:
    asked = client.request_evaluation("main", ["based", "constant=1,random=3"], 8, "user@host")
    played_before = client.report(asked.number).matches_done
    _, out, _ = call("evaluations", "--open")
    (row,) = [row for row in rows(out) if row["number"] == str(asked.number)]
    assert (row["state"], row["player"], row["by"]) == ("open", "main@2000", "user@host")
    assert row["against"] == "based, constant=0.25,random=0.75"
    assert (row["matches"], row["wanted"]) == (str(played_before), "16")
    play(client, asked)
    assert str(asked.number) not in [
        row["number"] for row in rows(call("evaluations", "--open")[1])
    ]
    assert str(asked.number) in [row["number"] for row in rows(call("evaluations")[1])]
    status, out, _ = call("evaluations", str(asked.number))
    assert status == 0
    assert "state\tdone\n" in out
    assert "played\t16 of 16\n" in out
    scores = rows(out[out.index("opponent\t") :])
    assert [row["opponent"] for row in scores] == ["based", "constant=0.25,random=0.75"]
    (cell,) = client.payoff(rows=["main@2000"], columns=["based"])
    assert [int(scores[0][name]) for name in ("wins", "draws", "losses")] == [
        cell.wins,
        cell.draws,
        cell.losses,
    ]


def test_matches_of_other_requests_are_said_to_count(
    call: Call, client: MatchmakerClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    play(client, client.request_evaluation("main", ["based"], 40, "user@host"))
    status, number, err = call("eval", "main", "--against", "based", "--matches", "4", "--queue")
    assert (status, "is done: 4 of 4 matches" in err) == (0, True)
    monkeypatch.setattr("league.console.output.is_terminal", lambda: True)
    assert "More than wanted" in call("evaluations", number.strip())[1]


def test_one_is_cancelled(call: Call, client: MatchmakerClient) -> None:
    asked = client.request_evaluation("main", ["based"], 80, "user@host")
    assert call("evaluations", "--cancel", str(asked.number))[0] == 0
    assert newest(client).state is EvaluationState.CANCELLED
    status, out, _ = call("evaluations", str(asked.number))
    assert status == 1
    assert "cancelled by\t" in out
    assert call("evaluations", "--cancel", "7")[0] == 2
    assert call("evaluations", "7")[0] == 2


@pytest.mark.parametrize("as_json", [False, True])
def test_a_command_that_waits_shows_the_report(
    call: Call, client: MatchmakerClient, as_json: bool
) -> None:
    before = len(client.evaluations())

    def work() -> None:
        for report in client.watch_reports():
            if len(client.evaluations()) > before and report.evaluation == newest(client):
                play(client, report.evaluation)
                return

    thread = threading.Thread(target=work)
    thread.start()
    words = ("eval", "main", "--against", "based", "--matches", "40", "--queue", "--wait")
    status, out, _ = call(*words, *(["--json"] if as_json else []))
    thread.join()
    assert status == 0
    if as_json:
        found = json.loads(out)
        assert (found["evaluation"]["state"], found["evaluation"]["book"]) == ("done", "eval")
        assert found["scores"][0]["matches"] == 40
    else:
        assert "played\t40 of 40\n" in out
    number = str(newest(client).number)
    assert call("evaluations", number, "--watch")[1] == call("evaluations", number)[1]


def test_a_file_of_the_leagues_own_weights_is_its_player(
    call: Call, client: MatchmakerClient, run: Path
) -> None:
    (player,) = [one for one in client.players() if one.name == "main@1000"]
    file = run / "blobs" / f"{player.digest}.safetensors"
    assert call("eval", str(file), "--against", "based", "--queue")[0] == 0
    assert newest(client).player == "main@1000"


@pytest.fixture
def other(tmp_path: Path) -> Player:
    """Weights of another run."""
    folder = tmp_path / "other"
    folder.mkdir()
    with (
        MatchmakerServer(folder / "league.db") as server,
        MatchmakerClient(server.address) as client,
    ):
        register_bots_and_live(client)
        return register_snapshot(client, folder, 3000)


def test_a_file_of_other_weights_becomes_a_player_that_no_learner_meets(
    call: Call, client: MatchmakerClient, run: Path, other: Player, tmp_path: Path
) -> None:
    file = tmp_path / "other" / "blobs" / f"{other.digest}.safetensors"
    name = f"file:{other.digest[:12]}@3000"
    for _ in range(2):
        words = (f"{file}=1,main=1", "--against", "based", "--matches", "4", "--queue")
        assert call("eval", *words)[0] == 0
        assert newest(client).player == f"{name}=0.5,main@2000=0.5"
    (made,) = [one for one in client.players() if one.name == name]
    assert (made.kind, made.digest) == (PlayerKind.SNAPSHOT, other.digest)
    assert (made.held_out, made.milestone) == (True, True)
    assert (run / "blobs" / file.name).read_bytes() == file.read_bytes()
    play(client, newest(client))
    assert newest(client).state is EvaluationState.DONE


def test_weights_are_uploaded_to_a_league_at_an_address(
    client: MatchmakerClient,
    run: Path,
    other: Player,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file, before = tmp_path / "other" / "blobs" / f"{other.digest}.safetensors", client.players()
    monkeypatch.chdir(tmp_path / "other")  # the newest run there is not the league
    flags = ["--against", "main", "--queue", "--address", client.address]
    content = file.read_bytes()
    file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    short = content[:-4]  # its name is its digest, but a weight is missing
    cut = tmp_path / f"{hashlib.sha256(short).hexdigest()}.safetensors"
    cut.write_bytes(short)
    for wrong, words in ((file, "damaged"), (cut, "don't fit its card")):
        assert main(["eval", str(wrong), *flags]) == DataCorrupt.exit_code
        (line,) = capsys.readouterr().err.splitlines()
        assert words in line
    assert client.players() == before
    file.write_bytes(content)
    assert main(["eval", str(file), *flags]) == 0, capsys.readouterr().err
    asked = newest(client)
    assert (asked.player, asked.opponents) == (f"file:{other.digest[:12]}@3000", ("main@2000",))
    assert (run / "blobs" / file.name).read_bytes() == content


def test_weights_need_their_own_name(
    call: Call, client: MatchmakerClient, other: Player, tmp_path: Path
) -> None:
    file = tmp_path / "other" / "blobs" / f"{other.digest}.safetensors"
    before = client.players()
    renamed = tmp_path / "best.safetensors"
    shutil.copy(file, renamed)
    for wrong in (renamed, tmp_path / "none.safetensors"):
        status, _, err = call("eval", str(wrong), "--queue")
        assert (status, str(wrong) in err) == (2, True)
    assert client.players() == before


def test_weights_of_another_game_are_refused(
    call: Call, client: MatchmakerClient, tmp_path: Path
) -> None:
    import torch

    from league.agent.config import AgentConfig, AgentSettings
    from league.agent.network import AgentNetwork
    from league.agent.snapshot import SnapshotCard, save_snapshot
    from league.runs.blobs import BlobFolder

    spec = game_spec("kuhn")
    config = AgentConfig.of(AgentSettings(size="tiny"), spec)
    torch.manual_seed(0)
    card = SnapshotCard(agent=config, game=spec.name, game_version=spec.version)
    digest = save_snapshot(BlobFolder(tmp_path), AgentNetwork(config), card)
    before = client.players()
    status, _, err = call("eval", str(tmp_path / f"{digest}.safetensors"), "--queue")
    assert status in (2, 4)
    assert "kuhn" in err
    assert client.players() == before


def test_wrong_flags_exit_with_2(call: Call, client: MatchmakerClient) -> None:
    before = client.reports()
    number = str(newest(client).number)
    for words in (
        ("eval", "main", "--wait"),
        ("eval", "main", "--queue", "--report", "there"),
        ("eval", "nobody", "--queue"),
        ("evaluations", number, "--cancel", number),
        ("evaluations", "--cancel", number, "--watch"),
    ):
        status, _, err = call(*words)
        assert (status, err.count("\n")) == (2, 1), (words, err)
    assert client.reports() == before


def test_a_run_that_rests_shows_its_evaluations_and_takes_none(
    finished: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluations", "--run-dir", str(finished)]) == 0
    for words in (("eval", "main", "--queue"), ("evaluations", "--cancel", "1")):
        assert main([*words, "--run-dir", str(finished)]) == 1
        assert str(finished) in capsys.readouterr().err
