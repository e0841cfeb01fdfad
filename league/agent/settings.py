"""The `[agent]` section: which network plays, and how much of the opponent's past it sees."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from league.settings.base import Settings


class AgentSettings(Settings):
    """Size and history of the agent. Snapshots of other sizes can still be met as opponents."""

    size: Literal["tiny", "base", "large"] = "large"
    """Widths and depth of the network. `large` is what long runs use; `tiny` fits two CPU cores."""

    encoder: Literal["streaming", "window"] = "streaming"
    """How the opponent's past is encoded: `streaming` costs one entry a step; `window` encodes
    the whole window afresh at every step and exists to compare with.
    """

    sequence_length: int = Field(default=65, ge=2, le=4096)
    """Entries of the opponent's past, the current one included. 65 at one a frame are 2.17
    seconds.
    """

    history_stride: int = Field(default=1, ge=1, le=60)
    """Frames between entries; equals game.frame_skip, because an entry is kept at every
    decision.
    """

    span: int = Field(default=6, ge=2, le=256)
    """Entries that one streaming layer attends to. With 6 layers, 6 leaves 35 outputs to pool over
    at 65 entries."""

    key_bias: float = Field(default=-1.5, ge=-10.0, le=10.0)
    """Initial logit of every key: -1.5 holds a key 18 % of the time. At 0 half the keys are down
    at once, and a fresh policy mostly falls off the stage.
    """

    history: bool = True
    """Whether the encoder sees the opponent's past. Without, it gets the current entry alone;
    the network stays as it is, to compare with.
    """

    recurrent: bool = True
    """Whether the LSTM remembers. Without, its state is cleared before every decision, to
    compare with.
    """
