"""When a main is frozen, by the rule of its role: asked of the matchmaker, which knows whom it
beats.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from exploiter_league import ExploiterLeague, exploiter_league
from small_league import played

from league.errors import NotFound
from league.exploiters import Standing

N = 1000


@pytest.fixture
def league(tmp_path: Path) -> Iterator[ExploiterLeague]:
    with exploiter_league(tmp_path, roles="alphastar-pseudocode") as league:
        yield league


class Main:
    """The main's learner, which loses to those named and beats all others."""

    def __init__(self, league: ExploiterLeague) -> None:
        self.client = league.client
        self.incarnation = self.client.open_incarnation("learner-main", "main").number

    def plays(self, *stronger: str, matches: int = 300) -> None:
        drawn = self.client.acquire_matches(self.incarnation, matches, "league")
        wins = [(one.learner_seat == 0) == (one.opponent.name not in stronger) for one in drawn]
        done = [played(one, float(won)) for one, won in zip(drawn, wins, strict=True)]
        self.client.report_results(self.incarnation, done)

    def standing(self, steps: int = N) -> Standing:
        return self.client.standing("main", steps, N)


def test_a_main_of_the_pseudocode_waits_until_it_beats_its_past_or_twice_as_long(
    league: ExploiterLeague,
) -> None:
    main = Main(league)
    assert (main.standing().due, main.standing().reset, len(main.standing().victims)) == (
        False,
        False,
        1,
    )
    assert main.standing(2 * N).due
    main.plays("main@2000")
    assert not main.standing().due
    assert main.standing().victims[0].victim == "main@2000", "whom it beats least"
    for _ in range(4):  # it meets mostly whom it lost to
        main.plays()
    assert main.standing().due
    assert main.standing().victims[0].chance > 0.7
    assert not main.standing(N - 1).due


@pytest.mark.parametrize("roles", ["mix", "alphastar-paper"])
def test_any_other_main_is_frozen_every_interval(tmp_path: Path, roles: str) -> None:
    with exploiter_league(tmp_path, roles=roles) as league:
        assert league.client.standing("main", N, N).due
        assert league.client.standing("main", N, N).victims == ()
        assert not league.client.standing("main", N - 1, N).due


def test_a_snapshot_and_a_stranger_have_no_standing(league: ExploiterLeague) -> None:
    for name in ("main@1000", "nobody"):
        with pytest.raises(NotFound, match=f"'{name}' is no main and no exploiter's generation"):
            league.client.standing(name, N, N)
