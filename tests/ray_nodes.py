"""Ray nodes of a test's own, in a private network and process namespace."""

from __future__ import annotations

import os
import secrets
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from waiting import wait_for

from league.service import die_with_parent

NAMESPACE = "KUMITE_TEST_NAMESPACE"
"""Environment variable that is set inside the namespace."""
_ENTER = ["unshare", "--map-root-user", "--net", "--mount", "--pid", "--fork", "--mount-proc"]
_PORT = 6401


def is_inside() -> bool:
    return NAMESPACE in os.environ


def can_enter() -> bool:
    """Whether this machine has Ray, and lets tests make namespaces. Does not import Ray, which
    would read its variables too early.
    """
    if (
        sys.platform != "linux"
        or find_spec("ray") is None
        or shutil.which("unshare") is None
        or shutil.which("ip") is None
    ):
        return False
    return subprocess.run([*_ENTER, "true"], capture_output=True).returncode == 0


def run_inside(file: str, *flags: str) -> None:
    """Runs the tests of a file in a namespace, whose processes all end with it."""
    command = 'ip link set lo up && "$@"; exit $?'  # the shell collects orphans that end
    pytest = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:xdist", *flags, file]
    tie = [sys.executable, die_with_parent.__file__, str(os.getpid())]
    made = subprocess.run(
        [*tie, *_ENTER, "--kill-child=KILL", "sh", "-c", command, "sh", *pytest],
        env={**os.environ, NAMESPACE: "1"},
        capture_output=True,
        text=True,
    )
    print(made.stdout[-20_000:], made.stderr[-5000:])
    assert made.returncode == 0, made.stdout[-3000:]


def _running(session: int, program: bytes) -> Iterator[int]:
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if not entry.name.isdigit() or os.getsid(int(entry.name)) != session:
                continue
            path = (entry / "cmdline").read_bytes().split(b"\0")[0]
            if " Z " not in (entry / "stat").read_text() and path.endswith(program):
                yield int(entry.name)


class RayNodes:
    """Ray nodes on this machine. Each has its own address. Use it as a context manager."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="ray", dir="/tmp"))  # sockets have short names
        token = self._folder / "token"
        token.write_text(secrets.token_hex(32))
        token.chmod(0o600)
        self.environment = {
            **os.environ,
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN_PATH": str(token),
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
            "RAY_ADDRESS": f"127.0.0.1:{_PORT}",
        }
        self._nodes: dict[str, subprocess.Popen[bytes]] = {}
        self._started = 0

    def start(
        self, name: str, *, cpus: int = 1, label: str = "", hidden: Path | None = None
    ) -> None:
        """Starts a node. The first node is the head. Does not wait.

        Args:
            hidden: a folder that the node does not see.
        """
        self._started += 1
        place = ["--address", f"127.0.0.1:{_PORT}"]
        if not self._nodes:
            place = ["--head", "--port", str(_PORT), "--include-dashboard=false"]
            place += ["--temp-dir", str(self._folder / "ray")]
        ray = [str(Path(sys.executable).with_name("ray")), "start", "--block", *place]
        ray += ["--node-ip-address", f"127.0.0.{self._started}", "--num-cpus", str(cpus)]
        ray += [
            "--object-store-memory",
            "80000000",
            "--labels",
            ",".join([f"name={name}", label]).strip(","),
        ]
        if hidden is not None:
            hide = f"mount -t tmpfs none {shlex.quote(str(hidden))}"
            ray = ["unshare", "--mount", "sh", "-c", f'{hide} && exec "$@"', "sh", *ray]
        log = self._log(name).open("wb")
        environment = {
            key: value for key, value in self.environment.items() if key != "RAY_ADDRESS"
        }
        self._nodes[name] = subprocess.Popen(
            ray,
            stdout=log,
            stderr=log,
            env=environment,
            start_new_session=True,
            cwd=self._folder,  # where workers without the run's folder keep their files
        )

    def wait(self) -> None:
        """Waits until all nodes run."""
        for name in self._nodes:
            wait_for(lambda name=name: "runtime started" in self._log(name).read_text())

    def _log(self, name: str) -> Path:
        return self._folder / f"{name}.log"

    def of(self, pid: int) -> str:
        """The name of the node that a process of Ray belongs to."""
        names = {node.pid: name for name, node in self._nodes.items()}
        return names[os.getsid(pid)]

    def send(self, name: str, number: int, program: bytes = b"") -> bool:
        """Sends a signal to a node's processes whose program's path ends with `program`. Returns
        whether there are any.
        """
        pids = list(_running(self._nodes[name].pid, program))
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, number)
        return bool(pids)

    def kill(self, name: str) -> None:
        """Ends all processes of a node, at once."""
        while self.send(name, signal.SIGKILL):
            self._nodes[name].poll()
        del self._nodes[name]

    def __enter__(self) -> RayNodes:
        return self

    def __exit__(self, *_: object) -> None:
        for name in list(self._nodes):
            self.kill(name)
        shutil.rmtree(self._folder, ignore_errors=True)
