"""The network's promises: step = unroll = window, where influence ends, what reaches what."""

import pytest
import torch
from agents import (
    CONFIGS,
    DEEP,
    NO_ENCODER,
    NO_MEMORY,
    NOW_ONLY,
    TINY,
    WITH_IDS,
    legal_choices,
    network,
    play,
    sequence,
)

from league.agent.config import AgentConfig
from league.agent.heads import action_distribution
from league.agent.network import AgentNetwork

CLOSE = {"atol": 1e-5, "rtol": 1e-5}


def stacked(outputs, name):
    return torch.stack([getattr(output, name) for output in outputs])


def part(data, rows=slice(None), columns=slice(None)):
    return {name: values[rows, columns] for name, values in data.items()}


def unroll(net, data, prefix=0, state=None):
    """All rows but the first `prefix` at once; the LSTM begins with `state`, or empty."""
    state = state or net.initial_state(data["obs"].shape[1])
    left_TB = data["left"][prefix:]
    return net.unroll(data["obs"], data["starts"], state.h_BH, state.c_BH, left_TB, prefix)


def one_episode(config, rows, batch):
    data = sequence(config, rows, batch, rate=0.0)
    data["starts"][1:] = False
    return data


@pytest.fixture(params=CONFIGS)
def config(request) -> AgentConfig:
    return CONFIGS[request.param]


@pytest.mark.parametrize(
    "config", [*CONFIGS.values(), TINY, NO_ENCODER, NO_MEMORY, NOW_ONLY, WITH_IDS]
)
def test_unroll_equals_step_across_episodes_and_the_first_ratio_is_1(config: AgentConfig) -> None:
    net, data = network(config), sequence(config, 50, 5)
    outputs, states = play(net, data)
    unrolled, logits_TBA = unroll(net, data), stacked(outputs, "logits_BA")
    torch.testing.assert_close(unrolled.logits_TBA, logits_TBA, **CLOSE)
    torch.testing.assert_close(unrolled.value_TB, stacked(outputs, "value_B"), **CLOSE)
    torch.testing.assert_close(unrolled.latent_TBD, stacked(outputs, "latent_BD"), **CLOSE)
    torch.testing.assert_close(unrolled.h_BH, states[-1].h_BH, **CLOSE)
    torch.testing.assert_close(unrolled.c_BH, states[-1].c_BH, **CLOSE)
    legal = legal_choices(config, 50, 5)
    acted, learnt = (
        action_distribution(config.action_kind, logits, legal)
        for logits in (logits_TBA, unrolled.logits_TBA)
    )
    keys = acted.sample(torch.Generator().manual_seed(0))
    ratio = torch.exp(learnt.log_prob(keys) - acted.log_prob(keys))
    torch.testing.assert_close(ratio, torch.ones_like(ratio), atol=5e-5, rtol=0)
    torch.testing.assert_close(learnt.entropy(), acted.entropy(), **CLOSE)


@pytest.mark.parametrize("more", [0, 3])
def test_unroll_with_history_equals_step(config: AgentConfig, more: int) -> None:
    first, prefix = config.context + 10, config.context + more
    net, data = network(config), sequence(config, first + 26, 5)
    outputs, states = play(net, data)
    unrolled = unroll(net, part(data, slice(first - prefix, None)), prefix, states[first])
    torch.testing.assert_close(unrolled.logits_TBA, stacked(outputs[first:], "logits_BA"), **CLOSE)
    torch.testing.assert_close(unrolled.value_TB, stacked(outputs[first:], "value_B"), **CLOSE)


def test_the_bare_window_gives_the_same_latent_and_keys(config: AgentConfig) -> None:
    net, data, length = network(config), one_episode(config, 40, 1), config.sequence_length
    outputs, states = play(net, data)
    bare = unroll(net, part(data, slice(-length, None)), length - 1, states[-2])
    torch.testing.assert_close(bare.latent_TBD[0], outputs[-1].latent_BD, **CLOSE)
    torch.testing.assert_close(bare.logits_TBA[0], outputs[-1].logits_BA, **CLOSE)


def test_influence_ends_exactly_after_sequence_length_entries(config: AgentConfig) -> None:
    """One column for each distance, in which the entry of that distance differs."""
    net, length = network(config), config.sequence_length
    obs = one_episode(config, length + 6, 1)["obs"].repeat(1, length + 6, 1)
    changed, starts = obs.clone(), torch.zeros(obs.shape[:2], dtype=torch.bool)
    for distance in range(length + 6):
        changed[-1 - distance, distance, config.own_size :] *= -3.0
    with torch.no_grad():
        before, after = (
            torch.cat(net.encode(each, starts, len(obs) - 1)[:2], -1) for each in (obs, changed)
        )
    moved_B = (before != after)[0].any(-1)
    assert moved_B.tolist() == [distance < length for distance in range(length + 6)]


def test_no_future_and_no_finished_episode_changes_anything(config: AgentConfig) -> None:
    net, data = network(config), sequence(config, 30, 2, rate=0.0)
    start = int(data["starts"][1:, 0].nonzero()[0]) + 1
    before, later, earlier = data["obs"], data["obs"].clone(), data["obs"].clone()
    later[20:] *= -1
    earlier[:start, 0] *= -1
    with torch.no_grad():
        before, later, earlier = (
            unroll(net, {**data, "obs": obs}) for obs in (before, later, earlier)
        )
    assert torch.equal(later.logits_TBA[:20], before.logits_TBA[:20])
    assert torch.equal(later.value_TB[:20], before.value_TB[:20])
    assert not torch.equal(later.logits_TBA[20], before.logits_TBA[20])
    assert torch.equal(earlier.logits_TBA[start:, 0], before.logits_TBA[start:, 0])
    assert torch.equal(earlier.value_TB[start:, 0], before.value_TB[start:, 0])
    assert torch.equal(earlier.c_BH[0], before.c_BH[0])


def fresh(config: AgentConfig) -> AgentNetwork:
    torch.manual_seed(0)
    return AgentNetwork(config)


def test_every_parameter_gets_a_gradient_at_the_usual_start(config: AgentConfig) -> None:
    net = fresh(config)
    unrolled = unroll(net, sequence(config, 30, 3))
    actor = action_distribution(
        config.action_kind, unrolled.logits_TBA, legal_choices(config, 30, 3)
    )
    actions = actor.sample(torch.Generator().manual_seed(0))
    (actor.log_prob(actions).mean() + unrolled.value_TB.square().mean()).backward()
    still = [name for name, p in net.named_parameters() if p.grad is None or not p.grad.any()]
    assert still == []


def test_every_input_changes_the_keys(config: AgentConfig) -> None:
    """One column for each field, which differs from the same columns unchanged in that field
    alone.
    """
    net, data = network(config), one_episode(config, 8, config.observation_size)
    base = play(net, data)[0][-1].logits_BA
    for row in (7, 5):  # the present; the past, through encoder or memory
        changed = {**data, "obs": data["obs"].clone()}
        changed["obs"][row].diagonal().add_(0.5)
        moved_B = (play(net, changed)[0][-1].logits_BA != base).any(-1)
        assert moved_B.all(), (row, moved_B)


def test_ones_own_part_reaches_the_context_and_not_the_latent(config: AgentConfig) -> None:
    net, data = network(config), sequence(config, 30, 2)
    changed = data["obs"].clone()
    changed[..., : config.own_size] *= -1
    with torch.no_grad():
        before, after = (net.encode(obs, data["starts"], 10) for obs in (data["obs"], changed))
    assert torch.equal(before.latent, after.latent)
    assert not torch.equal(before.context, after.context)
    for weights in (before.latent_weights, before.context_weights):
        assert weights.shape == (20, 2, config.pool, config.attention_heads)
        torch.testing.assert_close(weights.sum(-2), torch.ones(20, 2, config.attention_heads))


def test_only_the_critic_sees_the_time_left(config: AgentConfig) -> None:
    net, data = network(config), sequence(config, 6, 2)
    outputs, states = play(net, data)
    changed, changed_states = play(net, {**data, "left": 1 - data["left"]})
    assert torch.equal(stacked(outputs, "logits_BA"), stacked(changed, "logits_BA"))
    assert torch.equal(states[-1].h_BH, changed_states[-1].h_BH)
    assert not torch.equal(stacked(outputs, "value_B"), stacked(changed, "value_B"))


def test_fresh_keys_are_mostly_up() -> None:
    output = play(fresh(TINY), sequence(TINY, 1, 64))[0][0]
    assert (torch.sigmoid(output.logits_BA) - 0.1824).abs().max() < 0.03


def test_the_long_unroll_keeps_memory_linear() -> None:
    """A dense T×T attention over 2000 rows would hold 2 heads · 2000² floats a layer, 32 MB."""

    def most_bytes(rows: int) -> int:
        saved: list[int] = []
        with torch.autograd.graph.saved_tensors_hooks(
            lambda tensor: saved.append(tensor.nbytes) or tensor, lambda tensor: tensor
        ):
            unroll(network(DEEP), sequence(DEEP, rows, 1))
        return max(saved)

    assert 1.8 < most_bytes(2000) / most_bytes(1000) < 2.2
    assert most_bytes(2000) < 4.1e6


def test_without_history_the_past_reaches_the_keys_through_memory_alone_and_the_reverse() -> None:
    def moved(config: AgentConfig, past: int) -> bool:
        """Whether the opponent's entry `past` decisions ago changes the keys."""
        net, data = network(config), one_episode(config, 15, 1)
        changed = {**data, "obs": data["obs"].clone()}
        changed["obs"][-1 - past, :, config.own_size :] *= -1
        first, second = (play(net, each)[0][-1].logits_BA for each in (data, changed))
        return not torch.equal(first, second)

    beyond = NO_MEMORY.context + 1
    assert [moved(NO_ENCODER, past) for past in (0, 1, beyond)] == [True] * 3
    assert [moved(NO_MEMORY, past) for past in (0, 1, beyond - 1, beyond)] == [True] * 3 + [False]
    assert [moved(NOW_ONLY, past) for past in (0, 1, 2)] == [True, False, False]


def test_entries_of_zeros_do_not_blow_up_the_first_gradient() -> None:
    """As in games whose opponent shows nothing yet: layer norms of zeros would multiply it by
    1e8.
    """
    net, data = fresh(TINY), sequence(TINY, 12, 3)
    data["obs"][..., TINY.own_size :] = 0.0
    unrolled = unroll(net, data)
    (unrolled.logits_TBA.square().mean() + unrolled.value_TB.square().mean()).backward()
    assert torch.nn.utils.get_total_norm([p.grad for p in net.parameters()]) < 20


def test_ids_are_looked_up_and_their_size_means_nothing() -> None:
    """An id is a share of its vocabulary; those next to each other have nothing in common."""
    net = network(WITH_IDS)
    obs = torch.zeros(9, WITH_IDS.observation_size)
    obs[:, 6] = torch.arange(9) / 9
    seen = net.observation(obs)
    assert len({tuple(row) for row in seen.round(decimals=4).tolist()}) == 9
    with torch.no_grad():
        net.observation.embeddings[0].weight[3] = net.observation.embeddings[0].weight[4]
    torch.testing.assert_close(net.observation(obs)[3], net.observation(obs)[4])
    torch.testing.assert_close(net.observation(obs)[:3], seen[:3])
    obs[0, 6], obs[1, 6] = -1.0, 2.0  # of a stranger: the first and the last word
    seen = net.observation(obs)
    torch.testing.assert_close(seen[1], seen[8])
