"""LeaguePPO keeps the habits of Stable-Baselines3: callbacks, loggers, evaluation, saved models."""

from __future__ import annotations

import csv
import json
import tempfile
from typing import Any

import numpy as np
import pytest
from learning import MATCHES, STEPS, make_env, make_model, same, weights
from rollouts import NoCallback
from stable_baselines3.common.callbacks import (
    BaseCallback,
    CallbackList,
    ConvertCallback,
    EvalCallback,
    StopTrainingOnNoModelImprovement,
)
from stable_baselines3.common.logger import configure
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from test_failed_matches import fragile_env

from learner.ppo.league_ppo import LeaguePPO

ROLLOUT = STEPS * MATCHES
SHORT = {"max_frames": 40}  # a match ends every ten decisions
EPISODES = ("ep_rew_mean", "ep_len_mean", "success_rate")


class Reading(BaseCallback):
    """Reads of every step what callbacks of others read; notes the matches that ended."""

    def __init__(self) -> None:
        super().__init__()
        self.steps, self.ended = 0, []

    def _on_step(self) -> bool:
        told = self.locals
        self.steps += 1
        assert told["new_obs"].shape == (MATCHES, 74)
        assert told["rewards"].shape == told["dones"].shape == (MATCHES,)
        assert told["actions"].shape == (MATCHES, 10)
        assert told["values"].shape == told["log_probs"].shape == (MATCHES,)
        assert told["n_steps"] == (self.steps - 1) % STEPS
        assert [bool(info) for info in told["infos"]] == told["dones"].tolist()
        self.ended += [info for info in told["infos"] if info]
        return True


def test_callbacks_read_steps_and_the_matches_that_ended() -> None:
    env = make_env(**SHORT)
    model, reading, whole = make_model(env), Reading(), []
    rows = []

    def in_locals(told: dict[str, Any], _: dict[str, Any]) -> bool:
        rows.append((told["rewards"].copy(), told["dones"].copy(), told["infos"]))
        return True

    class Whole(NoCallback):
        def _on_rollout_end(self) -> None:
            whole.extend(self.model.env.finished)

    learnt = model.learn(4 * ROLLOUT, callback=[reading, ConvertCallback(in_locals), Whole()])
    assert learnt is model
    results = env.source.results
    assert len(reading.ended) == len(results) == len(whole) >= 3 * MATCHES
    total = np.zeros(MATCHES)
    for rewards, dones, infos in rows:
        total += rewards
        for n in np.flatnonzero(dones):
            assert infos[n]["episode"]["r"] == pytest.approx(total[n], abs=1e-3)
            assert infos[n]["episode"]["l"] == 10
            assert infos[n]["TimeLimit.truncated"] is False
            assert infos[n]["terminal_observation"].shape == (74,)
            total[n] = 0
    assert [info["is_success"] for info in reading.ended] == [match.score == 1.0 for match in whole]
    times = [info["episode"]["t"] for info in reading.ended]
    assert times == sorted(times)
    assert 0 < times[-1] < 600


def test_the_last_view_is_of_the_seat_that_the_learner_had() -> None:
    env = make_env(**SHORT)
    env.reset()
    for _ in range(30):
        seats = env.seat_N.copy()
        _, _, ended = env.step_arrays(np.zeros((MATCHES, 10), np.uint8))
        for n in np.flatnonzero(ended):
            view = env.infos[n]["terminal_observation"]
            np.testing.assert_array_equal(view, env.game.final_observations_N2O[n, seats[n]])
    assert {match.assignment.learner_seat for match in env.finished} == {0, 1}


def test_a_match_that_failed_was_cut_off_and_is_no_episode() -> None:
    env = fragile_env({3: {1, 4}})
    env.reset()
    infos: list[dict[str, Any]] = []
    for _ in range(3):
        *_, infos = env.step(np.zeros((MATCHES, 10), np.int8))
    assert [n for n, info in enumerate(infos) if info] == [1, 4]
    assert all(infos[n].keys() == {"terminal_observation", "TimeLimit.truncated"} for n in (1, 4))
    assert infos[1]["TimeLimit.truncated"]


def test_evaluation_saves_the_best_and_stops_when_nothing_gets_better(tmp_path) -> None:
    stop = StopTrainingOnNoModelImprovement(max_no_improvement_evals=2)
    evaluation = EvalCallback(
        make_env(**SHORT),
        callback_after_eval=stop,
        eval_freq=STEPS,
        n_eval_episodes=MATCHES,
        log_path=str(tmp_path),
        best_model_save_path=str(tmp_path),
        verbose=0,
    )
    model = make_model(make_env(**SHORT), learning_rate=1e-12)
    model.learn(20 * ROLLOUT, callback=CallbackList([evaluation, Reading()]))
    assert ROLLOUT < model.num_timesteps < 20 * ROLLOUT
    evaluated = np.load(tmp_path / "evaluations.npz")
    assert evaluated["results"].shape == evaluated["successes"].shape
    assert evaluated["results"].shape[1] == MATCHES
    best = LeaguePPO.load(tmp_path / "best_model.zip", device="cpu")
    assert (
        same(weights(model), weights(best)) is False
        or evaluation.best_mean_reward == evaluated["results"].mean(1).max()
    )


def test_a_saved_model_plays_alike_and_keeps_the_scale_of_its_rewards(tmp_path) -> None:
    model = make_model(make_env(**SHORT))
    model.learn(2 * ROLLOUT)
    model.save(tmp_path / "model")
    alone = LeaguePPO.load(tmp_path / "model", device="cpu")
    observations, state, again = make_env().reset(), None, None
    for _ in range(3):
        keys, state = model.predict(observations, state, deterministic=True)
        same_keys, again = alone.predict(observations, again, deterministic=True)
        np.testing.assert_array_equal(keys, same_keys)
    assert model.return_scale.scale != 1.0
    assert alone.return_scale.scale == model.return_scale.scale
    assert not alone.return_scale.return_N.any()
    other = make_env(**SHORT)
    alone.set_env(other)
    other.opponent_policy.set_live(alone.policy.network)
    alone.learn(ROLLOUT, reset_num_timesteps=False)
    assert other.learner_step == ROLLOUT


def test_training_without_a_logger_leaves_no_folder(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    make_model(make_env(**SHORT)).learn(ROLLOUT)
    assert not list(tmp_path.glob("SB3-*"))


def test_another_environment_begins_with_its_own_first_views() -> None:
    model, other = make_model(make_env(**SHORT)), make_env(**SHORT)
    model.learn(ROLLOUT)
    other.opponent_policy.set_live(model.policy.network)
    model.set_env(other)
    expected = other.reset().copy()
    model.learn(ROLLOUT, reset_num_timesteps=False)
    context = model.buffer.context
    np.testing.assert_array_equal(model.buffer.obs_XNO[context].numpy(), expected)
    assert model.buffer.starts_XN[context].all()


def logged(model: LeaguePPO, rollouts: int, *callbacks: BaseCallback) -> None:
    model.learn(rollouts * ROLLOUT, callback=CallbackList([*callbacks, Reading()]))
    model.logger.close()


def test_all_loggers_get_the_means_of_episodes(tmp_path, capsys) -> None:
    model = make_model(make_env(**SHORT))
    model.set_logger(configure(str(tmp_path), ["csv", "json", "stdout", "log", "tensorboard"]))
    logged(model, 5)
    with open(tmp_path / "progress.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    documents = [json.loads(line) for line in (tmp_path / "progress.json").read_text().splitlines()]
    assert len(rows) == len(documents) == 5
    assert [int(row["time/total_timesteps"]) for row in rows] == [ROLLOUT * n for n in range(1, 6)]
    for row, document in zip(rows[2:], documents[2:], strict=True):
        for name in (*(f"rollout/{one}" for one in EPISODES), "loss/policy"):
            assert float(row[name]) == pytest.approx(document[name], abs=1e-6)
    assert float(rows[-1]["rollout/ep_len_mean"]) == 10
    ended = [info["r"] for info in model.ep_info_buffer]
    assert float(rows[-1]["rollout/ep_rew_mean"]) == pytest.approx(np.mean(ended), abs=1e-5)
    shown = capsys.readouterr().out
    assert shown.count("ep_rew_mean") == 4  # no match ends in the first rollout
    assert shown == (tmp_path / "log.txt").read_text()
    read = EventAccumulator(str(tmp_path))
    read.Reload()
    assert [event.step for event in read.Scalars("rollout/ep_rew_mean")] == [
        ROLLOUT * n for n in range(2, 6)
    ]
