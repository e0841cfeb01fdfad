"""The `[agent]` settings, and the sizes from which a network is built again. No torch here."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
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
    "observation_size": (1, 1 << 16),
    "own_size": (1, 1 << 16),
    "action_size": (1, 1 << 12),
    "layers": (1, 64),
    "width": (1, 8192),
    "attention_heads": (1, 8192),
    "feed_forward": (1, 32768),
    "observation_hidden": (1, 32768),
    "memory": (1, 8192),
    "sequence_length": (2, 4096),
    "span": (2, 256),
}
_KINDS = {"action_kind": (KEYS, CHOICE), "encoder": ("streaming", "window")}
_PLAIN: dict[str, Callable[[Any], Any]] = {
    "int": int,
    "float": float,
    "str": str,
    "bool": bool,
    "tuple[int, ...]": lambda values: tuple(int(value) for value in values),
}
"""How a card's value becomes a field, by the field's annotation."""


class AgentSettings(Settings):
    """The `[agent]` section: size and history of the agent."""

    size: Literal["tiny", "base", "large"] = "large"
    """Widths and depth of the network. `large` is what long runs use; `tiny` fits two CPU cores.
    Snapshots of other sizes can still be met as opponents."""

    encoder: Literal["streaming", "window"] = "streaming"
    """How the opponent's past is encoded: `streaming` costs one entry a step; `window` encodes
    the whole window again at every step and exists to compare with."""

    sequence_length: int = Field(default=65, ge=2, le=4096)
    """Entries of the opponent's past, one for each decision, the current one included. 65 at one a
    frame are 2.17 seconds."""

    key_bias: float = Field(default=-1.5, ge=-10.0, le=10.0)
    """Initial logit of every key: -1.5 holds a key 18 % of the time. At 0 half the keys are down
    at once, and a fresh policy mostly falls off the stage."""

    history: bool = True
    """Whether the encoder sees the opponent's past; without it, the current entry alone."""

    recurrent: bool = True
    """Whether the LSTM remembers; without it, its state is cleared before every decision."""


@dataclass(frozen=True, kw_only=True)
class AgentConfig:
    """Sizes of one network, checked when it is made.

    Attributes:
        observation_size, own_size: width of an observation and of its first half, the player's
            own; the rest is the opponent's and makes a history entry.
        action_size, action_kind: binary keys, or choices of which one is made.
        layers, width, attention_heads, feed_forward: of the strategy encoder.
        observation_hidden: hidden width of the observation encoder (its output is `width`).
        memory: LSTM width.
        head_widths: hidden widths of actor and critic.
        sequence_length: entries that reach the latent.
        span: entries that a streaming layer attends to.
        key_bias: initial logit of keys (choices begin alike).
        history, recurrent: whether the encoder sees earlier entries, the LSTM earlier states.

    Raises:
        ConfigError: a size can't be used.
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
    span: int = 6
    key_bias: float = -1.5
    action_kind: str = KEYS
    history: bool = True
    recurrent: bool = True

    def __post_init__(self) -> None:
        for name, (least, most) in _LIMITS.items():
            if not least <= getattr(self, name) <= most:
                raise ConfigError(
                    f"agent {name} = {getattr(self, name)} can't be used: it must be {least} to "
                    f"{most}"
                )
        if self.width % self.attention_heads:
            raise ConfigError(
                f"agent width {self.width} can't be split over {self.attention_heads} heads"
            )
        if self.own_size >= self.observation_size:
            raise ConfigError(
                f"agent own_size = {self.own_size} leaves nothing of an observation of "
                f"{self.observation_size} to the opponent"
            )
        for name, known in _KINDS.items():
            if getattr(self, name) not in known:
                raise ConfigError(
                    f"agent {name} = {getattr(self, name)!r} is unknown: {' and '.join(known)} are "
                    "known"
                )
        if not 1 <= len(self.head_widths) <= 16 or not all(
            1 <= width <= 8192 for width in self.head_widths
        ):
            raise ConfigError(
                f"agent head widths {self.head_widths} can't be used: 1 to 16 of up to 8192 can"
            )
        if self.pool < 1:
            raise ConfigError(
                f"agent sequence_length = {self.sequence_length} leaves no output to pool over "
                f"with {self.layers} layers of span {self.span}: set it to at least "
                f"{1 + self.layers * (self.span - 1)}"
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
            **settings.model_dump(exclude={"size"}),
            **SIZES[settings.size],
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values for a card."""
        return {**dataclasses.asdict(self), "head_widths": list(self.head_widths)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> AgentConfig:
        """The reverse of `to_dict`; raises `DataCorrupt`."""
        try:
            given = {
                name: _PLAIN[field](values[name]) for name, field in cls.__annotations__.items()
            }
            if set(values) - set(given):
                raise ValueError(f"unknown {sorted(set(values) - set(given))}")
            return cls(**given)
        except (KeyError, TypeError, ValueError, ConfigError) as error:
            raise DataCorrupt(
                f"a card's agent sizes can't be read ({error}): take the snapshot again"
            ) from None
