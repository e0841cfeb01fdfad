"""The graph computes what the agent's step does; its folder plays with numpy and onnxruntime
alone.
"""

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from exports import EXPORTED, KUHN, agent, card, greedy_actions, run_alone, seen

from league.agent.export import onnx_graph
from league.agent.export.onnx_graph import STATE_NAMES, write_folder, write_onnx
from league.errors import InvalidInput
from league.games.registry import game_spec

STEPS = 24
PROGRAM = """
import numpy as np

sys.path.insert(0, "streaming")
from play import Agent

for name in sys.argv[1:]:
    data, agent = np.load(f"{name}.npz"), Agent(name, seed=3)
    decided, values = [], []
    seen = {part: data[part][:, 0] for part in data.files}
    for obs, starts, left, legal in zip(*seen.values()):
        if starts:
            agent.reset()
        decided.append(agent.decide(obs, legal, greedy=True, time_left=left))
        values.append(agent.value)
    agent.reset()
    held = [agent.act(obs, legal) for obs, legal in zip(seen["obs"], seen["legal"])]
    drawn = []
    for _ in range(2000):
        agent.reset()
        drawn.append(agent.decide(data["obs"][0, 0], data["legal"][0, 0]))
    np.savez(f"{name}.out.npz", decided=decided, values=values, held=held, drawn=np.mean(drawn, 0))
    for wrong in (dict(observation=np.zeros(3)), dict(observation=seen["obs"][0], legal=[True])):
        try:
            agent.act(**wrong)
        except ValueError as error:
            continue
        sys.exit(f"{wrong} was taken")
"""
BARE = """name.split(".")[0] not in (*sys.stdlib_module_names, "numpy", "onnxruntime", "play")"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every export, once: folders of `streaming` and `kuhn`, graphs of the others; the folders
    were played by a process that has neither torch nor us.
    """
    path = tmp_path_factory.mktemp("onnx")
    for name in ("streaming", "kuhn"):
        spec = KUHN if name == "kuhn" else game_spec("brawl")
        write_folder(path / name, agent(name), card(name), spec)
        np.savez(path / f"{name}.npz", **seen(EXPORTED[name], 60, 1, seed=5))
        shutil.copy(path / name / "model.onnx", path / f"{name}.onnx")
    for name in ("perceptron", "recurrent"):
        write_onnx(path / f"{name}.onnx", agent(name), card(name))
    run_alone(path, PROGRAM, "streaming", "kuhn", refused=BARE)
    return path


@pytest.mark.long
@pytest.mark.parametrize("name", EXPORTED)
def test_every_step_equals_torch(folder: Path, name: str) -> None:
    session = onnxruntime.InferenceSession(
        folder / f"{name}.onnx", providers=["CPUExecutionProvider"]
    )
    outputs = [output.name for output in session.get_outputs()]
    inputs = {given.name for given in session.get_inputs()}
    model = onnx.load(folder / f"{name}.onnx")
    onnx.checker.check_model(model, full_check=True)
    (metadata,) = [entry.value for entry in model.metadata_props if entry.key == "kumite"]
    assert json.loads(metadata)["step"] == 1234
    rows = 1 if name == "kuhn" else 7  # any number
    net, data = agent(name), seen(EXPORTED[name], STEPS, rows)
    state = net.initial_state(rows)
    carried = {
        key: part.numpy() for key, part in zip(STATE_NAMES, state, strict=True) if key in inputs
    }
    for obs, starts, left, legal in zip(*data.values(), strict=True):
        given = {"observation": obs, "starts": starts, "time_left": left, "legal": legal, **carried}
        given = {key: value for key, value in given.items() if key in inputs}
        found = dict(zip(outputs, session.run(None, given), strict=True))
        with torch.no_grad():
            wanted = net.step(*map(torch.from_numpy, (obs, starts)), state, torch.from_numpy(left))
        state = wanted.state
        logits = wanted.logits_BA.numpy()
        if "legal" in inputs:
            assert np.isneginf(found["logits"][~legal]).all()
            logits = np.where(legal, logits, -np.inf)
        np.testing.assert_allclose(found["logits"], logits, atol=1e-5, rtol=1e-5)
        np.testing.assert_allclose(found["value"], wanted.value_B.numpy(), atol=1e-5, rtol=1e-5)
        if "latent" in found:
            np.testing.assert_allclose(
                found["latent"], wanted.latent_BD.numpy(), atol=1e-5, rtol=1e-5
            )
        for key, part in zip(STATE_NAMES, state, strict=True):
            if key in inputs:
                carried[key] = found[f"next_{key}"]
                np.testing.assert_allclose(carried[key], part.numpy(), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", ["streaming", "kuhn"])
def test_the_folder_plays_with_numpy_and_onnxruntime_alone(folder: Path, name: str) -> None:
    data, net = seen(EXPORTED[name], 60, 1, seed=5), agent(name)
    found = np.load(folder / f"{name}.out.npz")
    wanted = greedy_actions(net, data)[:, 0]
    assert np.array_equal(found["decided"], wanted)
    assert len({tuple(row) for row in wanted.tolist()}) > 2
    with torch.no_grad():
        obs = torch.from_numpy(data["obs"][0])
        left = torch.from_numpy(data["left"][0])
        first = net.step(obs, torch.ones(1).bool(), net.initial_state(1), left)
    assert abs(found["values"][0] - float(first.value_B)) < 1e-5
    if name == "kuhn":
        legal = torch.from_numpy(data["legal"][0])
        odds = torch.softmax(first.logits_BA.masked_fill(~legal, -torch.inf), -1)[0].numpy()
        assert (found["held"].sum(1) == 1).all()
        assert not found["held"][~data["legal"][:, 0]].any()
    else:
        odds = torch.sigmoid(first.logits_BA)[0].numpy()
        by_decision = found["held"].reshape(-1, 4, 10)
        assert (by_decision == by_decision[:, :1]).all()
        assert (by_decision[1:, 0] != by_decision[:-1, 0]).any()
    assert np.abs(found["drawn"] - odds).max() < 0.05


def test_another_graph_under_the_card_is_refused(folder: Path, tmp_path: Path) -> None:
    from league.agent.export.play import Agent

    shutil.copytree(folder / "kuhn", tmp_path, dirs_exist_ok=True)
    told = json.loads((tmp_path / "card.json").read_text())
    assert len(told["observation_names"]) == told["observation_size"] == KUHN.observation_size
    shutil.copy(folder / "perceptron.onnx", tmp_path / "model.onnx")
    with pytest.raises(ValueError, match="model"):
        Agent(tmp_path)


def test_a_folder_that_exists_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(onnx_graph, "onnx_graph", lambda network, card: b"a graph")
    with pytest.raises(InvalidInput, match=str(tmp_path)):
        write_folder(tmp_path, agent("kuhn"), card("kuhn"), KUHN)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("package", ["onnx", "onnxscript"])
def test_a_missing_package_is_named_with_its_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(InvalidInput, match=rf"package {package}: .*kumite\[export\]"):
        write_onnx(tmp_path / "a.onnx", agent("kuhn"), card("kuhn"))
    assert not list(tmp_path.iterdir())
