"""The final of a sweep: trials with known play meet each other, and the result ranks them."""

from __future__ import annotations

import csv
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from rps_agents import GAME, PAPER, ROCK, SCISSORS, rps_player

from league.games.settings import GameSettings
from league.metrics import Measured
from league.players import Player, PlayerKind
from league.rpc.client import MatchmakerClient
from league.runs.finding import FORMAT
from league.settings.base import resolve
from league.sweep.final import play_final
from league.sweep.results import ranked, write_preset, write_results
from league.sweep.trial import Order, Rung, Trial
from matchmaker.main import MatchmakerServer
from matchmaker.settings import MatchmakerSettings

PLAYED = {
    0: [ROCK, ROCK, ROCK, ROCK, PAPER],
    1: [ROCK, ROCK, PAPER, PAPER, ROCK],
    2: [ROCK, ROCK, PAPER, SCISSORS, ROCK],
}
"""What the snapshots of each trial play after 10, 20, ... steps. The rung is at 40 steps."""
AGAINST = {(0, 1): -1.0, (0, 2): 0.0, (1, 2): -0.5}
"""Mean payment of a match between the later halves up to the rung."""


def rung(steps: int, value: float) -> Rung:
    score = Measured(value, value - 0.1, value + 0.1)
    unit = "payoff a match"
    return Rung(steps=steps, player="main", score=score, unit=unit, matches=40, seconds=5.0)


def trials() -> list[Trial]:
    """Three finalists, the worst with the best score, and a trial that was stopped."""
    scored = [rung(40, 0.9 - number / 10) for number in PLAYED]
    found = [Trial(number=at, settings={}, rungs=(one, one)) for at, one in enumerate(scored)]
    return [*found, Trial(number=3, settings={}, rungs=(rung(10, 5.0),), stopped=True)]


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("swept")
    for number, choices in PLAYED.items():
        run_dir = folder / f"trial-{number:03}"
        run_dir.mkdir()
        about = {"format": FORMAT, "version": "0.1.0", "preset": "board"}
        (run_dir / "run.json").write_text(json.dumps(about))
        own = [rps_player(run_dir, "main", 10 * at, one) for at, one in enumerate(choices, 1)]
        bot = Player(name="rock", game=GAME, kind=PlayerKind.BOT)
        settings = MatchmakerSettings(game=GAME)
        with (
            MatchmakerServer(run_dir / "league.db", 0, settings) as server,
            MatchmakerClient(server.address) as client,
        ):
            client.register_players([bot, *own])
    return folder


@pytest.fixture
def order(swept: Path, tmp_path: Path) -> Order:
    shutil.copytree(swept, tmp_path / "swept")
    return Order(
        folder=tmp_path / "swept",
        main="main",
        rungs=(10, 40),
        score="rating",
        average=True,
        matches=20,
    )


def finish(order: Order, matches: int = 200) -> list[Trial]:
    settings = resolve("board", assignments=[f"game.name={GAME}"], environment={})
    return play_final(order, settings.of(GameSettings), trials(), matches, lambda line: None)


def expected(number: int) -> float:
    return sum(
        value if pair[0] == number else -value for pair, value in AGAINST.items() if number in pair
    ) / (len(PLAYED) - 1)


@pytest.mark.long
def test_finalists_rank_by_their_mixtures_matches_against_each_other(order: Order) -> None:
    found = finish(order)
    for trial in found[:3]:
        assert trial.final is not None
        assert trial.final.value == pytest.approx(expected(trial.number), abs=0.1)
        assert trial.final.low < trial.final.value < trial.final.high
    assert found[3].final is None
    assert [trial.number for trial in ranked(found)][2:] == [0, 3]
    table, page = write_results(order, found)
    with table.open() as file:
        rows = list(csv.DictReader(file))
    assert [row["trial"] for row in rows][2:] == ["0", "3"]
    assert float(rows[2]["final"]) == pytest.approx(-0.5, abs=0.1)
    assert float(rows[2]["final_low"]) < float(rows[2]["final"]) < float(rows[2]["final_high"])
    assert rows[3]["final"] == ""
    assert "final" in page.read_text()
    preset = order.folder / "best.toml"
    write_preset(preset, ranked(found)[0], resolve("board", environment={}), "board")
    assert "final" in preset.read_text()


@pytest.mark.long
def test_newest_snapshots_meet_where_the_newest_is_scored(order: Order) -> None:
    found = finish(replace(order, average=False, rungs=(10, 30)))
    values = [trial.final.value for trial in found if trial.final]
    assert values == pytest.approx([-1.0, 0.5, 0.5], abs=0.1)  # rock, paper and paper


@pytest.mark.long
def test_only_missing_pairs_are_played(swept: Path, order: Order) -> None:
    file = order.folder / "final.json"
    finish(order)
    first = json.loads(file.read_text())["pairs"]
    assert len(first) == 3
    first[0]["cell"]["wins"] += 1  # as a played pair would not have it again
    file.write_text(json.dumps({"pairs": first[:2]}))
    finish(order)
    second = json.loads(file.read_text())["pairs"]
    assert second[:2] == first[:2]
    assert len(second) == 3
    shutil.rmtree(order.folder / "trial-000")  # nobody needs its weights any more
    assert finish(order) == finish(order, matches=100)  # which is less than what was played
    assert json.loads(file.read_text())["pairs"] == second
    shutil.copytree(swept / "trial-000", order.folder / "trial-000")
    finish(order, matches=300)
    third = json.loads(file.read_text())["pairs"]
    assert [one["asked"] for one in third] == [300] * 3
    assert [sum(one["cell"][key] for key in ("wins", "draws", "losses")) for one in third] == (
        [300] * 3
    )
