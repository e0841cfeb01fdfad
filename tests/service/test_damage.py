"""Whatever byte of a log is damaged, it is found or changes nothing; there is no traceback."""

from __future__ import annotations

import asyncio
import random
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from damaged import MOVED, SETTINGS, Log, lived
from waiting import wait_for

from league.clock import ManualClock
from league.errors import DataCorrupt, LeagueError
from league.rpc.client import MatchmakerClient
from league.v1 import exploiters_pb2 as x
from league.v1 import matchmaker_pb2 as m
from matchmaker.api import server
from matchmaker.tools.fsck import fsck

PARTS, CELLS, STARTS, BYTES = 4, 100, 100, 150
LATER = 1e6


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Log:
    path = lived(tmp_path_factory.mktemp("whole"))
    assert fsck(path)[0] == []
    return Log(path)


def findings(path: Path) -> list[str]:
    try:
        return fsck(path)[0]
    except LeagueError as error:
        return [str(error)]


@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS))
def test_every_changed_byte_of_a_cell_is_found(log: Log, tmp_path: Path, part: int) -> None:
    unseen = []
    for seed in range(part * CELLS, (part + 1) * CELLS):
        changed = log.damage(tmp_path / "league.db", seed)
        column = changed.split(" ")[0].split(".")[1]
        if not findings(tmp_path / "league.db") and column not in MOVED:
            unseen.append(changed)
    assert unseen == []


async def _all(stream: AsyncIterator[m.Event]) -> list[m.Event]:
    return [event async for event in stream]


@dataclass
class Answers:
    """What a start on a log, and its service, give or refuse; "" for what was refused."""

    seen: dict[str, Any]

    @classmethod
    def of(cls, path: Path, matches: list[str]) -> Answers:
        seen: dict[str, Any] = {}
        with suppress(LeagueError):
            opened = server.MatchmakerServer(path, settings=SETTINGS, clock=ManualClock(LATER))
            try:
                cls._ask(opened.service, matches, seen)
            finally:
                opened.stop()
        return cls(seen)

    @staticmethod
    def _ask(service: Any, matches: list[str], seen: dict[str, Any]) -> None:
        service.read_only = True  # so that the stream of events ends
        for book in (1, 2, 3):
            seen[f"ratings {book}"] = service.GetRatings(m.GetRatingsRequest(book=book), None)
            seen[f"payoff {book}"] = service.GetPayoff(m.GetPayoffRequest(book=book), None)
        for name, ask in {
            "players": lambda: service.ListPlayers(m.ListPlayersRequest(), None),
            "curricula": lambda: service.GetCurricula(m.GetCurriculaRequest(), None),
            "gates": lambda: service.GetGates(x.GetGatesRequest(with_certificates=True), None),
            "events": lambda: asyncio.run(_all(service.Watch(m.WatchRequest(), None))),
            "status": lambda: service.GetStatus(m.GetStatusRequest(), None),
            **{
                one: lambda one=one: service.GetMatch(m.GetMatchRequest(match_id=one), None)
                for one in matches
            },
        }.items():
            with suppress(LeagueError):
                seen[name] = ask()
        if "status" in seen:
            seen["status"].ClearField("vitals")  # of the service itself

    def wrong(self, right: Answers) -> list[str]:
        return [name for name, answer in self.seen.items() if answer != right.seen[name]]


LEASE = {"lease_state", "closed_at", "close_reason", *MOVED}
"""Columns that a read does not compare with the rest of the log; `fsck` does."""


def test_a_start_on_a_damaged_log_refuses_or_answers_as_before(log: Log, tmp_path: Path) -> None:
    path = tmp_path / "league.db"
    matches = [row["match_id"] for row in log.rows["assignments"]]
    path.write_bytes(log.path.read_bytes())
    right = Answers.of(path, matches)
    assert set(matches) < set(right.seen)
    wrong = []
    for seed in range(STARTS):
        changed = log.damage(path, seed)
        if changed.split(" ")[0].split(".")[1] not in LEASE:
            found = Answers.of(path, matches).wrong(right)
            wrong += [(changed, found)] if found else []
    assert wrong == []


def content(path: Path) -> dict[str, Any]:
    """All that SQLite can read of a file, without what no start reads."""
    unread = MOVED | {"applied_at"}  # the time of a migration
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        found = {"schema": db.execute("SELECT * FROM sqlite_master").fetchall()}
        for name in [row[1] for row in found["schema"] if row[0] == "table"]:
            columns = [row[1] for row in db.execute(f"PRAGMA table_info({name})")]
            wanted = ", ".join(column for column in columns if column not in unread)
            found[name] = db.execute(f"SELECT {wanted} FROM {name}").fetchall()
    return found


@pytest.mark.long
def test_every_changed_byte_of_the_file_is_found_or_changes_nothing(
    log: Log, tmp_path: Path
) -> None:
    whole, unseen = log.path.read_bytes(), []
    before, path = content(log.path), tmp_path / "league.db"
    for seed in range(BYTES):
        rng, body = random.Random(seed), bytearray(whole)
        place = rng.randrange(len(body))
        body[place] ^= rng.randrange(1, 256)
        path.write_bytes(body)
        if not findings(path) and content(path) != before:
            unseen.append(place)
    assert unseen == []


@pytest.mark.long
def test_a_large_log_is_served_only_where_it_is_whole(
    log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not read whole at a start, so damage is met where it is read."""
    monkeypatch.setattr(server, "CHECKED_AT_START_BYTES", 0)
    path = tmp_path / "league.db"
    matches = [row["match_id"] for row in log.rows["assignments"]]
    path.write_bytes(log.path.read_bytes())
    right, wrong = Answers.of(path, matches), []
    for seed in range(STARTS):
        changed = log.damage(path, seed)
        if changed.split(" ")[0].split(".")[1] not in LEASE:
            found = set(Answers.of(path, matches).wrong(right)) - {"gates", "events"}
            wrong += [(changed, found)] if found else []
    assert wrong == []


def test_broken_pages_of_a_large_log_end_its_service(
    log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path, body = tmp_path / "league.db", bytearray(log.path.read_bytes())
    with closing(sqlite3.connect(log.path)) as db:
        query = "SELECT rootpage FROM sqlite_master WHERE name = 'replacements'"
        ((page,),) = db.execute(query).fetchall()
    body[(page - 1) * 4096 + 3] ^= 1  # how many cells the page has
    path.write_bytes(body)
    with pytest.raises(DataCorrupt, match="restore a backup"):
        server.MatchmakerServer(path, settings=SETTINGS)
    monkeypatch.setattr(server, "CHECKED_AT_START_BYTES", 0)
    with (
        server.MatchmakerServer(path, settings=SETTINGS) as served,
        MatchmakerClient(served.address) as client,
    ):
        wait_for(lambda: bool(client.status().vitals.trouble))
        assert "restore a backup" in client.status().vitals.trouble
        served.sweep()
        assert client.status().vitals.trouble, "it does not heal"
    assert "health is NOT_SERVING" in caplog.text


def test_a_damaged_row_of_a_large_log_ends_its_service(
    log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "CHECKED_AT_START_BYTES", 0)
    path, match = tmp_path / "league.db", log.rows["assignments"][0]["match_id"]
    path.write_bytes(log.path.read_bytes())
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE assignments SET seed = 5 WHERE match_id = ?", [match])
    with (
        server.MatchmakerServer(path, settings=SETTINGS) as served,
        MatchmakerClient(served.address) as client,
    ):
        with pytest.raises(DataCorrupt):
            client.match(match)
        assert "restore a backup" in client.status().vitals.trouble


def test_a_table_without_its_triggers_is_found(log: Log, tmp_path: Path) -> None:
    path = tmp_path / "league.db"
    path.write_bytes(log.path.read_bytes())
    with closing(sqlite3.connect(path)) as db, db:
        query = "SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'results'"
        ((trigger,), *_) = db.execute(query).fetchall()
        db.execute(f"DROP TRIGGER {trigger}")
    (finding,) = findings(path)
    assert trigger in finding


@pytest.mark.parametrize(
    ("table", "where", "column", "value", "rule"),
    [
        ("assignments", "category = 'gauntlet'", "seat0", "constant", "a pairing has the seats"),
        ("assignments", "category = 'gate'", "seed", 5, "a pairing has the seats and seeds"),
        ("assignments", "category = 'gauntlet'", "category", "gate", "a pairing has the seats"),
        ("players", "name = 'main@1000'", "step", 999, "a snapshot has the step"),
        ("players", "name = 'based'", "game", "chess", "a player is of the league's game"),
        ("incarnations", "fenced_by", "fenced_by", None, "only the newest incarnation"),
        ("draws", "number = 1", "number", 99, "numbered from 1 without gaps"),
    ],
)
def test_what_rows_with_right_checksums_contradict_is_found(
    log: Log, tmp_path: Path, table: str, where: str, column: str, value: Any, rule: str
) -> None:
    path = tmp_path / "league.db"
    log.rewrite(path, table, where, column, value)
    assert any(rule in finding for finding in findings(path))
    assert not any("a row is what was written" in finding for finding in findings(path))


def test_a_log_whose_migrations_are_damaged_is_damaged(log: Log, tmp_path: Path) -> None:
    """An index says that one is pending; its tables are there."""
    path, whole = tmp_path / "league.db", log.path.read_bytes()
    index = whole.rindex(b"m001_league")
    assert whole.index(b"m001_league") < index
    path.write_bytes(whole[: index - 1] + b"X" + whole[index:])  # the name of their set
    with pytest.raises(DataCorrupt, match="restore a backup"):
        server.MatchmakerServer(path, settings=SETTINGS)
