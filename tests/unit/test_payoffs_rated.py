"""In games with payoffs players are compared by what matches pay, wherever the log is read."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from evaluator.benchmark.comparison import Finding, compare
from evaluator.reports.players import TRAINING, ancestors, drops, headline, met_in_log
from league.contest.league import League
from league.contest.members import Finder
from league.games.settings import GameSettings
from league.players import Player, PlayerKind, Rating
from league.stats.gates import Gate, MultinomialTest
from league.stats.payoff import Stakes, paid_each
from league.stats.ratings import RatingTable
from league.stats.ratings.belief import Belief, rate, rate_points
from league.stats.ratings.fit import fit_cells
from league.stats.structure.mixtures import nash_mixture
from league.stats.structure.study import study
from league.stats.structure.table import table_of

STRENGTH = {"strong": 1.0, "middle": 0.0, "weak": -1.0, "maniac": -2.5}
"""What a match pays against a player of strength 0 on average."""


def league_of_four(matches: int = 60) -> RatingTable:
    """Everybody meets everybody; the maniac wins four of five matches and loses the most."""
    rng, table = np.random.default_rng(5), RatingTable()
    pairs = [pair for pair in combinations(STRENGTH, 2) for _ in range(matches)]
    for first, second in rng.permutation(pairs).tolist():
        mean = STRENGTH[first] - STRENGTH[second]
        if second == "maniac":  # it takes 1 in four of five
            paid = -1.0 if rng.random() < 0.8 else 5.0 * mean + 4.0
        else:
            paid = 3.0 if rng.random() < 0.5 + mean / 6.0 else -3.0
        table.fold(first, second, float(paid > 0.0), margin=2.0 * paid)
    return table


@pytest.fixture(scope="module")
def table() -> RatingTable:
    return league_of_four()


def rated(table: RatingTable) -> list[Rating]:
    players = {name: Player(name=name, game="leduc", kind=PlayerKind.BOT) for name in STRENGTH}
    return table.leaderboard(players)


def test_the_order_is_that_of_payoffs_everywhere(table: RatingTable) -> None:
    order, cells = list(STRENGTH), table.payoff.cells()
    wins = {name: sum(cell.wins for cell in cells if cell.row == name) for name in order}
    assert max(wins, key=wins.__getitem__) == "maniac"
    paid = paid_each(cells)
    assert sorted(order, key=lambda name: -paid[name]) == order
    assert [one.player.name for one in rated(table)] == order
    fit = fit_cells(cells)
    assert [fit.names[n] for n in np.argsort(-fit.rating_N)] == order
    known = table_of(cells, rated(table))
    assert nash_mixture(known) == {"strong": pytest.approx(1.0)}
    found = study(known, [([0], [3])], draws=20)
    assert [known.names[n] for n in found.order] == order
    # values are payoffs of a match, the fit's and TrueSkill's predictions mixed in
    assert float(found.performances[0].value) == pytest.approx(3.5, abs=0.8)
    assert float(found.score.value[3]) == pytest.approx(-3.5, abs=0.8)


def test_without_payoffs_and_with_payoffs_of_one_size_players_are_rated_alike() -> None:
    """A stake that never varies is a win or a loss, to TrueSkill but for its draws."""
    table = RatingTable()
    rng = np.random.default_rng(1)
    for _ in range(200):
        outcome = float(rng.random() < 0.7)
        table.fold("a", "b", outcome, margin=10.0 * outcome - 5.0)
    stakes, cell = table.payoff.stakes, table.payoff.cell("a", "b")
    assert stakes.stake == pytest.approx(2.5)
    assert stakes.counted(cell) == pytest.approx((cell.wins, 0.0, cell.losses))
    one, other = Belief(27.0, 5.0), Belief(24.0, 3.0)
    for points in (1.0, 0.0):
        stepped = rate_points(one, other, points, 1.0)
        exact = rate(one, other, points, draw_probability=1e-9)
        assert [x.mu for x in stepped] == pytest.approx([x.mu for x in exact], abs=1e-6)


def test_beliefs_stay_finite_whatever_is_paid() -> None:
    one, other = Belief(1000.0, 8.0), Belief(-1000.0, 1e-6)
    for points, worth in ((-500.0, 1e4), (500.0, 1e-9), (0.5, 1.0)):
        for belief in rate_points(one, other, points, worth):
            assert math.isfinite(belief.mu)
            assert 0.0 < belief.sigma <= 8.0


def test_payoffs_are_folded_to_the_same_bits_after_a_restart(table: RatingTable) -> None:
    again = RatingTable.restored(json.loads(json.dumps(table.state())))
    whole = league_of_four()
    for one in (again, whole):
        one.fold("weak", "maniac", 0.0, margin=-0.7)
    assert json.dumps(again.state()) == json.dumps(whole.state())


def test_the_mean_of_few_equal_payments_keeps_a_wide_interval(table: RatingTable) -> None:
    few = RatingTable()
    for _ in range(4):
        few.fold("a", "b", 1.0, margin=2.0)
        few.fold("a", "c", 0.0, margin=-20.0)
    mean = Stakes.of(few.payoff.cells()).mean(few.payoff.cell("a", "b"))
    assert mean is not None
    assert mean.low < -1.0 < mean.value == 1.0 < 3.0 < mean.high
    cell = table.payoff.cell("strong", "weak")
    mean = Stakes.of(table.payoff.cells()).mean(cell)
    assert mean is not None
    assert mean.value == pytest.approx(cell.paid / cell.games)
    assert mean.high - mean.low == pytest.approx(4 * 3.0 / math.sqrt(60), rel=0.2)


def test_reports_say_whom_a_player_beats_by_what_matches_pay() -> None:
    """It wins most matches against the bot and all older selves, and is paid less than nothing."""
    table, names = RatingTable(), ["main@1", "main@2", "bot"]
    for _ in range(50):
        for name in names:
            for margin in (2.0, 2.0, 2.0, -20.0 if name != "main@1" else 2.0):
                table.fold("main@9", name, float(margin > 0), margin=margin)
    kinds = dict.fromkeys(names, PlayerKind.SNAPSHOT) | {"bot": PlayerKind.BOT}
    players = {name: Player(name=name, game="leduc", kind=kinds[name]) for name in names}
    met = met_in_log(table.payoff.cells(rows=["main@9"]), players, 1, 10.0)
    assert [one.opponent for one in drops(ancestors(met))] == ["main@2"]
    said = headline("main@9", met, [], exact=True, payoffs="chips")
    assert "0 of 1" in said["bots"]
    assert "-1.75 chips" in said["bots"]
    assert "1 of 2" in said["earlier selves"]
    assert {one.group for one in met} >= {TRAINING}


@pytest.mark.parametrize("bound", [True, False])
def test_a_comparison_finds_who_is_paid_more(monkeypatch: pytest.MonkeyPatch, bound: bool) -> None:
    """`caller` wins half of its hands with `nash` in Kuhn's game, and pays 1/6 a hand."""
    if not bound:
        spec = GameSettings.spec
        monkeypatch.setattr(
            GameSettings, "spec", lambda self: replace(spec(self), largest_payoff=None)
        )
    finder = Finder(League(), "kuhn")
    gate = Gate(test=MultinomialTest(elo0=0, elo1=30))
    found = compare(finder, ("caller", "nash"), gate, most=4000, seed=2)
    assert found.finding is Finding.SECOND
    assert found.payoff is not None
    assert found.payoff.low < -1 / 6 < found.payoff.high < 0.0
    assert re.search(r"nash.*caller.*\b0\.\d+ chips", found.sentence())
