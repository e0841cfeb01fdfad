"""A snapshot as a self-contained folder: a graph, its card, a program of one class, and a page."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from league.agent.contract import PlayingNetwork
from league.agent.export.onnx_graph import OneStep, onnx_graph
from league.agent.snapshot import SnapshotCard
from league.errors import InvalidInput
from league.games.base import CHOICE, GameSpec
from league.runs.files import write_whole

FORMAT = "kumite-folder-1"
FILES = ("model.onnx", "card.json", "play.py", "README.md")


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
    one = OneStep(network)
    parts = dict(zip(one.state_names, (part for part in one.empty if part.numel()), strict=True))
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
            for name, part in parts.items()
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
