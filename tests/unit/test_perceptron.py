"""The member without memory: its config, and that it sees the moment alone."""

import pytest
import torch
from agents import PERCEPTRON, network, play, sequence

from league.agent.architectures import config_of
from league.agent.perceptron import PerceptronConfig
from league.errors import ConfigError, DataCorrupt


def test_a_card_holds_the_config_and_names_the_architecture() -> None:
    values = PERCEPTRON.to_dict()
    assert values["architecture"] == "perceptron"
    assert config_of(values) == PERCEPTRON
    assert hash(config_of(values)) == hash(PERCEPTRON)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"activation": "sine"}, "sine"),
        ({"action_kind": "wishes"}, "wishes"),
        ({"policy_widths": (0,)}, "widths"),
        ({"value_widths": (8,) * 17}, "widths"),
        ({"observation_size": 0}, "observation_size = 0"),
    ],
)
def test_sizes_that_can_not_be_are_refused(change: dict, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        PerceptronConfig(**{"observation_size": 4, "action_size": 2, **change})
    values = {**PERCEPTRON.to_dict(), **change}
    with pytest.raises(DataCorrupt, match=words):
        config_of(values)


def test_it_sees_the_moment_alone_and_counts_the_episodes_age() -> None:
    net, data = network(PERCEPTRON), sequence(PERCEPTRON, 12, 3)
    outputs, states = play(net, data)
    for t in (0, 5, 11):
        fresh = net.step(data["obs"][t], data["starts"][t], net.initial_state(3), torch.zeros(3))
        assert torch.equal(fresh.logits_BA, outputs[t].logits_BA)
        assert torch.equal(fresh.value_B, outputs[t].value_B)
    assert states[-1].age_B[-1] == 12
    assert (states[-1].age_B[:-1] < 12).all()
    other = data["obs"][0] + 0.1
    moved = net.step(other, data["starts"][0], net.initial_state(3), torch.zeros(3))
    assert (moved.logits_BA - outputs[0].logits_BA).abs().min() > 1e-4
    assert (moved.value_B - outputs[0].value_B).abs().min() > 1e-4
