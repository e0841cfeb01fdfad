"""What a batched policy keeps in memory follows its bound and its seats, not the league's size."""

import logging

import numpy as np
from agents import PERCEPTRON, TINY, network

from league.agent.batched_policy import BatchedPolicy

SEEN = np.random.default_rng(0).uniform(-1, 1, (32, 64)).astype(np.float32)
MADE = {"t": network(TINY), "p": network(PERCEPTRON)}
SMALL, LARGE = (4 * sum(p.numel() for p in MADE[kind].parameters()) for kind in "pt")


class Policy(BatchedPolicy):
    """Loads networks by name: `t…` tiny agents, `p…` perceptrons; notes which were loaded."""

    def __init__(self, seats, max_bytes):
        self.loaded = []
        super().__init__(seats, self.load, seed=0, max_bytes=max_bytes, action_size=10)

    def load(self, digest):
        self.loaded.append(digest)
        return MADE[digest[0]]

    def play(self, *digests):
        for seat, digest in enumerate(digests):
            self.seat(seat, digest) if digest else self.vacate(seat)
        self.act(SEEN[: self.num_seats])


def test_the_least_recently_used_is_dropped_first():
    policy = Policy(1, 4 * LARGE)  # three, and the copy of the one that plays
    for digest in ("t1", "t2", "t3", "t2", "t4"):
        policy.play(digest)
        assert policy.resident_bytes <= 4 * LARGE
    assert policy.resident == 3
    for digest in ("t3", "t2", "t4"):
        policy.seat(0, digest)
    assert policy.loaded == ["t1", "t2", "t3", "t4"], "only t1 was dropped"
    policy.play("t1")
    policy.seat(0, "t3")
    assert policy.loaded[4:] == ["t1", "t3"], "t3 was unused for longest when t1 came back"


def test_the_bound_is_in_bytes():
    policy = Policy(1, LARGE + 8 * SMALL)
    policy.play("t0")
    assert policy.resident_bytes == 2 * LARGE, "what plays stays, even over the bound"
    for number in range(20):
        policy.play(f"p{number}")
        assert policy.resident_bytes <= LARGE + 8 * SMALL
    assert policy.resident >= 8


def test_players_stay_and_one_warning_says_that_they_are_too_large(caplog):
    policy = Policy(4, 2 * LARGE)
    with caplog.at_level(logging.WARNING):
        for turn in range(3):
            policy.play(*(f"t{seat + turn}" for seat in range(4)))
            assert policy.resident == 4
    (warned,) = caplog.messages
    assert "4 snapshots" in warned
    loaded = len(policy.loaded)
    policy.act(SEEN[:4])
    assert len(policy.loaded) == loaded
    policy.play("t5", "", "", "")
    assert policy.resident == 1
    assert policy.resident_bytes <= 3 * LARGE


def test_copies_in_stacks_follow_the_seats():
    policy, copies = Policy(32, 1 << 40), []
    for seats in (32, 3, 20, 1):
        policy.play(*(f"t{seat}" if seat < seats else "" for seat in range(32)))
        copies.append(policy.resident_bytes - policy.resident * LARGE)
        assert seats * LARGE <= copies[-1] <= (2 * seats + 1) * LARGE
    assert max(copies) <= 1.25 * 32 * LARGE


def test_states_of_architectures_that_left_are_dropped():
    policy = Policy(2, 1 << 30)
    policy.play("t1")
    policy.play("p1")
    assert len(policy.save()["states"]) == 1
    policy.set_live(network(TINY, 5))
    policy.act(SEEN[:2])
    assert len(policy.save()["states"]) == 2
