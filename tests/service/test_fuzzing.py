"""A short fuzz of both services, the harness' own sight, and clients that send no message at all."""

from __future__ import annotations

import logging
import sqlite3
from contextlib import closing
from pathlib import Path

import grpc
import pytest
from evaluating import running, wait_for
from fuzzing import Finding, Fuzzer
from small_league import small_league
from spoilt_requests import EVALUATOR, SERVICES, lasting_requests
from test_bounds import hash_of_log, positions_of

from league.errors import InvalidInput
from league.v1 import evaluator_pb2 as e

AUDITED = ("AskStage", "PinRating", "Quarantine")


def fuzzer_of(league, channel: grpc.Channel, seed: int = 1) -> Fuzzer:
    store = league.server.store
    good = lasting_requests(league)
    return Fuzzer(
        channel,
        SERVICES,
        good,
        lambda: hash_of_log(store),
        lambda: positions_of(store),
        seed,
        AUDITED,
    )


def errors_in(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]


def test_malformed_messages_change_nothing_and_break_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with small_league(tmp_path) as league, grpc.insecure_channel(league.server.address) as channel:
        fuzzer = fuzzer_of(league, channel)
        with caplog.at_level(logging.ERROR):
            for _ in range(4):
                fuzzer.typed(40)
                fuzzer.changed(160)
                fuzzer.bytes(50)
        assert fuzzer.tally.messages == 1000
        assert fuzzer.tally.codes["INVALID_ARGUMENT"] > 300
        assert fuzzer.tally.codes["NOT_FOUND"] > 20, (
            "some get as far as to ask for what is not there"
        )
        assert 0 < fuzzer.tally.obeyed.total() < 500, "some are good in spite of all"
        assert league.client.status().game == "brawl"
    assert errors_in(caplog) == [], "nothing failed in a way nobody planned"


def test_malformed_messages_do_not_break_the_evaluator(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody is there to be evaluated, so none is obeyed and the evaluator does nothing of
    itself.
    """
    service = e.DESCRIPTOR.services_by_name["EvaluatorService"]
    with (
        small_league(tmp_path, snapshots=()) as league,
        running(league.client, tmp_path) as run,
        grpc.insecure_channel(run.address) as channel,
        closing(sqlite3.connect(tmp_path / "evaluator" / "journal.db")) as journal,
        caplog.at_level(logging.ERROR),
    ):

        def held() -> str:
            """What the evaluator remembers, its queue among it, and how far the league's log is."""
            return "\n".join([*journal.iterdump(), repr(positions_of(league.server.store))])

        wait_for(lambda: bool(league.client.status().workers))  # its start is an event of the log
        assert "requests" in held()
        fuzzer = Fuzzer(channel, [service], EVALUATOR, held, held, seed=2)
        fuzzer.typed(10)
        fuzzer.changed(40)
        fuzzer.bytes(20)
    assert fuzzer.tally.codes["NOT_FOUND"] > 0, "some get as far as the queue"
    assert fuzzer.tally.obeyed.total() == 0
    assert errors_in(caplog) == []


def test_the_fuzzer_sees_a_change_that_nobody_was_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        small_league(tmp_path, whole=False) as league,
        grpc.insecure_channel(league.server.address) as channel,
    ):
        fuzzer = fuzzer_of(league, channel)
        writes = league.server.store.write

        def leaves_a_trace(*_: object) -> None:
            with writes() as tx:
                tx.set_meta("trace", str(fuzzer.tally.messages))
            raise InvalidInput("no")

        monkeypatch.setattr("matchmaker.acts.checks.identifier", leaves_a_trace)
        with pytest.raises(Finding, match="the state changed although"):
            fuzzer.bytes(100)


def test_the_fuzzer_sees_what_breaks_inside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with small_league(tmp_path) as league, grpc.insecure_channel(league.server.address) as channel:
        fuzzer = fuzzer_of(league, channel)
        monkeypatch.setattr("matchmaker.acts.checks.identifier", lambda *_: 1 / 0)
        with pytest.raises(Finding, match="UNKNOWN: the service failed inside"):
            fuzzer.bytes(100)
        monkeypatch.undo()
