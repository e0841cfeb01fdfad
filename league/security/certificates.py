"""Reads certificates from a folder: ca.pem, server.pem with server.key, client.pem with client.key.

`bin/league certs` makes a set with a new CA, for tests and for machines that trust each
other. Certificates of another CA work too when they have these names.
"""

from __future__ import annotations

from pathlib import Path

import grpc

from league.errors import ConfigError

CA, CA_KEY = "ca.pem", "ca.key"
SERVER, SERVER_KEY = "server.pem", "server.key"
CLIENT, CLIENT_KEY = "client.pem", "client.key"


def read_server(folder: Path, *, mutual: bool) -> grpc.ServerCredentials:
    """A service's certificate, and with `mutual` the CA of its clients; raises `ConfigError`."""
    pair = (_bytes(folder / SERVER_KEY), _bytes(folder / SERVER))
    roots = _bytes(folder / CA) if mutual else None
    return grpc.ssl_server_credentials([pair], root_certificates=roots, require_client_auth=mutual)


def read_client(folder: Path) -> grpc.ChannelCredentials:
    """The CA that a client trusts, and its certificate if it has one; raises `ConfigError`."""
    roots = _bytes(folder / CA)
    if not (folder / CLIENT).exists():
        return grpc.ssl_channel_credentials(roots)
    return grpc.ssl_channel_credentials(roots, _bytes(folder / CLIENT_KEY), _bytes(folder / CLIENT))


def _bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise ConfigError(
            f"the certificate file {file} can't be read ({error.strerror}): bin/league certs "
            f"{file.parent} makes a set, or name the right folder as security.tls (--tls)"
        ) from None
