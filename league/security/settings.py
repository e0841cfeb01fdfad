"""Defines the `[security]` section: how the services are reached, and who may call them."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable, Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError, field_validator

from league.errors import ConfigError
from league.settings.base import Settings, fault_of
from league.settings.presets import load_preset, read_tables

_NAME = re.compile(r"[a-z0-9.-]{1,253}(:[0-9]{1,5})?")


class SecuritySettings(Settings):
    """Who may call the matchmaker and the evaluator. By default: every process of this machine."""

    host: str = Field(default="127.0.0.1", min_length=1, max_length=255)
    """Address that the services listen on. An address that other machines can reach needs `tokens`
    or `tls`.
    """

    tokens: bool = False
    """Whether every call must bring a token of the run (`bin/league tokens`). If the run has no
    tokens yet, they are made at its start.
    """

    tls: str = ""
    """Folder with certificates, such as `bin/league certs FOLDER` makes. The services then speak
    only TLS. Without `tokens`, clients must also show a certificate that the folder's ca.pem
    signed.
    """

    @field_validator("tls")
    @classmethod
    def _absolute(cls, folder: str) -> str:
        return str(Path(folder).expanduser().absolute()) if folder else ""

    @classmethod
    def of_run(cls, run_dir: Path) -> SecuritySettings:
        """Reads only this section from a run's config.toml. Without the file, returns the defaults.

        Other sections are not checked, because checking them may need a game's server, which may
        not be running.

        Raises:
            ConfigError: the file or the section can't be read.
        """
        config = run_dir / "config.toml"
        section: dict[str, Any] = {}
        if config.is_file():
            content = read_tables(config)
            below = load_preset(content.extends) if content.extends else {}
            section = {**below.get("security", {}), **content.sections.get("security", {})}
        try:
            return cls.model_validate(section)
        except ValidationError as error:
            first = error.errors()[0]
            fault = fault_of(first, map(str, first["loc"]), cls, "security")
            raise ConfigError(f"{config}: {fault}") from None

    @property
    def tls_folder(self) -> Path | None:
        """Returns the folder of certificates that `tls` names, or None without TLS."""
        return Path(self.tls) if self.tls else None

    @property
    def mutual_tls(self) -> bool:
        """Returns whether clients must show a certificate."""
        return bool(self.tls) and not self.tokens

    def asks_visitors(self, host: str, names: Sequence[str] = ()) -> bool:
        """Returns whether a dashboard asks its visitors for a token.

        Args:
            host: the address that the dashboard listens on.
            names: the names under which a proxy serves the dashboard to others.
        """
        return self.tokens or bool(names) or not is_loopback(host)

    def checked_host(self) -> str:
        """Returns the address to listen on.

        Raises:
            ConfigError: other machines can reach the address, and every caller would be accepted.
        """
        if not (is_loopback(self.host) or self.tokens or self.tls):
            raise ConfigError(
                f"{self.host} can be reached from other machines, and nothing says who may ask: "
                "set security.tokens or security.tls"
            )
        return self.host


def is_loopback(host: str) -> bool:
    """Returns whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def checked_names(names: Iterable[str]) -> tuple[str, ...]:
    """Checks names under which a proxy serves pages. A malformed name raises `ConfigError`."""
    for name in (names := tuple(names)):
        if not _NAME.fullmatch(name):
            raise ConfigError(
                f"{name!r} is no name of a dashboard: write HOST or HOST:PORT in lower case, "
                "without https://"
            )
    return names


def joined(host: str, port: int) -> str:
    """Returns HOST:PORT, with the brackets that an IPv6 address needs."""
    return f"[{host}]:{port}" if ":" in host and not host.startswith("[") else f"{host}:{port}"


def named(host: str) -> str:
    """Returns the name at which other machines can reach a service that listens on `host`."""
    return socket.gethostname() if host in ("0.0.0.0", "::", "[::]") else host


def reached_at(host: str) -> str:
    """Returns the address at which processes of this machine can reach a service that listens on
    `host`.
    """
    return {"0.0.0.0": "127.0.0.1", "::": "::1", "[::]": "::1"}.get(host, host)
