"""``bin/league``: an operator's commands. Each lives in a module of its own, loaded when it is
called.

Further packages add commands through the entry point group ``kumite.commands``: the entry point's
name is the command, its value a module with ``add_arguments(parser)``, ``run(args) -> int`` and,
for ``--help``, a line ``SUMMARY = "what it does"``.
"""

from __future__ import annotations

import argparse
import difflib
import importlib
import os
import sys
from collections.abc import Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import Any, NoReturn

from league import __version__
from league.cli.summaries import summary_of
from league.errors import InvalidInput, LeagueError

GROUP = "kumite.commands"
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
    "profile": (
        "learner.profile.command",
        "how fast this machine trains, what holds it up, faster settings",
    ),
    "tokens": ("league.cli.tokens", "who may ask a run's services: make, add, list, revoke tokens"),
    "certs": (
        "league.cli.certs",
        "make certificates for TLS and mutual TLS, with a CA of one's own",
    ),
    "config": ("league.cli.settings", "write a commented settings file, list the presets"),
}


class Parser(argparse.ArgumentParser):
    """Raises `InvalidInput` in one sentence where argparse would print its usage and exit."""

    def error(self, message: str) -> NoReturn:
        raise InvalidInput(f"{message} (see {self.prog} --help)")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit status. Errors are one sentence on stderr."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        args = _parser(words).parse_args(words)
        status: int = args.run(args)
        sys.stdout.flush()
        return status
    except LeagueError as error:
        print(f"league: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader (head, less) has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _parser(words: Sequence[str]) -> Parser:
    parser = Parser(prog="league", description="Looks into a league of Kumite.")
    parser.add_argument("--version", action="version", version=f"kumite {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True, parser_class=Parser)
    others = {point.name: point for point in entry_points(group=GROUP)}
    called = next((word for word in words if not word.startswith("-")), None)
    if called is not None and called not in COMMANDS and called not in others:
        close = difflib.get_close_matches(called, [*COMMANDS, *others], n=1)
        hint = f"did you mean {close[0]!r}?" if close else "bin/league --help lists them"
        raise InvalidInput(f"there is no command {called!r}: {hint}")
    for name, (module, summary) in COMMANDS.items():
        command = commands.add_parser(
            name, help=summary, description=f"{summary[0].upper()}{summary[1:]}."
        )
        if name == called:
            _fill(command, importlib.import_module(module))
    for name, point in sorted(others.items()):
        summary = summary_of(point.value.partition(":")[0]) or f"of the package {_package(point)}"
        command = commands.add_parser(
            name, help=summary.replace("%", "%%"), description=f"{summary[0].upper()}{summary[1:]}."
        )
        if name == called:
            _fill(command, point.load())
    return parser


def _fill(parser: argparse.ArgumentParser, module: Any) -> None:
    module.add_arguments(parser)
    parser.set_defaults(run=module.run)


def _package(point: EntryPoint) -> str:
    return point.value.partition(".")[0].partition(":")[0]


if __name__ == "__main__":
    sys.exit(main())
