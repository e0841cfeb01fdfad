"""The file for the tournament plays what its snapshot plays, and the check finds what fails."""

import ast
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from agents import PERCEPTRON, RECURRENT
from exports import EXPORTED, agent, balanced, card, seen

from league.agent.config import NetworkConfig
from league.agent.export import ai2_check, ai2_seat
from league.agent.export.ai2 import Exported, write_ai2
from league.agent.export.ai2_check import check, original, pythons, seated
from league.agent.perceptron import ACTIVATIONS
from league.errors import InvalidInput
from league.games.ai2.observation import converted
from league.games.registry import make_batched

SKIP = card("streaming").frame_skip
STREAMING = EXPORTED["streaming"]
CONFIGS = {
    "streaming": STREAMING,
    "no encoder": replace(STREAMING, encoder="none"),
    "streaming without memory": replace(STREAMING, recurrent=False),
    **{f"perceptron {name}": replace(PERCEPTRON, activation=name) for name in ACTIVATIONS},
    "recurrent": RECURRENT,
}
DAMAGE, STOCKS, STATE, KO = [12, 44], [13, 45], [8, 40], 11


def write(path: Path, config: NetworkConfig, greedy: bool = True) -> Path:
    member = Exported("main@1234", balanced(config), card("streaming"))
    write_ai2(path, [member], name="main@1234", greedy=greedy)
    return path


def loaded(path: Path, monkeypatch: pytest.MonkeyPatch, **options: Any) -> Any:
    """The file's agent in this process, as a match begins."""
    monkeypatch.setitem(sys.modules, "environment.agent", ai2_seat)
    names: dict[str, Any] = {}
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), names)
    made = names["SubmittedAgent"](**options)
    made.get_env_info(ai2_seat.Env())
    return made


@pytest.fixture(scope="module")
def greedy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A perceptron's file."""
    return write(tmp_path_factory.mktemp("ai2") / "my_agent.py", PERCEPTRON)


@pytest.mark.parametrize("name", CONFIGS)
@torch.no_grad()
def test_every_step_equals_torch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    net, steps = (
        balanced(CONFIGS[name]),
        loaded(write(tmp_path / "a.py", CONFIGS[name]), monkeypatch),
    )
    state = net.initial_state(1)
    data = seen(CONFIGS[name], 40, 1)
    for obs, starts in zip(data["obs"], data["starts"], strict=True):
        if starts[0]:
            steps.network.forget()
        output = net.step(torch.from_numpy(obs), torch.from_numpy(starts), state, None)
        state = output.state
        np.testing.assert_allclose(
            steps.network.step(obs[0]), output.logits_BA[0].numpy(), atol=1e-5, rtol=1e-5
        )


@pytest.mark.parametrize("is_greedy", [True, False], ids=["greedy", "sampled"])
@torch.no_grad()
def test_two_whole_matches_in_a_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_greedy: bool
) -> None:
    """Keys equal the snapshot's with the same draws, but where rounding decides; nobody says when
    the second match begins.
    """
    net = balanced(STREAMING)
    plays = loaded(write(tmp_path / "a.py", STREAMING, is_greedy), monkeypatch, seed=7)
    draws = np.random.default_rng(7)
    game = make_batched("brawl", 1, max_frames=900)
    game.bots_N2[0, 1] = game.spec.bot_index("based")
    game.reset(np.array([4], np.uint64))
    keys_N2A, ended, decided = game.idle_actions(), 0, []
    state, starts = net.initial_state(1), True
    while ended < 2:
        raw = original(shown := game.observations_N2O[0, 0])
        is_free = np.abs(shown) < 0.68  # of the limits of heights and speeds
        is_free[[4, 36]] = True  # facing
        is_free = is_free[:64]
        np.testing.assert_allclose(converted(raw)[is_free], shown[:64][is_free], atol=1e-5)
        if game.frames_N[0] % SKIP == 0:
            observed = torch.from_numpy(np.concatenate([converted(raw), shown[64:]]))[None]
            output = net.step(observed, torch.tensor([starts]), state, None)
            state, starts = output.state, False
            odds = torch.sigmoid(output.logits_BA[0].double()).numpy()
            least = 0.5 - odds if is_greedy else draws.random(10) - odds
            decided.append(least < 0)
        keys = plays.predict(raw)
        is_sure = np.abs(least) > 1e-5
        assert np.array_equal(keys[is_sure], (least < 0)[is_sure]), len(decided)
        keys_N2A[0, 0] = keys > 0.5
        game.step(keys_N2A)
        if game.ended_N[0]:
            ended, starts = ended + 1, True
    shares = np.mean(decided, 0)
    assert len(decided) > 100
    assert ((shares > 0.02) & (shares < 0.98)).sum() >= 5  # it follows what it sees


@pytest.mark.parametrize(
    ("numbers", "begins"),
    [
        ({12: 0.0}, True),
        ({44: 0.0}, True),
        ({13: 3.0}, True),
        ({45: 3.0}, True),
        ({12: 0.5, 45: 1.0}, False),
        ({}, False),
    ],
)
@pytest.mark.parametrize("state", [KO, 6])
def test_when_a_match_begins(
    greedy: Path, monkeypatch: pytest.MonkeyPatch, numbers: dict[int, float], begins: bool, state
) -> None:
    """Stocks go up, or damage goes back and its player was not knocked out."""
    plays = loaded(greedy, monkeypatch)
    raw = original(np.full(64, 0.4))
    raw[DAMAGE], raw[STOCKS], raw[STATE] = 0.2, 2, state
    held = plays.predict(raw)
    after = raw * np.where(np.isin(np.arange(64), [*DAMAGE, *STOCKS, *STATE]), 1, -1)
    for place, value in numbers.items():
        after[place] = value
    after[STATE] = 6
    again = loaded(greedy, monkeypatch).predict(after)
    assert not np.array_equal(held, again)
    is_respawn = state == KO and set(numbers) & set(DAMAGE)
    assert np.array_equal(plays.predict(after), again if begins and not is_respawn else held)


def test_it_is_python_3_10_and_imports_numpy_alone(greedy: Path) -> None:
    text = greedy.read_text(encoding="utf-8")
    assert max(map(len, text.splitlines())) <= 100
    imported = set()
    for node in ast.walk(ast.parse(text, feature_version=(3, 10))):
        if isinstance(node, ast.ImportFrom):
            imported.add(str(node.module))
        elif isinstance(node, ast.Import):
            imported |= {one.name for one in node.names}
    assert {one.split(".")[0] for one in imported} - sys.stdlib_module_names == {
        "numpy",
        "environment",
    }


def test_damaged_weights_are_refused(
    greedy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, damaged = greedy.read_text(encoding="utf-8"), tmp_path / "my_agent.py"
    row = re.search(r'WEIGHTS = """\n(.*)\n', text)
    assert row is not None
    damaged.write_text(text.replace(row[1], row[1][::-1]), encoding="utf-8")
    with pytest.raises(ValueError, match="weights"):
        loaded(damaged, monkeypatch)


def test_another_game_is_refused(tmp_path: Path) -> None:
    member = Exported("main@5", agent("kuhn"), card("kuhn"))
    with pytest.raises(InvalidInput, match="kuhn"):
        write_ai2(tmp_path / "a.py", [member], name="main@5", greedy=False)
    assert not list(tmp_path.iterdir())


def test_a_mixture_draws_a_member_for_each_match(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configs, skips = {"main@1": STREAMING, "main@2": PERCEPTRON}, {"main@1": 4, "main@2": 2}
    cards = {name: replace(card("streaming"), frame_skip=skip) for name, skip in skips.items()}
    members = {name: Exported(name, balanced(configs[name]), cards[name]) for name in configs}
    for name, member in members.items():
        write_ai2(tmp_path / f"{name}.py", [member], name=name, greedy=True)
    both = [members["main@1"]._replace(share=0.8), members["main@2"]._replace(share=0.2)]
    write_ai2(tmp_path / "both.py", both, name="main@average", greedy=True)
    rng = np.random.default_rng(1)
    shown = [original(rng.uniform(-1, 1, 64)) for _ in range(6)]
    for frame in shown:
        frame[DAMAGE], frame[STOCKS], frame[STATE] = 0.2, 2, 6

    def keys(plays: Any) -> bytes:
        plays.reset()
        return np.stack([plays.predict(frame) for frame in shown]).tobytes()

    alone = {name: keys(loaded(tmp_path / f"{name}.py", monkeypatch)) for name in members}
    assert len(set(alone.values())) == 2
    plays = loaded(tmp_path / "both.py", monkeypatch, seed=3)
    drawn = [keys(plays) for _ in range(200)]
    assert set(drawn) == set(alone.values())
    assert 0.7 < drawn.count(alone["main@1"]) / 200 < 0.9


def test_a_file_that_github_would_refuse_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("league.agent.export.ai2.MOST_BYTES", 10_000)
    members = [Exported(f"main@{n}", balanced(PERCEPTRON), card("streaming")) for n in range(9)]
    with pytest.raises(InvalidInput, match="9 snapshots"):
        write_ai2(tmp_path / "a.py", members, name="main@average", greedy=False)
    assert not list(tmp_path.iterdir())


CLASS = "from environment.agent import Agent\nclass SubmittedAgent(Agent):\n    "


def only(folder: Path, monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Puts programs of these names on the PATH, which run this Python, and no others."""
    for name in names:
        program = folder / name
        program.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))


@pytest.mark.long
def test_the_check_plays_both_matches_under_every_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that presses nothing stands through the validation, and then loses; `based` falls."""
    only(tmp_path, monkeypatch, "python3.10", "python3.12")
    file = tmp_path / "my_agent.py"
    file.write_text(CLASS + "def predict(self, obs): return [0.5] * 10\n")
    played = list(check(file))
    assert [(one.match, one.opponent, one.outcome, one.stocks) for one in played] == [
        ("validation", "constant", 0.5, (0, 0)),
        ("battle", "based", 1.0, (3, 2)),
    ] * 2
    for one in played:
        assert one.python == sys.version.split()[0]
        assert one.numpy == np.__version__
        assert (one.frames == 2700) == (one.match == "validation")
        assert 0 < one.ms[0] < 100
        assert one.start_seconds > 0


def test_without_the_tournaments_pythons_this_one_plays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    only(tmp_path, monkeypatch)
    assert list(pythons()) == [sys.executable]
    only(tmp_path, monkeypatch, "python3.12")
    assert list(pythons()) == ["python3.12"]


FAILING = {
    "import league\n": "league",
    "import onnxruntime\n": "onnxruntime",
    "import skvideo\n": "the tournament has skvideo",
    "import gdown; gdown.download()\n": r"gdown.download has no network.*my_agent.py, line 1",
    "x = 1\ndef predict(self)\n": r"SyntaxError: expected ':' \(my_agent.py, line 2\)",
    "open('/etc/hostname')\n": "PermissionError",
    "import socket; socket.socket()\n": "PermissionError",
    "from user.train_agent import SB3Agent\n": "user.*ai2:FOLDER",
    "import importlib; importlib.import_module('onnxruntime')\n": "onnxruntime",
    "import environment.environment\n": "environment.environment.*ai2:FOLDER",
    CLASS + "def predict(self, obs): return self.env.players\n": "players.*ai2:FOLDER",
    CLASS + "def __call__(self): pass\n": "__call__",
    CLASS + "def predict(self, obs): return [0] * 9\n": r"\(9,\)",
    CLASS + "def predict(self, obs): return 'left'\n": "left",
    CLASS + "def predict(self, obs): print('x' * 100_000); raise KeyError(str(obs[45]))\n": "3.0",
}


@pytest.mark.long
def test_a_file_that_imports_what_the_tournament_has_plays(tmp_path: Path) -> None:
    file = tmp_path / "my_agent.py"
    file.write_text(
        """
import os
from typing import Optional

import gymnasium
import numpy as np
from environment.agent import Agent
from gymnasium import spaces
from sb3_contrib import RecurrentPPO
from stable_baselines3 import A2C, PPO

try:
    import onnxruntime
except ImportError:
    onnxruntime = None


class Spaces(gymnasium.Env):
    observation_space, action_space = spaces.Box(-9, 9, (64,)), spaces.Box(0, 1, (10,))


class SubmittedAgent(Agent):
    def __init__(self, file_path: Optional[str] = None):
        super().__init__(file_path)

    def _initialize(self) -> None:
        assert (self.file_path, onnxruntime) == ("rl-model.zip", None)
        self.model = PPO("MlpPolicy", Spaces(), device="cpu")

    def _gdown(self) -> str:
        return "rl-model.zip"

    def predict(self, obs):
        action = self.model.predict(obs)[0]
        print(obs, action)
        obs[:] = 0
        return action
"""
    )
    with seated(file) as seat:
        for _ in range(3):
            assert len(seat.predict(original(np.full(64, 0.5)))) == 10


CHECKOUT = Path(__file__).parents[1] / "contract" / "small_original"


def test_the_originals_helpers_read_by_name(tmp_path: Path) -> None:
    """Sections of the observation, keys, the spaces, and the weapons on the ground."""
    file = tmp_path / "my_agent.py"
    file.write_text(
        """
from environment.agent import *


class SubmittedAgent(Agent):
    def _initialize(self):
        assert self.observation_space.shape == (64,)
        assert self.action_space.contains(self.action_space.sample())
        assert self.act_helper.press_keys(["W", "g"], np.zeros(10)).tolist() == [1] + [0] * 8 + [1]
        try:
            self.act_helper.press_keys("q")
        except KeyError:
            pass

    def predict(self, obs):
        assert self.obs_helper.get_section(obs, "player_pos").tolist() == [0, 1]
        assert self.obs_helper.get_section(obs, "opponent_pos").tolist() == [32, 33]
        assert self.obs_helper.get_section(obs, "player_stocks").tolist() == [13]
        assert self.obs_helper.get_section(obs, "opponent_moving_platform_vel").tolist() == [62, 63]
        assert self.env.get_spawner_info() == [["Random", (16.0, 17.0)], ["Hammer", (25.0, 26.0)]]
        return self.act_helper.press_keys("space")
"""
    )
    shown = np.arange(64.0)
    shown[[18, 21, 24, 27]] = 1, 0, 0, 3
    with seated(file) as seat:
        assert seat.predict(shown) == [0, 0, 0, 0, 1, 0, 0, 0, 0, 0]


def test_with_a_checkout_a_file_meets_the_tournaments_own_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    only(tmp_path, monkeypatch)
    file = tmp_path / "my_agent.py"
    file.write_text(
        "from environment.agent import BasedAgent\n"
        "from environment.environment import WarehouseBrawl\n"
        "class SubmittedAgent(BasedAgent):\n"
        "    def predict(self, obs):\n"
        "        assert isinstance(self.env, WarehouseBrawl)\n"
        "        return super().predict(obs)\n"
        "    def get_env_info(self, env):\n"
        "        self.env = env\n"
    )
    with pytest.raises(InvalidInput, match=r"BasedAgent.*--game ai2:FOLDER"), seated(file):
        pass
    right = original(np.array([-0.5, *np.zeros(63)]))
    with seated(file, checkout=CHECKOUT) as seat:
        assert np.flatnonzero(seat.predict(right)).tolist() == [3]
    assert list(pythons(CHECKOUT)) == [sys.executable]
    venv = tmp_path / "checkout" / ".venv" / "bin"
    venv.mkdir(parents=True)
    only(venv, monkeypatch, "python", "python3.12")
    assert list(pythons(tmp_path / "checkout")) == [str(venv / "python")]


@pytest.mark.parametrize(("text", "reason"), FAILING.items(), ids=map(str, range(len(FAILING))))
def test_the_check_says_why_a_file_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, reason: str
) -> None:
    only(tmp_path, monkeypatch)
    file = tmp_path / "my_agent.py"
    file.write_text(text)
    with pytest.raises(InvalidInput, match=rf"my_agent.py.*{reason}"):
        list(check(file))


def test_a_match_that_never_ends_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    only(tmp_path, monkeypatch)
    monkeypatch.setattr(ai2_check, "MOST_SECONDS", 1.0)
    file = tmp_path / "my_agent.py"
    file.write_text(CLASS + "def predict(self, obs):\n        while True: pass\n")
    with pytest.raises(InvalidInput, match="1 s"):
        list(check(file))


WRITES = """
import os


def write(answer):
    for descriptor in range(3, 30):
        try:
            os.write(descriptor, answer)
        except OSError:
            pass


"""
HOSTILE = {
    "without an end": "write(b'1' * 900_000)\nwhile True: pass\n",
    "deep": "write(b'[' * 60_000 + b'\\n')\n",
    "no text": "write(b'\\xff\\n')\n",
    "no object": "write(b'3\\n')\n",
    "no number": "write(b'{\"start_seconds\": [1, 2]}\\n')\n",
    "a long reason": "write(b'{\"failed\": \"\\\\u001b[2J' + b'x' * 9_000 + b'\"}\\n')\n",
    "no keys": 'write(b\'{"start_seconds": 1}\\n{"action": {}, "ms": 1}\\n\')\n',
    "words": 'write(b\'{"start_seconds": 1}\\n{"action": ["a"], "ms": 1}\\n\')\n',
    "large": 'write(b\'{"start_seconds": 1}\\n{"action": [1%s], "ms": 1}\\n\' % (b\'0\' * 400))\n',
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_a_forged_answer_is_refused_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setattr(ai2_check, "MOST_SECONDS", 3.0)
    file = tmp_path / "my_agent.py"
    file.write_text(WRITES + text)
    with pytest.raises(InvalidInput, match=r"fails under") as failed, seated(file) as seat:
        seat.predict(np.zeros(64))
    assert str(failed.value).isprintable()
    assert len(str(failed.value)) < 400 + len(str(file)) + len(sys.executable)
    assert "3 s" not in str(failed.value)


@pytest.mark.parametrize(
    "text",
    [
        "for n in range(2100): open(str(n), 'w').close()\n",
        "import os\nfor n in range(1500): os.mkdir('a'), os.chdir('a')\n",
    ],
    ids=["files", "folders in folders"],
)
def test_a_file_that_writes_too_many_files_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setattr(ai2_check, "MOST_SECONDS", 20.0)
    monkeypatch.setattr(ai2_check, "LOOK_SECONDS", 0.1)
    file = tmp_path / "my_agent.py"
    file.write_text(f"{text}while True: pass\n")
    with pytest.raises(InvalidInput, match="over 2,000 files"), seated(file):
        pass


@pytest.mark.parametrize("checkout", [None, CHECKOUT], ids=["stand-in", "checkout"])
def test_data_next_to_the_file_is_found(tmp_path: Path, checkout: Path | None) -> None:
    """Also a model that is larger than a rival may be, as an export may be."""
    (tmp_path / "my_agent.py").write_text(
        "import os\n"
        f"{CLASS}def predict(self, obs): return [float(os.stat('model').st_size > 64 << 20)] * 10\n"
    )
    with (tmp_path / "model").open("wb") as model:
        model.truncate(65 << 20)
    with seated(tmp_path, checkout=checkout) as seat:
        assert seat.predict(np.zeros(64)) == [1.0] * 10
