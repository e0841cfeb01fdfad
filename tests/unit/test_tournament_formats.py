"""Pairings of tournaments: known brackets, what holds whoever wins, and ranks."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from evaluator.tournament.entries import Entry
from evaluator.tournament.formats import (
    Encounter,
    Format,
    Key,
    encounters,
    places,
    scores,
    swiss_rounds,
)
from evaluator.tournament.page import render
from evaluator.tournament.playing import Plan, Played, Tournament
from evaluator.tournament.standings import judge
from league.contest.members import Member
from league.games.settings import GameSettings

ROUND_ROBIN, SWISS, ELIMINATION = Format


def played(form: Format, entrants: int, rounds: int = 0, win=None) -> tuple[list[Encounter], dict]:
    """Plays to the end. `win` gives a result for the first entrant; by default the better seed
    wins.
    """
    results = dict[Key, float]()
    while True:
        found = encounters(form, entrants, rounds, results)
        new = [one for one in found if one.second is not None and one.key not in results]
        if not new:
            return found, results
        for one in new:
            assert one.first != one.second
            assert 0 <= one.first < entrants
            assert 0 <= one.second < entrants
            results[one.key] = win(one) if win else float(one.first < one.second)


def test_a_round_robin_pairs_everybody_in_each_round() -> None:
    found, _ = played(ROUND_ROBIN, 4, 3)
    pairs = Counter((one.first, one.second) for one in found)
    assert pairs == dict.fromkeys([(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)], 3)
    assert [one.title for one in found[5:7]] == ["Round 1", "Round 2"]


def test_a_swiss_round_pairs_entrants_of_the_same_points() -> None:
    found, results = played(SWISS, 8, 3)
    rounds = [
        [(one.first, one.second) for one in found if one.stage == stage] for stage in range(3)
    ]
    assert rounds[0] == [(0, 4), (1, 5), (2, 6), (3, 7)], "the upper half meets the lower half"
    assert rounds[1] == [(0, 2), (1, 3), (4, 6), (5, 7)]
    assert rounds[2] == [(0, 1), (2, 4), (3, 5), (6, 7)]
    assert scores(8, found, results) == [3, 2, 2, 2, 1, 1, 1, 0]
    assert swiss_rounds(8) == 3
    assert swiss_rounds(9) == 4


@pytest.mark.parametrize("entrants", [2, 3, 5, 6, 11, 16, 23])
def test_a_swiss_tournament_repeats_no_pair_and_spreads_its_byes(entrants: int) -> None:
    rng = np.random.default_rng(entrants)
    rounds = swiss_rounds(entrants)
    found, results = played(SWISS, entrants, rounds, lambda _: float(rng.choice([0, 0.5, 1])))
    pairs = Counter(frozenset((one.first, one.second)) for one in found)
    assert max(pairs.values()) == 1
    for stage in range(rounds):
        now = [one for one in found if one.stage == stage]
        seen = [n for one in now for n in (one.first, one.second) if n is not None]
        assert sorted(seen) == list(range(entrants)), "everybody plays in each round, or has a bye"
    byes = [one.first for one in found if one.second is None]
    assert len(byes) == len(set(byes)) == rounds * (entrants % 2)
    assert sum(scores(entrants, found, results)) == len(found)


def test_pairs_meet_again_only_if_there_is_no_other_way() -> None:
    found, _ = played(SWISS, 4, 5)
    pairs = Counter(frozenset((one.first, one.second)) for one in found)
    assert len(pairs) == 6
    assert len(found) == 10


def test_the_bracket_of_eight_if_the_better_seed_wins() -> None:
    found, results = played(ELIMINATION, 8)
    stages: dict[str, list[tuple[int, int | None]]] = {}
    for one in found:
        stages.setdefault(one.title, []).append((one.first, one.second))
    assert stages == {
        "Winners, round 1": [(0, 7), (3, 4), (1, 6), (2, 5)],
        "Losers, round 1": [(4, 7), (5, 6)],
        "Winners, round 2": [(0, 3), (1, 2)],
        "Losers, round 2": [(2, 4), (3, 5)],
        "Losers, round 3": [(2, 3)],
        "Winners, round 3": [(0, 1)],
        "Losers, round 4": [(1, 2)],
        "Final": [(0, 1)],
    }
    last = places(found, results)
    assert sorted(last, key=last.__getitem__, reverse=True)[:4] == [0, 1, 2, 3]


@pytest.mark.parametrize("entrants", range(2, 20))
def test_everybody_but_the_winner_loses_twice(entrants: int) -> None:
    rng = np.random.default_rng(entrants)
    for _ in range(5):
        found, results = played(ELIMINATION, entrants, win=lambda _: float(rng.integers(2)))
        assert len({one.key for one in found}) == len(found)
        lost = Counter(one.second if results[one.key] else one.first for one in found)
        last = places(found, results)
        winner = max(last, key=last.__getitem__)
        assert lost[winner] < 2
        assert {n: lost[n] for n in range(entrants) if n != winner} == dict.fromkeys(
            set(range(entrants)) - {winner}, 2
        )
        finals = [one for one in found if one.title.startswith("Final")]
        assert len(finals) == 1 + lost[winner], "the second part only if both have lost once"


def test_a_drawn_encounter_counts_for_the_better_seed() -> None:
    found, results = played(ELIMINATION, 4, win=lambda _: 0.5)
    last = places(found, results)
    assert sorted(last, key=last.__getitem__, reverse=True) == [0, 1, 2, 3]


def test_a_drawn_final_counts_for_the_unbeaten() -> None:
    found, results = played(ELIMINATION, 2, win=lambda one: 0.5 if one.title == "Final" else 0.0)
    assert [(one.title, one.first) for one in found] == [("Winners, round 1", 0), ("Final", 1)]
    assert places(found, results)[1] > places(found, results)[0]


def test_equal_entrants_share_a_rank_whatever_their_order() -> None:
    """Of four entrants one beats all, one loses all, and the others have a match each."""
    for names in (["best", "even", "same", "last"], ["last", "same", "even", "best"]):
        strength = {"best": 2, "even": 1, "same": 1, "last": 0}
        entries = [
            Entry(member=Member(name=name, bot=0), kind="bot", source=name) for name in names
        ]
        plan = Plan(form=ROUND_ROBIN, rounds=1, matches=2, seed=0, greedy=False, frame_skip=1)
        matches = []
        for one in encounters(ROUND_ROBIN, 4, 1, {}):
            assert one.second is not None
            gap = strength[names[one.first]] - strength[names[one.second]]
            for number in (0, 1):
                won = float(number == 0) if gap == 0 else float(gap > 0)
                key = {"stage": 0, "first": one.first, "second": one.second}
                matches.append(Played(**key, number=number, seed=0, outcome=won))
        outcome = judge(Tournament(Path("none"), plan, GameSettings(), entries, matches))
        ranks = {one.entrant: one.rank for one in outcome.standings}
        assert ranks == {"best": 1, "even": 2, "same": 2, "last": 4}
        page = render(outcome)
        assert "2. even" in page
        assert "2. same" in page
