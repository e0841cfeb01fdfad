"""Matches whose rivals have not decided wait, and the others go on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from learning import LIVE, MATCHES, STEPS, assignments, config, make_env, make_model, network_of
from referenced import Alongside, regularised
from rival_files import CLASS, LIMITS, seats, stored
from rollouts import collect, prepared, whole_batch

from league.agent.batched_policy import BatchedPolicy
from league.agent.heads import BernoulliKeys
from league.agent.rivals import RivalSeats
from league.players import Assignment, Player, PlayerKind
from league.runs.blobs import BlobFolder
from learner.rollout.league_vec_env import LeagueVecEnv


class Slow(BatchedPolicy):
    """Leaves rows out at random, as if slow rivals sat there."""

    rng = np.random.default_rng(0)

    def act(self, observations_SO, legal_SA=None, may_wait=0):
        actions_SA = super().act(observations_SO, legal_SA)
        left_out = self.rng.random(self.num_seats) < [0.6, 0.3, 0, 0, 0.1, 0.9]
        self.waiting = np.flatnonzero(left_out)[:may_wait].tolist()
        return actions_SA


@pytest.mark.parametrize(
    "parts", [{}, {"encoder": "window"}, {"encoder": "none"}, {"recurrent": False}], ids=str
)
def test_a_rollout_has_the_steps_that_were_played_and_no_others(parts):
    env = make_env(max_frames=40)
    env.opponent_policy = Slow(MATCHES, network_of, seed=5, action_size=10)
    model = prepared(make_model(env, replace(config(), **parts)))
    step, seen, ends = env.step_arrays, [[] for _ in range(MATCHES)], 0

    def recording(actions_NA):
        nonlocal ends
        before_NO = env.observations()
        out = step(actions_NA)
        for n in np.flatnonzero(~env.waiting_N):
            seen[n].append(before_NO[n])
        ends += int(out[2].sum())
        assert not (out[2] & env.waiting_N).any()
        assert not out[1][env.waiting_N].any()
        return out

    env.step_arrays = recording
    for _ in range(4):
        seen[:] = [[] for _ in range(MATCHES)]
        collect(model)
        buffer, context = model.buffer, model.buffer.context
        assert len({len(rows) for rows in seen}) > 2
        for n, rows in enumerate(seen):
            weight_T = buffer.weight_TN[:, n].tolist()
            assert weight_T == [1.0] * len(rows) + [0.0] * (STEPS - len(rows))
            seen_TO = buffer.obs_XNO[context:, n][: len(rows)]
            np.testing.assert_array_equal(seen_TO, np.reshape(rows, seen_TO.shape))
    assert ends > 0
    batch = whole_batch(model)
    counts = batch.weight_TB.bool()
    out = model.unroll(batch)
    log_prob_TB = BernoulliKeys(out.logits_TBA).log_prob(batch.actions_TBA)
    close = {"atol": 2e-5, "rtol": 0}
    torch.testing.assert_close(log_prob_TB[counts], batch.log_prob_TB[counts], **close)
    torch.testing.assert_close(out.value_TB[counts], batch.value_TB[counts], **close)
    assert not batch.advantage_TB[~counts].any()
    model.train()


def test_a_reference_plays_along_in_matches_that_wait():
    env = make_env(max_frames=40)
    model = regularised(env)
    env.opponent_policy = Slow(MATCHES, network_of, seed=5, action_size=10)
    env.opponent_policy.set_live(model.policy.network)
    prepared(model)
    collect(model)
    (reference,) = model.references.members
    alongside = [Alongside(reference.network, 1) for _ in range(MATCHES)]
    waited = set()
    for _ in range(4):
        buffer, context = model.buffer, model.buffer.context
        for n, played in enumerate(buffer.played_N.tolist()):
            rows = slice(context, context + played), slice(n, n + 1)
            waited.add(played)
            if played:
                torch.testing.assert_close(
                    model.references.logits_MTCA[0, :played, n : n + 1],
                    alongside[n].play(buffer.obs_XNO[rows], buffer.starts_XN[rows]),
                    atol=2e-5,
                    rtol=0,
                )
        model.train()
        collect(model)
    assert {0, STEPS} < waited


def test_a_waiting_match_continues_from_a_checkpoint_as_without_it():
    """The rows of context that the next rollout needs are those of the steps played."""
    env = make_env(max_frames=40)
    env.opponent_policy = Slow(MATCHES, network_of, seed=5, action_size=10)
    model = make_model(env)
    collect(model, 3)
    buffer = model.buffer
    saved = {name: rows.clone() for name, rows in buffer.state().items()}
    buffer.carry_context()
    torch.testing.assert_close(buffer.obs_XNO[: buffer.context], saved["obs"])
    buffer.load(saved)
    buffer.carry_context()
    torch.testing.assert_close(buffer.obs_XNO[: buffer.context], saved["obs"])
    assert torch.equal(buffer.starts_XN[: buffer.context], saved["starts"])


@pytest.fixture
def gate(tmp_path: Path):
    """Rivals that decide only once `go` is there, that file, and the seats that play them. Their
    decisions press one key after the other.
    """
    go = tmp_path / "go"
    text = f"""
import os, time
calls = 0
{CLASS}def predict(self, obs):
        global calls
        while not os.path.exists({str(go)!r}):
            time.sleep(0.01)
        calls += 1
        return [float(calls == key + 1) for key in range(10)]
"""
    blobs = BlobFolder(tmp_path / "blobs")
    with seats(blobs, LIMITS) as rivals:
        yield stored(blobs, text, tmp_path), go, rivals


def meets(digest: str, number: int) -> Assignment:
    """A match against the rival from the first seat."""
    rival = Player(name="rival", game="brawl", kind=PlayerKind.RIVAL, digest=digest)
    return replace(
        assignments(1)[0], match_id=f"rival-{number}", seats=(LIVE, rival), learner_seat=0
    )


def bots(count: int) -> list[Assignment]:
    """Matches against `constant`."""
    return [replace(assignments(1)[0], match_id=f"bot-{number}") for number in range(count)]


def waiting_env(matches: list[Assignment], rivals: RivalSeats, **changes: int) -> LeagueVecEnv:
    env = make_env(matches, **changes)
    policy = BatchedPolicy(env.num_envs, network_of, seed=5, action_size=10, rivals=rivals)
    env.opponent_policy, env.may_wait = policy, True
    env.reset()
    return env


def step(env: LeagueVecEnv) -> None:
    env.step_arrays(np.zeros((env.num_envs, 10), np.uint8))


def test_the_others_go_on_while_a_rival_thinks(gate):
    digest, go, rivals = gate
    plan = [meets(digest, 0), *bots(3)]
    env = waiting_env(plan, rivals, num_matches=4, max_frames=10**6)
    begun_NO = env.observations()
    for number in range(1, 6):
        step(env)
        assert env.waiting_N.tolist() == [True, False, False, False]
        assert env.steps_N.tolist() == [0, *[number] * 3]
        assert env.game.frames_N.tolist() == [0, *[4 * number] * 3]
        assert np.array_equal(env.observations()[0], begun_NO[0])
    go.touch()
    keys = []
    while len(keys) < 5:
        step(env)
        if not env.waiting_N[0]:
            keys.append(int(env.opponent_actions_NA[0].argmax()))
    assert keys == [0, 1, 2, 3, 4], "it decides once about each observation"
    assert env.steps_N[0] == 5
    assert rivals.late == 0


def test_a_step_waits_for_rivals_rather_than_leave_out_most_matches(gate):
    digest, go, rivals = gate
    env = waiting_env([meets(digest, number) for number in range(4)], rivals, num_matches=4)
    go.touch()
    for number in range(1, 6):
        step(env)
        assert env.waiting_N.sum() <= 2
        assert env.steps_N.sum() >= 2 * number


def test_a_slow_rival_gets_no_further_matches_before_others(gate):
    digest, _, rivals = gate
    plan = [meets(digest, 0), meets(digest, 1), *bots(1600), meets(digest, 2), *bots(20)]
    env = waiting_env(plan, rivals, num_matches=6, max_frames=8)
    while len(env.source.results) < 1604:
        step(env)
    assert [match.match_id for match in env.source.handed_back] == ["rival-2"]
    assert all(result.match_id.startswith("bot-") for result in env.source.results)


def test_a_learner_that_meets_slow_rivals_alone_plays_them(gate):
    digest, go, rivals = gate
    env = waiting_env([meets(digest, n) for n in range(20)], rivals, num_matches=4, max_frames=8)
    go.touch()
    while len(env.source.results) < 5:
        step(env)
    assert env.source.handed_back == []
    assert not any(result.failed for result in env.source.results)
