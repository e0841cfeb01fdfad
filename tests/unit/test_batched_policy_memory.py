"""What a batched policy keeps in memory follows its bound and its seats, never the size of the league."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest
import torch
from agents import PERCEPTRON, TINY, network

from league.agent.batched_policy import BatchedPolicy
from league.agent.contract import NetworkConfig

MIB = 1 << 20
SEEN = np.random.default_rng(0).uniform(-1, 1, (32, 64)).astype(np.float32)


def bytes_of(config: NetworkConfig) -> int:
    return 4 * sum(parameter.numel() for parameter in network(config).parameters())


SMALL, LARGE = bytes_of(PERCEPTRON), bytes_of(TINY)


class Blobs:
    """Hands out networks by name: `t…` tiny agents, `p…` perceptrons; notes which were loaded."""

    def __init__(self) -> None:
        self.made = {"t": network(TINY), "p": network(PERCEPTRON)}
        self.loaded: list[str] = []

    def __call__(self, digest: str):
        self.loaded.append(digest)
        made = self.made[digest[0]]
        with torch.no_grad():  # the batched policy copies what it keeps
            made.actor.bias.fill_(float(digest[1:])) if digest[0] == "p" else None
        return made


def policy_of(seats: int, blobs: Blobs, max_bytes: int) -> BatchedPolicy:
    return BatchedPolicy(seats, blobs, seed=0, max_bytes=max_bytes, action_size=10)


def act(batched_policy: BatchedPolicy) -> None:
    batched_policy.act(SEEN[: batched_policy.num_seats])


def test_the_longest_unused_is_forgotten_first() -> None:
    blobs = Blobs()
    batched_policy = policy_of(1, blobs, 4 * LARGE)  # three, and the copy of the one that plays
    for digest in ("t1", "t2", "t3", "t2", "t4"):
        batched_policy.seat(0, digest)
        act(batched_policy)
        assert batched_policy.resident_bytes <= 4 * LARGE
    assert blobs.loaded == ["t1", "t2", "t3", "t4"]
    assert batched_policy.resident == 3
    batched_policy.seat(0, "t3")
    batched_policy.seat(0, "t2")
    batched_policy.seat(0, "t4")
    assert blobs.loaded == ["t1", "t2", "t3", "t4"], "1 went, which was used before the others"
    batched_policy.seat(0, "t1")
    act(batched_policy)
    batched_policy.seat(0, "t3")
    assert blobs.loaded == ["t1", "t2", "t3", "t4", "t1", "t3"], (
        "3 was unused for longest when 1 came back"
    )


def test_bytes_count_and_not_networks() -> None:
    blobs = Blobs()
    batched_policy = policy_of(1, blobs, LARGE + 8 * SMALL)
    batched_policy.seat(0, "t0")
    act(batched_policy)
    assert batched_policy.resident_bytes == 2 * LARGE, "what plays stays, though it is too much"
    for number in range(20):
        batched_policy.seat(0, f"p{number}")
        act(batched_policy)
        assert batched_policy.resident_bytes <= LARGE + 8 * SMALL
    assert batched_policy.resident >= 8, "as many small ones as fit"
    assert LARGE / SMALL > 20


def test_who_plays_stays_and_one_sentence_says_that_it_is_too_much(caplog) -> None:
    blobs = Blobs()
    batched_policy = policy_of(4, blobs, 2 * LARGE)
    with caplog.at_level(logging.WARNING):
        for turn in range(3):
            for seat in range(4):
                batched_policy.seat(seat, f"t{seat + turn}")
            act(batched_policy)
            assert batched_policy.resident == 4
    (warned,) = caplog.messages
    assert "4 snapshots" in warned
    loaded = len(blobs.loaded)
    act(batched_policy)
    assert len(blobs.loaded) == loaded, "none of them was forgotten"
    for seat in range(1, 4):
        batched_policy.vacate(seat)
    act(batched_policy)
    assert batched_policy.resident == 1
    assert batched_policy.resident_bytes <= 3 * LARGE


def test_copies_in_stacks_shrink_with_the_seats_and_count() -> None:
    batched_policy = policy_of(32, Blobs(), 1 << 40)
    most = 0
    for seats in (32, 3, 20, 1):
        for seat in range(32):
            batched_policy.seat(seat, f"t{seat}") if seat < seats else batched_policy.vacate(seat)
        act(batched_policy)
        copies = batched_policy.resident_bytes - batched_policy.resident * LARGE
        assert seats * LARGE <= copies <= (2 * seats + 1) * LARGE
        most = max(most, copies)
    assert most <= 1.25 * 32 * LARGE


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the system does not tell")
def test_two_thousand_members_take_no_more_memory_than_ten() -> None:
    bound = 40 * LARGE
    batched_policy, before = policy_of(8, Blobs(), bound), 0
    for number in range(2000):
        batched_policy.seat(number % 8, f"t{number}")
        if number % 8 == 7:
            act(batched_policy)
        assert batched_policy.resident_bytes <= bound
        if number == 40:
            before = resident_set()
    assert batched_policy.resident >= 28
    assert resident_set() - before < bound, f"{2000 * LARGE >> 20} MiB have passed through"


def resident_set() -> int:
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def test_states_of_architectures_that_left_are_forgotten() -> None:
    batched_policy = policy_of(2, Blobs(), 1 << 30)
    for digest in ("t1", "p1"):
        batched_policy.seat(0, digest)
        act(batched_policy)
    assert len(batched_policy.save()["states"]) == 1
    batched_policy.set_live(network(TINY, 5))
    act(batched_policy)
    assert len(batched_policy.save()["states"]) == 2
