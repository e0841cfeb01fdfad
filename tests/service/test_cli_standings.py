"""Ratings, players, payoffs, leaderboards and matches of a live league."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from cli_league import Live, asking, rows
from ratings_league import BOTS, pair, train
from small_league import small_league

from league.cli.main import main
from league.players import Book
from league.rpc.client import MatchmakerClient
from league.runs.finding import FORMAT
from league.stats.ratings import fit
from league.stats.ratings.elo import elo
from league.stats.ratings.lineage import fit_league
from league.views.leaderboard import gather, render_html, render_markdown

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def league(live: Live, capsys: Capture) -> Callable[..., str]:
    """Asks the league that runs."""
    return asking(live, capsys)


def test_a_player_on_whom_the_two_disagree_is_named(tmp_path: Path, capsys: Capture) -> None:
    """Each wins sixty in a row: they are equal, and TrueSkill believes what came last."""
    with small_league(tmp_path) as small:
        pair(small, "random", "constant", 30)
        pair(small, "constant", "random", 30)
        pair(small, "based", "random", 10)
        pair(small, "random", "based", 10)
        ask = asking(Live(small.server.address, {}), capsys)
        listed = {row["player"]: row for row in rows(ask("ratings", "--fit")) if row["rank"]}
        whole = json.loads(ask("leaderboard", "export", "--format", "json"))
        page = ask("leaderboard", "export", "--format", "html")
        table = ask("leaderboard", "export", "--format", "md")
        lines = list(csv.DictReader(ask("leaderboard", "export", "--format", "csv").splitlines()))
    apart = [name for name, row in listed.items() if row["disagrees"]]
    assert apart, listed
    for name in apart:
        row = listed[name]
        gap = float(row["disagrees"].removeprefix("mu "))
        assert abs(gap) > 0.74, "worth 5 % of win rate"
        assert gap * (float(row["mu"]) - float(row["fit"])) > 0.0
        assert not float(row["low"]) <= float(row["mu"]) <= float(row["high"])
    assert all(float(row["low"]) <= float(row["mu"]) <= float(row["high"])
               for name, row in listed.items() if name not in apart)  # fmt: skip
    for exported in (whole["standings"], lines):
        assert [row["player"] for row in exported if row["disagrees"] not in (None, "")] == apart
        assert {row["player"] for row in exported} - {"league@nash"} == listed.keys()
        for row in (row for row in exported if row["rank"]):  # a mixture is no player
            shown = listed[row["player"]]
            fitted = [float(row[key]) for key in ("fit", "fit_low", "fit_high")]
            assert fitted == pytest.approx(
                [float(shown[key]) for key in ("fit", "low", "high")], abs=0.006
            )
    said = f"disagree on {len(apart)} player"
    assert said in whole["agreement"]
    assert said in table
    assert said in page
    assert page.count("≠</span>") == len(apart) == len(re.findall(r"\| mu [+-]", table))


def test_the_fit_counts_training_matches_wherever_it_is_shown(
    tmp_path: Path, capsys: Capture
) -> None:
    with small_league(tmp_path, snapshots=(1000, 2000), mixes=BOTS) as small:
        ask = asking(Live(small.server.address, {}), capsys)
        for name in ("main@1000", "main@2000"):
            pair(small, name, "based", 5, outcome=0.5)
            pair(small, name, "random", 5, outcome=0.5)
        before = {row["player"]: row for row in rows(ask("ratings", "--fit"))}
        train(small, small.open(), 60, step=1500)
        fit = fit_league(
            small.client.payoff(),
            small.client.players(),
            small.client.payoff(Book.TRAIN, climb=True),
        )
        listed = {row["player"]: row for row in rows(ask("ratings", "--fit"))}
        whole = json.loads(ask("leaderboard", "export", "--format", "json"))
        ask("report", "--out", str(tmp_path / "report"))
        report = json.loads((tmp_path / "report" / "report.json").read_text())["ratings"]
    exported = {row["player"]: row for row in whole["standings"]}
    mixtures = {"main@average", "league@nash"}
    assert listed.keys() - mixtures == set(fit.names) == report.keys()
    assert listed.keys() == exported.keys() > mixtures
    for name in fit.names:
        found = fit.interval(fit.number(name))
        width = found.high - found.low
        assert float(listed[name]["high"]) - float(listed[name]["low"]) == pytest.approx(
            width, abs=0.011
        )
        assert exported[name]["fit_high"] - exported[name]["fit_low"] == pytest.approx(
            width, abs=0.001
        )
        assert report[name]["high"] - report[name]["low"] == pytest.approx(width, abs=1e-9)
    newest, earlier = listed["main@2000"], before["main@2000"]
    assert float(newest["fit"]) > float(earlier["fit"]) + 0.3, "the learner won all its matches"


def test_draws_that_the_fit_does_not_explain_are_told(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fit, "DRAWS_BAR", 0.0)
    with small_league(tmp_path) as small:
        pair(small, "random", "constant", 1)
        assert main(["ratings", "--fit", "--address", small.server.address]) == 0
    assert "intervals" in capsys.readouterr().err


def test_the_page_marks_an_anchor(tmp_path: Path, capsys: Capture) -> None:
    with small_league(tmp_path) as small:
        pair(small, "random", "constant", 1)
        ask = asking(Live(small.server.address, {}), capsys)
        ask("pin", "random", "--mu", "27")
        page = ask("leaderboard", "export", "--format", "html")
    (row,) = (line for line in page.split("<tr") if ">anchor</span>" in line)
    assert "random</td>" in row


def test_a_mixture_is_rated_by_its_members_matches(tmp_path: Path, capsys: Capture) -> None:
    with small_league(tmp_path, snapshots=(1000, 2000, 3000)) as small:
        pair(small, "main@1000", "random", 5)
        pair(small, "main@2000", "random", 30, outcome=0.5)
        pair(small, "main@3000", "random", 30)
        ask = asking(Live(small.server.address, {}), capsys)
        listed = rows(ask("ratings", "--fit"))
        others = [rows(ask("ratings", "--book", book)) for book in ("train", "greedy")]
    by_name = {row["player"]: row for row in listed}
    average, last, before = (by_name[f"main@{name}"] for name in ("average", "3000", "2000"))
    assert (average["rank"], average["kind"], average["anchor"]) == ("", "mixture", "")
    assert (average["games"], average["wins"], average["draws"]) == ("120", "60", "60")
    for column in ("mu", "sigma", "fit", "low", "high"):
        low, high = sorted(float(row[column]) for row in (before, last))
        assert low < float(average[column]) < high, column
    scores = [float(row["score"]) for row in listed]
    assert scores == sorted(scores, reverse=True)
    assert [row["rank"] for row in listed if row["kind"] != "mixture"] == ["1", "2", "3", "4"]
    nash = by_name["league@nash"]
    assert {key: nash[key] for key in ("mu", "sigma", "games", "fit")} == {
        key: last[key] for key in ("mu", "sigma", "games", "fit")
    }, "it beats all others"
    assert not any("mixture" in row.values() for table in others for row in table)


@pytest.mark.parametrize(("width", "gone"), [(180, ""), (80, "wins"), (60, "wins rank")])
def test_a_narrow_terminal_shows_what_matters_most(
    league: Callable[..., str], monkeypatch: pytest.MonkeyPatch, width: int, gone: str
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    for module in (
        "cli.standings",
        "console.output",
    ):  # patched first, output's would be imported for good
        monkeypatch.setattr(f"league.{module}.is_terminal", lambda: True)
    shown = league("ratings", "--fit").splitlines()
    assert max(map(len, shown)) <= width
    (headings,) = [line for line in shown if "player" in line]
    assert not set(gone.split()) & set(headings.split())
    assert {"player", "mu", "disagrees"} <= set(headings.split())
    matrix = league("payoff").splitlines()
    assert max(map(len, matrix)) <= width
    assert re.search(r"main@2000 │ +│", "\n".join(matrix)), "nobody meets himself"
    players = league("players").splitlines()
    assert max(map(len, players)) <= width
    assert any("│ main@2000 " in line for line in players)


def test_the_leaderboard_is_the_same_in_every_format(
    live: Live, tmp_path: Path, league: Callable[..., str]
) -> None:
    with MatchmakerClient(live.address) as client:
        board = gather(client, title="test", now=0.0)
    names = [row["player"] for row in board.rows]
    for suffix in ("csv", "json", "md", "html"):
        league("leaderboard", "export", "--out", str(tmp_path / f"board.{suffix}"))
    table = list(csv.DictReader((tmp_path / "board.csv").open()))
    assert [row["player"] for row in table] == names
    assert (
        float(table[0]["wilson_low"]) < float(table[0]["win_rate"]) < float(table[0]["wilson_high"])
    )
    whole = json.loads((tmp_path / "board.json").read_text())
    assert [row["player"] for row in whole["standings"]] == names
    assert len(whole["payoff"]) == 30
    assert (
        re.findall(r"^\| \d* \| (\S+) \|", (tmp_path / "board.md").read_text(), re.MULTILINE)
        == names
    )
    page = (tmp_path / "board.html").read_text()
    assert re.findall(r'<td class="">([^<]+)</td><td class=""><span class="tag', page) == names
    assert board.matches == 90


def test_an_interval_with_negative_ends_is_readable(live: Live) -> None:
    with MatchmakerClient(live.address) as client:
        board = gather(client, title="test", now=0.0)
    row = board.rows[0] | {"fit": -3.0, "fit_low": -5.26, "fit_high": -0.68}
    for text in (render_html, render_markdown):
        assert "−5.26 to −0.68" in text(replace(board, rows=(row, *board.rows[1:])))


def test_elo_is_a_line_of_the_points(tmp_path: Path, league: Callable[..., str]) -> None:
    for row in rows(league("ratings", "--fit")):
        for number, points in (("elo", "mu"), ("fit_elo", "fit"), ("elo_low", "low")):
            assert float(row[number]) == pytest.approx(elo(float(row[points])), abs=1.0)
    league("leaderboard", "export", "--out", str(tmp_path / "board.csv"))
    for row in csv.DictReader((tmp_path / "board.csv").open()):
        for number, points in (("elo", "mu"), ("fit_elo", "fit"), ("elo_high", "fit_high")):
            assert float(row[number]) == pytest.approx(elo(float(row[points])), abs=0.01)


def test_the_page_stands_alone_and_escapes_names(
    tmp_path: Path, league: Callable[..., str]
) -> None:
    file = tmp_path / "board.html"
    league("leaderboard", "export", "--out", str(file), "--title", "<b>Mine</b> & yours")
    page = file.read_text()
    assert not re.search(r"(src|href)=|@import|url\(|<script", page), (
        "nothing is loaded from elsewhere"
    )
    assert "&lt;b&gt;Mine&lt;/b&gt; &amp; yours" in page
    assert "<b>Mine" not in page
    assert "<dt>leads</dt><dd>main@2000</dd>" in page
    assert page.index("main@2000</td>") < page.index("constant</td>")


def test_a_board_of_the_past_says_so_and_an_empty_one_claims_nothing(
    tmp_path: Path, capsys: Capture
) -> None:
    with small_league(tmp_path):
        (tmp_path / "run.json").write_text(json.dumps({"format": FORMAT, "version": "0.1.0"}))
    words = ["leaderboard", "export", "--format", "md", "--run-dir", str(tmp_path)]
    assert main([*words, "--at", "2100-01-01"]) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"# Leaderboard of {tmp_path.name}, as of 2100-01-01\n")
    assert "0 clean matches" in said
    assert main(words) == 0
    assert "as of" not in capsys.readouterr().out


def test_a_drawn_match_tells_why(live: Live, league: Callable[..., str]) -> None:
    text = league("match", live.ids["snapshots"])
    assert "'league'" in text
    assert re.search(r"'snapshots' .*snapshots 70\.0%, constant 5\.0%", text)
    assert re.search(r"the rule pfsp_hard chose main@\d+ out of 2", text)
    assert re.search(r"^main@\d+\t\S+\t\d+\.\d%\tdrawn$", text, re.MULTILINE)
    chances = [float(x) for x in re.findall(r"^main@\d+\t\S+\t([\d.]+)%", text, re.MULTILINE)]
    assert sum(chances) == pytest.approx(100, abs=0.2)


def test_a_paired_match_tells_who_asked(live: Live, league: Callable[..., str]) -> None:
    text = league("match", live.ids["gauntlet"])
    assert re.search("evaluator-0 .*main@2000 .*based ", text)
    assert "lease\treported" in text
    assert "after 900 frames" in text


def test_the_beginning_of_a_match_id_is_enough_when_no_other_begins_so(
    live: Live, league: Callable[..., str]
) -> None:
    whole = live.ids["gauntlet"]
    assert league("match", whole[:12]) == league("match", whole)
