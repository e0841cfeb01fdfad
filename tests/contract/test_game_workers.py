"""Games in worker processes keep the contract of a batched game, and a worker that is lost costs
its matches only.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from choice_contract import ChoiceContract
from game_contract import RestingContract, assert_same, history, luck, seeds
from waiting import wait_for

from league.errors import ConfigError, Unavailable
from league.games.base import BatchedGame
from league.games.registry import make_batched
from league.games.workers import links, server
from league.games.workers.game import WorkerGame, make_spread
from league.games.workers.server import WorkerServer
from league.games.workers.serving import serve
from league.security.credentials import Credentials
from league.security.settings import SecuritySettings


class WorkerThread:
    """Stands in for a worker process, which takes seconds of imports."""

    def __init__(self, command: list[str], rows: range, **options: Any) -> None:
        self.connection, theirs = multiprocessing.Pipe()
        self.popen = SimpleNamespace(pid=os.getpid(), kill=lambda: None, poll=lambda: None)
        game = json.loads(command[-1])

        def make(matches: int) -> BatchedGame:
            return make_batched(num_matches=matches, **game)

        threading.Thread(target=serve, args=(make, theirs), daemon=True).start()

    def end(self) -> None:
        self.connection.close()


def spread(
    name: str,
    matches: int,
    workers: int = 2,
    addresses: tuple[str, ...] = (),
    max_frames: int | None = None,
    credentials: Credentials = Credentials(),  # noqa: B008
    **options: Any,
) -> WorkerGame:
    return make_spread(
        name,
        matches,
        workers=(*addresses, *[None] * workers),
        credentials=credentials,
        max_frames=max_frames,
        options=options,
    )


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "Process", WorkerThread)


@pytest.mark.usefixtures("threads")
class TestKuhn(ChoiceContract):
    timed = False
    pace = 10

    def make(self, num_matches: int, max_frames: int | None = None) -> BatchedGame:
        return spread("kuhn", num_matches, max_frames=max_frames)

    def strangers(self, num_matches: int) -> list[BatchedGame]:
        return [spread(name, num_matches) for name in ("leduc", "matrix:rps")]


@pytest.mark.usefixtures("threads")
class TestBrawl(RestingContract):
    pace = 10

    def make(self, num_matches: int, max_frames: int | None = None) -> BatchedGame:
        return spread("brawl", num_matches, max_frames=max_frames)


@pytest.fixture(scope="module")
def addresses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, ...]]:
    """Two workers that are reached by gRPC."""
    with served(tmp_path_factory) as one, served(tmp_path_factory) as other:
        yield one.address, other.address


def served(
    folder: Any,
    game: str = "leduc",
    port: int = 0,
    options: dict[str, Any] | None = None,
    **security: Any,
) -> WorkerServer:
    return WorkerServer(
        json.dumps({"name": game, **(options or {})}),
        port,
        security=SecuritySettings(**security),
        folder=folder if isinstance(folder, Path) else folder.mktemp("worker"),
    )


@pytest.mark.long
@pytest.mark.usefixtures("threads")
class TestServed(ChoiceContract):
    """Leduc on workers that are reached by gRPC."""

    timed = False
    pace = 10

    @pytest.fixture(autouse=True)
    def _served(self, addresses: tuple[str, ...]) -> None:
        self.addresses = addresses

    def make(self, num_matches: int, max_frames: int | None = None) -> BatchedGame:
        return spread("leduc", num_matches, 0, self.addresses, max_frames=max_frames)

    def strangers(self, num_matches: int) -> list[BatchedGame]:
        return [make_batched("kuhn", num_matches)]


@pytest.mark.usefixtures("threads")
def test_workers_play_the_same_matches_as_the_learner_itself() -> None:
    found = []
    for game in (make_batched("leduc", 7), spread("leduc", 7, 3)):
        game.bots_N2[:, 1] = 0
        game.reset(seeds(7))
        found.append(history(game, luck(game, 60)))
    assert_same(*found)


def begun(game: WorkerGame) -> WorkerGame:
    game.reset(np.arange(game.num_matches, dtype=np.uint64))
    return game


def stepped(game: WorkerGame) -> WorkerGame:
    game.step(game.idle_actions())
    return game


def returns(game: WorkerGame) -> bool:
    """Plays on as a learner does, and tells whether no row is absent."""
    stepped(game).begin_absent()
    return not game.absent_N.any()


def test_a_killed_process_costs_its_matches_and_the_others_go_on_until_it_is_back() -> None:
    with closing(begun(spread("matrix:rps", 7, 3, rounds=1000))) as game:
        first, second, third = game.worker_pids
        os.kill(second, signal.SIGKILL)
        stepped(game)
        assert sorted(game.failures) == [2, 3]
        assert all("SIGKILL" in why or "-9" in why for why in game.failures.values())
        assert game.ended_N.tolist() == game.absent_N.tolist()
        assert game.absent_N.tolist() == [False] * 2 + [True] * 2 + [False] * 3
        stepped(game)
        assert not game.failures
        assert game.frames_N.tolist() == [2, 2, 0, 0, 2, 2, 2]
        game.reset(np.arange(7, dtype=np.uint64) + np.uint64(50), game.absent_N)
        wait_for(lambda: returns(game))
        others = np.array([0, 1, 4, 5, 6])
        assert len(set(game.frames_N[others].tolist())) == 1
        assert game.frames_N[0] > 2
        assert game.frames_N[2:4].tolist() == [0, 0]
        assert {first, third} < set(game.worker_pids)
        assert second not in game.worker_pids
        with closing(make_batched("matrix:rps", 7, rounds=1000)) as alone:
            alone.reset(np.arange(7, dtype=np.uint64) + np.uint64(50))
            stepped(game)
            alone.step(alone.idle_actions())
            assert np.array_equal(game.observations_N2O[2:4], alone.observations_N2O[2:4])


def test_matches_that_are_lost_between_two_steps_fail_in_the_next_step() -> None:
    with closing(begun(spread("matrix:rps", 4, 2, rounds=1000))) as game:
        os.kill(game.worker_pids[0], signal.SIGKILL)
        game.save()
        assert not game.absent_N.any()
        stepped(game)
        assert sorted(game.failures) == [0, 1]
        assert game.ended_N.tolist() == game.absent_N.tolist() == [True, True, False, False]


def test_a_worker_dies_with_its_learner() -> None:
    read, write = os.pipe()
    child = os.fork()
    if not child:
        game = begun(spread("matrix:rps", 2, 1))
        os.write(write, str(game.worker_pids[0]).encode())
        signal.pause()
    pid = int(os.read(read, 20))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    wait_for(lambda: not Path(f"/proc/{pid}/stat").exists() or is_zombie(pid))


def is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] == "Z"
    except FileNotFoundError:
        return True


@pytest.mark.usefixtures("threads")
def test_a_server_that_is_stopped_costs_its_matches_and_comes_back(tmp_path: Path) -> None:
    with served(tmp_path, "matrix:rps") as other:
        first = served(tmp_path, "matrix:rps")
        first.__enter__()
        port = first.port
        with closing(begun(spread("matrix:rps", 4, 0, (first.address, other.address)))) as game:
            first.__exit__()
            stepped(game)
            assert sorted(game.failures) == [0, 1]
            stepped(game)
            assert not game.failures
            with served(tmp_path, "matrix:rps", port):
                wait_for(lambda: returns(game))
                assert not stepped(game).failures


@pytest.mark.usefixtures("threads")
def test_a_worker_with_another_game_is_refused(tmp_path: Path) -> None:
    with (
        served(tmp_path, "kuhn") as running,
        closing(spread("leduc", 2, 0, (running.address,))) as game,
        pytest.raises(ConfigError, match="kuhn"),
    ):
        begun(game)


@pytest.mark.usefixtures("threads")
def test_a_worker_wants_the_league_s_token(tmp_path: Path) -> None:
    with served(tmp_path, tokens=True) as running:
        token = (tmp_path / "tokens" / "worker.token").read_text().strip()
        shown = Credentials(token=token)
        with closing(spread("leduc", 2, 0, (running.address,), credentials=shown)) as game:
            assert not stepped(begun(game)).failures
        read = Credentials(token=(tmp_path / "tokens" / "read.token").read_text().strip())
        for wrong in (Credentials(), read):
            with closing(spread("leduc", 2, 0, (running.address,), credentials=wrong)) as game:
                game.host.wait_seconds = 1.0
                with pytest.raises(Unavailable):
                    begun(game)


@pytest.mark.long
def test_a_hanging_game_is_ended_with_its_stream(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "MOST_STREAMS", 1)
    name, told = "python:hanging_game:make", tmp_path / "told"
    with served(tmp_path, name, options={"told": str(told)}) as running:
        for _ in range(2):
            with closing(begun(spread(name, 2, 0, (running.address,), told=str(told)))) as game:
                with monkeypatch.context() as patch:
                    patch.setattr(links, "ANSWER_SECONDS", 1.0)
                    wait_for(lambda game=game: stepped(game) and told.exists())
                pid = int(told.read_text())
                wait_for(lambda pid=pid: not Path(f"/proc/{pid}").exists() or is_zombie(pid))
                told.unlink()
