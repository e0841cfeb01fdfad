"""Runs ``bin/league``, whose commands show a league and change it.

Packages add commands through the entry point group ``kumite.commands``. An entry point's name is
the command. Its value is a function with typer's annotations, or a `typer.Typer` app. If the app
has a command of that name, only that command is added. Otherwise the whole app is added. A function
returns the exit status (None means 0), and its docstring is the command's help.
"""

from __future__ import annotations

import functools
import io
import os
import sys
from collections.abc import Sequence
from importlib.metadata import EntryPoint, distribution, version
from typing import Annotated, Any

import typer
import typer.main
from typer.core import TyperGroup

from league.console.options import Heading
from league.entry_points import entry_points
from league.errors import InvalidInput, LeagueError, NotFound, nearest

GROUP = "kumite.commands"
_converted: Any = functools.cache(typer.main.get_command)  # once for all commands of an app


class CommandGroup(TyperGroup):
    """Finds the commands of Kumite and of other packages. Running a command loads only this
    command, but showing the help loads all commands.
    """

    @functools.cached_property
    def points(self) -> dict[str, EntryPoint]:
        """The entry points by command. Kumite's own commands take precedence over others."""
        ours = distribution("kumite").entry_points.select(group=GROUP)
        return {point.name: point for point in (*entry_points(GROUP), *ours)}

    def list_commands(self, ctx: typer.Context) -> list[str]:  # pyrefly: ignore[bad-override]
        """Lists the commands in the order of their headings."""
        panels = {name: self.get_command(ctx, name).rich_help_panel for name in self.points}
        headings = [*Heading, *panels.values()]
        return sorted(panels, key=lambda name: (headings.index(panels[name]), name))

    def get_command(self, ctx: typer.Context, cmd_name: str) -> Any:  # pyrefly: ignore[bad-override]
        if cmd_name not in self.points:
            hint = nearest(cmd_name, self.points) or "bin/league --help lists them"
            raise InvalidInput(f"there is no command {cmd_name!r}: {hint}")
        target = self.points[cmd_name].load()
        if not isinstance(target, typer.Typer):
            alone = typer.Typer(add_completion=False)
            alone.command(cmd_name)(target)
            target = alone
        loaded = _converted(target)
        command = getattr(loaded, "commands", {}).get(cmd_name, loaded)
        command.name = cmd_name
        # typer's list of commands would ignore an app's heading and keep a docstring's line breaks
        command.rich_help_panel = command.rich_help_panel or target.rich_help_panel
        summary = command.short_help or (command.help or "").partition("\n\n")[0]
        command.short_help = " ".join(summary.split())
        return command


app = typer.Typer(
    cls=CommandGroup,
    help="Shows a league of Kumite, and changes it.",
    no_args_is_help=False,
    pretty_exceptions_enable=False,
)


def _print_version(asked: bool) -> None:
    if asked:
        print(f"kumite {version('kumite')}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show it.")
    ] = False,
) -> None:
    pass


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command and returns its exit status. An error is printed as a sentence to stderr."""
    # torch reads this variable when it is loaded. On two busy cores, two threads are slower than a
    # single thread.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    if isinstance(sys.stdout, io.TextIOWrapper):  # it may be unable to encode a worker's text
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        status = app(
            list(sys.argv[1:] if arguments is None else arguments),
            prog_name="league",
            standalone_mode=False,
        )
        sys.stdout.flush()
        return int(status or 0)
    except NotFound as error:  # something that the user named doesn't exist: a wrong argument
        return _fail(str(error), InvalidInput.exit_code)
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
