"""`bin/league clone`: a rival becomes a snapshot of the league, with an honest measure of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_league import make_run, rows, served
from rival_files import RUNS_RIGHT, predicts

from league.agent.snapshot import load_snapshot
from league.cli.main import main
from league.metrics import Measured
from league.runs.blobs import BlobFolder
from learner.cloning.likeness import ROWS, Likeness

BREAKS = predicts("calls.append(0); 1 / (len(calls) < 9)", "calls = []")
"""Plays when it is added, and fails in every match."""
QUICK = ("--minutes", "0", "--against", "constant", "--set", "cloning.epochs=1")
SIZES = ("--set", "agent.size=tiny", "--set", "game.frame_skip=4")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A running league of short matches, with two rivals."""
    folder = tmp_path_factory.mktemp("league")
    make_run(folder / "run")
    with served(folder / "run", read_only=False) as run:
        for name, text in (("other", RUNS_RIGHT), ("broken", BREAKS)):
            (folder / f"{name}.py").write_text(text)
            words = ["add", str(folder / f"{name}.py"), "--as", name, "--trust"]
            assert main([*words, "--run-dir", str(run)]) == 0
        yield run


@pytest.mark.long
def test_a_rival_is_cloned_measured_and_joins_the_league(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    at = ["--run-dir", str(run)]
    assert main(["clone", "other", *QUICK, *SIZES, *at]) == 0
    out, said = capsys.readouterr()
    table = rows("".join(f"{line}\n" for line in out.splitlines() if "\t" in line))
    assert [row["opponent"] for row in table] == ["constant", "other"]
    assert [row["matches"] for row in table] == [str(ROWS)] * 2
    assert "clone-other@0 makes " in out
    assert "clone-other@0 is in" in said
    assert main(["players", *at]) == 0
    listed = rows(capsys.readouterr().out)
    (member,) = [row for row in listed if row["player"] == "clone-other@0"]
    (path,) = (run / "blobs").glob(f"{member['digest']}*.safetensors")
    card = load_snapshot(BlobFolder(run / "blobs"), path.stem)[1]
    assert (card.role, card.cloned_from, card.frame_skip) == ("clone", "other", 4)
    assert card.metrics["temperature"] == 0.3
    assert main(["demo", "clone-other@0", "other", *at]) == 0
    assert main(["clone", "other", *QUICK, *SIZES, *at]) != 0
    assert "clone-other@0 already" in capsys.readouterr().err


@pytest.mark.long
def test_a_clone_that_has_not_learnt_is_called_much_worse(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And a bot is cloned without a league."""
    words = ["clone", "aggressive", *QUICK, *SIZES, "--set", "cloning.learning_rate=1e-9"]
    words += ["--game", "brawl", "--set", "game.match_seconds=20"]
    assert main([*words, "--out", str(tmp_path / "clones")]) == 0
    out = capsys.readouterr().out
    assert "clone-aggressive@0 plays much worse than aggressive" in out
    (path,) = (tmp_path / "clones").iterdir()
    assert main(["demo", str(path), "constant", "--game", "brawl"]) == 0


def test_a_temperature_divides_the_logits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Matches of bots and the learning are the same again, so only the last layer differs."""
    words = ["clone", "based", *QUICK, *SIZES, "--game", "brawl", "--set", "game.match_seconds=4"]
    weights = []
    for temperature in ("1", "0.25"):
        folder = tmp_path / temperature
        assert main([*words, "--out", str(folder), "--temperature", temperature]) == 0
        (path,) = folder.iterdir()
        weights.append(load_snapshot(BlobFolder(folder), path.stem)[0].state_dict())
    plain, sharp = weights
    for name, values in plain.items():
        assert sharp[name].equal(values * (4.0 if name.startswith("actor.last.") else 1.0)), name


def verdict(clone: list[float], original: list[float], direct: list[float]) -> str:
    """The last sentence about a clone with these points."""
    found = Likeness(
        clone="copy", original="other", accuracy=Measured(0.5, 0.4, 0.6), commonest=0.1,
        decisions=100, points={"constant": (clone, original)}, direct=direct,
    )  # fmt: skip
    return list(found.sentences())[-1]


def test_the_verdict_needs_evidence() -> None:
    even, won, lost = [0.0, 1.0] * 50, [1.0] * 100, [0.0] * 100
    assert "don't show" in verdict(even, even, even)
    assert "much worse" in verdict(lost, won, even)
    assert "much worse" in verdict(even, even, lost)
    assert "plays worse" in verdict(even, even, [0.0, 0.0, 1.0] * 30)
    assert "don't show" in verdict(lost[:1], won[:1], even), "a match is no evidence"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["broken"], "the rival failed: ZeroDivisionError"),
        (["constant"], "no opponents but itself"),
        (["constant=1,random=1"], "a mixture, and one player is wanted"),
        (["other", "--as", "x@5"], "x@5"),
        (["other", "--as", "Ä"], "can't name a player"),
        (["other", "--out", "{run}/run.json/x"], "can't be made"),
        (["nobody"], "nobody"),
    ],
)
def test_mistakes_are_one_sentence(
    words: list[str], message: str, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    blobs = set((run / "blobs").iterdir())
    given = [word.format(run=run) for word in words]
    assert main(["clone", *given, *QUICK, *SIZES, "--run-dir", str(run)]) != 0
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.startswith("league: ")
    assert message in said
    assert set((run / "blobs").iterdir()) == blobs


def test_a_clone_joins_a_running_league_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_run(tmp_path / "run")
    assert main(["clone", "based", *QUICK, "--run-dir", str(tmp_path / "run")]) == 1
    assert "not running" in capsys.readouterr().err
    assert main(["clone", "based", *QUICK, "--address", "127.0.0.1:1"]) == 2
    assert "--run-dir" in capsys.readouterr().err
