"""Runs the Node process that plays battles and checks teams."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import select
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from league.errors import ConfigError, Unavailable
from league.service import die_with_parent

LOOK_SECONDS = 1.0
END_SECONDS = 5.0


class Simulator:
    """Runs a process of `simulator.js`. Methods raise `Unavailable` if the process can't start or
    has died.
    """

    def __init__(self, folder: str) -> None:
        program = Path(__file__).with_name("simulator.js")
        self._node = subprocess.Popen(
            [*tied_to_us(), "node", str(program), folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # so that Ctrl-C reaches only the game's process
        )
        self._line()

    def _line(self) -> str:
        assert self._node.stdout
        while not select.select([self._node.stdout], [], [], LOOK_SECONDS)[0]:
            if is_stopped(self._node):
                raise Unavailable(
                    f"Showdown's simulator (process {self._node.pid}) was stopped by a signal"
                )
        if line := self._node.stdout.readline():
            return line
        raise Unavailable(f"Showdown's simulator exited {self._node.wait()}")

    def ask(self, commands: Sequence[Sequence[Any]]) -> list[Any]:
        """Sends commands and returns their answers."""
        assert self._node.stdin
        with contextlib.suppress(OSError):  # `_line` reports a process that died
            self._node.stdin.write(json.dumps(commands) + "\n")
            self._node.stdin.flush()
        return json.loads(self._line())

    def close(self) -> None:
        """Ends the process."""
        assert self._node.stdin
        with contextlib.suppress(OSError):  # it died before it read a command
            self._node.stdin.close()
        try:
            self._node.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self._node.kill()
            self._node.wait()


def tied_to_us() -> list[str]:
    """Returns words to put in front of a command. They make the command's process end when this
    process ends, even if a signal has stopped (suspended) the command's process.
    """
    return [sys.executable, "-I", "-S", die_with_parent.__file__, str(os.getpid())]


def is_stopped(process: subprocess.Popen[Any]) -> bool:
    """Returns whether a signal has stopped (suspended) a child of this process."""
    with contextlib.suppress(ChildProcessError, AttributeError):  # it has ended, or macOS can't say
        flags = os.WSTOPPED | os.WNOHANG | os.WNOWAIT
        return os.waitid(os.P_PID, process.pid, flags) is not None
    return False


def teams_of(pool: str, battle_format: str, folder: str) -> tuple[str, ...]:
    """Reads the teams in the `*.txt` files of the folder `pool`, and packs them for Showdown.

    Raises:
        ConfigError: there is no team, or the format's rules forbid a team.
    """
    files = sorted(Path(pool).expanduser().glob("*.txt"))
    if not files:
        raise ConfigError(
            f"{pool} has no teams: put one PokePaste text a file into it, as NAME.txt, and name "
            "the folder by --set game.options.teams=FOLDER"
        )
    texts = tuple(file.read_text(encoding="utf-8", errors="replace") for file in files)
    packed, problems = _packed(texts, battle_format, folder)
    for file, problem in zip(files, problems, strict=True):
        if problem:
            raise ConfigError(f"{file} is no team of {battle_format}: {problem}")
    return packed


@cache
def _packed(
    texts: tuple[str, ...], battle_format: str, folder: str
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    simulator = Simulator(folder)
    try:
        answers = simulator.ask([["pack", battle_format, text] for text in texts])
    finally:
        simulator.close()
    problems = [answer.get("problems", [answer.get("error")]) for answer in answers]
    packed = tuple(answer.get("packed", "") for answer in answers)
    return packed, tuple("; ".join(team).splitlines()[0] if team else "" for team in problems)


def digest(teams: Sequence[str]) -> str:
    """Returns eight hexadecimal digits that identify a pool of teams."""
    return hashlib.sha256("\n".join(teams).encode()).hexdigest()[:8]
