"""Matches played to measure the game alone: what changes, acts, repeats and pays.

Shape suffixes: T decisions, N matches, 2 seats, O observation, K reward terms, A actions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from league.errors import LeagueError
from league.games.base import CHOICE, EXTERNAL, BatchedGame
from learner.doctor.setup import SetUp, make_environment

KEY_SHARE = 0.18
"""How often a fresh policy holds a key: sigmoid(-1.5)."""
LOOK_STEPS = 200
"""Decisions over which observations, repetition and effects of actions are watched."""
MATCH_STEPS = 2700
"""Decisions after which a match that has not ended is no longer followed."""
ACTIONS_AT_MOST = 32
PAIRS_AT_MOST = 96
RANDOM_MATCHES = 32
ENVIRONMENT_MATCHES = 16

Chosen = Callable[[int, BatchedGame], NDArray[np.uint8]]
"""Actions of both seats at decision `t`: `choose(t, game)`."""


@dataclass(frozen=True, kw_only=True)
class Trace:
    """T decisions of N matches. `scores_TN` is seat 0's where `ended_TN`, else NaN."""

    observations_TN2O: NDArray[np.float32]
    terms_TN2K: NDArray[np.float32]
    ended_TN: NDArray[np.bool_]
    scores_TN: NDArray[np.float32]

    @property
    def first_TN(self) -> NDArray[np.bool_]:
        """Whether the decision belongs to the row's first match, its last decision included."""
        return (np.cumsum(self.ended_TN, axis=0) - self.ended_TN) == 0

    def rewards_TN2(self, weights_K: NDArray[np.float32]) -> NDArray[np.float32]:
        """Weighted reward of each decision and seat."""
        return self.terms_TN2K @ weights_K

    def match_sums(self) -> NDArray[np.float32]:
        """Sums of the raw terms over each row's first match, `[N, 2, K]`."""
        sums: NDArray[np.float32] = (self.terms_TN2K * self.first_TN[..., None, None]).sum(0)
        return sums

    def first_scores(self) -> NDArray[np.float64]:
        """Seat 0's score in each row's first match, NaN where it did not end, `[N]`."""
        ended_TN = self.ended_TN & self.first_TN
        scores = np.where(ended_TN, self.scores_TN, 0.0).sum(0)
        return np.where(ended_TN.any(0), scores, np.nan)


@dataclass(frozen=True, kw_only=True)
class GameEvidence:
    """What was measured of a game.

    Attributes:
        size, own_size: numbers in an observation, and in the player's own part of it.
        finite_share: share of numbers seen that are neither NaN nor infinite.
        largest: greatest size of a finite number.
        varying_own, varying_rest: share of the numbers of either part that ever change.
        changing_steps: share of decisions after which a seat's observation changes.
        repeats: share of matches that are bit for bit equal when played again from their seeds.
        acting: by action tried, whether it ever made a difference to anything.
        opponent_seen: share of matches in which another play of the opponent shows in the
            opponent's part of the observation; None where no decision follows one.
        fresh, fresh_opponents: matches of random play, and the bot met in each of them.
        bots: matches of bots against each other.
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
    fresh_opponents: tuple[str, ...]
    bots: Trace


def look_at_game(set_up: SetUp, seed: int = 0) -> GameEvidence:
    """Plays some hundred matches; a few seconds in a compiled game."""
    repeats, trace = _repetition(set_up, seed)
    own, size = set_up.spec.own_size, set_up.spec.observation_size
    seen_TN2O = np.nan_to_num(trace.observations_TN2O)
    finite_TN2O = np.isfinite(trace.observations_TN2O)
    varying_O = np.ptp(seen_TN2O.reshape(-1, size), axis=0) > 1e-6
    inside_TN = ~trace.ended_TN[:-1]
    changed_TN2 = (seen_TN2O[1:] != seen_TN2O[:-1]).any(-1)
    acting, opponent_seen = _effects(set_up, seed)
    fresh, opponents = match_play(set_up, set_up.opponents, seed)
    return GameEvidence(
        size=size,
        own_size=own,
        finite_share=float(finite_TN2O.mean()),
        largest=float(np.abs(trace.observations_TN2O[finite_TN2O]).max(initial=0.0)),
        varying_own=float(varying_O[:own].mean()),
        varying_rest=float(varying_O[own:].mean()),
        changing_steps=float(changed_TN2[inside_TN].mean()) if inside_TN.any() else 1.0,
        repeats=repeats,
        acting=acting,
        opponent_seen=opponent_seen,
        fresh=fresh,
        fresh_opponents=opponents,
        bots=_bot_matches(set_up, seed),
    )


def match_play(
    set_up: SetUp, opponents: tuple[str, ...], seed: int
) -> tuple[Trace, tuple[str, ...]]:
    """Plays whole matches of random play in seat 0 against these bots in turn.

    Without bots random play meets itself. Returns the matches and the bot of each.
    """
    names = tuple(str(name) for name in np.resize(opponents, RANDOM_MATCHES)) if opponents else ()
    bots_N2 = np.full((RANDOM_MATCHES, 2), EXTERNAL, np.int8)
    for n, name in enumerate(names):
        bots_N2[n, 1] = set_up.spec.bot_index(name)
    player = random_player(np.arange(RANDOM_MATCHES), seed + 1)
    seeds_N = np.arange(RANDOM_MATCHES) + seed + 1000
    return _played(set_up, seeds_N, player, MATCH_STEPS, bots_N2), names


def _bot_matches(set_up: SetUp, seed: int) -> Trace:
    """Bots against each other, and against random play, which serves where a game has one bot."""
    indices = [set_up.spec.bot_index(name) for name in set_up.bots] + [EXTERNAL]
    pairs = [(a, b) for a in indices for b in indices if (a, b) != (EXTERNAL, EXTERNAL)]
    copies = max(1, 32 // len(pairs))
    bots_N2 = np.array((pairs * copies)[:PAIRS_AT_MOST], np.int8).reshape(-1, 2)
    rows = np.arange(len(bots_N2))
    player = random_player(rows, seed + 2)
    return _played(set_up, rows + seed + 2000, player, MATCH_STEPS, bots_N2)


def _played(
    set_up: SetUp,
    seeds: NDArray[np.int64],
    choose: Chosen,
    steps: int,
    bots_N2: NDArray[np.int8] | None = None,
) -> Trace:
    """Plays `steps` decisions from `seeds` and stops once every row's first match has ended.

    The seeds of later matches follow from those of a row's first match.
    """
    game, seeds_N = set_up.game(len(seeds)), seeds.astype(np.uint64)
    paid, ended, scores = [], [], []
    over_N = np.zeros(len(seeds), np.bool_)
    try:
        game.bots_N2[:] = EXTERNAL if bots_N2 is None else bots_N2
        game.reset(seeds_N)
        game.next_seeds_N[:] = seeds_N + np.uint64(1_000_003)
        seen = [game.observations_N2O.copy()]
        for t in range(steps):
            game.step(choose(t, game), set_up.settings.game.frame_skip)
            paid.append(game.reward_terms_N2K.copy())
            ended.append(game.ended_N.copy())
            scores.append(np.where(game.ended_N, game.outcomes_N, np.nan).astype(np.float32))
            seen.append(game.observations_N2O.copy())
            over_N |= game.ended_N
            if over_N.all():
                break
    finally:
        game.close()
    return Trace(
        observations_TN2O=np.stack(seen[:-1]),
        terms_TN2K=np.stack(paid),
        ended_TN=np.stack(ended),
        scores_TN=np.stack(scores),
    )


def random_player(streams_N: NDArray[np.int64], seed: int) -> Chosen:
    """Plays as a fresh policy would: keys held 18 % of the time, or any legal choice.

    Rows of one stream draw the same luck at each decision.
    """

    def choose(t: int, game: BatchedGame) -> NDArray[np.uint8]:
        rng = np.random.default_rng((seed, t))
        shape = (int(streams_N.max()) + 1, 2, game.spec.action_size)
        return decide(game, rng.random(shape, np.float32)[streams_N])

    return choose


def decide(game: BatchedGame, luck_N2A: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Actions of both seats from uniform random numbers."""
    if game.spec.action_kind != CHOICE:
        return (luck_N2A < KEY_SHARE).astype(np.uint8)
    assert game.legal_N2A is not None
    best_N21 = np.where(game.legal_N2A, luck_N2A, -1.0).argmax(-1)[..., None]
    actions_N2A = np.zeros(luck_N2A.shape, np.uint8)
    np.put_along_axis(actions_N2A, best_N21, 1, -1)
    return actions_N2A


def _differ(one: Trace, rows: NDArray, other: Trace, others: NDArray) -> NDArray[np.bool_]:
    """Whether rows of one trace and rows of another are anywhere not bit for bit equal."""
    steps = min(len(one.ended_TN), len(other.ended_TN))
    differ_R = np.zeros(len(rows), np.bool_)
    for name in ("observations_TN2O", "terms_TN2K", "ended_TN", "scores_TN"):
        a, b = getattr(one, name)[:steps, rows], getattr(other, name)[:steps, others]
        same = (a == b) | ((a != a) & (b != b))
        differ_R |= ~same.reshape(steps, len(rows), -1).all((0, 2))
    return differ_R


def _repetition(set_up: SetUp, seed: int) -> tuple[float, Trace]:
    """Plays the same seeds twice: in other rows of one batch, and in another batch."""
    half = 8
    order = np.concatenate([np.arange(half), np.arange(half)[::-1]])
    bots_N2 = np.full((2 * half, 2), EXTERNAL, np.int8)
    indices = [set_up.spec.bot_index(name) for name in set_up.bots]
    bots_N2[half // 2 : half, 1] = np.resize(indices, half - half // 2)
    bots_N2[half:] = bots_N2[:half][::-1]
    first, second = (
        _played(set_up, order + seed + 11, random_player(order, seed), LOOK_STEPS, bots_N2)
        for _ in range(2)
    )
    rows = np.arange(2 * half)
    across = _differ(first, rows[:half], first, rows[::-1][:half])
    again = _differ(first, rows, second, rows)
    return 1.0 - float(np.concatenate([across, again]).mean()), first


def _effects(set_up: SetUp, seed: int) -> tuple[dict[str, bool], float | None]:
    """Repeats matches with one action of seat 0 changed, and then with seat 1 playing otherwise.

    Returns:
        Whether each action tried made a difference, and the share of matches in which seat 0 sees
        that seat 1 played otherwise (None where no match continued afterwards).
    """
    names = set_up.spec.action_names
    tried = np.unique(np.linspace(0, len(names) - 1, min(len(names), ACTIONS_AT_MOST)).astype(int))
    # Rows of a match: unchanged, then each action changed, and last seat 1 changed.
    matches, width = 8, len(tried) + 2
    streams = np.repeat(np.arange(matches), width)
    kinds = np.tile(np.arange(width), matches)
    deviation = _Deviation(streams, kinds, tried, seed)
    trace = _played(set_up, streams + seed + 101, deviation, LOOK_STEPS)
    base = streams * width
    differs = _differ(trace, np.arange(len(streams)), trace, base)
    deviated_N = deviation.first_N >= 0
    acting = {
        names[action]: bool(differs[kinds == 1 + k].any())
        for k, action in enumerate(tried)
        if deviated_N[kinds == 1 + k].any()
    }
    rows = np.flatnonzero(kinds == width - 1)
    seen = np.nan_to_num(trace.observations_TN2O[:, :, 0, set_up.spec.own_size :])
    later_TR = trace.first_TN[:, rows] & trace.first_TN[:, base[rows]] & deviated_N[rows]
    later_TR &= np.arange(len(later_TR))[:, None] > deviation.first_N[rows]
    differs_TR = (seen[:, rows] != seen[:, base[rows]]).any(-1) & later_TR
    continues = later_TR.any(0)
    return acting, float(differs_TR.any(0)[continues].mean()) if continues.any() else None


class _Deviation:
    """Random play in which some rows do one thing otherwise than the row they are compared with.

    `first_N` is the decision at which a row first deviated, -1 before.
    """

    def __init__(self, streams: NDArray, kinds: NDArray, tried: NDArray, seed: int) -> None:
        self.streams, self.kinds, self.tried, self.seed = streams, kinds, tried, seed
        self.first_N = np.full(len(streams), -1, np.int64)

    def __call__(self, t: int, game: BatchedGame) -> NDArray[np.uint8]:
        rng = np.random.default_rng((self.seed, t))
        luck = rng.random((int(self.streams.max()) + 1, 2, game.spec.action_size), np.float32)
        other = rng.random(luck.shape, np.float32)
        actions = decide(game, luck[self.streams])
        otherwise = decide(game, other[self.streams])
        rows = np.flatnonzero(self.kinds == len(self.tried) + 1)
        self._note(rows[(actions[rows, 1] != otherwise[rows, 1]).any(-1)], t)
        actions[rows, 1] = otherwise[rows, 1]
        for k, action in enumerate(self.tried):
            rows = np.flatnonzero(self.kinds == 1 + k)
            if game.legal_N2A is not None and game.spec.action_kind == CHOICE:
                # The choice is made once, the first time that it is legal and not made anyway.
                free = game.legal_N2A[rows, 0, action] & (actions[rows, 0, action] == 0)
                rows = rows[free & (self.first_N[rows] < 0)]
                actions[rows, 0] = 0
                actions[rows, 0, action] = 1
            else:
                rows = rows[other[self.streams[rows], 0, action] < 0.5]
                actions[rows, 0, action] ^= 1
            self._note(rows, t)
        return actions

    def _note(self, rows: NDArray, t: int) -> None:
        self.first_N[rows] = np.where(self.first_N[rows] < 0, t, self.first_N[rows])


@dataclass(frozen=True, kw_only=True)
class EnvironmentEvidence:
    """What a vector environment passed on of the matches that ended in it.

    Attributes:
        ended, reported: matches that ended, and those whose end the learner was given.
        paid, accounted: sums of the sizes of matches' rewards, step by step and by their accounts.
        lost: the largest difference between the two in one match.
        fault: the error with which the environment gave up; empty when it did not.
    """

    ended: int
    reported: int
    paid: float
    accounted: float
    lost: float
    fault: str = ""


def look_at_environment(set_up: SetUp, seed: int = 0) -> EnvironmentEvidence:
    """Plays at random until every match has ended once."""
    matches = ENVIRONMENT_MATCHES
    env = make_environment(set_up, matches, seed)
    game, rng = env.game, np.random.default_rng(seed)
    arrived_N, over_N = np.zeros(matches), np.zeros(matches, np.bool_)
    ended, reported, fault = 0, 0, ""
    pairs: list[tuple[float, float]] = []
    try:
        env.reset()
        for _ in range(MATCH_STEPS):
            luck = rng.random((matches, 2, game.spec.action_size), np.float32)
            actions_NA = decide(game, luck)[np.arange(matches), env.seat_N]
            _, rewards_N, reported_N = env.step_arrays(actions_NA)
            arrived_N += rewards_N
            ended_N = game.ended_N & ~env.failed_N
            accounts = [match.reward for match in env.finished]
            pairs += zip(arrived_N[ended_N].tolist(), accounts, strict=False)
            ended, reported = (
                ended + int(ended_N.sum()),
                reported + int((reported_N & ended_N).sum()),
            )
            arrived_N[game.ended_N] = 0.0
            env.finished = []
            over_N |= game.ended_N
            if over_N.all():
                break
    except LeagueError as error:
        fault = str(error)
    finally:
        game.close()
    return EnvironmentEvidence(
        ended=ended,
        reported=reported,
        paid=sum(abs(paid) for paid, _ in pairs),
        accounted=sum(abs(due) for _, due in pairs),
        lost=max((abs(paid - due) for paid, due in pairs), default=0.0),
        fault=fault,
    )
