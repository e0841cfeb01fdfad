"""The evaluator against a real matchmaker and the real game, over loopback, in one process."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from evaluating import BOTS, running
from evaluator_league import games, register_snapshot
from waiting import wait_for

from evaluator.arena import Arena
from evaluator.reports.table import Report, Row
from league.players import Assignment, Book
from league.replay import load_replay, verify
from league.rpc.client import MatchmakerClient


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
    assert ("main@10", "main@20", "eval", "8") in keys, (
        "played in the newer one's gauntlet, not again"
    )


def test_the_report_and_the_replays_agree_with_the_matchmaker(
    client: MatchmakerClient, tmp_path: Path
) -> None:
    register_snapshot(client, tmp_path, 10)
    with running(client, tmp_path, match_seconds=10.0, matches_per_opponent=2) as run:
        wait_for(lambda: run.status().drained and run.status().gauntlets_done == 1)
    assert run.error is None
    rows = Report(tmp_path / "evaluator" / "evaluation_results.csv").rows()
    assert sum(int(row["losses"]) for row in rows) > 0
    for book in (Book.EVAL, Book.GREEDY):
        cells = {c.column: c for c in client.payoff(book, rows=["main@10"])}
        for row in (r for r in rows if r["book"] == book.value):
            cell = cells[row["opponent"]]
            counts = tuple(int(row[name]) for name in ("wins", "draws", "losses"))
            assert counts == (cell.wins, cell.draws, cell.losses)
    replays = [load_replay(path) for path in (tmp_path / "replays").iterdir()]
    opponents = [seat.name for replay in replays for seat in replay.seats if seat.name != "main@10"]
    assert set(opponents) == set(BOTS)
    for replay in replays:
        record = client.match(replay.match_id)
        assert record.result is not None
        assert (record.result.outcome, record.result.frames) == (replay.outcome, replay.frames)
    verify(replays[0])


def test_seats_are_swapped_on_common_seeds(
    client: MatchmakerClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seated: list[Assignment] = []
    seat = Arena.seat

    def noted(self: Arena, assignments: Sequence[Assignment]) -> None:
        seated.extend(assignments)
        seat(self, assignments)

    monkeypatch.setattr(Arena, "seat", noted)
    register_snapshot(client, tmp_path, 10)
    with running(client, tmp_path) as run:
        wait_for(lambda: run.status().drained)
    seeds: dict[str, set[tuple[int, int]]] = {}
    for match in seated:
        if match.book is Book.EVAL:
            names = [player.name for player in match.seats]
            place = names.index("main@10")
            seeds.setdefault(names[1 - place], set()).add((match.seed, place))
    assert seeds.keys() == set(BOTS)
    assert all(of_bot == seeds[BOTS[0]] for of_bot in seeds.values())
    assert len(seeds[BOTS[0]]) == 4
    assert len({seed for seed, _ in seeds[BOTS[0]]}) == 2


def test_an_end_in_the_middle_of_a_gauntlet_reports_what_was_played(
    client: MatchmakerClient, tmp_path: Path
) -> None:
    """Without its end, so that the next start plays the rest."""

    def rows() -> dict[str, Row]:
        found = Report(tmp_path / "evaluator" / "evaluation_results.csv").rows()
        assert len(found) == len({(row["player"], row["opponent"], row["book"]) for row in found})
        return {row["opponent"]: row for row in found if row["book"] == "eval"}

    register_snapshot(client, tmp_path, 10)
    for _ in range(2):
        before = sum(games(client, Book.EVAL, "main@10").values())
        with running(client, tmp_path, matches_per_opponent=32) as run:
            wait_for(lambda: sum(games(client, Book.EVAL, "main@10").values()) > before)  # noqa: B023
        assert run.error is None
        played = games(client, Book.EVAL, "main@10")
        assert 0 < sum(played.values()) < 32 * len(BOTS), "it was broken off"
        assert {name: int(row["matches"]) for name, row in rows().items()} == played
        assert {row["finished_at"] for row in rows().values()} == {""}
        assert client.status().open_leases == 0
    with running(client, tmp_path) as run:
        wait_for(lambda: run.status().drained)
    assert all(row["finished_at"] for row in rows().values())
    assert rows().keys() == set(BOTS)


def test_opponents_of_another_pace_are_left_out(client: MatchmakerClient, tmp_path: Path) -> None:
    register_snapshot(client, tmp_path, 10, frame_skip=1)
    register_snapshot(client, tmp_path, 20, parent="main@10")
    with running(client, tmp_path) as run:
        wait_for(lambda: run.status().drained)
    assert games(client, Book.EVAL, "main@20").keys() == set(BOTS)
    assert games(client, Book.EVAL, "main@10").keys() == set(BOTS)
