"""The compiled step: N matches, some frames, one call that holds no interpreter lock.

Shape suffixes: N matches, 2 seats, A keys, O observation, K reward terms, S statistics.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit

from league.games.brawl import rules, spec
from league.games.brawl.bots import bot_keys
from league.games.brawl.control import control, place
from league.games.brawl.hits import strike, striking_stage
from league.games.brawl.observation import observe
from league.games.brawl.physics import move, move_platform, ride
from league.games.brawl.random_stream import mixed
from league.games.brawl.scoring import score, score_end
from league.games.brawl.weapons import begin_weapons, drop, move_weapons, pick_up

_ONE = np.uint64(1)
_SIDE_STREAM = np.uint64(0xD1B54A32D192ED03)


@njit
def begin(players_2: Any, weapons_4: Any, match: Any, seed: Any, stage: Any, stats_2S: Any) -> None:
    """Begins a match: everything in it follows from `seed` and the keys."""
    match.seed = seed
    match.frame = 0
    move_platform(match, stage)
    begin_weapons(weapons_4, match, seed)
    first_side = 1 if mixed(seed) & _ONE else -1
    stats_2S[:] = 0.0
    for seat in range(2):
        player = players_2[seat]
        player.side = first_side if seat == 0 else -first_side
        # The stream belongs to the side, so a bot draws the same from either seat.
        player.random = mixed(seed ^ _SIDE_STREAM) if player.side > 0 else mixed(seed + _SIDE_STREAM)
        player.stocks = rules.STOCKS
        player.keys, player.move_frame, player.charged, player.stages_hit = 0, 0, 0, 0
        player.dealt, player.combos, player.fell = 0.0, 0, 0
        player.equipped, player.dropped = 0, 0
        place(player, stage)
        player.last_x = player.x
        stats_2S[seat, spec.SPAWN_SIDE] = player.side


@njit
def _distance(one: Any, other: Any) -> float:
    dx, dy = one.x - other.x, one.y - other.y
    return math.sqrt(dx * dx + dy * dy)


@njit
def _exchange_hits(one: Any, other: Any, tables: Any, stats_2S: Any) -> None:
    """Both seats' hits are found before either is applied: a trade hits both."""
    by_one = striking_stage(one, other, tables)
    by_other = striking_stage(other, one, tables)
    one_row = tables.stages_K[tables.moves_WM[one.weapon, one.move].first_stage + max(by_one, 0)]
    other_row = tables.stages_K[tables.moves_WM[other.weapon, other.move].first_stage + max(by_other, 0)]
    one_was_stunned, other_was_stunned = one.stun_left > 0, other.stun_left > 0
    one_vx, one_vy, other_vx, other_vy = one.vx, one.vy, other.vx, other.vy
    if by_one >= 0:
        strike(one, other, by_one, one_row, one_vx, one_vy, other_was_stunned, stats_2S[0])
    if by_other >= 0:
        strike(other, one, by_other, other_row, other_vx, other_vy, one_was_stunned, stats_2S[1])


@njit
def play_frame(
    players_2: Any,
    weapons_4: Any,
    match: Any,
    keys_0: int,
    keys_1: int,
    stage: Any,
    tables: Any,
    terms_2K: Any,
    stats_2S: Any,
) -> None:
    """One frame of one match with both seats' key bits."""
    one, other = players_2[0], players_2[1]
    last_distance = _distance(one, other)
    for seat in range(2):
        player = players_2[seat]
        player.dealt, player.combos, player.fell, player.moved_by_hand = 0.0, 0, 0, 0
        player.equipped, player.dropped = 0, 0
        player.last_x = player.x
    match.frame += 1
    platform_x = match.platform_x
    move_platform(match, stage)
    if match.frame >= match.weapons_change:
        move_weapons(weapons_4, match, stage)
    for seat in range(2):
        player = players_2[seat]
        ride(player, stage, match, match.platform_x - platform_x)
        control(player, keys_0 if seat == 0 else keys_1, stage, tables, stats_2S[seat])
        move(player, stage, match)
        if player.dropped:
            drop(player, weapons_4, match)
    _exchange_hits(one, other, tables, stats_2S)
    if match.weapons > 0:
        pick_up(one, other, weapons_4, match, stats_2S)
    distance = _distance(one, other)
    score(one, other, last_distance, distance, terms_2K[0], stats_2S[0])
    score(other, one, last_distance, distance, terms_2K[1], stats_2S[1])


@njit
def _outcome(players_2: Any, frame: int, max_frames: int) -> float:
    """Seat 0's 1, 0.5 or 0 once the match is over, before that -1."""
    one, other = players_2[0].stocks, players_2[1].stocks
    if one > 0 and other > 0 and frame < max_frames:
        return -1.0
    if one == other:
        return 0.5
    return 1.0 if one > other else 0.0


@njit
def _key_bits(keys_A: Any) -> int:
    bits = 0
    for key in range(keys_A.shape[0]):
        if keys_A[key]:
            bits |= 1 << key
    return bits


@njit
def _play(
    players_2: Any,
    weapons_4: Any,
    match: Any,
    actions_2A: Any,
    bots_2: Any,
    frames: int,
    max_frames: int,
    stage: Any,
    tables: Any,
    terms_2K: Any,
    stats_2S: Any,
) -> float:
    """Up to `frames` frames of one match; returns `_outcome`."""
    held_0, held_1 = _key_bits(actions_2A[0]), _key_bits(actions_2A[1])
    outcome = -1.0
    for _ in range(frames):
        one, other = players_2[0], players_2[1]
        keys_0 = held_0 if bots_2[0] < 0 else bot_keys(bots_2[0], one, other, match.frame)
        keys_1 = held_1 if bots_2[1] < 0 else bot_keys(bots_2[1], other, one, match.frame)
        play_frame(players_2, weapons_4, match, keys_0, keys_1, stage, tables, terms_2K, stats_2S)
        outcome = _outcome(players_2, match.frame, max_frames)
        if outcome >= 0.0:
            score_end(outcome, terms_2K)
            break
    return outcome


COMPILED = (
    "bots.py",
    "control.py",
    "hits.py",
    "kernel.py",
    "layout.py",
    "moves.py",
    "observation.py",
    "physics.py",
    "random_stream.py",
    "rewards.py",
    "rules.py",
    "scoring.py",
    "spec.py",
    "stage.py",
    "terms.py",
    "weapons.py",
)
"""Sources that the compiled code is made of. Of the others (moves' rows, say) values reach it only as
arguments, or never."""


def _sources_digest() -> str:
    """Digest of the sources that the compiled code is made of."""
    digest = hashlib.sha256()
    for name in COMPILED:
        digest.update(Path(__file__).with_name(name).read_bytes())
    return digest.hexdigest()


def _compiled(sources: str) -> tuple[Callable[..., None], Callable[..., None]]:
    """`reset` and `step`, cached on disk under the digest of the sources they are made of.

    Numba alone looks at one function's file: after an edit of another module it would go on with the
    old machine code. A closure's value is part of its cache key, hence this factory.
    """

    @njit(nogil=True, cache=True)
    def reset(
        players_N2: Any,
        weapons_N4: Any,
        matches_N: Any,
        where_N: Any,
        seeds_N: Any,
        stage: Any,
        raw: Any,
        observations_N2O: Any,
        frames_N: Any,
        stats_N2S: Any,
    ) -> None:
        _ = sources
        for n in range(matches_N.shape[0]):
            if where_N[n]:
                begin(players_N2[n], weapons_N4[n], matches_N[n], seeds_N[n], stage, stats_N2S[n])
                observe(observations_N2O[n], players_N2[n], weapons_N4[n], matches_N[n], raw)
                frames_N[n] = 0

    @njit(nogil=True, cache=True)
    def step(
        players_N2: Any,
        weapons_N4: Any,
        matches_N: Any,
        actions_N2A: Any,
        frames: Any,
        max_frames: Any,
        stage: Any,
        tables: Any,
        raw: Any,
        observations_N2O: Any,
        final_observations_N2O: Any,
        terms_N2K: Any,
        ended_N: Any,
        outcomes_N: Any,
        frames_N: Any,
        final_frames_N: Any,
        stats_N2S: Any,
        final_stats_N2S: Any,
        bots_N2: Any,
        next_seeds_N: Any,
    ) -> None:
        _ = sources
        terms_N2K[:] = 0.0
        for n in range(matches_N.shape[0]):
            players_2, weapons_4, match = players_N2[n], weapons_N4[n], matches_N[n]
            outcome = _play(
                players_2,
                weapons_4,
                match,
                actions_N2A[n],
                bots_N2[n],
                frames,
                max_frames,
                stage,
                tables,
                terms_N2K[n],
                stats_N2S[n],
            )
            ended_N[n] = outcome >= 0.0
            if outcome >= 0.0:
                outcomes_N[n] = outcome
                observe(final_observations_N2O[n], players_2, weapons_4, match, raw)
                final_frames_N[n] = match.frame
                final_stats_N2S[n] = stats_N2S[n]
                begin(players_2, weapons_4, match, next_seeds_N[n], stage, stats_N2S[n])
                next_seeds_N[n] = mixed(next_seeds_N[n])
            observe(observations_N2O[n], players_2, weapons_4, match, raw)
            frames_N[n] = match.frame

    return reset, step


reset_matches, step_matches = _compiled(_sources_digest())
