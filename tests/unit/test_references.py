"""References in the learner: they play along, each loss term moves its own, and a share stands
for all.
"""

from contextlib import nullcontext

import numpy as np
import pytest
import torch
from learning import MATCHES, STEPS, same, weights
from referenced import ALPHA, Alongside, regularised
from rollouts import collect, updates, whole_batch
from torch.distributions import Bernoulli, kl_divergence

from league.errors import NumericalFault


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


HEADS = {"policy": "actor", "entropy": "actor", "kl": "actor", "value": "critic"}


@pytest.mark.parametrize("term", HEADS)
def test_each_term_alone_moves_its_head_and_all_below_and_nothing_of_the_other(term):
    model = regularised()
    updates(model, 2)
    collect(model)
    terms = model.loss_terms(whole_batch(model))
    loss = {
        "policy": terms.policy.loss,
        "entropy": terms.entropy,
        "kl": terms.kl.loss,
        "value": terms.value,
    }
    model.policy.optimizer.zero_grad(set_to_none=True)
    loss[term].backward()
    moved, still = set(), set()
    for name, parameter in model.policy.network.named_parameters():
        touched = parameter.grad is not None and parameter.grad.abs().sum() > 0
        (moved if touched else still).add(name)
    other = "critic" if HEADS[term] == "actor" else "actor"
    assert still == {
        name for name, _ in model.policy.network.named_parameters() if name.startswith(other)
    }
    assert any(name.startswith(HEADS[term]) for name in moved)
    assert all(p.grad is None for r in model.references.members for p in r.network.parameters())


def test_the_loss_is_the_sum_of_its_weighted_terms():
    model = regularised(options={"ent_coef": 0.03, "vf_coef": 0.2})
    updates(model, 1)
    terms = model.loss_terms(whole_batch(model))
    total = model.weighted(terms)
    wanted = terms.policy.loss + 0.2 * terms.value - 0.03 * terms.entropy + ALPHA * terms.kl.loss
    assert terms.kl.loss > 0
    torch.testing.assert_close(total, wanted)


def test_the_divergence_holds_a_learner_near_its_reference():
    free, held = (regularised(alpha=alpha) for alpha in (1e-9, 30.0))
    for model in (free, held):
        updates(model, 6)
        collect(model)
    apart = [float(model.loss_terms(whole_batch(model)).kl.loss.detach()) for model in (free, held)]
    assert apart[1] < 0.3 * apart[0]


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
        out = model.unroll(batch)
    covered = batch.rows_B < model.references.covered
    places = batch.rows_B[covered]
    mine, theirs = (
        Bernoulli(logits=out.logits_TBA[:, covered]),
        Bernoulli(logits=model.references.logits_MTCA[0][:, places]),
    )
    wanted = kl_divergence(mine, theirs).sum(-1).mean()
    assert np.mean(kl) == pytest.approx(wanted.item(), rel=1e-3)


def test_a_single_reference_plays_in_all_matches_because_it_costs_little():
    assert regularised(match_share=0.25, portfolio_size=1).references.covered == MATCHES


def test_a_minibatch_without_any_reference_is_learnt_from_all_the_same():
    model = regularised(match_share=0.01, options={"batch_size": STEPS})
    assert model.references.covered == 1
    before = weights(model)
    updates(model, 1)
    assert not same(before, weights(model))
    logged = model.logger.name_to_value
    assert logged["reference/kl"] > 0
    assert logged["reference/anchor_closest_share"] == 1.0, (
        "a mean over the minibatches that have one"
    )


def test_a_divergence_that_is_no_number_stops_the_update_and_is_named():
    model = regularised(options={"batch_size": STEPS * MATCHES})
    collect(model)
    before = weights(model)
    model.references.logits_MTCA[0, 2, 1, 3] = float("nan")
    with pytest.raises(NumericalFault, match="KL loss"):
        model.train()
    assert same(before, weights(model))


def test_references_play_along_in_the_precision_of_the_update():
    """Else a reference would seem to be away from a learner that it is a copy of, by what
    rounding does.
    """
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
