"""Runs a process on a node of a cluster, and hands its log to the supervisor."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import socket
import struct
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from league.cluster.engine import LocalChild, ProcessSpec
from league.cluster.processes import LOG_BYTES

_ADDRESS_OF_INTERFACE = 0x8915  # SIOCGIFADDR
_FOLDER = "kumite-node-"


@dataclass(frozen=True, kw_only=True)
class Folders:
    """Lets a node find out whether it sees folders of the league. `digests` has the hash of a file
    in each of them.
    """

    digests: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, files: Sequence[Path]) -> Folders:
        """Reads the files, all of which exist."""
        return cls(digests={str(file.absolute()): _digest(file) for file in files})

    def are_here(self) -> bool:
        """Returns whether this machine has the same files."""
        return all(_digest(Path(path)) == digest for path, digest in self.digests.items())


def _digest(file: Path) -> str:
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError:
        return ""


class Runner:
    """Runs a single process. All methods must be called in the main thread."""

    _folder: Path | None = None
    _child: LocalChild | None = None

    def start(
        self,
        spec: ProcessSpec,
        environment: Mapping[str, str],
        certificates: Mapping[str, bytes],
        address: str,
    ) -> int:
        """Starts the process with this machine's Python, and returns its id.

        Its folder is private to the user. `clean` removes it, or else the next start on this
        machine after this runner has ended.

        Args:
            spec: the process.
            environment: variables that it gets, among them the league's token.
            certificates: content of the files of a folder that the process gets as `--tls`.
            address: this machine's address, at which the ranks of a learner meet.
        """
        _remove_left()
        self._folder = Path(tempfile.mkdtemp(prefix=_FOLDER))
        self._lock = os.open(self._folder, os.O_RDONLY)
        fcntl.flock(self._lock, fcntl.LOCK_EX)  # before the first file, see `_remove_left`
        self._log = self._folder / "log"
        command = (sys.executable, *spec.command[1:])
        if certificates:
            folder = self._folder / "tls"
            folder.mkdir(mode=0o700)
            for name, content in certificates.items():
                with open(os.open(folder / name, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:
                    file.write(content)
            command += ("--tls", str(folder))
        interface = _interface_of(address)
        met = {"GLOO_SOCKET_IFNAME": interface, "NCCL_SOCKET_IFNAME": interface}
        spec = replace(spec, command=command, log=self._log)
        self._child = LocalChild(spec, {**met, **environment, "PYTHONSAFEPATH": "1"})
        return self._child.pid

    def poll(self, read: int) -> tuple[int | None, bytes, int]:
        """Returns the exit code (None while the process runs), the log's bytes from position
        `read` on, and the position to continue from.
        """
        assert self._child is not None
        code = self._child.poll()
        with self._log.open("rb") as log:
            log.seek(read)
            written = log.read(LOG_BYTES)
        read += len(written)
        if read > LOG_BYTES:
            os.truncate(self._log, 0)
            read = 0
        return code, written, read

    def end(self, at_once: bool) -> None:
        """Asks the process to stop, or ends it and all processes that it started, at once."""
        if self._child is not None:
            (self._child.kill if at_once else self._child.terminate)()

    def clean(self) -> None:
        """Removes the folder of a process that has ended, with its keys and its log."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            os.close(self._lock)
            self._folder = None


def _remove_left() -> None:
    """Removes the folders of runners that were killed. A living runner has locked its folder."""
    for folder in {file.parent for file in Path(tempfile.gettempdir()).glob(f"{_FOLDER}*/*")}:
        with contextlib.suppress(OSError):  # locked, or another user's
            lock = os.open(folder, os.O_RDONLY)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder)
            finally:
                os.close(lock)


def free_port(address: str) -> int:
    """Returns a free port of one of this machine's addresses."""
    with socket.socket() as probe:
        probe.bind((address, 0))
        return int(probe.getsockname()[1])


def _interface_of(address: str) -> str:
    """Returns the name of the network interface with an address, or else of the loopback."""
    for _, name in socket.if_nameindex():
        with socket.socket(type=socket.SOCK_DGRAM) as probe, contextlib.suppress(OSError):
            asked = struct.pack("256s", name.encode()[:15])
            packed = fcntl.ioctl(probe, _ADDRESS_OF_INTERFACE, asked)
            if socket.inet_ntoa(packed[20:24]) == address:
                return name
    return "lo"
