"""What the auxiliary head is asked to predict, and what its loss and its baseline are."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from learning import MATCHES, STEPS, make_env
from rollouts import collect, whole_batch
from test_forecast import choosing_model, forecasting

from learner.ppo.loss import forecast_loss, marginal_loss
from learner.rollout.league_vec_env import actions_of


def watched(env):
    """Notes at each step what was seen before it and what both seats then did, from the game
    itself.
    """
    told, step = [], env.game.step

    def watching(actions_N2A, frames=1):
        seen, seats = env.observations(), env.seat_N.copy()
        legal = None if env.game.legal_N2A is None else env.game.legal_N2A.copy()
        step(actions_N2A, frames)
        rows, other = np.arange(len(seats)), 1 - seats
        done = env.game.played_N2A()[rows, other]
        told.append((seen, done, None if legal is None else legal[rows, other]))

    env.game.step = watching
    return told


def test_a_step_holds_what_the_opponent_did_behind_the_observation_that_the_latent_ends_with():
    model = forecasting(make_env(max_frames=20))  # a match ends after five decisions
    told = watched(model.env)
    collect(model)
    buffer = model.buffer
    assert buffer.ended_TN.any()
    for t, (seen, done, _) in enumerate(told):
        np.testing.assert_array_equal(buffer.obs_XNO[buffer.context + t].numpy(), seen)
        np.testing.assert_array_equal(buffer.across_TNA[t].numpy(), done)
    assert buffer.known_TN.all()
    kinds = {match.opponent.kind.value for match in model.env.assignments}
    assert len(kinds) == 3, "bots, snapshots and itself"
    assert 0 < buffer.across_TNA.mean() < 1


def test_a_forced_choice_is_nothing_to_foretell():
    model = choosing_model()
    told = watched(model.env)
    collect(model)
    buffer = model.buffer
    for t, (_, done, legal) in enumerate(told):
        free = legal.sum(-1) > 1
        np.testing.assert_array_equal(buffer.known_TN[t].numpy() > 0, free)
        np.testing.assert_array_equal(buffer.across_TNA[t].numpy()[free], done[free])
        np.testing.assert_array_equal(buffer.across_legal_TNA[t].numpy(), legal)
    assert 0 < buffer.known_TN.mean() < 1


def test_a_match_that_failed_is_left_out():
    model = forecasting()
    collect(model)
    model.buffer.leave_out(3, np.full(MATCHES, 2), np.arange(MATCHES) == 1)
    known = whole_batch(model).known_TB
    assert known.shape == (STEPS, MATCHES)
    assert known.sum() == STEPS * MATCHES - 2


@pytest.mark.parametrize(
    ("played", "legal", "known"),
    [
        ([[1, 0], [0, 1]], None, [True, True]),
        (None, None, [True, False]),  # a game that keeps its bots' keys to itself
        (None, [[1, 1], [1, 1]], [True, False]),
        ([[1, 0], [0, 1]], [[1, 1], [1, 0]], [True, False]),  # forced
        ([[1, 0], [0, 0]], [[1, 1], [1, 1]], [True, False]),  # nothing chosen
        ([[1, 0, 0], [0, 0, 1]], [[1, 1, 0], [1, 1, 0]], [True, False]),  # not legal
    ],
)
def test_what_is_known_of_an_opponent(played, legal, known):
    # the learner in seat 0, a bot across in row 1
    sent = np.array([[[9, 9], [1, 0]], [[9, 9], [1, 1]]], np.uint8)
    done = None if played is None else np.array([[row, row] for row in played], np.uint8)
    game = SimpleNamespace(
        num_matches=2, bots_N2=np.array([[-1, -1], [-1, 0]]), played_N2A=lambda: done
    )
    legal = None if legal is None else np.array(legal, bool)
    moves = actions_of(game, sent, np.array([1, 1]), legal)
    assert moves.known_N.tolist() == known
    assert moves.actions_NA[0].tolist() == ([1, 0] if played is None else played[0])
    assert not moves.actions_NA[~moves.known_N].any()


def test_the_loss_is_the_log_loss_over_what_is_known():
    batch = SimpleNamespace(
        across_TBA=torch.tensor([[[1.0, 0.0]], [[1.0, 1.0]]]),
        across_legal_TBA=None,
        known_TB=torch.tensor([[1.0], [0.0]]),
    )
    logits = torch.tensor([[[0.0, 1.0]], [[5.0, -5.0]]])
    wanted = -np.log(0.5) - np.log(1 - 1 / (1 + np.exp(-1)))
    assert float(forecast_loss("keys", logits, batch)) == pytest.approx(wanted, rel=1e-6)
    batch = SimpleNamespace(
        across_TBA=torch.tensor([[[0.0, 1.0, 0.0]]]),
        across_legal_TBA=torch.tensor([[[True, True, False]]]),
        known_TB=torch.ones(1, 1),
    )
    logits = torch.tensor([[[0.0, 1.0, 50.0]]])  # what is not legal takes no share
    assert float(forecast_loss("choice", logits, batch)) == pytest.approx(
        np.log1p(np.exp(-1)), rel=1e-6
    )


@pytest.mark.parametrize("model", [forecasting, choosing_model])
def test_the_baseline_is_the_loss_of_the_best_constant_answer(model):
    model = model()
    collect(model, 3)
    buffer, kind = model.buffer, model.agent.action_kind
    batch = whole_batch(model)
    logits = torch.zeros(model.agent.action_size, requires_grad=True)
    optimizer = torch.optim.LBFGS([logits], max_iter=200, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        loss = forecast_loss(kind, logits.expand(*batch.across_TBA.shape), batch)
        loss.backward()
        return loss

    optimizer.step(closure)
    told = marginal_loss(kind, buffer, lambda numbers: numbers)
    if kind == "keys":
        assert told == pytest.approx(float(closure().detach()), abs=0.05)
    else:  # rates among all that was legal are near the best logits, and no better
        assert -1e-6 < told - float(closure().detach()) < 0.1
    # a second rank that saw the same
    twice = marginal_loss(kind, buffer, lambda numbers: 2 * numbers)
    assert twice == pytest.approx(told, abs=0.05)
