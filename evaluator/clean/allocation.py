"""Chooses the pairs of players whose matches most reduce the uncertainty of some goals.

The fit of all ratings gives their joint posterior, with the covariance C. A goal is a difference of
ratings that the league wants to know. It is written as a row g of weights over the players. Two
matches between the players i and j, one from each seat, measure the gap between the ratings of i
and j. This gap has the weights v = eᵢ − eⱼ. If I is the information about the gap in the outcomes
of both matches, the matches reduce the variance of a goal g by

    (gᵀ C v)² / (1/I + vᵀ C v)

(the Bayesian linear model, Chaloner and Verdinelli 1995, section 2). The two players with the
largest total reduction over all goals are chosen. Then C is updated as if these two had met, and
the next two players are chosen. This works because the posterior variance does not depend on the
outcomes.

The results between two players depend on their gap and on a deviation that only these two players
have. The deviation has the variance τ² (`Fit.tau`). So n matches, each with information i, give the
information n·i / (1 + n·i·τ²) about the gap. I is the amount by which two more matches increase
this information. I is small if two players have often met, and larger for new opponents.

Shapes: N players of the fit, P pairs of them, G goals.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from evaluator.clean.plan import Plan, is_met
from league.exploiters import EXPLOITING
from league.ids import lineage_of
from league.players import Book, PlayerKind, PlayerState
from league.stats.ratings.fit import Fit, log_probabilities

Array = NDArray[np.float64]
Numbers = NDArray[np.intp]
TOP, RIVALS = 5, 10
"""A goal is to find out which `TOP` snapshots are the best. Only the `RIVALS` snapshots with the
best ratings are considered.
"""
WIDEST = 4.0
"""Weight of the goal to know the least certain of all snapshots' ratings. For comparison, each
snapshot has a goal to know its rating, and these goals together have the weight 1. If `WIDEST` were
also 1, the ratings of the earliest snapshots would stay the least certain, because a learner
improves most from each of these snapshots to the next.
"""


def goals(plan: Plan, fit: Fit) -> Array:
    """Returns the goals of allocation, each as a row of weights over the players. A more important
    goal has larger weights.

    The goals are to know:

    - each snapshot's rating, relative to the mean of all snapshots. The least certain rating counts
      more than all others together.
    - which snapshots are the five best. For this, the ratings of the ten best are compared with the
      mean of the five best.
    - the newest snapshot's score against each held-out bot, and against the bot that the snapshot's
      learner has to beat to end its stage. Such a goal is more important if the score depends more
      strongly on the gap between the two ratings.
    """
    number = {name: n for n, name in enumerate(fit.names)}
    snapshots = [number[player.name] for player in plan.snapshots if player.name in number]
    rows = list[Array]()

    def against(player: int, others: Sequence[int], weight: float) -> None:
        row = np.zeros(len(number))
        row[player] += math.sqrt(weight)
        row[list(others)] -= math.sqrt(weight) / len(others)
        rows.append(row)

    others = snapshots if len(snapshots) > 1 else range(len(number))
    for n in snapshots:
        against(n, others, 1.0 / len(snapshots))
    against(max(snapshots, key=lambda n: fit.covariance_NN[n, n]), others, WIDEST)
    best = sorted(snapshots, key=lambda n: -fit.rating_N[n])[:RIVALS]
    for n in best:
        against(n, best[:TOP], 1.0 / len(best))
    players = plan.facts.players
    held_out = [
        n
        for name, n in number.items()
        if name in players and players[name].held_out and players[name].kind is PlayerKind.BOT
    ]
    awaited = {
        status.player: status.stage.until_opponent
        for status in plan.facts.curricula
        if not status.done and status.stage.until_opponent
    }
    for newest in plan.newest():
        if newest.name not in number:
            continue
        met = dict.fromkeys(held_out, 1.0 / max(1, len(held_out)))
        bot_name = awaited.get(lineage_of(newest.name), "")
        if bot_name in number:
            met[number[bot_name]] = 1.0
        for bot, weight in met.items():
            lead = np.array([fit.rating_N[number[newest.name]] - fit.rating_N[bot]])
            moves = float(_information(fit, lead)[0] / _information(fit, np.zeros(1))[0])
            against(number[newest.name], [bot], weight * moves**2)
    return np.array(rows)


def allocate(
    plan: Plan, fit: Fit, matches: int, rng: np.random.Generator
) -> Mapping[tuple[str, str], int]:
    """Chooses the pairs of players that meet next, and the number of matches of each pair.

    Args:
        plan: the state of the league.
        fit: the fit of the clean matches (both players frozen) so far.
        matches: total number of matches to choose, an even number.
        rng: random numbers. These numbers scale the gain of each pair by 0.9 to 1, so that two
            evaluators choose different pairs.

    Returns:
        The number of matches of each pair, `matches` in total.
    """
    if not plan.snapshots or not set(fit.names) & {snapshot.name for snapshot in plan.snapshots}:
        return {}
    first_P, second_P = _pairs(plan, fit)
    if not len(first_P):
        return {}
    goal_GN, covariance_NN = goals(plan, fit), fit.covariance_NN
    counts = plan.facts.counts
    met_P = np.array(
        [
            counts.get((fit.names[first], fit.names[second], Book.EVAL), 0)
            for first, second in zip(first_P, second_P, strict=True)
        ],
        np.float64,
    )
    of_one_P = _information(fit, fit.rating_N[first_P] - fit.rating_N[second_P])
    tells_P = rng.uniform(0.9, 1.0, len(first_P))
    chosen: Counter[tuple[str, str]] = Counter()
    for _ in range(matches // 2):
        known_GN = goal_GN @ covariance_NN
        gain_P = _of_gaps(known_GN.T @ known_GN, first_P, second_P)
        variance_P = _of_gaps(covariance_NN, first_P, second_P)
        more_P, so_far_P = (
            n_P * of_one_P / (1.0 + n_P * of_one_P * fit.tau**2) for n_P in (met_P + 2.0, met_P)
        )
        noise_P = 1.0 / np.maximum(more_P - so_far_P, 1e-12) + np.maximum(variance_P, 0.0)
        best = int(np.argmax(tells_P * gain_P / noise_P))
        first, second = first_P[best], second_P[best]
        chosen[fit.names[first], fit.names[second]] += 2
        met_P[best] += 2.0
        moved_N = covariance_NN[:, first] - covariance_NN[:, second]
        covariance_NN = covariance_NN - np.outer(moved_N, moved_N) / noise_P[best]
    return chosen


def _information(fit: Fit, gap_P: Array) -> Array:
    """Returns how much information a match gives about the gap between two ratings, in 1/points².
    `gap_P` has the present gaps, in points. The information is proportional to the slope of the
    expected score at the gap.
    """
    win_P, draw_P, _ = (
        np.exp(x) for x in log_probabilities(gap_P / fit.points_per_logit, math.log(fit.nu))
    )
    mean_P = win_P + draw_P / 2.0
    return np.asarray((win_P + draw_P / 4.0 - mean_P**2) / fit.points_per_logit**2)


def _of_gaps(matrix_NN: Array, first_P: Numbers, second_P: Numbers) -> Array:
    """Returns vᵀ M v for each pair, where v = eᵢ − eⱼ."""
    own_N = np.diagonal(matrix_NN)
    return own_N[first_P] + own_N[second_P] - 2.0 * matrix_NN[first_P, second_P]


def _pairs(plan: Plan, fit: Fit) -> tuple[Numbers, Numbers]:
    """Lists all pairs that may meet: two snapshots, or a learner's newest snapshot and a bot or
    rival.

    Older snapshots don't meet bots, because such results say little about the newest snapshot
    (`fit_league`). Exploiters are left out, because their matches test whether a main beats them.
    The number of matches of such a test has to be fixed in advance.
    """
    players, facts = plan.facts.players, plan.facts
    subjects = {player.name for player in plan.snapshots if player.role not in EXPLOITING}
    newest = {player.name for player in plan.newest()}
    bots = {
        name
        for name, player in players.items()
        if is_met(player)
        or (player.kind is PlayerKind.BOT and player.state is not PlayerState.QUARANTINED)
    }
    pairs = [
        (row, column)
        for row, name in enumerate(fit.names)
        for column, opponent in enumerate(fit.names[:row])
        if (
            (name in subjects and opponent in subjects)
            or (name in newest and opponent in bots)
            or (name in bots and opponent in newest)
        )
        and facts.can_meet(name, opponent)
        and facts.can_begin(name, opponent)
    ]
    numbers = np.array(pairs, np.intp).reshape(-1, 2)
    return numbers[:, 0], numbers[:, 1]
