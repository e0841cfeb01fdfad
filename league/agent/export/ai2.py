"""Exports a snapshot, or a mixture, as a Python file for UTMIST's AI² tournament.

The tournament expects the file as `user/my_agent.py`. The file is a copy of `ai2_agent.py`, into
which this module inserts the conversion of observations, a card and the weights.
"""

from __future__ import annotations

import base64
import hashlib
import pprint
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from league.agent.config import AgentConfig
from league.agent.contract import PlayingNetwork
from league.agent.export.ai2_check import MOST_BYTES
from league.agent.network import WAVES
from league.agent.snapshot import SnapshotCard
from league.errors import InvalidInput
from league.games.ai2 import observation
from league.runs.files import write_whole


class Exported(NamedTuple):
    """Holds a snapshot for the file, and the share of the matches that the snapshot plays."""

    name: str
    network: PlayingNetwork
    card: SnapshotCard
    share: float = 1.0


def write_ai2(path: Path, members: Sequence[Exported], *, name: str, greedy: bool) -> None:
    """Writes the file.

    Args:
        members: the snapshots. When a match begins, the agent draws one of them.
        name: name of the whole agent, for the file's readers.
        greedy: whether the agent takes the likeliest keys instead of sampling.

    Raises:
        InvalidInput: a snapshot plays another game, or the file would be too large or can't be
            written.
        StorageFull: the disk is full.
    """
    cards, arrays = zip(*map(_card, members), strict=True)
    flat = [array.tobytes() for network in arrays for array in network.values()]
    text = base64.b85encode(zlib.compress(b"".join(flat), 9)).decode()
    values = {
        "name": name,
        "greedy": greedy,
        "members": cards,
        "weights_sha256": hashlib.sha256(text.encode()).hexdigest(),
    }
    lines = "\n".join(text[at : at + 100] for at in range(0, len(text), 100))
    conversion = Path(observation.__file__).read_text(encoding="utf-8")
    about = pprint.pformat(values, width=100, sort_dicts=False)
    conversion = conversion.partition("import numpy as np\n")[2]
    agent = (Path(__file__).parent / "ai2_agent.py").read_text(encoding="utf-8")
    for placeholder, content in (
        ("from league.games.ai2.observation import converted\n", f"{conversion}\n"),
        (
            "CARD: dict[str, Any] = {}",
            f"CARD = {about}",
        ),
        ('WEIGHTS = ""', f'WEIGHTS = """\n{lines}\n"""'),
    ):
        agent = agent.replace(placeholder, content)
    if (size := len(agent.encode())) > MOST_BYTES:
        raise InvalidInput(
            f"{path} would have {size / 1e6:,.0f} MB for {len(members)} snapshots, and GitHub "
            "takes 100: name fewer, as in main@1000=1,main@2000=1"
        )
    write_whole(path, agent)


def _card(member: Exported) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Returns a member's entry in the file's card (its description), and the member's weights."""
    name, network, card, share = member
    if card.game != "brawl":
        raise InvalidInput(
            f"{name} plays {card.game}, and the tournament's game is brawl: name a snapshot of it"
        )
    arrays = {  # the critic does not play
        key: tensor.detach().cpu().float().numpy().astype("<f4")
        for key, tensor in network.state_dict().items()
        if not key.startswith("critic")
    }
    sizes = network.config.to_dict()
    sizes["actor_layers"] = sum(key.startswith("actor.hidden.") for key in arrays) // 2
    if isinstance(network.config, AgentConfig):
        sizes |= {"pool": network.config.pool, "waves": WAVES}
        sizes["places"] = list(network.config.places)  # numpy reads a tuple as an index of two axes
    values = {
        "snapshot": name,
        "share": share,
        "step": card.step,
        "game_version": card.game_version,
        "frame_skip": card.frame_skip,
        "network": sizes,
        "shapes": {key: array.shape for key, array in arrays.items()},
    }
    return values, arrays
