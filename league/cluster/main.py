"""Trains a league with one command. ``bin/start-league`` runs this module."""

from __future__ import annotations

import io
import math
import multiprocessing
import os
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from league.cluster.engine import Engine, EngineName, LocalChild
from league.cluster.settings import ClusterSettings
from league.cluster.supervisor import Supervisor
from league.cluster.topology import DASHBOARD, Address, LearnerOptions, Topology, plan
from league.cluster.usage import Usage
from league.console.text import plain, steps_of
from league.errors import (
    ConfigError,
    DataCorrupt,
    DeviceError,
    InvalidInput,
    LeagueError,
    storage_fault,
)
from league.garbage import collect_rarely
from league.ids import average_of
from league.runs.folder import Request, RunFolder, open_run
from league.runs.settings import SupervisorSettings
from league.security.credentials import CA, of_run
from league.security.settings import SecuritySettings, checked_names
from league.security.tokens import TokenFile
from league.service.die_with_parent import end_with_parent
from league.settings.base import Sections, resolve
from league.settings.device_flags import (
    CPU_HELP,
    GPU_HELP,
    RANKS_HELP,
    DeviceFlags,
    cpu_sentence,
    has_no_gpu,
    missing_gpu,
)
from league.settings.presets import read_tables
from league.views.facts import Screen
from league.views.terminal.display import Display, LineDisplay, LiveDisplay, print_summary

if TYPE_CHECKING:  # only `--engine ray` loads Ray
    from league.cluster.ray import Cluster

_HEADLINE_SECONDS = 60.0
_LISTENING_SECONDS = 0.5  # between two checks of the dashboard's log


@dataclass(frozen=True, kw_only=True)
class Command:
    """Holds the flags of the command line."""

    request: Request
    learner: LearnerOptions
    headless: bool
    new_epoch: bool = False
    dashboard: Address | None = None
    is_on_ray: bool = False


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def _command(
    preset: Annotated[
        str | None, typer.Option(metavar="NAME", help="Settings to run with (default: laptop).")
    ] = None,
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="TOML file laid over the preset.")
    ] = None,
    assignments: Annotated[
        list[str] | None, typer.Option("--set", metavar="S.K=V", help="One setting; repeatable.")
    ] = None,
    run_dir: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder of the run; continues a run in it."),
    ] = None,
    steps: Annotated[
        str | None,
        typer.Option(metavar="N", help="Train until this many steps, such as 500k or 10M."),
    ] = None,
    no_learners: Annotated[
        bool,
        typer.Option("--no-learners", help="Start no learner: the league waits for bin/learner."),
    ] = False,
    gpu: Annotated[str | None, typer.Option(metavar="N[,N]", help=GPU_HELP)] = None,
    cpu: Annotated[bool, typer.Option("--cpu", help=CPU_HELP)] = False,
    ranks: Annotated[int | None, typer.Option(metavar="N", help=RANKS_HELP)] = None,
    engine: Annotated[
        EngineName,
        typer.Option(
            help="What starts the processes: this machine, or Ray on all nodes of its cluster."
        ),
    ] = EngineName.LOCAL,
    new_epoch: Annotated[
        bool,
        typer.Option(
            "--new-epoch",
            help="Begin new ratings in a run whose game's rules have another version by now.",
        ),
    ] = False,
    headless: Annotated[
        bool,
        typer.Option(
            "--headless", help="Plain lines instead of the terminal view; the run ends by itself."
        ),
    ] = False,
    dashboard: Annotated[
        str,
        typer.Option(
            metavar="HOST[:PORT]",
            help="Where a browser finds the run's pages; if other machines reach it, visitors "
            "need a token of the run.",
        ),
    ] = "127.0.0.1",
    dashboard_name: Annotated[
        list[str] | None,
        typer.Option(
            metavar="HOST[:PORT]",
            help="A name under which a proxy serves these pages; visitors then need a token.",
        ),
    ] = None,
    no_dashboard: Annotated[
        bool,
        typer.Option(
            "--no-dashboard", envvar="KUMITE_NO_DASHBOARD", help="Serve no pages for a browser."
        ),
    ] = False,
    origin: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="X",
            help="Start from a snapshot (a player's name or a file) or a checkpoint's file; steps "
            "begin at 0.",
        ),
    ] = None,
    weights_only: Annotated[
        bool,
        typer.Option(
            "--weights-only",
            help="With --from: take only the weights, without optimizer and return scale.",
        ),
    ] = False,
) -> Command:
    """Trains a league: a matchmaker, a learner and an evaluator, in one terminal view.

    Without arguments it runs the preset "laptop" in a new folder runs/laptop-N until its steps are
    done. Ctrl-C saves and stops; the same command with --run-dir continues.
    """
    without = ["supervisor.learners=[]"] if no_learners else []
    request = Request(
        preset=preset,
        config=config,
        assignments=(*(assignments or []), *without),
        run_dir=run_dir,
    )
    options = LearnerOptions(
        steps=None if steps is None else steps_of(steps),
        device=DeviceFlags.of(gpu, cpu, ranks),
        origin=origin,
        weights_only=weights_only,
    )
    return Command(
        request=request,
        learner=options,
        headless=headless,
        new_epoch=new_epoch,
        is_on_ray=engine is EngineName.RAY,
        dashboard=None
        if no_dashboard
        else replace(Address.parse(dashboard), names=checked_names(dashboard_name or ())),
    )


def parse(arguments: Sequence[str]) -> Command | int:
    """Reads the command line. Flags that can't be used raise `ConfigError`.

    Returns:
        The flags, or the exit code after --help.
    """
    try:
        return app(list(arguments), prog_name="bin/start-league", standalone_mode=False)
    except typer.TyperException as error:
        message = getattr(error, "format_message", error.__str__)().rstrip(".")
        raise ConfigError(f"{message}: see bin/start-league --help") from None


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command. Every fault prints a sentence on stderr and sets the exit code."""
    if isinstance(sys.stdout, io.TextIOWrapper):  # it may be unable to encode a worker's text
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        command = parse(sys.argv[1:] if arguments is None else arguments)
        return command if isinstance(command, int) else start(command)
    except LeagueError as error:
        return _fail(error)
    except OSError as error:
        if (fault := storage_fault(error)) is None:
            raise
        return _fail(fault)
    except KeyboardInterrupt:
        print("start-league: interrupted", file=sys.stderr)
        return 130


def _fail(error: LeagueError) -> int:
    print(f"start-league: {error}", file=sys.stderr)
    return error.exit_code


def start(command: Command) -> int:
    """Opens the run, trains, and prints a summary. Returns the exit code."""
    origin, run_dir = command.learner.origin, command.request.run_dir
    if origin and run_dir is not None and _has_steps(run_dir):
        raise ConfigError(
            f"--from {origin}: the run in {run_dir} has steps already; leave --from out to "
            "continue, or give a new --run-dir"
        )
    with open_run(command.request) as folder:  # first, so that a second start is refused at once
        try:
            with _cluster_of(command) as cluster:
                return _run(folder, command, cluster)
        except (LeagueError, KeyboardInterrupt) as error:
            is_refused = isinstance(error, (InvalidInput, DataCorrupt))
            has_begun = _has_steps(folder.path) if is_refused else folder.database.exists()
            if not folder.resumed and not has_begun:
                folder.discard()  # otherwise later commands would take it for the newest run
            raise


def _cluster_of(command: Command) -> AbstractContextManager[Cluster | None]:
    """Returns a context with the Ray cluster, or with None for `--engine local`."""
    if not command.is_on_ray:
        return nullcontext()
    flags = command.learner.device
    if flags.gpus or flags.cpu_ranks:
        raise ConfigError(
            "with --engine ray the cluster's settings choose devices: leave --gpu and --ranks out, "
            "and set cluster.ranks, cluster.gpus and cluster.cpus"
        )
    from league.cluster.ray import Cluster

    return Cluster()


def _device(flags: DeviceFlags) -> str:
    """Returns the device in words. If the machine may have a GPU, a separate process looks for it,
    because this process does not load torch.
    """
    if flags.cpu:
        return flags.cpu_sentence()
    if has_no_gpu():
        if flags.gpus:
            raise missing_gpu(flags.gpus[0])
        return cpu_sentence()
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn, initializer=end_with_parent) as other:
        try:
            return other.submit(_device_sentence, flags).result()
        except BrokenProcessPool:
            raise DeviceError("torch crashed while it looked for a device: try --cpu") from None


def _device_sentence(flags: DeviceFlags) -> str:
    """Returns the device, the reason for it, and its memory. Raises `DeviceError` for a missing
    device.
    """
    from league.agent.device import choose_devices

    return choose_devices(flags)[1]


def _has_steps(run_dir: Path) -> bool:
    """Returns whether a learner of the run has left a checkpoint from which it would continue."""
    return any(run_dir.glob("learner-*/checkpoints/step_*.pt"))


def _run(folder: RunFolder, command: Command, cluster: Cluster | None) -> int:
    sections = resolve(file=folder.config, environment={})
    settings, security = sections.of(SupervisorSettings), sections.of(SecuritySettings)
    if security.tokens:
        TokenFile(folder.path).ensure()  # before any process looks for its token
    host, options, spread = security.checked_host(), command.learner, None
    if cluster is not None:
        spread = cluster.spread(sections.of(ClusterSettings), host, is_on_cpu=options.device.cpu)
        options = replace(options, device=spread.device())
    device = _device(options.device) if cluster is None else cluster.words()
    topology = plan(
        folder,
        options,
        settings,
        host=host,
        new_epoch=command.new_epoch,
        dashboard=command.dashboard,
        spread=spread,
    )
    engine: Engine = LocalChild
    if cluster is not None:
        engine = _checked_engine(
            cluster, folder, topology, sections, lambda *a, **k: supervisor.say(*a, **k)
        )
    console = Console(width=None if sys.stdout.isatty() else 110, highlight=False)
    state = "continues" if folder.resumed else "new"
    until = f"until {options.steps or sections['learner']['steps']:,} steps"
    for line in (f"Run folder: {folder.path} ({state}, preset {folder.preset}, {until})", device):
        console.print(line, soft_wrap=True, markup=False)
    is_live = console.is_terminal and console.encoding.startswith("utf") and not command.headless
    display = LiveDisplay(console) if is_live else LineDisplay(sys.stdout)
    usage, credentials = Usage(folder.path, options.device), of_run(folder.path, "operator")
    supervisor = Supervisor(
        folder, topology, display, device, credentials, usage=usage, engine=engine
    )
    if is_live:
        usage.start(lambda: supervisor.screen.done_share)
    if command.dashboard is not None:
        asks = security.asks_visitors(command.dashboard.host, command.dashboard.names)
        _announce_dashboard(folder, topology.dashboard, asks, supervisor.say)
    has_shown_end, can_continue = False, True

    def show_end() -> Display:
        nonlocal has_shown_end
        has_shown_end = True
        display.close()
        if _print_end(console, supervisor, folder, topology):
            _print_next_steps(console, supervisor.screen, topology, command)
        return LineDisplay(sys.stdout, seconds=math.inf)  # shows only notes

    stays_open = sys.stdout.isatty() and topology.dashboard and not command.headless
    try:
        return supervisor.run(show_end if stays_open else None)
    except (InvalidInput, DataCorrupt):
        can_continue = False
        raise
    finally:
        display.close()
        screen = supervisor.screen
        has_begun = screen.league.learner is not None or screen.league.ratings
        if has_begun and not has_shown_end:  # otherwise there is nothing to sum up
            _print_end(console, supervisor, folder, topology)
            if is_live:  # otherwise the notes are on the terminal already
                for note in screen.notes:
                    if note.is_trouble and note.at >= supervisor.stopping_since:
                        console.print(plain(note.text), soft_wrap=True, markup=False)
            if can_continue and screen.done_share < 1:
                line = _again(screen, command, command.learner.steps)
                console.print(f"Continue with: {line}", soft_wrap=True, markup=False)


def _checked_engine(
    cluster: Cluster,
    folder: RunFolder,
    topology: Topology,
    sections: Sections,
    say: Callable[..., None],
) -> Engine:
    """Returns the engine of a cluster, or raises `ConfigError` if its nodes do not suit."""
    from league.cluster.remote import RayEngine

    security, store = sections.of(SecuritySettings), sections.of(ClusterSettings).store
    files = [folder.path / "run.json"]
    files += [security.tls_folder / CA] if security.tls_folder else []
    engine = RayEngine(cluster, files, of_run(folder.path, "worker"), say, store)
    checkpoints = folder.path.glob("learner-*/**/step_*.pt")
    begun = {file.relative_to(folder.path).parts[0] for file in checkpoints}
    engine.check(topology.specs, security.host, begun)
    return engine


def _print_end(
    console: Console, supervisor: Supervisor, folder: RunFolder, topology: Topology
) -> bool:
    """Prints the summary, and the main results of a finished run. Returns False if Ctrl-C came."""
    screen = supervisor.screen
    try:
        print_summary(console, screen, [*supervisor.files, folder.path / "logs"])
    except Exception as error:  # it must not hide how the run ended
        print(f"start-league: the summary can't be drawn ({error!r})", file=sys.stderr)
    if screen.done_share >= 1 and screen.league.evaluations:
        return _print_headline(folder, topology.mains)
    return True


def _print_next_steps(
    console: Console, screen: Screen, topology: Topology, command: Command
) -> None:
    """Prints what a person can do with a finished run, with commands for this run."""
    player, of_run = topology.mains[0].removeprefix("learner-"), ("--run-dir", screen.run_dir)
    steps = {
        "look": topology.dashboard,
        "fight": f"{topology.dashboard}/play",
        "exploit": shlex.join(["bin/league", "exploit", player, *of_run]),
        "report": shlex.join(["bin/league", "report", *of_run]),
        "film": shlex.join(["bin/league", "film", *of_run]),
        "continue": _again(screen, command, 2 * screen.league.target_steps),
    }
    console.print(
        "\nThe training is done. The run stays open until Ctrl-C; continue it after that:"
    )
    for name, line in steps.items():
        console.print(f"  {name:9} {line}", soft_wrap=True, markup=False)


def _again(screen: Screen, command: Command, steps: int | None) -> str:
    """Returns the command that continues the run until `steps`."""
    words = ["bin/start-league", "--run-dir", screen.run_dir]
    words += ["--steps", str(steps)] if steps else []
    words += ["--engine", "ray"] if command.is_on_ray else []
    return shlex.join([*words, *command.learner.device.arguments()])


def _announce_dashboard(
    folder: RunFolder, address: str, asks_visitors: bool, say: Callable[[str], None]
) -> None:
    """Starts a thread that shows the dashboard's address once its process listens there.

    An open port proves nothing, because another program may listen there. So the thread reads the
    lines that the process writes to its log from now on.
    """
    log = folder.log(DASHBOARD)
    begins, line = log.stat().st_size if log.exists() else 0, f"{address}\n".encode()

    def is_served() -> bool:
        with suppress(OSError), log.open("rb") as file:
            file.seek(begins)
            return line in file.read()
        return False

    def announce() -> None:
        while not is_served():
            time.sleep(_LISTENING_SECONDS)
        say(f"In a browser: {address} (fight a bot there now: {address}/play)")
        if asks_visitors:
            say(f"Visitors need a token: the text of {TokenFile(folder.path).folder}/worker.token")

    threading.Thread(target=announce, daemon=True).start()


def _print_headline(folder: RunFolder, mains: Sequence[str]) -> bool:
    """Writes the report of a finished run and prints its main results. `mains` are the processes of
    the main learners. Returns False if Ctrl-C came.

    Commands in separate processes do this, because the package `league` imports no service, and
    because a process that takes too long can be killed.
    """
    from league.games.exact import is_exact

    commands = [["report", "--out", str(folder.path / "report")]]
    game = read_tables(folder.config).sections["game"]
    for name in mains:
        player = name.removeprefix("learner-")
        if is_exact(game["name"], **game.get("options", {})):
            commands.append(["exploitability", player, average_of(player)])
        commands.append(["mix", "--player", player, "--last", "0.25", "--brief"])
    longest = f"at most {len(commands) * _HEADLINE_SECONDS / 60:.0f} minutes"
    print(f"\nThe report and the main results follow, in {longest}.", flush=True)
    for command in commands:
        command += ["--run-dir", str(folder.path)]
        try:
            program = [sys.executable, "-m", "league", *command]
            if subprocess.run(program, timeout=_HEADLINE_SECONDS, check=False).returncode == 130:
                return False  # Ctrl-C, which the terminal sends to this process, too
        except subprocess.TimeoutExpired:
            words = shlex.join(["bin/league", *command])
            print(f"Not done within {_HEADLINE_SECONDS:.0f} s, so run it yourself: {words}")
    return True


if __name__ == "__main__":
    collect_rarely()
    exit_code = main()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):  # the reader has closed the pipe
            stream.flush()
    os._exit(exit_code)  # Python takes seconds to free everything on a busy machine
