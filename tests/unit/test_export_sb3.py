"""An exported zip plays as its agent does, in a process that has Stable-Baselines3 and not us."""

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from exports import EXPORTED, agent, card, greedy_actions, run_alone, seen
from sb3_contrib import RecurrentPPO

from league.agent import memory
from league.agent.architectures import config_of
from league.agent.encoder import StreamingEncoder
from league.agent.export.sb3 import write_sb3
from league.agent.network import AgentNetwork
from league.errors import InvalidInput

STEPS, ROWS = 60, 3
PROGRAM = """
import numpy as np
from sb3_contrib import RecurrentPPO

for name in sys.argv[1:]:
    data = np.load(f"{name}.npz")
    model = RecurrentPPO.load(f"{name}.zip", device="cpu")
    assert (model.n_envs, model.n_steps) == (1, 1)
    state, chosen = None, []
    for obs, starts, legal in zip(data["obs"], data["starts"], data["legal"]):
        if name == "kuhn":
            made, state = model.policy.predict(
                obs, state, starts, deterministic=True, action_masks=legal
            )
        else:
            made, state = model.predict(obs, state=state, episode_start=starts, deterministic=True)
        chosen.append(made)
    alone, _ = model.predict(data["obs"][0, 0], deterministic=True)
    np.savez(f"{name}.out.npz", actions=np.stack(chosen), alone=alone)
assert not [name for name in sys.modules if name.split(".")[0] in ("league", "learner")]
"""


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the other process has played every zip."""
    folder = tmp_path_factory.mktemp("sb3")
    for name in EXPORTED:
        write_sb3(folder / f"{name}.zip", agent(name), card(name))
        np.savez(folder / f"{name}.npz", **seen(EXPORTED[name], STEPS, ROWS))
    run_alone(folder, PROGRAM, *EXPORTED)
    return folder


@pytest.mark.long
@pytest.mark.parametrize("name", EXPORTED)
def test_the_same_actions_in_a_process_without_us(played: Path, name: str) -> None:
    wanted_TBA = greedy_actions(agent(name), seen(EXPORTED[name], STEPS, ROWS))
    found = np.load(played / f"{name}.out.npz")
    if name == "kuhn":
        wanted_TBA = wanted_TBA.argmax(-1)
    assert found["actions"].dtype == (np.int64 if name == "kuhn" else np.int8)
    assert np.array_equal(found["actions"], wanted_TBA)
    changing = (wanted_TBA[1:] != wanted_TBA[:-1]).mean()
    assert changing > 0.05, "actions that never change compare nothing"
    assert found["alone"].shape == wanted_TBA.shape[2:]


def test_memory_and_episode_starts_matter_to_what_was_compared() -> None:
    """The agents compared above forget at a start: without it they would act otherwise."""
    for name in ("streaming", "kuhn"):
        data = seen(EXPORTED[name], STEPS, ROWS)
        wanted = greedy_actions(agent(name), data)
        never = {**data, "starts": np.zeros_like(data["starts"])}
        assert not np.array_equal(greedy_actions(agent(name), never), wanted)


@pytest.mark.long
def test_the_zip_says_what_it_is_plays_alone_and_weights_lie_in_it_unpickled(
    played: Path,
) -> None:
    with zipfile.ZipFile(played / "streaming.zip") as archive:
        data = json.loads(archive.read("data"))
        assert "policy.pth" in archive.namelist()
    assert config_of(data["policy_kwargs"]["agent"]) == EXPORTED["streaming"]
    assert json.loads(data["card_json"])["step"] == 1234 == data["num_timesteps"]
    model = RecurrentPPO.load(played / "streaming.zip", device="cpu")
    with pytest.raises(NotImplementedError, match="plays"):
        model.policy(torch.zeros(1, 74), None, torch.zeros(1))


def test_loading_an_export_where_it_was_made_leaves_our_classes_alone(tmp_path: Path) -> None:
    """Loaded functions that replaced ours would lack the gradients, which are not exported."""
    before = {kind: dict(vars(kind)) for kind in (memory.Memory, StreamingEncoder, AgentNetwork)}
    write_sb3(tmp_path / "a.zip", agent("streaming"), card("streaming"))
    model = RecurrentPPO.load(tmp_path / "a.zip", device="cpu")
    assert type(model.policy.network) is not AgentNetwork
    for kind, names in before.items():
        assert all(vars(kind)[name] is value for name, value in names.items())


def test_sampled_actions_follow_the_seed_and_the_odds(played: Path) -> None:
    model = RecurrentPPO.load(played / "perceptron.zip", device="cpu")
    net = agent("perceptron")
    obs = seen(EXPORTED["perceptron"], 1, 1)["obs"][0].repeat(4000, 0)
    drawn, _ = model.predict(obs, deterministic=False)
    with torch.no_grad():
        logits = net.step(
            torch.from_numpy(obs[:1]), torch.ones(1).bool(), net.initial_state(1), torch.ones(1)
        )
    assert np.abs(drawn.mean(0) - torch.sigmoid(logits.logits_BA[0]).numpy()).max() < 0.04


def test_a_place_that_can_not_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"missing/a\.zip"):
        write_sb3(tmp_path / "missing" / "a.zip", agent("perceptron"), card("perceptron"))
