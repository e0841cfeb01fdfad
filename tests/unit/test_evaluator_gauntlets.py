"""The opponents of a snapshot, and the matches that are missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import replace

import pytest

from evaluator.queue import Entry, compose, exploiters_to_meet, missing_pairs, next_gate
from evaluator.settings import EvaluatorSettings
from league.errors import ConfigError
from league.exploiters import CandidateGate, GateState, Generation, Patch
from league.players import Book, Player, PlayerKind, PlayerState, Rating, Role
from league.settings.base import lay_over

BOTS = ("constant", "clockwork")
SETTINGS = EvaluatorSettings(matches_per_opponent=10, milestone_matches=40)


def snapshot(
    step: int, *, milestone: bool = False, state: PlayerState = PlayerState.ACTIVE
) -> Player:
    parent = f"main@{step - 10}" if step > 10 else ""
    return Player(
        name=f"main@{step}",
        game="brawl",
        kind=PlayerKind.SNAPSHOT,
        state=state,
        parent=parent,
        digest=f"{step:064x}",
        step=step,
        milestone=milestone,
    )


def ratings(*players: Player) -> list[Rating]:
    return [
        Rating(
            player=p, mu=25.0 - i, sigma=1.0, score=22.0 - i, wins=0, draws=0, losses=0, rank=i + 1
        )
        for i, p in enumerate(players)
    ]


def opponents(plan: list[Entry], book: Book) -> list[tuple[str, int]]:
    return [(entry.opponent, entry.matches) for entry in plan if entry.book is book]


def test_an_ordinary_gauntlet_is_bots_parent_and_best() -> None:
    players = [snapshot(step) for step in (10, 20, 30, 40, 50)]
    bot = Player(name="constant", game="brawl", kind=PlayerKind.BOT)
    live = Player(name="main", game="brawl", kind=PlayerKind.LIVE)
    me = players[4]
    best_first = ratings(live, bot, me, players[0], players[3], players[1], players[2])
    plan = compose(me, [live, bot, *players], best_first, BOTS, SETTINGS)
    # The parent (40) is taken anyway, so the two best others are 10 and 20: never bots, live,
    # itself.
    assert opponents(plan, Book.EVAL) == [
        ("constant", 10),
        ("clockwork", 10),
        ("main@40", 10),
        ("main@10", 10),
        ("main@20", 10),
    ]
    assert opponents(plan, Book.GREEDY) == [("constant", 4), ("clockwork", 4)]
    assert [e.book for e in plan[:2]] == [Book.EVAL, Book.EVAL], (
        "curricula wait for the bots: they come first"
    )


def test_a_milestone_plays_longer_and_meets_the_oldest() -> None:
    players = [snapshot(step) for step in (10, 20, 30)]
    me = snapshot(40, milestone=True)
    plan = compose(me, [*players, me], ratings(players[2], players[1]), BOTS, SETTINGS)
    assert opponents(plan, Book.EVAL)[2:] == [("main@30", 40), ("main@20", 40), ("main@10", 40)]
    assert opponents(plan, Book.GREEDY) == [("constant", 20), ("clockwork", 20)]


def test_retired_parents_are_met_but_not_quarantined_or_retired_leaders() -> None:
    retired, quarantined = (
        snapshot(20, state=PlayerState.RETIRED),
        snapshot(10, state=PlayerState.QUARANTINED),
    )
    me = snapshot(30)
    plan = compose(me, [quarantined, retired, me], ratings(quarantined, retired), BOTS, SETTINGS)
    assert [name for name, _ in opponents(plan, Book.EVAL)] == [*BOTS, "main@20"]
    child = snapshot(20)  # of the quarantined one
    plan = compose(child, [quarantined, child], [], BOTS, SETTINGS)
    assert [name for name, _ in opponents(plan, Book.EVAL)] == [*BOTS]
    other = snapshot(40)
    plan = compose(other, [quarantined, retired, me, other], ratings(retired), BOTS, SETTINGS)
    assert [name for name, _ in opponents(plan, Book.EVAL)] == [*BOTS, "main@30"]


def test_what_the_log_counts_stands_for_the_first_pairs() -> None:
    entry = Entry("based", Book.EVAL, 6)
    for counted, pairs in ((0, [0, 1, 2]), (2, [1, 2]), (3, [1, 2]), (6, []), (100, [])):
        counts = {("main@10", "based", Book.EVAL): counted, ("main@20", "based", Book.EVAL): 6}
        missing = missing_pairs("main@10", [entry], counts)
        assert missing == [(entry, pair) for pair in pairs], counted


def test_whom_a_curriculum_waits_for_comes_first_and_more_often() -> None:
    settings = EvaluatorSettings(
        matches_per_opponent=10, matches_by_opponent={"b": 40}, milestone_matches=60
    )

    def plan(milestone: bool) -> list[tuple[str, Book, int]]:
        one = snapshot(10, milestone=milestone)
        return [
            (e.opponent, e.book, e.matches)
            for e in compose(one, [one], [], ["a", "b", "c"], settings)
        ]

    sampled = [("b", Book.EVAL, 40), ("a", Book.EVAL, 10), ("c", Book.EVAL, 10)]
    assert plan(False) == [
        *sampled,
        ("b", Book.GREEDY, 20),
        ("a", Book.GREEDY, 4),
        ("c", Book.GREEDY, 4),
    ]
    assert {matches for _, book, matches in plan(True) if book is Book.EVAL} == {60}
    with pytest.raises(ConfigError, match="even"):
        lay_over({"evaluator": {"matches_per_opponent": 7}})
    for count in (7, 0):
        with pytest.raises(ConfigError, match=f"b = {count}"):
            lay_over({"evaluator": {"matches_by_opponent": {"b": count}}})


def gate(
    candidate: str, state: GateState = GateState.OPEN, *, exploiters: bool = False
) -> CandidateGate:
    generation = None
    if exploiters:
        role = Role.MAIN_EXPLOITER
        generation = Generation(learner="x", number=1, player="x.g1", role=role, victims=())
    return CandidateGate(candidate=candidate, generation=generation, state=state, victims=())


def test_exploiters_gates_come_first_and_mains_take_turns_with_gauntlets() -> None:
    first, second, exploiters = gate("main@1"), gate("main@2"), gate("x.g1@1", exploiters=True)
    assert next_gate([], False) is None
    assert next_gate([first, second], False) is first
    assert next_gate([first, second], True) is None
    for gauntlet_is_due in (False, True):
        assert next_gate([first, exploiters], gauntlet_is_due) is exploiters


def accepted_ones(count: int, patched: Collection[int] = ()) -> list[CandidateGate]:
    """Exploiters x.g1@0, x.g1@1 ... in order of their acceptance, some patched by main."""
    patch = Patch(main="main", snapshot="main@1", wins=20, draws=0, losses=0, posterior=0.999)
    return [
        replace(
            gate(f"x.g1@{number}", GateState.ACCEPTED, exploiters=True),
            decided_at=float(number),
            patches=(patch,) if number in patched else (),
        )
        for number in range(count)
    ]


def test_whom_it_has_yet_to_beat_goes_before_the_patched_and_the_newest_first() -> None:
    gates = accepted_ones(5, patched={4, 1})
    met = exploiters_to_meet(gates, snapshot(3), 10)
    assert met == [f"x.g1@{number}" for number in (3, 2, 0, 4, 1)]
    assert exploiters_to_meet(gates, snapshot(3), 4) == met[:4]
    assert exploiters_to_meet(gates, snapshot(3), 0) == []


@pytest.mark.parametrize("patched", [set[int](), set(range(12))], ids=["unbeaten", "patched"])
def test_of_too_many_exploiters_the_newest_are_met_always_and_the_others_in_turns(
    patched: set[int],
) -> None:
    gates = accepted_ones(12, patched)
    met = Counter[str]()
    for step in range(400):
        of_one = exploiters_to_meet(gates, snapshot(step), 4)
        assert of_one == exploiters_to_meet(list(reversed(gates)), snapshot(step), 4), (
            "a restart draws the same"
        )
        assert len(set(of_one)) == 4
        met.update(of_one)
    assert met["x.g1@11"] == met["x.g1@10"] == 400
    older = [met[f"x.g1@{number}"] for number in range(10)]
    assert min(older) > 50, older  # 80 on average, with a deviation of 8
    assert max(older) < 110, older
