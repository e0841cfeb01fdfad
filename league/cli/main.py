"""``bin/league``: commands that show a league and change it.

Other packages add commands through the entry point group ``kumite.commands``. The entry point's
name is the command. Its value is a function with typer's annotations, or a `typer.Typer`. The
function returns the exit status (None is 0), and its docstring is the command's help.
"""

from __future__ import annotations

import ast
import functools
import importlib
import importlib.util
import io
import os
import sys
from collections.abc import Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated, Any

import typer
import typer.main
from typer.core import TyperCommand, TyperGroup

from league import __version__
from league.errors import InvalidInput, LeagueError, NotFound, nearest

GROUP = "kumite.commands"
COMMANDS = {
    "Train": dict.fromkeys(("train", "doctor", "profile", "simulate"), ""),
    "Look at a league": {
        "dashboard": "dashboard:dashboard",
        "status": "status:status",
        "ratings": "standings:ratings",
        "players": "standings:players",
        "payoff": "standings:payoff",
        "structure": "structure:structure",
        "exploiters": "gates:exploiters",
        "gates": "gates:gates",
        "evaluations": "evaluations:evaluations",
        "watch": "status:watch",
        "match": "status:match",
        "mix": "",
    },
    "Measure players": {
        **dict.fromkeys(("eval", "compare", "ready", "exploit", "analyze"), ""),
        "exploitability": "exploitability:exploitability",
        "sprt": "sprt:sprt",
    },
    "Play": {
        "demo": "play:demo",
        "replay": "play:replay",
        "record": "play:record",
        "showdown": "showdown:app",
    },
    "Write files": {
        "report": "",
        "leaderboard": "standings:leaderboard",
        "curves": "exports:curves",
        "render": "exports:render",
        "attention": "exports:attention",
        "export": "exports:export",
        "config": "files:config",
        "tokens": "files:tokens",
        "certs": "files:certs",
    },
    "Change a league": {
        "stage": "changes:stage",
        "pin": "changes:pin",
        "quarantine": "changes:quarantine",
        "import": "changes:import_",
    },
    "Look after a run's log": dict.fromkeys(
        ("backup", "restore", "fsck", "recompute", "prune"), ""
    ),
}
"""The commands by their heading in the help, each as a module and a name in it, or "" for a command
of a service, which its entry point names."""


def _help_of(path: str) -> str:
    """The docstring or ``help=`` that a module's source gives a name, "" if it is not there."""
    module, _, name = path.partition(":")
    spec = importlib.util.find_spec(module)
    source = Path(spec.origin).read_text(encoding="utf-8") if spec and spec.origin else ""
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return ast.get_docstring(node) or ""
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == name:
            keywords = getattr(node.value, "keywords", [])
            found = [one.value for one in keywords if one.arg == "help"]
            return str(getattr(found[0], "value", "")) if found else ""
    return ""


class CommandGroup(TyperGroup):
    """The built-in commands and other packages' commands. Only the command that is called loads."""

    @functools.cached_property
    def targets(self) -> dict[str, tuple[str, str]]:
        """The heading ("" for a command of another package) and "module:name" of every command."""
        points = {point.name: point.value for point in entry_points(group=GROUP)}
        own = {
            name: (panel, f"league.cli.{path}" if path else points[name])
            for panel, commands in COMMANDS.items()
            for name, path in commands.items()
        }
        return own | {name: ("", points[name]) for name in sorted(points.keys() - own.keys())}

    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]
        return list(self.targets)

    def get_command(self, ctx: typer.Context, cmd_name: str) -> Any:  # type: ignore[override]
        """Returns a command with its help. It stays unloaded if its source contains the help."""
        panel, path = self.targets[cmd_name]
        text = _help_of(path)
        if not text:
            loaded = _load(cmd_name, path)
            loaded.rich_help_panel = panel or None
            return loaded
        about = " ".join(text.partition("\n\n")[0].split())
        return TyperCommand(cmd_name, help=about, rich_help_panel=panel or None)

    def resolve_command(self, ctx: typer.Context, args: list[str]) -> Any:  # type: ignore[override]
        name, *rest = args
        if name not in self.targets:
            hint = nearest(name, self.targets) or "bin/league --help lists them"
            raise InvalidInput(f"there is no command {name!r}: {hint}")
        return name, _load(name, self.targets[name][1]), rest


def _load(name: str, path: str) -> Any:
    module, _, attribute = path.partition(":")
    target = getattr(importlib.import_module(module), attribute)
    if not isinstance(target, typer.Typer):
        alone = typer.Typer(add_completion=False)
        alone.command(name, cls=getattr(target, "command_class", None))(target)
        target = alone
    loaded = typer.main.get_command(target)
    loaded.name = name
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


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit status. An error is one sentence on stderr."""
    # read when torch is loaded; two busy threads on two cores are slower than one
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    if isinstance(sys.stdout, io.TextIOWrapper):  # a worker's words may not fit into its encoding
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        status = app(
            list(sys.argv[1:] if arguments is None else arguments),
            prog_name="league",
            standalone_mode=False,
        )
        sys.stdout.flush()
        return int(status or 0)
    except NotFound as error:  # a name of nothing that exists is a wrong value of the command
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
