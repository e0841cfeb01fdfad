"""Compiles the step: N matches and any number of frames in a call without the interpreter lock.

Shape suffixes: N matches, 2 seats, 1 record, A keys. `paid` and `stats` are records of
layout.TERMS_ROW and layout.STATS_ROW. The suffixes _0 and _1 are seats.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit

from league.games.brawl import rules
from league.games.brawl.bots import bot_keys
from league.games.brawl.compiling import inner
from league.games.brawl.control import begin_player, control, show_counts
from league.games.brawl.hits import land
from league.games.brawl.layout import MIRROR_DELAY
from league.games.brawl.observation import write_views
from league.games.brawl.physics import (
    PLAYERS,
    aim_platform,
    begin_tree,
    gap,
    is_on_floor,
    move,
    move_platform,
    update_platform_box,
)
from league.games.brawl.random_stream import mixed, stream_of
from league.games.brawl.scoring import score, score_end
from league.games.brawl.variation import begin_variation, take_keys
from league.games.brawl.weapons import begin_weapons, come_and_go, drop, fall, pick_up

_ONE = np.uint64(1)
_RIGHT_STREAM, _LEFT_STREAM = np.uint64(0xD1B54A32D192ED03), np.uint64(0x8BB84B93962EACC9)


@inner
def _begin_player(player: Any, side: int, seed: Any, stage: Any) -> None:
    # The stream belongs to the side, so a bot draws the same numbers in either seat.
    player.random = stream_of(seed, _RIGHT_STREAM if side > 0 else _LEFT_STREAM)
    begin_player(player, side, stage)
    player.dealt, player.combos, player.fell = 0.0, 0, 0
    player.equipped, player.dropped = 0, 0
    for i in range(MIRROR_DELAY):
        player.past_keys[i] = 0
    player.last_x = player.x


@inner
def begin(n: int, seed: Any, arrays: Any) -> None:
    """Begins a match in row `n`. The match follows from its seed and the keys alone."""
    stage_1, _tables, players_N2, matches_N, views_N21, stats_N21, no_stats_1 = arrays[:7]
    player_0, player_1, match, stage = players_N2[n, 0], players_N2[n, 1], matches_N[n], stage_1[0]
    match.seed = seed
    match.frame = 0
    begin_variation(match, stage)
    match.platform_vx, match.platform_vy = 0.0, 0.0
    move_platform(match, stage)
    begin_weapons(match, seed)
    first_side = 1 if mixed(seed) & _ONE else -1
    _begin_player(player_0, first_side, seed, stage)
    _begin_player(player_1, -first_side, seed, stage)
    begin_tree(match, player_0, player_1, stage)
    for seat in range(2):
        stats_N21[n, seat, 0] = no_stats_1[0]
        stats_N21[n, seat, 0].spawn_side = players_N2[n, seat].side
    write_views(views_N21[n, 0, 0], views_N21[n, 1, 0], player_0, player_1, match, stage)
    arrays[13][n] = 0  # frames_N


@inner
def _begin_frame(player: Any, keys: int, frame: int) -> None:
    player.dealt, player.combos, player.fell, player.moved_by_hand = 0.0, 0, 0, 0
    player.equipped, player.dropped = 0, 0
    player.last_x = player.x
    player.past_keys[frame % MIRROR_DELAY] = keys
    player.last_state = player.state


@inner
def _move_player(player: Any, number: int, stage: Any, match: Any) -> None:
    floats = player.state == rules.DODGE or player.state == rules.KO
    move(
        player,
        number,
        rules.HALF_WIDTH,
        rules.HALF_HEIGHT,
        match.friction,
        0.0 if floats else rules.GRAVITY_PER_FRAME,
        stage,
        match,
    )
    player.grounded = is_on_floor(player, stage, match)
    show_counts(player)


@inner
def _act(
    player_0: Any, player_1: Any, match: Any, stage: Any, tables: Any, stats_0: Any, stats_1: Any
) -> None:
    """Lets both seats turn their keys into states and speeds, and hit each other.

    Seat 0 acts first, so if both hit in the same frame, only seat 0's hit counts. Under the
    fair rules, hits take effect after both seats have acted.
    """
    if stage.is_fair:
        player_0.hurt_x, player_0.hurt_y = player_0.x, player_0.y
        player_1.hurt_x, player_1.hurt_y = player_1.x, player_1.y
    control(player_0, player_1, match.keys_0, match, stage, tables, stats_0)
    if not stage.is_fair:
        land(player_0, player_1, is_on_floor(player_1, stage, match), stats_0)
    control(player_1, player_0, match.keys_1, match, stage, tables, stats_1)
    if stage.is_fair:
        land(player_0, player_1, is_on_floor(player_1, stage, match), stats_0)
    land(player_1, player_0, is_on_floor(player_0, stage, match), stats_1)


@inner
def _use_weapons(
    player_0: Any,
    player_1: Any,
    pressed_0: int,
    pressed_1: int,
    match: Any,
    stage: Any,
    stats_0: Any,
    stats_1: Any,
) -> None:
    drops_0 = pressed_0 & rules.PICK != 0 and player_0.weapon and player_0.state != rules.ATTACK
    drops_1 = pressed_1 & rules.PICK != 0 and player_1.weapon and player_1.state != rules.ATTACK
    both = drops_0 and drops_1 and stage.is_fair  # else neither weapon would be older
    if drops_0 and not both:
        drop(player_0, match)
    if drops_1 and not both:
        drop(player_1, match)
    if match.weapons_lying > 0:
        pick_up(player_0, player_1, pressed_0, pressed_1, match, stage, stats_0, stats_1)
        fall(match, stage)
    come_and_go(match, stage)


@inner
def play_frame(
    player_0: Any,
    player_1: Any,
    match: Any,
    stage: Any,
    tables: Any,
    paid_0: Any,
    paid_1: Any,
    stats_0: Any,
    stats_1: Any,
) -> None:
    """Plays one frame of a match with the key bits in `match`."""
    last_distance = gap(player_0, player_1)
    match.frame += 1
    pressed_0, pressed_1 = match.keys_0 & ~player_0.keys, match.keys_1 & ~player_1.keys
    _begin_frame(player_0, match.keys_0, match.frame)
    _begin_frame(player_1, match.keys_1, match.frame)
    aim_platform(match, stage)
    _act(player_0, player_1, match, stage, tables, stats_0, stats_1)
    move_platform(match, stage)
    update_platform_box(match, stage)
    _move_player(player_0, PLAYERS, stage, match)
    _move_player(player_1, PLAYERS + 1, stage, match)
    _use_weapons(player_0, player_1, pressed_0, pressed_1, match, stage, stats_0, stats_1)
    distance = gap(player_0, player_1)
    score(player_0, player_1, last_distance, distance, paid_0, stats_0)
    score(player_1, player_0, last_distance, distance, paid_1, stats_1)


@inner
def _outcome(stocks_0: int, stocks_1: int, frame: int, max_frames: int) -> float:
    """Returns seat 0's outcome (1, 0.5 or 0) by both seats' stocks, or -1 while the match runs."""
    if stocks_0 > 0 and stocks_1 > 0 and frame < max_frames:
        return -1.0
    if stocks_0 == stocks_1:
        return 0.5
    return 1.0 if stocks_0 > stocks_1 else 0.0


@inner
def _key_bits(actions_N2A: Any, n: int, seat: int) -> int:
    bits = 0
    for key in range(10):
        bits |= (1 if actions_N2A[n, seat, key] != 0 else 0) << key
    return bits


def _sources_digest() -> str:
    """Returns a digest of this folder's sources, from which the step is compiled."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _jitted(function: Callable[..., None]) -> Callable[..., None]:
    """Compiles a function, and caches its machine code if the cache folder can be written."""
    try:
        return njit(nogil=True, cache=True)(function)
    except RuntimeError:  # no cache folder: each process compiles
        return njit(nogil=True)(function)


def _compiled(sources: str) -> tuple[Callable[..., None], Callable[..., None]]:
    """Returns `reset` and `step`, cached on disk under the digest of their sources.

    Numba itself checks only the function's own file, so after an edit of another module it would
    reuse old machine code. But the values in a closure are part of Numba's cache key. So both
    functions are closures over the digest. `arrays` is `BrawlGame._arrays`.
    """

    @_jitted
    def reset(where_N: Any, seeds_N: Any, arrays: Any) -> None:
        _ = sources
        for n in range(where_N.shape[0]):
            if where_N[n]:
                begin(n, seeds_N[n], arrays)

    @_jitted
    def step(
        first: Any, last: Any, actions_N2A: Any, frames: Any, max_frames: Any, arrays: Any
    ) -> None:
        _ = sources
        stage_1, tables_1, players_N2, matches_N, views_N21, stats_N21, _ = arrays[:7]
        nothing_paid_1, final_views_N21, final_stats_N21, paid_N21 = arrays[7:11]
        ended_N, outcomes_N, frames_N, final_frames_N, bots_N2, next_seeds_N, idle_N = arrays[11:]
        stage, tables = stage_1[0], tables_1[0]
        for n in range(first, last):
            player_0, player_1, match = players_N2[n, 0], players_N2[n, 1], matches_N[n]
            paid_N21[n, 0, 0] = nothing_paid_1[0]
            paid_N21[n, 1, 0] = nothing_paid_1[0]
            if idle_N[n]:
                ended_N[n] = False
                continue
            paid_0, paid_1 = paid_N21[n, 0, 0], paid_N21[n, 1, 0]
            stats_0, stats_1 = stats_N21[n, 0, 0], stats_N21[n, 1, 0]
            bot_0, bot_1 = bots_N2[n, 0], bots_N2[n, 1]
            held_0 = _key_bits(actions_N2A, n, 0)
            held_1 = _key_bits(actions_N2A, n, 1)
            outcome = -1.0
            for _frame in range(frames):
                keys_0 = held_0 if bot_0 < 0 else bot_keys(bot_0, player_0, player_1, match, stage)
                keys_1 = held_1 if bot_1 < 0 else bot_keys(bot_1, player_1, player_0, match, stage)
                take_keys(match, keys_0, keys_1)
                play_frame(
                    player_0, player_1, match, stage, tables, paid_0, paid_1, stats_0, stats_1
                )
                outcome = _outcome(player_0.stocks, player_1.stocks, match.frame, max_frames)
                if outcome >= 0.0:
                    score_end(outcome, paid_0, paid_1)
                    break
            view_0, view_1 = views_N21[n, 0, 0], views_N21[n, 1, 0]
            write_views(view_0, view_1, player_0, player_1, match, stage)
            ended_N[n] = outcome >= 0.0
            if outcome >= 0.0:
                outcomes_N[n] = outcome
                final_frames_N[n] = match.frame
                final_views_N21[n, 0, 0] = view_0
                final_views_N21[n, 1, 0] = view_1
                final_stats_N21[n, 0, 0] = stats_0
                final_stats_N21[n, 1, 0] = stats_1
                begin(n, next_seeds_N[n], arrays)
                next_seeds_N[n] = mixed(next_seeds_N[n])
            else:
                frames_N[n] = match.frame

    return reset, step


reset_matches, step_matches = _compiled(_sources_digest())
