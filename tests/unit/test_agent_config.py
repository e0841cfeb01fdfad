"""Sizes and settings of the agent: the presets' figures, and what is refused in which words."""

import pytest
from agents import DEEP, TINY

from league.agent.config import AgentConfig, AgentSettings
from league.errors import ConfigError, DataCorrupt
from league.games.base import GameSpec

SPEC = GameSpec(
    name="any",
    version="1",
    frames_per_second=30,
    observation_size=64,
    own_size=32,
    action_size=10,
    action_names=(),
    reward_terms=(),
    stats=(),
    bots=(),
    max_frames=100,
)


def test_the_defaults_are_the_large_agent_with_35_outputs_to_pool() -> None:
    config = AgentConfig.of(AgentSettings(), SPEC)
    assert (config.layers, config.width, config.memory, config.observation_hidden) == (
        6,
        256,
        512,
        512,
    )
    assert (config.span, config.pool, config.sequence_length, config.context) == (6, 35, 65, 64)
    assert config.key_bias == -1.5
    assert (config.entry_size, config.action_size) == (32, 10)


def test_a_length_that_leaves_no_pool_names_one_that_does() -> None:
    with pytest.raises(ConfigError, match=r"at least 31\b"):
        AgentConfig.of(AgentSettings(size="large", sequence_length=30), SPEC)
    assert AgentConfig.of(AgentSettings(size="large", sequence_length=31), SPEC).pool == 1


def test_a_card_brings_the_sizes_back() -> None:
    for config in (TINY, DEEP):
        assert AgentConfig.from_dict(config.to_dict()) == config


@pytest.mark.parametrize(
    "change",
    [
        {"width": 10**9},
        {"layers": 10**6},
        {"width": 63},
        {"encoder": "other"},
        {"layers": "many"},
        {"head_widths": [10**9]},
        {"surprise": 1},
        {"own_size": 64},
    ],
)
def test_sizes_from_a_crafted_card_are_refused(change: dict) -> None:
    with pytest.raises(DataCorrupt):
        AgentConfig.from_dict({**TINY.to_dict(), **change})
    missing = TINY.to_dict()
    del missing["span"]
    with pytest.raises(DataCorrupt, match="span"):
        AgentConfig.from_dict(missing)
