"""A snapshot's step as an ONNX graph: observation and state in, logits and the next state out.

The graph computes what `PlayingNetwork.step` does, for any number of rows. It does not sample: its
caller draws actions from the logits. It keeps no state either; the next step's `NAME` is this one's
`next_NAME`.

Shape suffixes: B rows, O observation, A actions.
"""

from __future__ import annotations

import copy
import importlib
import io
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from league.agent.contract import AgentState, PlayingNetwork
from league.agent.snapshot import SnapshotCard
from league.errors import InvalidInput
from league.games.base import CHOICE
from league.runs.files import write_whole

STATE_NAMES = ("encoder_rings", "pooling_ring", "age", "memory_h", "memory_c")
"""What the graph calls the parts of an `AgentState`; parts of no width are left out."""


class OneStep(nn.Module):
    """`step` with plain tensors in and out, in the order of `input_names` and `output_names`."""

    def __init__(self, network: PlayingNetwork) -> None:
        super().__init__()
        self.network = network
        self.empty = network.initial_state(1)
        self.masked = network.config.action_kind == CHOICE
        self.has_latent = example_latent(network).numel() > 0

    @property
    def state_names(self) -> list[str]:
        """The parts of the state that the graph carries."""
        return [name for name, part in zip(STATE_NAMES, self.empty, strict=True) if part.numel()]

    @property
    def input_names(self) -> list[str]:
        legal = ["legal"] if self.masked else []
        return ["observation", "starts", "time_left", *legal, *self.state_names]

    @property
    def output_names(self) -> list[str]:
        latent = ["latent"] if self.has_latent else []
        return ["logits", "value", *latent, *(f"next_{name}" for name in self.state_names)]

    def example(self, rows: int) -> tuple[Tensor, ...]:
        """Inputs of an episode's first step."""
        config = self.network.config
        state = [part for part in self.network.initial_state(rows) if part.numel()]
        legal = [torch.ones(rows, config.action_size, dtype=torch.bool)] if self.masked else []
        observation = torch.zeros(rows, config.observation_size)
        return (observation, torch.ones(rows, dtype=torch.bool), torch.ones(rows), *legal, *state)

    def forward(
        self, obs_BO: Tensor, starts_B: Tensor, left_B: Tensor, *rest: Tensor
    ) -> tuple[Tensor, ...]:
        given = iter(rest)
        legal_BA = next(given) if self.masked else None
        state = AgentState(
            *(
                next(given) if part.numel() else part.new_zeros(obs_BO.shape[0], *part.shape[1:])
                for part in self.empty
            )
        )
        output = self.network.step(obs_BO, starts_B, state, left_B)
        logits_BA = output.logits_BA
        if legal_BA is not None:  # as `MaskedChoice` reads them: where nothing is legal, all is
            free_BA = legal_BA | ~legal_BA.any(-1, keepdim=True)
            logits_BA = logits_BA.masked_fill(~free_BA, -torch.inf)
        latent = [output.latent_BD] if self.has_latent else []
        after = [new for new, part in zip(output.state, self.empty, strict=True) if part.numel()]
        return (logits_BA, output.value_B, *latent, *after)


def example_latent(network: PlayingNetwork) -> Tensor:
    """The latent of one row of zeros."""
    obs_BO = torch.zeros(1, network.config.observation_size)
    starts_B = torch.ones(1, dtype=torch.bool)
    with torch.inference_mode():
        return network.step(obs_BO, starts_B, network.initial_state(1), torch.ones(1)).latent_BD


def onnx_graph(network: PlayingNetwork, card: SnapshotCard) -> bytes:
    """The graph as the content of a `.onnx` file, its card under the metadata key `kumite`.

    `network` lies on the CPU. Raises `InvalidInput` when the packages for it are missing.
    """
    _need("onnx", "onnxscript")
    one = OneStep(copy.deepcopy(network).requires_grad_(False)).eval()
    batch = torch.export.Dim("batch")
    # Two rows: of one, the exporter would conclude that there is never another number.
    inputs = one.example(2)
    shapes: list[Any] = [{0: batch} for _ in inputs]
    with _quiet():
        program = torch.onnx.export(
            one,
            inputs,
            dynamo=True,
            input_names=one.input_names,
            output_names=one.output_names,
            dynamic_shapes=(*shapes[:3], tuple(shapes[3:])),
        )
    assert program is not None
    program.model.metadata_props["kumite"] = card.to_json()
    content: bytes = program.model_proto.SerializeToString()
    return content


def write_onnx(path: Path, network: PlayingNetwork, card: SnapshotCard) -> None:
    """Writes the graph; raises `InvalidInput` or `StorageFull` when it can't be written."""
    write_whole(path, onnx_graph(network, card))


def _need(*packages: str) -> None:
    for package in packages:
        try:
            importlib.import_module(package)
        except ImportError:
            raise InvalidInput(
                f"onnx and folder need the package {package}: run `.venv/bin/python -m pip install "
                "onnx onnxscript` (the extra `export`), or choose --format sb3, which needs "
                "nothing more"
            ) from None


@contextmanager
def _quiet() -> Iterator[None]:
    """Silences the exporter's notes on optional packages and deprecations."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
