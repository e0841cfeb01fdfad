"""The agent's resolved sizes: everything needed to build the network again from a card. No torch
here.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field

from league.errors import ConfigError, DataCorrupt
from league.games.base import CHOICE, KEYS, GameSpec
from league.settings.base import Settings

SIZES: dict[str, dict[str, Any]] = {
    "tiny": {
        "layers": 2,
        "width": 64,
        "attention_heads": 4,
        "feed_forward": 256,
        "observation_hidden": 128,
        "memory": 128,
        "head_widths": (64, 64),
    },
    "base": {
        "layers": 4,
        "width": 128,
        "attention_heads": 8,
        "feed_forward": 512,
        "observation_hidden": 256,
        "memory": 256,
        "head_widths": (96, 96),
    },
    "large": {
        "layers": 6,
        "width": 256,
        "attention_heads": 8,
        "feed_forward": 1024,
        "observation_hidden": 512,
        "memory": 512,
        "head_widths": (96, 96),
    },
}

_LIMITS = {
    "layers": 64,
    "width": 8192,
    "feed_forward": 32768,
    "observation_hidden": 32768,
    "memory": 8192,
}


@dataclass(frozen=True, kw_only=True)
class AgentConfig:
    """Sizes of one network. Checked at birth; raises `ConfigError`.

    Attributes:
        observation_size, own_size: width of an observation and of its first, own half; the rest is
            the opponent's and makes a history entry.
        action_size, action_kind: binary keys, or choices of which one is made. layers, width,
        attention_heads, feed_forward: of the strategy encoder. observation_hidden: hidden width of
        the observation encoder (its output is `width`). memory: LSTM width. head_widths: hidden
        widths of actor and critic. span: entries a streaming layer attends to. sequence_length:
        entries that reach the latent. history_stride: frames between entries. key_bias: initial
        logit of keys (choices begin alike). history, recurrent: whether the encoder sees earlier
        entries, and the LSTM its earlier states.
    """

    observation_size: int
    own_size: int
    action_size: int
    layers: int
    width: int
    attention_heads: int
    feed_forward: int
    observation_hidden: int
    memory: int
    head_widths: tuple[int, ...]
    encoder: str = "streaming"
    sequence_length: int = 65
    history_stride: int = 1
    span: int = 6
    key_bias: float = -1.5
    action_kind: str = KEYS
    history: bool = True
    recurrent: bool = True

    def __post_init__(self) -> None:
        for name, limit in _LIMITS.items():
            if not 1 <= getattr(self, name) <= limit:
                raise ConfigError(
                    f"agent {name} = {getattr(self, name)} can't be used: 1 to {limit} is wanted"
                )
        if self.attention_heads < 1 or self.width % self.attention_heads:
            raise ConfigError(
                f"agent width {self.width} can't be split over {self.attention_heads} heads"
            )
        if (
            not 0 < self.own_size < self.observation_size <= 1 << 16
            or not 0 < self.action_size <= 1 << 12
        ):
            raise ConfigError(
                f"agent sizes observation {self.observation_size}, own {self.own_size}, "
                f"actions {self.action_size} can't be used"
            )
        if self.action_kind not in (KEYS, CHOICE):
            raise ConfigError(
                f"agent action_kind = {self.action_kind!r} is unknown: keys and choice are known"
            )
        if self.encoder not in ("streaming", "window"):
            raise ConfigError(
                f"agent encoder = {self.encoder!r} is unknown: streaming and window are known"
            )
        if not 2 <= self.sequence_length <= 4096 or not 2 <= self.span <= 256:
            raise ConfigError(
                f"agent sequence_length = {self.sequence_length} or span = {self.span} can't be used: "
                "2 to 4096 entries and spans of 2 to 256 can"
            )
        if not 1 <= len(self.head_widths) <= 16 or not all(
            1 <= width <= 8192 for width in self.head_widths
        ):
            raise ConfigError(
                f"agent head widths {self.head_widths} can't be used: 1 to 16 of up to 8192 can"
            )
        if self.pool < 1:
            raise ConfigError(
                f"agent sequence_length = {self.sequence_length} leaves no output to pool over with "
                f"{self.layers} layers of span {self.span}: set it to at least "
                f"{1 + self.layers * (self.span - 1)}, or lower the span"
            )

    @property
    def pool(self) -> int:
        """Encoder outputs pooled over: `1 + layers (span - 1) + (pool - 1) = sequence_length`."""
        if self.encoder == "window":
            return self.sequence_length
        return self.sequence_length - self.layers * (self.span - 1)

    @property
    def context(self) -> int:
        """Earlier entries that reach the current output."""
        return self.sequence_length - 1

    @property
    def entry_size(self) -> int:
        """Width of a history entry: the opponent's half of an observation."""
        return self.observation_size - self.own_size

    @classmethod
    def of(cls, settings: AgentSettings, spec: GameSpec) -> AgentConfig:
        """The sizes for a game; raises `ConfigError`."""
        return cls(
            observation_size=spec.observation_size,
            own_size=spec.own_size,
            action_size=spec.action_size,
            action_kind=spec.action_kind,
            encoder=settings.encoder,
            sequence_length=settings.sequence_length,
            history_stride=settings.history_stride,
            span=settings.span,
            key_bias=settings.key_bias,
            history=settings.history,
            recurrent=settings.recurrent,
            **SIZES[settings.size],
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values for a card."""
        return {**dataclasses.asdict(self), "head_widths": list(self.head_widths)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> AgentConfig:
        """The reverse of `to_dict`; raises `DataCorrupt`."""
        try:
            widths = tuple(int(width) for width in values["head_widths"])
            values = {"history": True, "recurrent": True, **values}  # older cards don't name them
            kinds = {
                "encoder": str,
                "key_bias": float,
                "action_kind": str,
                "history": bool,
                "recurrent": bool,
            }
            plain = {f.name for f in dataclasses.fields(cls)} - {"head_widths"}
            if set(values) - plain - {"head_widths"}:
                raise ValueError(f"unknown {sorted(set(values) - plain - {'head_widths'})}")
            sizes: dict[str, Any] = {name: kinds.get(name, int)(values[name]) for name in plain}
            return cls(head_widths=widths, **sizes)
        except (KeyError, TypeError, ValueError, ConfigError) as error:
            raise DataCorrupt(
                f"a card's agent sizes can't be read ({error}): take the snapshot anew"
            ) from None


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
