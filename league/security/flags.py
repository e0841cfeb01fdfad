"""Flags of the services (who may call them) and of their clients (what to show)."""

from __future__ import annotations

import argparse
from pathlib import Path

from league.security.credentials import Credentials, from_environment, of_run
from league.security.settings import SecuritySettings


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


def add_client_flags(parser: argparse.ArgumentParser) -> None:
    """Adds the flags of `client_credentials`."""
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


def client_credentials(
    options: argparse.Namespace, role: str, run_dir: Path | None = None
) -> Credentials:
    """Credentials by flags, environment, and the run's own files; `role` is that of its token."""
    if run_dir is None:
        return from_environment(token_file=options.token_file, tls=options.tls)
    return of_run(run_dir, role, token_file=options.token_file, tls=options.tls)
