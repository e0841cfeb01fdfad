"""An S3 of the tests' own: moto's server on loopback, with a bucket and the usual variables."""

from __future__ import annotations

import itertools
import logging
import socket
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from moto.server import ThreadedMotoServer

SECRET = "a-secret-that-nobody-prints"
logging.getLogger("werkzeug").setLevel(logging.WARNING)
_numbers = itertools.count(1)


class ObjectStore:
    """A server that can be taken away and brought back. Its bucket is gone then."""

    def __init__(self) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self._server: ThreadedMotoServer | None = None
        self.start()

    def start(self) -> None:
        self._server = ThreadedMotoServer("127.0.0.1", self.port, verbose=False)
        self._server.start()
        url = f"http://127.0.0.1:{self.port}/bucket"
        with urllib.request.urlopen(urllib.request.Request(url, method="PUT")) as reply:
            assert reply.status == 200

    def stop(self) -> None:
        if self._server is not None:
            self._server.stop()
            self._server = None

    def address(self) -> str:
        """A prefix that no other test has."""
        return f"s3://bucket/league-{next(_numbers)}"

    def environment(self) -> dict[str, str]:
        return {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}",
            "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": "tester",
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": "us-east-1",
        }


@contextmanager
def object_store() -> Iterator[ObjectStore]:
    """Serves an S3 during the block, whose variables are in the environment."""
    server = ObjectStore()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in server.environment().items():
            patch.setenv(name, value)
        try:
            yield server
        finally:
            server.stop()
