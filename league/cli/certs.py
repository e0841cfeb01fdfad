"""``league certs``: certificates for TLS and mutual TLS, signed by a CA of one's own."""

from __future__ import annotations

import argparse
from pathlib import Path

from league.security.issuing import DAYS, make_folder


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of the command."""
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="what is missing there is made")
    parser.add_argument(
        "--host",
        action="append",
        default=[],
        metavar="NAME",
        help="name or address that the services are reached by, beside this machine's own; repeatable",
    )
    parser.add_argument(
        "--client",
        action="append",
        default=[],
        metavar="NAME",
        help="also FOLDER/NAME, to hand to a client",
    )
    parser.add_argument(
        "--days", type=int, default=DAYS, metavar="N", help=f"how long they hold ({DAYS})"
    )


def run(args: argparse.Namespace) -> int:
    for path in make_folder(args.folder, args.host, args.client, args.days):
        print(path)
    return 0
