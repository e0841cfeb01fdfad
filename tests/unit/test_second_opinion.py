"""The fit beside a leaderboard: intervals on its zero point, and on whom TrueSkill and the fit
disagree.
"""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from league.players import Player, PlayerKind, Rating
from league.stats.payoff import PayoffTable
from league.stats.ratings.agreement import LEAST_GAP
from league.stats.ratings.beside import second_opinion
from league.stats.ratings.bradley_terry import fit_cells

STRENGTHS = {"a": 40, "b": 30, "c": 20, "d": 10}
"""Wins of each against each other are in these proportions."""


def payoffs() -> PayoffTable:
    table = PayoffTable()
    for (one, strong), (other, weak) in itertools.combinations(STRENGTHS.items(), 2):
        for outcome, games in ((1.0, strong), (0.0, weak)):
            for _ in range(games * 4):
                table.add(one, other, outcome)
    return table


def rating(name: str, mu: float, *, pinned: bool = False) -> Rating:
    player = Player(name=name, game="brawl", kind=PlayerKind.BOT)
    counts = {"wins": 1, "draws": 0, "losses": 0}
    return Rating(player=player, mu=mu, sigma=0.5, score=mu, rank=1, pinned=pinned, **counts)


def test_who_is_rated_as_the_fit_says_is_no_disagreement_whatever_the_zero_point() -> None:
    cells = payoffs().cells()
    league = fit_cells(cells)
    told = [
        rating(name, 7.0 + float(league.fit.rating_N[n])) for n, name in enumerate(league.names)
    ]
    opinion = second_opinion(told, cells)
    assert opinion.gaps == {}
    assert opinion.words() == "TrueSkill and the fit of all games agree on everybody."
    for n, one in enumerate(told):
        found, plain = opinion.intervals[one.player.name], league.fit.interval(n)
        assert found.estimate == pytest.approx(one.mu)
        assert found.high - found.low == pytest.approx(plain.high - plain.low)
        assert found.low < one.mu < found.high


def test_who_is_rated_otherwise_is_named_with_the_points() -> None:
    cells = payoffs().cells()
    league = fit_cells(cells)
    off = {"a": 3.0, "d": -4.0, "b": LEAST_GAP * 0.9}
    told = [
        rating(name, float(league.fit.rating_N[n]) + off.get(name, 0.0))
        for n, name in enumerate(league.names)
    ]
    told = [*told, rating("e", 11.0)]  # has not played
    opinion = second_opinion(told, cells)
    zero = LEAST_GAP * 0.45  # the median of what all are off
    assert opinion.gaps == pytest.approx({"d": -4.0 - zero, "a": 3.0 - zero})
    assert list(opinion.gaps) == ["d", "a"]
    assert opinion.words() == "TrueSkill and the fit of all games disagree on 2 players: d, a."
    assert "e" not in opinion.intervals
    many = replace(opinion, gaps=dict.fromkeys("abcdefg", 1.0))
    assert many.words().endswith("disagree on 7 players: a, b, c, d, e and 2 more.")


def test_anchors_hold_the_zero_point() -> None:
    cells = payoffs().cells()
    league = fit_cells(cells, {"a": 40.0})
    told = [
        rating(
            name, 40.0 if name == "a" else float(league.fit.rating_N[n]) + 5.0, pinned=name == "a"
        )
        for n, name in enumerate(league.names)
    ]
    opinion = second_opinion(told, cells)
    assert opinion.gaps == pytest.approx({"b": 5.0, "c": 5.0, "d": 5.0})
    assert opinion.intervals["a"].low == opinion.intervals["a"].high == 40.0
