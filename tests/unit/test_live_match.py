"""A match in the browser, over a made-up socket and arena."""

from __future__ import annotations

import asyncio
import threading
from types import SimpleNamespace
from typing import Any

from league.errors import Unavailable
from league.security.roles import AccessRole
from league.views.dashboard import live


def test_heartbeats_come_while_a_match_waits_for_the_compiler() -> None:
    beaten, sent = threading.Event(), list[dict[str, Any]]()

    class Arena:
        loading = asyncio.Lock()

        def settings(self) -> Any:
            return SimpleNamespace(spec=lambda: SimpleNamespace(action_size=2))

        def begin(self, names: tuple[str, str], *, is_rated: bool) -> None:
            heard = beaten.wait(20.0)  # only without a heartbeat does this take its time
            raise Unavailable("heard" if heard else "silent")

        def beat(self, frames: int) -> None:
            beaten.set()

    class Socket:
        query_params = {"first": "human", "second": "based"}  # noqa: RUF012
        state = SimpleNamespace(role=AccessRole.READ)

        async def accept(self) -> None: ...

        async def close(self) -> None: ...

        async def receive_text(self) -> str:
            await asyncio.Event().wait()  # the browser stays, and says nothing
            return ""

        async def send_json(self, message: dict[str, Any]) -> None:
            sent.append(message)

    asyncio.run(live.play(Socket(), Arena()))
    assert sent == [{"problem": "heard"}]
