"""The network's promises: step = unroll = window, where influence ends, what reaches what."""

from dataclasses import replace

import pytest
import torch
from agents import (
    BASE,
    CONFIGS,
    DEEP,
    LARGE,
    NO_HISTORY,
    NO_MEMORY,
    NOW_ONLY,
    TINY,
    legal_choices,
    network,
    play,
    sequence,
)

from league.agent.config import AgentConfig
from league.agent.heads import action_distribution

CLOSE = {"atol": 1e-5, "rtol": 1e-5}


def stacked(outputs, name):
    return torch.stack([getattr(output, name) for output in outputs])


@pytest.fixture(params=CONFIGS)
def config(request) -> AgentConfig:
    return CONFIGS[request.param]


@pytest.mark.parametrize(
    "config", [*CONFIGS.values(), BASE, LARGE, NO_HISTORY, NO_MEMORY, NOW_ONLY]
)
def test_unroll_from_the_start_equals_step_across_episodes(config: AgentConfig) -> None:
    net, data = network(config), sequence(config, 50, 5)
    outputs, states = play(net, data)
    unrolled = net.unroll(
        data["obs"], data["starts"], states[0].h_BH, states[0].c_BH, data["left"], 0
    )
    torch.testing.assert_close(unrolled.logits_TBA, stacked(outputs, "logits_BA"), **CLOSE)
    torch.testing.assert_close(unrolled.value_TB, stacked(outputs, "value_B"), **CLOSE)
    torch.testing.assert_close(unrolled.latent_TBD, stacked(outputs, "latent_BD"), **CLOSE)
    torch.testing.assert_close(unrolled.h_BH, states[-1].h_BH, **CLOSE)
    torch.testing.assert_close(unrolled.c_BH, states[-1].c_BH, **CLOSE)


@pytest.mark.parametrize("more", [0, 3])
def test_unroll_with_history_equals_step(config: AgentConfig, more: int) -> None:
    first, prefix = config.context + 10, config.context + more
    net, data = network(config), sequence(config, first + 26, 5)
    outputs, states = play(net, data)
    rows = slice(first - prefix, None)
    h_BH, c_BH = states[first].h_BH, states[first].c_BH
    unrolled = net.unroll(
        data["obs"][rows], data["starts"][rows], h_BH, c_BH, data["left"][first:], prefix
    )
    torch.testing.assert_close(unrolled.logits_TBA, stacked(outputs[first:], "logits_BA"), **CLOSE)
    torch.testing.assert_close(unrolled.value_TB, stacked(outputs[first:], "value_B"), **CLOSE)


def test_the_bare_window_gives_the_same_latent_and_keys(config: AgentConfig) -> None:
    net, data = network(config), sequence(config, 40, 3)
    outputs, states = play(net, data)
    last, length = 39, config.sequence_length
    rows = slice(last + 1 - length, last + 1)
    never = torch.zeros_like(data["starts"][rows])
    column = slice(2, 3)  # the one without another episode in its window
    h_BH, c_BH = states[last].h_BH[column], states[last].c_BH[column]
    bare = net.unroll(
        data["obs"][rows, column],
        never[:, column],
        h_BH,
        c_BH,
        data["left"][-1:, column],
        length - 1,
    )
    torch.testing.assert_close(bare.latent_TBD[0], outputs[last].latent_BD[column], **CLOSE)
    torch.testing.assert_close(bare.logits_TBA[0], outputs[last].logits_BA[column], **CLOSE)


def test_influence_ends_exactly_after_sequence_length_entries(config: AgentConfig) -> None:
    net, length = network(config), config.sequence_length
    obs = sequence(config, length + 6, 1)["obs"]
    starts = torch.zeros(obs.shape[:2], dtype=torch.bool)
    prefix = obs.shape[0] - 1

    def read(x):
        with torch.no_grad():
            pooled = net.encode(x, starts, prefix)
        return torch.cat([pooled.latent, pooled.context], -1)

    for distance in range(length + 6):
        changed = obs.clone()
        changed[-1 - distance, :, config.own_size :] *= -3.0
        assert torch.equal(read(changed), read(obs)) == (distance >= length), distance


def test_no_future_and_no_finished_episode_changes_anything(config: AgentConfig) -> None:
    net, data = network(config), sequence(config, 30, 2, rate=0.0)
    start = int(data["starts"][1:, 0].nonzero()[0]) + 1
    zeros = torch.zeros(2, config.memory)

    def unroll(obs):
        with torch.no_grad():
            return net.unroll(obs, data["starts"], zeros, zeros, data["left"], 0)

    before, changed = unroll(data["obs"]), data["obs"].clone()
    changed[20:] = -changed[20:]
    after = unroll(changed)
    assert torch.equal(after.logits_TBA[:20], before.logits_TBA[:20])
    assert torch.equal(after.value_TB[:20], before.value_TB[:20])
    assert not torch.equal(after.logits_TBA[20], before.logits_TBA[20])
    changed = data["obs"].clone()
    changed[:start, 0] = -changed[:start, 0]
    after = unroll(changed)
    assert torch.equal(after.logits_TBA[start:, 0], before.logits_TBA[start:, 0])
    assert torch.equal(after.value_TB[start:, 0], before.value_TB[start:, 0])
    assert torch.equal(after.c_BH[0], before.c_BH[0])


def test_learner_and_actor_agree_on_log_probs_values_and_entropies(config: AgentConfig) -> None:
    net, data = network(config), sequence(config, 40, 4)
    outputs, states = play(net, data)
    unrolled = net.unroll(
        data["obs"], data["starts"], states[0].h_BH, states[0].c_BH, data["left"], 0
    )
    legal = legal_choices(config, 40, 4)
    acted = action_distribution(config.action_kind, stacked(outputs, "logits_BA"), legal)
    keys = acted.sample(torch.Generator().manual_seed(0))
    learnt = action_distribution(config.action_kind, unrolled.logits_TBA, legal)
    ratio = torch.exp(learnt.log_prob(keys) - acted.log_prob(keys))
    torch.testing.assert_close(ratio, torch.ones_like(ratio), atol=5e-5, rtol=0)
    torch.testing.assert_close(learnt.entropy(), acted.entropy(), **CLOSE)


def test_every_parameter_gets_a_gradient_at_the_usual_start(config: AgentConfig) -> None:
    torch.manual_seed(0)
    net, data = type(network(config))(config), sequence(config, 30, 3)
    zeros = torch.zeros(3, config.memory)
    unrolled = net.unroll(data["obs"], data["starts"], zeros, zeros, data["left"], 0)
    actor = action_distribution(
        config.action_kind, unrolled.logits_TBA, legal_choices(config, 30, 3)
    )
    actions = actor.sample(torch.Generator().manual_seed(0))
    loss = actor.log_prob(actions).mean() + unrolled.value_TB.square().mean()
    loss.backward()
    for name, parameter in net.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().max() > 0, name


def test_every_input_changes_the_keys(config: AgentConfig) -> None:
    """One column for each field, which differs from the same columns unchanged in that field
    alone.
    """
    width = config.observation_size
    net, data = network(config), sequence(config, 8, width, rate=0.0)
    data["starts"][1:] = False
    base = play(net, data)[0][-1].logits_BA
    for row in (7, 5):  # the present; the past, through encoder or memory
        changed = {**data, "obs": data["obs"].clone()}
        changed["obs"][row].diagonal().add_(0.5)
        moved_B = (play(net, changed)[0][-1].logits_BA != base).any(-1)
        assert moved_B.all(), (row, moved_B)


def test_own_past_does_not_reach_the_strategy_latent_nor_does_the_present_self(
    config: AgentConfig,
) -> None:
    net, data = network(config), sequence(config, 8, 2)
    changed = data["obs"].clone()
    changed[..., : config.own_size] *= -1
    with torch.no_grad():
        before, after = (net.encode(obs, data["starts"], 0) for obs in (data["obs"], changed))
    assert torch.equal(before.latent, after.latent)
    assert not torch.equal(before.context, after.context)


def test_only_the_critic_sees_the_time_left(config: AgentConfig) -> None:
    net, data = network(config), sequence(config, 6, 2)
    later = {**data, "left": 1 - data["left"]}
    (outputs, states), (changed, changed_states) = play(net, data), play(net, later)
    assert torch.equal(stacked(outputs, "logits_BA"), stacked(changed, "logits_BA"))
    assert torch.equal(states[-1].h_BH, changed_states[-1].h_BH)
    assert not torch.equal(stacked(outputs, "value_B"), stacked(changed, "value_B"))


def test_attention_over_outputs_is_readable_and_sums_to_one(config: AgentConfig) -> None:
    net, data = network(config), sequence(config, 30, 2)
    with torch.no_grad():
        pooled = net.encode(data["obs"], data["starts"], 10)
    for weights in (pooled.latent_weights, pooled.context_weights):
        assert weights.shape == (20, 2, config.pool, config.attention_heads)
        torch.testing.assert_close(weights.sum(-2), torch.ones(20, 2, config.attention_heads))


def test_fresh_keys_are_mostly_up() -> None:
    torch.manual_seed(0)
    net = type(network(TINY))(TINY)
    output = play(net, sequence(TINY, 1, 64))[0][0]
    assert (torch.sigmoid(output.logits_BA) - 0.1824).abs().max() < 0.03


def test_the_long_unroll_keeps_memory_linear() -> None:
    """A dense T×T attention over these rows would hold 2 heads · 4000² floats a layer, 128 MB."""
    net, data = network(DEEP), sequence(DEEP, 4000, 1)
    zeros = torch.zeros(1, DEEP.memory)
    biggest = 0

    def note(tensor):
        nonlocal biggest
        biggest = max(biggest, tensor.numel())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        net.unroll(data["obs"], data["starts"], zeros, zeros, data["left"], 0)
    assert 4000 <= biggest <= 4001 * 100


def test_without_history_the_past_reaches_the_keys_through_memory_alone_and_the_reverse() -> None:
    def moved(config: AgentConfig, past: int) -> bool:
        """Whether the opponent's entry `past` decisions ago changes the keys."""
        net, data = network(config), sequence(config, 15, 1, rate=0.0)
        data["starts"][1:] = False
        changed = {**data, "obs": data["obs"].clone()}
        changed["obs"][-1 - past, :, config.own_size :] *= -1
        return not torch.equal(
            play(net, data)[0][-1].logits_BA, play(net, changed)[0][-1].logits_BA
        )

    beyond = NO_MEMORY.context + 1
    assert [moved(NO_HISTORY, past) for past in (0, 1, beyond)] == [True, True, True]
    assert [moved(NO_MEMORY, past) for past in (0, 1, beyond - 1, beyond)] == [
        True,
        True,
        True,
        False,
    ]
    assert [moved(NOW_ONLY, past) for past in (0, 1, 2)] == [True, False, False]


@pytest.mark.parametrize("encoder", ["streaming", "window"])
def test_entries_of_zeros_do_not_blow_up_the_first_gradient(encoder: str) -> None:
    """As in games whose opponent shows nothing yet: layer norms of zeros would multiply it by
    1e8.
    """
    torch.manual_seed(0)
    config = replace(TINY, encoder=encoder)
    net, data = type(network(config))(config), sequence(config, 12, 3)
    data["obs"][..., config.own_size :] = 0.0
    zeros = torch.zeros(3, config.memory)
    unrolled = net.unroll(data["obs"], data["starts"], zeros, zeros, data["left"], 0)
    (unrolled.logits_TBA.square().mean() + unrolled.value_TB.square().mean()).backward()
    assert torch.nn.utils.get_total_norm([part.grad for part in net.parameters()]) < 20
