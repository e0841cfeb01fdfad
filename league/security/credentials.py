"""Loads the credentials of client and service: a token, and certificates if they use TLS.

A folder of certificates holds ca.pem, server.pem with server.key, and client.pem with client.key.
`bin/league certs` makes such a folder. Certificates of another CA work too if they have these
names.
"""

from __future__ import annotations

import argparse
import logging
import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import grpc

from league.errors import ConfigError
from league.security.roles import WORDS
from league.security.settings import SecuritySettings
from league.security.tokens import FOLDER

TOKEN, TOKEN_FILE, TLS = "KUMITE_TOKEN", "KUMITE_TOKEN_FILE", "KUMITE_TLS"
"""Environment variables: a token, a file with a token, and a folder with ca.pem (and client.pem,
client.key).
"""
HEADER = "authorization"
CA, SERVER, CLIENT = "ca.pem", "server.pem", "client.pem"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Credentials:
    """Keeps a client's token ("" without a token) and its folder of certificates (None without
    TLS).
    """

    token: str = ""
    tls: Path | None = None

    @property
    def metadata(self) -> tuple[tuple[str, str], ...]:
        """Returns the gRPC metadata that every call carries, with the token."""
        return ((HEADER, f"Bearer {self.token}"),) if self.token else ()

    def channel(
        self, address: str, options: Sequence[tuple[str, Any]] = (), kind: Any = grpc
    ) -> Any:
        """Opens a channel.

        Args:
            address: HOST:PORT of the service.
            options: gRPC's options for the channel.
            kind: the module `grpc`, or `grpc.aio` for a channel of an event loop.

        Raises:
            ConfigError: the certificates can't be read.
        """
        if self.tls is None:
            return kind.insecure_channel(address, options=options)
        client = self.tls / CLIENT
        own = _key_and_chain(client) if client.exists() else ()
        trusted = grpc.ssl_channel_credentials(_bytes(self.tls / CA), *own)
        return kind.secure_channel(address, trusted, options=options)


def read_server(folder: Path, *, mutual: bool) -> grpc.ServerCredentials:
    """Reads a service's certificate and its key.

    Args:
        mutual: whether clients must show a certificate that was signed by the folder's CA.

    Returns:
        The credentials for gRPC's server. If other users can read the key, a warning is logged. The
        key is used nevertheless, because some systems deliver keys that way.

    Raises:
        ConfigError: a certificate can't be used.
    """
    roots = _bytes(folder / CA) if mutual else None
    pair = _key_and_chain(folder / SERVER)
    key = (folder / SERVER).with_suffix(".key")
    if (mode := stat.S_IMODE(key.stat().st_mode)) & 0o077:
        _log.warning("%s can be read by others (mode %o): chmod 600 it", key, mode)
    return grpc.ssl_server_credentials([pair], root_certificates=roots, require_client_auth=mutual)


def _key_and_chain(file: Path) -> tuple[bytes, bytes]:
    """Reads a certificate and its key. Raises `ConfigError` if a file can't be used, or if the
    certificate has expired or is not valid yet.
    """
    from cryptography import x509  # only TLS needs it

    key, chain = _bytes(file.with_suffix(".key")), _bytes(file)
    try:
        certificate = x509.load_pem_x509_certificate(chain)
    except ValueError as error:
        raise ConfigError(f"{file} holds no certificate ({error}): restore it") from None
    first, last = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    if not first <= (now := datetime.now(UTC)) <= last:
        fault = f"has expired on {last:%Y-%m-%d}" if now > last else f"is valid from {first} on"
        raise ConfigError(
            f"the certificate {file} {fault}, and now it is {now:%Y-%m-%d %H:%M} UTC: remove it "
            "with its key and have a new one made (bin/league certs), or set the clock right"
        )
    return key, chain


def _bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise ConfigError(
            f"the certificate file {file} can't be read ({error.strerror}): bin/league certs "
            f"{file.parent} makes a set, or name the right folder as security.tls (--tls)"
        ) from None


def of_run(
    run_dir: Path | None = None,
    role: str = "read",
    *,
    token_file: Path | None = None,
    tls: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Credentials:
    """Returns the credentials of a client.

    The flags `token_file` and `tls` override the environment, which overrides the run's folder.
    The folder provides the token of `role`. If this user can't read that token, the folder provides
    the readable token with the most rights. The run's settings name the certificates.

    Args:
        environment: the environment's variables. None means the variables of this process.

    Raises:
        ConfigError: a token or the settings can't be read.
    """
    given = os.environ if environment is None else environment
    token = given.get(TOKEN, "").strip()
    if token_file is None and not token and given.get(TOKEN_FILE):
        token_file = Path(given[TOKEN_FILE])
    if token_file is not None:
        token = read_token(token_file)
    if tls is None and given.get(TLS):
        tls = Path(given[TLS])
    if run_dir is not None:
        for word in (role, *reversed(WORDS)):
            file = run_dir / FOLDER / f"{word}.token"
            if not token and os.access(file, os.R_OK):
                token = read_token(file)
        if tls is None:
            tls = SecuritySettings.of_run(run_dir).tls_folder
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
        help="folder with ca.pem, and with client.pem and client.key for mutual TLS (default: "
        "KUMITE_TLS, or the folder in the run's settings)",
    )


def read_token(file: Path) -> str:
    """Returns the token in a file. Raises `ConfigError` if there is no token."""
    try:
        text = file.read_text(encoding="utf-8-sig").strip()
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
