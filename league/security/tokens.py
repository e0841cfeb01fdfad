"""Keeps a run's tokens, which are shown once and stored as hashes.

The services read ``RUN/tokens/tokens.json``: a name, a role and the sha256 of each token. A token
has 256 random bits, so a slow hash would add no protection. The run's first three tokens, one for
each role, are also stored in plain text next to this file, for the processes of the run.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import os
import re
import secrets
import stat
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from league.errors import AlreadyExists, DataCorrupt, InvalidInput, LeagueError, NotFound, Refused
from league.runs.files import private_folder, write_whole
from league.security.roles import WORDS, AccessRole

FOLDER = "tokens"
FILE = "tokens.json"
LOOK_SECONDS = 1.0
"""Longest time until a service notices that a token was revoked. New tokens work at once."""
_log = logging.getLogger(__name__)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@-]{0,63}")


class Token(BaseModel):
    """Describes a token without its text. `created_at` is in Unix seconds."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    role: str = Field(pattern=f"^({'|'.join(WORDS)})$")
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    created_at: float

    @property
    def access(self) -> AccessRole:
        return AccessRole.parse(self.role)


_TOKENS = TypeAdapter(list[Token])


def _hashed(plain: str) -> str:
    return hashlib.sha256(plain.encode("utf-8", "surrogateescape")).hexdigest()


class TokenFile:
    """Keeps the tokens of a run, in the folder with the league's database."""

    def __init__(self, run_dir: Path) -> None:
        self.folder = run_dir / FOLDER
        self.path = self.folder / FILE

    def read(self) -> list[Token]:
        """Returns the tokens.

        Raises:
            NotFound: the file does not exist.
            DataCorrupt: the file's content can't be used.
            Refused: other users have access to the file, or it can't be read.
        """
        try:
            with self.path.open(encoding="utf-8-sig") as file:
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
        try:
            return _TOKENS.validate_json(content)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"]))
            raise DataCorrupt(
                f"{self.path} can't be used ({place} {first['msg']}): restore it, or make new "
                "tokens"
            ) from None

    def make(self) -> dict[AccessRole, str]:
        """Makes a token of each role, writes it to a file ROLE.token, and returns the texts by
        role. Raises `AlreadyExists` if the run has tokens.
        """
        if self.path.exists():
            raise AlreadyExists(
                f"{self.path} is there already: add to it with bin/league tokens add"
            )
        private_folder(self.folder)
        plain = {AccessRole.parse(word): _new(word) for word in WORDS}
        for role, text in plain.items():
            write_whole(self.folder / f"{role.word}.token", text + "\n", private=True)
        # last, because this file makes the tokens valid
        self._write([_stored(role.word, role, text) for role, text in plain.items()])
        return plain

    def ensure(self) -> bool:
        """Makes the tokens of a run without tokens. Returns whether it made them."""
        if self.path.exists():
            self.read()  # a damaged file is an error now, not at the first call
            return False
        self.make()
        return True

    def replace(self, role: AccessRole, plain: str) -> None:
        """Makes a known token the only valid token, and writes it to the file ROLE.token."""
        private_folder(self.folder)
        write_whole(self.folder / f"{role.word}.token", plain + "\n", private=True)
        self._write([_stored(role.word, role, plain)])

    def add(self, role: AccessRole, name: str) -> str:
        """Makes another token.

        Args:
            role: the role of its bearer.
            name: the token's name in the file.

        Returns:
            The text of the token. The file has only its hash.

        Raises:
            AlreadyExists: the name is taken.
            InvalidInput: the name has characters that are not allowed.
        """
        if not _NAME.fullmatch(name):
            raise InvalidInput(
                f"{name[:80]!r} can't name a token: up to 64 letters, digits, _ . @ -"
            )
        tokens = self.read() if self.path.exists() else []
        if any(token.name == name for token in tokens):
            raise AlreadyExists(
                f"there is a token {name!r} already: revoke it first, or choose another name"
            )
        private_folder(self.folder)
        plain = _new(role.word)
        self._write([*tokens, _stored(name, role, plain)])
        return plain

    def revoke(self, name: str) -> Token:
        """Removes a token and returns it. Raises `NotFound`."""
        tokens = self.read()
        revoked = next((token for token in tokens if token.name == name), None)
        if revoked is None:
            raise NotFound(f"there is no token {name!r}: bin/league tokens list names them")
        self._write([token for token in tokens if token is not revoked])
        return revoked

    def _write(self, tokens: Sequence[Token]) -> None:
        write_whole(self.path, _TOKENS.dump_json(list(tokens), indent=1), private=True)


def _new(role: str) -> str:
    """Returns a new token. It begins with words by which people and secret scanners recognise a
    token, and ends with 256 random bits.
    """
    return f"kumite-{role}-{secrets.token_urlsafe(32)}"


def _stored(name: str, role: AccessRole, plain: str) -> Token:
    return Token(name=name, role=role.word, sha256=_hashed(plain), created_at=time.time())


class TokenBook:
    """Keeps the tokens of a service, and reads the token file again whenever it changes.

    Creating the book raises the errors of `TokenFile.read`. If the file can't be read later, no
    token is valid and the log gives the reason.
    """

    def __init__(self, file: TokenFile, clock: Callable[[], float] = time.monotonic) -> None:
        self._file, self._clock = file, clock
        self._lock = threading.Lock()
        self._looked_at, self._stamp = clock(), self._stamp_now()
        self._tokens = file.read()

    def find(self, plain: str) -> Token | None:
        """Returns the token with this text. Each comparison of hashes takes constant time."""
        is_fresh = self._clock() - self._looked_at < LOOK_SECONDS
        if is_fresh and (found := self._match(plain)) is not None:
            return found
        with self._lock:  # an unknown token may have been added a moment ago
            self._refresh()
        return self._match(plain)

    def _match(self, plain: str) -> Token | None:
        digest, found = _hashed(plain), None
        for token in self._tokens:
            if hmac.compare_digest(token.sha256, digest):
                found = token
        return found

    def _stamp_now(self) -> tuple[int, ...]:
        """Returns numbers that change whenever the file changes, () if the file can't be found."""
        try:
            state = self._file.path.stat()
        except OSError:
            return ()
        return state.st_mtime_ns, state.st_ino, state.st_size, state.st_mode

    def _refresh(self) -> None:
        self._looked_at, before = self._clock(), self._stamp
        self._stamp = self._stamp_now()
        if self._stamp == before:
            return
        try:
            self._tokens = self._file.read()
        except LeagueError as error:
            self._tokens = []
            _log.error("no token is valid until this is repaired: %s", error)
