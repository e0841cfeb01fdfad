"""The adaptive mix: more of whom the learner does not beat, from clean matches alone."""

from __future__ import annotations

import json

import pytest

from league.players import Book, Player, PlayerKind
from league.stats.payoff import Counts
from league.stats.ratings import RatingTable
from matchmaker.sampling.draw import draw_table
from matchmaker.sampling.mixes import adapted_mix
from matchmaker.settings import MatchmakerSettings

MIX = {"snapshots": 7.0, "constant": 0.5, "based": 1.5, "random": 1.0}
MAIN = Player(name="main", game="brawl", kind=PlayerKind.LIVE)


def test_a_weight_grows_with_the_share_of_matches_not_won() -> None:
    met = {"constant": Counts(wins=90, losses=90), "based": Counts(wins=180)}
    adapted = adapted_mix(MIX, met, strength=4.0, prior_games=20.0)
    assert adapted["constant"] == pytest.approx(0.5 * (1 + 4 * 0.5))
    assert adapted["based"] == pytest.approx(1.5 * (1 + 4 * 10 / 200))
    assert (adapted["snapshots"], adapted["random"]) == (7.0, 1.0), "nothing is known of them"
    assert adapted_mix(MIX, met, strength=0.0, prior_games=20.0) == MIX


def test_draws_count_half_and_a_few_matches_say_little() -> None:
    drawn = adapted_mix(MIX, {"based": Counts(draws=60)}, 1.0, 10.0)["based"]
    assert drawn == pytest.approx(1.5 * 1.5)
    one, many = (
        adapted_mix(MIX, {"based": Counts(losses=n)}, 1.0, 10.0)["based"] for n in (1, 1000)
    )
    assert one == pytest.approx(1.5 * (1 + 6 / 11))
    assert many == pytest.approx(3.0, abs=0.02)


def league(results: dict[tuple[str, str], tuple[int, int]], train: tuple[int, int] = (0, 0)):
    """Players and books; `results` are clean (wins, losses) of a snapshot against a bot."""
    players = {"main": MAIN}
    for bot in ("constant", "based", "random"):
        players[bot] = Player(name=bot, game="brawl", kind=PlayerKind.BOT)
    for name in ("main@100", "main@200", "other@250", "main@300", "main@400"):
        players[name] = Player(name=name, game="brawl", kind=PlayerKind.SNAPSHOT, digest="d")
    tables = {book: RatingTable() for book in Book}
    for (snapshot, bot), (wins, losses) in results.items():
        for outcome, count in ((1.0, wins), (0.0, losses)):
            for _ in range(count):
                tables[Book.EVAL].payoff.add(snapshot, bot, outcome)
    for outcome, count in zip((1.0, 0.0), train, strict=True):
        for _ in range(count):
            tables[Book.TRAIN].payoff.add("main", "constant", outcome)
    return players, tables


def shares(players, tables, **settings) -> dict[str, float]:
    table = draw_table(
        MatchmakerSettings(mixes={"league": MIX}, **settings), MAIN, "league", players, tables
    )
    shares = json.loads(table.body_json)["shares"]
    assert dict(zip(table.shares.names, table.shares.probabilities, strict=True)) == shares
    return shares


def test_the_newest_two_snapshots_with_clean_matches_tell() -> None:
    results = {
        ("main@100", "constant"): (0, 1000),  # long ago
        ("main@200", "constant"): (20, 20),
        ("main@300", "constant"): (20, 20),
        ("other@250", "constant"): (0, 1000),  # another lineage
    }  # main@400 has none yet
    adapted = shares(*league(results), adaptive=4.0)
    total = 7.0 + 0.5 * 3 + 1.5 + 1.0
    assert adapted["constant"] == pytest.approx(0.5 * 3 / total)
    assert adapted["snapshots"] == pytest.approx(7.0 / total)
    longer = shares(*league(results), adaptive=4.0, adaptive_snapshots=3)
    assert longer["constant"] > adapted["constant"]


def test_training_matches_and_a_mix_that_does_not_adapt_change_nothing() -> None:
    plain = {name: weight / 10 for name, weight in MIX.items()}
    assert shares(*league({}, train=(0, 500)), adaptive=4.0) == pytest.approx(plain)
    assert shares(*league({("main@300", "constant"): (0, 60)})) == pytest.approx(plain)


def test_it_belongs_to_the_policy_that_is_logged() -> None:
    hashes = {
        MatchmakerSettings(**values).policy_hash()
        for values in ({}, {"adaptive": 1.0}, {"adaptive_snapshots": 5})
    }
    assert len(hashes) == 3
