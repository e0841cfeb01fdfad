"""References in the learner: they play along, are renewed in time, and each loss term moves its own."""

from contextlib import nullcontext

import numpy as np
import pytest
import test_choice_learning as choice_learning
import torch
from learning import MATCHES, STEPS, assignments, make_env, make_model, same, weights
from test_league_ppo import CountingCallback, collect, prepared, updates

from league.agent.heads import BernoulliKeys
from league.errors import NumericalFault
from league.ids import ReferenceName
from learner.checkpoint import (
    CheckpointFolder,
    algorithm_state,
    environment_state,
    load_algorithm_state,
    load_environment_state,
)
from learner.ppo.league_ppo import LeaguePPO
from learner.settings import RegularisationSettings

ALPHA = 0.5


def regularised(env=None, *, options=None, **settings):
    settings = {"alpha": ALPHA, "match_share": 1.0, "reference_interval": 0, **settings}
    fresh = env is None
    env = env or make_env(max_frames=60)
    model = make_model(env, regularisation=RegularisationSettings(**settings), **(options or {}))
    return prepared(model) if fresh else model


def whole_batch(model):
    return next(model.buffer.minibatches(MATCHES, np.random.default_rng(0)))


class Alongside:
    """Plays a copy of a network step by step over what the learner saw in each of its rollouts."""

    def __init__(self, network, matches=MATCHES):
        self.network, self.state = network, network.initial_state(matches)

    @torch.no_grad()
    def play(self, obs_TNO, starts_TN):
        logits = []
        for obs_NO, starts_N in zip(obs_TNO, starts_TN, strict=True):
            out = self.network.step(obs_NO, starts_N, self.state, torch.zeros(len(obs_NO)))
            self.state = out.state
            logits.append(out.logits_BA)
        return torch.stack(logits)

    def play_rollout(self, buffer, steps=STEPS):
        rows = slice(buffer.context, buffer.context + steps)
        return self.play(buffer.obs_XNO[rows], buffer.starts_XN[rows])


def test_a_reference_plays_along_across_rollouts_updates_and_match_ends():
    model = regularised()
    ended = 0
    collect(model)
    (reference,) = model.references.members
    alongside = Alongside(reference.network)
    for _ in range(5):
        torch.testing.assert_close(
            model.references.logits_MTCA[0], alongside.play_rollout(model.buffer), atol=2e-5, rtol=0
        )
        ended += int(model.buffer.ended_TN.sum())
        model.train()
        collect(model)
    assert ended > 2, "matches must end in the middle of rollouts for this test to say anything"
    assert not same(weights(model), reference.network.state_dict())


def test_a_rollout_cut_short_leaves_a_references_memory_behind_what_was_played():
    model = regularised()
    collect(model)
    (reference,) = model.references.members
    alongside = Alongside(reference.network)
    alongside.play_rollout(model.buffer)
    played = []
    model.should_stop = lambda: len(played) >= 3
    callback = CountingCallback(played)
    callback.init_callback(model)
    assert not model.collect_rollouts(model.env, callback, None, STEPS)
    seen = slice(STEPS - 3 + model.buffer.context, STEPS + model.buffer.context)
    alongside.play(model.buffer.obs_XNO[seen], model.buffer.starts_XN[seen])
    torch.testing.assert_close(reference.own[0], alongside.state.h_BH, atol=2e-5, rtol=0)
    torch.testing.assert_close(reference.own[1], alongside.state.c_BH, atol=2e-5, rtol=0)


def test_a_renewed_reference_is_the_learner_memory_of_matches_in_progress_included():
    model = regularised(reference_interval=1)
    updates(model, 3)
    assert not model.last_starts_N.all(), "some match must be in progress"
    collect(model)
    kl = model.loss_terms(whole_batch(model)).kl
    assert float(kl.loss.detach()) == pytest.approx(0.0, abs=1e-9)
    model.train()  # and not for want of anything to differ
    assert float(model.loss_terms(whole_batch(model)).kl.loss.detach()) > 1e-5


HEADS = {"policy": "actor", "entropy": "actor", "kl": "actor", "value": "critic"}


@pytest.mark.parametrize("term", HEADS)
def test_each_term_alone_moves_its_head_and_all_below_and_nothing_of_the_other(term):
    model = regularised()
    updates(model, 2)
    collect(model)
    terms = model.loss_terms(whole_batch(model))
    loss = {"policy": terms.policy.loss, "entropy": terms.entropy, "kl": terms.kl.loss, "value": terms.value}
    model.policy.optimizer.zero_grad(set_to_none=True)
    loss[term].backward()
    moved, still = set(), set()
    for name, parameter in model.policy.network.named_parameters():
        touched = parameter.grad is not None and parameter.grad.abs().sum() > 0
        (moved if touched else still).add(name)
    other = "critic" if HEADS[term] == "actor" else "actor"
    assert still == {name for name, _ in model.policy.network.named_parameters() if name.startswith(other)}
    assert any(name.startswith(HEADS[term]) for name in moved)
    assert all(p.grad is None for r in model.references.members for p in r.network.parameters())


def test_the_loss_is_the_sum_of_its_weighted_terms():
    model = regularised(options={"ent_coef": 0.03, "vf_coef": 0.7})
    updates(model, 1)
    terms = model.loss_terms(whole_batch(model))
    total = model.weighted(terms)
    wanted = terms.policy.loss + 0.7 * terms.value - 0.03 * terms.entropy + ALPHA * terms.kl.loss
    assert terms.kl.loss > 0
    torch.testing.assert_close(total, wanted)


def test_the_divergence_holds_a_learner_near_its_reference():
    free, held = (regularised(alpha=alpha) for alpha in (1e-9, 30.0))
    for model in (free, held):
        updates(model, 6)
        collect(model)
    apart = [float(model.loss_terms(whole_batch(model)).kl.loss.detach()) for model in (free, held)]
    assert apart[1] < 0.3 * apart[0]


def test_without_weight_there_are_no_references_and_nothing_changes():
    off, without = regularised(alpha=0.0), prepared(make_model(make_env(max_frames=60)))
    for model in (off, without):
        updates(model, 2)
    assert off.references is None
    assert same(weights(off), weights(without))


# -- a share of the matches ------------------------------------------------------------------------


def test_references_of_some_matches_stand_for_all():
    model = regularised(match_share=0.5, options={"batch_size": STEPS * 2})
    updates(model, 2)
    collect(model)
    assert model.references.covered == MATCHES // 2
    kl = []
    for batch in model.buffer.minibatches(2, np.random.default_rng(1)):
        terms = model.loss_terms(batch)
        kl.append(0.0 if terms.kl is None else float(terms.kl.loss.detach()))
    batch = whole_batch(model)
    with torch.no_grad():
        out = model.policy.network.unroll(
            batch.obs_XBO, batch.starts_XB, batch.h_BH, batch.c_BH, batch.time_left_TB, model.buffer.context
        )
    covered = batch.rows_B < model.references.covered
    places = batch.rows_B[covered]
    mine, theirs = (
        BernoulliKeys(out.logits_TBA[:, covered]),
        BernoulliKeys(model.references.logits_MTCA[0][:, places]),
    )
    assert np.mean(kl) == pytest.approx(float(mine.kl(theirs).mean()), rel=1e-3)


def test_a_minibatch_without_any_reference_is_learnt_from_all_the_same():
    model = regularised(match_share=0.01, options={"batch_size": STEPS})
    assert model.references.covered == 1
    before = weights(model)
    updates(model, 1)
    assert not same(before, weights(model))
    logged = model.logger.name_to_value
    assert logged["reference/kl"] > 0
    assert logged["reference/anchor_closest_share"] == 1.0, "a mean over the minibatches that have one"


# -- renewal ---------------------------------------------------------------------------------------


def steps_of(model):
    return [reference.step for reference in model.references.members]


def test_references_are_renewed_by_updates_and_old_ones_stay_as_the_interval_says():
    # 6 updates a rollout of 48 steps: 3 minibatches, 2 epochs
    model = regularised(reference_interval=10, portfolio_interval=20, portfolio_size=3, pruning="recent")
    seen = []
    for _ in range(10):
        updates(model, 1)
        seen.append(steps_of(model))
    assert seen == [
        [0],  # 6 updates
        [96],  # 12
        [96],
        [192, 96],  # 24: the interval of 20 has passed, so the forerunner stays
        [240, 96],  # 30
        [240, 96],
        [336, 96, 240],  # 42
        [336, 96, 240],
        [432, 96, 240],  # 54
        [480, 240, 432],  # 60: three would stay, the oldest leaves
    ]


def test_the_first_reference_stays_for_ever_when_it_is_not_renewed():
    model = regularised(reference_interval=0, portfolio_interval=1)
    before = weights(model)
    updates(model, 4)
    assert steps_of(model) == [0]
    assert same(model.references.members[0].network.state_dict(), before)


def test_a_moving_average_keeps_its_share_of_the_old_weights():
    model = regularised(reference_interval=6, portfolio_size=1, reference_ema=0.75)
    first = weights(model)
    updates(model, 1)
    now, kept = weights(model), model.references.members[0].network.state_dict()
    for name in now:
        torch.testing.assert_close(kept[name], 0.75 * first[name] + 0.25 * now[name], atol=1e-6, rtol=1e-5)
    updates(model, 1)
    newer, kept_too = weights(model), model.references.members[0].network.state_dict()
    for name in now:
        torch.testing.assert_close(
            kept_too[name], 0.75 * kept[name] + 0.25 * newer[name], atol=1e-6, rtol=1e-5
        )


def test_best_asks_for_ratings_and_drops_the_lowest():
    model = regularised(reference_interval=6, portfolio_interval=6, portfolio_size=3, pruning="best")
    names = ["a", "b", "c", "d"]
    model.references.register = lambda network, step: names.pop(0)
    model.references.ratings = lambda: {"a": 3.0, "b": 1.0, "c": 2.0}
    updates(model, 3)
    assert [reference.name for reference in model.references.members] == ["d", "a", "c"]


def test_diverse_measures_on_the_rollout_and_drops_one_that_another_stands_for():
    model = regularised(reference_interval=6, portfolio_interval=6, portfolio_size=3, pruning="diverse")
    updates(model, 2)
    anchor, first, second = model.references.members
    second.network.load_state_dict(first.network.state_dict())  # two alike, with one memory
    second.own = tuple(part.clone() for part in first.own)
    updates(model, 1)
    kept = model.references.members[1:]
    assert kept == [second, anchor], "of two that are alike the older goes"


def test_learners_that_share_the_work_drop_what_they_agree_on():
    model = regularised(reference_interval=6, portfolio_interval=6, portfolio_size=2, pruning="recent")
    model.references.agree = lambda index: index + 1
    updates(model, 3)
    assert steps_of(model) == [144, 0]


def test_measures_are_logged_for_each_reference():
    model = regularised(reference_interval=6, portfolio_interval=6, portfolio_size=2)
    updates(model, 3)
    logged = model.logger.name_to_value
    assert logged["reference/anchor_step"] == 96.0, "of the anchor that this update was held near"
    shares = [logged["reference/anchor_closest_share"], logged["reference/portfolio_1_closest_share"]]
    assert sum(shares) == pytest.approx(1.0)
    assert logged["reference/kl"] <= min(logged["reference/anchor_kl"], logged["reference/portfolio_1_kl"])


def test_a_divergence_that_is_no_number_stops_the_update_and_is_named():
    model = regularised(options={"batch_size": STEPS * MATCHES})
    collect(model)
    before = weights(model)
    model.references.logits_MTCA[0, 2, 1, 3] = float("nan")
    with pytest.raises(NumericalFault, match="the KL loss is not finite"):
        model.train()
    assert same(before, weights(model))


def test_names_of_references():
    name = ReferenceName("main.3", 51_200)
    assert str(name) == "main.3.reference-51200"
    assert ReferenceName.parse(str(name)) == name


# -- the reward form -------------------------------------------------------------------------------


def recorded_across(model):
    """Every later step of the environment as the seats across saw it: observations, starts, actions, live."""
    env, seen = model.env, []
    step_arrays = env.step_arrays

    def recording(actions_NA):
        now, starts_N = env.across(), model.last_starts_N.copy()
        result = step_arrays(actions_NA)
        seen.append((now.obs_NO, starts_N, env.across_actions_NA.copy(), now.live_N))
        return result

    env.step_arrays = recording
    return seen


def test_the_reward_form_takes_what_leaving_the_reference_costs_from_both_seats():
    plan = assignments(200)
    del plan[MATCHES]  # so that it meets itself in another row after the first matches, in mid-rollout
    model = prepared(regularised(make_env(plan, max_frames=60), form="reward"))
    across, live_matches = recorded_across(model), 0
    collect(model)
    frozen, learner = model.references.members[0].network, model.policy.network
    own, other, mine = Alongside(frozen), Alongside(frozen), Alongside(learner)
    for _ in range(4):
        obs, starts, actions, live = (torch.from_numpy(np.stack(part)) for part in zip(*across, strict=True))
        across.clear()
        played = model.buffer.actions_TNA
        taken = model.buffer.log_prob_TN - BernoulliKeys(own.play_rollout(model.buffer)).log_prob(played)
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
    assert model.references.covered == MATCHES, "every reward is transformed, whatever match_share says"
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
    h_SH, c_SH = (part.clone() for part in model.env.crowd.live_memory())
    assert h_SH.any()
    assert torch.equal(reference.other[0], h_SH)
    assert torch.equal(reference.other[1], c_SH)
    collect(model)
    assert not torch.equal(reference.other[0], h_SH), "it plays along there"


# -- checkpoints -----------------------------------------------------------------------------------


def memories(reference):
    return [*reference.own, *(reference.other or ())]


@pytest.mark.parametrize("form", ["loss", "reward"])
def test_a_run_resumed_with_references_equals_one_that_never_stopped(tmp_path, form):
    torch.set_num_threads(1)
    settings = {
        "form": form,
        "reference_interval": 7,
        "reference_ema": 0.25,
        "portfolio_interval": 12,
        "portfolio_size": 3,
        "match_share": 0.7,
    }
    uninterrupted = regularised(**settings)
    updates(uninterrupted, 9)

    first = regularised(**settings)
    updates(first, 5)
    values = {"algorithm": algorithm_state(first), "environment": environment_state(first.env)}
    CheckpointFolder(tmp_path).write(first.num_timesteps, values)
    taken = 200 - len(first.env.source._left)

    saved = CheckpointFolder(tmp_path).read_newest()
    plan = assignments(200)
    by_id = {assignment.match_id: assignment for assignment in plan}
    env = make_env(plan[taken:], max_frames=60)
    second = regularised(env, **settings)
    load_algorithm_state(second, saved["algorithm"])
    load_environment_state(env, saved["environment"], [by_id[m] for m in saved["environment"]["matches"]])
    second.last_obs_NO = env.observations()
    prepared(second)
    assert steps_of(second) == steps_of(first)
    assert len(steps_of(second)) == 3
    updates(second, 4)

    assert same(weights(second), weights(uninterrupted))
    assert steps_of(second) == steps_of(uninterrupted) != steps_of(first)
    for one, other in zip(second.references.members, uninterrupted.references.members, strict=True):
        assert same(one.network.state_dict(), other.network.state_dict())
        for mine, theirs in zip(memories(one), memories(other), strict=True):
            assert torch.equal(mine, theirs)
    unheld = regularised(alpha=0.0)
    updates(unheld, 9)
    assert not same(weights(unheld), weights(uninterrupted)), "the references must have mattered"


def test_new_matches_begin_with_empty_memories():
    model = regularised(form="reward")
    updates(model, 2)
    model.references.forget_matches()
    (reference,) = model.references.members
    for part in (*reference.own, *reference.other):
        assert not part.any()


def test_a_checkpoint_of_another_number_of_matches_keeps_references_and_empties_memories():
    model = regularised(match_share=0.5)
    updates(model, 2)
    state = model.references.state()
    wider = regularised(match_share=1.0)
    wider.references.load(state)
    (reference,) = wider.references.members
    assert same(reference.network.state_dict(), model.references.members[0].network.state_dict())
    assert reference.own[0].shape[0] == MATCHES
    assert not reference.own[0].any()
    updates(wider, 1)


def test_a_saved_model_goes_on_with_a_reference_of_its_own(tmp_path):
    model = regularised()
    updates(model, 1)
    model.save(tmp_path / "model.zip")
    env = make_env(max_frames=60)
    loaded = LeaguePPO.load(tmp_path / "model.zip", env=env, device="cpu")
    env.crowd.set_live(loaded.policy.network)
    loaded.learn(STEPS * MATCHES, reset_num_timesteps=False)
    assert steps_of(loaded) == [STEPS * MATCHES]


# -- games of choices ------------------------------------------------------------------------------


def choosing(form, **settings):
    held = RegularisationSettings(alpha=ALPHA, form=form, match_share=1.0, **settings)
    env = choice_learning.make_env("leduc", ("random", "live"), count=1000)
    return prepared(choice_learning.make_model(env, regularisation=held, learning_rate=3e-3))


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


def test_the_loss_form_learns_in_a_game_of_choices():
    model = choosing("loss", reference_interval=5, portfolio_interval=5, portfolio_size=3)
    updates(model, 9)  # 18 updates, the newest reference is of the 16th
    collect(model)
    assert len(model.references.members) == 3
    terms = model.loss_terms(whole_batch(model))
    assert 0 < float(terms.kl.loss.detach()) < 1
    assert terms.kl.closest_M.sum().item() == pytest.approx(1.0)


def test_references_play_along_in_the_precision_of_the_update():
    """Else a reference would seem to be away from a learner that it is a copy of, by what rounding does."""
    distances = {}
    for name in ("bfloat16", "float32"):
        model = regularised(options={"precision": "bfloat16"})
        if name == "float32":
            model.references.autocast = nullcontext
        collect(model)
        distances[name] = float(model.loss_terms(whole_batch(model)).kl.loss.detach())
        assert model.references.logits_MTCA.dtype == torch.float32
        assert all(part.dtype == torch.float32 for part in model.references.members[0].own)
    assert distances["bfloat16"] < 1e-9 < 1e-7 < distances["float32"]
