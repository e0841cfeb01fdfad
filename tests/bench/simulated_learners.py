"""A league whose every strength is known: learners that climb, their snapshots, and bots."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from simulated_players import CANDIDATES, Online, played

from league.stats.ratings import Drift
from league.stats.ratings.lineage import Seats

Array = NDArray[np.float64]
Numbers = NDArray[np.int64]
LEARNERS, BOTS = 10, 10
GAMES_OF_A_LEAGUE = 110_000
STEPS_A_MATCH = 460
SNAPSHOT_STEPS = 250_000
BATCH_OF_A_LEARNER = 20
OPPONENT_SHARES = (0.3, 0.2)
"""Bots, other learners with their newest weights; the rest snapshots."""
START, CLIMB, WANDERING = -13.0, 5.0, 5.0
"""Points of a new learner, points it gains in a fold of steps (`league.stats.ratings.drift`),
and points² it wanders in one: as measured in runs of brawl's preset `laptop`, 4 to 5 and 2 to 8.
"""
POINTS_A_LOGIT = 3.05


@dataclass(frozen=True)
class LearnerLeague:
    """G games of learners against bots, snapshots and each other.

    Attributes:
        theta0_G, theta1_G: strengths when they played, in logits.
        theta_N: of all players at the end; those of `frozen_N` never changed.
    """

    seat0: Seats
    seat1: Seats
    theta0_G: Array
    theta1_G: Array
    outcome_G: Array
    theta_N: Array
    frozen_N: Numbers
    online: Online


class _Learners:
    """What a league of learners grows by, batch by batch. Players: bots, then live ones, then
    snapshots.
    """

    def __init__(
        self,
        rng: np.random.Generator,
        drift: Drift,
        nu: float,
        *,
        by_rating: bool,
        matches: int,
    ) -> None:
        self.rng, self.nu, self.by_rating = rng, nu, by_rating
        fold_M = np.log1p(np.arange(matches) * STEPS_A_MATCH / drift.settling_steps)
        noise_KM = rng.normal(size=(LEARNERS, matches))
        walk_KM = np.cumsum(noise_KM * np.sqrt(WANDERING * np.diff(fold_M, prepend=0.0)), axis=1)
        self.theta_KM = (START + CLIMB * fold_M + walk_KM) / POINTS_A_LOGIT
        self.theta = [*(np.linspace(-14.0, 14.0, BOTS) / POINTS_A_LOGIT), *self.theta_KM[:, 0]]
        self.lineage = [*range(LEARNERS, LEARNERS + BOTS), *range(LEARNERS)]
        self.step = [0] * (BOTS + LEARNERS)
        every = math.ceil(matches * STEPS_A_MATCH / SNAPSHOT_STEPS)
        self.online = Online(BOTS + LEARNERS * (1 + every), drift)
        for learner in range(LEARNERS):
            self.online.table.learns(str(BOTS + learner))

    def snapshot(self, match: int) -> None:
        for learner in range(LEARNERS):
            parent, step = str(BOTS + learner), match * STEPS_A_MATCH
            self.online.table.inherit(str(len(self.theta)), parent, step)
            self.theta.append(self.theta_KM[learner, match])
            self.lineage.append(learner)
            self.step.append(step)

    def frozen(self) -> Numbers:
        players = np.arange(len(self.theta))
        return players[(players < BOTS) | (players >= BOTS + LEARNERS)]

    def opponents(self, live_G: Numbers) -> Numbers:
        players, size = len(self.theta), len(live_G)
        if self.by_rating:
            return self.online.opponents(
                self.rng, live_G, self.rng.integers(players, size=(size, CANDIDATES))
            )
        dice_G, others_G = (
            self.rng.random(size),
            BOTS + (live_G - BOTS + self.rng.integers(1, LEARNERS, size=size)) % LEARNERS,
        )
        bots_G = self.rng.integers(BOTS, size=size)
        first = BOTS + LEARNERS
        snapshots_G = self.rng.integers(first, players, size=size) if players > first else bots_G
        bots, live = OPPONENT_SHARES
        return np.where(
            dice_G < bots, bots_G, np.where(dice_G < bots + live, others_G, snapshots_G)
        )

    def play(self, match: int) -> list[Array]:
        """Each learner's next matches: lineage, step, liveness and strength of both, and
        outcome.
        """
        turn_G = np.repeat(np.arange(BATCH_OF_A_LEARNER), LEARNERS)
        learner_G = np.tile(np.arange(LEARNERS), BATCH_OF_A_LEARNER)
        for learner in range(LEARNERS):
            self.theta[BOTS + learner] = self.theta_KM[learner, match]
            self.step[BOTS + learner] = match * STEPS_A_MATCH
        other_G = self.opponents(BOTS + learner_G)
        is_live_G = (other_G >= BOTS) & (other_G < BOTS + LEARNERS)
        at_G = match + turn_G
        theta0_G = self.theta_KM[learner_G, at_G]
        theta1_G, lineage1_G, step1_G = (
            np.array(x)[other_G] for x in (self.theta, self.lineage, self.step)
        )
        theta1_G[is_live_G] = self.theta_KM[other_G[is_live_G] - BOTS, at_G[is_live_G]]
        step1_G[is_live_G] = at_G[is_live_G] * STEPS_A_MATCH
        outcome_G = played(self.rng, theta0_G - theta1_G, self.nu)
        self._take(BOTS + learner_G, other_G, outcome_G, at_G * STEPS_A_MATCH, step1_G)
        ones_G = np.ones_like(is_live_G)
        return [
            learner_G,
            at_G * STEPS_A_MATCH,
            ones_G,
            theta0_G,
            lineage1_G,
            step1_G,
            is_live_G,
            theta1_G,
            outcome_G,
        ]

    def _take(
        self,
        live_G: Numbers,
        other_G: Numbers,
        outcome_G: Array,
        step_G: Numbers,
        other_step_G: Numbers,
    ) -> None:
        """Gives the table these games with seats at random, so that it predicts from both sides."""
        swap_G = self.rng.random(len(live_G)) < 0.5
        sides = (
            (live_G, other_G),
            (other_G, live_G),
            (outcome_G, 1.0 - outcome_G),
            (step_G, other_step_G),
            (other_step_G, step_G),
        )
        self.online.take(*(np.where(swap_G, swapped, straight) for straight, swapped in sides))


def learner_league(
    rng: np.random.Generator,
    drift: Drift,
    nu: float,
    *,
    by_rating: bool,
    games: int = GAMES_OF_A_LEAGUE,
) -> LearnerLeague:
    """Plays ten learners that climb as those of laptop runs of brawl do: steeply,
    then slowly.
    """
    matches = games // LEARNERS
    league = _Learners(rng, drift, nu, by_rating=by_rating, matches=matches)
    batches, due = [], SNAPSHOT_STEPS
    for match in range(0, matches, BATCH_OF_A_LEARNER):
        if match * STEPS_A_MATCH >= due:
            league.snapshot(match)
            due += SNAPSHOT_STEPS
        batches.append(league.play(match))
    lineage0, step0, live0, theta0, lineage1, step1, live1, theta1, outcome = map(
        np.concatenate, zip(*batches, strict=True)
    )
    return LearnerLeague(
        Seats(lineage0, step0, live0),
        Seats(lineage1, step1, live1),
        theta0,
        theta1,
        outcome,
        np.array(league.theta),
        league.frozen(),
        league.online,
    )
