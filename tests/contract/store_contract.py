"""What every store keeps: one suite, of which each kind of store is a subclass with a fixture."""

from __future__ import annotations

import json
import threading
from dataclasses import replace

import pytest

from league.errors import InvalidInput, Refused
from league.players import Book, Event, MatchResult, Player, PlayerKind, PlayerState, SeatResult
from matchmaker.store.base import Store
from matchmaker.store.rows import AssignmentRow, BeatRow, DrawRow, IncarnationRow


def player(name: str) -> Player:
    return Player(name=name, game="brawl", kind=PlayerKind.BOT, created_at=1.0)


def incarnation(worker: str = "learner-main") -> IncarnationRow:
    return IncarnationRow(
        number=0,
        worker=worker,
        player="main",
        checkpoint_step=0,
        checkpoint_log_position=0,
        opened_at=1.0,
        event_position=1,
        fenced_by=None,
    )


def assignment(ordinal: int, number: int = 1, **changes) -> AssignmentRow:
    row = AssignmentRow(
        ordinal=ordinal,
        match_id=f"m{ordinal}",
        lease_token=f"t{ordinal}",
        incarnation=number,
        lease_state="open",
        lease_deadline=100.0,
        assigned_at=1.0,
        seat0="main",
        seat1="based",
        learner_seat=0,
        book=Book.TRAIN,
        seed=(1 << 63) - 1,
        category="based",
        mix="league",
        replaces="",
        draw=None,
        draw_seed=5,
        probability=0.1,
    )
    return row._replace(**changes)


def result(match_id: str) -> MatchResult:
    return MatchResult(
        match_id=match_id,
        lease_token="",
        outcome=1.0,
        frames=9,
        seats=(SeatResult(player="main", stats={"falls": 2.0}), SeatResult(player="based")),
    )


def event(text: str) -> Event:
    return Event(position=0, at=1.0, kind="test", text=text, data_json="{}")


def many_candidates() -> str:
    weights = [[f"main@{50_000 * number}", (number / 7.0) ** 0.5] for number in range(200)]
    return json.dumps(
        {"rule": "pfsp_hard", "candidates": {"snapshots": weights}}, separators=(",", ":")
    )


def draw_of(body: str) -> DrawRow:
    return DrawRow(number=0, policy_hash="h", log_position=1, event_position=2, body_json=body)


class StoreContract:
    @pytest.fixture
    def store(self):
        raise NotImplementedError

    @pytest.fixture
    def filled(self, store: Store) -> Store:
        with store.write() as tx:
            tx.add_player(player("main"))
            tx.add_player(player("based"))
            assert tx.add_incarnation(incarnation()) == 1
            tx.add_assignments([assignment(1), assignment(2), assignment(3)])
        return store

    def test_a_new_store_is_empty(self, store):
        with store.read() as reader:
            assert reader.players() == []
            assert reader.positions() == (0, 0, 0)
            assert reader.open_assignments() == []

    def test_rows_come_back_as_they_went(self, filled):
        with filled.read() as reader:
            assert reader.players() == [player("main"), player("based")]
            assert reader.assignment("m2") == assignment(2)
            assert reader.assignment("nobody") is None
            assert reader.incarnation(1) == replace(incarnation(), number=1)

    def test_an_exception_undoes_the_whole_transaction(self, filled):
        def fails():
            with filled.write() as tx:
                tx.add_player(player("lost"))
                tx.add_events([event("lost")])
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            fails()
        with filled.read() as reader:
            assert [p.name for p in reader.players()] == ["main", "based"]
            assert reader.events(0, 10) == []

    def test_effects_run_only_after_a_commit(self, store):
        ran = []

        def fails():
            with store.write() as tx:
                tx.after_commit(lambda: ran.append("rolled back"))
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            fails()
        with store.write() as tx:
            tx.after_commit(lambda: ran.append("committed"))
            assert ran == []
        assert ran == ["committed"]

    def test_a_request_takes_effect_once(self, store):
        def effect(tx):
            return str(tx.add_events([event("once")])).encode()

        first = store.once("r1", "Method", "f", 1.0, effect)
        assert store.once("r1", "Method", "f", 2.0, effect) == first
        assert store.once("r2", "Method", "f", 2.0, effect) != first
        with store.read() as reader:
            assert len(reader.events(0, 10)) == 2

    def test_a_request_id_belongs_to_one_request(self, store):
        store.once("r1", "Method", "f", 1.0, lambda tx: b"")
        for method, fingerprint in (("Other", "f"), ("Method", "g")):
            with pytest.raises(InvalidInput, match="r1"):
                store.once("r1", method, fingerprint, 1.0, lambda tx: b"")

    def test_a_failed_request_leaves_its_id_free(self, store):
        def fails(tx):
            tx.add_events([event("lost")])
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            store.once("r1", "Method", "f", 1.0, fails)
        assert store.once("r1", "Method", "f", 1.0, lambda tx: b"now") == b"now"

    def test_old_requests_are_forgotten(self, store):
        store.once("old", "Method", "f", 1.0, lambda tx: b"")
        store.once("new", "Method", "f", 9.0, lambda tx: b"")
        with store.write() as tx:
            assert tx.forget_requests(5.0) == 1
        assert store.once("old", "Method", "f", 9.0, lambda tx: b"again") == b"again"

    def test_readers_see_only_what_is_committed(self, filled):
        with filled.write() as tx:
            tx.add_player(player("soon"))
            with filled.read() as reader:
                assert len(reader.players()) == 2
        with filled.read() as reader:
            assert len(reader.players()) == 3

    def test_readers_and_writers_work_side_by_side(self, filled):
        failures = []

        def read():
            try:
                for _ in range(40):
                    with filled.read() as reader:
                        assert len(reader.events(0, 1000)) % 2 == 0
            except Exception as error:
                failures.append(error)

        threads = [threading.Thread(target=read) for _ in range(4)]
        for thread in threads:
            thread.start()
        for _ in range(20):
            with filled.write() as tx:
                tx.add_events([event("a"), event("b")])
        for thread in threads:
            thread.join()
        assert failures == []

    def test_results_stand_in_commit_order_and_know_their_match(self, filled):
        with filled.write() as tx:
            for ordinal in (2, 1):
                tx.add_results([(result(f"m{ordinal}"), assignment(ordinal), False)], 5.0)
        with filled.read() as reader:
            rows = list(reader.results())
            assert [(row.position, row.ordinal) for row in rows] == [(1, 2), (2, 1)]
            assert (rows[0].seat0, rows[0].seat1, rows[0].book) == ("main", "based", Book.TRAIN)
            assert rows[0].rated
            assert [row.position for row in reader.results(after=1)] == [2]

    def test_lost_results_stay_and_are_marked_once(self, filled):
        with filled.write() as tx:
            for ordinal in (1, 2, 3):
                tx.add_results([(result(f"m{ordinal}"), assignment(ordinal), False)], 5.0)
            second = tx.add_incarnation(incarnation())
            assert tx.lose_results("main", 1, second) == 2
            assert tx.lose_results("main", 0, second) == 1
        with filled.read() as reader:
            assert [row.lost_by for row in reader.results()] == [second] * 3
            assert not any(row.rated for row in reader.results())

    def test_leases_close_and_extend(self, filled):
        with filled.write() as tx:
            tx.close_leases([2], "released", 7.0, "why")
            tx.extend_leases(1, 500.0)
            tx.extend_leases(1, 50.0)
        with filled.read() as reader:
            assert [(a.ordinal, a.lease_deadline) for a in reader.open_assignments(1)] == [
                (1, 500.0),
                (3, 500.0),
            ]
            assert reader.open_count(1) == 2
            closed = reader.assignment("m2")
            assert (closed.lease_state, closed.closed_at, closed.close_reason) == (
                "released",
                7.0,
                "why",
            )
            assert closed.lease_deadline == 100.0

    def test_leases_are_renewed_both_ways(self, filled):
        with filled.write() as tx:
            tx.close_leases([2], "released", 7.0, "why")
            tx.extend_leases(1, 500.0)
            tx.renew_leases(50.0)
        with filled.read() as reader:
            assert {row.lease_deadline for row in reader.open_assignments()} == {50.0}
            assert reader.assignment("m2").lease_deadline == 100.0
        with filled.write() as tx:
            tx.renew_leases(700.0)
        with filled.read() as reader:
            assert {row.lease_deadline for row in reader.open_assignments()} == {700.0}

    def test_fencing_marks_only_the_workers_own(self, filled):
        with filled.write() as tx:
            other = tx.add_incarnation(incarnation("evaluator-0"))
            newer = tx.add_incarnation(incarnation())
            tx.fence("learner-main", newer)
        with filled.read() as reader:
            assert reader.incarnation(1).fenced_by == newer
            assert reader.incarnation(other).fenced_by is None
            assert reader.incarnation(newer).fenced_by is None
            assert [row.number for row in reader.newest_incarnations()] == [other, newer]

    def test_small_rows(self, filled):
        beat = BeatRow(
            incarnation=1, at=1.0, progress=2, step=3, mix="m", activity="a", metrics_json="{}"
        )
        with filled.write() as tx:
            tx.set_beat(beat)
            tx.set_beat(replace(beat, progress=9))
            assert tx.add_policy("h", "{}", 1.0)
            assert not tx.add_policy("h", "{}", 2.0)
            drawn = DrawRow(
                number=0, policy_hash="h", log_position=1, event_position=2, body_json="{}"
            )
            number = tx.add_draw(drawn)
            tx.update_player(replace(player("based"), state=PlayerState.RETIRED, milestone=True))
            tx.add_assignments([assignment(4, replaces="m1")])
        with filled.read() as reader:
            assert reader.beat(1) == replace(beat, progress=9)
            assert reader.draw(number) == replace(drawn, number=number)
            assert reader.players()[1].state is PlayerState.RETIRED
            assert reader.replacement("m1") == "m4"
            assert reader.replacement("") is None
            assert reader.category_counts() == [("main", "league", "based", 3)]

    def test_a_draw_of_many_candidates_comes_back_as_it_was(self, store):
        body = many_candidates()
        with store.write() as tx:
            tx.add_policy("h", "{}", 1.0)
            number = tx.add_draw(draw_of(body))
        with store.read() as reader:
            assert reader.draw(number) == replace(draw_of(body), number=number)

    def test_closing_twice_is_fine(self, store):
        store.close()
        store.close()
        with pytest.raises(Refused, match="closing"), store.read():
            pass
