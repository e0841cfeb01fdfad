"""A snapshot as one Python file that UTMIST's AI² tournament takes as `user/my_agent.py`.

The file is `ai2_agent.py` with the conversion of observations, a card and the weights in it.
"""

from __future__ import annotations

import base64
import hashlib
import pprint
import zlib
from pathlib import Path

from league.agent.config import AgentConfig
from league.agent.contract import PlayingNetwork
from league.agent.network import WAVES
from league.agent.snapshot import SnapshotCard
from league.errors import InvalidInput
from league.games.ai2 import observation
from league.runs.files import write_whole


def write_ai2(
    path: Path, network: PlayingNetwork, card: SnapshotCard, *, name: str, greedy: bool
) -> None:
    """Writes the file.

    Args:
        name: of the snapshot, for its readers.
        greedy: whether it presses the likeliest keys instead of drawing them.

    Raises:
        InvalidInput: the snapshot plays another game, or the file can't be written.
        StorageFull: the disk is full.
    """
    if card.game != "brawl":
        raise InvalidInput(
            f"{name} plays {card.game}, and the tournament's game is brawl: name a snapshot of it"
        )
    arrays = {  # the critic does not play
        key: tensor.detach().cpu().float().numpy().astype("<f4")
        for key, tensor in network.state_dict().items()
        if not key.startswith("critic.")
    }
    sizes = network.config.to_dict()
    sizes["actor_layers"] = sum(key.startswith("actor.hidden.") for key in arrays) // 2
    if isinstance(network.config, AgentConfig):
        sizes |= {"pool": network.config.pool, "waves": WAVES}
        sizes["places"] = list(network.config.places)  # a tuple would be an index of two axes
    packed = zlib.compress(b"".join(array.tobytes() for array in arrays.values()), 9)
    text = base64.b85encode(packed).decode()
    values = {
        "snapshot": name,
        "step": card.step,
        "game_version": card.game_version,
        "frame_skip": card.frame_skip,
        "greedy": greedy,
        "network": sizes,
        "shapes": {key: array.shape for key, array in arrays.items()},
        "weights_sha256": hashlib.sha256(text.encode()).hexdigest(),
    }
    lines = "\n".join(text[at : at + 100] for at in range(0, len(text), 100))
    conversion = Path(observation.__file__).read_text(encoding="utf-8")
    about = pprint.pformat(values, width=100, sort_dicts=False)
    conversion = conversion.partition("import numpy as np\n")[2]
    agent = (Path(__file__).parent / "ai2_agent.py").read_text(encoding="utf-8")
    for place, content in (
        ("from league.games.ai2.observation import converted\n", f"{conversion}\n"),
        (
            "CARD: dict[str, Any] = {}",
            f"CARD = {about}",
        ),
        ('WEIGHTS = ""', f'WEIGHTS = """\n{lines}\n"""'),
    ):
        agent = agent.replace(place, content)
    write_whole(path, agent)
