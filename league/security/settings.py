"""The `[security]` section: how the services are reached, and who may call them."""

from __future__ import annotations

import argparse
from ipaddress import ip_address
from pathlib import Path

from pydantic import Field, field_validator

from league.errors import ConfigError
from league.settings.base import Settings


class SecuritySettings(Settings):
    """Who may call the matchmaker and the evaluator. By default: every process of this machine."""

    host: str = Field(default="127.0.0.1", min_length=1, max_length=255)
    """Address that the services listen on. One that other machines reach needs `tokens` or
    `mutual_tls`.
    """

    tokens: bool = False
    """Whether every call must bring a token of the run (`bin/league tokens`); a run without
    tokens makes them.
    """

    tls: str = ""
    """Folder with certificates as `bin/league certs FOLDER` makes it: the services then speak
    only TLS.
    """

    mutual_tls: bool = False
    """Whether clients must show a certificate too, signed by the folder's ca.pem."""

    @field_validator("tls")
    @classmethod
    def _absolute(cls, folder: str) -> str:
        return str(Path(folder).expanduser().absolute()) if folder else ""

    @property
    def tls_folder(self) -> Path | None:
        """The folder of `tls`, None without TLS."""
        return Path(self.tls) if self.tls else None

    def checked(self, host: str = "") -> str:
        """The address to listen on, `host` if given.

        Raises:
            ConfigError: other machines reach it and nothing limits who may call.
        """
        host = host or self.host
        if self.mutual_tls and not self.tls:
            raise ConfigError(
                "security.mutual_tls needs certificates: make them (bin/league certs FOLDER) and "
                "name the folder as security.tls"
            )
        if not (is_loopback(host) or self.tokens or self.mutual_tls):
            raise ConfigError(
                f"{host} can be reached from other machines, and nothing says who may ask: set "
                "security.tokens or security.mutual_tls"
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


def add_service_flags(parser: argparse.ArgumentParser) -> None:
    """Adds the flags of `service_settings`, which win over section [security]."""
    parser.add_argument(
        "--host", default="", help="address to listen on (default: security.host, 127.0.0.1)"
    )
    parser.add_argument(
        "--tokens", action="store_true", help="every call must bring a token of the run"
    )
    parser.add_argument(
        "--tls", type=Path, metavar="FOLDER", help="speak TLS with the certificates in FOLDER"
    )
    parser.add_argument(
        "--mutual-tls", action="store_true", help="with --tls: clients show certificates too"
    )


def service_settings(options: argparse.Namespace, settings: SecuritySettings) -> SecuritySettings:
    """`settings` under the flags; raises `ConfigError` for values that exclude each other."""
    given: dict[str, object] = {
        key: True for key in ("tokens", "mutual_tls") if getattr(options, key)
    }
    if options.host:
        given["host"] = options.host
    if options.tls is not None:
        given["tls"] = str(options.tls.expanduser().absolute())
    changed = settings.model_copy(update=given)
    changed.checked()
    return changed
