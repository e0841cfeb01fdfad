"""What a client shows a service: a token, and certificates where the service speaks TLS."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc

from league.errors import ConfigError
from league.security.certificates import read_client
from league.security.roles import WORDS
from league.security.settings import SecuritySettings
from league.security.tokens import FOLDER
from league.settings.base import resolve

TOKEN, TOKEN_FILE, TLS = "KUMITE_TOKEN", "KUMITE_TOKEN_FILE", "KUMITE_TLS"
"""Variables: a token, a file that holds one, a folder with ca.pem (and client.pem, client.key)."""
HEADER = "authorization"


@dataclass(frozen=True, kw_only=True)
class Credentials:
    """`token` "" shows none; `tls` None speaks without TLS."""

    token: str = ""
    tls: Path | None = None

    @property
    def metadata(self) -> tuple[tuple[str, str], ...]:
        """The metadata of every call."""
        return ((HEADER, f"Bearer {self.token}"),) if self.token else ()

    def channel(self, address: str, options: Sequence[tuple[str, Any]] = ()) -> grpc.Channel:
        """A channel to `address`; raises `ConfigError` when the certificates can't be read."""
        if self.tls is None:
            return grpc.insecure_channel(address, options=options)
        return grpc.secure_channel(address, read_client(self.tls), options=options)


def from_environment(
    environment: Mapping[str, str] | None = None,
    *,
    token_file: Path | None = None,
    tls: Path | None = None,
) -> Credentials:
    """What the flags `token_file` and `tls` give, else what the environment does."""
    given = os.environ if environment is None else environment
    token = given.get(TOKEN, "").strip()
    if token_file is None and not token and given.get(TOKEN_FILE):
        token_file = Path(given[TOKEN_FILE])
    if token_file is not None:
        token = read_token(token_file)
    if tls is None and given.get(TLS):
        tls = Path(given[TLS])
    return Credentials(token=token, tls=tls)


def of_run(
    run_dir: Path | None,
    role: str,
    *,
    token_file: Path | None = None,
    tls: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Credentials:
    """As `from_environment`, then the files of a run where one is given.

    These are its token of `role`, or the strongest other one that can be read, and the certificates
    that its settings name.
    """
    own = from_environment(environment, token_file=token_file, tls=tls)
    if run_dir is None:
        return own
    token, tls = own.token, own.tls
    for word in (role, *reversed(WORDS)):
        file = run_dir / FOLDER / f"{word}.token"
        if not token and os.access(file, os.R_OK):
            token = read_token(file)
    config = run_dir / "config.toml"
    if tls is None and config.is_file():
        tls = resolve(file=config, environment={}).of(SecuritySettings).tls_folder
    return Credentials(token=token, tls=tls)


def add_client_flags(parser: argparse.ArgumentParser) -> None:
    """Adds the flags `--token-file` and `--tls` of `of_run`."""
    parser.add_argument(
        "--token-file",
        type=Path,
        metavar="FILE",
        help="file with a token (default: KUMITE_TOKEN, KUMITE_TOKEN_FILE, or the run's own)",
    )
    parser.add_argument(
        "--tls",
        type=Path,
        metavar="FOLDER",
        help="folder with ca.pem, and client.pem and client.key where they are wanted (default: "
        "KUMITE_TLS, or what the run's settings name)",
    )


def read_token(file: Path) -> str:
    """The token in a file; raises `ConfigError`."""
    try:
        text = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise ConfigError(
            f"the token file {file} can't be read ({reason}): check its path"
        ) from None
    if not text or not text.isascii() or any(character.isspace() for character in text):
        raise ConfigError(
            f"{file} holds no token: a token is one word, as bin/league tokens add prints it"
        )
    return text
