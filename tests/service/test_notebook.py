"""`league.open`: the tables, matches, films and agents of a notebook are those of the commands."""

from __future__ import annotations

import gc
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
from cli_league import Live, rows
from playwright.sync_api import sync_playwright
from sb3_contrib import RecurrentPPO
from small_league import paid, small_league

import league
from league.cli.main import main
from league.console.text import share
from league.errors import InvalidInput, LeagueError, Unauthenticated
from league.games.registry import game_spec
from league.notebook import COUNTS, FIT, MATCH, PAID, PLAYED, STANDING, Run
from league.players import Book, Pairing
from league.security.settings import SecuritySettings

DOCS = Path(__file__).resolve().parents[2] / "docs"
NOTEBOOK = DOCS / "examples" / "notebook.ipynb"
CHROMIUM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
Told = Callable[..., str]


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str]) -> Told:
    """Runs a command and returns what it printed, or its refusal."""

    def call(*words: object) -> str:
        capsys.readouterr()
        failed = main([str(word) for word in words])
        out, err = capsys.readouterr()
        return err if failed else out

    return call


@pytest.fixture
def run(served_run: Path) -> Iterator[Run]:
    with league.open(served_run) as opened:
        yield opened


@pytest.fixture(params=["pandas", "no pandas"])
def records(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Any], list[dict[str, Any]]]:
    """Returns a table's rows, from a DataFrame or where pandas is not installed."""
    if request.param == "pandas":

        def of_frame(table: pandas.DataFrame) -> list[dict[str, Any]]:
            assert isinstance(table, pandas.DataFrame)
            return table.astype(object).where(table.notna(), None).to_dict("records")

        return of_frame
    monkeypatch.setitem(sys.modules, "pandas", None)

    def of_list(table: list[dict[str, Any]]) -> list[dict[str, Any]]:
        assert isinstance(table, list)
        return table

    return of_list


def test_ratings_are_those_of_the_command(run: Run, served_run: Path, told: Told, records) -> None:
    for book, flags in (("eval", ["--fit"]), ("greedy", ["--fit"]), ("train", [])):
        fit = bool(flags)
        mine = records(run.ratings(book, fit=fit))
        printed = rows(told("ratings", "--book", book, "--run-dir", served_run, *flags))
        assert len(mine) == len(printed) > 4
        assert list(mine[0]) == [*STANDING, *(FIT if fit else ())]
        for ours, theirs in zip(mine, printed, strict=True):
            assert (ours["player"], ours["kind"]) == (theirs["player"], theirs["kind"])
            assert str(int(ours["rank"] or 0) or "") == theirs["rank"]
            for name in ("games", "wins", "draws", "losses"):
                assert ours[name] == int(theirs[name])
            assert share(ours["wins"], ours["games"]) == theirs["win_rate"]
            names = {name: name for name in ("score", "mu", "sigma")}
            names |= {"fit": "fit", "fit_low": "low", "fit_high": "high"} if fit else {}
            for name, theirs_name in names.items():
                assert f"{ours[name]:.2f}" == theirs[theirs_name]


def test_payoffs_are_those_of_the_command(run: Run, served_run: Path, told: Told, records) -> None:
    for flags, asked in (
        ([], {}),
        (["--book", "train"], {"book": "train"}),
        (["--row", "main", "--column", "based", "--column", "random"],
         {"rows": ["main"], "columns": ["based", "random"]}),
    ):  # fmt: skip
        mine = records(run.payoff(**asked))
        printed = rows(told("payoff", "--run-dir", served_run, *flags))
        assert [
            {**{name: str(cell[name]) for name in COUNTS}, "win_rate": f"{cell['win_rate']:.1%}"}
            for cell in mine
        ] == printed
    assert {cell["row"] for cell in mine} == {"main@2000"}, "the newest snapshot of main"


def test_a_game_with_payoffs_has_them_in_both_tables(tmp_path: Path, told: Told, records) -> None:
    with small_league(tmp_path) as small:
        evaluator = small.client.open_incarnation("evaluator-0").number
        pairing = Pairing(player="based", opponent="random", pairs=5, book=Book.EVAL, seed=1)
        for number, match in enumerate(small.client.acquire_pairings(evaluator, [pairing])):
            small.client.report_results(evaluator, [paid(match, (-1.0) ** number * number)])
        address = small.server.address
        with league.open(address=address) as run:
            rated, cells = records(run.ratings()), records(run.payoff())
        printed = rows(told("ratings", "--address", address))
        assert [f"{row['payoff']:+.2f}" for row in rated] == [row["payoff"] for row in printed]
        for ours, theirs in zip(cells, rows(told("payoff", "--address", address)), strict=True):
            low, high = ours["payoff_low"], ours["payoff_high"]
            assert f"{ours['payoff']:+.2f}" == theirs["payoff"] != "+0.00"
            assert f"{low:+.2f} to {high:+.2f}" == theirs["interval"]
        assert tuple(cells[0])[-3:] == PAID


def test_matches_are_those_of_the_log(run: Run, served_run: Path, told: Told, records) -> None:
    everything = records(run.matches(limit=1000))
    assert list(everything[0]) == list(MATCH)
    assert len(everything) > 200, "more than a page"
    newest = everything[0]["position"]
    assert [match["position"] for match in everything] == list(range(newest, 0, -1))
    assert records(run.matches(limit=3)) == everything[:3]

    def positions(matches: list[dict[str, Any]]) -> set[int]:
        return {match["position"] for match in matches}

    trained = records(run.matches("main", book="train"))
    assert positions(trained) == positions(
        [match for match in everything if match["book"] == "train"]
    )
    category = trained[0]["category"]
    some = [match for match in trained if match["category"] == category]
    opponent = next(name for name in (some[0]["first"], some[0]["second"]) if name != "main")
    found = records(run.matches("main", opponent, category=category, limit=10**6))
    assert positions(found) == positions(
        [match for match in some if opponent in (match["first"], match["second"])]
    )
    for match in (everything[0], trained[0]):
        facts = dict(
            line.partition("\t")[::2]
            for line in told("match", match["match_id"], "--run-dir", served_run).splitlines()
        )
        assert [facts[f"seat {n}"].split(" ")[0] for n in (0, 1)] == [
            match["first"], match["second"]
        ]  # fmt: skip
        won = {1.0: "first", 0.0: "second"}.get(match["outcome"])
        assert facts["result"].startswith(f"{match[won]} won" if won else "a draw")
        assert facts["result"].endswith(f"after {match['frames']} frames")
        assert facts["book"] == match["book"]
        assert f"result {match['position']} of the log" in facts["reported"]


@pytest.mark.parametrize(
    ("names", "game"), [(("main", "based"), "brawl"), (("caller", "nash"), "kuhn")]
)
def test_played_matches_are_those_of_record(
    names: tuple[str, str], game: str, served_run: Path, told: Told, records
) -> None:
    with league.open(served_run, game=game) as run:
        played = records(run.play(*names, matches=20, seed=2))
        greedy = records(run.play(*names, matches=20, seed=2, greedy=True))
    assert tuple(played[0])[:5] == PLAYED
    own_matches = ["--matches", 20, "--seed", 2, "--game", game, "--run-dir", served_run]
    seats = {"both": (0, 1), "first": (0,), "second": (1,)}
    decided = 0
    for row in rows(told("record", *names, *own_matches)):
        if row["seat"] in seats:
            own = [match for match in played if match["seat"] in seats[row["seat"]]]
            counts = [sum(match["outcome"] == value for match in own) for value in (1.0, 0.5, 0.0)]
            assert counts == [int(row[name]) for name in ("wins", "draws", "losses")]
            assert len(own) == int(row["matches"])
            decided += counts[0] + counts[2]
            for name in {"damage_dealt", "damage_taken", "knockouts", "falls"} & row.keys():
                assert f"{sum(match[name] for match in own) / len(own):.2f}" == row[name]
    if game == "brawl":
        keys = [{match["match_id"]: match["keys_pressed"] for match in one}
                for one in (played, greedy)]  # fmt: skip
        assert keys[0] != keys[1]
    else:
        assert decided


def test_a_film_is_found_as_the_command_finds_it(
    run: Run, served_run: Path, told: Told, tmp_path: Path
) -> None:
    played = run.play("main@1000", "based", matches=2)
    for match_id in played["match_id"]:
        film = run.replay(match_id[:12])
        assert film.replay.match_id == match_id
        assert str(film).startswith("<Film of ")
    assert film.replay.names == ("based", "main@1000")
    told("demo", "main@1000", "based", "--run-dir", served_run, "--save", "demo.replay")
    shown = run.replay("demo.replay")
    assert shown.replay.match_id == played["match_id"][0], "the same match as the first"
    shown.save("mine.html")
    told("render", "demo.replay", "--out", "its.html")
    assert Path("mine.html").read_text() == Path("its.html").read_text()
    for wrong in ("ffff", "no.replay"):
        with pytest.raises(LeagueError) as refused:
            run.replay(wrong)
        assert str(refused.value) in told("replay", wrong, "--run-dir", served_run)


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
def test_the_film_plays_in_the_cell_and_sees_nothing_of_the_notebook(run: Run) -> None:
    played = run.play("random", "based", matches=1)
    cell = run.replay(played["match_id"][0])._repr_html_()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        wrong = list[str]()
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.set_content(f"<title>notebook</title>{cell}")
        film = page.frame_locator("iframe")
        film.locator('button:text-is("again")').wait_for(timeout=60_000)  # it played to its end
        assert film.locator("h1").inner_text() == "random against based"
        reach = "() => { try { return parent.document.title } catch { return 'refused' } }"
        assert page.frames[1].evaluate(reach) == "refused"
        assert wrong == []
        browser.close()


def test_an_agent_predicts_as_its_export_does(run: Run, served_run: Path, told: Told) -> None:
    policy = run.policy("main")
    assert (policy.card.step, policy.card.frame_skip) == (2000, 4)
    told("export", "main", "--out", "agent.zip", "--run-dir", served_run)
    exported = RecurrentPPO.load("agent.zip", device="cpu")
    rng, ours, theirs = np.random.default_rng(3), None, None
    for step in range(20):
        observation = rng.uniform(-1, 1, policy.observation_space.shape).astype(np.float32)
        start = np.array([step == 0])
        mine, ours = policy.predict(observation, ours, start, deterministic=True)
        its, theirs = exported.predict(observation, theirs, start, deterministic=True)
        assert mine.tolist() == its.tolist()
    with pytest.raises(InvalidInput) as refused:
        run.policy("based")
    assert str(refused.value) in told("export", "based", "--out", "b.zip", "--run-dir", served_run)


WRONG = {
    "an unknown player": (lambda run: run.play("mian", "based"), "demo mian based"),
    "a row": (lambda run: run.payoff(rows=["mian@1000"]), "payoff --row mian@1000"),
    "a player of matches": (lambda run: run.matches("basd"), "payoff --row basd"),
    "a mixture": (
        lambda run: run.policy("main@average"),
        "export main@average --out a.zip",
    ),
    "a learner": (lambda run: run.curves("nothing"), "curves --learner nothing"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_name_is_refused_as_by_the_command(
    case: str, run: Run, served_run: Path, told: Told
) -> None:
    call, command = WRONG[case]
    with pytest.raises(LeagueError) as refused:
        call(run)
    assert str(refused.value) in told(*command.split(), "--run-dir", served_run)


@pytest.mark.parametrize(
    "call",
    [
        lambda run: run.ratings("evil"),
        lambda run: run.matches(book="evil"),
        lambda run: run.ratings("train", fit=True),
        lambda run: run.play("based", "random", matches=0),
        lambda run: run.play("based", "random", seed=-1),
    ],
)
def test_a_wrong_value_is_refused_in_a_sentence(run: Run, call: Callable[[Run], Any]) -> None:
    with pytest.raises(InvalidInput) as refused:
        call(run)
    assert ": " in str(refused.value)


def test_a_folder_that_is_no_run_is_refused_at_once(tmp_path: Path, told: Told) -> None:
    for wrong in (tmp_path / "nothing", tmp_path):
        with pytest.raises(LeagueError) as refused:
            league.open(wrong)
        assert str(refused.value) in told("ratings", "--run-dir", wrong)
    with pytest.raises(InvalidInput, match="only one"):
        league.open(tmp_path, address="127.0.0.1:1")


def test_a_running_league_is_asked_by_its_address_and_token(tmp_path: Path, told: Told) -> None:
    token = tmp_path / "reader.token"
    told("tokens", "make", "--run-dir", tmp_path)
    told("tokens", "add", "read", "notebook", "--run-dir", tmp_path, "--out", token)
    with small_league(tmp_path, security=SecuritySettings(tokens=True)) as small:
        address = small.server.address
        with league.open(address=address, token_file=token) as run:
            assert len(run.payoff()) == 0
            assert list(run.payoff().columns) == [*COUNTS, "win_rate"], "an empty table has columns"
            assert len(run.play("based", "random", matches=2, seed=5)) == 2
            for call in (run.curves, lambda: run.replay("00")):
                with pytest.raises(InvalidInput, match="run_dir"):
                    call()
        with league.open(address=address) as stranger, pytest.raises(Unauthenticated):
            stranger.ratings()


def test_weights_for_a_league_by_its_address_come_from_blobs(live: Live, finished: Path) -> None:
    with league.open(address=live.address) as run, pytest.raises(InvalidInput, match="blobs"):
        run.policy("main")
    with league.open(address=live.address, blobs=finished / "blobs") as run:
        assert run.policy("main").card.step == 2000


def test_an_earlier_state_is_shown(finished: Path, told: Told) -> None:
    with league.open(finished, at="60") as run:
        assert run.matches(limit=1)["position"].tolist() == [60]


def services() -> set[int]:
    """Read-only matchmakers that this process has started."""
    listed = subprocess.run(
        ["ps", "-ww", "-o", "pid=,args=", "--ppid", str(os.getpid())],
        capture_output=True,
        text=True,
    )
    return {int(line.split()[0]) for line in listed.stdout.splitlines() if "--read-only" in line}


def test_a_finished_run_is_served_from_the_first_call_to_the_end(finished: Path) -> None:
    before = services()
    with league.open(finished) as run:
        assert services() == before
        run.matches(limit=1)
        (process,) = services() - before
        run.payoff()
        run.play("main", "based", matches=1)
        assert services() - before == {process}, "the same for all calls"
    assert services() == before
    run.matches(limit=1)
    assert len(services() - before) == 1
    gc.disable()  # the object is in no cycle
    try:
        del run
        assert services() == before, "it ends with the object"
    finally:
        gc.enable()


@pytest.mark.long
def test_a_call_after_the_service_has_gone_finds_the_league_again(
    finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("league.contest.league.WAIT_SECONDS", 0.0)
    with league.open(finished) as run:
        first = run.matches(limit=1)
        (process,) = services()
        os.kill(process, signal.SIGKILL)
        with pytest.raises(LeagueError, match="no matchmaker answers"):
            run.matches(limit=1)
        assert run.matches(limit=1).equals(first)


PROGRAM = """
import league, os, signal, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
run = league.open("{run}")
run.matches(limit=1)
try:
    os.killpg(0, signal.SIGINT)  # as Jupyter interrupts a cell
    while True:  # another thread may take the signal, which ends no single long call
        time.sleep(0.01)
except KeyboardInterrupt:
    print(len(run.matches(limit=2)))
"""


@pytest.mark.long
def test_an_interrupted_cell_keeps_the_connection_and_an_end_leaves_nothing(finished: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(run=finished)],
        capture_output=True,
        text=True,
        start_new_session=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "2\n", "")


def test_the_notebook_runs(finished: Path) -> None:
    Path("runs").symlink_to(finished.parent)
    names: dict[str, Any] = {}
    for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), str(NOTEBOOK), "exec"), names)
    assert names["info"]["outcome"] in (0.0, 0.5, 1.0)


def test_the_examples_of_the_page_run(finished: Path) -> None:
    Path("runs").symlink_to(finished.parent)
    page = (DOCS / "notebooks.md").read_text(encoding="utf-8")
    blocks = re.findall(
        r"<!-- run by tests/service/test_notebook.py -->\n```python\n(.*?)```", page, re.DOTALL
    )
    assert len(blocks) == page.count("```python") == 2
    names: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, "notebooks.md", "exec"), names)
    assert len(names["played"]) == 20
    assert names["action"].shape == (10,)


def test_the_notebook_is_of_format_4() -> None:
    """As https://github.com/jupyter/nbformat/blob/main/nbformat/v4/nbformat.v4.5.schema.json says
    it.
    """
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    assert notebook.keys() == {"cells", "metadata", "nbformat", "nbformat_minor"}
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert notebook["metadata"]["kernelspec"].keys() == {"display_name", "language", "name"}
    ids = [cell["id"] for cell in notebook["cells"]]
    assert len({*ids}) == len(ids)
    assert all(re.fullmatch(r"[a-zA-Z0-9-_]{1,64}", name) for name in ids)
    common = {"id", "cell_type", "metadata", "source"}
    for cell in notebook["cells"]:
        code = {"outputs", "execution_count"} if cell["cell_type"] == "code" else set()
        assert cell["cell_type"] in ("code", "markdown")
        assert cell.keys() == common | code
        assert cell.get("outputs", []) == []
        assert cell.get("execution_count") is None
        assert all(line.endswith("\n") for line in cell["source"][:-1])


def test_the_page_documents_every_column_and_method() -> None:
    page = (DOCS / "notebooks.md").read_text(encoding="utf-8")
    named = {name for row in re.findall(r"^\| (`.*?) \|", page, re.MULTILINE)
             for name in re.findall(r"`([^`]+)`", row)}  # fmt: skip
    columns = {*STANDING, *FIT, *COUNTS, "win_rate", *PAID, *MATCH, *PLAYED, "step"}
    columns |= {*game_spec("brawl").stats}
    assert columns - named == set()
    for method in ("ratings", "payoff", "matches", "curves", "play", "replay", "policy"):
        assert f"run.{method}(" in page
