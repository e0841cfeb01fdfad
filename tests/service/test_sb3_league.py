"""Plain Stable-Baselines3 trains against a real matchmaker and joins the league as a member."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest
import torch
from evaluating import running
from evaluator_league import write_config
from gymnasium.spaces import MultiBinary
from sb3_contrib import MaskablePPO, RecurrentPPO
from sb3_contrib.common.maskable.evaluation import evaluate_policy as evaluate_with_masks
from stable_baselines3 import A2C, PPO
from stable_baselines3.common.callbacks import (
    CheckpointCallback,
    EvalCallback,
    StopTrainingOnMaxEpisodes,
)
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.logger import configure
from stable_baselines3.common.vec_env import VecMonitor, VecNormalize
from waiting import PATIENCE, wait_for

from league.agent.perceptron import PerceptronNetwork
from league.agent.snapshot import SnapshotCard, load_snapshot
from league.cli.main import main
from league.errors import Fenced, InvalidInput, Refused
from league.games.registry import game_spec
from league.players import Book, PlayerKind
from league.rpc.client import MatchmakerClient
from league.runs.blobs import BlobFolder
from league.status import PAUSED
from learner.sb3 import JoinedEnv, PublishEvery, league_env, perceptron_of, publish
from matchmaker.api.server import MatchmakerServer
from matchmaker.settings import MatchmakerSettings

PAGE = Path(__file__).resolve().parents[2] / "docs" / "stable-baselines.md"
BLOCK = re.compile(
    r"<!-- run by tests/service/test_sb3_league.py -->\n```python\n(.*?)```", re.DOTALL
)
FEWER = {
    "200_000": "4096",
    "PublishEvery(50_000)": "PublishEvery(2048)",
    "n_steps=128": "n_steps=32",
    **{"20_000": "4096", "verbose=1": "verbose=0", "matches=32": "matches=16"},
}


def example(number: int, address: str, run_dir: Path) -> dict[str, Any]:
    """The names that an example of the page defines, with fewer steps."""
    code = BLOCK.findall(PAGE.read_text(encoding="utf-8"))[number]
    for full, fewer in FEWER.items():
        code = code.replace(full, fewer)
    code = re.sub(r'"127.0.0.1:\d+", "runs/\w+"', f'"{address}", "{run_dir}"', code)
    names: dict[str, Any] = {}
    exec(compile(code, str(PAGE), "exec"), names)
    return names


@contextmanager
def process(*arguments: str) -> Iterator[int]:
    """A service of ours while the block runs; gives the port that it serves on."""
    started = subprocess.Popen(
        [sys.executable, "-m", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert started.stdout is not None
    try:
        yield int(started.stdout.readline().split()[1])
    finally:
        started.terminate()
        started.wait(PATIENCE)
        started.stdout.close()


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path, PPO]]:
    """A matchmaker's process, in whose league the page's first example has trained."""
    run_dir = tmp_path_factory.mktemp("run")
    write_config(run_dir, matches_per_snapshot=12, milestone_matches=4)
    before = Path.cwd()
    os.chdir(run_dir)  # where the example saves its model
    try:
        # the page's own matchmaker, whose mix has the learner meet itself
        _, _, flags = PAGE.read_text(encoding="utf-8").partition("--port 50051 ")
        words = ["--db", str(run_dir / "league.db"), "--port", "0", *flags.splitlines()[0].split()]
        mixes = run_dir / "mixes.toml"
        mixes.write_text("[matchmaker.mixes.past]\nsnapshots = 1.0\n", encoding="utf-8")
        with process("matchmaker", *words, "--config", str(mixes)) as port:
            address = f"127.0.0.1:{port}"
            with warnings.catch_warnings():  # the first test to ask for it may make errors of them
                warnings.simplefilter("ignore", UserWarning)
                model = example(0, address, run_dir)["model"]
            yield address, run_dir, model
    finally:
        os.chdir(before)


@pytest.mark.long
def test_the_example_trains_reports_and_joins(
    trained: tuple[str, Path, PPO], capsys: pytest.CaptureFixture[str]
) -> None:
    address, run_dir, model = trained
    page = PAGE.read_text(encoding="utf-8")
    assert page.count("```python") == len(re.findall(r"<!-- .* -->\n```python", page)) == 4
    assert model.num_timesteps == 4096
    assert (run_dir / "sb3-model.zip").is_file()
    with MatchmakerClient(address) as client:
        known = client.players(kinds=[PlayerKind.SNAPSHOT])
        # another test may have run
        made = [player for player in known if player.name.startswith("sb3@")]
        assert [(p.name, p.parent, p.milestone) for p in made] == [
            ("sb3@2048", "", False),
            ("sb3@4096", "sb3@2048", True),
        ]
        against = {cell.column: cell.games for cell in client.payoff(Book.TRAIN, rows=["sb3"])}
        others = {bot.name for bot in game_spec("brawl").bots} | {p.name for p in made}
        assert against.keys() <= others
        assert main(["mix", str(run_dir), "--player", "sb3", "--last", "1", "--json"]) == 0
        (part,) = json.loads(capsys.readouterr().out)["parts"]
        # before the first snapshot there was nobody else, but which of the two is chance
        assert part["kinds"].keys() & {"self", "bots"}
        (worker,) = [one for one in client.status().workers if one.player == "sb3"]
        assert (worker.step, worker.open_leases) == (4096, 0)
        assert worker.metrics["progress/steps"] >= 4000
    network, card = load_snapshot(BlobFolder(run_dir / "blobs"), made[-1].digest)
    assert isinstance(network, PerceptronNetwork)
    assert SnapshotCard.from_json(made[-1].card_json).agent == card.agent == network.config
    assert (card.game, card.frame_skip, card.step, card.reward_scale) == ("brawl", 4, 4096, 1.0)
    final = perceptron_of(model.policy).state_dict()
    assert all(torch.equal(weights, final[name]) for name, weights in network.state_dict().items())


def test_the_evaluator_plays_it(trained: tuple[str, Path, PPO]) -> None:
    address, run_dir, _ = trained
    bots = {bot.name for bot in game_spec("brawl").bots}
    with (
        MatchmakerClient(address) as client,
        running(client, run_dir, matches_per_snapshot=12),
    ):
        wait_for(lambda: (run_dir / "evaluator" / "evaluation_results.csv").is_file())
        wait_for(lambda: len(met(client, "sb3@4096")) > len(bots))
        others = {p.name for p in client.players(kinds=[PlayerKind.SNAPSHOT])} - {"sb3@4096"}
        # another test may add some
        assert bots | {"sb3@2048"} <= met(client, "sb3@4096") <= bots | others
        assert {r.player.name for r in client.ratings(Book.EVAL)} >= {"sb3@4096", "sb3@2048"}


def met(client: MatchmakerClient, name: str) -> set[str]:
    return {cell.column for cell in client.payoff(Book.EVAL, rows=[name])}


def test_another_learner_meets_it(trained: tuple[str, Path, PPO]) -> None:
    address, run_dir, _ = trained
    with (
        league_env(address, run_dir, name="other", matches=8, mix="past") as env,
        MatchmakerClient(address) as client,
    ):
        env.reset()
        for _ in range(60):
            env.step(np.zeros((8, 10), np.int8))
        env.broker.flush()
        against = {cell.column: cell.games for cell in client.payoff(Book.TRAIN, rows=["other"])}
        assert sum(against.values()) > 2
        assert against.keys() <= {"sb3@2048", "sb3@4096"}
        records = [p.name for p in client.players(kinds=[PlayerKind.LIVE])]
        assert {"sb3", "other"} <= set(records)


@pytest.mark.long
def test_a_policy_with_a_memory(
    trained: tuple[str, Path, PPO], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    address, run_dir, _ = trained
    model = example(1, address, run_dir)["model"]
    with MatchmakerClient(address) as client:
        known = client.players(kinds=[PlayerKind.SNAPSHOT])
        made = [player for player in known if player.name.startswith("lstm@")]
    assert [player.name for player in made] == ["lstm@2048", "lstm@4096"]
    network, card = load_snapshot(BlobFolder(run_dir / "blobs"), made[-1].digest)
    assert card.agent == perceptron_of(model.policy).config
    assert card.agent.memory == 64
    final = perceptron_of(model.policy).state_dict()
    assert all(torch.equal(weights, final[name]) for name, weights in network.state_dict().items())
    words = ["--matches", "4", "--address", address, "--blobs", str(run_dir / "blobs"), "--json"]
    assert main(["eval", "lstm@4096", "--against", "lstm@2048", *words]) == 0
    assert "lstm@2048" in capsys.readouterr().out
    model.save(tmp_path / "model")
    with league_env(address, run_dir, name="lstm", matches=16, goes_on=True) as env:
        assert env.action_space.contains(env.action_space.sample())
        model = RecurrentPPO.load(tmp_path / "model", env=env, device="cpu")
        env.follow(model)
        assert type(model.action_space) is MultiBinary  # without our packages it loads as well
        model.learn(512, reset_num_timesteps=False)
        assert model.num_timesteps == 4096 + 512


def test_a_memory_in_a_game_of_choices(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = "matrix:rps"
    settings = MatchmakerSettings(game=name, mixes={"league": {"self": 1.0}})
    with (
        MatchmakerServer(tmp_path / "league.db", 0, settings) as server,
        league_env(
            server.address, tmp_path, matches=8, preset="board", settings=(f"game.name={name}",)
        ) as env,
    ):
        model = RecurrentPPO("MlpLstmPolicy", env, n_steps=32, batch_size=64, device="cpu", seed=1)
        env.follow(model)
        model.learn(256)
        assert publish(model).name == "sb3@256"
    (file,) = (tmp_path / "blobs").glob("*.safetensors")
    assert main(["exploitability", "--game", name, str(file)]) == 0
    assert 0.0 < float(capsys.readouterr().out.splitlines()[1].split("\t")[2]) < 1.0


@pytest.mark.filterwarnings("error::UserWarning")
def test_callbacks_loggers_and_evaluation_work_as_always(
    trained: tuple[str, Path, PPO], tmp_path: Path
) -> None:
    address, run_dir, _ = trained
    name, short = "a2c", {"mix": "bots", "settings": ("game.match_seconds=2",)}
    with (
        league_env(address, run_dir, name=name, matches=8, **short) as env,
        league_env(address, run_dir, name=f"{name}-judge", matches=4, **short) as other,
        MatchmakerClient(address) as client,
    ):
        model = A2C("MlpPolicy", env, n_steps=32, device="cpu")
        model.set_logger(configure(str(tmp_path), ["csv", "json", "stdout", "tensorboard"]))
        watched = [
            EvalCallback(
                other,
                eval_freq=64,
                n_eval_episodes=8,
                best_model_save_path=str(tmp_path),
                verbose=0,
            ),
            CheckpointCallback(64, str(tmp_path)),
            StopTrainingOnMaxEpisodes(8),
            PublishEvery(512),
        ]
        model.learn(100_000, callback=watched, log_interval=1)  # A2C writes every 100 updates only
        longest = env.game.spec.max_frames // 4
        assert 512 <= model.num_timesteps <= 8 * 8 * longest
        with open(tmp_path / "progress.csv", newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        told = [row for row in rows if row["rollout/ep_rew_mean"] and row["rollout/success_rate"]]
        assert 0 < float(told[-1]["rollout/ep_len_mean"]) <= longest
        assert any(row["eval/mean_reward"] and row["eval/success_rate"] for row in rows)
        rewards, lengths = evaluate_policy(
            model, other, n_eval_episodes=8, return_episode_rewards=True
        )
        assert len(rewards) == len(lengths) == 8
        assert max(lengths) <= longest
        again = A2C.load(tmp_path / "best_model.zip", device="cpu")
        assert again.predict(env.reset())[0].shape == (8, 10)
        assert f"{name}@512" in {
            player.name for player in client.players(kinds=[PlayerKind.SNAPSHOT])
        }
        assert len(env.finished) <= 8


@pytest.fixture
def cards(tmp_path: Path) -> Iterator[str]:
    """A league of kuhn poker whose mix `alone` is self-play."""
    mixes = {"league": {"snapshots": 1.0, "random": 1.0}, "alone": {"self": 1.0}}
    settings = MatchmakerSettings(game="kuhn", mixes=mixes)
    with MatchmakerServer(tmp_path / "league.db", 0, settings) as server:
        yield server.address


def cards_env(address: str, run_dir: Path, **options: Any) -> JoinedEnv:
    return league_env(
        address, run_dir, matches=8, preset="board", settings=("game.name=kuhn",), **options
    )


def learner_of(env: Any, **options: Any) -> MaskablePPO:
    return MaskablePPO("MlpPolicy", env, n_steps=32, batch_size=64, device="cpu", seed=1, **options)


def test_it_holds_before_a_step_while_the_learners_are_paused(cards: str, tmp_path: Path) -> None:
    with cards_env(cards, tmp_path, mix="alone") as env, MatchmakerClient(cards) as client:
        env.follow(learner_of(env))
        env.reset()
        client.pause_learners("anna")
        wait_for(env.broker.paused)
        legal = np.array([mask.argmax() for mask in env.env_method("action_masks")])
        stepping = Thread(target=env.step, args=[legal])
        stepping.start()
        wait_for(lambda: [one.activity for one in client.status().workers] == [PAUSED])
        assert stepping.is_alive()
        assert env.learner_step == 0
        client.pause_learners("anna", resume=True)
        stepping.join(PATIENCE)
        assert env.learner_step == 8


def test_a_game_of_choices_with_masks(
    cards: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = example(2, cards, tmp_path)
    steps = names["model"].num_timesteps
    assert f"sb3@{steps}" in capsys.readouterr().out
    (file,) = (tmp_path / "blobs").glob("*.safetensors")
    assert main(["exploitability", "--game", "kuhn", str(file)]) == 0
    value = float(capsys.readouterr().out.splitlines()[1].split("\t")[2])
    assert 0.0 < value < 0.458  # less than of one that takes every choice alike


def test_self_play_wants_the_model_and_follows_it(cards: str, tmp_path: Path) -> None:
    with cards_env(cards, tmp_path, mix="alone") as env, MatchmakerClient(cards) as client:
        model = learner_of(env)
        with pytest.raises(Refused, match=r"env\.follow\(model\)"):
            model.learn(256)
        env.follow(model)
        before = perceptron_of(model.policy).actor.last.weight.detach().clone()
        model.learn(512)
        assert env.opponent_policy.has_live
        live = env.opponent_policy._live
        assert live is not None
        assert not torch.equal(dict(live.named_parameters())["actor.last.weight"], before)
        assert publish(model).name == "sb3@512"
        rewards, _ = evaluate_with_masks(
            model, env, n_eval_episodes=16, return_episode_rewards=True
        )
        assert len(rewards) == 16
        assert client.payoff(Book.TRAIN, rows=["sb3"]) == []  # self-play changes no rating


def test_a_saved_model_goes_on_and_a_new_one_begins_anew(cards: str, tmp_path: Path) -> None:
    def counted(client: MatchmakerClient) -> int:
        return sum(cell.games for cell in client.payoff(Book.TRAIN, rows=["sb3"]))

    with MatchmakerClient(cards) as client:
        with cards_env(cards, tmp_path) as env:
            model = learner_of(env)
            model.learn(256, callback=PublishEvery(1000))
            model.save(tmp_path / "model")
        first = counted(client)
        assert first > 20
        with cards_env(cards, tmp_path, goes_on=True) as env:
            model = MaskablePPO.load(tmp_path / "model", env=env, device="cpu")
            env.follow(model)
            assert counted(client) == first
            model.learn(256, reset_num_timesteps=False, callback=PublishEvery(1000))
            assert env.learner_step == model.num_timesteps == 512
        last = client.players(kinds=[PlayerKind.SNAPSHOT])[-1]
        assert (last.name, last.parent) == ("sb3@512", "sb3@256")
        assert counted(client) > first
        with cards_env(cards, tmp_path) as env:
            assert counted(client) == 0
            publish(learner_of(env), env)
        assert client.players(kinds=[PlayerKind.SNAPSHOT])[-1].name == "sb3@0"


def test_wrappers_and_what_they_change(cards: str, tmp_path: Path) -> None:
    with cards_env(cards, tmp_path) as env:
        scaled = VecNormalize(VecMonitor(env), norm_obs=False, gamma=0.99)
        model = learner_of(scaled, policy_kwargs={"net_arch": [16]})
        model.learn(256)
        player = publish(model)
        card = SnapshotCard.from_json(player.card_json)
        assert card.agent == perceptron_of(model.policy).config
        scale = card.reward_scale
        assert scale == pytest.approx(np.sqrt(scaled.ret_rms.var + scaled.epsilon))
        assert scale != 1.0
        with pytest.raises(InvalidInput, match="norm_obs=False"):
            publish(learner_of(VecNormalize(env)))
        stranger = MaskablePPO("MlpPolicy", "CartPole-v1", device="cpu")
        with pytest.raises(InvalidInput, match="league_env"):
            publish(stranger)
        with pytest.raises(InvalidInput, match="sees 4 numbers"):
            publish(stranger, env)


def test_who_joins_by_the_same_name_takes_its_place(cards: str, tmp_path: Path) -> None:
    with cards_env(cards, tmp_path) as old:
        model = learner_of(old)
        with cards_env(cards, tmp_path), pytest.raises(Fenced):
            model.learn(1 << 20, callback=PublishEvery(256))
    old.close()  # twice is fine
