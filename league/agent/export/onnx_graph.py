"""A snapshot's step as an ONNX graph: observation and state in, logits and the next state out.

The graph computes what `PlayingNetwork.step` does, for any number of rows. It does not sample: its
caller draws actions from the logits. It keeps no state either; the next step's `NAME` is this one's
`next_NAME`. `write_folder` adds a card, a program of one class that plays it, and a page.

Shape suffixes: B rows, O observation, A actions.
"""

from __future__ import annotations

import copy
import hashlib
import json
import logging
import warnings
from collections.abc import Iterable
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
"""What the graph calls the parts of an `AgentState`; parts of no width are left out."""
FORMAT = "kumite-folder-1"
FILES = ("model.onnx", "card.json", "play.py", "README.md")


class OneStep(nn.Module):
    """`step` with plain tensors in and out, in the order of `input_names` and `output_names`."""

    def __init__(self, network: PlayingNetwork) -> None:
        super().__init__()
        self.network, self.empty = network, network.initial_state(1)
        self.masked = network.config.action_kind == CHOICE
        with torch.inference_mode():
            observation, starts, left = self.example(1)[:3]
            latent = network.step(observation, starts, self.empty, left).latent_BD
        self.has_latent = latent.numel() > 0
        self.carried = {
            name: part for name, part in zip(STATE_NAMES, self.empty, strict=True) if part.numel()
        }
        """The parts of the state that the graph carries."""
        legal = ["legal"] if self.masked else []
        self.input_names = ["observation", "starts", "time_left", *legal, *self.carried]
        self.output_names = ["logits", "value", *(["latent"] if self.has_latent else [])]
        self.output_names += [f"next_{name}" for name in self.carried]

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


def onnx_graph(network: PlayingNetwork, card: SnapshotCard) -> bytes:
    """The graph as the content of a `.onnx` file, its card under the metadata key `kumite`.

    `network` lies on the CPU. Raises `InvalidInput` when the packages for it are missing.
    """
    try:
        import onnx  # noqa: F401
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise InvalidInput(
            f"onnx and folder need the package {error.name}: run `.venv/bin/python -m pip install "
            "onnx onnxscript` (the extra `export`), or choose --format sb3, which needs nothing "
            "more"
        ) from None
    one = OneStep(copy.deepcopy(network).requires_grad_(False)).eval()
    batch = torch.export.Dim("batch")
    # Two rows: of one, the exporter would conclude that there is never another number.
    inputs = one.example(2)
    shapes: list[Any] = [{0: batch} for _ in inputs]
    # The exporter notes optional packages and deprecations.
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.onnx.export(
            one,
            inputs,
            dynamo=True,
            verbose=False,
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


def write_folder(path: Path, network: PlayingNetwork, card: SnapshotCard, spec: GameSpec) -> None:
    """Writes `FILES` into the folder `path`, and makes the folder if it is missing.

    Raises:
        InvalidInput: the folder holds other files, or can't be written.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        strangers = sorted({file.name for file in path.iterdir()} - {*FILES, "__pycache__"})
    except OSError as error:
        raise InvalidInput(
            f"{path} can't be a folder ({error.strerror}): name another place"
        ) from None
    if strangers:
        raise InvalidInput(
            f"{path} holds other files ({strangers[0]}): name a new or an empty folder"
        )
    graph = onnx_graph(network, card)
    values = _card(network, card, spec) | {"model_sha256": hashlib.sha256(graph).hexdigest()}
    write_whole(path / "play.py", (Path(__file__).parent / "play.py").read_bytes())
    write_whole(path / "README.md", page(card, spec))
    write_whole(path / "model.onnx", graph)
    write_whole(path / "card.json", json.dumps(values, indent=1))


def _card(network: PlayingNetwork, card: SnapshotCard, spec: GameSpec) -> dict[str, Any]:
    """What `play.py` needs to know, and where the snapshot comes from."""
    return {
        "format": FORMAT,
        "observation_size": spec.observation_size,
        "observation_names": list(spec.observation_names),
        "action_size": spec.action_size,
        "action_names": list(spec.action_names),
        "action_kind": spec.action_kind,
        "frame_skip": card.frame_skip,
        "frames_per_second": spec.frames_per_second,
        "state": {
            name: {"shape": list(part.shape[1:]), "type": str(part.dtype).removeprefix("torch.")}
            for name, part in OneStep(network).carried.items()
        },
        "snapshot": json.loads(card.to_json()),
    }


def page(card: SnapshotCard, spec: GameSpec) -> str:
    """The folder's README.md."""
    names = spec.observation_names or [f"number {index}" for index in range(spec.observation_size)]
    return PAGE.format(
        card=card,
        spec=spec,
        call="agent.act(observation, legal)"
        if spec.action_kind == CHOICE
        else "agent.act(observation)",
        observations=_table(names),
        what=_CHOOSE if spec.action_kind == CHOICE else _PRESS,
        actions=_table(spec.action_names),
        legal=_LEGAL if spec.action_kind == CHOICE else "",
    )


def _table(names: Iterable[str]) -> str:
    rows = (f"| {index} | {name} |" for index, name in enumerate(names))
    return "\n".join(["| number | what |", "|---|---|", *rows])


_PRESS = "Any of these keys may be down at once: zeros and ones"
_CHOOSE = "One of these is chosen: a one-hot vector"
_LEGAL = """
`legal`, bool of the same length, says which choices are allowed now; without it all are.
"""
PAGE = """\
# An agent for {card.game}

A snapshot at step {card.step:,} that plays {card.game} version {card.game_version}. It needs
Python with numpy and onnxruntime alone.

```python
from play import Agent

agent = Agent(seed=0)
agent.reset()  # at the start of every match
action = {call}  # once a frame
```

`greedy=True` takes the likeliest action; without it actions are drawn by their probabilities, as
the agent was trained. `agent.value` is its value of the position, `agent.latent` its reading of the
opponent's past. `card.json` says where the snapshot comes from; `model.onnx` is one step of it, for
any program that reads ONNX.

## Observation
float32 `[{spec.observation_size}]` in [-1, 1]. The first {spec.own_size} numbers are the player's
own part, the others are its opponent's.

{observations}

## Action
{what}, uint8 `[{spec.action_size}]`, in every frame.

{actions}
{legal}
## Time
The game has {spec.frames_per_second} frames a second, and the agent decides
every {card.frame_skip}. Call `act` at every frame: it holds an action for that long. Where the
environment itself repeats an action, call `decide` once a decision instead.
"""
