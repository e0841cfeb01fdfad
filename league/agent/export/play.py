"""Plays the snapshot in this file's folder. This program needs only numpy and onnxruntime.

    from play import Agent

    agent = Agent()
    agent.reset()                     # at the start of every match
    action = agent.act(observation)   # once a frame: uint8 [A], 1 for keys down, or for the choice

card.json in the same folder says what each number of an observation and of an action means. The
first `own_size` numbers of an observation describe the player, and the others its opponent.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

CHOICE = "choice"


class Agent:
    """Plays the snapshot, and keeps its memory of the match. Several `Agent`s can play at once.

    Attributes:
        card: the content of card.json.
        frame_skip: number of frames for which a decision is held.
        value: the critic's value at the last decision.
        latent: the encoder's summary of the opponent's past (empty without an encoder).
    """

    def __init__(self, folder: str | Path | None = None, seed: int | None = None) -> None:
        folder = Path(__file__).resolve().parent if folder is None else Path(folder)
        self.card: dict[str, Any] = json.loads((folder / "card.json").read_text(encoding="utf-8"))
        model = (folder / "model.onnx").read_bytes()
        if hashlib.sha256(model).hexdigest() != self.card["model_sha256"]:
            raise ValueError(
                f"{folder / 'model.onnx'} is not the file that card.json names: export it again"
            )
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1  # one row is too little work for several threads
        self._session = onnxruntime.InferenceSession(
            model, options, providers=["CPUExecutionProvider"]
        )
        self._outputs = [output.name for output in self._session.get_outputs()]
        self._inputs = {entry.name for entry in self._session.get_inputs()}
        self._rng = np.random.default_rng(seed)
        self.frame_skip: int = self.card["frame_skip"]
        self.reset()

    def reset(self) -> None:
        """Forgets the match so far. Call it when a match begins."""
        self._state = {
            name: np.zeros([1, *field["shape"]], field["type"])
            for name, field in self.card["state"].items()
        }
        self._begins = True
        self._frame = 0
        self._held: np.ndarray | None = None
        self.value, self.latent = 0.0, np.zeros(0, np.float32)

    def act(self, observation: Any, legal: Any = None, greedy: bool = False) -> np.ndarray:
        """Returns the action for this frame.

        Call it in every frame. The agent decides every `frame_skip` frames and holds the action in
        between.

        Args:
            observation: The observation, float `[O]`.
            legal: The choices that are legal now, bool `[A]`. Only games of choices need it.
            greedy: Whether to take the likeliest action instead of sampling.

        Returns:
            The action, uint8 `[A]`.
        """
        if self._held is None or self._frame % self.frame_skip == 0:
            self._held = self.decide(observation, legal, greedy)
        self._frame += 1
        return self._held.copy()

    def decide(
        self, observation: Any, legal: Any = None, greedy: bool = False, time_left: float = 1.0
    ) -> np.ndarray:
        """Makes a new decision, without holding it. Use this method if the environment itself
        repeats actions.

        Args:
            observation: The observation, float `[O]`.
            legal: The choices that are legal now, bool `[A]`. Only games of choices need it.
            greedy: Whether to take the likeliest action instead of sampling.
            time_left: The remaining share of the match's time: 1 at the start, 0 at the time limit.
                It only affects `value`.

        Returns:
            The action, uint8 `[A]`.
        """
        wanted = self.card["observation_size"]
        observed = np.asarray(observation, np.float32)
        if observed.shape != (wanted,):
            raise ValueError(f"an observation has shape {observed.shape}: ({wanted},) is wanted")
        inputs = {
            "observation": observed[None],
            "starts": np.array([self._begins]),
            "time_left": np.array([time_left], np.float32),
            "legal": self._allowed(legal),
            **self._state,
        }
        inputs = {name: value for name, value in inputs.items() if name in self._inputs}
        outputs = dict(zip(self._outputs, self._session.run(None, inputs), strict=True))
        self._state = {name: outputs[f"next_{name}"] for name in self._state}
        self._begins = False
        self.value = float(outputs["value"][0])
        self.latent = outputs["latent"][0] if "latent" in outputs else self.latent
        return self._draw(outputs["logits"][0].astype(np.float64), greedy)

    def _allowed(self, legal: Any) -> np.ndarray:
        size = self.card["action_size"]
        allowed = np.ones(size, bool) if legal is None else np.asarray(legal, bool)
        if allowed.shape != (size,):
            raise ValueError(f"legal has shape {allowed.shape}: ({size},) is wanted")
        return allowed[None]

    def _draw(self, logits_A: np.ndarray, greedy: bool) -> np.ndarray:
        """Draws keys or a choice (with the Gumbel-max trick) at temperature 1."""
        uniform_A = self._rng.random(len(logits_A))
        if self.card["action_kind"] != CHOICE:
            down_A = logits_A > 0 if greedy else uniform_A < 1.0 / (1.0 + np.exp(-logits_A))
            return down_A.astype(np.uint8)
        scores_A = (
            logits_A if greedy else logits_A - np.log(-np.log(np.clip(uniform_A, 1e-300, None)))
        )
        chosen_A = np.zeros(len(logits_A), np.uint8)
        chosen_A[scores_A.argmax()] = 1
        return chosen_A
