"""Free ports for servers of tests that must know their port before they are started."""

from __future__ import annotations

import itertools
import json
import os
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
_numbers = itertools.count(20_000 + 1000 * (_WORKER % 12))
_claims: list[socket.socket] = []


def free_port() -> int:
    """A port of 127.0.0.1 that no other call returned, also not in another process that runs.

    It is below the system's ephemeral ports (from 32768 on Linux), so no connection and no server
    with port 0 takes it meanwhile.
    """
    for port in _numbers:
        claim = socket.socket(type=socket.SOCK_DGRAM)  # UDP: it does not keep a server from TCP
        try:
            claim.bind(("127.0.0.1", port))
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", port))
        except OSError:
            claim.close()
        else:
            _claims.append(claim)
            return port
    raise AssertionError("the numbers ended")


def give_ports(run_dir: Path) -> None:
    """Gives the services of a run that is to start such ports, unless it has had a start."""
    run_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not (run_dir / "ports.json").exists():
        ports = {service: free_port() for service in ("matchmaker", "evaluator", "dashboard")}
        (run_dir / "ports.json").write_text(json.dumps(ports))


EVERYWHERE = {"0" * 8, "0" * 32}
"""What `listening` returns for a process that listens on all addresses."""


def listening(pid: int) -> Iterator[str]:
    """The addresses on which a process listens, as Linux writes them."""
    own = set[str]()
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile
            own.add(os.readlink(link))
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            _, place, _, state, *_, inode = line.split()[:10]
            if state == "0A" and f"socket:[{inode}]" in own:
                yield place.partition(":")[0]
