"""Plays a model of Stable-Baselines3, sb3-contrib or ONNX through the AI² tournament's interface.

`league.agent.rival_bundles.pack` puts this file into a bundle as `my_agent.py`, next to the model,
so that the model is opened only in a rival's confined process.
"""

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from environment.agent import Agent

KINDS = {
    "_last_lstm_states": "RecurrentPPO",
    "clip_range": "PPO",
    "policy_delay": "TD3",
    "target_entropy": "SAC",
}
"""The algorithm of a saved model, by an attribute that identifies it. A saved model without any of
these attributes comes from A2C.
"""


class SubmittedAgent(Agent):
    """Plays the model, which maps the tournament's 64 numbers to ten keys."""

    def _initialize(self) -> None:
        load = self._load_onnx if Path("model.onnx").is_file() else self._load_sb3
        self._act = load()

    def predict(self, obs: Any) -> Any:
        return self._act(np.asarray(obs, np.float32))

    def _load_sb3(self) -> Any:
        import sb3_contrib
        import stable_baselines3

        with zipfile.ZipFile("model.zip") as files:
            saved = json.loads(files.read("data"))
        kind = next((kind for name, kind in KINDS.items() if name in saved), "A2C")
        library = sb3_contrib if kind == "RecurrentPPO" else stable_baselines3
        model = getattr(library, kind).load(
            "model.zip",
            device="cpu",
            custom_objects={
                "learning_rate": 0.0,
                "lr_schedule": lambda _: 0.0,
                "clip_range": lambda _: 0.0,
            },
        )
        self._check(model.observation_space.shape)
        state, begins = None, np.ones(1, bool)

        def act(obs: Any) -> Any:
            nonlocal state
            keys, state = model.predict(obs, state=state, episode_start=begins)
            begins[:] = False
            return keys

        return act

    def _load_onnx(self) -> Any:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        session = onnxruntime.InferenceSession("model.onnx", options)
        first, *others = session.get_inputs()
        if others:
            raise ValueError(f"the graph has {1 + len(others)} inputs: only one is known here")
        self._check(first.shape)

        def act(obs: Any) -> Any:
            seen = obs[None] if len(first.shape) == 2 else obs
            return np.ravel(session.run(None, {first.name: seen})[0])

        return act

    @staticmethod
    def _check(shape: Any) -> None:
        if not shape or shape[-1] != 64:
            raise ValueError(f"the model sees {shape}: the tournament's 64 numbers are wanted")
