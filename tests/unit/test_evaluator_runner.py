"""The matches of a gauntlet and of a gate, against a matchmaker in memory."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from evaluator.journal import Entry, Gauntlet, Journal, Slot
from evaluator.runner import GauntletWork
from league.players import (
    Assignment,
    Book,
    MatchResult,
    Pairing,
    Player,
    PlayerKind,
    SeatResult,
    Verdict,
)

ME = Player(name="main@1", game="brawl", kind=PlayerKind.SNAPSHOT, digest="1" * 64, step=1)
PAIR = [Slot("based", Book.EVAL, 0, 0), Slot("based", Book.EVAL, 0, 1)]


class Rows:
    """An arena of eight rows in which matches end after one decision; seat 0 wins."""

    rows = 8

    def __init__(self) -> None:
        self.seated: list[Assignment] = []

    @property
    def busy(self) -> int:
        return len(self.seated)

    @property
    def free(self) -> int:
        return self.rows - self.busy

    def seat(self, assignments: Sequence[Assignment]) -> None:
        self.seated += assignments

    def step(self) -> list[MatchResult]:
        ended, self.seated = self.seated, []
        return [
            MatchResult(
                match_id=a.match_id,
                lease_token=a.lease_token,
                outcome=1.0,
                frames=30,
                seats=(
                    SeatResult(player=a.seats[0].name, stats={"hits": 3.0}),
                    SeatResult(player=a.seats[1].name, stats={"hits": 1.0}),
                ),
            )
            for a in ended
        ]


def leased(pairing: Pairing, number: int, seat: int) -> Assignment:
    bot = Player(name=pairing.opponent, game="brawl", kind=PlayerKind.BOT)
    return Assignment(
        match_id=f"m{number}",
        ordinal=number,
        lease_token="token",
        lease_deadline=0.0,
        seats=(ME, bot) if seat == 0 else (bot, ME),
        learner_seat=-1,
        book=pairing.book,
        seed=pairing.seed,
        category="gauntlet",
    )


class Matchmaker:
    """Leases both seats of every pair; `judge` judges results by their report's number, from 1."""

    def __init__(self, judge: Callable[[int, MatchResult], Verdict]) -> None:
        self.judge = judge
        self.pairings: list[Pairing] = []
        self.reports: list[list[str]] = []
        self.released: list[str] = []
        self._numbers = itertools.count()

    def acquire_pairings(self, incarnation: int, pairings: Sequence[Pairing]) -> list[Assignment]:
        self.pairings += pairings
        return [leased(pairing, next(self._numbers), s) for pairing in pairings for s in (0, 1)]

    def release_matches(self, incarnation: int, match_ids: Sequence[str], reason: str) -> int:
        self.released += match_ids
        return len(match_ids)

    def report_results(
        self, incarnation: int, results: Sequence[MatchResult]
    ) -> tuple[list[Verdict], int]:
        self.reports.append([result.match_id for result in results])
        return [self.judge(len(self.reports), result) for result in results], 0


def accepts(number: int, result: MatchResult) -> Verdict:
    return Verdict(match_id=result.match_id, accepted=True)


def refuses(number: int, result: MatchResult) -> Verdict:
    return Verdict(match_id=result.match_id, accepted=False, reason=f"no {number}")


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with_file = Journal(tmp_path / "journal.db")
    yield with_file
    with_file.close()


def begin(
    matchmaker: Matchmaker, journal: Journal, slots: Sequence[Slot] = PAIR
) -> tuple[GauntletWork, Rows]:
    """The work on these slots in an empty arena."""
    rows, plan = Rows(), (Entry("based", Book.EVAL, 2),)
    gauntlet = Gauntlet(ME.name, ME.digest, False, plan)
    work = GauntletWork(matchmaker, 1, rows, journal, gauntlet, slots)  # type: ignore[arg-type]
    return work, rows


def test_the_half_of_a_pair_that_was_played_before_is_handed_back(journal: Journal) -> None:
    matchmaker = Matchmaker(accepts)
    run, _ = begin(matchmaker, journal, PAIR[1:])
    run.step()
    assert run.finished
    assert (matchmaker.released, matchmaker.reports) == (["m0"], [["m1"]])


def test_a_refused_match_is_played_again(
    journal: Journal, caplog: pytest.LogCaptureFixture
) -> None:
    run, _ = begin(
        Matchmaker(
            lambda number, r: (refuses if (number, r.match_id) == (1, "m1") else accepts)(number, r)
        ),
        journal,
    )
    run.step()
    assert not run.finished
    assert run.accepted == 1
    assert "no 1" in caplog.text
    assert journal.pending() == []
    while not run.finished:
        run.step()
    assert run.accepted == 2
    assert journal.done_slots("main@1", "based", Book.EVAL) == {(0, 0), (0, 1)}
