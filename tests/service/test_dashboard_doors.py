"""What strangers do at the dashboard's door: other sites, forged lines, connections left open."""

from __future__ import annotations

import contextlib
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from test_dashboard import serving
from waiting import PATIENCE, wait_for

from league.views.dashboard import connections
from league.views.dashboard.connections import BrowserConnection

FILES = 256
POLLING = "/_nicegui_ws/socket.io/?EIO=4&transport=polling"
GET = "GET {} HTTP/1.1\r\nHost: {}\r\n{}Connection: close\r\n\r\n"


class Door:
    """The address of a dashboard's process with few files, and the file of its log."""

    def __init__(self, address: str, log: Path) -> None:
        self.own, self.log = address.removeprefix("http://"), log

    def connection(self) -> socket.socket:
        host, _, port = self.own.partition(":")
        return socket.create_connection((host, int(port)), timeout=60)

    def ask(self, path: str = "/", more: str = "") -> str:
        """The answer to a request, byte for byte."""
        with self.connection() as found, found.makefile("rb") as answer:
            found.sendall(GET.format(path, self.own, more).encode())
            return answer.read().decode("latin-1")

    def status(self, path: str = "/", more: str = "") -> int:
        return int(self.ask(path, more).split()[1])


@pytest.fixture(scope="module")
def door(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    log = tmp_path_factory.mktemp("log") / "dashboard.log"
    limited = ("sh", "-c", f'ulimit -n {FILES}; exec "$@"', "sh")
    with log.open("wb") as file, serving(finished, prefix=limited, stderr=file) as address:
        yield Door(address, log)


def test_no_other_site_may_show_the_pages_or_read_them(door: Door) -> None:
    foreign = "Origin: http://evil.example\r\n"
    for path in ("/", "/none", "/download/leaderboard.csv"):
        head = door.ask(path).partition("\r\n\r\n")[0].lower()
        assert "frame-ancestors 'none'" in head
        assert "x-content-type-options: nosniff" in head
        assert "referrer-policy: same-origin" in head
    answer = door.ask(POLLING, foreign)
    assert answer.startswith("HTTP/1.1 403")
    assert "access-control" not in answer.lower()
    assert "access-control" not in door.ask(POLLING, f"Origin: http://{door.own}\r\n").lower()
    wanted = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    wanted += "Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n"
    asked = GET.replace("Connection: close\r\n", "").format(
        "/play/socket", door.own, wanted + foreign
    )
    with door.connection() as found:
        found.sendall(asked.encode())
        assert found.recv(20).startswith(b"HTTP/1.1 403")


def test_a_name_that_another_site_points_here_is_refused(door: Door) -> None:
    own = door.own
    for hosts in (["evil.example"], ["evil.example", own], [own, "evil.example"], [""]):
        with door.connection() as found, found.makefile("rb") as answer:
            lines = "".join(f"Host: {one}\r\n" for one in hosts)
            found.sendall(f"GET / HTTP/1.1\r\n{lines}Connection: close\r\n\r\n".encode())
            assert answer.readline().startswith(b"HTTP/1.1 400"), hosts
    assert door.status() == 200


def test_requests_forge_no_line_and_do_not_fill_the_log(door: Door) -> None:
    for path in ("/x%0aFORGED%1b[31m", f"{POLLING}&sid=%0aFORGED%1b[31m"):
        assert door.status(path) in (400, 404)
    for number in range(30):
        assert door.status(f"/none{number}") == 404
    written = door.log.read_text()
    assert "\x1b" not in written
    assert not [line for line in written.splitlines() if line.startswith("FORGED")]
    assert len(written.splitlines()) < 10, written


def test_a_slow_page_is_waited_for_and_a_failure_keeps_the_menu(finished: Path) -> None:
    hasty = (
        "import runpy, sys; from nicegui import page; sys.argv = sys.argv[3:]; "
        "page.page.__init__.__kwdefaults__['response_timeout'] = 0.0; "
        "from league.views.dashboard import app; app.FIRST_SECONDS = 600.0; "  # /matches must fail
        "runpy.run_module('league', run_name='__main__', alter_sys=True)"
    )
    (finished / "replays").mkdir(exist_ok=True)
    loop = finished / "replays" / "loop.replay"
    loop.symlink_to(loop)
    try:
        with (
            serving(finished, prefix=(sys.executable, "-c", hasty)) as address,
            # the server may close a kept connection just when it is used again
            httpx.Client(
                base_url=address,
                timeout=PATIENCE,
                limits=httpx.Limits(max_keepalive_connections=0),
            ) as visitor,
        ):
            assert visitor.get("/leaderboard").status_code == 200
            for path, status, link in (("/matches", 500, "leaderboard"), ("/no/page", 404, "../")):
                plain = visitor.get(path)  # as a script asks
                assert plain.status_code == status
                assert plain.headers["content-type"].startswith("text/plain")
                answer = visitor.get(path, headers={"accept": "text/html,*/*;q=0.8"})
                assert answer.status_code == status
                assert f'<a href="{link}' in answer.text
                assert "response_timeout" not in answer.text
    finally:
        loop.unlink()


def test_what_can_be_read_at_once_does_not_wait_for_the_rest(
    finished: Path, tmp_path: Path
) -> None:
    go_on = tmp_path / "go-on"
    slow = f"""import runpy, sys, time
from pathlib import Path
from league.views.dashboard.pages import curves
gather = curves.gather
def gather_later(*given):
    while not Path({str(go_on)!r}).exists():
        time.sleep(0.01)
    return gather(*given)
curves.gather = gather_later
sys.argv = sys.argv[3:]
runpy.run_module("league", run_name="__main__", alter_sys=True)
"""
    with serving(finished, prefix=(sys.executable, "-c", slow)) as address:
        try:
            first = httpx.get(f"{address}/curves", timeout=PATIENCE).text
            assert "smoothed" in first
            assert "Reading" in first
        finally:
            go_on.touch()


def test_idle_connections_lock_nobody_out(door: Door) -> None:
    with contextlib.ExitStack() as kept:
        for number in range(FILES + 50):
            found = kept.enter_context(door.connection())
            if number % 2:
                with contextlib.suppress(OSError):  # it may be closed already
                    found.sendall(b"GET / HT")
        assert door.status() == 200
        assert door.status("/scripts/play.js") == 200


def test_a_request_must_arrive_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "REQUEST_SECONDS", 0.2)
    go_on = threading.Event()

    async def slow(scope: Any, receive: Any, send: Any) -> None:
        import asyncio

        await asyncio.to_thread(go_on.wait, 60)
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    config = uvicorn.Config(slow, port=0, http=BrowserConnection, lifespan="off", log_level="error")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        wait_for(lambda: server.started)
        where = server.servers[0].sockets[0].getsockname()[:2]
        with (
            socket.create_connection(where, timeout=60) as silent,
            socket.create_connection(where, timeout=60) as unfinished,
            socket.create_connection(where, timeout=60) as waiting,
        ):
            unfinished.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nab")
            waiting.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            for late in (silent, unfinished):
                with contextlib.suppress(ConnectionResetError):
                    assert late.recv(1) == b""
            go_on.set()
            assert waiting.recv(12) == b"HTTP/1.1 204"
    finally:
        go_on.set()
        server.should_exit = True
        thread.join(60)
