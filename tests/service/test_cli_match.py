"""``bin/league match`` tells why two met and what became of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from cli_league import Live, asking, live_league

from league.cli.main import main

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with live_league(tmp_path_factory.mktemp("live")) as league:
        yield league


@pytest.fixture
def league(live: Live, capsys: Capture) -> Callable[..., str]:
    return asking(live, capsys)


def test_a_drawn_match_tells_why(live: Live, league: Callable[..., str]) -> None:
    text = league("match", live.ids["snapshots"])
    assert "asked for an opponent under the mix 'league'" in text
    assert re.search(
        r"category 'snapshots' was drawn out of snapshots 70\.0%, constant 5\.0%", text
    )
    assert re.search(r"the rule pfsp_hard chose main@\d+ out of 2", text)
    assert re.search(r"^main@\d+\t\S+\t\d+\.\d%\tdrawn$", text, re.MULTILINE)
    chances = [float(x) for x in re.findall(r"^main@\d+\t\S+\t([\d.]+)%", text, re.MULTILINE)]
    assert sum(chances) == pytest.approx(100, abs=0.2)


def test_a_paired_match_tells_who_asked(live: Live, league: Callable[..., str]) -> None:
    text = league("match", live.ids["gauntlet"])
    assert "evaluator-0 asked for main@2000 against based by name" in text
    assert "lease\treported" in text
    assert "after 900 frames" in text


def test_the_beginning_of_a_match_id_is_enough_when_no_other_begins_so(
    live: Live, league: Callable[..., str]
) -> None:
    whole = live.ids["gauntlet"]
    assert league("match", whole[:12]) == league("match", whole)


def test_a_match_that_does_not_exist_is_named(live: Live, capsys: Capture) -> None:
    assert main(["match", "0" * 32, "--address", live.address]) == 1
    assert "0" * 32 in capsys.readouterr().err
