"""``league tokens``: who may ask a run's services; made, listed and taken back without stopping
them.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from league.cli import connect
from league.cli.output import Column, print_table, say, when
from league.errors import InvalidInput
from league.runs.files import write_whole
from league.security.roles import WORDS, AccessRole
from league.security.tokens import TokenFile

COLUMNS = (Column("name"), Column("role"), Column("made"), Column("sha256"))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Actions: make, add, list, revoke."""
    actions = parser.add_subparsers(metavar="ACTION", required=True, parser_class=type(parser))
    make = actions.add_parser("make", help="a token for each role, in RUN/tokens/ROLE.token")
    add = actions.add_parser("add", help="one more token, printed once")
    add.add_argument("role", metavar="ROLE", help=f"what it may do: {', '.join(WORDS)}")
    add.add_argument("name", metavar="NAME", help="whose it is, as logs and `tokens list` say")
    add.add_argument(
        "--out", type=Path, metavar="FILE", help="write it there, for its owner alone to read"
    )
    listing = actions.add_parser("list", help="names, roles and the beginning of each hash")
    revoke = actions.add_parser("revoke", help="take a token back: it is unknown within a second")
    revoke.add_argument("name", metavar="NAME")
    for action, run_action in ((make, _make), (add, _add), (listing, _list), (revoke, _revoke)):
        action.add_argument(
            "--run-dir",
            type=Path,
            metavar="DIR",
            help="the run, or the folder of a league's database",
        )
        action.set_defaults(act=run_action)


def run(args: argparse.Namespace) -> int:
    args.act(args, TokenFile(_folder(args)))
    return 0


def _folder(args: argparse.Namespace) -> Path:
    """A run may get its tokens before its first start, so the folder need not be one yet."""
    if args.run_dir is None:
        return connect.run_folder(args)
    if args.run_dir.exists() and not args.run_dir.is_dir():
        raise InvalidInput(f"{args.run_dir} is no folder: name a run with --run-dir DIR")
    folder: Path = args.run_dir
    return folder


def _make(args: argparse.Namespace, file: TokenFile) -> None:
    file.make()
    say(
        f"made {file.folder}/{{{','.join(WORDS)}}}.token; the services want them with security.tokens = true"
    )


def _add(args: argparse.Namespace, file: TokenFile) -> None:
    plain = file.add(AccessRole.parse(args.role), args.name)
    if args.out is None:
        print(plain)
        say("keep it: it can't be shown again")
    else:
        write_whole(args.out, plain + "\n", private=True)
        say(f"wrote {args.out}")


def _list(args: argparse.Namespace, file: TokenFile) -> None:
    rows = [
        (token.name, token.role, when(token.created_at), token.sha256[:12]) for token in file.read()
    ]
    print_table(f"Tokens in {file.path}", COLUMNS, rows)


def _revoke(args: argparse.Namespace, file: TokenFile) -> None:
    token = file.revoke(args.name)
    say(f"{token.name} ({token.role}) is taken back")
