"""The Node process that plays battles, and the teams that it checks."""

from __future__ import annotations

import contextlib
import hashlib
import json
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from league.errors import ConfigError, Unavailable


class Simulator:
    """One process of `simulator.js`; raises `Unavailable` when it can't start or has died."""

    def __init__(self, folder: str) -> None:
        program = Path(__file__).with_name("simulator.js")
        self._node = subprocess.Popen(
            ["node", str(program), folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl-C is for the game's process to answer
        )
        self._line()

    def _line(self) -> str:
        assert self._node.stdout
        if line := self._node.stdout.readline():
            return line
        raise Unavailable(f"Showdown's simulator exited {self._node.wait()}")

    def ask(self, commands: Sequence[Sequence[Any]]) -> list[Any]:
        """The answers to commands."""
        assert self._node.stdin
        with contextlib.suppress(OSError):  # it died: so says the missing answer
            self._node.stdin.write(json.dumps(commands) + "\n")
            self._node.stdin.flush()
        return json.loads(self._line())

    def close(self) -> None:
        """Ends the process."""
        assert self._node.stdin
        self._node.stdin.close()
        self._node.wait()


def teams_of(pool: str, battle_format: str, folder: str) -> tuple[str, ...]:
    """The packed teams of a folder's `*.txt` files in the order of their names.

    Raises `ConfigError` where there is none, or one that the format's rules forbid.
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
    said = [one["problems"] if "problems" in one else [one["error"]] for one in answers]
    packed = tuple(one.get("packed", "") for one in answers)
    return packed, tuple("; ".join(one).splitlines()[0] if one else "" for one in said)


def digest(teams: Sequence[str]) -> str:
    """Eight hexadecimal digits of a pool."""
    return hashlib.sha256("\n".join(teams).encode()).hexdigest()[:8]
