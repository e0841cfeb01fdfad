"""What a crowd keeps in memory follows its bound and its seats, never the size of the league."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest
import torch
from agents import PERCEPTRON, TINY, network

from league.agent.contract import NetworkConfig
from league.agent.crowd import Crowd

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
        with torch.no_grad():  # the crowd copies what it keeps
            made.actor.bias.fill_(float(digest[1:])) if digest[0] == "p" else None
        return made


def crowd_of(seats: int, blobs: Blobs, max_bytes: int) -> Crowd:
    return Crowd(seats, blobs, seed=0, max_bytes=max_bytes, action_size=10)


def act(crowd: Crowd) -> None:
    crowd.act(SEEN[: crowd.num_seats])


def test_the_longest_unused_is_forgotten_first() -> None:
    blobs = Blobs()
    crowd = crowd_of(1, blobs, 4 * LARGE)  # three, and the copy of the one that plays
    for digest in ("t1", "t2", "t3", "t2", "t4"):
        crowd.seat(0, digest)
        act(crowd)
        assert crowd.resident_bytes <= 4 * LARGE
    assert blobs.loaded == ["t1", "t2", "t3", "t4"]
    assert crowd.resident == 3
    crowd.seat(0, "t3")
    crowd.seat(0, "t2")
    crowd.seat(0, "t4")
    assert blobs.loaded == ["t1", "t2", "t3", "t4"], "1 went, which was used before the others"
    crowd.seat(0, "t1")
    act(crowd)
    crowd.seat(0, "t3")
    assert blobs.loaded == ["t1", "t2", "t3", "t4", "t1", "t3"], (
        "3 was unused for longest when 1 came back"
    )


def test_bytes_count_and_not_networks() -> None:
    blobs = Blobs()
    crowd = crowd_of(1, blobs, LARGE + 8 * SMALL)
    crowd.seat(0, "t0")
    act(crowd)
    assert crowd.resident_bytes == 2 * LARGE, "what plays stays, though it is too much"
    for number in range(20):
        crowd.seat(0, f"p{number}")
        act(crowd)
        assert crowd.resident_bytes <= LARGE + 8 * SMALL
    assert crowd.resident >= 8, "as many small ones as fit"
    assert LARGE / SMALL > 20


def test_who_plays_stays_and_one_sentence_says_that_it_is_too_much(caplog) -> None:
    blobs = Blobs()
    crowd = crowd_of(4, blobs, 2 * LARGE)
    with caplog.at_level(logging.WARNING):
        for turn in range(3):
            for seat in range(4):
                crowd.seat(seat, f"t{seat + turn}")
            act(crowd)
            assert crowd.resident == 4
    (warned,) = caplog.messages
    assert "4 snapshots" in warned
    assert "learner.resident_mib" in warned
    loaded = len(blobs.loaded)
    act(crowd)
    assert len(blobs.loaded) == loaded, "none of them was forgotten"
    for seat in range(1, 4):
        crowd.vacate(seat)
    act(crowd)
    assert crowd.resident == 1
    assert crowd.resident_bytes <= 3 * LARGE


def test_copies_in_stacks_shrink_with_the_seats_and_count() -> None:
    crowd = crowd_of(32, Blobs(), 1 << 40)
    most = 0
    for seats in (32, 3, 20, 1):
        for seat in range(32):
            crowd.seat(seat, f"t{seat}") if seat < seats else crowd.vacate(seat)
        act(crowd)
        copies = crowd.resident_bytes - crowd.resident * LARGE
        assert seats * LARGE <= copies <= (2 * seats + 1) * LARGE
        most = max(most, copies)
    assert most <= 1.25 * 32 * LARGE


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the system does not tell")
def test_two_thousand_members_take_no_more_memory_than_ten() -> None:
    bound = 40 * LARGE
    crowd, before = crowd_of(8, Blobs(), bound), 0
    for number in range(2000):
        crowd.seat(number % 8, f"t{number}")
        if number % 8 == 7:
            act(crowd)
        assert crowd.resident_bytes <= bound
        if number == 40:
            before = resident_set()
    assert crowd.resident >= 28
    assert resident_set() - before < bound, f"{2000 * LARGE >> 20} MiB have passed through"


def resident_set() -> int:
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def test_states_of_architectures_that_left_are_forgotten() -> None:
    crowd = crowd_of(2, Blobs(), 1 << 30)
    for digest in ("t1", "p1"):
        crowd.seat(0, digest)
        act(crowd)
    assert len(crowd.save()["states"]) == 1
    crowd.set_live(network(TINY, 5))
    act(crowd)
    assert len(crowd.save()["states"]) == 2
