"""Lists the architectures that the league's members may have, by the names on their cards (the
descriptions in snapshot files).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from league.agent.config import AgentConfig, NetworkConfig
from league.agent.contract import PlayingNetwork
from league.agent.network import AgentNetwork
from league.agent.perceptron import PERCEPTRON, PerceptronConfig, PerceptronNetwork
from league.errors import DataCorrupt

AGENT = "agent"
"""The league's own architecture. A snapshot's card that names no architecture means this
architecture.
"""
ARCHITECTURES: Mapping[str, tuple[type[Any], type[Any]]] = {
    AGENT: (AgentConfig, AgentNetwork),
    PERCEPTRON: (PerceptronConfig, PerceptronNetwork),
}
"""Config and network by name."""


def config_of(values: Mapping[str, Any]) -> NetworkConfig:
    """Returns the config that the values on a snapshot's card describe. Raises `DataCorrupt` for
    wrong values.
    """
    name = values.get("architecture", AGENT)
    if name not in ARCHITECTURES:
        raise DataCorrupt(
            f"a card names the architecture {name!r}, this version knows "
            f"{', '.join(ARCHITECTURES)}: use the version that made it"
        )
    sizes = {key: value for key, value in values.items() if key != "architecture"}
    config: NetworkConfig = ARCHITECTURES[name][0].from_dict(sizes)
    return config


def network_of(config: NetworkConfig) -> PlayingNetwork:
    """Makes a network with these sizes and fresh weights, on torch's current default device."""
    for kind, network in ARCHITECTURES.values():
        if isinstance(config, kind):
            made: PlayingNetwork = network(config)
            return made
    raise TypeError(f"{type(config).__name__} belongs to no architecture: add it to ARCHITECTURES")
