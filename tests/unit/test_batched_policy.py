"""The batched policy plays every seat as its own network would, however seats are grouped, and
holds what its bound and its seats say, not what the league has.
"""

import io
from dataclasses import replace

import numpy as np
import pytest
import torch
from agents import DEEP, MEMBERS, NO_ENCODER, NO_MEMORY, PERCEPTRON, TINY, WITH_IDS, network

from league.agent.batched_policy import LIVE, BatchedPolicy
from league.agent.heads import BernoulliKeys
from league.errors import DataCorrupt, InvalidInput, NotFound

SMALL = replace(DEEP, observation_size=64, own_size=32, action_size=10)
NETWORKS = {name: network(SMALL, seed) for seed, name in enumerate("abcdefgh")}
NETWORKS["blind"] = network(replace(SMALL, encoder="none"), 20)
NETWORKS |= {"reflex": network(PERCEPTRON, 21), "habit": network(PERCEPTRON, 22)}
SEATING = [*["a"] * 7, *["b"] * 3, "c", "d", "", "", *[LIVE] * 5, *["blind"] * 2]
SEATING += [*["e"] * 9, *["reflex"] * 5, "habit"]
KINDS = {**MEMBERS, "no_encoder": NO_ENCODER, "no_memory": NO_MEMORY, "ids": WITH_IDS}


def load(digest):
    if digest not in NETWORKS:
        raise NotFound(f"there is no {digest}")
    return NETWORKS[digest]


def observe(rng, seats, config=SMALL):
    return rng.uniform(-1, 1, (seats, config.observation_size)).astype(np.float32)


class OneByOne:
    """The reference: each seat its own network and state, one step of one row."""

    def __init__(self, networks, seating):
        self.networks, self.seating = networks, list(seating)
        self.states = [None] * len(seating)

    def seat(self, index, digest):
        self.seating[index], self.states[index] = digest, None

    def logits(self, observations_SO, width):
        logits_SA = torch.full((len(self.seating), width), -torch.inf)
        for index, digest in enumerate(self.seating):
            if digest:
                net = self.networks[digest]
                state = self.states[index] or net.initial_state(1)
                row = torch.from_numpy(observations_SO[index : index + 1])
                with torch.inference_mode():
                    output = net.step(row, torch.tensor([False]), state, None)
                self.states[index], logits_SA[index] = output.state, output.logits_BA[0]
        return logits_SA


def check(networks, seating, changes, turns=6):
    """Plays both ways; in the middle other players take the seats of `changes`."""
    config = next(iter(networks.values())).config
    policy = BatchedPolicy(
        len(seating),
        networks.__getitem__,
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
        logits_SA = alone.logits(observations_SO, config.action_size)
        torch.testing.assert_close(policy.logits_SA, logits_SA, atol=1e-5, rtol=1e-5)
        seen.append(logits_SA[logits_SA.isfinite()])
    assert torch.cat(seen).std() > 0.05, "equal outputs would prove nothing"


@pytest.mark.parametrize("kind", KINDS)
def test_every_architecture_equals_one_by_one(kind):
    networks = {name: network(KINDS[kind], seed) for seed, name in enumerate("abcd")}
    check(networks, ["a"] * 5 + ["b"] * 2 + ["c"], {0: "b", 6: "d", 7: "a"})


def test_architectures_that_play_together_equal_one_by_one():
    kinds = {"s": SMALL, "t": TINY, "n": replace(SMALL, encoder="none"), "p": PERCEPTRON}
    networks = {
        f"{kind}{seed}": network(config, seed) for kind, config in kinds.items() for seed in (1, 2)
    }
    networks[LIVE] = network(TINY, 3)
    seating = ["t1"] * 5 + ["t2", "s1", "s2", "s1", "n1", "n2", "p1"]
    seating += ["p2"] * 9 + ["", LIVE, LIVE]
    changes = {0: "p1", 5: "s1", 9: "n2", 11: "t2", 20: "s2", 21: "t1", 22: "", 3: LIVE}
    check(networks, seating, changes, turns=10)


def seated(greedy=False, seed=0):
    policy = BatchedPolicy(len(SEATING), load, seed=seed, action_size=10)
    policy.set_live(NETWORKS["h"])
    for index, digest in enumerate(SEATING):
        if digest:
            policy.seat(index, digest, greedy=greedy)
    return policy


def test_greedy_seats_take_the_likeliest_keys_and_vacant_ones_none():
    policy = seated(greedy=True)
    keys = policy.act(observe(np.random.default_rng(0), len(SEATING)))
    assert (keys.dtype, keys.shape) == (np.uint8, (len(SEATING), 10))
    assert np.array_equal(keys > 0, policy.logits_SA.numpy() > 0)
    assert not keys[[12, 13]].any()


def test_sampled_play_follows_each_seats_probabilities():
    policy = BatchedPolicy(2000, load, seed=1, action_size=10)
    for seat in range(2000):
        policy.seat(seat, "ab"[seat % 2])
    keys = policy.act(observe(np.random.default_rng(1), 1).repeat(2000, 0))
    for which in (0, 1):
        odds = torch.sigmoid(policy.logits_SA[which]).numpy()
        assert np.abs(keys[which::2].mean(0) - odds).max() < 0.06


def test_a_seats_draws_depend_on_the_seed_alone_and_are_not_a_learners():
    """In rock-paper-scissors the choices of a learner of the same seed would always tie."""
    observations_SO = observe(np.random.default_rng(2), len(SEATING))
    first, second, other = (seated(seed=seed) for seed in (3, 3, 4))
    second.vacate(25)
    keys, again, different = (policy.act(observations_SO) for policy in (first, second, other))
    assert np.array_equal(keys[:25], again[:25])
    assert not np.array_equal(keys, different)
    learner = BernoulliKeys(first.logits_SA).sample(torch.Generator().manual_seed(3)).numpy()
    assert (keys != learner)[first.logits_SA.isfinite().all(-1)].any()


def test_live_weights_are_read_at_every_act():
    live, policy = network(SMALL, 30), BatchedPolicy(1, load, seed=0, action_size=10)
    policy.set_live(live)
    observations_SO = observe(np.random.default_rng(3), 1)
    for sign in (-1.0, 1.0):
        with torch.no_grad():
            live.actor.last.weight.zero_()
            live.actor.last.bias.fill_(5.0 * sign)
        policy.seat(0, LIVE, greedy=True)
        assert (policy.act(observations_SO) == (sign > 0)).all()


def test_saved_and_restored_it_continues_bit_for_bit():
    policy, rng = seated(), np.random.default_rng(4)
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
    assert not policy.act(observe(np.random.default_rng(8), 2)).any()
    with pytest.raises(InvalidInput, match="set_live"):
        policy.seat(0, LIVE)
    policy.seat(0, "a")
    with pytest.raises(InvalidInput, match="3 actions"):
        policy.seat(1, "deep")


# -- memory ------------------------------------------------------------------------------------

MADE = {"s": NETWORKS["a"], "p": NETWORKS["habit"]}
SIZE, LESS = (4 * sum(p.numel() for p in made.parameters()) for made in MADE.values())


class Noting(BatchedPolicy):
    """Loads networks by name: `s…` small agents, `p…` perceptrons; notes which were loaded."""

    def __init__(self, seats, max_bytes):
        self.loaded = []
        super().__init__(seats, self.load, seed=0, max_bytes=max_bytes, action_size=10)

    def load(self, digest):
        self.loaded.append(digest)
        return MADE[digest[0]]

    def play(self, *digests):
        for seat, digest in enumerate(digests):
            self.seat(seat, digest) if digest else self.vacate(seat)
        self.act(observe(np.random.default_rng(0), self.num_seats))


def test_the_least_recently_used_is_dropped_first():
    policy = Noting(1, 4 * SIZE)  # three, and the copy of the one that plays
    for digest in ("s1", "s2", "s3", "s2", "s4"):
        policy.play(digest)
        assert policy.resident_bytes <= 4 * SIZE
    for digest in ("s3", "s2", "s4"):
        policy.seat(0, digest)
    assert policy.loaded == ["s1", "s2", "s3", "s4"], "only s1 was dropped"
    policy.play("s1")
    policy.seat(0, "s3")
    assert policy.loaded[4:] == ["s1", "s3"], "s3 was unused for longest when s1 came back"


def test_the_bound_is_in_bytes_and_what_plays_stays():
    policy = Noting(2, SIZE + 8 * LESS)
    policy.play("s0", "s1")
    assert policy.resident_bytes == 4 * SIZE
    policy.act(observe(np.random.default_rng(0), 2))
    assert policy.loaded == ["s0", "s1"]
    for number in range(20):
        policy.play(f"p{number}", "")
        assert policy.resident_bytes <= SIZE + 8 * LESS
    for number in range(13, 20):
        policy.seat(0, f"p{number}")
    assert len(policy.loaded) == 22


def test_copies_in_stacks_follow_the_seats():
    policy, copies = Noting(32, 1 << 40), []
    for seats in (32, 3, 20, 1):
        policy.play(*(f"s{seat}" if seat < seats else "" for seat in range(32)))
        copies.append(policy.resident_bytes - len(policy.loaded) * SIZE)
        assert seats * SIZE <= copies[-1] <= (2 * seats + 1) * SIZE
    assert max(copies) <= 1.25 * 32 * SIZE


def test_states_of_architectures_that_left_are_dropped():
    policy = Noting(2, 1 << 30)
    policy.play("s1")
    policy.play("p1")
    assert len(policy.save()["states"]) == 1
    policy.set_live(network(SMALL, 5))
    policy.act(observe(np.random.default_rng(0), 2))
    assert len(policy.save()["states"]) == 2
