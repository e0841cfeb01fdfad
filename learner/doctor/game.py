"""Plays the game at random and with its bots, and judges its observations, actions, determinism and
rewards.

Numbers and letters such as 7 or C are keys of reasons in `learner.doctor.findings.REASONS`. A batch
has N rows, and each row plays one match after another.

Shape suffixes: T decisions, N rows (matches at once), 2 seats, O observation, K reward terms, A
actions.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from league.errors import LeagueError
from league.games.base import CHOICE, EXTERNAL, BatchedGame
from league.runs.alarms import DOMINANT_SHARE, largest_share
from learner.doctor.findings import Finding, judged
from learner.doctor.setup import SetUp

KEY_SHARE = 0.18
"""Share of the time in which a fresh policy holds a key: sigmoid(-1.5)."""
LOOK_STEPS = 200
"""Number of decisions in which observations, determinism and effects of actions are examined."""
MATCH_STEPS = 2700
"""Number of decisions after which a match that has not ended is no longer followed."""
REPEATED_MATCHES = 8
ACTIONS_AT_MOST = 32
PAIRS_AT_MOST = 96
RANDOM_MATCHES = 32
WIDEST = 1000
"""Largest size of an observation that draws no warning. In larger observations, most numbers are
not worth the weights with which the network reads them.
"""
HARDLY_SEEN = 0.3
"""Smallest share of matches in which a change of the opponent's play must show in the player's
observations. The check warns below this share, not only at 0, because the opponent's play shows
even in a game that by mistake shows a player its own state in place of the opponent's.
"""
CLIPPED_SHARE = 0.01
"""The check fails if an observed number is clipped in more than this share of the observations.
Rare clipping costs little."""
SCALE_FLOOR = 1e-8
"""Number that the learner adds to the running variance of the return (`ReturnScale.scale`)."""
ALONE = 0.95
NOT_ALIGNED, HARDLY_ALIGNED = 0.5, 0.6

SLOWEST, TIMED = 3.0, 5
"""Longest acceptable mean time of a decision, in seconds, and the number of decisions over which
the mean is taken. A slower game can't be examined, because the doctor plays thousands of decisions.
"""

Chosen = Callable[[int, BatchedGame], NDArray[np.uint8]]
"""Function `choose(t, game)` that returns the actions of both seats at decision `t`."""


@dataclass(frozen=True, kw_only=True)
class Trace:
    """Holds T decisions in N rows.

    Attributes:
        scores_TN: seat 0's score where `ended_TN` is true, else NaN.
        clipped: how often the game clipped each of the observed numbers, by the number's name.
    """

    observations_TN2O: NDArray[np.float32]
    terms_TN2K: NDArray[np.float32]
    ended_TN: NDArray[np.bool_]
    scores_TN: NDArray[np.float32]
    clipped: Mapping[str, int]

    @property
    def first_TN(self) -> NDArray[np.bool_]:
        """Whether the decision belongs to the first match of its row."""
        return (np.cumsum(self.ended_TN, axis=0) - self.ended_TN) == 0

    def match_sums(self) -> NDArray[np.float32]:
        """Returns the unweighted reward terms, summed over each row's first match, `[N, 2, K]`."""
        sums: NDArray[np.float32] = (self.terms_TN2K * self.first_TN[..., None, None]).sum(0)
        return sums

    def first_scores(self) -> NDArray[np.float64]:
        """Returns seat 0's score in each row's first match, NaN if the match did not end, `[N]`."""
        ended_TN = self.ended_TN & self.first_TN
        scores = np.where(ended_TN, self.scores_TN, 0.0).sum(0)
        return np.where(ended_TN.any(0), scores, np.nan)


class GameFails(LeagueError):
    """Says why the game can't be examined: it failed a match, or is too slow."""


def examine_game(set_up: SetUp, seed: int = 0) -> Iterator[Finding]:
    """Judges the reasons 1 to 10, 19, C and O from a few hundred matches. A compiled game plays
    these matches in seconds.

    Args:
        set_up: the game and its settings.
        seed: seed of all matches.

    Raises:
        GameFails: the game fails a match, or a decision takes longer than `SLOWEST`.
    """
    yield from _observations(set_up, seed)
    yield from _effects(set_up, seed)
    played = random_play(set_up, set_up.opponents, seed)
    indices = [set_up.spec.bot_index(name) for name in set_up.bots] + [EXTERNAL]
    # The random player is one of the opponents, so even a single bot has an opponent.
    pairs = [(a, b) for a in indices for b in indices if (a, b) != (EXTERNAL, EXTERNAL)]
    pairs = (pairs * max(1, 32 // max(len(pairs), 1)))[:PAIRS_AT_MOST] or [(EXTERNAL, EXTERNAL)]
    rows = np.arange(len(pairs))
    bots = _played(set_up, rows + seed + 2000, random_player(rows, seed + 2), MATCH_STEPS, pairs)
    yield _bounds(played, bots)
    yield from _rewards(set_up, played, bots)
    yield from _components(set_up, played, bots)
    yield _opponents(set_up, played)


def random_play(set_up: SetUp, opponents: tuple[str, ...], seed: int) -> Trace:
    """Plays whole matches with random play in seat 0, against each bot in turn.

    Without bots, seat 1 plays at random, too.

    Args:
        set_up: the game and its settings.
        opponents: the bots.
        seed: seed of all matches.
    """
    met = [set_up.spec.bot_index(name) for name in opponents] or [EXTERNAL]
    rows = np.arange(RANDOM_MATCHES)
    pairs = [(EXTERNAL, met[row % len(met)]) for row in rows]
    return _played(set_up, rows + seed + 1000, random_player(rows, seed + 1), MATCH_STEPS, pairs)


def _played(
    set_up: SetUp,
    seeds: NDArray[np.int64],
    choose: Chosen,
    steps: int,
    bots_N2: Sequence[tuple[int, int]] | int = EXTERNAL,
) -> Trace:
    """Plays at most `steps` decisions, and stops once every row's first match has ended.

    The seeds of later matches follow from the seeds of the rows' first matches.
    """
    game, seeds_N = set_up.game(len(seeds)), seeds.astype(np.uint64)
    observations, terms, ended, scores = [], [], [], []
    over_N = np.zeros(len(seeds), np.bool_)
    try:
        game.bots_N2[:] = bots_N2
        game.reset(seeds_N)
        game.next_seeds_N[:] = seeds_N + np.uint64(1_000_003)
        for t in range(steps):
            observations.append(game.observations_N2O.copy())
            game.step(choose(t, game), set_up.settings.game.frame_skip)
            for row, reason in game.failures.items():
                raise GameFails(f"a match failed at frame {game.final_frames_N[row]}: {reason}")
            if t == 0:  # the first step may compile
                began = time.monotonic()
            elif t == TIMED and (seconds := (time.monotonic() - began) / TIMED) > SLOWEST:
                raise GameFails(f"a decision of {len(seeds)} matches takes {seconds:.1f} s")
            terms.append(game.reward_terms_N2K.copy())
            ended.append(game.ended_N.copy())
            scores.append(np.where(game.ended_N, game.outcomes_N, np.nan).astype(np.float32))
            over_N |= game.ended_N
            if over_N.all():
                break
        clipped = game.clipped()
    finally:
        game.close()
    return Trace(
        observations_TN2O=np.stack(observations),
        terms_TN2K=np.stack(terms),
        ended_TN=np.stack(ended),
        scores_TN=np.stack(scores),
        clipped=clipped,
    )


def random_player(streams_N: NDArray[np.int64], seed: int) -> Chosen:
    """Makes a player that acts like a fresh policy: it holds each key 18 % of the time, or takes a
    random legal choice.

    Args:
        streams_N: the random stream of each row. Rows with the same stream draw the same random
            numbers at each decision.
        seed: seed of the draws.
    """
    return lambda t, game: _decide(game, _luck((seed, t), streams_N, game)[0])


def _luck(seed: tuple[int, int], streams_N: NDArray, game: BatchedGame) -> NDArray[np.float32]:
    """Draws two sets of uniform numbers for both seats, `[2, N, 2, A]`."""
    shape = (2, int(streams_N.max()) + 1, 2, game.spec.action_size)
    return np.random.default_rng(seed).random(shape, np.float32)[:, streams_N]


def _decide(game: BatchedGame, luck_N2A: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Turns uniform random numbers into actions of both seats."""
    if game.spec.action_kind != CHOICE:
        return (luck_N2A < KEY_SHARE).astype(np.uint8)
    assert game.legal_N2A is not None
    best_N2 = np.where(game.legal_N2A, luck_N2A, -1.0).argmax(-1)
    return np.eye(luck_N2A.shape[-1], dtype=np.uint8)[best_N2]


def _differ(trace: Trace, other: Trace, rows: NDArray) -> NDArray[np.bool_]:
    """Returns for each of `rows` of `other` whether the row differs from the corresponding row of
    `trace`.
    """
    steps = min(len(trace.ended_TN), len(other.ended_TN))
    differ_N = np.zeros(len(rows), np.bool_)
    for name in ("observations_TN2O", "terms_TN2K", "ended_TN", "scores_TN"):
        a, b = getattr(trace, name)[:steps], getattr(other, name)[:steps, rows]
        same = (a == b) | ((a != a) & (b != b))
        differ_N |= ~same.reshape(steps, len(rows), -1).all((0, 2))
    return differ_N


def _observations(set_up: SetUp, seed: int) -> Iterator[Finding]:
    """Judges reasons 1, 3 and 5: whether observations change, matches repeat, and numbers are
    finite. Plays the same seeds twice, the second time with the rows in reverse order.
    """
    rows, own_size = np.arange(REPEATED_MATCHES), set_up.spec.own_size
    met = [EXTERNAL, *(set_up.spec.bot_index(name) for name in set_up.bots)]
    pairs = [(EXTERNAL, met[row % len(met)]) for row in rows]
    trace, again = (
        _played(
            set_up,
            order + seed + 11,
            random_player(order, seed),
            LOOK_STEPS,
            [pairs[row] for row in order],
        )
        for order in (rows, rows[::-1])
    )
    repeats = 1.0 - float(_differ(trace, again, rows[::-1]).mean())
    yield judged(
        "3",
        f"{repeats:.0%} of matches are equal when played again from their seeds",
        failure=repeats < 1.0,
        fix="draw all luck of a match from its seed, and keep nothing between matches or rows",
    )
    seen_TN2O = np.nan_to_num(trace.observations_TN2O)
    varying_O = np.ptp(seen_TN2O.reshape(-1, seen_TN2O.shape[-1]), axis=0) > 1e-6
    inside_TN = ~trace.ended_TN[:-1]
    changed_TN2 = (seen_TN2O[1:] != seen_TN2O[:-1]).any(-1)
    changing = float(changed_TN2[inside_TN].mean()) if inside_TN.any() else 1.0
    yield judged(
        "1",
        f"another view after {changing:.0%} of decisions; {varying_O[:own_size].mean():.0%} of the "
        f"own numbers and {varying_O[own_size:].mean():.0%} of the others ever change",
        failure=changing < 0.05 or not varying_O.any(),
        warning=changing < 0.5,
        fix="let the game's step write its new state into observations_N2O",
    )
    finite_TN2O = np.isfinite(trace.observations_TN2O)
    largest = float(np.abs(trace.observations_TN2O[finite_TN2O]).max(initial=0.0))
    yield judged(
        "5",
        f"{1.0 - finite_TN2O.mean():.2%} of all numbers are NaN or infinite; the largest is "
        f"{largest:.3g}",
        failure=not finite_TN2O.all(),
        warning=largest > 1.001,
        fix="bound what is observed: the contract wants finite numbers from -1 to 1",
    )


def _bounds(*traces: Trace) -> Finding:
    """Judges reason C: whether the game had to clip its observations."""
    clipped: Counter[str] = sum((Counter(trace.clipped) for trace in traces), Counter())
    views = sum(  # the first view of each match, and the view after each decision
        len(ended_TN[0]) + ended_TN.size + int(ended_TN.sum())
        for ended_TN in (trace.ended_TN for trace in traces)
    )
    texts = [
        f"number {index} of {agent} leaves {low} to {high} in {count / views:.1%} of views"
        for name, count in clipped.most_common(3)
        for agent, index, low, high in [name.split("/")]
    ]
    return judged(
        "C",
        "; ".join(texts) or "no value was clipped to its bounds",
        failure=max(clipped.values(), default=0) > CLIPPED_SHARE * views,
        warning=bool(clipped),
        fix="correct the bounds of its observation_space: outside them all values look alike",
    )


def _effects(set_up: SetUp, seed: int) -> Iterator[Finding]:
    """Judges reasons 2 and 4: whether actions and the opponent have effects, and the observation's
    size. Plays each match several times from the same seed, and compares the copies.

    The first row of a match is played without a change. Then follows a row for each action that is
    tried. In this row, seat 0 flips the key at random times, or takes the choice once. In the last
    row of the match, seat 1 plays differently.
    """
    spec = set_up.spec
    names, own_size = spec.action_names, spec.own_size
    tried = np.unique(np.linspace(0, len(names) - 1, min(len(names), ACTIONS_AT_MOST)).astype(int))
    width = len(tried) + 2
    streams, kinds = np.divmod(np.arange(REPEATED_MATCHES * width), width)
    others = np.flatnonzero(kinds == width - 1)
    first_N = np.full(len(streams), -1)  # decision at which a row first deviated

    def play(t: int, game: BatchedGame) -> NDArray[np.uint8]:
        luck, other = _luck((seed, t), streams, game)
        actions, otherwise = _decide(game, luck), _decide(game, other)
        deviates_N = np.zeros(len(streams), np.bool_)
        deviates_N[others] = (actions[others, 1] != otherwise[others, 1]).any(-1)
        actions[others, 1] = otherwise[others, 1]
        rows = np.flatnonzero((kinds > 0) & (kinds < width - 1))
        action = tried[kinds[rows] - 1]
        if game.legal_N2A is None or spec.action_kind != CHOICE:
            changed = other[rows, 0, action] < 0.5
            actions[rows[changed], 0, action[changed]] ^= 1
        else:  # seat 0 makes this choice once, where it is legal and another choice was drawn
            changed = game.legal_N2A[rows, 0, action] & (actions[rows, 0, action] == 0)
            changed &= first_N[rows] < 0
            actions[rows[changed], 0] = 0
            actions[rows[changed], 0, action[changed]] = 1
        deviates_N[rows] = changed
        first_N[deviates_N & (first_N < 0)] = t
        return actions

    trace = _played(set_up, streams + seed + 101, play, LOOK_STEPS)
    base = streams * width
    differs_N = _differ(trace, trace, base)
    acting = {
        names[action]: bool(differs_N[kinds == k].any())
        for k, action in enumerate(tried, 1)
        if (first_N[kinds == k] >= 0).any()
    }
    dead = [name for name, acts in acting.items() if not acts]
    yield judged(
        "2",
        f"{len(acting) - len(dead)} of {len(acting)} actions tried made a difference"
        + (f"; none: {', '.join(dead[:6])}" if dead else ""),
        failure=0 < len(acting) == len(dead),
        warning=bool(dead),
        fix="pass the actions on to the game: what does nothing can't be learnt",
    )
    seen = np.nan_to_num(trace.observations_TN2O[:, :, 0, own_size:])
    later_TR = trace.first_TN[:, others] & trace.first_TN[:, base[others]] & (first_N[others] >= 0)
    later_TR &= np.arange(len(later_TR))[:, None] > first_N[others]
    differs_TR = (seen[:, others] != seen[:, base[others]]).any(-1) & later_TR
    followed = later_TR.any(0)
    shows = float(differs_TR.any(0)[followed].mean()) if followed.any() else 1.0
    yield judged(
        "4",
        f"{spec.observation_size} numbers, {own_size} of them the own part; what the opponent does "
        f"shows in {shows:.0%} of matches",
        failure=shows == 0.0 or spec.observation_size > 10 * WIDEST,
        warning=shows < HARDLY_SEEN or spec.observation_size > WIDEST,
        fix="show the opponent's state after the own part"
        if shows < HARDLY_SEEN
        else "leave out what never matters, or sum it up in fewer numbers",
    )


def _rewards(set_up: SetUp, played: Trace, bots: Trace) -> Iterator[Finding]:
    """Judges reasons 6 to 8 and 19: whether rewards exist, come often enough, and have a suitable
    size.
    """
    weights_K, learner = set_up.weights_K, set_up.settings.learner
    # Horizon of the discount, in decisions.
    reach = 1.0 / (1.0 - learner.gamma) if learner.gamma < 1.0 else math.inf
    reward_TN = (played.terms_TN2K @ weights_K)[..., 0]
    fresh = float((reward_TN != 0.0)[played.first_TN].mean())
    of_bots = float((bots.terms_TN2K @ weights_K != 0.0)[bots.first_TN].mean())
    yield judged(
        "6",
        f"{np.count_nonzero(weights_K)} terms have a weight; {fresh:.1%} of decisions at random "
        f"and {of_bots:.1%} of the bots' pay",
        failure=fresh == 0.0 and of_bots == 0.0,
        fix="give a reward term a weight that is not 0 (game.reward, game.reward_weights), or make "
        "it fire",
    )
    gap = 1.0 / fresh if fresh > 0.0 else math.inf
    yield judged(
        "7",
        f"a reward every {gap:.3g} decisions of random play; the discount reaches {reach:.3g}",
        failure=gap > 3.0 * reach,
        warning=gap > reach,
        fix="add a term that pays on the way (game.reward = dense), or raise learner.gamma",
    )
    current_N, returns = np.zeros(reward_TN.shape[1]), []
    for reward_N, first_N in zip(reward_TN, played.first_TN, strict=True):
        current_N = learner.gamma * current_N + reward_N
        returns.append(current_N[first_N])
    raw = float(np.concatenate(returns).std())
    effective = raw / math.sqrt(raw**2 + SCALE_FLOOR)
    yield judged(
        "8",
        f"the discounted return deviates by {raw:.3g}; learnt from divided "
        f"by its deviation: {effective:.3g}",
        failure=effective < 0.01,
        warning=effective < 0.1,
        fix="multiply game.reward_weights: below 1e-4 the return is lost in the scale's own floor",
    )
    length = float(played.first_TN.sum(0).mean())
    far, near = reach > 1000.0 and length > 500.0, reach < 10.0 and length > 30.0
    yield judged(
        "19",
        f"gamma {learner.gamma:g} reaches {reach:.3g} decisions of matches of {length:.3g}",
        failure=(reach < 3.0 and length > 2.0 * reach) or (far and reach == math.inf),
        warning=far or near,
        fix="lower learner.gamma"
        if far
        else "raise learner.gamma: 0.98 reaches 50 decisions, 0.99 100",
    )


def _components(set_up: SetUp, played: Trace, bots: Trace) -> Iterator[Finding]:
    """Judges reasons 9 and 10: how much each reward term pays, and whether winners get more."""
    weights_K = set_up.weights_K
    sums = (played.match_sums()[:, :1], bots.match_sums())
    sizes_K = np.mean([np.abs(sums_NK * weights_K).mean((0, 1)) for sums_NK in sums], axis=0)
    terms = zip(set_up.spec.reward_terms, sizes_K.tolist(), weights_K, strict=True)
    paid = {name: size for name, size, weight in terms if weight != 0.0}
    silent = [term for term, size in paid.items() if size == 0.0]
    name, share = largest_share(paid)
    dominates = share > DOMINANT_SHARE and len(paid) > 1
    yield judged(
        "9",
        f"{name} carries {share:.0%} of what matches paid"
        + (", the only term" if len(paid) == 1 else "")
        + (f"; never fires: {', '.join(silent)}" if silent else ""),
        failure=dominates and share > ALONE,
        warning=bool(silent) or dominates,
        fix=f"lower the weight of {name} in game.reward_weights"
        if dominates
        else "make the term fire, or take its weight away",
    )
    right, decided = 0.0, 0
    for trace in (played, bots):
        paid_N2 = (trace.match_sums() * weights_K).sum(-1)
        score_N = trace.first_scores()
        rows = np.isfinite(score_N) & (score_N != 0.5)
        ahead = np.sign(paid_N2[rows, 0] - paid_N2[rows, 1]) * np.sign(score_N[rows] - 0.5)
        right += float((0.5 + 0.5 * ahead).sum())  # equal pay counts half
        decided += int(rows.sum())
    aligned = right / decided if decided else 1.0
    yield judged(
        "10",
        f"the winner was paid more than the loser in {aligned:.0%} of {decided} decided matches",
        failure=aligned < NOT_ALIGNED,
        warning=aligned < HARDLY_ALIGNED,
        fix="raise the weight of win, and look for a term whose sign is wrong",
    )


def _opponents(set_up: SetUp, played: Trace) -> Finding:
    """Judges reason O: whether matches against the mix's opponents leave something to learn."""
    score_N, met = played.first_scores(), set_up.opponents
    scores = {name: float(np.nanmean(score_N[n :: len(met)])) for n, name in enumerate(met)}
    paid_N = (played.match_sums()[:, 0] * set_up.weights_K).sum(-1)
    shown = ", ".join(f"{name} {score:.0%}" for name, score in scores.items()) or "no bot"
    return judged(
        "O",
        f"random play scores: {shown}; its matches pay {paid_N.mean():.3g} ± {paid_N.std():.3g}",
        failure=float(paid_N.std()) < 1e-9,
        warning=min(scores.values(), default=1.0) >= 0.95,
        fix="meet opponents that random play does not beat, and against which better play is paid "
        "more: another mix (matchmaker.mixes), or a reward on the way",
    )
