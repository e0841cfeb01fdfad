"""Calls as a hostile client makes them: HTTP/2 frames over a socket.

python tests/service/raw_http2.py HOST:PORT PATH    # a flood, until it is killed
"""

from __future__ import annotations

import socket
import struct
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, SETTINGS, PING = 0, 1, 4, 6
ACK = 1
END_STREAM, END_HEADERS = 1, 4
UNFINISHED = b"\0" + struct.pack(">I", 20_000) + b"\x0a"
"""The beginning of a message of 20,000 bytes."""


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def headers(path: str, token: str = "") -> bytes:
    """HPACK's plainest form: each name and value in full."""
    given = {
        ":method": "POST",
        ":scheme": "http",
        ":path": path,
        ":authority": "127.0.0.1",
        "te": "trailers",
        "content-type": "application/grpc",
    }
    if token:
        given["authorization"] = f"Bearer {token}"
    words = (word.encode() for pair in given.items() for word in pair)
    sized = [bytes([len(word)]) + word for word in words]
    return b"".join(
        b"\0" + name + value for name, value in zip(sized[::2], sized[1::2], strict=True)
    )


@contextmanager
def connection(address: str) -> Iterator[socket.socket]:
    """A connection of HTTP/2 without a call."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port))) as opened:
        opened.sendall(HELLO + frame(SETTINGS, 0, 0))
        yield opened


@contextmanager
def half_open(
    address: str, path: str, count: int, *, token: str = "", body: bytes = b""
) -> Iterator[None]:
    """Calls of one connection whose headers have arrived, and whose request never does."""
    with connection(address) as opened:
        for stream in range(1, 2 * count, 2):
            opened.sendall(frame(HEADERS, END_HEADERS, stream, headers(path, token)))
            if body:
                opened.sendall(frame(DATA, 0, stream, body))
        yield


def flood(address: str, path: str) -> None:
    """Calls as fast as the service answers them, a hundred at a time, over one connection."""
    stream, call = 1, (headers(path), b"\0\0\0\0\0")
    with connection(address) as opened, opened.makefile("rb") as received:
        while True:
            batch = range(stream, stream + 200, 2)
            for number in batch:
                opened.sendall(
                    frame(HEADERS, END_HEADERS, number, call[0])
                    + frame(DATA, END_STREAM, number, call[1])
                )
            stream, ended = batch[-1] + 2, 0
            while ended < len(batch):
                size, kind, flags, _ = struct.unpack(">IBBI", b"\0" + received.read(9))
                payload = received.read(size)
                if kind == PING and not flags & ACK:
                    opened.sendall(frame(PING, ACK, 0, payload))
                ended += kind == HEADERS and bool(flags & END_STREAM)


if __name__ == "__main__":
    threads = [threading.Thread(target=flood, args=sys.argv[1:]) for _ in range(24)]
    for thread in threads:
        thread.start()
