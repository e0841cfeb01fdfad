"""A learner whose game worker dies goes on with the matches of the others."""

from __future__ import annotations

import os
import signal
from contextlib import closing

import numpy as np
import pytest
import torch
from learning import MATCHES, STEPS, env_of
from ports import free_port
from rollouts import collect, prepared, whole_batch
from test_choice_learning import make_model, matches_against, network_of
from waiting import wait_for

from league.agent.heads import action_distribution
from league.games.base import CHOICE
from league.games.workers import game as worker_game
from league.games.workers.game import make_spread
from league.security.credentials import Credentials


@pytest.mark.long
def test_lost_matches_are_neither_learnt_from_nor_missed():
    game = make_spread(
        "leduc",
        MATCHES,
        workers=(None, None),
        credentials=Credentials(),
        max_frames=None,
        options={},
    )
    lost, others = slice(0, MATCHES // 2), slice(MATCHES // 2, MATCHES)
    with closing(game):
        plan = matches_against("random", "live", count=100_000)
        load = lambda digest: network_of("leduc", int(digest, 16))  # noqa: E731
        env = env_of(game, plan, load, frame_skip=1, reward="dense")
        model = prepared(make_model(env))
        collect(model)
        model.train()
        begun = {env.assignments[n].match_id for n in range(MATCHES)[lost]}
        os.kill(game.worker_pids[0], signal.SIGKILL)
        collect(model)
        failed = {result.match_id for result in env.source.results if result.failed}
        assert failed == begun
        weight_TN = model.buffer.weight_TN
        assert not weight_TN[:, lost].any()
        assert weight_TN[:, others].all()
        assert model.buffer.played_N[others].tolist() == [STEPS] * (MATCHES // 2)
        model.train()
        assert model.logger.name_to_value["rollout/waiting_share"] > 0.4

        def returns() -> bool:
            collect(model)
            return not game.absent_N.any()

        wait_for(returns)
        collect(model, 3)
        assert model.buffer.weight_TN is None
        batch = whole_batch(model)
        out = model.unroll(batch)
        actor = action_distribution(CHOICE, out.logits_TBA, batch.legal_TBA)
        log_prob_TB = actor.log_prob(batch.actions_TBA)
        torch.testing.assert_close(log_prob_TB, batch.log_prob_TB, atol=2e-6, rtol=0)
        assert sum(result.failed for result in env.source.results) == len(begun)


@pytest.mark.timeout(60)
def test_a_learner_starts_without_a_worker_that_is_late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_game, "JOIN_SECONDS", 0.0)
    game = make_spread(
        "leduc",
        MATCHES,
        workers=(None, f"127.0.0.1:{free_port()}"),
        credentials=Credentials(),
        max_frames=None,
        options={},
    )
    game.host.wait_seconds = 3600.0
    with closing(game):
        plan = matches_against("random", "live", count=100_000)
        load = lambda digest: network_of("leduc", int(digest, 16))  # noqa: E731
        model = prepared(make_model(env_of(game, plan, load, frame_skip=1, reward="dense")))
        collect(model)
        assert game.absent_N.tolist() == [False] * (MATCHES // 2) + [True] * (MATCHES // 2)
        assert np.flatnonzero(model.buffer.weight_TN.any(0)).tolist() == [*range(MATCHES // 2)]
        model.train()
