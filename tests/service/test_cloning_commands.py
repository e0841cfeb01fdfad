"""`bin/league record` and `bin/learner clone`, from an empty folder to a member of a league."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from small_league import small_league

import learner.main
from league.agent.snapshot import load_snapshot
from league.cli.main import main as league_main
from league.ids import SnapshotName
from league.players import PlayerKind, Role
from league.replay import load_replay, verify
from league.runs.blobs import BlobFolder
from learner.train.build import initial_values

SETTINGS = '[game]\nname = "brawl"\nframe_skip = 4\nmatch_seconds = 5\nreward = "laptop"\n'
QUICK = ["--set", "cloning.epochs=1", "--cpu"]


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of short matches, with some of them recorded."""
    folder = tmp_path_factory.mktemp("run")
    (folder / "run.json").write_text(json.dumps({"format": 1, "version": "0.1.0"}))
    (folder / "config.toml").write_text('extends = "laptop"\n' + SETTINGS)
    words = ["record", "based", "random", "constant", "--matches", "8", "--run-dir", str(folder)]
    assert league_main([*words, "--out", str(folder / "lessons")]) == 0
    return folder


def clone(run_dir: Path, *words: str, given: Sequence[str] = ()) -> int:
    """`given` goes last and so replaces what is usual."""
    usual = f"clone --replays {run_dir}/lessons --seat based --config {run_dir}/config.toml"
    return learner.main.main([*usual.split(), *words, *QUICK, *given])


@pytest.fixture(scope="module")
def cloned(run_dir: Path) -> Path:
    """The file of a clone of `based`."""
    assert clone(run_dir, "--out", str(run_dir / "clones")) == 0
    (path,) = (run_dir / "clones").glob("*.safetensors")
    return path


def test_what_is_recorded_is_counted_and_kept(
    run_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["record", "based", "random", "based", "--matches", "6", "--run-dir", str(run_dir)]
    assert league_main([*words, "--seed", "5", "--out", str(tmp_path / "deep" / "er")]) == 0
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    counts = ["matches", "wins", "draws", "losses", "score"]
    assert rows[0][:8] == ["player", "opponent", "seat", *counts]
    rows = [rows[0], *(row[:2] + row[3:] for row in rows if row[2] == "both")]
    assert [row[:3] for row in rows[1:]] == [["based", "random", "6"], ["based", "based", "6"]]
    replays = [load_replay(path) for path in sorted((tmp_path / "deep" / "er").glob("*.replay"))]
    assert len(replays) == 12
    met = [replay for replay in replays if {s.name for s in replay.seats} == {"based", "random"}]
    assert sorted((r.seed, r.seats[0].name) for r in met) == [
        (seed, name) for seed in range(5, 8) for name in ("based", "random")
    ]
    outcomes = [r.outcome if r.seats[0].name == "based" else 1.0 - r.outcome for r in met]
    assert [str(outcomes.count(value)) for value in (1.0, 0.5, 0.0)] == rows[1][3:6]
    assert rows[1][3] != rows[1][5], "a seed at which they differ is wanted"
    assert rows[1][6] == f"{100 * sum(outcomes) / 6:.1f}%"
    for replay in replays:
        assert replay.recipe.max_frames == 150
        verify(replay)


def test_settings_are_those_of_the_game_that_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a run of another game, which has no such options."""
    (tmp_path / "run.json").write_text(json.dumps({"format": 1, "version": "0.1.0"}))
    (tmp_path / "config.toml").write_text('extends = "board"\n[game]\nname = "matrix:rps"\n')
    words = ["record", "random", "random", "--matches", "4", "--run-dir", str(tmp_path)]
    assert league_main([*words, "--set", "game.options.rounds=40"]) == 0
    (draws,) = (line.split("\t")[5] for line in capsys.readouterr().out.splitlines()[1:2])
    assert int(draws) < 4
    other = ["record", "based", "constant", "--game", "brawl", "--matches", "2"]
    other += ["--set", "game.options.stage=flat", "--set", "game.match_seconds=1"]
    assert league_main([*other, "--run-dir", str(tmp_path)]) == 0


def test_the_same_again_writes_the_same_files(run_dir: Path, tmp_path: Path) -> None:
    words = f"record based random --matches 4 --run-dir {run_dir} --disturb 0.2".split()
    for _ in range(2):
        assert league_main([*words, "--out", str(tmp_path)]) == 0
    replays = [load_replay(path) for path in tmp_path.glob("*.replay")]
    assert len(replays) == 4
    assert any(replay.disturbed for replay in replays)
    assert league_main([*words[:-2], "--out", str(tmp_path)]) == 0
    assert len(list(tmp_path.glob("*.replay"))) == 8


def test_a_clone_is_made_plays_and_can_be_trained_from(
    run_dir: Path, cloned: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    network, card = load_snapshot(BlobFolder(cloned.parent), cloned.stem)
    assert (card.role, card.cloned_from, card.frame_skip, card.step) == ("clone", "based", 4, 0)
    assert card.metrics["matches"] == 16
    assert card.metrics["marginal_log_loss"] > card.metrics["held_out_log_loss"] > 0
    values, parent = initial_values(str(cloned), BlobFolder(tmp_path), [], "brawl")
    assert values["network"].keys() == network.state_dict().keys()
    assert parent == ""
    words = ["record", str(cloned), "random", "--matches", "2", "--run-dir", str(run_dir)]
    assert league_main(words) == 0
    row = capsys.readouterr().out.splitlines()[1].split("\t")
    assert row[:4] == [cloned.stem[:12], "random", "both", "2"]
    assert clone(run_dir, "--out", str(tmp_path)) == 0
    made = capsys.readouterr().out.strip()
    assert made == str(tmp_path / cloned.name), "the same replays and seed make the same file"


def test_a_clone_becomes_a_member_that_is_met_in_its_category(
    run_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with small_league(tmp_path / "db", mixes={"league": {"clone": 1.0}}) as league:
        member = ["--run-dir", str(run_dir), "--matchmaker", league.server.address]
        assert clone(run_dir, *member) == 0
        (player,) = [p for p in league.client.players() if p.role is Role.CLONE]
        assert player.name == str(SnapshotName("clone-based", 0))
        assert player.kind is PlayerKind.SNAPSHOT
        assert BlobFolder(run_dir / "blobs").has(player.digest)
        assert json.loads(player.card_json)["cloned_from"] == "based"
        assignments, _, _ = league.play(league.open(), 4)
        assert {match.opponent.name for match in assignments} == {player.name}
        assert (
            initial_values(player.name, BlobFolder(run_dir / "blobs"), [player], "brawl")[1]
            == player.name
        )
        capsys.readouterr()
        assert clone(run_dir, *member, "--set", "cloning.seed=1") != 0
        assert "clone-based@0" in capsys.readouterr().err
        assert clone(run_dir, *member, "--name", "other") == 0
        assert {p.name for p in league.client.players() if p.role is Role.CLONE} == {
            "clone-based@0",
            "other@0",
        }


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--seat", "bassed"], "'based'"),
        (["--replays", "{run}/nowhere"], "nowhere"),
        (["--replays", "{run}"], "{run}"),
        (
            ["--set", "game.name=kuhn", "--set", "game.frame_skip=1", "--set", "game.reward=dense"],
            "of brawl",
        ),
        (["--set", "cloning.epochs=0"], "cloning"),
        (["--matchmaker", "127.0.0.1:1"], "--run-dir"),
        (["--name", "x@5"], "x@5"),
        (["--name", "Ä"], "Ä"),
    ],
)
def test_mistakes_in_cloning_are_one_sentence(
    words: list[str],
    message: str,
    run_dir: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    given = [word.format(run=run_dir) for word in words]
    status = clone(run_dir, "--out", str(tmp_path), given=given)
    said = capsys.readouterr().err.splitlines()[-1]
    assert status != 0
    assert said.startswith("learner: ")
    assert message.format(run=run_dir) in said
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["based", "nobody", "--game", "brawl"], "no league.db yet"),
        (["based", "random", "--matches", "0"], "'--matches': 0"),
        (["based", "random", "--seed", "-1"], "'--seed': -1"),
        (["based", "random", "--disturb", "0.7"], "'--disturb': 0.7"),
        (["nash", "random", "--game", "kuhn", "--disturb", "0.1"], "game of choices"),
        (["based", "random", "--out", "{run}/run.json/x"], "can't be a folder"),
        (["based"], "OPPONENT"),
    ],
)
def test_mistakes_in_recording_are_one_sentence(
    words: list[str], message: str, run_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [word.format(run=run_dir) for word in words]
    assert league_main(["record", *given, "--run-dir", str(run_dir)]) != 0
    said = capsys.readouterr().err
    assert message in said
    assert "Traceback" not in said


def test_training_from_a_clone_is_held_near_it(cloned: Path, tmp_path: Path) -> None:
    """The first reference of a run is the agent that it starts from, and stays with an interval
    of 0.
    """
    first = load_snapshot(BlobFolder(cloned.parent), cloned.stem)[0].state_dict()
    with small_league(
        tmp_path / "db",
        snapshots=(),
        mixes={"constant": {"constant": 1.0}, "league": {"self": 1.0}},
    ) as league:
        words = (
            f"--matchmaker {league.server.address} --run-dir {tmp_path}/run --preset smoke --cpu"
        )
        words += f" --from {cloned} --steps 1024 --set regularisation.alpha=0.01"
        words += " --set regularisation.reference_interval=0 --set learner.learning_rate=1e-2"
        words += " --set agent.encoder=none"  # as the clone has it, by default that of laptop
        assert learner.main.main(words.split()) == 0
        (reference,) = league.client.players(kinds=[PlayerKind.REFERENCE])
        (trained,) = league.client.players(kinds=[PlayerKind.SNAPSHOT])
    blobs = BlobFolder(tmp_path / "run" / "blobs")
    held, moved = (load_snapshot(blobs, p.digest)[0].state_dict() for p in (reference, trained))
    assert all(torch.equal(held[name], value) for name, value in first.items())
    assert not all(torch.equal(moved[name], value) for name, value in first.items())
