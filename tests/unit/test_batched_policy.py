"""The batched policy plays every seat as its own network would, however seats are grouped."""

import io

import numpy as np
import pytest
import torch
from agents import (
    BASE,
    DEEP,
    LARGE,
    MEMBERS,
    NO_HISTORY,
    NO_MEMORY,
    NOW_ONLY,
    PERCEPTRON,
    TINY,
    WINDOW,
    network,
)

from league.agent.batched_policy import LIVE, BatchedPolicy
from league.agent.heads import BernoulliKeys
from league.errors import DataCorrupt, InvalidInput, NotFound

NETWORKS = {name: network(TINY, seed) for seed, name in enumerate("abcdefgh")}
NETWORKS["window"] = network(WINDOW, 20)
NETWORKS |= {"reflex": network(PERCEPTRON, 21), "habit": network(PERCEPTRON, 22)}
SEATING = [*["a"] * 7, *["b"] * 3, "c", "d", "", "", *[LIVE] * 5, *["window"] * 2]
SEATING += [*["e"] * 9, *["reflex"] * 5, "habit"]
KINDS = {**MEMBERS, "no_history": NO_HISTORY, "no_memory": NO_MEMORY, "now_only": NOW_ONLY}


def load(digest):
    if digest not in NETWORKS:
        raise NotFound(f"there is no {digest}")
    return NETWORKS[digest]


def observe(rng, seats, config=TINY):
    return rng.uniform(-1, 1, (seats, config.observation_size)).astype(np.float32)


class OneByOne:
    """The reference: each seat its own network and state, one step of one row."""

    def __init__(self, networks, seating):
        self.networks, self.seating = networks, list(seating)
        self.states = [None] * len(seating)

    def seat(self, index, digest):
        self.seating[index], self.states[index] = digest, None

    def logits(self, observations_SO):
        logits = []
        for index, digest in enumerate(self.seating):
            if not digest:
                logits.append(None)
                continue
            net = self.networks[digest]
            state = self.states[index] or net.initial_state(1)
            row = torch.from_numpy(observations_SO[index : index + 1])
            with torch.inference_mode():
                output = net.step(row, torch.tensor([False]), state, None)
            self.states[index] = output.state
            logits.append(output.logits_BA[0])
        width = next(part.shape[0] for part in logits if part is not None)
        vacant = torch.full((width,), -torch.inf)
        return torch.stack([vacant if part is None else part for part in logits])


def check(networks, seating, changes, turns=6):
    """Plays both ways; in the middle other players take the seats of `changes`."""
    config = next(iter(networks.values())).config
    frozen = {name: net for name, net in networks.items() if name != LIVE}
    policy = BatchedPolicy(
        len(seating),
        frozen.__getitem__,
        seed=0,
        action_size=config.action_size,
        action_kind=config.action_kind,
    )
    policy.set_live(networks.get(LIVE))
    alone, rng, seen = OneByOne(networks, seating), np.random.default_rng(0), []
    for seat, name in enumerate(seating):
        if name:
            policy.seat(seat, name)
    for turn in range(turns):
        if turn == turns // 2:
            for seat, name in changes.items():
                policy.seat(seat, name) if name else policy.vacate(seat)
                alone.seat(seat, name)
        observations_SO = observe(rng, len(seating), config)
        policy.act(observations_SO)
        logits_SA = alone.logits(observations_SO)
        torch.testing.assert_close(policy.logits_SA, logits_SA, atol=1e-5, rtol=1e-5)
        seen.append(logits_SA[logits_SA.isfinite()])
    assert torch.cat(seen).std() > 0.05, "equal outputs would prove nothing"


@pytest.mark.parametrize("kind", KINDS)
def test_every_architecture_in_every_size_equals_one_by_one(kind):
    networks = {name: network(KINDS[kind], seed) for seed, name in enumerate("abcd")}
    check(networks, ["a"] * 5 + ["b"] * 2 + ["c"], {0: "b", 6: "d", 7: "a"})


def test_architectures_that_play_together_equal_one_by_one():
    kinds = {"t": TINY, "b": BASE, "l": LARGE, "w": WINDOW, "p": PERCEPTRON}
    networks = {
        f"{kind}{seed}": network(config, seed) for kind, config in kinds.items() for seed in (1, 2)
    }
    networks[LIVE] = network(TINY, 3)
    seating = ["t1"] * 5 + ["t2", "b1", "b2", "b1", "l1", "l2", "w1", "w2", "p1"]
    seating += ["p2"] * 9 + ["", LIVE, LIVE]
    changes = {0: "p1", 5: "l1", 9: "w2", 13: "t2", 22: "b2", 23: "t1", 24: "", 3: LIVE}
    check(networks, seating, changes, turns=20)


def seated(greedy, seed=0):
    policy = BatchedPolicy(len(SEATING), load, seed=seed, action_size=10)
    policy.set_live(NETWORKS["h"])
    for index, digest in enumerate(SEATING):
        if digest:
            policy.seat(index, digest, greedy=greedy)
    return policy


def test_greedy_seats_take_the_likeliest_keys_and_vacant_ones_none():
    policy = seated(greedy=True)
    keys = policy.act(observe(np.random.default_rng(0), len(SEATING)))
    assert (keys.dtype, keys.shape) == (np.uint8, (len(SEATING), TINY.action_size))
    assert np.array_equal(keys > 0, policy.logits_SA.numpy() > 0)
    assert not keys[[12, 13]].any()


def test_sampled_play_follows_each_seats_probabilities():
    policy, total = BatchedPolicy(3, load, seed=1, action_size=10), 0.0
    observations_SO = observe(np.random.default_rng(1), 3)
    for _ in range(600):
        for seat, digest in enumerate(("a", "b", "a")):
            policy.seat(seat, digest)  # an empty history, so the same probabilities
        total += policy.act(observations_SO)
    assert np.abs(total / 600 - torch.sigmoid(policy.logits_SA).numpy()).max() < 0.09


def test_a_seats_draws_depend_on_the_seed_alone():
    observations_SO = observe(np.random.default_rng(2), len(SEATING))
    first, second, other = (seated(False, seed) for seed in (3, 3, 4))
    second.vacate(25)
    keys, again, different = (policy.act(observations_SO) for policy in (first, second, other))
    assert np.array_equal(keys[:25], again[:25])
    assert not np.array_equal(keys, different)


@pytest.mark.parametrize("seed", range(5))
def test_an_opponent_with_a_learners_weights_and_seed_makes_other_choices(seed):
    """In rock-paper-scissors equal choices would always tie."""
    policy = seated(greedy=False, seed=seed)
    keys = policy.act(observe(np.random.default_rng(0), len(SEATING)))
    learner = BernoulliKeys(policy.logits_SA).sample(torch.Generator().manual_seed(seed))
    seats = [index for index, digest in enumerate(SEATING) if digest]
    assert (keys[seats] != learner.numpy()[seats]).any()


def test_live_weights_are_read_at_every_act():
    live, policy = network(TINY, 30), BatchedPolicy(1, load, seed=0, action_size=10)
    policy.set_live(live)
    observations_SO = observe(np.random.default_rng(3), 1)
    for sign in (-1.0, 1.0):
        with torch.no_grad():
            live.actor.last.weight.zero_()
            live.actor.last.bias.fill_(5.0 * sign)
        policy.seat(0, LIVE, greedy=True)
        assert (policy.act(observations_SO) == (sign > 0)).all()


def test_saved_and_restored_it_continues_bit_for_bit():
    policy, rng = seated(greedy=False), np.random.default_rng(4)
    for _ in range(5):
        policy.act(observe(rng, len(SEATING)))
    for index, digest in {0: "e", 1: "c", 12: "f"}.items():
        policy.seat(index, digest)
    policy.act(observe(rng, len(SEATING)))
    policy.seat(2, "g")  # not yet acted: still to be cleared
    file = io.BytesIO()
    torch.save(policy.save(), file)
    file.seek(0)
    restored = BatchedPolicy(len(SEATING), load, seed=99, action_size=10)
    restored.set_live(NETWORKS["h"])
    restored.load_state(torch.load(file, weights_only=True))
    for turn in range(10):
        if turn == 4:
            policy.seat(5, "d")
            restored.seat(5, "d")
        observations_SO = observe(rng, len(SEATING))
        assert np.array_equal(policy.act(observations_SO), restored.act(observations_SO))
    with pytest.raises(DataCorrupt, match=str(len(SEATING))):
        BatchedPolicy(3, load, seed=0, action_size=10).load_state(policy.save())


def test_a_failed_load_leaves_the_seat_unchanged():
    policy, untouched = (BatchedPolicy(1, load, seed=0, action_size=10) for _ in range(2))
    rng = np.random.default_rng(6)
    for each in (policy, untouched):
        each.seat(0, "a")
    first, second = observe(rng, 1), observe(rng, 1)
    assert np.array_equal(policy.act(first), untouched.act(first))
    with pytest.raises(NotFound, match="missing"):
        policy.seat(0, "missing")
    assert np.array_equal(policy.act(second), untouched.act(second))
    assert torch.equal(policy.logits_SA, untouched.logits_SA)


def test_what_can_not_be_seated_is_refused():
    networks = {**NETWORKS, "deep": network(DEEP)}
    policy = BatchedPolicy(2, networks.__getitem__, seed=0, action_size=10)
    with pytest.raises(InvalidInput, match="set_live"):
        policy.seat(0, LIVE)
    policy.seat(0, "a")
    with pytest.raises(InvalidInput, match="3 actions"):
        policy.seat(1, "deep")
    empty = BatchedPolicy(2, load, seed=0, action_size=10)
    assert not empty.act(observe(np.random.default_rng(8), 2)).any()
