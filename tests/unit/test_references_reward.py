"""The reward form: what leaving a reference costs is taken from both seats' rewards."""

import numpy as np
import pytest
import torch
from learning import MATCHES, assignments, make_env
from referenced import ALPHA, Alongside, choosing, regularised
from rollouts import collect, prepared, updates, whole_batch

from league.agent.heads import BernoulliKeys
from league.players import PlayerKind


def recorded_across(model):
    """Every later step of the environment as the seats across saw it: observations, starts,
    actions, live.
    """
    env, seen = model.env, []
    step_arrays = env.step_arrays

    def recording(actions_NA):
        starts_N = model.last_starts_N.copy()
        obs_NO = env.game.observations_N2O[np.arange(MATCHES), 1 - env.seat_N]
        live_N = np.array([one.opponent.kind is PlayerKind.LIVE for one in env.assignments])
        result = step_arrays(actions_NA)
        seen.append((obs_NO, starts_N, env.opponent_actions_NA.copy(), live_N))
        return result

    env.step_arrays = recording
    return seen


def test_the_reward_form_takes_what_leaving_the_reference_costs_from_both_seats():
    plan = assignments(200)
    # so that it meets itself in another row after the first matches, in mid-rollout
    del plan[MATCHES]
    model = prepared(regularised(make_env(plan, max_frames=60), form="reward"))
    across, live_matches = recorded_across(model), 0
    collect(model)
    frozen, learner = model.references.members[0].network, model.policy.network
    own, other, mine = Alongside(frozen), Alongside(frozen), Alongside(learner)
    for _ in range(4):
        obs, starts, actions, live = (
            torch.from_numpy(np.stack(part)) for part in zip(*across, strict=True)
        )
        across.clear()
        played = model.buffer.actions_TNA
        taken = model.buffer.log_prob_TN - BernoulliKeys(own.play_rollout(model.buffer)).log_prob(
            played
        )
        given = BernoulliKeys(mine.play(obs, starts)).log_prob(actions)
        given -= BernoulliKeys(other.play(obs, starts)).log_prob(actions)
        wanted = ALPHA * (torch.where(live, given, 0.0) - taken)
        np.testing.assert_allclose(model.transform.added_TN, wanted.numpy(), atol=1e-4)
        live_matches += int(live.any(0).sum())
        model.train()
        collect(model)
    assert 0 < live_matches < 4 * MATCHES, "some matches against itself and some against others"
    assert np.abs(model.transform.added_TN).max() > 1e-3


def test_the_reward_form_changes_targets_and_not_the_loss_or_what_is_logged_of_rewards():
    model = regularised(form="reward", match_share=0.1)
    plain = regularised(alpha=0.0)
    for one in (model, plain):
        updates(one, 1)  # the first reference is the learner itself: nothing to take
        collect(one)
    assert model.references.covered == MATCHES, (
        "every reward is transformed, whatever match_share says"
    )
    assert model.loss_terms(whole_batch(model)).kl is None
    assert model.logger.name_to_value["reference/kl"] == pytest.approx(0.0, abs=1e-9)
    np.testing.assert_array_equal(model.buffer.reward_TN, plain.buffer.reward_TN)
    assert model.return_scale.scale == plain.return_scale.scale
    apart = (model.buffer.advantage_TN - plain.buffer.advantage_TN).abs().max()
    assert apart > 1e-3


def test_a_renewed_reference_of_the_reward_form_remembers_the_seats_across_too():
    model = regularised(form="reward", reference_interval=1)
    updates(model, 3)
    (reference,) = model.references.members
    h_SH, c_SH = (part.clone() for part in model.env.opponent_policy.live_memory())
    assert h_SH.any()
    assert torch.equal(reference.other[0], h_SH)
    assert torch.equal(reference.other[1], c_SH)
    collect(model)
    assert not torch.equal(reference.other[0], h_SH), "it plays along there"


def test_forced_moves_cost_nothing_and_illegal_choices_stay_out_of_the_divergence():
    model = choosing("reward", reference_interval=0)
    updates(model, 6)
    collect(model)
    own_forced = model.buffer.legal_TNA.sum(-1) == 1
    across_forced = model.transform.legal_TNA.sum(-1) == 1
    added = torch.from_numpy(model.transform.added_TN)
    assert added.isfinite().all()
    both = own_forced & (across_forced | ~model.transform.live_TN)
    assert both.any()
    assert added[both].abs().max() == 0
    assert (added[~own_forced] != 0).all()
    assert (added[own_forced & ~across_forced & model.transform.live_TN] != 0).all()
