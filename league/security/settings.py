"""Settings of how the services are reached: addresses, tokens, TLS, limits."""

from __future__ import annotations

from ipaddress import ip_address
from pathlib import Path

from pydantic import Field, field_validator

from league.errors import ConfigError
from league.settings.base import Settings


class SecuritySettings(Settings):
    """Who may ask the matchmaker and the evaluator, and how. By default: whoever is on this
    machine.
    """

    host: str = Field(default="127.0.0.1", min_length=1, max_length=255)
    """Address that the services listen on. One that other machines reach needs `tokens` or
    `mutual_tls`.
    """

    tokens: bool = False
    """Whether every call must bring a token of the run (`bin/league tokens`); one without any
    makes them.
    """

    tls: str = ""
    """Folder with certificates as `bin/league certs FOLDER` makes it: the services then speak
    TLS alone.
    """

    mutual_tls: bool = False
    """Whether clients must show a certificate too, signed by the folder's ca.pem."""

    allow_open: bool = False
    """Listens for other machines although nothing says who may ask: whoever reaches the port is
    obeyed.
    """

    calls_per_second: float = Field(default=2000.0, gt=0.0, le=1e6)
    """Calls a second that one peer may make on the average: another machine, or a connection of
    this one.
    """

    calls_at_once: int = Field(default=4000, ge=1, le=1_000_000)
    """Calls that a peer may make in one burst before that average holds."""

    waiting_calls: int = Field(default=20_000, ge=16, le=1_000_000)
    """Calls of all peers that may wait for a thread; more are told to come back later."""

    @field_validator("tls")
    @classmethod
    def _from_anywhere(cls, folder: str) -> str:
        return str(Path(folder).expanduser().absolute()) if folder else ""

    @property
    def tls_folder(self) -> Path | None:
        return Path(self.tls) if self.tls else None

    def checked(self, host: str = "") -> str:
        """The address to listen on, `host` if given; raises `ConfigError` for one open to
        strangers.
        """
        host = host or self.host
        if self.mutual_tls and not self.tls:
            raise ConfigError(
                "security.mutual_tls needs certificates: make them (bin/league certs FOLDER) and name the "
                "folder as security.tls"
            )
        if not (is_loopback(host) or self.tokens or self.mutual_tls or self.allow_open):
            raise ConfigError(
                f"{host} can be reached from other machines, and nothing says who may ask: set "
                f"security.tokens or security.mutual_tls, or security.allow_open where everybody may"
            )
        return host


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    if host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def joined(host: str, port: int) -> str:
    """HOST:PORT, with the brackets that an IPv6 address needs."""
    return f"[{host}]:{port}" if ":" in host and not host.startswith("[") else f"{host}:{port}"


def reached_at(host: str) -> str:
    """Where this machine's own processes reach what listens on `host`."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1", "[::]": "::1"}.get(host, host)
