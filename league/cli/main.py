"""``bin/league``: commands that show a league and change it.

Other packages add commands through the entry point group ``kumite.commands``: the entry point's
name is the command, its value a function with typer's annotations or a `typer.Typer`. The function
returns the exit status (None is 0) and its docstring is the command's help.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.metadata import entry_points
from typing import Annotated, Any

import typer
import typer.main
from typer.core import TyperGroup

from league import __version__
from league.cli import (
    changes,
    exploitability,
    exports,
    files,
    gates,
    play,
    sprt,
    standings,
    status,
    structure,
)
from league.cli.options import SeveralValues
from league.errors import InvalidInput, LeagueError

GROUP = "kumite.commands"


class CommandGroup(TyperGroup):
    """The built-in commands and those of other packages, which load when they are needed."""

    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]
        return [*super().list_commands(ctx), *sorted(entry_points(group=GROUP).names)]

    def get_command(self, ctx: typer.Context, cmd_name: str) -> Any:  # type: ignore[override]
        own = super().get_command(ctx, cmd_name)
        points = entry_points(group=GROUP, name=cmd_name)
        if own is not None or not points:
            return own
        target = next(iter(points)).load()
        if not isinstance(target, typer.Typer):
            plugin = typer.Typer(add_completion=False)
            plugin.command(cmd_name)(target)
            target = plugin
        loaded = typer.main.get_command(target)
        loaded.name = cmd_name
        return loaded


app = typer.Typer(
    cls=CommandGroup,
    help="Shows a league of Kumite, and changes it.",
    no_args_is_help=False,
    pretty_exceptions_enable=False,
)


def _print_version(asked: bool) -> None:
    if asked:
        print(f"kumite {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show it.")
    ] = False,
) -> None:
    pass


COMMANDS = {
    "Look at a league": {
        "status": status.status,
        "ratings": standings.ratings,
        "players": standings.players,
        "payoff": standings.payoff,
        "structure": structure.structure,
        "exploiters": gates.exploiters,
        "gates": gates.gates,
        "watch": status.watch,
        "match": status.match,
    },
    "Change a league": {
        "stage": changes.stage,
        "pin": changes.pin,
        "quarantine": changes.quarantine,
        "import": changes.import_,
    },
    "Play": {
        "demo": play.demo,
        "replay": play.replay,
        "record": play.record,
        "exploitability": exploitability.exploitability,
    },
    "Write files": {
        "leaderboard": standings.leaderboard,
        "curves": exports.curves,
        "render": exports.render,
        "attention": exports.attention,
        "export": exports.export,
        "config": files.config,
        "tokens": files.tokens,
        "certs": files.certs,
    },
    "Work without a league": {"sprt": sprt.sprt},
}
"""The built-in commands by their heading in the help."""
SEVERAL_VALUES = ("import", "structure")

for _panel, _commands in COMMANDS.items():
    for _name, _command in _commands.items():
        if isinstance(_command, typer.Typer):
            app.add_typer(_command, name=_name, rich_help_panel=_panel)
        else:
            _class = SeveralValues if _name in SEVERAL_VALUES else None
            app.command(_name, cls=_class, rich_help_panel=_panel)(_command)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit status. An error is one sentence on stderr."""
    try:
        status = app(
            list(sys.argv[1:] if arguments is None else arguments),
            prog_name="league",
            standalone_mode=False,
        )
        sys.stdout.flush()
        return int(status or 0)
    except LeagueError as error:
        return _fail(str(error), error.exit_code)
    except typer.TyperException as error:
        context = getattr(error, "ctx", None)
        path = "bin/league" if context is None else f"bin/{context.command_path}"
        message = getattr(error, "format_message", error.__str__)()
        message = f"{message[:1].lower()}{message[1:].rstrip('.')}"
        return _fail(f"{message} (see {path} --help)", InvalidInput.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        return 130
    except BrokenPipeError:  # the reader (head, less) has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _fail(sentence: str, status: int) -> int:
    print(f"league: {sentence}", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
