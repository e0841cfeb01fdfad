"""The batched_policy plays every seat exactly as its own network would, however the seats are grouped."""

import io

import numpy as np
import pytest
import torch
from agents import DEEP, PERCEPTRON, TINY, WINDOW, network

from league.agent.batched_policy import LIVE, BatchedPolicy
from league.agent.heads import BernoulliKeys
from league.errors import DataCorrupt, InvalidInput, NotFound

NETWORKS = {name: network(TINY, seed) for seed, name in enumerate("abcdefgh")}
NETWORKS["window"] = network(WINDOW, 20)
NETWORKS |= {"reflex": network(PERCEPTRON, 21), "habit": network(PERCEPTRON, 22)}
SEATING = (
    ["a"] * 7
    + ["b"] * 3
    + ["c", "d", "", ""]
    + [LIVE] * 5
    + ["window"] * 2
    + ["e"] * 9
    + ["reflex"] * 5
    + ["habit"]
)


def load(digest: str):
    if digest not in NETWORKS:
        raise NotFound(f"there is no {digest}")
    return NETWORKS[digest]


class Alone:
    """The reference: each seat its own network, its own state, one step of one row."""

    def __init__(self, seats: int, live) -> None:
        self.who, self.states, self.live = [""] * seats, [None] * seats, live

    def seat(self, index: int, digest: str) -> None:
        self.who[index], self.states[index] = digest, None

    def logits(self, observations_SO: np.ndarray) -> np.ndarray:
        result = np.full((len(self.who), TINY.action_size), -np.inf, np.float32)
        for index, digest in enumerate(self.who):
            if digest:
                net = self.live if digest == LIVE else load(digest)
                state = self.states[index] or net.initial_state(1)
                row = torch.from_numpy(observations_SO[index : index + 1])
                with torch.no_grad():
                    output = net.step(row, torch.tensor([False]), state, torch.zeros(1))
                self.states[index] = output.state
                result[index] = output.logits_BA[0].numpy()
        return result


def observe(rng: np.random.Generator, seats: int) -> np.ndarray:
    return rng.uniform(-1, 1, (seats, TINY.observation_size)).astype(np.float32)


def seated(greedy: bool, seed: int = 0, **options) -> BatchedPolicy:
    batched_policy = BatchedPolicy(len(SEATING), load, seed=seed, **options)
    batched_policy.set_live(NETWORKS["h"])
    for index, digest in enumerate(SEATING):
        if digest:
            batched_policy.seat(index, digest, greedy=greedy)
    return batched_policy


def same_keys(keys: np.ndarray, logits: np.ndarray) -> bool:
    """Keys whose logit is within rounding of zero may fall either way."""
    telling = np.abs(logits) > 1e-4
    assert telling.mean() > 0.99
    return bool(((keys > 0) == (logits > 0))[telling].all())


def test_greedy_play_equals_each_network_alone_while_seats_change() -> None:
    batched_policy, alone, rng = (
        seated(greedy=True),
        Alone(len(SEATING), NETWORKS["h"]),
        np.random.default_rng(0),
    )
    for index, digest in enumerate(SEATING):
        alone.seat(index, digest)
    for turn in range(40):
        if turn == 15:
            changes = {0: "b", 8: "d", 9: "f", 16: "g", 12: "a", 3: "a", 20: LIVE}
            for index, digest in changes.items():
                batched_policy.seat(index, digest, greedy=True)
                alone.seat(index, digest)
        if turn == 25:  # alone, so that nothing else makes the batched policy plan anew
            batched_policy.vacate(10)
            alone.seat(10, "")
        observations_SO = observe(rng, len(SEATING))
        keys = batched_policy.act(observations_SO)
        assert keys.dtype == np.uint8
        assert keys.shape == (len(SEATING), TINY.action_size)
        assert same_keys(keys, alone.logits(observations_SO)), turn
        assert not keys[13].any()
        assert turn < 25 or not keys[10].any()


def test_sampled_play_follows_each_seats_probabilities() -> None:
    batched_policy = BatchedPolicy(3, load, seed=1)
    for seat, digest in enumerate(("a", "b", "a")):
        batched_policy.seat(seat, digest)
    observations_SO = observe(np.random.default_rng(1), 3)
    alone = Alone(3, None)
    alone.who = ["a", "b", "a"]
    expected = 1 / (1 + np.exp(-alone.logits(observations_SO)))
    total = np.zeros_like(expected)
    for _ in range(600):
        for seat, digest in enumerate(("a", "b", "a")):
            batched_policy.seat(
                seat, digest
            )  # seated anew: an empty history, so the same probabilities
        total += batched_policy.act(observations_SO)
    assert np.abs(total / 600 - expected).max() < 0.09


def test_a_seats_luck_depends_on_the_seed_alone() -> None:
    observations_SO = observe(np.random.default_rng(2), len(SEATING))
    first, second, other = (seated(False, seed) for seed in (3, 3, 4))
    second.vacate(25)
    keys, again, different = (
        batched_policy.act(observations_SO) for batched_policy in (first, second, other)
    )
    assert np.array_equal(keys[:25], again[:25])
    assert not np.array_equal(keys, different)


def test_an_opponent_of_the_same_weights_and_seed_makes_choices_of_its_own() -> None:
    """A learner draws from a generator of its seed; in rock-paper-scissors, alike would be tied
    for ever.
    """
    for seed in range(5):
        batched_policy = seated(greedy=False, seed=seed)
        keys = batched_policy.act(observe(np.random.default_rng(0), len(SEATING)))
        assert batched_policy.logits_SA is not None
        drawn_by_learner = BernoulliKeys(batched_policy.logits_SA).sample(
            torch.Generator().manual_seed(seed)
        )
        seats = [index for index, digest in enumerate(SEATING) if digest]
        assert (keys[seats] != drawn_by_learner.numpy()[seats]).any()


def test_live_weights_are_read_fresh() -> None:
    live = network(TINY, 30)
    batched_policy = BatchedPolicy(1, load, seed=0)
    batched_policy.set_live(live)
    observations_SO = observe(np.random.default_rng(3), 1)
    for sign in (-1.0, 1.0):
        with torch.no_grad():
            live.actor.last.weight.zero_()
            live.actor.last.bias.fill_(5.0 * sign)
        batched_policy.seat(0, LIVE, greedy=True)
        assert (batched_policy.act(observations_SO) == (sign > 0)).all()


def test_saved_and_restored_it_goes_on_bit_for_bit() -> None:
    batched_policy, rng = seated(greedy=False), np.random.default_rng(4)
    for _ in range(5):
        batched_policy.act(observe(rng, len(SEATING)))
    for index, digest in {0: "e", 1: "c", 12: "f"}.items():
        batched_policy.seat(index, digest)
    batched_policy.act(observe(rng, len(SEATING)))
    batched_policy.seat(2, "g")  # not yet acted: still to be cleared
    file = io.BytesIO()
    torch.save(batched_policy.save(), file)
    file.seek(0)
    restored = BatchedPolicy(len(SEATING), load, seed=99)
    restored.set_live(NETWORKS["h"])
    restored.load_state(torch.load(file, weights_only=True))
    for turn in range(10):
        if turn == 4:
            batched_policy.seat(5, "d")
            restored.seat(5, "d")
        observations_SO = observe(rng, len(SEATING))
        assert np.array_equal(batched_policy.act(observations_SO), restored.act(observations_SO))
    for mine, theirs in zip(
        batched_policy.save()["states"], restored.save()["states"], strict=True
    ):
        assert all(torch.equal(a[:-1], b[:-1]) for a, b in zip(mine[1], theirs[1], strict=True))


def test_a_save_of_other_seats_is_refused() -> None:
    with pytest.raises(DataCorrupt, match="2 seats"):
        BatchedPolicy(3, load, seed=0).load_state(BatchedPolicy(2, load, seed=0).save())


def test_a_failed_load_leaves_the_seat_as_it_was() -> None:
    batched_policy = BatchedPolicy(1, load, seed=0)
    batched_policy.seat(0, "a", greedy=True)
    alone, rng = Alone(1, None), np.random.default_rng(6)
    alone.seat(0, "a")
    first = observe(rng, 1)
    assert same_keys(batched_policy.act(first), alone.logits(first))
    before = batched_policy.save()
    with pytest.raises(NotFound, match="nobody"):
        batched_policy.seat(0, "nobody")
    after = batched_policy.save()
    assert after["digests"] == before["digests"] == ["a"]
    for mine, theirs in zip(before["states"], after["states"], strict=True):
        assert any(part.any() for part in mine[1]), "there is a history to lose"
        assert all(torch.equal(a, b) for a, b in zip(mine[1], theirs[1], strict=True))
    second = observe(rng, 1)
    assert same_keys(batched_policy.act(second), alone.logits(second))


def test_what_can_not_sit_is_refused_in_one_sentence() -> None:
    batched_policy = BatchedPolicy(
        2, lambda digest: network(DEEP) if digest == "deep" else load(digest), seed=0
    )
    with pytest.raises(InvalidInput, match="action_size"):
        batched_policy.act(observe(np.random.default_rng(7), 2))
    with pytest.raises(InvalidInput, match="set_live"):
        batched_policy.seat(0, LIVE)
    batched_policy.seat(0, "a")
    with pytest.raises(InvalidInput, match="3 actions"):
        batched_policy.seat(1, "deep")
    empty = BatchedPolicy(2, load, seed=0, action_size=10)
    assert not empty.act(observe(np.random.default_rng(8), 2)).any()


def test_padding_is_bounded() -> None:
    batched_policy = seated(greedy=True)
    batched_policy.act(observe(np.random.default_rng(9), len(SEATING)))
    assert batched_policy._batches is not None
    rows = sum(batch.seats.numel() for batch in batched_policy._batches)
    groups = len(set(SEATING) - {""})
    assert rows <= 2 * len(SEATING) + 4 * groups
    assert (
        len(batched_policy._batches) <= 7
    )  # of groups of like size: three of the agents, and one or two of each other
