"""Trains a league with one command.

``python -m league.cluster.main`` is what ``bin/start-league`` runs.
"""

from __future__ import annotations

import errno
import sys
from collections.abc import Sequence

from rich.console import Console

from league.cluster.command import Command, parse
from league.cluster.local import LocalBackend
from league.cluster.origin import check_origin, has_steps
from league.cluster.probe import device_sentence
from league.cluster.settings import SupervisorSettings
from league.cluster.supervisor import Supervisor
from league.cluster.topology import Topology, plan
from league.errors import DataCorrupt, InvalidInput, LeagueError, StorageFull
from league.runs.folder import RunFolder, open_run
from league.security.credentials import Credentials, of_run
from league.security.settings import SecuritySettings
from league.security.tokens import TokenFile
from league.settings import base as config
from league.views.terminal.display import Display, LineDisplay, LiveDisplay
from league.views.terminal.summary import print_summary


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; every fault is one sentence on stderr and an exit code."""
    try:
        return start(parse(arguments))
    except LeagueError as error:
        return _fail(error)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        return _fail(
            StorageFull("the disk is full: free some space, then give the same command to go on")
        )
    except KeyboardInterrupt:
        print("start-league: interrupted", file=sys.stderr)
        return 130


def start(command: Command) -> int:
    """Opens the run, trains, sums up. Returns the exit code."""
    check_origin(command.learner.origin, command.request.run_dir)
    device = device_sentence(command.learner.device)
    with open_run(command.request) as folder:
        try:
            return _run(folder, command, device)
        except LeagueError:
            if not folder.resumed and not folder.database.exists():
                folder.discard()  # it would stand for the newest run
            raise


def _run(folder: RunFolder, command: Command, device: str) -> int:
    """Trains in an opened run, and sums up."""
    settings, topology, shown = _prepared(folder, command)
    backend = LocalBackend(
        log_bytes=int(settings.log_megabytes * 1e6), log_files=settings.log_files
    )
    console = Console(width=None if sys.stdout.isatty() else 110, highlight=False)
    _greet(console, folder, device)
    display = _display(console, settings, command.headless)
    supervisor = Supervisor(folder, topology, backend, settings, display, device, shown)
    try:
        code = supervisor.run()
    except (InvalidInput, DataCorrupt):
        display.close()
        if folder.resumed or has_steps(folder.path):
            _conclude(console, supervisor, folder, go_on=False)
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


def _prepared(
    folder: RunFolder, command: Command
) -> tuple[SupervisorSettings, Topology, Credentials]:
    """What a run's settings make of it."""
    sections = config.resolve(file=folder.config, environment={})
    settings, security = sections.of(SupervisorSettings), sections.of(SecuritySettings)
    host = security.checked()
    if security.tokens:
        TokenFile(folder.path).ensure()  # before anybody looks for theirs
    topology = plan(folder, command.learner, settings, host=host)
    return settings, topology, of_run(folder.path, "operator")


def _display(console: Console, settings: SupervisorSettings, headless: bool) -> Display:
    if headless or not console.is_terminal or not console.encoding.startswith("utf"):
        return LineDisplay(sys.stdout, settings.line_seconds)
    return LiveDisplay(console, settings.refresh_seconds)


def _greet(console: Console, folder: RunFolder, device: str) -> None:
    made = "goes on" if folder.resumed else "new"
    console.print(
        f"Run folder: {folder.path} ({made}, preset {folder.preset})", soft_wrap=True, markup=False
    )
    console.print(device, soft_wrap=True, markup=False)


def _conclude(
    console: Console, supervisor: Supervisor, folder: RunFolder, *, go_on: bool = True
) -> None:
    """The run's summary; `go_on` False where the same command would fail again."""
    screen = supervisor.screen
    if screen.league.learner is None and not screen.league.ratings:
        return  # nothing came of it; the error that follows says why
    print_summary(console, screen, [*supervisor.files, folder.path / "logs"])
    if go_on and screen.done_share < 1:
        console.print(
            f"Go on with: bin/start-league --run-dir {folder.path}", soft_wrap=True, markup=False
        )


def _fail(error: LeagueError) -> int:
    print(f"start-league: {error}", file=sys.stderr)
    return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
