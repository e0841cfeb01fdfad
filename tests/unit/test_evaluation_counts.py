"""What an evaluation wants of each pair of players, and what it says of their counts."""

from __future__ import annotations

import pytest

from league.errors import InvalidInput
from league.evaluations import Evaluation, mixture_of, score_of, targets, text_of
from league.metrics import wilson_interval
from league.players import Book, PayoffCell


def wanted(player: str, *opponents: str, matches: int) -> dict[tuple[str, str], int]:
    evaluation = Evaluation(
        number=1, player=player, opponents=opponents, matches=matches, book=Book.GREEDY, by="bob"
    )
    found = targets(evaluation)
    assert {target.book for target in found} == {Book.GREEDY}
    return {(target.player, target.opponent): target.until for target in found}


def test_the_members_of_a_mixture_share_the_matches_by_weight() -> None:
    assert wanted("a", "b", matches=40) == {("a", "b"): 40}
    assert wanted("a", "b=3,c=1", matches=40) == {("a", "b"): 30, ("a", "c"): 10}
    assert wanted("a=1,b=1", "c=3,d=1", matches=80) == {
        ("a", "c"): 30,
        ("a", "d"): 10,
        ("b", "c"): 30,
        ("b", "d"): 10,
    }


def test_every_member_meets_every_other_in_one_pair_of_matches_at_least() -> None:
    assert wanted("a", "b=99,c=1", matches=4) == {("a", "b"): 4, ("a", "c"): 2}


def test_matches_that_two_opponents_have_in_common_are_played_once() -> None:
    assert wanted("a", "b=1,c=1", "b", matches=40) == {("a", "b"): 40, ("a", "c"): 20}


def test_a_mixture_is_written_as_it_is_read() -> None:
    for text in ("based", "main@1000=0.75,random=0.25", "a=0.333333,b=0.333333,c=0.333333"):
        assert text_of(mixture_of(text)) == text
    assert mixture_of("based=3,random=1") == {"based": 0.75, "random": 0.25}


@pytest.mark.parametrize(
    "who", ["a=0", "a=x", "a=1,b", "=2", "", "a=1e308,b=1e308", "a=1,b=1e-12", {"a": float("nan")}]
)
def test_a_mixture_with_a_wrong_weight_is_refused(who: object) -> None:
    with pytest.raises(InvalidInput, match="mixture"):
        mixture_of(who)  # type: ignore[arg-type]


def cells(**counts: tuple[int, int, int, float]):  # type: ignore[no-untyped-def]
    """Wins, draws, losses and mean damage of `a` against each."""

    def cell(row: str, column: str) -> PayoffCell:
        wins, draws, losses, damage = counts.get(column, (0, 0, 0, 0.0))
        means = {"damage_dealt": damage} if wins + draws + losses else {}
        return PayoffCell(
            row=row, column=column, wins=wins, draws=draws, losses=losses, means=means
        )

    return cell


def test_a_score_has_the_counts_and_wilsons_interval() -> None:
    found = score_of("a", "b", cells(b=(9, 0, 1, 20.0)))
    assert (found.matches, found.wins, found.draws, found.losses) == (10, 9, 0, 1)
    assert found.win_rate.value == pytest.approx(0.9)
    interval = wilson_interval(9, 10)
    assert (found.win_rate.low, found.win_rate.high) == pytest.approx((interval.low, interval.high))
    assert found.means == {"damage_dealt": 20.0}


def test_a_mixtures_score_is_weighted_whatever_was_played() -> None:
    """The log may have more matches of one member than the evaluation asked for."""
    found = score_of("a", "b=3,c=1", cells(b=(10, 0, 0, 40.0), c=(0, 100, 900, 0.0)))
    assert found.win_rate.value == pytest.approx(0.75)
    assert found.means["damage_dealt"] == pytest.approx(30.0)
    assert (found.matches, found.wins, found.draws, found.losses) == (1010, 10, 100, 900)
    worth = 1 / (0.75**2 / 10 + 0.25**2 / 1000)
    interval = wilson_interval(0.75 * worth, worth)
    assert found.win_rate.low == pytest.approx(interval.low)
    assert found.win_rate.high == pytest.approx(interval.high)


def test_members_that_have_not_met_are_left_out_of_a_score() -> None:
    found = score_of("a", "b=3,c=1", cells(c=(1, 1, 0, 8.0)))
    assert (found.win_rate.value, found.means["damage_dealt"]) == (0.5, 8.0)
    nothing = score_of("a", "b=3,c=1", cells())
    assert (nothing.matches, nothing.means) == (0, {})
    rate = nothing.win_rate
    assert (rate.value, rate.low, rate.high) == (0.0, 0.0, 1.0)
