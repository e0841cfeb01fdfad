"""One gauntlet against a matchmaker from memory: pairs, refusals, the end, and giving up."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from evaluator.gauntlet import REFUSALS_IN_A_ROW, GauntletRun, Office
from evaluator.journal import Journal
from evaluator.strategy import Slot, pair_seed
from league.errors import Refused
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
    """An arena of eight rows in which every match ends after one decision; seat 0 wins."""

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


class Matchmaker:
    """Leases both seats of every pair, and judges the reports as `judge` (by their number, from
    1) says.
    """

    def __init__(self, judge: Callable[[int, MatchResult], Verdict]) -> None:
        self.judge = judge
        self.pairings: list[Pairing] = []
        self.reports: list[list[str]] = []
        self.released: list[str] = []
        self._numbers = itertools.count()

    def acquire_pairings(self, incarnation: int, pairings: Sequence[Pairing]) -> list[Assignment]:
        self.pairings += pairings
        return [self._lease(pairing, seat) for pairing in pairings for seat in (0, 1)]

    def _lease(self, pairing: Pairing, seat: int) -> Assignment:
        number = next(self._numbers)
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
) -> tuple[GauntletRun, list[str]]:
    """A run in an empty arena, and what it says."""
    said: list[str] = []
    office = Office(
        client=matchmaker,
        incarnation=1,
        journal=journal,
        seed=5,
        report_seconds=60.0,
        say=said.append,
        clock=lambda: 0.0,
    )
    return GauntletRun(office, Rows(), ME.name, slots), said


def test_a_pair_is_played_from_both_seats_and_written_down_from_the_players_side(
    journal: Journal,
) -> None:
    matchmaker = Matchmaker(accepts)
    run, said = begin(matchmaker, journal)
    run.step()
    assert run.finished
    assert run.accepted == 2
    assert said == []
    assert [p.seed for p in matchmaker.pairings] == [pair_seed(5, 0)]
    played = {m.slot.seat: m for m in journal.matches("main@1", "based", Book.EVAL)}
    assert {seat: m.outcome for seat, m in played.items()} == {0: 1.0, 1: 0.0}
    assert {seat: m.stats["hits"] for seat, m in played.items()} == {0: 3.0, 1: 1.0}
    assert {seat: m.opponent_stats["hits"] for seat, m in played.items()} == {0: 1.0, 1: 3.0}


def test_the_half_of_a_pair_that_was_played_before_is_handed_back(journal: Journal) -> None:
    matchmaker = Matchmaker(accepts)
    run, _ = begin(matchmaker, journal, PAIR[1:])
    run.step()
    assert run.finished
    assert matchmaker.released == ["m0"]
    assert matchmaker.reports == [["m1"]]


def test_a_result_reported_twice_counts_as_taken(journal: Journal) -> None:
    run, said = begin(
        Matchmaker(lambda _, r: Verdict(match_id=r.match_id, accepted=False, duplicate=True)),
        journal,
    )
    run.step()
    assert run.finished
    assert said == []
    assert journal.done_slots("main@1", "based", Book.EVAL) == {(0, 0), (0, 1)}


def test_what_is_refused_is_said_and_played_again(journal: Journal) -> None:
    matchmaker = Matchmaker(
        lambda number, r: (refuses if (number, r.match_id) == (1, "m1") else accepts)(number, r)
    )
    run, said = begin(matchmaker, journal)
    run.step()
    assert not run.finished
    assert run.accepted == 1
    assert len(said) == 1
    assert "refused 1 results of main@1, they are played again: no 1" in said[0]
    assert journal.pending() == []
    while not run.finished:
        run.step()
    assert run.accepted == 2
    assert journal.done_slots("main@1", "based", Book.EVAL) == {(0, 0), (0, 1)}


def test_it_gives_up_when_every_result_of_some_reports_in_a_row_is_refused(
    journal: Journal,
) -> None:
    matchmaker = Matchmaker(refuses)
    run, said = begin(matchmaker, journal)
    for _ in range(REFUSALS_IN_A_ROW - 1):
        run.step()
    with pytest.raises(
        Refused, match=f"every result of {REFUSALS_IN_A_ROW} reports in a row.*'no 3'"
    ):
        run.step()
    assert len(matchmaker.reports) == len(said) == REFUSALS_IN_A_ROW == 3
    assert run.accepted == 0
    assert journal.pending() == [], "refused matches never were"
    assert journal.done_slots("main@1", "based", Book.EVAL) == set()


def test_one_result_that_is_taken_begins_the_count_of_refusals_anew(journal: Journal) -> None:
    matchmaker = Matchmaker(
        lambda number, r: (accepts if number == 3 and r.match_id.endswith("4") else refuses)(
            number, r
        )
    )
    run, _ = begin(matchmaker, journal)
    for _ in range(2 * REFUSALS_IN_A_ROW - 1):
        run.step()
    assert run.accepted == 1
    with pytest.raises(Refused):
        run.step()


def test_a_stop_reports_what_has_ended_and_releases_the_rest(journal: Journal) -> None:
    matchmaker = Matchmaker(accepts)
    run, _ = begin(matchmaker, journal)
    run._fill()
    assert run.hand_back() == 2
    assert matchmaker.released == ["m0", "m1"]
    assert matchmaker.reports == []
    run, _ = begin(matchmaker, journal)
    run._fill()
    run._unreported += run._arena.step()
    assert run.hand_back() == 0
    assert matchmaker.reports == [["m2", "m3"]]
    assert journal.pending() == []
