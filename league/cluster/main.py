"""Trains a league with one command: what ``bin/start-league`` runs."""

from __future__ import annotations

import argparse
import errno
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from rich.console import Console

from league.cluster.device_check import device_sentence
from league.cluster.local import LocalBackend
from league.cluster.supervisor import Supervisor
from league.cluster.topology import LearnerOptions, Topology, plan
from league.errors import (
    ConfigError,
    DataCorrupt,
    InvalidInput,
    LeagueError,
    StorageFull,
    nearest,
)
from league.runs.folder import DATABASE, Request, RunFolder, open_run
from league.runs.settings import SupervisorSettings
from league.security.credentials import Credentials, of_run
from league.security.settings import SecuritySettings
from league.security.tokens import TokenFile
from league.settings.base import resolve
from league.settings.device_flags import DeviceFlags, add_device_flags
from league.views.terminal.display import Display, LineDisplay, LiveDisplay
from league.views.terminal.summary import print_summary

_DESCRIPTION = """\
Trains a league: a matchmaker, a learner and an evaluator, in one terminal view. Without arguments
it runs the preset "laptop" in a new folder runs/laptop-N until its steps are done. Ctrl-C saves and
stops; the same command with --run-dir continues."""
_AGENT_FILES = (".safetensors", ".pt")


@dataclass(frozen=True, kw_only=True)
class Command:
    """The flags of the command line."""

    request: Request
    learner: LearnerOptions
    headless: bool


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; every fault is one sentence on stderr and an exit code."""
    try:
        return start(parse(arguments))
    except LeagueError as error:
        return _fail(error)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        return _fail(StorageFull("the disk is full: free some space, then repeat the command"))
    except KeyboardInterrupt:
        print("start-league: interrupted", file=sys.stderr)
        return 130


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ConfigError(f"{message}: see bin/start-league --help")


def parse(arguments: Sequence[str] | None = None) -> Command:
    """Raises `ConfigError` for flags that can't be used."""
    parser = _Parser(
        prog="bin/start-league",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--preset", metavar="NAME", help="settings to run with (default: laptop)")
    add("--config", type=Path, metavar="FILE", help="TOML file laid over the preset")
    add("--set", dest="assignments", action="append", default=[], metavar="S.K=V",
        help="one setting; repeatable")  # fmt: skip
    add("--run-dir", type=Path, metavar="DIR", help="folder of the run; continues a run in it")
    add("--steps", type=_positive, metavar="N", help="train until this many steps")
    add("--no-learners", action="store_true",
        help="start no learner: the league waits for bin/learner")  # fmt: skip
    add_device_flags(parser)
    add("--headless", action="store_true", help="plain lines instead of the terminal view")
    add("--from", dest="origin", metavar="X", help="start from a snapshot (a player's name or a "
        "file) or a checkpoint's file; steps begin at 0")  # fmt: skip
    add("--weights-only", action="store_true", help="with --from a checkpoint: take its weights, "
        "not its optimizer and return scale")  # fmt: skip
    flags = parser.parse_args(arguments)
    without = ("supervisor.learners=[]",) if flags.no_learners else ()
    return Command(
        request=Request(
            preset=flags.preset,
            config=flags.config,
            assignments=(*flags.assignments, *without),
            run_dir=flags.run_dir,
        ),
        learner=LearnerOptions(
            steps=flags.steps,
            device=DeviceFlags.of(flags),
            origin=flags.origin,
            weights_only=flags.weights_only,
        ),
        headless=flags.headless,
    )


def _positive(text: str) -> int:
    digits = text.replace("_", "").replace(",", "")
    if not digits.isdigit() or int(digits) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1")
    return int(digits)


def start(command: Command) -> int:
    """Opens the run, trains, and prints a summary. Returns the exit code."""
    check_origin(command.learner.origin, command.request.run_dir)
    device = device_sentence(command.learner.device)
    with open_run(command.request) as folder:
        try:
            return _run(folder, command, device)
        except LeagueError:
            if not folder.resumed and not folder.database.exists():
                folder.discard()  # otherwise it would be the newest run
            raise


def check_origin(origin: str | None, run_dir: Path | None) -> None:
    """Raises `ConfigError` when a run in `run_dir` (None: a new one) can't start from `origin`.

    Only the learner checks what the file holds.
    """
    if not origin:
        return
    if run_dir is not None and _has_steps(run_dir):
        raise ConfigError(
            f"--from {origin}: the run in {run_dir} has steps already; leave --from out to "
            "continue, or give a new --run-dir"
        )
    file = Path(origin)
    if file.is_file():
        if file.suffix not in _AGENT_FILES:
            endings = " and ".join(_AGENT_FILES)
            raise ConfigError(f"--from {origin}: only {endings} files hold an agent")
    elif run_dir is None or not (run_dir / DATABASE).exists():
        siblings = file.parent.iterdir() if file.parent.is_dir() else ()
        near = nearest(file.name, [one.name for one in siblings if one.suffix in _AGENT_FILES])
        raise ConfigError(
            f"--from {origin}: there is no such file{f' ({near})' if near else ''}; a new run has "
            "no members yet, so name a file of another run: RUN/blobs/SHA256.safetensors or "
            "RUN/learner-main/checkpoints/step_N.pt"
        )


def _has_steps(run_dir: Path) -> bool:
    """Whether a learner of the run has left a checkpoint, from which it would continue."""
    return any(run_dir.glob("learner-*/checkpoints/step_*.pt"))


def _run(folder: RunFolder, command: Command, device: str) -> int:
    """Trains in an opened run."""
    settings, topology, credentials = _prepare(folder, command)
    console = Console(width=None if sys.stdout.isatty() else 110, highlight=False)
    state = "continues" if folder.resumed else "new"
    for line in (f"Run folder: {folder.path} ({state}, preset {folder.preset})", device):
        console.print(line, soft_wrap=True, markup=False)
    display = _display(console, command.headless)
    supervisor = Supervisor(
        folder,
        topology,
        LocalBackend(),
        display,
        device,
        credentials,
        curves_minutes=settings.curves_minutes,
    )
    try:
        code = supervisor.run()
    except (InvalidInput, DataCorrupt):
        display.close()
        if folder.resumed or _has_steps(folder.path):
            _conclude(console, supervisor, folder, can_continue=False)
        else:
            folder.discard()
        raise
    except BaseException:
        display.close()
        _conclude(console, supervisor, folder)
        raise
    display.close()
    _conclude(console, supervisor, folder)
    return code


def _prepare(
    folder: RunFolder, command: Command
) -> tuple[SupervisorSettings, Topology, Credentials]:
    sections = resolve(file=folder.config, environment={})
    settings, security = sections.of(SupervisorSettings), sections.of(SecuritySettings)
    host = security.checked()
    if security.tokens:
        TokenFile(folder.path).ensure()  # before any process looks for its token
    topology = plan(folder, command.learner, settings, host=host)
    return settings, topology, of_run(folder.path, "operator")


def _display(console: Console, headless: bool) -> Display:
    if headless or not console.is_terminal or not console.encoding.startswith("utf"):
        return LineDisplay(sys.stdout)
    return LiveDisplay(console)


def _conclude(
    console: Console, supervisor: Supervisor, folder: RunFolder, *, can_continue: bool = True
) -> None:
    """Prints the run's summary, and the command that continues it if that can help."""
    screen = supervisor.screen
    if screen.league.learner is None and not screen.league.ratings:
        return  # there is nothing to sum up; the error that follows says why
    print_summary(console, screen, [*supervisor.files, folder.path / "logs"])
    if can_continue and screen.done_share < 1:
        line = f"Continue with: bin/start-league --run-dir {folder.path}"
        console.print(line, soft_wrap=True, markup=False)


def _fail(error: LeagueError) -> int:
    print(f"start-league: {error}", file=sys.stderr)
    return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
