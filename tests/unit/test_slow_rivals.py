"""Matches whose rivals have not decided wait, and the others go on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from learning import LIVE, MATCHES, STEPS, assignments, config, make_env, make_model, network_of
from referenced import Alongside, regularised
from rival_files import CLASS, CYCLES, LIMITS, seats, stored
from rollouts import collect, prepared, whole_batch

from league.agent.batched_policy import BatchedPolicy
from league.agent.heads import BernoulliKeys
from league.agent.rivals import RivalSeats
from league.games.registry import make_batched
from league.players import Assignment, Player, PlayerKind
from league.runs.blobs import BlobFolder
from learner.rollout.league_vec_env import LeagueVecEnv
from learner.train.checkpoint import environment_state, load_environment_state


class InFrames(BatchedPolicy):
    """Plays three rows as rivals would that decide about every frame and take time for it."""

    rng = np.random.default_rng(0)

    @property
    def rival_seats(self):
        return [0, 2, 4]

    def decide_rivals(self, observations_SO, actions_SA, may_wait=0, rests_S=None):
        decides = [n for n in self.rival_seats if not rests_S[n]]
        slow = [n for n in decides if self.rng.random() < (0.8, 0, 0.3, 0, 0)[n]]
        self.waiting = slow[:may_wait]
        for n in set(decides) - set(self.waiting):
            actions_SA[n] = self.rng.integers(0, 2, 10)


@pytest.mark.parametrize("parts", [{}, {"encoder": "none"}, {"recurrent": False}], ids=str)
def test_a_rollout_has_the_steps_that_were_played_and_no_others(parts):
    env = make_env(max_frames=42)
    env.opponent_policy = InFrames(MATCHES, network_of, seed=5, action_size=10)
    model = prepared(make_model(env, replace(config(), **parts)))
    step, ends = env.step_arrays, 0
    seen, keys, left = ([[] for _ in range(MATCHES)] for _ in range(3))

    def recording(actions_NA):
        nonlocal ends
        before_NO, left_N, seat_N = env.observations(), env.time_left_N(), env.seat_N.copy()
        out = step(actions_NA)
        for n in np.flatnonzero(~env.waiting_N):
            seen[n].append(before_NO[n])
            keys[n].append(env.game.played_N2A()[n, seat_N[n]])
            left[n].append(left_N[n])
        ends += int(out[2].sum())
        assert not (out[2] & env.waiting_N).any()
        assert not out[1][env.waiting_N].any()
        return out

    env.step_arrays = recording
    for _ in range(4):
        for lists in (seen, keys, left):
            lists[:] = [[] for _ in range(MATCHES)]
        collect(model)
        buffer, context = model.buffer, model.buffer.context
        assert len({len(rows) for rows in seen}) > 2
        for n, rows in enumerate(seen):
            weight_T = buffer.weight_TN[:, n].tolist()
            assert weight_T == [1.0] * len(rows) + [0.0] * (STEPS - len(rows))
            seen_TO = buffer.obs_XNO[context:, n][: len(rows)]
            np.testing.assert_array_equal(seen_TO, np.reshape(rows, seen_TO.shape))
            keys_TA = buffer.actions_TNA[: len(rows), n]
            np.testing.assert_array_equal(keys_TA, np.reshape(keys[n], keys_TA.shape))
            np.testing.assert_array_equal(buffer.time_left_TN[: len(rows), n], left[n])
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


def test_a_decision_that_outlives_an_update_is_not_learnt_from():
    """So the policy that is trained has chosen every action that it learns from."""
    env = make_env(max_frames=4000)
    env.opponent_policy = InFrames(MATCHES, network_of, seed=5, action_size=10)
    model = prepared(make_model(env, config()))
    share = 0.0
    for _ in range(4):
        held_N = env.decisions.held_N.copy()
        collect(model)
        model.train()
        share += model.logger.name_to_value["rollout/old_action_share"]
        assert model.logger.name_to_value["learning/policy_lag"] == 0
        assert not model.buffer.weight_TN[0, held_N].any()
    assert share > 0


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
        return [float(calls % 10 == key) for key in range(10)]
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


def opening_env(gate) -> LeagueVecEnv:
    """The first match waits for its rival in two rollouts and in two steps of the third, and for
    none of its later steps.
    """
    digest, go, rivals = gate
    env = waiting_env([meets(digest, 0), *bots(200)], rivals, max_frames=40)
    step = env.step_arrays

    def opening(actions_NA):
        if env.learner_step == (2 * STEPS + 2) * env.num_envs:
            go.touch()
        env.may_wait = not go.exists()
        return step(actions_NA)

    env.step_arrays = opening
    return env


def test_a_reference_plays_along_in_matches_that_wait(gate):
    env = opening_env(gate)
    model = prepared(regularised(env))
    collect(model)
    (reference,) = model.references.members
    alongside = [Alongside(reference.network, 1) for _ in range(MATCHES)]
    waited = set()
    for _ in range(3):
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


def test_a_waiting_match_continues_from_a_checkpoint_as_without_it(gate):
    """The rows of context that the next rollout needs are those of the steps played."""
    env = opening_env(gate)
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
    assert keys == [4, 8, 2, 6, 0], "it decides once about each frame"
    assert env.game.frames_N[0] == 20
    assert env.steps_N[0] == 5
    assert rivals.late == 0


def test_a_decision_pays_what_its_frames_pay(tmp_path: Path) -> None:
    """The match ends in the middle of a decision, and the other match is the same as without it."""
    blobs, frames, rng = BlobFolder(tmp_path / "blobs"), 90, np.random.default_rng(0)
    digest = stored(blobs, CYCLES, tmp_path)
    with seats(blobs, LIMITS) as rivals:
        env = waiting_env([meets(digest, 0), *bots(9)], rivals, num_matches=2, max_frames=frames)
        env.may_wait = False
        alone = make_env(bots(9), num_matches=2, max_frames=frames)
        alone.reset()
        game = make_batched("brawl", 1, max_frames=frames)
        game.reset(np.array([env.assignments[0].seed], np.uint64))
        total_K = np.zeros(len(game.spec.reward_terms))
        for step in range(23):
            actions_NA = rng.integers(0, 2, (2, 10), np.uint8)
            _, rewards_N, ended_N = env.step_arrays(actions_NA)
            _, alone_N, _ = alone.step_arrays(actions_NA)
            assert rewards_N[1] == alone_N[1]
            assert np.array_equal(env.terms_NK[1], alone.terms_NK[1])
            assert np.array_equal(env.observations()[1], alone.observations()[1])
            paid_K = np.zeros_like(total_K)
            for frame in range(4 * step, min(4 * step + 4, frames)):
                keys_12A = np.zeros((1, 2, 10), np.uint8)
                keys_12A[0, 0], keys_12A[0, 1, frame % 10] = actions_NA[0], 1
                game.step(keys_12A)
                paid_K += game.reward_terms_N2K[0, 0] * env.reward_weights_K
            np.testing.assert_allclose(rewards_N[0], paid_K.sum(), atol=1e-6)
            total_K += paid_K
            assert ended_N[0] == game.ended_N[0] == (step == 22)
        match = next(match for match in env.finished if match.assignment.match_id == "rival-0")
        assert (match.frames, match.steps) == (frames, 23)
        assert match.stats == dict(zip(game.spec.stats, game.final_stats_N2S[0, 0], strict=True))
        np.testing.assert_allclose(match.reward_terms, total_K, atol=1e-6)


def test_a_match_that_waits_within_a_decision_goes_on_from_there(tmp_path: Path) -> None:
    """The rival decides about the third frame only once `go` is there."""
    go, blobs = tmp_path / "go", BlobFolder(tmp_path / "blobs")
    waits = f"while calls == 3 and not os.path.exists({str(go)!r}):\n            time.sleep(0.01)"
    text = "import os, time" + CYCLES.replace("calls += 1", f"calls += 1\n        {waits}")
    with seats(blobs, LIMITS) as rivals:
        digest = stored(blobs, text, tmp_path)
        plan = [meets(digest, 0), *bots(3)]
        env = waiting_env(plan, rivals, num_matches=4, max_frames=10**6)
        begun_NO, rng = env.observations(), np.random.default_rng(0)

        def step() -> float:
            actions_NA = np.zeros((4, 10), np.uint8)
            actions_NA[0] = rng.integers(0, 2, 10)
            return env.step_arrays(actions_NA)[1][0]

        while env.game.frames_N[0] < 2:
            step()
        held_A = env.or_held(np.zeros((4, 10), np.uint8))[0]
        for _ in range(3):
            assert step() == 0.0
            assert env.waiting_N.tolist() == [True, False, False, False]
            assert (env.game.frames_N[0], env.steps_N[0]) == (2, 0)
            assert np.array_equal(env.observations()[0], begun_NO[0])
            assert env.time_left_N()[0] == 1.0
            assert np.array_equal(env.or_held(np.ones((4, 10), np.uint8))[0], held_A)
        resumed = make_env(plan, num_matches=4, max_frames=10**6)
        load_environment_state(resumed, environment_state(env), env.assignments)
        assert np.array_equal(resumed.observations(), env.observations())
        assert np.array_equal(resumed.time_left_N(), env.time_left_N())
        ones_NA = np.ones((4, 10), np.uint8)
        assert np.array_equal(resumed.or_held(ones_NA), env.or_held(ones_NA))
        go.touch()
        reward = step()
        while env.waiting_N[0]:
            reward = step()
        game = make_batched("brawl", 1, max_frames=10**6)
        game.reset(np.array([plan[0].seed], np.uint64))
        paid = 0.0
        for frame in range(4):
            keys_12A = np.zeros((1, 2, 10), np.uint8)
            keys_12A[0, 0], keys_12A[0, 1, frame] = held_A, 1
            game.step(keys_12A)
            paid += float((game.reward_terms_N2K[0, 0] * env.reward_weights_K).sum())
        assert env.game.frames_N[0] == 4
        assert np.array_equal(env.game.observations_N2O[0], game.observations_N2O[0])
        np.testing.assert_allclose(reward, paid, atol=1e-6)
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
