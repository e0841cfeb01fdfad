"""Writes a snapshot's step as an ONNX graph: observation and state in, logits and next state out.

The graph computes `PlayingNetwork.step`, for any number of rows. The graph does not sample, so the
caller draws actions from the logits. It keeps no state either, so the caller passes each output
`next_NAME` to the next step as the input `NAME`. `write_folder` adds a card (a description of the
snapshot) and a program with a class that plays the graph.

Shape suffixes: B rows, O observation, A actions.
"""

from __future__ import annotations

import copy
import hashlib
import json
import logging
import warnings
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from league.agent.contract import AgentState, PlayingNetwork
from league.agent.snapshot import SnapshotCard
from league.errors import InvalidInput
from league.games.base import CHOICE, GameSpec
from league.runs.files import write_whole

STATE_NAMES = ("encoder_rings", "pooling_ring", "age", "memory_h", "memory_c")
"""The graph's names for the parts of an `AgentState`. Parts of width 0 are left out."""


class OneStep(nn.Module):
    """Wraps `step` in a module that takes and returns plain tensors, in the order of `input_names`
    and `output_names`.
    """

    def __init__(self, network: PlayingNetwork) -> None:
        super().__init__()
        self.network, self.empty = network, network.initial_state(1)
        self.masked = network.config.action_kind == CHOICE
        with torch.inference_mode():
            observation, starts, left = self.example(1)[:3]
            latent = network.step(observation, starts, self.empty, left).latent_BD
        self.has_latent = latent.numel() > 0
        self.carried = {
            name: x for name, x in zip(STATE_NAMES, self.empty, strict=True) if x.numel()
        }
        """The parts of the state that are inputs and outputs of the graph."""
        legal = ["legal"] if self.masked else []
        self.input_names = ["observation", "starts", "time_left", *legal, *self.carried]
        self.output_names = ["logits", "value", *(["latent"] if self.has_latent else [])]
        self.output_names += [f"next_{name}" for name in self.carried]

    def example(self, rows: int) -> tuple[Tensor, ...]:
        """Makes inputs for the first step of an episode."""
        config = self.network.config
        state = [x for x in self.network.initial_state(rows) if x.numel()]
        legal = [torch.ones(rows, config.action_size, dtype=torch.bool)] if self.masked else []
        observation = torch.zeros(rows, config.observation_size)
        return (observation, torch.ones(rows, dtype=torch.bool), torch.ones(rows), *legal, *state)

    def forward(
        self, obs_BO: Tensor, starts_B: Tensor, left_B: Tensor, *rest: Tensor
    ) -> tuple[Tensor, ...]:
        tensors = iter(rest)
        legal_BA = next(tensors) if self.masked else None
        state = AgentState(
            *(
                next(tensors) if x.numel() else x.new_zeros(obs_BO.shape[0], *x.shape[1:])
                for x in self.empty
            )
        )
        output = self.network.step(obs_BO, starts_B, state, left_B)
        logits_BA = output.logits_BA
        if legal_BA is not None:  # if no choice is legal, all are, as in `MaskedChoice`
            free_BA = legal_BA | ~legal_BA.any(-1, keepdim=True)
            logits_BA = logits_BA.masked_fill(~free_BA, -torch.inf)
        latent = [output.latent_BD] if self.has_latent else []
        after = [new for new, x in zip(output.state, self.empty, strict=True) if x.numel()]
        return (logits_BA, output.value_B, *latent, *after)


def onnx_graph(network: PlayingNetwork, card: SnapshotCard) -> bytes:
    """Makes the content of a `.onnx` file, with the snapshot's card (its description) under the
    metadata key `kumite`.

    Raises:
        InvalidInput: the package onnx or onnxscript is missing.
    """
    try:
        import onnx  # noqa: F401
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise InvalidInput(
            f"onnx and folder need the package {error.name}: run `bin/bootstrap --all` or "
            "`pip install 'kumite[export]'`, or choose --format sb3, which needs nothing more"
        ) from None
    step = OneStep(copy.deepcopy(network).requires_grad_(False)).eval()
    batch = torch.export.Dim("batch")
    # With one row, the exporter would conclude that there is always a single row.
    inputs = step.example(2)
    shapes: list[Any] = [{0: batch} for _ in inputs]
    # Hides the exporter's messages about optional packages and deprecations.
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.onnx.export(
            step,
            inputs,
            dynamo=True,
            verbose=False,
            input_names=step.input_names,
            output_names=step.output_names,
            dynamic_shapes=(*shapes[:3], tuple(shapes[3:])),
        )
    assert program is not None
    program.model.metadata_props["kumite"] = card.to_json()
    content: bytes = program.model_proto.SerializeToString()
    return content


def write_onnx(path: Path, network: PlayingNetwork, card: SnapshotCard) -> None:
    """Writes the graph of a snapshot that is on the CPU.

    Raises:
        InvalidInput: the file can't be written.
        StorageFull: the disk is full.
    """
    write_whole(path, onnx_graph(network, card))


def write_folder(path: Path, network: PlayingNetwork, card: SnapshotCard, spec: GameSpec) -> None:
    """Writes the graph, `card.json` and `play.py` into the new folder `path`.

    Raises:
        InvalidInput: the folder can't be made.
    """
    graph, state = onnx_graph(network, card), OneStep(network).carried
    values = {
        "observation_size": spec.observation_size,
        "own_size": spec.own_size,
        "observation_names": spec.observation_names,
        "action_size": spec.action_size,
        "action_names": spec.action_names,
        "action_kind": spec.action_kind,
        "frame_skip": card.frame_skip,
        "frames_per_second": spec.frames_per_second,
        "state": {
            name: {"shape": list(x.shape[1:]), "type": str(x.dtype).removeprefix("torch.")}
            for name, x in state.items()
        },
        "snapshot": json.loads(card.to_json()),
        "model_sha256": hashlib.sha256(graph).hexdigest(),
    }
    try:
        path.mkdir(parents=True)
    except OSError as error:
        raise InvalidInput(
            f"the folder {path} can't be made ({error.strerror}): name another, new one"
        ) from None
    write_whole(path / "play.py", (Path(__file__).parent / "play.py").read_bytes())
    write_whole(path / "model.onnx", graph)
    write_whole(path / "card.json", json.dumps(values, indent=1))
