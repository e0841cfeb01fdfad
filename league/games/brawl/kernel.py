"""Compiles the step, a function that plays frames of N matches without the interpreter lock.

Shape suffixes: N matches, 2 seats, 1 record, A keys. `paid` and `stats` are records of
layout.TERMS_ROW and layout.STATS_ROW. The suffixes _0 and _1 mean seats.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np

from league.games.brawl import spec
from league.games.brawl.bots import bot_keys
from league.games.brawl.compiling import cached, inner
from league.games.brawl.control import begin_player
from league.games.brawl.frame import play_frame
from league.games.brawl.layout import MIRROR_DELAY
from league.games.brawl.observation import write_views
from league.games.brawl.physics import begin_tree, move_platform
from league.games.brawl.planner import planner_keys
from league.games.brawl.random_stream import mixed, stream_of
from league.games.brawl.scoring import score_end
from league.games.brawl.variation import begin_variation, start_off_stage, take_keys
from league.games.brawl.weapons import begin_weapons

_ONE = np.uint64(1)
_RIGHT_STREAM, _LEFT_STREAM = np.uint64(0xD1B54A32D192ED03), np.uint64(0x8BB84B93962EACC9)


@inner
def _begin_player(player: Any, side: int, seed: Any, match: Any, stage: Any) -> None:
    # The stream belongs to the side, so a bot draws the same numbers in either seat.
    player.random = stream_of(seed, _RIGHT_STREAM if side > 0 else _LEFT_STREAM)
    begin_player(player, side, stage)
    player.dealt, player.combos, player.fell = 0.0, 0, 0
    player.equipped, player.dropped = 0, 0
    for i in range(MIRROR_DELAY):
        player.past_keys[i] = 0
    if stage.off_stage_starts > 0.0:
        start_off_stage(player, match, stage)
    player.last_x = player.x


@inner
def begin(n: int, seed: Any, arrays: Any) -> None:
    """Begins a match in row `n`. The match depends only on the seed and on the keys."""
    stage_1, _tables, players_N2, matches_N, views_N21, stats_N21, no_stats_1 = arrays[:7]
    player_0, player_1, match, stage = players_N2[n, 0], players_N2[n, 1], matches_N[n], stage_1[0]
    match.seed = seed
    match.frame = 0
    begin_variation(match, stage)
    match.platform_vx, match.platform_vy = 0.0, 0.0
    move_platform(match, stage)
    begin_weapons(match, seed)
    first_side = 1 if mixed(seed) & _ONE else -1
    _begin_player(player_0, first_side, seed, match, stage)
    _begin_player(player_1, -first_side, seed, match, stage)
    begin_tree(match, player_0, player_1, stage)
    for seat in range(2):
        stats_N21[n, seat, 0] = no_stats_1[0]
        stats_N21[n, seat, 0].spawn_side = players_N2[n, seat].side
    write_views(views_N21[n, 0, 0], views_N21[n, 1, 0], player_0, player_1, match, stage)
    arrays[13][n] = 0  # frames_N


@inner
def _outcome(stocks_0: int, stocks_1: int, frame: int, max_frames: int) -> float:
    """Returns seat 0's outcome (1, 0.5 or 0) from both players' stocks, or -1 during the match."""
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
    """Returns a digest of the sources in this folder, because the step is compiled from them."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _compiled(sources: str) -> tuple[Any, Any]:
    """Returns `reset_matches` and `step_matches`, cached on disk under the digest `sources`.

    Numba itself checks only the function's own file, so after an edit of another module it would
    reuse old machine code. The values in a closure are part of Numba's cache key, so both functions
    are closures over the digest. `arrays` is `BrawlGame._arrays`, and `scratch` is the result of
    `BrawlGame._scratch()`, which is None if no planner plays.
    """

    @cached
    def reset_matches(where_N: Any, seeds_N: Any, arrays: Any) -> None:
        _ = sources
        for n in range(where_N.shape[0]):
            if where_N[n]:
                begin(n, seeds_N[n], arrays)

    @cached
    def step_matches(
        first: Any,
        last: Any,
        actions_N2A: Any,
        frames: Any,
        max_frames: Any,
        arrays: Any,
        scratch: Any,
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
                if scratch is not None:  # if it is None, Numba leaves the planners out
                    if bot_0 >= spec.PLANNER:
                        keys_0 = planner_keys(n, 0, bot_0, arrays, max_frames, scratch)
                    if bot_1 >= spec.PLANNER:
                        keys_1 = planner_keys(n, 1, bot_1, arrays, max_frames, scratch)
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

    return reset_matches, step_matches


reset_matches, step_matches = _compiled(_sources_digest())
