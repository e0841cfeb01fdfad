"""Requests of several threads share one commit; in a crowd who leads waits a moment for more."""

import threading
import time
from collections.abc import Callable, Sequence

import pytest

from matchmaker.store.group import CROWD, Group, Request


class Commits:
    """Notes what is committed together. The first commit takes as long as `hold` is held."""

    def __init__(self) -> None:
        self.groups: list[list[str]] = []
        self.pauses = 0
        self.hold, self.begun = threading.Lock(), threading.Event()
        self.on_pause: Callable[[], None] = lambda: None
        self.group = Group(self.commit, self.pause)
        self.threads: list[threading.Thread] = []

    def commit(self, group: Sequence[Request]) -> None:
        self.begun.set()
        with self.hold:
            self.groups.append([request.request_id for request in group])
        for request in group:
            request.result = request.request_id

    def pause(self) -> None:
        self.pauses += 1
        self.on_pause()

    def call(self, name: str) -> None:
        """Another thread submits."""
        self.threads.append(
            threading.Thread(target=self.group.submit, args=(lambda tx: None, name))
        )
        self.threads[-1].start()

    def queue(self, name: str) -> None:
        """As `call`, of one that must wait for its turn; it does when this returns."""
        before = len(self.group._waiting)
        self.call(name)
        while len(self.group._waiting) == before:
            time.sleep(0.001)

    def done(self) -> None:
        for thread in self.threads:
            thread.join(20)
        self.threads.clear()


@pytest.fixture
def commits() -> Commits:
    return Commits()


def behind_one(commits: Commits, *names: str) -> None:
    """`names` are submitted while another commit is on."""
    with commits.hold:
        commits.call("first")
        assert commits.begun.wait(20)
        for name in names:
            commits.queue(name)
    commits.done()


def test_whoever_comes_during_a_commit_shares_the_next_in_order(commits: Commits) -> None:
    names = [f"r{n}" for n in range(CROWD + 2)]
    behind_one(commits, *names)
    assert commits.groups == [["first"], names]


def test_few_callers_never_wait_for_more(commits: Commits) -> None:
    for name in ("a", "b"):
        assert commits.group.submit(lambda tx: None, name) == name
    behind_one(commits, *(f"r{n}" for n in range(CROWD - 1)))
    commits.group.submit(lambda tx: None, "last")
    assert commits.pauses == 0
    assert [len(group) for group in commits.groups] == [1, 1, 1, CROWD - 1, 1]


def test_behind_a_crowd_who_leads_waits_for_others_once(commits: Commits) -> None:
    behind_one(commits, *(f"r{n}" for n in range(CROWD)))
    assert commits.pauses == 0  # its commit is the first that is a crowd's
    commits.on_pause = lambda: commits.queue("came meanwhile")
    commits.group.submit(lambda tx: None, "leader")
    commits.done()
    assert commits.groups[2:] == [["leader", "came meanwhile"]]
    assert commits.pauses == 1
    commits.group.submit(lambda tx: None, "alone")
    assert commits.pauses == 1  # two were no crowd


def test_a_commit_that_breaks_leaves_the_next_one_a_leader() -> None:
    broken = [True]

    def commit(group: Sequence[Request]) -> None:
        if broken.pop():
            raise MemoryError
        for request in group:
            request.result = "done"

    group = Group(commit, lambda: None)
    with pytest.raises(MemoryError):
        group.submit(lambda tx: None)
    broken.append(False)
    assert group.submit(lambda tx: None) == "done"
