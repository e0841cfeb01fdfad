"""The fit next to a leaderboard: its intervals, and the players on which the two disagree."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from league.players import Player, PlayerKind, Rating
from league.stats.payoff import PayoffTable
from league.stats.ratings.belief import Drift
from league.stats.ratings.cross_check import LEAST_GAP, cross_check
from league.stats.ratings.fit import fit_cells
from league.stats.ratings.table import RatingTable

STRENGTHS = {"a": 40, "b": 30, "c": 20, "d": 10}
"""Each player's wins against each other are in these proportions."""


@pytest.fixture(scope="module")
def cells():
    table = PayoffTable()
    for (one, strong), (other, weak) in itertools.combinations(STRENGTHS.items(), 2):
        for outcome, games in ((1.0, strong), (0.0, weak)):
            for _ in range(games * 4):
                table.add(one, other, outcome)
    return table.cells()


def ratings(cells, offsets, pinned=()):
    fit = fit_cells(cells)
    found = {name: float(fit.rating_N[n]) for n, name in enumerate(fit.names)}
    return [
        Rating(
            player=Player(name=name, game="brawl", kind=PlayerKind.BOT),
            mu=mu + offsets.get(name, 0.0),
            sigma=0.5,
            score=mu,
            wins=1,
            draws=0,
            losses=0,
            rank=1,
            pinned=name in pinned,
        )
        for name, mu in {**found, "unplayed": 11.0}.items()
    ]


def test_agreement_does_not_depend_on_the_zero_point(cells):
    shifted = ratings(cells, dict.fromkeys(STRENGTHS, 7.0))
    check, fit = cross_check(shifted, cells, []), fit_cells(cells)
    assert check.gaps == {}
    assert set(check.intervals) == set(STRENGTHS), "one that has not played has no interval"
    for rating in shifted[:-1]:
        name = rating.player.name
        found, plain = check.intervals[name], fit.interval(fit.number(name))
        assert found.value == pytest.approx(rating.mu)
        assert found.high - found.low == pytest.approx(plain.high - plain.low)


def test_disagreement_needs_a_missed_interval_and_a_gap_that_matters(cells):
    check = cross_check(ratings(cells, {"a": 5.0, "d": -6.0, "b": LEAST_GAP * 0.9}), cells, [])
    assert list(check.gaps) == ["d", "a"]
    assert min(map(abs, check.gaps.values())) >= LEAST_GAP
    assert check.gaps["d"] < 0.0 < check.gaps["a"]
    assert check.words().endswith("2 players: d, a.")
    few = [cell for cell in cells if cell.wins <= 40]
    assert cross_check([], few, []).gaps == {}
    assert round(LEAST_GAP, 2) == 0.74


def test_draws_of_another_kind_are_warned_of():
    """Each pair plays 2,000 games: a third is drawn at any gap, or by Davidson's model."""
    even, davidson = PayoffTable(), PayoffTable()
    for (one, strong), (other, weak) in itertools.combinations(STRENGTHS.items(), 2):
        drawn = 2_000 * strong**0.5 * weak**0.5 / (strong + weak + strong**0.5 * weak**0.5)
        for table, draws in ((even, 667), (davidson, round(drawn))):
            wins = round((2_000 - draws) * strong / (strong + weak))
            for outcome, games in ((1.0, wins), (0.5, draws), (0.0, 2_000 - draws - wins)):
                for _ in range(games):
                    table.add(one, other, outcome)
    warned, fine = (cross_check([], table.cells(), []) for table in (even, davidson))
    assert warned.warning
    assert warned.words() == f"{fine.words()} {warned.warning}", "draws say nothing of the players"
    assert fine.warning == ""


def test_anchors_fix_the_zero_point(cells):
    offset = 40.0 - fit_cells(cells, {"a": 40.0}).rating_N[0]
    assert offset == 0.0
    anchored = ratings(cells, {}, pinned=("a",))
    shift = anchored[0].mu
    moved = ratings(cells, {"b": 9.0, "c": 9.0, "d": 9.0}, pinned=("a",))
    check = cross_check(moved, cells, [])
    assert len(check.gaps) >= 2, "a line through the anchor may meet one of them"
    assert "a" not in check.gaps
    assert min(check.gaps.values()) > LEAST_GAP
    assert check.intervals["a"].low == check.intervals["a"].high == shift


SNAPSHOTS, BOTS = [f"main@{step}000" for step in range(50, 1_050, 50)], ["weak", "fair", "good"]


def checked(seed, flipped=0.0):
    """Rates a learner's snapshots by 24 clean matches each, as they come; training matches are fit
    too. A share of the batches of clean matches is reported the wrong way round.
    """
    rng, table, climb = np.random.default_rng(seed), RatingTable(Drift()), PayoffTable()
    strength = {name: 14.0 + 0.8 * n for n, name in enumerate(SNAPSHOTS)}
    strength |= {"weak": 15.0, "fair": 22.0, "good": 28.0}
    players = [Player(name=bot, game="brawl", kind=PlayerKind.BOT) for bot in BOTS]

    def wins(one, other, of):
        return float(rng.random() < 1.0 / (1.0 + math.exp((of[other] - of[one]) / 3.44)))

    for n, name in enumerate(SNAPSHOTS):
        parent, step = SNAPSHOTS[n - 1] if n else "", int(name[5:])
        table.inherit(name, parent, step)
        players.append(
            Player(
                name=name,
                game="brawl",
                kind=PlayerKind.SNAPSHOT,
                parent=parent,
                digest=name,
                step=step,
            )
        )
        for bot in BOTS:
            for _ in range(40):
                climb.count(parent or "main@0", bot, wins(name, bot, strength))
        met = [*BOTS, parent] if parent else BOTS
        for other in met:
            is_wrong = rng.random() < flipped
            for _ in range(24 // len(met)):
                outcome = wins(name, other, strength)
                table.fold(name, other, 1.0 - outcome if is_wrong else outcome)
    known = {player.name: player for player in players}
    return cross_check(table.leaderboard(known), table.payoff.cells(), players, climb.cells())


@pytest.mark.long
def test_a_healthy_league_agrees_and_a_broken_one_does_not():
    leagues = [checked(seed) for seed in range(8)]
    assert sum(bool(one.gaps or one.warning) for one in leagues) <= 1
    for share in (0.25, 0.5):
        leagues = [checked(seed, flipped=share) for seed in range(4)]
        assert all(one.warning for one in leagues)
