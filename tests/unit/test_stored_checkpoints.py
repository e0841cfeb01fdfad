"""Checkpoints in an object store: another machine continues from them, an outage loses none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from object_store import object_store
from waiting import wait_for

from league.errors import Unavailable
from league.runs.store import Store
from learner.train import stored_checkpoints
from learner.train.checkpoint import FORMAT
from learner.train.stored_checkpoints import StoredCheckpoints

PLACE = "learner-main/checkpoints"
Machine = Callable[[str], StoredCheckpoints]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(f"file://{tmp_path}/store", is_owner=True)
    store.claim("a league")
    return store


@pytest.fixture
def machine(store: Store, tmp_path: Path) -> Machine:
    """Makes the checkpoints of a machine with a folder of its own."""
    return lambda name: StoredCheckpoints(tmp_path / name, store, PLACE)


def write(checkpoints: StoredCheckpoints, *steps: int) -> None:
    """Writes checkpoints, each of which is in the store before the next."""
    for step in steps:
        checkpoints.write(step, {"step": step})
        checkpoints.close()


def steps_in(store: Store) -> list[int]:
    return [int(name.split("step_")[1].split(".")[0]) for name in store.names(PLACE)]


def test_another_machine_continues_from_the_newest(machine: Machine, store: Store) -> None:
    write(machine("a"), 10, 20, 30, 40, 50)
    assert steps_in(store) == [30, 40, 50], "older ones are removed there too"
    other = machine("b")
    assert other.read_newest() == {"format": FORMAT, "step": 50}
    assert [path.name for path in other.files()] == ["step_000000000050.pt"]
    write(other, 60)
    back = machine("a")
    assert back.read_newest() == {"format": FORMAT, "step": 60}, "its own are older"


def test_a_damaged_object_falls_back_to_the_one_before(
    machine: Machine, store: Store, tmp_path: Path
) -> None:
    write(machine("a"), 10, 20)
    (newest,) = (tmp_path / "store" / PLACE).glob("step_000000000020.*")
    newest.write_bytes(newest.read_bytes()[:-1] + b"!")
    assert machine("b").read_newest() == {"format": FORMAT, "step": 10}


def test_checkpoints_that_do_not_fit_leave_the_store(machine: Machine, store: Store) -> None:
    write(machine("a"), 10, 20, 30)
    other = machine("b")
    assert other.read_newest(lambda values: values["step"] < 20) == {"format": FORMAT, "step": 10}
    assert steps_in(store) == [10, 20, 30], "they stay until there is one that fits"
    write(other, 15)
    assert steps_in(store) == [10, 15]
    assert machine("c").read_newest() == {"format": FORMAT, "step": 15}


def test_a_step_that_is_reached_again_replaces_the_first(machine: Machine, store: Store) -> None:
    write(machine("a"), 10)
    again = machine("b")
    again.write(10, {"step": 10, "again": True})
    again.close()
    assert steps_in(store) == [10]
    assert machine("c").read_newest() == {"format": FORMAT, "step": 10, "again": True}


def test_names_of_strangers_are_no_checkpoints(machine: Machine, store: Store) -> None:
    write(machine("a"), 10)
    for name in ("notes.txt", "step_000000000099.pt", "deeper/step_000000000099.pt"):
        store.create(f"{PLACE}/{name}", b"x")
    assert machine("b").read_newest() == {"format": FORMAT, "step": 10}


def test_a_generation_that_is_cleared_leaves_nothing(machine: Machine, store: Store) -> None:
    first = machine("a")
    write(first, 10, 20)
    first.clear()
    assert (first.files(), store.names(PLACE)) == ([], [])


def test_a_store_that_is_away_for_a_while_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(stored_checkpoints, "RETRY_SECONDS", 0.05)
    monkeypatch.setattr("league.runs.store.AWAY_SECONDS", 0.0)
    with object_store() as server:
        store = Store(server.address())
        here = StoredCheckpoints(tmp_path / "a", store, PLACE)
        server.stop()
        for step in (10, 20):  # training goes on
            here.write(step, {"step": step})
        wait_for(lambda: caplog.records)  # an attempt has failed
        server.start()
        wait_for(lambda: steps_in(store)[-1:] == [20])
        assert StoredCheckpoints(tmp_path / "b", store, PLACE).read_newest() is not None


def test_a_learner_does_not_begin_without_its_checkpoints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("league.runs.store.AWAY_SECONDS", 0.0)
    with object_store() as server:
        store = Store(server.address())
        write(StoredCheckpoints(tmp_path / "a", store, PLACE), 10)
        server.stop()
        asked = list[bool]()

        def should_stop() -> bool:
            asked.append(True)
            return len(asked) > 2

        other = StoredCheckpoints(tmp_path / "b", store, PLACE, should_stop=should_stop)
        with pytest.raises(Unavailable):
            other.read_newest()
        assert len(asked) == 3, "it has waited"
