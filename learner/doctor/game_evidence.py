"""Evidence that the game alone gives: what changes, what acts, what repeats, who beats whom, what
pays.

Shape suffixes: T decisions, N matches, 2 seats, O observation, K reward terms, B bots.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from league.games.base import CHOICE, EXTERNAL, BatchedGame
from learner.doctor.play import Chosen, Trace, decide, first_difference_N, random_player, record
from learner.doctor.setup import SetUp

LOOK_STEPS = 200
"""Decisions over which observations, repetition and effects of actions are watched."""
MATCH_STEPS = 2700
"""Decisions after which a match that is still going on is no longer followed."""
ACTIONS_AT_MOST = 32
PAIRS_AT_MOST = 96
RANDOM_MATCHES = 32


@dataclass(frozen=True, kw_only=True)
class GameEvidence:
    """What was measured of a game.

    Attributes:
        size, own_size: numbers in an observation, and in one's own part. finite_share: share of
        numbers seen that are neither NaN nor infinite; largest: their greatest size. varying_own,
        varying_rest: share of the numbers of either part that ever change. changing_steps: share of
        decisions after which a seat sees something else than before. repeats: share of matches that
        come out alike, bit for bit, when played again from their seeds. acting: by action tried,
        whether doing it ever made a difference to anything. opponent_seen: share of matches in
        which another play of the opponent ever showed in the part of
            the observation that is the opponent's; None where no decision follows on one.
        fresh: matches of random play against the opponents of the mix.
        fresh_opponents: who was met in each of them. bots: matches of bots against each other.
    """

    size: int
    own_size: int
    finite_share: float
    largest: float
    varying_own: float
    varying_rest: float
    changing_steps: float
    repeats: float
    acting: dict[str, bool]
    opponent_seen: float | None
    fresh: Trace
    bots: Trace
    fresh_opponents: tuple[str, ...] = field(default_factory=tuple)


def look_at_game(set_up: SetUp, seed: int = 0) -> GameEvidence:
    """Plays some hundred matches; a few seconds in a compiled game."""
    repeats, trace = _repetition(set_up, seed)
    seen_XO = trace.observations_TN2O.reshape(-1, trace.observations_TN2O.shape[-1])
    finite_XO = np.isfinite(seen_XO)
    own, spec = set_up.spec.own_size, set_up.spec
    acting, opponent_seen = _effects(set_up, seed)
    fresh, opponents = match_play(set_up, set_up.opponents, seed)
    varying_O = _varying(seen_XO)
    return GameEvidence(
        size=spec.observation_size,
        own_size=own,
        finite_share=float(finite_XO.mean()),
        largest=float(np.abs(seen_XO[finite_XO]).max(initial=0.0)),
        varying_own=float(varying_O[:own].mean()),
        varying_rest=float(varying_O[own:].mean()),
        changing_steps=_changing(trace),
        repeats=repeats,
        acting=acting,
        opponent_seen=opponent_seen,
        fresh=fresh,
        fresh_opponents=opponents,
        bots=_bot_matches(set_up, seed),
    )


def _varying(seen_XO: NDArray[np.float32]) -> NDArray[np.bool_]:
    clean = np.nan_to_num(seen_XO)
    return (clean.max(0) - clean.min(0)) > 1e-6


def _changing(trace: Trace) -> float:
    """Share of decisions, inside a match, after which a seat's observation is another one."""
    seen = np.nan_to_num(trace.observations_TN2O)
    inside_TN = ~trace.ended_TN[:-1]
    changed_TN2 = (seen[1:] != seen[:-1]).any(-1)
    return float(changed_TN2[inside_TN].mean()) if inside_TN.any() else 1.0


def _repetition(set_up: SetUp, seed: int) -> tuple[float, Trace]:
    """Plays the same seeds twice: in other rows of one batch, and in another batch."""
    half = 8
    seeds = np.arange(half, dtype=np.uint64) + np.uint64(seed + 11)
    order = np.concatenate([np.arange(half), np.arange(half)[::-1]])
    bots_N2 = np.full((2 * half, 2), EXTERNAL, np.int8)
    indices = [set_up.spec.bot_index(name) for name in set_up.bots]
    bots_N2[half // 2 : half, 1] = np.resize(indices, half - half // 2)
    bots_N2[half:] = bots_N2[:half][::-1]
    traces = []
    for _ in range(2):
        game = set_up.game(2 * half)
        try:
            player = random_player(2 * half, seed, order)
            traces.append(
                record(
                    game, seeds[order], player, LOOK_STEPS, set_up.settings.game.frame_skip, bots_N2
                )
            )
        finally:
            game.close()
    rows = np.arange(half)
    across = first_difference_N(traces[0], traces[0], rows, 2 * half - 1 - rows)
    again = first_difference_N(traces[0], traces[1], np.arange(2 * half), np.arange(2 * half))
    return float(np.mean(np.concatenate([across, again]) < 0)), traces[0]


def _effects(set_up: SetUp, seed: int) -> tuple[dict[str, bool], float | None]:
    """Repeats matches with one action of seat 0 done otherwise, and then with seat 1 playing
    otherwise.
    """
    names = set_up.spec.action_names
    tried = np.unique(np.linspace(0, len(names) - 1, min(len(names), ACTIONS_AT_MOST)).astype(int))
    matches = 8
    # Rows of a match: as it was, each action otherwise, and last seat 1 otherwise.
    width = len(tried) + 2
    streams = np.repeat(np.arange(matches), width)
    kinds = np.tile(np.arange(width), matches)
    seeds = (streams + seed + 101).astype(np.uint64)
    game = set_up.game(matches * width)
    deviation = _Deviation(streams, kinds, tried, seed)
    try:
        trace = record(game, seeds, deviation, LOOK_STEPS, set_up.settings.game.frame_skip)
    finally:
        game.close()
    base = (np.arange(matches) * width)[streams]
    differs = first_difference_N(trace, trace, np.arange(len(streams)), base) >= 0
    acting = {
        names[action]: bool(differs[kinds == 1 + k].any())
        for k, action in enumerate(tried)
        if deviation.deviated_N[kinds == 1 + k].any()
    }
    rows = np.flatnonzero(kinds == width - 1)
    return acting, _seen(trace, rows, base[rows], set_up.spec.own_size, deviation.first_N[rows])


def _seen(
    trace: Trace,
    rows: NDArray[np.int64],
    base: NDArray[np.int64],
    own: int,
    deviated_at: NDArray[np.int64],
) -> float | None:
    """Share of the matches that go on after seat 1 did otherwise where seat 0 ever sees a
    difference.
    """
    seen = np.nan_to_num(trace.observations_TN2O[:, :, 0, own:])
    both_TR = trace.first_TN[:, rows] & trace.first_TN[:, base]
    later_TR = both_TR & (np.arange(len(both_TR))[:, None] > deviated_at) & (deviated_at >= 0)
    differs_TR = (seen[:, rows] != seen[:, base]).any(-1) & later_TR
    goes_on = later_TR.any(0)
    return float(differs_TR.any(0)[goes_on].mean()) if goes_on.any() else None


class _Deviation:
    """Random play in which some rows do one thing otherwise than the row that they are compared
    with.
    """

    def __init__(self, streams: NDArray, kinds: NDArray, tried: NDArray, seed: int) -> None:
        self.streams, self.kinds, self.tried, self.seed = streams, kinds, tried, seed
        self.deviated_N = np.zeros(len(streams), np.bool_)
        self.first_N = np.full(len(streams), -1, np.int64)
        self.base_N = np.flatnonzero(kinds == 0)[streams]

    def __call__(self, t: int, game: BatchedGame) -> NDArray[np.uint8]:
        rng = np.random.default_rng((self.seed, t))
        luck = rng.random((int(self.streams.max()) + 1, 2, game.spec.action_size), np.float32)
        other = rng.random(luck.shape, np.float32)
        actions = decide(game, luck[self.streams])
        last = len(self.tried) + 1
        elsewise = decide(game, other[self.streams])
        rows = np.flatnonzero(self.kinds == last)
        self._note(rows, t, (actions[rows, 1] != elsewise[rows, 1]).any(-1))
        actions[rows, 1] = elsewise[rows, 1]
        for k, action in enumerate(self.tried):
            rows = np.flatnonzero(self.kinds == 1 + k)
            if game.spec.action_kind == CHOICE:
                self._choose(rows, int(action), t, game, actions)
            else:
                flip = other[self.streams[rows], 0, action] < 0.5
                actions[rows, 0, action] ^= flip.astype(np.uint8)
                self._note(rows, t, flip)
        return actions

    def _choose(
        self, rows: NDArray, action: int, t: int, game: BatchedGame, actions: NDArray
    ) -> None:
        """Makes the choice once, the first time that it is legal and was not made anyway."""
        assert game.legal_N2A is not None
        legal = game.legal_N2A[rows, 0, action] & (actions[rows, 0, action] == 0)
        now = rows[legal & ~self.deviated_N[rows]]
        actions[now, 0] = 0
        actions[now, 0, action] = 1
        self._note(rows, t, np.isin(rows, now))

    def _note(self, rows: NDArray, t: int, deviates: NDArray) -> None:
        new = rows[deviates & ~self.deviated_N[rows]]
        self.first_N[new] = t
        self.deviated_N[rows[deviates]] = True


def match_play(
    set_up: SetUp, opponents: tuple[str, ...], seed: int
) -> tuple[Trace, tuple[str, ...]]:
    """Whole matches of random play in seat 0 against these bots in turn, or against itself
    without any.
    """
    names = tuple(str(name) for name in np.resize(opponents, RANDOM_MATCHES)) if opponents else ()
    bots_N2 = np.full((RANDOM_MATCHES, 2), EXTERNAL, np.int8)
    for n, name in enumerate(names):
        bots_N2[n, 1] = set_up.spec.bot_index(name)
    return _matches(set_up, bots_N2, random_player(RANDOM_MATCHES, seed + 1), seed + 1000), names


def _bot_matches(set_up: SetUp, seed: int) -> Trace:
    """Bots against each other, and against random play (which is the bot where a game has only
    one).
    """
    indices = [set_up.spec.bot_index(name) for name in set_up.bots] + [EXTERNAL]
    pairs = [(a, b) for a in indices for b in indices if (a, b) != (EXTERNAL, EXTERNAL)]
    copies = max(1, 32 // len(pairs))
    bots_N2 = np.array((pairs * copies)[:PAIRS_AT_MOST], np.int8).reshape(-1, 2)
    return _matches(set_up, bots_N2, random_player(len(bots_N2), seed + 2), seed + 2000)


def _matches(set_up: SetUp, bots_N2: NDArray[np.int8], player: Chosen, seed: int) -> Trace:
    game = set_up.game(len(bots_N2))
    try:
        seeds = np.arange(len(bots_N2), dtype=np.uint64) + np.uint64(seed)
        skip = set_up.settings.game.frame_skip
        return record(game, seeds, player, MATCH_STEPS, skip, bots_N2)
    finally:
        game.close()
