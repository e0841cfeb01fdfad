"""Where a step's time goes: the compiled step once more, with ever more of its parts."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numba import njit

from league.games.brawl import kernel, layout
from league.games.brawl.control import control
from league.games.brawl.game import BrawlGame
from league.games.brawl.observation import write_halves
from league.games.brawl.physics import move, ride
from league.games.brawl.scoring import score

_begin, _key_bits, _distance, _exchange_hits = (
    kernel.begin,
    kernel._key_bits,
    kernel._distance,
    kernel._exchange_hits,
)
PARTS = (
    "read keys",
    "moving platform, weapons, pushes",
    "state machine",
    "motion and ground",
    "hits",
)
MORE = ("reward terms and statistics", "observations")


@njit
def _advance(  # type: ignore[no-untyped-def]
    players_N2,
    matches_N,
    actions_N2A,
    stage_1,
    tables_1,
    halves_N22,
    paid_N2,
    stats_N2,
    nothing_1,
    parts,
):
    """A frame of every match with the first `parts` of the parts; returns something of all, to
    keep it.
    """
    stage, tables, kept = stage_1[0], tables_1[0], 0
    for n in range(matches_N.shape[0]):
        one, other, match = players_N2[n, 0], players_N2[n, 1], matches_N[n]
        keys_0, keys_1 = _key_bits(actions_N2A, n, 0), _key_bits(actions_N2A, n, 1)
        kept += keys_0 + keys_1
        if parts > 1:
            last = _distance(one, other)
            match.frame += 1
            x = match.platform_x
            kernel.move_platform(match, stage)
            if match.frame >= match.weapons_change:
                kernel.move_weapons(match, stage)
            ride(one, stage, match, match.platform_x - x)
            ride(other, stage, match, match.platform_x - x)
        if parts > 2:
            control(one, keys_0, stage, tables, stats_N2[n, 0])
            control(other, keys_1, stage, tables, stats_N2[n, 1])
        if parts > 3:
            move(one, stage, match)
            move(other, stage, match)
        if parts > 4:
            _exchange_hits(one, other, tables, stats_N2[n, 0], stats_N2[n, 1])
        if parts > 5:
            paid_N2[n, 0] = nothing_1[0]
            paid_N2[n, 1] = nothing_1[0]
            distance = _distance(one, other)
            score(one, other, last, distance, paid_N2[n, 0], stats_N2[n, 0])
            score(other, one, last, distance, paid_N2[n, 1], stats_N2[n, 1])
        if parts > 6:
            write_halves(halves_N22[n, 0, 0], halves_N22[n, 1, 0], one, other, match, False)
            halves_N22[n, 0, 1] = halves_N22[n, 1, 0]
            halves_N22[n, 1, 1] = halves_N22[n, 0, 0]
    return kept


def _seconds_a_match_step(game: Any, ring: Any, parts: int, seconds: float) -> float:
    """From the same states each time, so that all that differs is the work on them; best of
    many.
    """
    players, matches = game._players_N2.copy(), game._matches_N.copy()
    nothing_1, best = np.zeros(1, layout.TERMS_ROW), 1.0
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        game._players_N2[:], game._matches_N[:] = players, matches
        begin = time.perf_counter()
        for actions_N2A in ring:
            _advance(
                game._players_N2,
                game._matches_N,
                actions_N2A,
                game._stage_1,
                game._tables_1,
                game._halves_N22,
                game._paid_N2,
                game._stats_N2,
                nothing_1,
                parts,
            )
        best = min(best, (time.perf_counter() - begin) / len(ring) / game.num_matches)
    game._players_N2[:], game._matches_N[:] = players, matches
    return best


def print_profile(num_matches: int, seconds: float) -> None:
    """Nanoseconds of a match-step by part, random keys, and what memory alone would allow."""
    from game import made

    game, ring = made(num_matches, "random")
    assert isinstance(game, BrawlGame)
    _seconds_a_match_step(game, ring, 0, 0.01)  # compiles
    before = 0.0
    for parts, name in enumerate((*PARTS, *MORE), start=1):
        now = _seconds_a_match_step(game, ring, parts, seconds) * 1e9
        print(f"{name:34s} {now - before:6.1f} ns")
        before = now
    print(f"{'all of it':34s} {before:6.1f} ns")
    touched = 2 * layout.PLAYER.itemsize + layout.MATCH.itemsize + 4 * layout.HALF.itemsize
    touched += 2 * (layout.TERMS_ROW.itemsize + layout.STATS_ROW.itemsize) + 20
    source = np.zeros(num_matches * touched // 8)
    target, best = source.copy(), 1.0
    for _ in range(2000):
        begin = time.perf_counter()
        target[:] = source
        best = min(best, time.perf_counter() - begin)
    print(f"{touched} bytes a match; copying them takes {best / num_matches * 1e9:.1f} ns a match")
