"""Measures restarts on a long log. It writes the log as the matchmaker does, but without disk
syncs.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from matchmaker_served import Served, fill

from league.games.brawl.spec import STATS
from league.ids import new_id
from league.players import Book, MatchResult, SeatResult
from league.rpc.client import MatchmakerClient
from matchmaker.store.rows import AssignmentRow
from matchmaker.store.sqlite import SqliteStore

BATCH = 5_000


def restarts(folder: Path, players: int, count: int) -> Iterator[str]:
    """Yields sentences on how long a matchmaker takes until it is ready, with a log of `count`
    results.
    """
    served = Served(folder)
    served.start()
    with MatchmakerClient(served.address) as client:
        (learner,) = fill(client, players)
        incarnation = client.open_incarnation("learner-main", learner).number
        names = [player.name for player in client.players() if player.name != learner]
    served.stop()
    began = time.perf_counter()
    write(served.db, learner, names, incarnation, count)
    size = served.db.stat().st_size / 2**30
    seconds = time.perf_counter() - began
    yield f"{count:,} results of {players:,} players written in {seconds:.0f} s: {size:.1f} GiB"
    yield _started(served, "with everything folded from the log")
    served.stop()
    yield _started(served, "from what it kept when it was stopped")
    served.kill()
    yield _started(served, "after a kill -9")
    with MatchmakerClient(served.address) as client:
        games = sum(rating.games for rating in client.ratings(Book.TRAIN)) // 2
        yield f"{games:,} results rated, {served.mebibytes():.0f} MiB"
    served.kill()


def _started(served: Served, how: str) -> str:
    seconds = served.start()
    return f"ready after {seconds:.2f} s, {served.cpu_seconds():.2f} of them computing, {how}"


def write(
    db: Path, learner: str, names: list[str], incarnation: int, count: int, *, clean: int = 0
) -> None:
    """Adds `count` results of a learner. With `clean`, every `clean`-th match is instead a clean
    match of two other players.
    """
    rng = np.random.default_rng(1)
    stats = {name: 1.5 * number for number, name in enumerate(STATS)}
    store = SqliteStore(db)
    with store.read() as reader:
        digests = {player.name: player.digest for player in reader.players()}
    for first in range(1, count + 1, BATCH):
        size = min(BATCH, count + 1 - first)
        opponents = rng.integers(len(names), size=size).tolist()
        others = rng.integers(1, len(names), size=size).tolist()
        outcomes = rng.choice([0.0, 0.5, 1.0], p=[0.3, 0.1, 0.6], size=size).tolist()
        taken = []
        for number in range(size):
            ordinal = first + number
            lease = _lease(ordinal, incarnation, learner, names[opponents[number]])
            if clean and ordinal % clean == 0:
                other = names[(opponents[number] + others[number]) % len(names)]
                lease = lease._replace(
                    seat0=other, book=Book.EVAL, category="gauntlet", mix="", learner_seat=-1
                )
            seats = tuple(
                SeatResult(player=name, digest=digests[name], step_start=ordinal, stats=stats)
                for name in (lease.seat0, lease.seat1)
            )
            result = MatchResult(
                match_id=lease.match_id,
                lease_token=lease.lease_token,
                outcome=outcomes[number],
                frames=3000,
                seats=(seats[0], seats[1]),
                finished_at=1.0,
            )
            taken.append((result, lease))
        with store.write() as tx:
            tx.add_assignments([lease for _, lease in taken])
            rows = tx.add_results(taken, 1.0)
            tx.close_leases([row.ordinal for row in rows], "reported", 1.0, "")
    store.close()


def _lease(ordinal: int, incarnation: int, learner: str, opponent: str) -> AssignmentRow:
    return AssignmentRow(
        ordinal=ordinal,
        match_id=f"{ordinal:010x}{new_id()[:22]}",  # grows like the service's ids
        lease_token=new_id(),
        incarnation=incarnation,
        lease_state="open",
        lease_deadline=1.0,
        lease_limit=1.0,
        assigned_at=1.0,
        seat0=learner,
        seat1=opponent,
        learner_seat=0,
        book=Book.TRAIN,
        seed=ordinal,
        category="snapshots",
        mix="league",
        replaces="",
        draw=None,
        draw_seed=0,
        probability=1.0,
    )
