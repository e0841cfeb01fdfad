"""Sizes of the networks: the presets' figures, what a card brings back, and what is refused."""

import json

import pytest
import torch
from agents import DEEP, PERCEPTRON, RECURRENT, TINY, WITH_IDS

from league.agent.architectures import config_of
from league.agent.config import AgentConfig, AgentSettings
from league.agent.network import AgentNetwork
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


def test_single_sizes_replace_those_of_the_shorthand() -> None:
    own = {"layers": 3, "width": 96, "memory": 160, "head_widths": [48]}
    config = AgentConfig.of(AgentSettings(size="tiny", sizes=own), SPEC)
    assert (config.layers, config.width, config.memory, config.head_widths) == (3, 96, 160, (48,))
    assert (config.attention_heads, config.feed_forward, config.observation_hidden) == (4, 256, 128)
    with torch.device("meta"):
        network = AgentNetwork(config)
    assert network.initial_state(2).h_BH.shape == (2, 160)


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        ({"widht": 96}, "widht.*'width'"),
        ({"width": [96]}, r"width.*\[96\]"),
        ({"head_widths": 96}, "head_widths.*list"),
        ({"width": 90}, "90 .*4 heads"),
        ({"memory": 0}, "memory = 0"),
        ({"layers": 10}, "at least 51"),
    ],
)
def test_sizes_that_can_not_be_used_are_named(sizes: dict, words: str) -> None:
    with pytest.raises((ConfigError, ValueError), match=words):
        AgentConfig.of(AgentSettings(size="tiny", sequence_length=17, sizes=sizes), SPEC)


@pytest.mark.parametrize("config", [TINY, DEEP, PERCEPTRON, RECURRENT, WITH_IDS])
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
        (TINY, {"ids": [[10**9, 1]]}, "ids"),
        (TINY, {"ids": [[9, 64]]}, "ids"),
        (TINY, {"ids": [[9, 1]] * 17}, "ids"),
        (TINY, {"ids": [9, 1]}, "int"),
        (PERCEPTRON, {"activation": "sine"}, "sine"),
        (PERCEPTRON, {"action_kind": "wishes"}, "wishes"),
        (PERCEPTRON, {"policy_widths": [0]}, "widths"),
        (PERCEPTRON, {"value_widths": [8] * 17}, "widths"),
        (PERCEPTRON, {"observation_size": 0}, "observation_size = 0"),
        (PERCEPTRON, {"architecture": "oracle"}, "oracle"),
        (RECURRENT, {"memory": -1}, "memory = -1"),
        (RECURRENT, {"memory_layers": 10**4}, "memory_layers"),
        (RECURRENT, {"value_memory": "borrowed"}, "borrowed"),
    ],
)
def test_sizes_from_a_crafted_card_are_refused(
    config: AgentConfig, change: dict, words: str
) -> None:
    with pytest.raises(DataCorrupt, match=words):
        config_of(config.to_dict() | change)


def test_a_card_that_knows_of_no_memory_has_none() -> None:
    values = PERCEPTRON.to_dict()
    for name in ("memory", "memory_layers", "value_memory"):
        del values[name]
    assert config_of(values) == PERCEPTRON
    assert PERCEPTRON.memory == 0


def test_sizes_that_are_missing_are_named_and_a_program_may_not_set_others_either() -> None:
    values = TINY.to_dict()
    del values["layers"]
    with pytest.raises(DataCorrupt, match="layers"):
        config_of(values)
    with pytest.raises(ConfigError, match="widths"):
        PerceptronConfig(observation_size=4, action_size=2, policy_widths=(0,))
