"""Defines ``league config``, ``tokens`` and ``certs``: settings files, and access to services."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from league.console.options import Assignments, Heading
from league.console.output import print_table, say, when
from league.contest.league import League
from league.errors import AlreadyExists, InvalidInput
from league.runs.files import write_whole
from league.security.roles import WORDS, AccessRole

if TYPE_CHECKING:
    from league.security.tokens import TokenFile

app = typer.Typer(rich_help_panel=Heading.WRITE, add_completion=False)

TOKENS = "name role made sha256"

config = typer.Typer(
    help="Writes a commented settings file, or lists presets.",
    rich_help_panel=Heading.WRITE,
    no_args_is_help=True,
    add_completion=False,
)
tokens = typer.Typer(
    help="Makes, adds, lists and revokes tokens of a run's services.",
    rich_help_panel=Heading.WRITE,
    no_args_is_help=True,
    add_completion=False,
)

TokenDir = Annotated[
    Path | None,
    typer.Option("--run-dir", metavar="DIR", help="A run, or the folder of a league's database."),
]


@config.command("write")
def write_settings(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The file to write; - prints it.")],
    preset: Annotated[
        str | None, typer.Option(help="Start from this preset (default: the classes' defaults).")
    ] = None,
    source: Annotated[
        Path | None, typer.Option("--from", metavar="FILE", help="Start from this settings file.")
    ] = None,
    assignments: Assignments = None,
    force: Annotated[bool, typer.Option("--force", help="Write over a file that exists.")] = False,
) -> None:
    """Writes every setting with its explanation, ready to be edited."""
    from league.runs.folder import write_config
    from league.settings.base import DEFAULT_PRESET, resolve
    from league.settings.file import HEADING, dump_toml

    base = preset or (DEFAULT_PRESET if source else None)
    sections = resolve(base, source, assignments or [], environment={})
    origin = f"preset {preset}" if preset else str(source or "the defaults")
    heading = f"{HEADING}The values are those of {origin}.\n"
    if file == "-":
        print(dump_toml(sections, heading), end="")
        return
    path = Path(file)
    if path.exists() and not force:
        raise AlreadyExists(f"{path} exists already: name another file, or add --force")
    write_config(path, sections, heading)
    say(f"{path} holds {origin}: edit it, then bin/start-league --config {path}")


@config.command("presets")
def list_presets() -> None:
    """Lists the presets."""
    from league.settings.presets import preset_names

    print("\n".join(preset_names()))


@tokens.command("make")
def make_tokens(run_dir: TokenDir = None) -> None:
    """Makes a token for each role, in RUN/tokens/ROLE.token."""
    file = _token_file(run_dir)
    file.make()
    names = ",".join(WORDS)
    say(f"made {file.folder}/{{{names}}}.token; security.tokens = true makes services want them")


@tokens.command("add")
def add_token(
    role: Annotated[
        str, typer.Argument(metavar="ROLE", help=f"What it may do: {', '.join(WORDS)}.")
    ],
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Its owner, in logs and in `tokens list`.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write it to a file that only its owner can read."),
    ] = None,
    run_dir: TokenDir = None,
) -> None:
    """Adds a token and prints it. It can't be shown again."""
    token = _token_file(run_dir).add(AccessRole.parse(role), name)
    if out is None:
        print(token)
        say("keep it: it can't be shown again")
    else:
        write_whole(out, token + "\n", private=True)
        say(f"wrote {out}")


@tokens.command("list")
def list_tokens(run_dir: TokenDir = None) -> None:
    """Lists the tokens: name, role, time, and the beginning of the hash."""
    file = _token_file(run_dir)
    rows = [(one.name, one.role, when(one.created_at), one.sha256[:12]) for one in file.read()]
    print_table(f"Tokens in {file.path}", TOKENS, rows)


@tokens.command("revoke")
def revoke_token(
    name: Annotated[str, typer.Argument(metavar="NAME")], run_dir: TokenDir = None
) -> None:
    """Revokes a token. Services refuse it within a second."""
    token = _token_file(run_dir).revoke(name)
    say(f"{token.name} ({token.role}) is revoked")


def _token_file(run_dir: Path | None) -> TokenFile:
    """Opens a run's tokens. The folder need not be a run yet, because tokens may be made before the
    first start.
    """
    from league.security.tokens import TokenFile

    if run_dir is None:
        return TokenFile(League().folder())
    if run_dir.exists() and not run_dir.is_dir():
        raise InvalidInput(f"{run_dir} is no folder: name a run with --run-dir DIR")
    return TokenFile(run_dir)


@app.command()
def certs(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Where to make files that are missing.")
    ],
    host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A further name or address of the services; repeatable."),
    ] = None,
    client: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Also make FOLDER/NAME, for a client; repeatable."),
    ] = None,
) -> None:
    """Makes certificates for TLS and mutual TLS, signed by a new CA."""
    from league.security.issuing import make_folder

    for path in make_folder(folder, host or [], client or []):
        print(path)
