"""``bin/league``: commands that show a league and change it.

Other packages add commands through the entry point group ``kumite.commands``: the entry point's
name is the command, its value a function with typer's annotations or a `typer.Typer`. The function
returns the exit status (None is 0) and its docstring is the command's help.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from importlib.metadata import entry_points
from typing import Annotated, Any, NoReturn

import typer
import typer.main
from typer.core import TyperCommand, TyperGroup

from league import __version__
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


class SeveralValues(TyperCommand):
    """Lets a repeatable option take several values: ``--players a b`` is ``--players a
    --players b``.
    """

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        repeatable = {
            flag for one in self.params if getattr(one, "multiple", False) for flag in one.opts
        }
        spread: list[str] = []
        flag, is_first = "", False
        for word in args:
            if word in repeatable:
                flag, is_first = word, True
            elif word.startswith("--"):
                flag = ""
            elif flag and not is_first:
                spread.append(flag)
            else:
                is_first = False
            spread.append(word)
        return super().parse_args(ctx, spread)


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
    "status": ("league.cli.status", "how the league is: health, workers, leases, shares, disk"),
    "ratings": ("league.cli.ratings", "the rating of every player, best first"),
    "players": ("league.cli.players", "everybody who is or was in the league"),
    "payoff": ("league.cli.payoff", "who beat whom how often"),
    "exploiters": (
        "league.cli.exploiters",
        "who exploits whom: generations, gates, who is patched",
    ),
    "gates": (
        "league.cli.gates",
        "which snapshots of the mains were admitted, where a gate decides",
    ),
    "structure": (
        "league.cli.structure",
        "who is worth playing: Nash mixture, cycles, near-copies",
    ),
    "leaderboard": (
        "league.cli.leaderboard",
        "write the leaderboard to a file (csv, json, md, html)",
    ),
    "curves": ("league.cli.curves", "draw how a run has learnt (training_curves.png)"),
    "watch": ("league.cli.watch", "what happens in the league, as it happens"),
    "quarantine": ("league.cli.quarantine", "keep a player from being met by anybody; release it"),
    "pin": ("league.cli.pin", "put a player's rating where it stays, as an anchor; let it go"),
    "import": ("league.cli.importing", "another run's snapshots into this league, as anchors"),
    "stage": ("league.cli.stage", "a learner's stages, and going to another one by hand"),
    "match": ("league.cli.match", "one match: who, how it ended, and why it was made"),
    "demo": ("league.cli.demo", "watch two members fight in the terminal"),
    "record": ("league.cli.record", "play many matches of two members, keep them as replays"),
    "replay": ("league.cli.replay", "watch a recorded match in the terminal, list those of a run"),
    "render": ("league.cli.render", "make a film of a recorded match (mp4, gif, png, html, json)"),
    "attention": (
        "league.cli.attention",
        "what an agent looked at in a recorded match, as a picture",
    ),
    "export": (
        "league.cli.export",
        "a snapshot for other programs (Stable-Baselines3, ONNX, a folder)",
    ),
    "exploitability": (
        "league.cli.exploitability",
        "what a best answer wins, exactly, in small games",
    ),
    "sprt": ("league.cli.sprt", "whether results decide between two hypotheses, how many it takes"),
    "tokens": ("league.cli.tokens", "who may ask a run's services: make, add, list, revoke tokens"),
    "certs": (
        "league.cli.certs",
        "make certificates for TLS and mutual TLS, with a CA of one's own",
    ),
    "config": ("league.cli.settings", "write a commented settings file, list the presets"),
}


def _bridge(name: str, module: str, summary: str) -> None:
    """Serves a command that still reads its flags with argparse."""

    def run(context: typer.Context) -> int:
        loaded = importlib.import_module(module)
        parser = Parser(prog=f"league {name}", description=summary)
        loaded.add_arguments(parser)
        status: int = loaded.run(parser.parse_args(context.args))
        return status

    settings = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}
    app.command(name, help=summary, context_settings=settings)(run)


class Parser(argparse.ArgumentParser):
    """Raises `InvalidInput` where argparse would print its usage and exit."""

    def error(self, message: str) -> NoReturn:
        raise InvalidInput(f"{message} (see {self.prog} --help)")


for _name, (_module, _summary) in COMMANDS.items():
    _bridge(_name, _module, _summary)


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
