"""A real matchmaker over loopback with a few players, and short ways to play its matches."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from league.clock import ManualClock
from league.players import (
    Assignment,
    Book,
    MatchResult,
    Player,
    PlayerKind,
    Role,
    SeatResult,
    Verdict,
)
from league.rpc.client import MatchmakerClient
from league.security.credentials import Credentials, of_run
from league.security.settings import SecuritySettings
from league.service.settings import OperationsSettings
from league.stats.ratings import RatingTable
from matchmaker import limits
from matchmaker.api.server import MatchmakerServer
from matchmaker.settings import MatchmakerSettings
from matchmaker.state.books import Books
from matchmaker.tools.fsck import full_scan

BOTS = ("constant", "random", "based")


def bot(name: str, *, held_out: bool = False) -> Player:
    return Player(name=name, game="brawl", kind=PlayerKind.BOT, held_out=held_out)


def rival(name: str) -> Player:
    digest = hashlib.sha256(name.encode()).hexdigest()
    return Player(name=name, game="brawl", kind=PlayerKind.RIVAL, digest=digest)


def live(name: str = "main") -> Player:
    return Player(name=name, game="brawl", kind=PlayerKind.LIVE, role=Role.MAIN)


def snapshot(step: int, lineage: str = "main", **changes: object) -> Player:
    name = f"{lineage}@{step}"
    player = Player(
        name=name,
        game="brawl",
        kind=PlayerKind.SNAPSHOT,
        role=Role.MAIN,
        parent=lineage,
        digest=hashlib.sha256(name.encode()).hexdigest(),
        step=step,
    )
    return replace(player, **changes)  # type: ignore[arg-type]


def played(assignment: Assignment, outcome: float = 1.0, frames: int = 300) -> MatchResult:
    """The match as a faithful worker reports it."""
    first, second = (
        SeatResult(player=p.name, digest=p.digest, step_start=1, step_end=2, stats={"falls": 1.0})
        for p in assignment.seats
    )
    return MatchResult(
        match_id=assignment.match_id,
        lease_token=assignment.lease_token,
        outcome=outcome,
        frames=frames,
        seats=(first, second),
        finished_at=1.0,
    )


def paid(match: Assignment, payoff: float) -> MatchResult:
    """A match of a game with payoffs, in which seat 0 was paid `payoff` by seat 1."""
    result = played(match, 0.5 + 0.5 * ((payoff > 0.0) - (payoff < 0.0)))
    first, second = (
        replace(seat, stats={"payoff": won})
        for seat, won in zip(result.seats, (payoff, -payoff), strict=True)
    )
    return replace(result, seats=(first, second))


def report(league: SmallLeague, incarnation: int, *results: MatchResult) -> list[Verdict]:
    verdicts, _ = league.client.report_results(incarnation, results)
    return verdicts


def learner_wins(assignment: Assignment) -> float:
    return 1.0 if assignment.learner_seat == 0 else 0.0


@dataclass
class SmallLeague:
    server: MatchmakerServer
    client: MatchmakerClient
    clock: ManualClock

    def open(
        self, checkpoint: int = 0, carried: Sequence[str] = (), worker: str = "learner-main"
    ) -> int:
        opened = self.client.open_incarnation(worker, "main", 0, checkpoint, carried)
        return opened.number

    def play(
        self,
        incarnation: int,
        count: int,
        outcome: Callable[[Assignment], float] = learner_wins,
        mix: str = "league",
    ) -> tuple[list[Assignment], list[Verdict], int]:
        assignments = self.client.acquire_matches(incarnation, count, mix)
        verdicts, position = self.client.report_results(
            incarnation, [played(a, outcome(a)) for a in assignments]
        )
        self.clock.advance(limits.DRAW_SECONDS)  # the next draw knows these results
        return assignments, verdicts, position

    def recomputed(self) -> dict[Book, RatingTable]:
        with self.server.store.read() as reader:
            return Books.of(reader).tables

    def check(self) -> None:
        """After every scenario: the log is whole and the ratings in memory are those of the log."""
        with self.server.store.read() as reader:
            assert full_scan(reader) == []
        for book, table in self.recomputed().items():
            assert table.state() == self.server.league.view.tables[book].state(), book


def shown(folder: Path, security: SecuritySettings | None) -> Credentials:
    """An operator's, where the league wants any."""
    if security is None:
        return Credentials()
    return of_run(folder, "operator", tls=security.tls_folder, environment={})


@contextmanager
def small_league(
    folder: Path,
    snapshots: Iterable[int] = (1000, 2000),
    *,
    clock: ManualClock | None = None,
    whole: bool = True,
    security: SecuritySettings | None = None,
    operations: OperationsSettings | None = None,
    new_epoch: bool = False,
    **settings: object,
) -> Iterator[SmallLeague]:
    clock = clock or ManualClock()
    server = MatchmakerServer(
        folder / "league.db",
        settings=MatchmakerSettings(**settings),  # type: ignore[arg-type]
        clock=clock,
        seed=7,
        security=security,
        operations=operations,
        new_epoch=new_epoch,
        sections={"game": {"name": "brawl"}},
    )
    with (
        server,
        MatchmakerClient(
            server.address, wait_seconds=5, credentials=shown(folder, security)
        ) as client,
    ):
        client.register_players([*(bot(name) for name in BOTS), live()])
        for step in snapshots:
            client.register_players([snapshot(step)])
        league = SmallLeague(server, client, clock)
        yield league
        if whole:
            league.check()
