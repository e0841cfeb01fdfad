"""`bin/league report` and `eval --report`: files with the numbers of the log, or of the matches."""

from __future__ import annotations

import html
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from cli_league import Live, asking, rows
from exploiter_league import exploiter_league, wins_always
from PIL import Image
from scipy.stats import beta
from small_league import played

from league.cli.main import main
from league.console.text import at_least
from league.gates import GateState
from league.players import Book, Pairing

Capture = pytest.CaptureFixture[str]


def written(folder: Path) -> dict[str, Any]:
    """The numbers of a report whose other files are whole."""
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert page.endswith("</html>\n")
    with Image.open(folder / "report.png") as image:
        assert image.size[0] == 1500
        image.verify()
    return json.loads((folder / "report.json").read_text(encoding="utf-8"))


def test_a_run_s_report_agrees_with_its_log(live: Live, tmp_path: Path, capsys: Capture) -> None:
    ask = asking(live, capsys)
    said = ask("report", "--out", str(tmp_path / "run"))
    found = written(tmp_path / "run")
    rated = rows(ask("ratings", "--fit"))
    listed = {row["player"]: row for row in rated if row["kind"] != "mixture"}
    assert {row["player"] for row in rated} - listed.keys() == {"main@average", "league@nash"}
    assert found["ratings"].keys() == listed.keys()
    for name, rating in found["ratings"].items():
        assert rating["value"] == pytest.approx(float(listed[name]["fit"]), abs=0.01)
        assert rating["low"] == pytest.approx(float(listed[name]["low"]), abs=0.01)
    trained = sum(one["matches"] for one in found["training_matches"].values())
    assert trained == sum(
        int(row["games"]) for row in rows(ask("payoff", "--book", "train", "--row", "main"))
    )
    assert found["newest"]["player"] == "main@2000"
    bots = [one for one in found["newest"]["opponents"] if one["group"] == "training bots"]
    beaten = {one["opponent"] for one in bots} & {*found["newest"]["beaten"]}
    assert not beaten, "it met each in six matches"
    hardest = min(bots, key=lambda one: one["score"]["value"])["opponent"]
    for words in (said, found["newest"]["headline"]["bots"]):
        assert f"{len(beaten)} of {len(bots)}" in words
        assert hardest in words
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    first, *_ = page.split("Rating over steps")
    assert all(html.escape(words) in first for words in found["newest"]["headline"].values())

    ask("report", "main", "--out", str(tmp_path / "player"))
    player = written(tmp_path / "player")
    assert player["opponents"] == found["newest"]["opponents"]
    payoff = rows(ask("payoff", "--row", "main"))
    assert {row["row"] for row in payoff} == {"main@2000"}
    assert {one["opponent"]: one["wins"] for one in player["opponents"]} == {
        row["column"]: int(row["wins"]) for row in payoff
    }
    ancestor = next(one for one in player["opponents"] if one["opponent"] == "main@1000")
    assert (ancestor["group"], ancestor["ancestor_step"]) == ("league snapshots", 1000)
    assert ancestor["means"]["knockouts"] == {"value": 1.0, "low": None, "high": None}
    assert player["gaps"].keys() >= {"training bots - league snapshots"}


def test_a_run_s_report_goes_into_its_folder(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    shutil.copytree(finished, run)
    monkeypatch.chdir(tmp_path)
    assert main(["report", "--run-dir", str(run)]) == 0
    written(run / "report")
    assert not (tmp_path / "report").exists()


def test_a_report_of_nothing_is_refused(live: Live, tmp_path: Path, capsys: Capture) -> None:
    out = tmp_path / "out"
    for name in ("nobody", "main@3000", "mirror"):
        assert main(["report", name, "--address", live.address, "--out", str(out)]) == 2
        assert name in capsys.readouterr().err
    assert not out.exists()
    taken = tmp_path / "taken"
    taken.touch()
    assert main(["report", "--address", live.address, "--out", str(taken)]) == 2


def test_an_accepted_exploiter_bounds_its_victim(tmp_path: Path, capsys: Capture) -> None:
    with exploiter_league(tmp_path) as league:
        gate = league.to_the_end(league.freeze(league.begin(), 500), wins_always)
        assert gate.state is GateState.ACCEPTED
        ask = asking(Live(league.small.server.address, {}), capsys)
        ask("report", "main@2000", "--out", str(tmp_path / "report"))
        pairing = Pairing(
            player="main@2000", opponent=gate.candidate, pairs=20, book=Book.EVAL, seed=1
        )
        clean = league.client.acquire_pairings(league.evaluator, [pairing])
        results = [
            played(match, wins_always(match, gate.candidate if at < 30 else "main@2000"))
            for at, match in enumerate(clean)
        ]
        league.client.report_results(league.evaluator, results)
        ask("report", "main@2000", "--out", str(tmp_path / "later"))
    (bound,) = written(tmp_path / "report")["exploitability"]
    assert (bound["exploiter"], bound["steps"]) == (gate.candidate, 500)
    assert bound["exploitability"] == pytest.approx(2 * bound["score"]["low"] - 1)
    assert 0 < bound["exploitability"] < 1
    words = written(tmp_path / "report")["headline"]["exploitability"]
    assert at_least(bound["exploitability"]) in words
    (later,) = written(tmp_path / "later")["exploitability"]
    low = beta.ppf(0.05 / 3, 30, 11)  # Clopper and Pearson's
    assert (later["score"]["value"], later["score"]["low"]) == (0.75, pytest.approx(low))
    assert later["matches"] == 40


@pytest.mark.long
def test_a_benchmark_s_report_has_its_scores(
    finished: Path, tmp_path: Path, capsys: Capture
) -> None:
    words = ["eval", "main", "--against", "main@1000", "constant", "drunk", "--matches", "8"]
    words += ["--run-dir", str(finished), "--report", str(tmp_path / "out"), "--json"]
    assert main(words) == 0
    scores = json.loads(capsys.readouterr().out)["scores"]
    found = written(tmp_path / "out")
    assert [one["means"] for one in found["opponents"]] == [one["means"] for one in scores]
    groups = [one["group"] for one in found["opponents"]]
    assert groups == ["league snapshots", "training bots", "held-out bots"]
    assert "Use of actions" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
