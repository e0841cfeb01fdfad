"""Plays in UTMIST's AI² tournament. This single file holds the agent's code and its weights.

The file needs only Python 3.10 and numpy, and reads no other file. Upload it as `user/my_agent.py`.
"""

import base64
import hashlib
import math
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
from environment.agent import Agent

from league.games.ai2.observation import converted

KO = 11
"""The state of a player that is knocked out."""


class SubmittedAgent(Agent):
    """Plays the snapshot that `CARD` describes. If `CARD` lists several snapshots, one of them is
    drawn at the start of each match.

    Args:
        file_path: ignored. The tournament passes it, but this agent reads no file.
        seed: seed of the agent's random numbers. By default the random numbers differ between
            objects.
    """

    def __init__(self, file_path: Any = None, seed: Any = None) -> None:
        super().__init__(file_path)
        weights = zip(CARD["members"], read_weights())  # noqa: B905
        self.networks = [Network(card["network"], arrays) for card, arrays in weights]
        self.random = np.random.default_rng(seed)
        self.reset()

    def _initialize(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forgets the match so far. `predict` calls this method when it notices a new match."""
        drawn = 0
        if len(self.networks) > 1:
            shares = [card["share"] for card in CARD["members"]]
            drawn = self.random.choice(len(shares), p=np.array(shares) / sum(shares))
        self.network, self.frame_skip = self.networks[drawn], CARD["members"][drawn]["frame_skip"]
        self.network.forget()
        self.frame = 0
        self.before = np.zeros((3, 2))
        self.held = np.zeros(10, np.float32)

    def predict(self, obs: Any) -> np.ndarray:
        """Returns the keys for this frame: W A S D space H L J K G, 1 for a pressed key, else 0.

        Call it in every frame. The agent decides every `frame_skip` frames, and holds the keys in
        between.
        """
        raw = np.asarray(obs, np.float64)
        damage, stocks, _ = now = raw[[[12, 44], [13, 45], [8, 40]]]
        damage_before, stocks_before, state_before = self.before
        fell = (damage < damage_before) & (state_before != KO)
        if self.frame and (fell.any() or (stocks > stocks_before).any()):
            self.reset()
        self.before = now
        if self.frame % self.frame_skip == 0:
            logits = self.network.step(np.concatenate([converted(raw), self.held]))
            draws = self.random.random(len(logits))
            down = logits > 0 if CARD["greedy"] else draws < sigmoid(logits)
            self.held = down.astype(np.float32)
        self.frame += 1
        return self.held.copy()


class Network:
    """Runs the snapshot's network step by step. Rows of arrays are entries of the past, and columns
    are features.
    """

    def __init__(self, sizes: Any, weights: Any) -> None:
        self.sizes, self.weights = sizes, weights
        self.forget()

    def forget(self) -> None:
        """Empties the memory."""
        self.past: dict[str, np.ndarray] = {}
        layers, width = self.sizes.get("memory_layers", 1), self.sizes["memory"]
        self.h, self.c = np.zeros((2, layers, width), np.float32)

    def step(self, seen: np.ndarray) -> np.ndarray:
        """Returns the logits of the keys for an observation."""
        sizes, x = self.sizes, seen[None, : self.sizes["observation_size"]]
        if "encoder" in sizes:
            if not sizes["recurrent"]:
                self.h, self.c = 0 * self.h, 0 * self.c
            own, entry = np.split(x, [sizes["own_size"]], -1)
            read = self.encode(own, entry) if sizes["encoder"] != "none" else ()
            own, entry = own[:, sizes["places"]], entry[:, sizes["places"]]
            places = np.concatenate([own, entry, own - entry], -1)
            angles = np.concatenate([np.pi * wave * places for wave in sizes["waves"]], -1)
            x = np.concatenate([x, np.sin(angles), np.cos(angles)], -1, dtype=np.float32)
            for layer in ("first", "second"):
                name = "observation." + layer
                x = np.maximum(self.normed(name + "_norm", self.linear(name, x)), 0)
            x = self.remember(np.concatenate([x, *read], -1))
        elif sizes["memory"]:
            x = self.remember_in_layers(x)
        activation = ACTIVATIONS[sizes.get("activation", "relu")]
        for index in range(sizes["actor_layers"]):
            x = activation(self.linear(f"actor.hidden.{index}", x))
        return self.linear("actor.last", x)[0]

    def encode(self, own: np.ndarray, entry: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Encodes the opponent's past. Returns the strategy latent and the conditioned context."""
        sizes, width, heads = self.sizes, self.sizes["width"], self.sizes["attention_heads"]
        x = self.linear("encoder.embed", entry)
        for index in range(sizes["layers"]):
            name = f"encoder.layers.{index}."
            normed = self.normed(name + "attention_norm", x)
            q, kv = np.split(self.linear(name + "qkv", normed), [width], -1)
            kv = self.newest(name, kv, sizes["span"])
            bias = self.weights[name + "bias"][None, -len(kv) :]
            k, v = np.split(kv, 2, -1)
            x = x + self.linear(name + "out", attended(q, k, v, bias))
            hidden = gelu(self.linear(name + "ff_in", self.normed(name + "ff_norm", x)))
            x = x + self.linear(name + "ff_out", hidden)
        name = "encoder.pooling."
        outputs = self.linear(name + "describe", self.normed("encoder.norm", x))
        outputs = self.newest(name, outputs, sizes["pool"])
        parts = np.split(outputs, [heads, heads + width, heads + 2 * width], -1)
        scores, values, keys, context_values = parts
        bias = self.weights[name + "latent_bias"][-len(outputs) :]
        latent = mixed(softmax(scores + bias)[None], values)
        bias = self.weights[name + "context_bias"][None, -len(outputs) :]
        context = attended(self.linear(name + "query", own), keys, context_values, bias)
        return self.linear(name + "latent_out", latent), self.linear(name + "context_out", context)

    def remember(self, x: np.ndarray) -> np.ndarray:
        """Makes a step of the LSTM."""
        gates = self.linear("memory.input", x) + product(self.h, self.weights["memory.recurrent"])
        i, f, o, g = np.split(gates, 4, -1)
        self.c = sigmoid(f) * self.c + sigmoid(i) * np.tanh(g)
        self.h = sigmoid(o) * np.tanh(self.c)
        return self.h

    def remember_in_layers(self, x: np.ndarray) -> np.ndarray:
        """Makes a step of the LSTM of a policy that Stable-Baselines3 trained."""
        for index in range(len(self.h)):
            gates = self.linear(f"memory.input.{index}", x)
            gates = gates + self.linear(f"memory.recurrent.{index}", self.h[[index]])
            i, f, g, o = np.split(gates, 4, -1)
            self.c[index] = sigmoid(f) * self.c[index] + sigmoid(i) * np.tanh(g)
            x = sigmoid(o) * np.tanh(self.c[[index]])
            self.h[index] = x
        return x

    def linear(self, name: str, x: np.ndarray) -> np.ndarray:
        return product(x, self.weights[name + ".weight"]) + self.weights[name + ".bias"]

    def normed(self, name: str, x: np.ndarray) -> np.ndarray:
        x = x - x.mean(-1, keepdims=True)
        x = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5)
        return x * self.weights[name + ".weight"] + self.weights[name + ".bias"]

    def newest(self, name: str, rows: np.ndarray, most: int) -> np.ndarray:
        """Appends rows to the past stored as `name`. Returns and keeps the newest `most` rows."""
        if name in self.past:
            rows = np.concatenate([self.past[name], rows])[-most:]
        self.past[name] = rows
        return rows


def product(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Computes `x Wᵀ` in a single thread. numpy's `@` would use several threads, and wait while the
    cores are busy.
    """
    return np.einsum("ci,oi->co", x, weight)


def attended(q: np.ndarray, k: np.ndarray, v: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """Attends from rows of `q` to rows of `k` and `v`, with `bias [queries, keys, heads]`."""
    heads = bias.shape[-1]
    q, k = (x.reshape(len(x), heads, -1) for x in (q, k))
    scores = np.einsum("qhd,khd->qkh", q, k) / math.sqrt(q.shape[-1]) + bias
    return mixed(softmax(scores), v)


def mixed(weights: np.ndarray, v: np.ndarray) -> np.ndarray:
    by_head = v.reshape(len(v), weights.shape[-1], -1)
    return np.einsum("qkh,khd->qhd", weights, by_head).reshape(len(weights), -1)


def softmax(scores: np.ndarray) -> np.ndarray:
    """Computes the softmax over the attention keys (the second last axis)."""
    odds = np.exp(scores - scores.max(-2, keepdims=True))
    return odds / odds.sum(-2, keepdims=True)


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 0.5 * np.tanh(0.5 * x) + 0.5


def gelu(x: np.ndarray) -> np.ndarray:
    """Computes `x Φ(x)` with Abramowitz and Stegun's formula 7.1.26 of erf (error below 1.5e-7)."""
    t = 1.0 / (1.0 + 0.3275911 / math.sqrt(2.0) * np.abs(x))
    series = (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592, 0.0)
    tail = 0.5 * np.polyval(series, t) * np.exp(-0.5 * x * x)
    return (x * np.where(x > 0, 1.0 - tail, tail)).astype(np.float32)


ACTIVATIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "gelu": gelu,
    "leaky_relu": lambda x: np.where(x > 0, x, 0.01 * x),
    "relu": lambda x: np.maximum(x, 0),
    "silu": lambda x: x * sigmoid(x),
    "tanh": np.tanh,
}


def read_weights() -> list[dict[str, np.ndarray]]:
    """Returns each member's weights by name. Raises ValueError if the weights are damaged."""
    text = "".join(WEIGHTS.split())
    if hashlib.sha256(text.encode()).hexdigest() != CARD["weights_sha256"]:
        raise ValueError("the weights in this file are damaged: export the agent again")
    flat = np.frombuffer(zlib.decompress(base64.b85decode(text)), "<f4")
    networks: list[dict[str, np.ndarray]] = []
    start = 0
    for card in CARD["members"]:
        networks.append({})
        for name, shape in card["shapes"].items():
            end = start + math.prod(shape)
            networks[-1][name] = flat[start:end].reshape(shape)
            start = end
    return networks


CARD: dict[str, Any] = {}
"""The snapshots: sizes of the network, shapes of the weights, and how each snapshot is played."""
WEIGHTS = ""
"""The weights of all snapshots as a float32 vector, compressed by zlib, in base85."""
