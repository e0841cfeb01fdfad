"""A match in the browser, over a made-up socket and arena."""

from __future__ import annotations

import asyncio
import threading
from types import SimpleNamespace
from typing import Any

from league.errors import Unavailable
from league.security.roles import AccessRole
from league.views.dashboard import live
from league.views.dashboard.arena import MOST_WAITING


class Arena:
    """Begins no match, and says whether a heartbeat came meanwhile."""

    def __init__(self) -> None:
        self.loading, self.waiting = asyncio.Lock(), set[asyncio.Task[None]]()
        self.beaten = threading.Event()

    def settings(self) -> Any:
        return SimpleNamespace(spec=lambda: SimpleNamespace(action_size=2))

    def begin(self, names: tuple[str, str], *, is_rated: bool) -> None:
        heard = self.beaten.wait(20.0)  # only without a heartbeat does this take its time
        raise Unavailable("heard" if heard else "silent")

    def beat(self, frames: int) -> None:
        self.beaten.set()


class Socket:
    """Its browser stays, and says nothing, until `left` is set."""

    query_params = {"first": "human", "second": "based"}  # noqa: RUF012
    state = SimpleNamespace(role=AccessRole.READ)

    def __init__(self) -> None:
        self.sent, self.left = list[dict[str, Any]](), asyncio.Event()

    async def accept(self) -> None: ...

    async def close(self) -> None: ...

    async def receive_text(self) -> str:
        await self.left.wait()
        raise live.WebSocketDisconnect

    async def send_json(self, message: dict[str, Any]) -> None:
        self.sent.append(message)


def listeners() -> list[Any]:
    """The tasks that listen to browsers."""
    return [one for one in asyncio.all_tasks() if "_listen" in repr(one)]


def test_heartbeats_come_while_a_match_waits_for_the_compiler() -> None:
    async def check() -> None:
        socket = Socket()
        await live.play(socket, Arena())
        assert socket.sent == [{"problem": "heard"}]
        assert not listeners(), "nobody listens to a match that has not begun"

    asyncio.run(check())


def test_few_browsers_wait_for_another_match_to_load() -> None:
    async def check() -> None:
        arena = Arena()
        await arena.loading.acquire()
        waiting = [Socket() for _ in range(MOST_WAITING)]
        tasks = [asyncio.create_task(live.play(socket, arena)) for socket in waiting]
        while len(arena.waiting) < MOST_WAITING:
            await asyncio.sleep(0.01)
        refused = Socket()
        await live.play(refused, arena)
        assert refused.sent[0]["problem"].startswith(f"{MOST_WAITING} matches wait")
        waiting[0].left.set()  # and makes room
        while all(not one.done() for one in arena.waiting):
            await asyncio.sleep(0.01)
        tasks.append(asyncio.create_task(live.play(late := Socket(), arena)))
        while len(arena.waiting) <= MOST_WAITING:
            await asyncio.sleep(0.01)
        assert not late.sent
        assert not arena.beaten.is_set(), "who waits sends no heartbeats"
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert not arena.waiting
        assert not listeners()

    asyncio.run(asyncio.wait_for(check(), 60.0))
