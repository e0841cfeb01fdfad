"""Holds the `[agent]` settings, and the sizes from which a network can be rebuilt.

This module does not load torch.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, field_validator

from league.errors import ConfigError, DataCorrupt
from league.games.base import CHOICE, KEYS, GameSpec
from league.settings.base import Settings
from league.settings.presets import known_near

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


class AgentSettings(Settings):
    """The `[agent]` section: size and history of the agent."""

    size: Literal["tiny", "base", "large"] = "large"
    """Widths and depth of the network. `large` suits long runs, and `tiny` suits two CPU cores.
    Snapshots of another size can still be opponents."""

    sizes: dict[str, int | tuple[int, ...]] = Field(default_factory=dict)
    """Sizes by name, to change some of the sizes that `size` sets: layers, width (of the encoder
    and its latent), attention_heads, feed_forward, observation_hidden, memory (of the LSTM),
    head_widths.
    """

    encoder: Literal["streaming", "none"] = "streaming"
    """How the network encodes the opponent's past. `streaming` adds an encoder, which reads a new
    entry at each step. `none` leaves the past to the LSTM."""

    sequence_length: int = Field(default=65, ge=2, le=4096)
    """Number of entries of the opponent's past, including the current entry. Each decision adds an
    entry. With a decision in every frame, 65 entries are 2.17 seconds."""

    key_bias: float = Field(default=-1.5, ge=-10.0, le=10.0)
    """Initial logit of every key. With -1.5 a key is held 18 % of the time. With 0 half of the keys
    are held at once, and a fresh policy mostly falls off the stage."""

    recurrent: bool = True
    """Whether the LSTM remembers. If false, its state is cleared before every decision."""

    @field_validator("sizes")
    @classmethod
    def _check_sizes(cls, sizes: dict[str, Any]) -> dict[str, Any]:
        usual = SIZES["large"]
        for name, value in sizes.items():
            if name not in usual:
                raise ValueError(f"there is no size {name!r}: {known_near(name, usual)}")
            if isinstance(value, tuple) != isinstance(usual[name], tuple):
                kind = "a list of numbers" if isinstance(usual[name], tuple) else "one number"
                raise ValueError(f"{name} is {value}: give it {kind}")
        return sizes


@dataclass(frozen=True, kw_only=True)
class NetworkConfig:
    """Holds the sizes from which a network can be built. The constructor checks them.

    Raises:
        ConfigError: a size can't be used.
    """

    MOST: ClassVar[Mapping[str, int]] = {"layers": 64, "span": 256, "sequence_length": 4096}
    """Largest values by field. Other fields may be at most 65,536."""
    LEAST: ClassVar[Mapping[str, int]] = {"places": 0}
    """Smallest values by field. Other fields must be at least 1."""
    KINDS: ClassVar[Mapping[str, Collection[str]]] = {"action_kind": (KEYS, CHOICE)}
    """The allowed values of some fields, by field."""
    REMOVED: ClassVar[Mapping[str, Any]] = {}
    """Former fields that the cards (descriptions) of older snapshots still have. A card with any
    other value than the value given here can't be loaded.
    """

    observation_size: int
    action_size: int
    action_kind: str = KEYS

    def __post_init__(self) -> None:
        for name, value in dataclasses.asdict(self).items():
            least, most = self.LEAST.get(name, 1), self.MOST.get(name, 1 << 16)
            values = value if isinstance(value, tuple) else (value,)
            sizes = [size for size in values if type(size) is int]
            if len(sizes) > 16 or not all(least <= size <= most for size in sizes):
                raise ConfigError(
                    f"network {name} = {value} can't be used: it must be {least} to {most}, and a "
                    "list may have 16 such numbers"
                )
            if name in self.KINDS and value not in self.KINDS[name]:
                raise ConfigError(
                    f"network {name} = {value!r} is unknown: {', '.join(self.KINDS[name])} are "
                    "known"
                )

    def to_dict(self) -> dict[str, Any]:
        """Returns the sizes as plain values, for a snapshot's card."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Reads the values that `to_dict` returned, even after a round trip through JSON. Raises
        `DataCorrupt` if the values can't be read.
        """
        try:
            fields: dict[str, Any] = {
                name: _tuple_of(value) if isinstance(value, list) else value
                for name, value in values.items()
                if name not in cls.REMOVED or value != cls.REMOVED[name]
            }
            config = cls(**fields)
            for field in dataclasses.fields(cls):
                kind = type(getattr(config, field.name)).__name__
                if not str(field.type).startswith(kind):
                    raise TypeError(f"{field.name} is {kind}, not {field.type}")
            return config
        except (TypeError, ValueError, ConfigError) as error:
            raise DataCorrupt(
                f"a card's network sizes can't be read ({error}): take the snapshot again"
            ) from None


def _tuple_of(values: list[Any]) -> tuple[Any, ...]:
    """Turns a list of whole numbers, or a list of such lists, into tuples. Raises `TypeError` or
    `ValueError`.
    """
    return tuple(tuple(map(int, x)) if isinstance(x, list) else int(x) for x in values)


@dataclass(frozen=True, kw_only=True)
class AgentConfig(NetworkConfig):
    """Holds the sizes of an `AgentNetwork`.

    Attributes:
        own_size: width of the observation's first part, which describes the player itself. The rest
            of the observation mainly describes the opponent, and becomes an entry of the history.
        layers: number of layers of the strategy encoder.
        width: width of the strategy encoder.
        attention_heads: number of attention heads of the strategy encoder.
        feed_forward: width of the strategy encoder's feed-forward layers.
        observation_hidden: hidden width of the observation encoder (the width of its output is
            `width`).
        memory: width of the LSTM.
        head_widths: hidden widths of actor and critic.
        sequence_length: number of entries of the opponent's past that affect the strategy latent.
        span: number of entries that a layer of the streaming encoder attends to.
        key_bias: initial logit of keys. Choices always begin with equal logits.
        recurrent: whether the LSTM keeps its state between decisions.
        places: observed positions, as in `GameSpec`. Empty in older snapshots.
        ids: vocabularies of observed ids, as in `GameSpec`. Empty in older snapshots.
    """

    REMOVED: ClassVar = {"history": True}
    KINDS: ClassVar = {**NetworkConfig.KINDS, "encoder": ("streaming", "none")}

    own_size: int
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
    recurrent: bool = True
    places: tuple[int, ...] = ()
    ids: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.width % self.attention_heads:
            raise ConfigError(
                f"agent width {self.width} can't be split over {self.attention_heads} heads"
            )
        if self.own_size >= self.observation_size:
            raise ConfigError(
                f"agent own_size = {self.own_size} leaves nothing of an observation of "
                f"{self.observation_size} to the opponent"
            )
        if max(self.places, default=0) >= min(self.own_size, self.entry_size):
            raise ConfigError(
                f"agent places = {self.places} are not all within both players' parts of an "
                f"observation, {self.own_size} and {self.entry_size} numbers"
            )
        places = {index for _, *places in self.ids for index in places}
        words = [size for size, *_ in self.ids]
        if not (
            len(words) <= 16
            and all(1 <= size <= 1 << 16 for size in words)
            and places <= set(range(self.observation_size))
        ):
            raise ConfigError(
                f"agent ids = {str(self.ids)[:100]} can't be used: up to 16 vocabularies of 1 to "
                f"65,536 words stand in the {self.observation_size} numbers of an observation"
            )
        if self.pool < 1:
            raise ConfigError(
                f"agent sequence_length = {self.sequence_length} leaves no output to pool over "
                f"with {self.layers} layers of span {self.span}: set it to at least "
                f"{1 + self.layers * (self.span - 1)}"
            )

    @property
    def pool(self) -> int:
        """Number of encoder outputs that the pooling reads.

        This number follows from `1 + layers (span - 1) + (pool - 1) = sequence_length`.
        """
        if self.encoder != "streaming":
            return self.sequence_length
        return self.sequence_length - self.layers * (self.span - 1)

    @property
    def context(self) -> int:
        """Number of earlier entries that affect the current output."""
        return 0 if self.encoder == "none" else self.sequence_length - 1

    @property
    def entry_size(self) -> int:
        """Width of a history entry: the part of an observation that is not the player's own."""
        return self.observation_size - self.own_size

    @classmethod
    def of(cls, settings: AgentSettings, spec: GameSpec) -> AgentConfig:
        """Returns the sizes for a game, from the settings in [agent].

        Raises:
            ConfigError: a size can't be used.
        """
        sizes: dict[str, Any] = SIZES[settings.size] | settings.sizes
        return cls(
            observation_size=spec.observation_size,
            own_size=spec.own_size,
            action_size=spec.action_size,
            action_kind=spec.action_kind,
            places=spec.places,
            ids=spec.ids,
            **settings.model_dump(exclude={"size", "sizes"}),
            **sizes,
        )
