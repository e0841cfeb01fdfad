"""Connects a command to its league: a running matchmaker, or the folder of a run.

For a finished run, or an earlier state of a run, the command starts a read-only matchmaker over the
run's database, and stops it at the end. So a command always asks a matchmaker over gRPC.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from league.console.output import say
from league.errors import InvalidInput, LeagueError, Refused, Unavailable
from league.runs import finding
from league.service import die_with_parent

if TYPE_CHECKING:  # gRPC and pydantic take a quarter of a second to load
    from league.rpc.client import MatchmakerClient
    from league.security.credentials import Credentials

ROLE = "operator"  # a user who can read the run's tokens could use the strongest token anyway
WAIT_SECONDS = 10.0
SAID_SECONDS, IDLE_SECONDS = 10.0, 60.0
"""A command waits while a matchmaker opens a run's database. It reports the wait every
`SAID_SECONDS`. It gives up when the matchmaker's process has not used the processor for
`IDLE_SECONDS`.
"""
STOP_SECONDS = 5.0


@dataclass
class League:
    """Holds the flags that name a league: by address or by run folder. Without both, the league is
    the newest run.
    """

    address: str | None = None
    run_dir: Path | None = None
    token_file: Path | None = None
    tls: Path | None = None
    at: str | None = None

    def __post_init__(self) -> None:
        if self.address and self.run_dir is not None:
            raise InvalidInput("--address and --run-dir both name a league: give only one of them")

    def folder(self) -> Path:
        """Returns the run folder, or the newest run's folder.

        Raises:
            InvalidInput: the league is given by an address.
            NotFound: there is no run.
            VersionMismatch: another version of the project made the run.
        """
        if self.address:
            raise InvalidInput("an address gives no files of a run: name its folder (run_dir)")
        if self.run_dir is None:
            self.run_dir = finding.newest_run()  # the whole command uses the same run
        return finding.checked_run(self.run_dir)

    @contextmanager
    def connect(self) -> Iterator[MatchmakerClient]:
        """Connects to this league.

        Raises:
            InvalidInput: an earlier state was requested, but the league is given by an address.
        """
        if self.at is not None and self.address:
            raise InvalidInput("--at reads a run's own log: name its folder with --run-dir")
        if self.address:
            with _client(self.address, self._credentials()) as client:
                yield client
            return
        run_dir = self.folder()
        running = finding.live_address(run_dir) if self.at is None else None
        if running is not None:
            with _client(running, self._credentials(run_dir)) as client:
                yield client
            return
        from league.security.credentials import Credentials

        with (
            _read_only_matchmaker(run_dir, self.at) as address,
            _client(address, Credentials()) as client,
        ):
            yield client

    def require_running(self, then: str) -> None:
        """Raises `Refused` unless the league's own matchmaker runs, because only it can change the
        league.

        Args:
            then: what the user should do once the league runs again, for the message.
        """
        if not self.address and finding.live_address(self.folder()) is None:
            raise Refused(
                f"{self.run_dir} is not running: start it again "
                f"(bin/start-league --run-dir {shlex.quote(str(self.run_dir))}), then {then}"
            )

    def _credentials(self, run_dir: Path | None = None) -> Credentials:
        from league.security.credentials import of_run

        return of_run(run_dir, ROLE, token_file=self.token_file, tls=self.tls)


def _client(address: str, credentials: Credentials) -> MatchmakerClient:
    from league.rpc.client import MatchmakerClient

    messages: list[str] = []

    def on_wait(text: str) -> None:
        if not messages:
            say(f"({text})")
        messages.append(text)

    return MatchmakerClient(
        address, wait_seconds=WAIT_SECONDS, on_wait=on_wait, credentials=credentials
    )


@contextmanager
def _read_only_matchmaker(run_dir: Path, at: str | None) -> Iterator[str]:
    """Runs a read-only matchmaker over the run's database during the block. Yields its address."""
    database = finding.database_of(run_dir)
    command = [sys.executable, "-m", "matchmaker", "--db", str(database), "--read-only"]
    command += ["--port", "0", *(["--at", at] if at is not None else [])]
    tied = [sys.executable, die_with_parent.__file__, str(os.getpid()), *command]
    with tempfile.TemporaryFile("w+") as errors:
        # Jupyter interrupts a whole process group, and interrupting a cell must not end the
        # service.
        process = subprocess.Popen(
            tied, stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True
        )
        try:
            yield f"127.0.0.1:{_port_of(process, errors, database)}"
        finally:
            process.terminate()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _port_of(process: subprocess.Popen[str], errors: IO[str], database: Path) -> int:
    """Waits until the process prints ``ready PORT``, and returns the port. In the meantime `_watch`
    reports the wait, and kills a process that makes no progress. If the process ends first, raises
    an error with the process's last line.
    """
    assert process.stdout is not None
    done = threading.Event()
    threading.Thread(target=_watch, args=[process, database, done], daemon=True).start()
    try:
        for line in process.stdout:
            if line.startswith("ready "):
                return int(line.split()[1])
    finally:
        done.set()
    code = process.wait()
    errors.seek(0)
    last = (errors.read().strip().splitlines() or ["no message"])[-1].removeprefix("matchmaker: ")
    if code < 0:
        raise Unavailable(
            f"the matchmaker that reads {database} was killed (signal {-code}), as it is by this "
            f"command after {IDLE_SECONDS:.0f} s without progress: check memory and disk, then "
            "repeat the command"
        )
    if code == InvalidInput.exit_code:
        raise InvalidInput(last)
    raise LeagueError(f"the run's database can't be served: {last}")


def _watch(process: subprocess.Popen[str], database: Path, done: threading.Event) -> None:
    """Reports the wait until `done` is set, and kills a process that makes no progress."""
    began = worked_at = time.monotonic()
    used = 0.0
    while not done.wait(SAID_SECONDS):
        now, before, used = time.monotonic(), used, _processor_time(process.pid)
        if used != before:
            worked_at = now
        elif now > worked_at + IDLE_SECONDS:
            process.kill()
            return
        say(f"(waiting for a matchmaker that reads {database}: {now - began:.0f} s so far)")


def _processor_time(pid: int) -> float:
    """Returns a process's processor time. On systems that don't report it, returns a value that
    always grows.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return time.monotonic()
    return int(fields[11]) + int(fields[12])
