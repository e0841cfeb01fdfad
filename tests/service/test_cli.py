"""``bin/league`` against a real matchmaker: running by address, finished by run folder."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cli_league import fill, make_run

from league.cli.main import main
from league.cli.standings import gather
from league.cli.summaries import summary_of
from league.client import MatchmakerClient
from matchmaker.main import MatchmakerServer

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "laptop-1"
    ids = make_run(path)
    (path / "ids.json").write_text(json.dumps(ids))
    return path


@pytest.fixture
def served_run(run_dir: Path) -> Iterator[Path]:
    """The run folder while a matchmaker serves it, so that commands need not start one."""
    announced = run_dir / "matchmaker.json"
    with MatchmakerServer(db=run_dir / "league.db", port=0, read_only=True) as server:
        announced.write_text(json.dumps({"address": server.address, "pid": os.getpid()}))
        yield run_dir
        announced.unlink()


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A live league with the same content, asked by most tests: no process to start."""
    path = tmp_path_factory.mktemp("live")
    with (
        MatchmakerServer(db=path / "league.db", port=0) as server,
        MatchmakerClient(server.address) as client,
    ):
        (path / "ids.json").write_text(json.dumps(fill(client, path)))
        os.environ["LEAGUE_TEST_IDS"] = str(path / "ids.json")
        yield server.address
        del os.environ["LEAGUE_TEST_IDS"]


@pytest.fixture
def league(address: str, capsys: Capture) -> Callable[..., str]:
    """Runs a command of the live league and returns what it printed."""

    def call(*words: str) -> str:
        assert main([*words, "--address", address]) == 0
        return capsys.readouterr().out

    return call


def ids() -> dict[str, str]:
    found: dict[str, str] = json.loads(Path(os.environ["LEAGUE_TEST_IDS"]).read_text())
    return found


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text), delimiter="\t"))


def test_ratings_are_listed_best_first(league: Callable[..., str]) -> None:
    listed = rows(league("ratings"))
    assert [row["player"] for row in listed] == [
        "main@2000",
        "based",
        "main@1000",
        "clockwork",
        "random",
        "constant",
    ]
    assert [row["rank"] for row in listed] == list("123456")
    best = listed[0]
    assert int(best["games"]) == 30 == int(best["wins"]) + int(best["draws"]) + int(best["losses"])
    assert best["win_rate"] == f"{100 * int(best['wins']) / 30:.1f}%"
    assert float(best["score"]) == pytest.approx(float(best["mu"]) - 3 * float(best["sigma"]), abs=0.03)


def test_each_book_has_its_own_ratings(league: Callable[..., str]) -> None:
    train = {row["player"]: row for row in rows(league("ratings", "--book", "train"))}
    assert "main" in train
    assert "main" not in {row["player"] for row in rows(league("ratings", "--book", "greedy"))}


def test_players_are_listed_by_kind(league: Callable[..., str]) -> None:
    snapshots = rows(league("players", "--kind", "snapshot"))
    assert [(row["player"], row["parent"], row["step"]) for row in snapshots] == [
        ("main@1000", "", "1000"),
        ("main@2000", "main@1000", "2000"),
    ]
    everybody = {row["player"] for row in rows(league("players"))}
    assert {"main", "based", "constant", "main@1000"} <= everybody


def test_payoff_counts_the_pair_from_both_sides(league: Callable[..., str]) -> None:
    cells = {(row["row"], row["column"]): row for row in rows(league("payoff"))}
    one, other = cells["based", "random"], cells["random", "based"]
    assert one["games"] == "6"
    assert (one["wins"], one["draws"], one["losses"]) == (other["losses"], other["draws"], other["wins"])
    assert int(one["wins"]) > 3
    only = rows(league("payoff", "--row", "based", "--column", "random"))
    assert [(row["row"], row["column"]) for row in only] == [("based", "random")]


def test_a_drawn_match_tells_why(league: Callable[..., str]) -> None:
    text = league("match", ids()["snapshots"])
    assert "asked for an opponent under the mix 'league'" in text
    assert re.search(r"category 'snapshots' was drawn out of snapshots 70\.0%, constant 5\.0%", text)
    assert re.search(r"the rule pfsp_hard chose main@\d+ out of 2", text)
    assert re.search(r"^main@\d+\t\S+\t\d+\.\d%\tdrawn$", text, re.MULTILINE)
    chances = [float(x) for x in re.findall(r"^main@\d+\t\S+\t([\d.]+)%", text, re.MULTILINE)]
    assert sum(chances) == pytest.approx(100, abs=0.2)


def test_a_paired_match_tells_who_asked(league: Callable[..., str]) -> None:
    text = league("match", ids()["gauntlet"])
    assert "evaluator-0 asked for main@2000 against based by name" in text
    assert "lease\treported" in text
    assert "after 900 frames" in text


def test_an_open_match_has_no_result(league: Callable[..., str]) -> None:
    text = league("match", ids()["open"])
    assert "result\tnone yet" in text
    assert "lease\topen" in text


def test_the_beginning_of_a_match_id_is_enough_when_no_other_begins_so(league: Callable[..., str]) -> None:
    whole = ids()["gauntlet"]
    assert league("match", whole[:12]) == league("match", whole)


def test_watch_tells_what_happened_and_can_be_filtered(served_run: Path, capsys: Capture) -> None:
    assert main(["watch", "--run-dir", str(served_run), "--json"]) == 0
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [event["position"] for event in events] == list(range(1, len(events) + 1))
    kinds = {event["kind"] for event in events}
    kind = events[0]["kind"]
    assert main(["watch", "--run-dir", str(served_run), "--kind", kind]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert {line.split("\t")[2] for line in lines} == {kind}
    assert len(kinds) > 1
    assert main(["watch", "--run-dir", str(served_run), "--kind", "result"]) == 0
    found = re.findall(r"\(match ([0-9a-f]{32})\)$", capsys.readouterr().out, re.MULTILINE)
    assert json.loads((served_run / "ids.json").read_text())["gauntlet"] in found


def test_the_leaderboard_is_the_same_in_every_format(
    address: str, tmp_path: Path, league: Callable[..., str]
) -> None:
    with MatchmakerClient(address) as client:
        board = gather(client, title="test", now=0.0)
    names = [standing.rating.player.name for standing in board.standings]
    for suffix in ("csv", "json", "md", "html"):
        league("leaderboard", "export", "--out", str(tmp_path / f"board.{suffix}"))
    table = list(csv.DictReader((tmp_path / "board.csv").open()))
    assert [row["player"] for row in table] == names
    assert float(table[0]["wilson_low"]) < float(table[0]["win_rate"]) < float(table[0]["wilson_high"])
    whole = json.loads((tmp_path / "board.json").read_text())
    assert [row["player"] for row in whole["standings"]] == names
    assert len(whole["payoff"]) == 30
    assert re.findall(r"^\| \d+ \| (\S+) \|", (tmp_path / "board.md").read_text(), re.MULTILINE) == names
    assert board.matches == 90


def test_the_page_stands_alone_and_escapes_names(tmp_path: Path, league: Callable[..., str]) -> None:
    file = tmp_path / "board.html"
    league("leaderboard", "export", "--out", str(file), "--title", "<b>Mine</b> & yours")
    page = file.read_text()
    assert not re.search(r"(src|href)=|@import|url\(|<script", page), "nothing is loaded from elsewhere"
    assert "&lt;b&gt;Mine&lt;/b&gt; &amp; yours" in page
    assert "<b>Mine" not in page
    assert page.count('class="dot"') == 2
    assert page.index("main@2000</td>") < page.index("constant</td>")


def test_a_format_must_be_told_by_flag_or_file(address: str, tmp_path: Path, capsys: Capture) -> None:
    out = str(tmp_path / "board.txt")
    assert main(["leaderboard", "export", "--out", out, "--address", address]) == 2
    assert "add --format csv|html|json|md" in capsys.readouterr().err
    assert main(["leaderboard", "export", "--out", out, "--format", "csv", "--address", address]) == 0


def test_a_finished_run_is_read_and_its_reader_ended(run_dir: Path, capsys: Capture) -> None:
    before = (run_dir / "league.db").read_bytes()
    assert main(["ratings", "--run-dir", str(run_dir)]) == 0
    assert rows(capsys.readouterr().out)[0]["player"] == "main@2000"
    assert (run_dir / "league.db").read_bytes() == before
    children = subprocess.run(
        ["ps", "--ppid", str(os.getpid()), "-o", "args="], capture_output=True, text=True
    )
    assert "-m matchmaker" not in children.stdout


def test_a_live_run_is_asked_at_its_own_matchmaker(
    served_run: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("league.cli.connect._read_only_matchmaker", None)  # would fail if it were called
    assert main(["ratings", "--run-dir", str(served_run)]) == 0
    assert rows(capsys.readouterr().out)[0]["player"] == "main@2000"


def test_a_stale_announcement_does_not_mislead(run_dir: Path, capsys: Capture) -> None:
    announced = run_dir / "matchmaker.json"
    announced.write_text(json.dumps({"address": "127.0.0.1:1", "pid": os.getpid()}))
    try:
        assert main(["players", "--run-dir", str(run_dir), "--kind", "snapshot"]) == 0
    finally:
        announced.unlink()
    assert len(rows(capsys.readouterr().out)) == 2


def test_the_newest_run_is_meant_when_none_is_named(
    served_run: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(served_run.parent.parent)
    monkeypatch.setattr("league.cli.connect.RUNS", served_run.parent)
    assert main(["players", "--kind", "live"]) == 0
    assert "laptop-1" in capsys.readouterr().err
    assert main(["demo", "main@1000", "based"]) == 0
    said = capsys.readouterr()
    assert said.err.count("laptop-1") == 1
    seconds = re.search(r"^0:(\d\d\.\d)\tmain@1000 against based", said.out, re.MULTILINE)
    assert seconds, said.out
    assert float(seconds[1]) <= 4.0, "the run's own match length"


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["rating"], 2, "there is no command 'rating': did you mean 'ratings'?"),
        (["ratings", "--book", "best"], 2, "invalid choice: 'best'"),
        (["ratings", "--address", "nowhere"], 2, "'nowhere' is no address: write HOST:PORT"),
        (["ratings", "--run-dir", "absent"], 1, "there is no run folder absent"),
        (["ratings", "--run-dir", "."], 1, "is no run folder"),
        (["ratings"], 1, "there is no run under runs/"),
        (["config", "write", "--preset", "labtop", "x.toml"], 2, "did you mean 'laptop'?"),
        (["demo", "based", "bosed"], 1, "there is no run under runs/"),
        (["demo", "based", "gone.safetensors"], 1, "there is no weights file"),
        (["demo", "based", "random", "--speed", "0"], 2, "a speed above 0"),
    ],
)
def test_errors_are_one_sentence_and_an_exit_code(
    words: list[str],
    code: int,
    message: str,
    tmp_path: Path,
    capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(words) == code
    said = capsys.readouterr()
    assert message in said.err
    assert said.err.startswith("league: ")
    assert said.err.count("\n") == 1
    assert said.out == ""


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["payoff", "--row", "main@200"], "there is no player 'main@200': did you mean 'main@2000'?"),
        (["payoff", "--row", "based", "--column", "xyz"], "no player 'xyz': bin/league players lists them"),
        (["watch", "--kind", "results"], "no kind of event 'results': did you mean 'result'?"),
        (["watch", "--kind", "nonsense"], "no kind of event 'nonsense': there are configuration, inc"),
    ],
)
def test_names_that_mean_nothing_are_told(
    words: list[str], message: str, address: str, capsys: Capture
) -> None:
    assert main([*words, "--address", address]) == 2
    said = capsys.readouterr()
    assert message in said.err
    assert said.err.count("\n") == 1
    assert said.out == ""


def test_players_who_never_met_are_an_empty_table_and_a_word(address: str, capsys: Capture) -> None:
    assert main(["payoff", "--row", "based", "--column", "main", "--address", address]) == 0
    said = capsys.readouterr()
    assert said.out.splitlines() == ["row\tcolumn\tgames\twins\tdraws\tlosses\twin_rate"]
    assert said.err == "(no such matches in the book eval yet)\n"


def test_a_match_that_does_not_exist_is_named(address: str, capsys: Capture) -> None:
    assert main(["match", "0" * 32, "--address", address]) == 1
    assert "0" * 32 in capsys.readouterr().err


def test_a_run_of_another_format_is_refused(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "run.json").write_text('{"format": 99, "version": "9.0"}')
    assert main(["ratings", "--run-dir", str(tmp_path)]) == 4
    assert "has run format 99 (made by Kumite 9.0)" in capsys.readouterr().err


def test_a_broken_database_is_told_by_the_matchmaker(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "league.db").write_text("this is no database, it is a text of some length" * 100)
    assert main(["ratings", "--run-dir", str(tmp_path)]) != 0
    said = capsys.readouterr().err
    assert said.startswith("league: the run's database can't be served: ")
    assert said.count("\n") == 1


def test_demo_of_two_snapshots_repeats_with_its_seed(served_run: Path, capsys: Capture) -> None:
    def demo(*flags: str) -> str:
        assert main(["demo", "main@1000", "main", "--run-dir", str(served_run), *flags]) == 0
        return capsys.readouterr().out

    first = demo("--seed", "3")
    assert "main@1000 against main@2000, seed 3:" in first, "a live player is shown by its newest snapshot"
    assert first == demo("--seed", "3")
    assert first != demo("--seed", "4")
    assert first != demo("--seed", "3", "--greedy")


def test_demo_of_bots_needs_no_league(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["demo", "based", "constant"]) == 0
    told = capsys.readouterr().out
    assert "constant is knocked out" in told
    assert "based against constant, seed 0: based wins" in told
    matches = set()
    for seed in "12":
        assert main(["demo", "based", "random", "--seed", seed]) == 0
        matches.add(capsys.readouterr().out.partition("\n")[0])
    assert len(matches) == 2, "another seed, another match"


def test_demo_of_an_unknown_member_suggests_one(served_run: Path, capsys: Capture) -> None:
    assert main(["demo", "main@1001", "based", "--run-dir", str(served_run)]) == 1
    assert "did you mean 'main@1000'?" in capsys.readouterr().err


def test_config_write_keeps_what_exists(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "mine.toml"
    assert main(["config", "write", "--preset", "laptop", "--set", "learner.steps=123", str(file)]) == 0
    assert "steps = 123" in file.read_text()
    assert main(["config", "write", str(file)]) == 1
    assert "add --force" in capsys.readouterr().err
    assert main(["config", "write", "--force", str(file)]) == 0
    assert "steps = 123\n" not in file.read_text()
    assert main(["config", "write", "-", "--from", str(file)]) == 0
    assert "[learner]" in capsys.readouterr().out


def test_a_package_adds_a_command(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sample_command.py").write_text(
        "def add_arguments(parser):\n    parser.add_argument('word')\n"
        "def run(args):\n    print('heard', args.word)\n    return 3\n"
    )
    info = tmp_path / "sample_command-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: sample-command\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[kumite.commands]\necho = sample_command\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert main(["echo", "hello"]) == 3
    assert capsys.readouterr().out == "heard hello\n"
    assert main(["echo"]) == 2
    assert main(["ecko"]) == 2
    assert "did you mean 'echo'?" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "of the package sample_command" in capsys.readouterr().out
    code = (tmp_path / "sample_command.py").read_text()
    (tmp_path / "sample_command.py").write_text(f"SUMMARY = 'repeats a word, 100 %'\n{code}")
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "repeats a word, 100 %" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["echo", "--help"])
    assert "Repeats a word, 100 %." in capsys.readouterr().out


SOURCES = {
    "summed": '"""A doc."""\nimport absent\nSUMMARY = "sums up."\n',
    "told": '"""Tells a thing. And more.\n\nMuch more.\n"""\nimport absent\n',
    "silent": "import absent\n",
    "broken": "def (\n",
    "built": "SUMMARY = str(1)\n",
}


@pytest.mark.parametrize(
    ("module", "summary"),
    [
        ("bundle.summed", "sums up"),
        ("bundle.told", "Tells a thing"),
        ("bundle.silent", ""),
        ("bundle.broken", ""),
        ("bundle.built", ""),
        ("bundle.absent", ""),
        ("nowhere.at.all", ""),
        ("sys", ""),
    ],
)
def test_a_commands_summary_is_read_from_its_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, summary: str
) -> None:
    bundle = tmp_path / "bundle"
    bundle.mkdir()
    (bundle / "__init__.py").write_text("import absent\n")
    for name, text in SOURCES.items():
        (bundle / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert summary_of(module) == summary


def test_help_tells_every_commands_purpose_and_loads_none(capsys: Capture) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    listed = capsys.readouterr().out
    assert "of the package" not in listed
    assert re.search(r"^    doctor +why does it not learn\?", listed, re.MULTILINE)
    code = (
        "import sys; from league.cli.main import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: print([name for name in sys.modules if name.split('.')[0] in "
        "('learner', 'matchmaker', 'torch', 'numba', 'numpy', 'grpc', 'pydantic')], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr == "[]\n"


def test_queries_load_neither_torch_nor_a_compiler(run_dir: Path) -> None:
    code = (
        "import sys; from league.cli.main import main; "
        "status = main(sys.argv[1:]); heavy = {'torch', 'numba', 'matchmaker'} & set(sys.modules); "
        "print(heavy, file=sys.stderr); sys.exit(status or len(heavy))"
    )
    words = ["ratings", "--run-dir", str(run_dir)]
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
