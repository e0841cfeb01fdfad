"""Sizes of the networks: the presets' figures, what a card brings back, and what is refused."""

import json

import pytest
from agents import DEEP, PERCEPTRON, TINY

from league.agent.architectures import config_of
from league.agent.config import AgentConfig, AgentSettings
from league.agent.perceptron import PerceptronConfig
from league.errors import ConfigError, DataCorrupt
from league.games.registry import game_spec

SPEC = game_spec("brawl")


def test_the_defaults_are_the_large_agent_with_35_outputs_to_pool() -> None:
    config = AgentConfig.of(AgentSettings(), SPEC)
    sizes = (config.layers, config.width, config.memory, config.head_widths)
    assert sizes == (6, 256, 512, (96, 96))
    assert (config.span, config.pool, config.sequence_length, config.context) == (6, 35, 65, 64)
    assert config.places == (0, 1)
    assert (config.entry_size, config.action_size, config.key_bias) == (42, 10, -1.5)


def test_a_length_that_leaves_no_pool_names_one_that_does() -> None:
    with pytest.raises(ConfigError, match=r"at least 31\b"):
        AgentConfig.of(AgentSettings(size="large", sequence_length=30), SPEC)
    assert AgentConfig.of(AgentSettings(size="large", sequence_length=31), SPEC).pool == 1


@pytest.mark.parametrize("config", [TINY, DEEP, PERCEPTRON])
def test_a_card_brings_the_sizes_back(config: AgentConfig) -> None:
    again = config_of(json.loads(json.dumps(config.to_dict())))
    assert again == config
    assert hash(again) == hash(config)


@pytest.mark.parametrize(
    ("config", "change", "words"),
    [
        (TINY, {"width": 10**9}, "width"),
        (TINY, {"layers": 10**6}, "layers"),
        (TINY, {"width": 63}, "63"),
        (TINY, {"encoder": "other"}, "encoder"),
        (TINY, {"memory": "many"}, "memory"),
        (TINY, {"key_bias": "low"}, "key_bias"),
        (TINY, {"head_widths": [10**9]}, "head_widths"),
        (TINY, {"surprise": 1}, "surprise"),
        (TINY, {"own_size": 64}, "own_size"),
        (TINY, {"places": [31, 32]}, "places"),
        (TINY, {"places": [-1]}, "places"),
        (PERCEPTRON, {"activation": "sine"}, "sine"),
        (PERCEPTRON, {"action_kind": "wishes"}, "wishes"),
        (PERCEPTRON, {"policy_widths": [0]}, "widths"),
        (PERCEPTRON, {"value_widths": [8] * 17}, "widths"),
        (PERCEPTRON, {"observation_size": 0}, "observation_size = 0"),
        (PERCEPTRON, {"architecture": "oracle"}, "oracle"),
    ],
)
def test_sizes_from_a_crafted_card_are_refused(
    config: AgentConfig, change: dict, words: str
) -> None:
    with pytest.raises(DataCorrupt, match=words):
        config_of(config.to_dict() | change)


def test_sizes_that_are_missing_are_named_and_a_program_may_not_set_others_either() -> None:
    values = TINY.to_dict()
    del values["layers"]
    with pytest.raises(DataCorrupt, match="layers"):
        config_of(values)
    with pytest.raises(ConfigError, match="widths"):
        PerceptronConfig(observation_size=4, action_size=2, policy_widths=(0,))
