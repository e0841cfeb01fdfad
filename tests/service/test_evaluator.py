"""The evaluator against a real matchmaker and the real game, over loopback, in one process."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import grpc
import pytest
from evaluator_league import (
    MATCH_SECONDS,
    games,
    register_bots_and_live,
    register_snapshot,
)
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from evaluator.journal import OPEN, Journal
from evaluator.play import Arena
from evaluator.report import Report
from evaluator.service import EvaluatorServer
from evaluator.settings import EvaluatorSettings
from evaluator.strategy import Entry, Slot
from evaluator.worker import Evaluator
from league.client import MatchmakerClient
from league.errors import Fenced, Refused, Unavailable
from league.games.registry import game_spec, make_batched
from league.players import Book, Pairing, Player, SeatResult
from league.replay import Recipe, load_replay, verify
from league.v1 import evaluator_pb2 as e
from league.v1.evaluator_pb2_grpc import EvaluatorServiceStub
from matchmaker.main import MatchmakerServer
from matchmaker.settings import MatchmakerSettings

BOTS = [bot.name for bot in game_spec("brawl").bots]
SETTINGS = EvaluatorSettings(
    matches_per_opponent=4,
    milestone_matches=8,
    parallel_matches=8,
    best_snapshots=1,
    report_seconds=0.05,
    heartbeat_seconds=0.1,
    poll_seconds=0.05,
    wait_seconds=5.0,
)


@pytest.fixture
def client(tmp_path: Path) -> Iterator[MatchmakerClient]:
    with (
        MatchmakerServer(db=tmp_path / "league.db", port=0, settings=MatchmakerSettings()) as server,
        MatchmakerClient(server.address, wait_seconds=5) as connection,
    ):
        register_bots_and_live(connection)
        yield connection


class Running:
    """An evaluator that works in a thread, and a stub that speaks to its service."""

    def __init__(self, evaluator: Evaluator, stub: EvaluatorServiceStub, address: str) -> None:
        self.evaluator, self.stub, self.address = evaluator, stub, address
        self.error: BaseException | None = None
        self.thread = threading.Thread(target=self._work)
        self.thread.start()

    def _work(self) -> None:
        try:
            self.evaluator.open()
            self.evaluator.run()
        except BaseException as error:
            self.error = error

    def status(self) -> e.GetEvaluatorStatusResponse:
        return self.stub.GetEvaluatorStatus(e.GetEvaluatorStatusRequest())

    def stop(self) -> None:
        self.evaluator.stop.set()
        self.thread.join(10)
        assert not self.thread.is_alive()


@contextmanager
def running(
    client: MatchmakerClient, run_dir: Path, match_seconds: float = MATCH_SECONDS, **changes: object
) -> Iterator[Running]:
    settings = EvaluatorSettings(**(SETTINGS.model_dump() | changes))
    game = make_batched("brawl", settings.parallel_matches, max_frames=round(match_seconds * 30))
    with MatchmakerClient(client.address, wait_seconds=5) as own:
        recipe = Recipe(name="brawl", version=game.spec.version, max_frames=game.spec.max_frames)
        evaluator = Evaluator(own, game, run_dir, settings, recipe=recipe)
        with EvaluatorServer(evaluator, client) as server, grpc.insecure_channel(server.address) as channel:
            run = Running(evaluator, EvaluatorServiceStub(channel), server.address)
            try:
                yield run
            finally:
                run.stop()
                evaluator.journal.close()


def wait_for(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def test_every_snapshot_gets_its_gauntlet(client: MatchmakerClient, tmp_path: Path) -> None:
    register_snapshot(client, tmp_path, 10)
    register_snapshot(client, tmp_path, 20, parent="main@10", milestone=True)
    with running(client, tmp_path) as run:
        wait_for(lambda: run.status().drained)
        status = run.status()
        assert (status.gauntlets_done, list(status.queue)) == (2, [])
        wait_for(lambda: run.status().current == "")
        wait_for(lambda: [w.activity for w in client.status().workers] == ["waiting for snapshots"])
    assert run.error is None
    eval_games = dict.fromkeys(BOTS, 8) | {"main@10": 8}
    assert games(client, Book.EVAL, "main@20") == eval_games
    assert games(client, Book.EVAL, "main@10") == dict.fromkeys(BOTS, 4) | {"main@20": 8}
    assert games(client, Book.GREEDY, "main@20") == dict.fromkeys(BOTS, 4)
    assert games(client, Book.GREEDY, "main@10") == dict.fromkeys(BOTS, 2)
    assert client.status().open_leases == 0
    rows = Report(tmp_path / "evaluator" / "evaluation_results.csv").rows()
    keys = [(r["player"], r["opponent"], r["book"], r["matches"]) for r in rows]
    assert len(keys) == len(set(keys)) == 2 * 2 * len(BOTS) + 2
    assert ("main@20", "main@10", "eval", "8") in keys
    assert ("main@10", "main@20", "eval", "8") in keys, "played in the newer one's gauntlet, not again"


def test_telling_matches_of_a_gauntlet_can_be_watched_by_their_id(
    client: MatchmakerClient, tmp_path: Path
) -> None:
    register_snapshot(client, tmp_path, 10)
    with running(client, tmp_path) as run:
        wait_for(lambda: run.status().drained and run.status().gauntlets_done == 1)
    assert run.error is None
    replays = [load_replay(path) for path in (tmp_path / "replays").iterdir()]
    opponents = [seat.name for replay in replays for seat in replay.seats if seat.name != "main@10"]
    assert set(opponents) == set(BOTS)
    assert max(opponents.count(bot) for bot in BOTS) <= 2
    for replay in replays:
        verify(replay)
        record = client.match(replay.match_id)
        assert record.result is not None
        assert (record.result.outcome, record.result.frames) == (replay.outcome, replay.frames)


def test_the_report_agrees_with_the_matchmaker(client: MatchmakerClient, tmp_path: Path) -> None:
    register_snapshot(client, tmp_path, 10)
    with running(client, tmp_path, match_seconds=60.0) as run:
        wait_for(lambda: run.status().drained)
    rows = Report(tmp_path / "evaluator" / "evaluation_results.csv").rows()
    for book in (Book.EVAL, Book.GREEDY):
        cells = {c.column: c for c in client.payoff(book, rows=["main@10"])}
        for row in (r for r in rows if r["book"] == book.value):
            cell = cells[row["opponent"]]
            counts = tuple(int(row[name]) for name in ("wins", "draws", "losses"))
            assert counts == (cell.wins, cell.draws, cell.losses)
    against_based = next(r for r in rows if (r["opponent"], r["book"]) == ("based", "eval"))
    assert int(against_based["losses"]) >= 3, "an untrained network loses to it from either seat"


def test_seats_are_swapped_on_common_seeds(client: MatchmakerClient, tmp_path: Path) -> None:
    register_snapshot(client, tmp_path, 10)
    with running(client, tmp_path) as run:
        wait_for(lambda: run.status().drained)
        matches = [m for name in BOTS for m in run.evaluator.journal.matches("main@10", name, Book.EVAL)]
    seeds: dict[str, set[tuple[int, int]]] = {}
    for match in matches:
        record = client.match(match.match_id)
        seat = next(i for i, p in enumerate(record.assignment.seats) if p.name == "main@10")
        assert seat == match.slot.seat
        assert record.result is not None
        assert record.result.seats[seat].digest == record.assignment.seats[seat].digest != ""
        seeds.setdefault(match.slot.opponent, set()).add((record.assignment.seed, seat))
    assert all(of_bot == seeds[BOTS[0]] for of_bot in seeds.values())
    assert len(seeds[BOTS[0]]) == 4
    assert len({seed for seed, _ in seeds[BOTS[0]]}) == 2


def test_the_newest_snapshot_comes_first(client: MatchmakerClient, tmp_path: Path) -> None:
    for step in (10, 20, 30):
        register_snapshot(client, tmp_path, step, parent=f"main@{step - 10}" if step > 10 else "")
    with running(client, tmp_path) as run:
        wait_for(lambda: run.status().drained)
    rows = Report(tmp_path / "evaluator" / "evaluation_results.csv").rows()
    assert list(dict.fromkeys(row["player"] for row in rows)) == ["main@30", "main@20", "main@10"]


def test_a_request_is_played_again_and_replaces_its_rows(client: MatchmakerClient, tmp_path: Path) -> None:
    register_snapshot(client, tmp_path, 10)
    with running(client, tmp_path) as run:
        wait_for(lambda: run.status().drained)
        reply = run.stub.RequestEvaluation(e.RequestEvaluationRequest(player="main@10"))
        assert reply.place == 1
        wait_for(lambda: run.status().drained)
        with pytest.raises(grpc.RpcError) as refusal:
            run.stub.RequestEvaluation(e.RequestEvaluationRequest(player="main@11"))
        assert refusal.value.code() is grpc.StatusCode.NOT_FOUND
    assert games(client, Book.EVAL, "main@10") == dict.fromkeys(BOTS, 8)
    rows = Report(tmp_path / "evaluator" / "evaluation_results.csv").rows()
    assert [r["matches"] for r in rows if r["book"] == "eval"] == ["8"] * len(BOTS)
    assert len(rows) == 2 * len(BOTS)


def test_a_corrupt_snapshot_is_skipped_and_told(
    client: MatchmakerClient, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    register_snapshot(client, tmp_path, 10)
    broken = register_snapshot(client, tmp_path, 20, parent="main@10")
    register_snapshot(client, tmp_path, 30, parent="main@20")
    blob = tmp_path / "blobs" / f"{broken.digest}.safetensors"
    blob.write_bytes(blob.read_bytes()[:-1] + b"\x99")
    with running(client, tmp_path) as run:
        wait_for(lambda: run.status().drained)
        assert run.status().gauntlets_done == 2
    assert run.error is None
    assert games(client, Book.EVAL, "main@20") == {}
    met = games(client, Book.EVAL, "main@30").keys()
    assert met == {*BOTS, "main@10"}, "not its broken parent; main@10 met it in its own gauntlet"
    told = [r.getMessage() for r in caplog.records]
    assert any(text.startswith("main@20 is skipped") and "damaged" in text for text in told)
    assert any(text.startswith("main@30 does not meet main@20") for text in told)


def test_opponents_of_another_pace_are_left_out(client: MatchmakerClient, tmp_path: Path) -> None:
    register_snapshot(client, tmp_path, 10, frame_skip=1)
    register_snapshot(client, tmp_path, 20, parent="main@10")
    with running(client, tmp_path) as run:
        wait_for(lambda: run.status().drained)
    assert games(client, Book.EVAL, "main@20").keys() == set(BOTS)
    assert games(client, Book.EVAL, "main@10").keys() == set(BOTS)


def test_a_stop_hands_the_leases_back_and_the_next_start_plays_the_rest(
    client: MatchmakerClient, tmp_path: Path
) -> None:
    register_snapshot(client, tmp_path, 10)
    long = {"matches_per_opponent": 40, "greedy_share": 0.0}
    with running(client, tmp_path, **long) as run:
        wait_for(lambda: run.status().matches_done >= 8)
        run.stop()
        assert not run.status().drained
        assert client.status().open_leases == 0
    assert run.error is None
    before = sum(games(client, Book.EVAL, "main@10").values())
    assert 8 <= before < 40 * len(BOTS)
    with running(client, tmp_path, **long) as run:
        wait_for(lambda: run.status().drained)
    assert games(client, Book.EVAL, "main@10") == dict.fromkeys(BOTS, 40), "nothing missing, nothing twice"


def test_reports_on_their_way_at_a_kill_are_asked_after(client: MatchmakerClient, tmp_path: Path) -> None:
    register_snapshot(client, tmp_path, 10)
    with running(client, tmp_path) as run:
        wait_for(lambda: run.status().drained)
    # What a kill amid a report leaves: matches written down as pending. One of these had arrived, two not.
    journal = Journal(tmp_path / "evaluator" / "journal.db")
    matches = journal.matches("main@10", "based", Book.EVAL)
    journal.write(replace(journal.gauntlets()["main@10"], state=OPEN))
    journal._db.execute("UPDATE matches SET accepted = 0 WHERE match_id = ?", (matches[0].match_id,))
    number = client.open_incarnation("evaluator-0").number
    pairing = Pairing(player="main@10", opponent="clockwork", pairs=2, book=Book.GREEDY, seed=9)
    leases = client.acquire_pairings(number, [pairing])[:2]
    plan = (Entry("based", Book.EVAL, 6), Entry("clockwork", Book.GREEDY, 4))
    journal.write(replace(journal.gauntlets()["main@10"], plan=plan))
    journal.record(
        replace(matches[0], match_id=lease.match_id, slot=Slot("clockwork", Book.GREEDY, 1, seat))
        for seat, lease in enumerate(leases)
    )
    assert len(journal.pending()) == 3
    journal.close()
    with running(client, tmp_path) as run:
        wait_for(lambda: run.status().drained)
        assert run.evaluator.journal.pending() == []
    assert games(client, Book.EVAL, "main@10")["based"] == 6
    assert games(client, Book.GREEDY, "main@10")["clockwork"] == 4


def test_it_stops_with_a_sentence_when_all_its_results_are_refused(
    client: MatchmakerClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other weights played than were assigned, as a program gone wrong would report it."""
    register_snapshot(client, tmp_path, 10)
    honest = Arena._seat_result

    def dishonest(self: Arena, row: int, seat: int, player: Player) -> SeatResult:
        return replace(honest(self, row, seat, player), digest="f" * 64)

    monkeypatch.setattr(Arena, "_seat_result", dishonest)
    with running(client, tmp_path) as run:
        run.thread.join(20)
        assert not run.thread.is_alive()
        assert run.evaluator.journal.pending() == []
    assert isinstance(run.error, Refused)
    assert "refused every result of 3 reports in a row" in str(run.error)
    assert games(client, Book.EVAL, "main@10") == {}


def test_a_newer_evaluator_fences_the_older(client: MatchmakerClient, tmp_path: Path) -> None:
    with running(client, tmp_path) as run:
        wait_for(lambda: any(w.worker == "evaluator-0" for w in client.status().workers))
        client.open_incarnation("evaluator-0")
        run.thread.join(5)
        assert not run.thread.is_alive()
    assert isinstance(run.error, Fenced)


def test_health_and_reflection_are_on(client: MatchmakerClient, tmp_path: Path) -> None:
    with running(client, tmp_path) as run, grpc.insecure_channel(run.address) as channel:
        check = health_pb2.HealthCheckRequest(service="league.v1.EvaluatorService")
        reply = health_pb2_grpc.HealthStub(channel).Check(check)
        assert reply.status == health_pb2.HealthCheckResponse.SERVING
        ask = reflection_pb2.ServerReflectionRequest(list_services="")
        answers = reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo(iter([ask]))
        names = {s.name for s in next(iter(answers)).list_services_response.service}
        assert "league.v1.EvaluatorService" in names


def test_a_taken_port_is_one_sentence(client: MatchmakerClient, tmp_path: Path) -> None:
    with running(client, tmp_path) as run:
        port = int(run.address.rpartition(":")[2])
        with pytest.raises(Unavailable, match=f"port {port} of 127.0.0.1 is taken"):
            EvaluatorServer(run.evaluator, client, port=port)
