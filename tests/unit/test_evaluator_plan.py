"""Which matches are due: by what the log counts, who there is, and what was asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace

import pytest

from evaluator.clean.plan import Batch, Facts, Plan, exploiters_to_meet, next_work
from evaluator.settings import EvaluatorSettings
from league.errors import ConfigError
from league.evaluations import Evaluation
from league.exploiters import Generation, Patch
from league.gates import CandidateGate, GateState
from league.players import Book, Player, PlayerKind, PlayerState, Rating, Role
from league.settings.base import lay_over
from league.stages import CurriculumStatus, Place, Stage

BOTS = ("constant", "based", "random")
SETTINGS = EvaluatorSettings(matches_per_snapshot=80, milestone_matches=40)  # 40 of them at once


def snapshot(step: int, **changes: object) -> Player:
    values: dict = {
        "name": f"main@{step}",
        "parent": f"main@{step - 10}" if step > 10 else "",
        "digest": f"{step:064x}",
        "step": step,
        "role": Role.MAIN,
    }
    return Player(game="brawl", kind=PlayerKind.SNAPSHOT, **(values | changes))


def bot(name: str, **changes: bool) -> Player:
    return Player(name=name, game="brawl", kind=PlayerKind.BOT, **changes)


def ratings(*players: Player) -> list[Rating]:
    """In this order, four points apart."""
    return [
        Rating(
            player=player,
            mu=45.0 - 4.0 * place,
            sigma=1.0,
            score=42.0 - 4.0 * place,
            wins=1,
            draws=0,
            losses=1,
            rank=place + 1,
        )
        for place, player in enumerate(players)
    ]


def plan_of(*players: Player, counts: dict | None = None, **facts: object) -> Plan:
    members = {one.name: one for one in (*map(bot, BOTS), *players)}
    both = dict(counts or {})
    both |= {(two, one, book): games for (one, two, book), games in both.items()}
    return Plan(Facts(players=members, counts=both, **facts), SETTINGS, BOTS)  # type: ignore[arg-type]


def firsts(plan: Plan) -> list[Batch]:
    return plan.batches()[1]


def matches(batch: Batch, book: Book = Book.EVAL) -> dict[str, int]:
    return {one.opponent: 2 * one.pairs for one in batch.entries if one.book is book}


def test_a_new_snapshot_meets_neighbours_the_strongest_and_bots_of_its_strength() -> None:
    five = [snapshot(step) for step in (10, 20, 30, 40, 50)]
    board = ratings(bot("based"), *five[1::-1], five[3], bot("random"), five[2], bot("constant"))
    plan = plan_of(*five, ratings=board)
    newest = firsts(plan)[0]
    assert newest.subject == "main@50"
    assert matches(newest) == {
        "main@40": 6,
        "main@30": 2,
        "main@20": 4,
        "main@10": 4,
        "random": 8,  # one place after the parent, where the others are three away
        "based": 8,
        "constant": 8,
    }
    assert sum(matches(newest).values()) == SETTINGS.first_matches == 40


def test_the_newest_snapshot_comes_first_and_each_is_done_with_its_number_of_matches() -> None:
    three = [snapshot(step) for step in (10, 20, 30)]
    counts = {
        ("main@30", "based", Book.EVAL): 38,
        ("main@20", "based", Book.EVAL): 30,
        ("main@20", "main@10", Book.EVAL): 10,
        ("main@10", "based", Book.GREEDY): 40,
    }
    plan = plan_of(*three, counts=counts)
    assert [batch.subject for batch in firsts(plan)] == ["main@30", "main@10"]
    assert [one.name for one in plan.evaluated] == ["main@20"]
    assert matches(firsts(plan)[0]) == {"main@20": 2}, "what it lacks in all, and no more"
    assert sum(matches(firsts(plan)[1]).values()) == 30


def test_a_first_snapshot_without_anybody_else_spreads_over_the_bots() -> None:
    (only,) = firsts(plan_of(snapshot(10)))
    assert matches(only) == {"constant": 16, "based": 12, "random": 12}
    lonely = Plan(Facts(players={"main@10": snapshot(10)}, counts={}), SETTINGS, ())
    assert lonely.batches() == [[], [], []]


def test_whom_nobody_may_meet_is_left_out() -> None:
    quarantined, retired = PlayerState.QUARANTINED, PlayerState.RETIRED
    parent = snapshot(20, state=quarantined)
    before = snapshot(10, state=retired)
    candidate = snapshot(35, name="x.g1@35", role=Role.MAIN_EXPLOITER, state=PlayerState.CANDIDATE)
    plan = plan_of(before, parent, snapshot(30), candidate, ratings=ratings(parent, before))
    assert [batch.subject for batch in firsts(plan)] == ["main@30", "main@10"]
    assert matches(firsts(plan)[0]).keys() == {*BOTS, "main@10"}, "retired neighbours still play"
    apart = plan_of(
        before, snapshot(20), can_meet=lambda one, other: {one, other} != {"main@10", "main@20"}
    )
    assert matches(firsts(apart)[0]).keys() == set(BOTS)


def test_the_bot_that_a_curriculum_waits_for_is_always_among_the_first() -> None:
    stage = Stage(name="constant", mix="constant", until_opponent="constant")
    status = CurriculumStatus(player="main", stages=(stage,), place=Place())
    board = ratings(snapshot(10), bot("based"), bot("random"), bot("constant"))
    plan = plan_of(snapshot(10), snapshot(20), ratings=board, curricula=[status])
    assert matches(firsts(plan)[0])["constant"] == 8


def test_imported_snapshots_are_met_like_bots_and_play_nothing_of_their_own() -> None:
    guest = snapshot(90, name="other:main@90", parent="")
    file = snapshot(70, name="file:0a1b2c3d4e5f@70", parent="")
    plan = plan_of(guest, file, snapshot(10))
    assert [batch.subject for batch in firsts(plan)] == ["main@10"]
    assert matches(firsts(plan)[0]).keys() == {*BOTS, guest.name}, "a file is met on request alone"


def test_a_milestone_meets_every_bot_also_greedily_and_its_ancestors() -> None:
    six = [snapshot(step) for step in (10, 20, 30, 40, 50, 60)]
    plan = plan_of(*six, snapshot(70, milestone=True))
    (batch,) = plan.batches()[2]
    assert matches(batch) == dict.fromkeys(BOTS, 40) | {
        "main@10": 20,
        "main@20": 20,
        "main@40": 20,
        "main@50": 20,
    }
    assert matches(batch, Book.GREEDY) == dict.fromkeys(BOTS, 20)
    assert plan_of(*six).batches()[2] == []


def test_what_the_log_counts_is_not_played_again() -> None:
    for counted, pairs in ((0, 20), (2, 19), (3, 19), (38, 1), (39, 1), (40, None), (100, None)):
        counts = {("main@10", "based", Book.EVAL): counted}
        (batch,) = plan_of(snapshot(10, milestone=True), counts=counts).batches()[2]
        found = {one.opponent: one.pairs for one in batch.entries if one.book is Book.EVAL}
        assert found.get("based") == pairs, counted


def asked(number: int, matches: int, player: str = "main@10", book: Book = Book.EVAL) -> Evaluation:
    return Evaluation(
        number=number, player=player, opponents=("based",), matches=matches, book=book, by="me"
    )


def test_requests_are_played_in_their_order_and_a_long_one_in_parts() -> None:
    requests = [asked(7, 1000), asked(9, 10, "based=3,random=1"), asked(11, 4, book=Book.GREEDY)]
    counts = {("main@10", "based", Book.EVAL): 100}
    asked_for = plan_of(snapshot(10), requests=requests, counts=counts).batches()[0]
    assert [len(batch.entries) for batch in asked_for] == [1, 2, 1]
    (long,) = asked_for[0].entries
    assert (long.until, long.pairs) == (228, 64)
    assert asked_for[2].entries[0].book is Book.GREEDY


def test_the_budget_counts_all_clean_matches() -> None:
    counts = {("main@10", "based", Book.EVAL): 30, ("main@20", "based", Book.GREEDY): 12}
    assert plan_of(snapshot(10), snapshot(20), counts=counts).budget == 2 * 80 - 42
    assert plan_of(snapshot(10), counts={("main@10", "based", Book.EVAL): 99}).budget == 0
    milestone = snapshot(20, milestone=True)
    assert plan_of(snapshot(10), milestone, counts=counts).budget == 80 - 30, "on top"
    counts = {("main@20", "based", Book.EVAL): 40 + 50, ("main@20", "main@10", Book.EVAL): 20 + 6}
    assert plan_of(snapshot(10), milestone, counts=counts).budget == 80 - 50 - 6, "its own are"


def test_pairs_that_were_chosen_meet_so_many_times_more() -> None:
    plan = plan_of(snapshot(10), counts={("main@10", "based", Book.EVAL): 7})
    batch = plan.most_telling({("main@10", "based"): 4, ("main@10", "random"): 2})
    assert batch is not None
    assert [(one.until, one.pairs) for one in batch.entries] == [(11, 2), (2, 1)]
    assert plan.most_telling({}) is None


def test_settings_that_no_pair_of_matches_fits_are_refused() -> None:
    with pytest.raises(ConfigError, match="even"):
        lay_over({"evaluator": {"milestone_matches": 7}})
    with pytest.raises(ConfigError, match="device"):
        lay_over({"evaluator": {"device": "gpu"}})


# --- exploiters


def gates_of(count: int, patched: Collection[int] = ()) -> list[CandidateGate]:
    """Accepted exploiters x.g1@0, x.g1@1 ... in order of their acceptance, some patched by main."""
    patch = Patch(main="main", snapshot="main@1", wins=20, draws=0, losses=0, posterior=0.999)
    role = Role.MAIN_EXPLOITER
    generation = Generation(learner="x", number=1, player="x.g1", role=role, victims=())
    return [
        CandidateGate(
            candidate=f"x.g1@{number}",
            generation=generation,
            state=GateState.ACCEPTED,
            victims=(),
            decided_at=float(number),
            patches=(patch,) if number in patched else (),
        )
        for number in range(count)
    ]


def exploiter(number: int) -> Player:
    name = f"x.g1@{number}"
    return snapshot(number, name=name, role=Role.MAIN_EXPLOITER, parent="", digest=f"e{number}")


def of_exploiters(plan: Plan) -> list[tuple[str, dict[str, int]]]:
    return [(one.subject, matches(one)) for one in firsts(plan) if one.of_exploiters]


def test_a_main_s_newest_snapshot_meets_exploiters_a_planned_number_of_times() -> None:
    members = [snapshot(10), snapshot(20), exploiter(0), exploiter(1)]
    gates: Sequence[CandidateGate] = gates_of(2)
    counts = {("main@20", "x.g1@0", Book.EVAL): 20}
    assert of_exploiters(plan_of(*members, gates=gates)) == [
        ("main@20", {"x.g1@1": 20, "x.g1@0": 20})
    ]
    assert of_exploiters(plan_of(*members, gates=gates, counts=counts)) == [
        ("main@20", {"x.g1@1": 20})
    ]
    waiting = [replace(gate, state=GateState.OPEN) for gate in gates]
    assert of_exploiters(plan_of(*members, gates=waiting)) == []


def test_whom_it_has_yet_to_beat_goes_before_the_patched_and_the_newest_first() -> None:
    gates = gates_of(5, patched={4, 1})
    met = exploiters_to_meet(gates, snapshot(3), 10)
    assert met == [f"x.g1@{number}" for number in (3, 2, 0, 4, 1)]
    assert exploiters_to_meet(gates, snapshot(3), 4) == met[:4]
    assert exploiters_to_meet(gates, snapshot(3), 0) == []


@pytest.mark.parametrize("patched", [set[int](), set(range(12))], ids=["unbeaten", "patched"])
def test_of_too_many_exploiters_the_newest_are_met_always_and_the_others_in_turns(
    patched: set[int],
) -> None:
    gates = gates_of(12, patched)
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


def open_gate(candidate: str, like: CandidateGate | None = None) -> CandidateGate:
    generation = like and like.generation
    return CandidateGate(
        candidate=candidate, generation=generation, state=GateState.OPEN, victims=()
    )


def test_exploiters_gates_come_first_and_the_other_kinds_of_work_take_turns() -> None:
    of_main, of_exploiter = open_gate("main@20"), open_gate("x.g1@0", gates_of(1)[0])
    facts = {"requests": [asked(7, 200)], "counts": {}}
    work = next_work(plan_of(snapshot(10), gates=[of_main, of_exploiter], **facts), 2)
    assert work.gate is of_exploiter
    assert (work.subject, work.waiting) == ("x.g1@0", ("main@20", "main@10"))
    plan, turn, turns = plan_of(snapshot(10), gates=[of_main], **facts), 0, []
    for _ in range(4):
        work = next_work(plan, turn)
        turns.append(work.gate.candidate if work.gate else work.turn)
        turn = work.turn
    assert turns == [1, 2, "main@20", 1], "no milestone is due"


def test_the_newest_snapshots_batch_is_awaited_and_small_batches_are_played_together() -> None:
    three = [snapshot(step) for step in (10, 20, 30)]
    counts = {
        ("main@10", "based", Book.EVAL): 30,
        ("main@20", "random", Book.EVAL): 22,
        ("main@30", "constant", Book.EVAL): 20,
    }
    work = next_work(plan_of(*three, counts=counts), 0)
    assert work.awaited is not None
    assert (work.subject, work.awaited.subject) == ("main@30", "main@30")
    assert [(one.subject, one.matches) for one in work.batches] == [("main@20", 18)]
    assert work.waiting == ("main@20", "main@10")
    counts["main@20", "random", Book.EVAL] = 30
    work = next_work(plan_of(*three, counts=counts), 0)
    assert [(one.subject, one.matches) for one in work.batches] == [
        ("main@20", 10),
        ("main@10", 10),
    ]


def test_allocated_matches_need_room_and_budget() -> None:
    players = [snapshot(10), snapshot(20)]
    spent = {(name, "based", Book.EVAL): 40 for name in ("main@10", "main@20")}
    idle = next_work(plan_of(*players, counts=spent), 3)
    assert (idle.turn, idle.subject, idle.batches) == (3, "", ())
    assert idle.has_room
    over = {**spent, ("main@10", "main@20", Book.EVAL): 70}
    assert not next_work(plan_of(*players, counts=over), 0).has_room, "the budget is spent"
    asks = [asked(7, 110)]
    work = next_work(plan_of(*players, counts=spent, requests=asks), 0)
    assert [one.matches for one in work.batches] == [70]
    assert not work.has_room


def test_a_new_rival_meets_snapshots_of_all_ages_also_after_a_milestone_has_met_it() -> None:
    rival = Player(name="friend", game="brawl", kind=PlayerKind.RIVAL, digest="f" * 64)
    players = [*map(snapshot, (10, 20, 30)), snapshot(40, milestone=True), rival]

    def due(counts: dict, *players: Player) -> dict[str, int]:
        batches = plan_of(*players, counts=counts).batches()[1]
        entries = [
            entry for batch in batches if batch.subject == "friend" for entry in batch.entries
        ]
        return {entry.player: 2 * entry.pairs for entry in entries}

    assert due({}, *players) == dict.fromkeys(("main@10", "main@20", "main@30", "main@40"), 10)
    counts = {("main@40", "friend", Book.EVAL): 40}
    assert due(counts, *players) == dict.fromkeys(("main@10", "main@20", "main@30"), 10)
    counts |= {(f"main@{step}", "friend", Book.EVAL): 10 for step in (10, 20, 30)}
    assert due(counts, *players) == {}
    assert due(counts, *players, snapshot(50)) == {"main@50": 8}, "the fifth"
    counts[("main@50", "friend", Book.EVAL)] = 8
    assert due(counts, *players, *map(snapshot, range(50, 100, 10))) == {}
