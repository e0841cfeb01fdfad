"""``bin/league structure`` against a real matchmaker whose league has a known structure."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import structure_league

from league.cli.main import main
from league.rpc.client import MatchmakerClient
from matchmaker.main import MatchmakerServer

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    path = tmp_path_factory.mktemp("structure")
    with (
        MatchmakerServer(db=path / "league.db", port=0) as server,
        MatchmakerClient(server.address) as client,
    ):
        structure_league.fill(client, unmet=[("weak", "paper")])
        yield server.address


@pytest.fixture
def structure(address: str, capsys: Capture) -> Callable[..., str]:
    def call(*words: str) -> str:
        assert main(["structure", "--address", address, *words]) == 0, capsys.readouterr().err
        return capsys.readouterr().out

    return call


def blocks(text: str) -> list[list[dict[str, str]]]:
    """The tables after the summary."""
    _, *tables = text.split("\n\n")
    return [list(csv.DictReader(io.StringIO(table), delimiter="\t")) for table in tables]


def summary(text: str) -> dict[str, str]:
    return dict(line.split("\t", 1) for line in text.split("\n\n")[0].splitlines())


def percent(text: str) -> float:
    return float(text.removesuffix("%")) / 100


@pytest.mark.long
def test_the_known_structure_is_found_and_written(
    structure: Callable[..., str], tmp_path: Path
) -> None:
    file = tmp_path / "structure.json"
    text = structure("--json", str(file), "--versus", "paper", "rock*")
    players, cycles, clusters = blocks(text)
    row = {player["player"]: player for player in players}
    together = dict.fromkeys(structure_league.STYLES, 0.0)
    for name, player in row.items():
        if not name.startswith("weak"):
            together[name.removesuffix("-too")] += percent(player["nash"])
    assert list(together.values()) == pytest.approx([1 / 3] * 3, abs=0.12), (
        "rock's copy shares its third"
    )
    assert row["weak"]["nash"] == row["weaker"]["nash"] == "0.0%"
    assert {row["weak"]["in_support"], row["weaker"]["alpha_rank"]} == {"0.0%"}
    assert [player["player"] for player in players][-2:] == ["weak", "weaker"]
    assert float(row["weaker"]["score"]) < float(row["weak"]["score"]) < -0.4
    assert row["rock"]["cluster"] == row["rock-too"]["cluster"] != row["paper"]["cluster"]
    copies = next(one for one in clusters if one["cluster"] == row["rock"]["cluster"])
    assert sorted(copies["members"].split(", ")) == ["rock", "rock-too"]
    strongest = {
        cycles[0]["first"],
        *(cycles[0][column].split()[0] for column in ("beats", "who_beats")),
    }
    assert {name.removesuffix("-too") for name in strongest} == set(structure_league.STYLES)
    assert float(cycles[0]["p_value"]) < 0.05
    paper = summary(text)["paper against rock*"]
    assert percent(paper.split()[0]) == pytest.approx(structure_league.chances()[1, 0], abs=0.1)
    told = json.loads(file.read_text())
    assert (told["book"], told["matches"], len(told["players"])) == ("eval", 1680, 6)
    assert sum(player["nash"]["value"] for player in told["players"]) == pytest.approx(1)
    for player in told["players"]:
        shown = row[player["player"]]
        assert f"{player['nash']['value']:.1%}" == shown["nash"]
        assert f"{player['rating']:.2f}" == shown["rating"]
    assert (told["versus"][0]["first"], told["versus"][0]["second"]) == ("paper", "rock*")
    assert sum(player["cluster_weight"] for player in told["players"]) == pytest.approx(5)


@pytest.mark.long
def test_a_file_that_can_not_be_written_is_named(address: str, capsys: Capture) -> None:
    assert main(["structure", "--address", address, "--json", "absent/a.json"]) == 2
    assert "absent/a.json" in capsys.readouterr().err


@pytest.mark.parametrize("width", [pytest.param("120", marks=pytest.mark.long), "80"])
def test_on_a_terminal_it_fits_a_line(
    width: str, structure: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", width)
    text = re.sub(r"\x1b\[[\d;]*m", "", structure("--top", "3"))
    assert "3 more: --top 6 shows all" in text
    tables = [line for line in text.splitlines() if line[:1] in "┃│"]
    assert tables
    assert max(map(len, tables)) <= int(width)
    assert "…" not in text
    assert ("alpha_low" in "".join(tables)) == (width == "120"), "a narrow one does without"
    assert "nash" in text
