"""A run's tokens: made once, told once, kept as hashes.

``RUN/tokens/tokens.json`` is what the services read: for each token a name, a role and the sha256
of its text (the text has 256 random bits, so there is nothing that a slow hash would protect).
Beside it lie the first three in plain, one file a role, for the processes of this run: they may be
moved to where they are needed.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import os
import re
import secrets
import stat
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from league.errors import AlreadyExists, DataCorrupt, InvalidInput, LeagueError, NotFound, Refused
from league.runs.files import write_whole
from league.security.roles import WORDS, AccessRole

FOLDER = "tokens"
FILE = "tokens.json"
LOOK_SECONDS = 1.0
"""How soon, at most, a service notices that a token was revoked or added."""
MOST = 1000
_log = logging.getLogger(__name__)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@-]{0,63}")


@dataclass(frozen=True, kw_only=True)
class Token:
    """What is known of a token after it was told: never the token itself. `created_at` in Unix
    seconds.
    """

    name: str
    role: str
    sha256: str
    created_at: float

    @property
    def access(self) -> AccessRole:
        return AccessRole.parse(self.role)


def hashed(plain: str) -> str:
    return hashlib.sha256(plain.encode("utf-8", "surrogateescape")).hexdigest()


class TokenFile:
    """The tokens of the run at `run_dir` (or wherever a league's database lies)."""

    def __init__(self, run_dir: Path) -> None:
        self.folder = run_dir / FOLDER
        self.path = self.folder / FILE

    def exists(self) -> bool:
        return self.path.exists()

    def read(self) -> list[Token]:
        """Raises `NotFound`, `DataCorrupt`, or `Refused` when others than its owner could change
        it.
        """
        try:
            with self.path.open(encoding="utf-8") as file:
                mode = os.fstat(file.fileno()).st_mode
                content = file.read()
        except FileNotFoundError:
            raise NotFound(
                f"there is no {self.path}: make it with bin/league tokens make"
            ) from None
        except OSError as error:
            raise Refused(
                f"{self.path} can't be read ({error.strerror}): it is its owner's alone"
            ) from None
        if mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise Refused(f"{self.path} is open to others (mode {mode & 0o777:o}): chmod 600 it")
        return _parsed(content, self.path)

    def make(self) -> dict[AccessRole, str]:
        """One token of each role, named as the role, each also in a file ROLE.token. Returns
        them.
        """
        if self.exists():
            raise AlreadyExists(
                f"{self.path} is there already: add to it with bin/league tokens add"
            )
        self._make_folder()
        plain = {AccessRole.parse(word): new_plain(word) for word in WORDS}
        for role, text in plain.items():
            write_whole(self.folder / f"{role.word}.token", text + "\n", private=True)
        # last: now it counts
        self._write([_kept(role.word, role, text) for role, text in plain.items()])
        return plain

    def ensure(self) -> bool:
        """Makes the tokens of a run that has none; whether it did."""
        if self.exists():
            self.read()  # one that can't be used is told now
            return False
        self.make()
        return True

    def add(self, role: AccessRole, name: str) -> str:
        """A new token, in plain: it can't be read again from the file."""
        if not _NAME.fullmatch(name):
            raise InvalidInput(
                f"{name[:80]!r} can't name a token: up to 64 letters, digits, _ . @ -"
            )
        tokens = self.read() if self.exists() else []
        if any(token.name == name for token in tokens):
            raise AlreadyExists(
                f"there is a token {name!r} already: revoke it first, or choose another name"
            )
        if len(tokens) >= MOST:
            raise Refused(f"{self.path} holds {MOST} tokens: revoke some first")
        self._make_folder()
        plain = new_plain(role.word)
        self._write([*tokens, _kept(name, role, plain)])
        return plain

    def revoke(self, name: str) -> Token:
        """Takes a token back; raises `NotFound`."""
        tokens = self.read()
        gone = next((token for token in tokens if token.name == name), None)
        if gone is None:
            raise NotFound(f"there is no token {name!r}: bin/league tokens list names them")
        self._write([token for token in tokens if token is not gone])
        return gone

    def _make_folder(self) -> None:
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidInput(
                f"{self.folder} can't be made ({error.strerror}): name another run"
            ) from None

    def _write(self, tokens: Sequence[Token]) -> None:
        text = json.dumps({"tokens": [asdict(token) for token in tokens]}, indent=1) + "\n"
        write_whole(self.path, text, private=True)


def new_plain(role: str) -> str:
    """256 random bits behind words by which scanners for leaked secrets, and people, recognise
    it.
    """
    return f"kumite-{role}-{secrets.token_urlsafe(32)}"


def _kept(name: str, role: AccessRole, plain: str) -> Token:
    return Token(name=name, role=role.word, sha256=hashed(plain), created_at=time.time())


def _parsed(content: str, path: Path) -> list[Token]:
    try:
        tokens = [_token(**entry) for entry in json.loads(content)["tokens"]]
    except (ValueError, TypeError, KeyError, InvalidInput) as error:
        raise DataCorrupt(
            f"{path} can't be used ({error}): restore it, or make new tokens"
        ) from None
    return tokens


def _token(name: str, role: str, sha256: str, created_at: float) -> Token:
    AccessRole.parse(role)
    if not re.fullmatch(r"[0-9a-f]{64}", sha256):
        raise InvalidInput(f"the hash of {name!r} is none")
    return Token(name=name, role=role, sha256=sha256, created_at=float(created_at))


class TokenBook:
    """A service's view of the file, read anew when it changes.

    At first it raises as `TokenFile.read` does; later, while the file can't be read, nobody is let
    in and the log says why.
    """

    def __init__(self, file: TokenFile, clock: Callable[[], float] = time.monotonic) -> None:
        self._file, self._clock = file, clock
        self._lock = threading.Lock()
        self._stamp: Any = None
        self._looked_at = -LOOK_SECONDS
        self._tokens = self._read()

    def find(self, plain: str) -> Token | None:
        """The token with this text. Every hash is compared to its end, so time tells nothing."""
        if self._clock() - self._looked_at >= LOOK_SECONDS:
            with self._lock:
                self._refresh()
        digest, found = hashed(plain).encode(), None
        for sha256, token in self._tokens:
            if hmac.compare_digest(sha256, digest):
                found = token
        return found

    def _refresh(self) -> None:
        try:
            self._tokens = self._read()
        except LeagueError as error:
            self._tokens = []
            if self._stamp is not None:
                _log.error("no token is taken until this is cured: %s", error)
            self._stamp = None

    def _read(self) -> list[tuple[bytes, Token]]:
        self._looked_at = self._clock()
        try:
            state = self._file.path.stat()
        except OSError:
            state = None
        stamp = state and (state.st_mtime_ns, state.st_ino, state.st_size, state.st_mode)
        if stamp is not None and stamp == self._stamp:
            return self._tokens
        tokens = [(token.sha256.encode(), token) for token in self._file.read()]
        self._stamp = stamp
        return tokens
