"""What every store keeps when several threads write at once: one suite, a subclass for each kind
of store.
"""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager, suppress

import pytest
from store_contract import event

from league.errors import InvalidInput, StorageFull
from matchmaker.store.base import Store


class Memory:
    """What a league's memory does: it follows commits, and is held while it is ahead of the
    disk.
    """

    def __init__(self, store: Store) -> None:
        self.store, self.seen, self.commits, self.rebuilt = store, [], 0, 0
        self.lock = threading.RLock()
        store.follow(self.rebuild, self.lock, self.told)

    def rebuild(self) -> None:
        self.rebuilt += 1
        with self.store.read() as reader:
            self.seen = [event.text for event in reader.events(0, 1000)]

    def told(self) -> None:
        self.commits += 1

    def looked_at(self) -> list[str]:
        """As a reader sees it, which no writer holds off for ever."""
        with self.lock:
            return list(self.seen)


class GroupContract:
    @pytest.fixture
    def store(self):
        raise NotImplementedError

    @pytest.fixture
    def memory(self, store):
        return Memory(store)

    @contextmanager
    def together(self, store, effects):
        """All effects queue up behind one that waits; yields the outcomes, filled at the end of the
        block.

        One that is no function is the arguments of `once`.
        """
        outcomes: list = [None] * len(effects)
        begun, go = threading.Event(), threading.Event()

        def first(tx):
            begun.set()
            assert go.wait(20)

        def call(number, effect):
            try:
                outcomes[number] = store.submit(effect) if callable(effect) else store.once(*effect)
            except Exception as error:
                outcomes[number] = error

        def lead():
            with suppress(StorageFull):
                store.submit(first)

        threads = [threading.Thread(target=lead)]
        threads[0].start()
        assert begun.wait(20)
        for number, effect in enumerate(effects):
            threads.append(threading.Thread(target=call, args=(number, effect)))
            threads[-1].start()
            time.sleep(0.02)  # so that they come in this order
        try:
            yield outcomes
        finally:
            go.set()
            for thread in threads:
                thread.join(20)

    def adds(self, memory, text):
        def effect(tx):
            seen = list(memory.seen)
            tx.add_events([event(text)])
            tx.after_commit(lambda: memory.seen.append(text))
            return seen

        return effect

    def fails(self, memory, text):
        def effect(tx):
            self.adds(memory, text)(tx)
            raise ZeroDivisionError

        return effect

    def texts(self, store):
        with store.read() as reader:
            return [event.text for event in reader.events(0, 1000)]

    def test_requests_that_wait_share_a_commit_in_the_order_they_came(self, store, memory):
        names = [f"request {number}" for number in range(6)]
        with self.together(store, [self.adds(memory, name) for name in names]) as outcomes:
            pass
        assert self.texts(store) == memory.seen == names
        assert memory.commits <= 3, "six requests and the one before them"
        assert outcomes == [names[:number] for number in range(6)], (
            "each finds memory as it was left"
        )

    def test_one_that_fails_fails_alone(self, store, memory):
        effects = [self.adds(memory, "a"), self.fails(memory, "bad"), self.adds(memory, "c")]
        with self.together(store, effects) as outcomes:
            pass
        assert self.texts(store) == memory.seen == ["a", "c"]
        assert outcomes[0] == []
        assert isinstance(outcomes[1], ZeroDivisionError)
        assert outcomes[2] == ["a"]
        assert memory.rebuilt == 0

    def test_a_request_repeated_beside_itself_takes_effect_once(self, store, memory):
        def once(tx):
            return str(tx.add_events([event("once")])).encode()

        replies: list[bytes] = []
        threads = [
            threading.Thread(
                target=lambda: replies.append(store.once("r", "Method", "f", 1.0, once))
            )
            for _ in range(5)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        assert replies == [b"1"] * 5
        assert self.texts(store) == ["once"]

    def test_a_request_and_its_repetition_share_a_commit(self, store, memory):
        def once(tx):
            return str(tx.add_events([event("once")])).encode()

        calls = [("r", "Method", "f", 1.0, once)] * 2 + [("r", "Method", "other", 1.0, once)]
        with self.together(store, [*calls, self.adds(memory, "d")]) as outcomes:
            pass
        assert outcomes[:2] == [b"1", b"1"]
        assert isinstance(outcomes[2], InvalidInput)
        assert self.texts(store) == ["once", "d"]

    def test_a_request_that_fails_can_come_again_in_the_same_commit(self, store, memory):
        tries = []

        def once(tx):
            tries.append(tx.add_events([event("once")]))
            if len(tries) == 1:
                raise ZeroDivisionError
            return b"done"

        with self.together(store, [("r", "Method", "f", 1.0, once)] * 3) as outcomes:
            pass
        assert isinstance(outcomes[0], ZeroDivisionError)
        assert outcomes[1:] == [b"done", b"done"]
        assert (self.texts(store), len(tries)) == (["once"], 2)

    def test_memory_that_can_not_follow_one_is_rebuilt_before_the_next(self, store, memory):
        def breaks(tx):
            tx.add_events([event("b")])
            tx.after_commit(lambda: 1 / 0)

        effects = [self.adds(memory, "a"), breaks, self.adds(memory, "c")]
        with self.together(store, effects) as outcomes:
            pass
        assert self.texts(store) == memory.seen == ["a", "b", "c"]
        assert outcomes[2] == ["a", "b"]
        assert memory.rebuilt == 1

    def test_nobody_sees_memory_ahead_of_the_disk(self, store, memory):
        """A reader that looks between two requests of one commit waits until both are on disk."""
        seen: list[tuple[list[str], list[str]]] = []

        def looks():
            found = memory.looked_at()
            seen.append((found, self.texts(store)))

        reader = threading.Thread(target=looks)

        def second(tx):
            reader.start()
            reader.join(0.1)
            return self.adds(memory, "b")(tx)

        with self.together(store, [self.adds(memory, "a"), second]):
            pass
        reader.join(20)
        ((remembered, stored),) = seen
        assert set(remembered) <= set(stored)

    def test_a_commit_that_fails_leaves_nothing_of_all_its_requests(self, store, memory):
        effects = [self.adds(memory, "a"), self.fails(memory, "bad"), self.adds(memory, "c")]
        with self.together(store, effects) as outcomes:
            self.let_commits_fail(store, True)
        self.let_commits_fail(store, False)
        assert self.texts(store) == memory.looked_at() == []
        assert [type(outcome) for outcome in outcomes] == [
            StorageFull,
            ZeroDivisionError,
            StorageFull,
        ]
        assert store.submit(self.adds(memory, "d")) == []
        assert self.texts(store) == memory.seen == ["d"]

    def let_commits_fail(self, store, fails: bool) -> None:
        """As on a full disk."""
        raise NotImplementedError
