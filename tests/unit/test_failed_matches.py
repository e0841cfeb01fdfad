"""Matches that could not be played to their end: reported as failed, never rated, never learnt
from.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from learning import MATCHES, assignments, config, make_env, make_model, network_of
from rollouts import collect

from evaluator.clean.arena import Arena
from league.errors import ConfigError
from league.games.brawl.game import BrawlGame
from learner.ppo.loss import advantage_sums, clipped_policy_loss, normalised, value_loss
from learner.rollout.buffer import SequenceBuffer

HUNG = "the environment hung"
AS_FAILED = True, HUNG, 0.5, 0, ({}, {})
"""What learner and evaluator report of it: failed, why, outcome, frames, statistics."""


def reported(result):
    stats = tuple(seat.stats for seat in result.seats)
    return result.match_id, result.failed, result.failure, result.outcome, result.frames, stats


class Fragile(BrawlGame):
    """Brawl in which the rows of `breaks` break in the step of that number."""

    breaks: dict[int, set[int]]
    steps = 0

    def step(self, actions_N2A, frames=1):
        super().step(actions_N2A, frames)
        self.steps += 1
        broken = sorted(self.breaks.get(self.steps, ()))
        self.failures = dict.fromkeys(broken, HUNG)
        if broken:
            where_N = np.isin(np.arange(self.num_matches), broken)
            self.reset(self.next_seeds_N, where_N)
            self.ended_N |= where_N


def fragile_env(breaks: dict[int, set[int]]):
    env = make_env(max_frames=4000)
    env.game.__class__ = Fragile
    env.game.breaks = breaks
    return env


def test_a_failed_match_is_reported_as_failed_and_the_next_one_begins():
    env = fragile_env({3: {1, 4}})
    env.reset()
    lost = [env.assignments[n].match_id for n in (1, 4)]
    for _ in range(4):
        *_, ended_N = env.step_arrays(np.zeros((MATCHES, 10), np.uint8))
    assert list(map(reported, env.source.results)) == [(m, *AS_FAILED) for m in lost]
    assert env.finished == []
    assert env.steps_N.tolist() == [4, 1, 4, 4, 1, 4]
    assert not ended_N.any()


def test_a_game_whose_matches_only_fail_is_given_up():
    env = fragile_env({step: set(range(MATCHES)) for step in range(1, 9)})
    env.reset()
    idle = np.zeros((MATCHES, 10), np.uint8)
    for _ in range(7):  # so often a process may be killed that holds all matches
        env.step_arrays(idle)
    with pytest.raises(ConfigError, match=rf"\b{7 * MATCHES + 1}\b.*brawl.*{HUNG}"):
        env.step_arrays(idle)
    assert len(env.source.results) == 7 * MATCHES + 1


def test_the_steps_of_a_failed_match_are_left_out_and_those_around_it_are_not():
    env = fragile_env({3: {1}, 5: {1, 2}})
    model = make_model(env)
    collect(model)
    weight_TN = model.buffer.weight_TN
    assert weight_TN is not None
    assert weight_TN[:, 1].tolist() == [0, 0, 0, 0, 0, 1, 1, 1]
    assert weight_TN[:, 2].tolist() == [0, 0, 0, 0, 0, 1, 1, 1]
    assert weight_TN[:, [0, 3, 4, 5]].min() == 1
    collect(model)
    assert model.buffer.weight_TN is None, "the next rollout has no failure"


def test_steps_without_weight_change_neither_losses_nor_gradients():
    generator = torch.Generator().manual_seed(0)
    log_prob, old, advantage, target = (torch.randn(6, 2, generator=generator) for _ in range(4))
    weight = torch.ones(6, 2)
    weight[2:4, 1] = 0
    kept = weight > 0
    wild = torch.where(kept, advantage, 1e6)
    log_prob.requires_grad_()
    masked = clipped_policy_loss(
        log_prob, old, normalised(wild, advantage_sums(wild, weight)), 0.2, weight
    )
    seen = normalised(advantage[kept], advantage_sums(advantage[kept]))
    alone = clipped_policy_loss(log_prob[kept], old[kept], seen, 0.2)
    for mine, theirs in zip(masked, alone, strict=True):
        torch.testing.assert_close(mine, theirs)
    masked.loss.backward()
    assert log_prob.grad[~kept].abs().max() == 0
    assert log_prob.grad[kept].abs().max() > 0
    value = torch.where(kept, target + 0.5, 1e6)
    assert value_loss(value, target, weight).item() == pytest.approx(0.25, rel=1e-4)


def test_a_match_that_began_before_the_rollout_is_left_out_from_its_first_step_on():
    buffer = SequenceBuffer(config(), 4, 2, torch.device("cpu"))
    buffer.leave_out(1, np.array([3, 9]), np.array([True, False]))
    assert buffer.weight_TN is not None
    assert buffer.weight_TN[:, 0].tolist() == [0, 0, 1, 1]
    assert buffer.weight_TN[:, 1].tolist() == [1, 1, 1, 1]


def test_the_evaluator_passes_a_failure_on_and_frees_the_row():
    game = Fragile(3, max_frames=4000)
    game.breaks = {2: {0}}
    game.reset(np.arange(3, dtype=np.uint64))
    arena = Arena(game, network_of, frame_skip=4, seed=0)
    bots = [a for a in assignments(40) if a.opponent.kind.value == "snapshot"]
    seated = [a.__class__(**{**vars(a), "seats": (a.opponent, a.opponent)}) for a in bots[:2]]
    arena.seat(seated)
    results = [result for _ in range(3) for result in arena.step()]
    assert list(map(reported, results)) == [(seated[0].match_id, *AS_FAILED)]
    assert arena.free == 2
