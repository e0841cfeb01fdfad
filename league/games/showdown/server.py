"""Runs a Showdown server on this machine. People connect to it with the ordinary client."""

from __future__ import annotations

import socket
import subprocess
import time
from typing import Self

from league.errors import InvalidInput, Unavailable
from league.games.showdown.install import PACKAGE, installed
from league.games.showdown.simulator import is_stopped, tied_to_us

START_SECONDS = 60.0
_MISSING = (
    *("logs/repl", "logs/chat", "logs/modlog", "config/chat-plugins"),
    "databases",
)
"""Folders that the server needs, but the package doesn't contain."""
_SETTINGS = """
exports.bindaddress = '127.0.0.1';
exports.subprocesses = 0;
exports.repl = false;
exports.nothrottle = true;
"""


class Server:
    """Runs a server that listens on `port`. As a context manager, it ends the server after the
    block.

    Raises:
        ConfigError: Node or the simulator is missing.
        InvalidInput: another program listens on the port.
        Unavailable: the server did not start.
    """

    def __init__(self, port: int) -> None:
        package = installed() / "node_modules" / PACKAGE
        for name in _MISSING:
            (package / name).mkdir(parents=True, exist_ok=True)
        example = (package / "config" / "config-example.js").read_text()
        (package / "config" / "config.js").write_text(example + _SETTINGS)
        if _is_open(port):
            raise InvalidInput(
                f"port {port} is taken: name another one by --port, or use the server that listens"
            )
        words = [
            *tied_to_us(),
            "node",
            PACKAGE,
            "start",
            str(port),
            "--no-security",
            "--skip-build",
        ]
        self.port = port
        log = package / "logs" / f"server-{port}.log"
        with log.open("w") as output:
            self._process = subprocess.Popen(
                words,
                cwd=package,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        until = time.monotonic() + START_SECONDS
        while not _is_open(port):
            if self._process.poll() is not None or time.monotonic() > until:
                self.close()
                raise Unavailable(f"Showdown's server did not come up: see {log}")
            time.sleep(0.1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def is_up(self) -> bool:
        """Returns whether the process has neither ended nor been stopped by a signal."""
        return self._process.poll() is None and not is_stopped(self._process)

    def close(self) -> None:
        """Ends the server."""
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _is_open(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), 0.5):
            return True
    except OSError:
        return False
