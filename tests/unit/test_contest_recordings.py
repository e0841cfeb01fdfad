"""Recorded matches of a player against several opponents."""

from __future__ import annotations

from pathlib import Path

import pytest

from league.contest.league import League
from league.contest.members import Entrant, Finder
from league.contest.recordings import record
from league.errors import InvalidInput
from league.games.settings import GameSettings
from league.replay import load_replay


def entrants(*names: str) -> tuple[GameSettings, list[Entrant]]:
    finder = Finder(League(), "matrix:rps")
    settings = finder.settings(names)
    return settings, finder.entrants(settings.spec(), names)


def test_a_player_meets_each_opponent_from_both_seats(tmp_path: Path) -> None:
    settings, (paper, *others) = entrants("always-paper", "always-rock", "always-scissors")
    out = tmp_path / "new" / "folder"
    found = list(record(settings, paper, [*others, paper], matches=6, out=out))
    outcomes = {
        (series.opponent, place): [outcome for outcome, _ in played]
        for series in found
        for place, played in series.places.items()
    }
    assert outcomes == {
        ("always-rock", "both"): [1.0] * 6,
        ("always-rock", "first"): [1.0] * 3,
        ("always-rock", "second"): [1.0] * 3,
        ("always-scissors", "both"): [0.0] * 6,
        ("always-scissors", "first"): [0.0] * 3,
        ("always-scissors", "second"): [0.0] * 3,
        ("always-paper", "both"): [0.5] * 6,
        ("always-paper", "first"): [0.5] * 6,
    }
    replays = [load_replay(file) for file in out.glob("*.replay")]
    assert sum("always-rock" in replay.names for replay in replays) == 6
    assert len(replays) == 18


def test_what_does_not_suit_is_refused(tmp_path: Path) -> None:
    settings, (player, *others) = entrants("always-paper", "always-rock")
    with pytest.raises(InvalidInput, match="matrix:rps"):
        next(record(settings, player, others, matches=2, pace=2))
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(InvalidInput, match=str(file)):
        next(record(settings, player, others, matches=2, out=file))
