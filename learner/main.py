"""``bin/learner``: trains one agent in a league until its steps are done or it is stopped."""

from __future__ import annotations

import argparse
import functools
import gc
import itertools
import logging
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from league.contest.joining import join
from league.errors import ConfigError, LeagueError, Unavailable, storage_fault
from league.exploiters import EXPLOITING
from league.games.settings import GameSettings
from league.players import PlayerKind, Role
from league.rpc.channel import Reminders
from league.runs.finding import running_league
from league.security.credentials import add_client_flags, of_run
from league.security.settings import SecuritySettings
from league.service.priority import step_back
from league.settings.base import JOINED, Sections, resolve_run
from league.settings.device_flags import DeviceFlags, add_device_flags
from learner.cloning import main as cloning
from learner.distributed.launch import is_rank, launch, rank_here, report_failure
from learner.exploiter.settings import ExploiterSettings
from learner.settings import LearnerSettings

if TYPE_CHECKING:
    from league.rpc.client import MatchmakerClient
    from learner.train.checkpoint import Values

MAIN = "main"
NICE = 5
"""Nice value of exploiters. On a machine with two cores, a main's learner keeps a core to itself
while two exploiters and an evaluator run with this value.
"""
log = logging.getLogger("learner")


def parser() -> argparse.ArgumentParser:
    """Makes the parser of the command line."""
    arguments = argparse.ArgumentParser(
        prog="learner",
        description=__doc__,
        epilog="learner clone --help: an agent that plays as recorded players did.",
        allow_abbrev=False,
    )
    add = arguments.add_argument
    add(
        "--matchmaker",
        metavar="HOST:PORT",
        help="address of the matchmaker (default: that of the newest running league)",
    )
    add(
        "--run-dir",
        type=Path,
        help="folder of the run (default: that of the newest league; with --matchmaker a folder "
        "for a league on another machine)",
    )
    add("--preset", help="preset when the run folder has no config.toml (default: laptop)")
    add("--config", type=Path, help="settings file (default: config.toml of the run folder)")
    add("--set", action="append", default=[], metavar="SECTION.KEY=VALUE", dest="assignments")
    add_device_flags(arguments)
    add(
        "--name",
        help="name of the player that learns (default: a free name; main with --matchmaker and "
        "--run-dir)",
    )
    add(
        "--role",
        choices=[role.value for role in (Role.MAIN, *EXPLOITING)],
        help="its role (default: what [[supervisor.learners]] says of the name, or main)",
    )
    add(
        "--from",
        dest="source",
        metavar="PLAYER|PATH",
        help="snapshot or checkpoint to start from; steps begin at 0",
    )
    add(
        "--weights-only",
        action="store_true",
        help="with --from: take the weights, not the optimizer and the return scale",
    )
    add(
        "--if-new",
        action="store_true",
        help="with --from: a learner that has made steps already continues from them",
    )
    add("--steps", type=int, help="train until this many steps in all")
    add_client_flags(arguments)
    return arguments


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns the exit code."""
    rank = int(os.environ.get("RANK", "0")) if is_rank() else 0
    logging.basicConfig(
        level=logging.WARNING if rank else logging.INFO,  # only rank 0 logs all messages
        format=f"%(asctime)s %(name)s{f' (rank {rank})' if rank else ''}: %(message)s",
        stream=sys.stderr,
        force=is_rank(),  # a fork inherits its launcher's log handlers
    )
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        return _work(words)
    except OSError as error:
        if (fault := storage_fault(error)) is None:
            raise
        failure = fault
    except LeagueError as error:
        failure = error
    if is_rank():
        return report_failure(failure)
    print(f"learner: {failure}", file=sys.stderr)
    return failure.exit_code


def _work(words: list[str]) -> int:
    if words[:1] == [cloning.COMMAND]:
        cloning.run(cloning.parser().parse_args(words[1:]))
        return 0
    options = parser().parse_args(words)
    found = _complete(options)
    words += found
    sections = _sections(options)
    if not is_rank():
        learner = sections.of(LearnerSettings)
        flags = DeviceFlags.of(options.gpu, options.cpu, options.ranks)
        names = [entry["name"] for entry in sections["supervisor"]["learners"]]
        if options.role == Role.MAIN.value and names == [options.name]:
            previous, flags = flags, flags.completed(learner.cpu_ranks(), learner.is_divisible)
            words += () if flags == previous else flags.arguments()
        if flags.ranks > 1:
            learner.share(flags.ranks)  # raises here if the matches can't be divided
            if found:  # the search for the league started gRPC threads, which a fork would lose
                os.execv(sys.executable, [sys.executable, "-m", "learner", *words])
            _load(learner.threads)
            _load_brawl(sections)
            gc.freeze()  # else garbage collection would copy the memory that the ranks share
            launch(functools.partial(main, words), flags.ranks)
    run(options, sections)
    return 0


# -- which league, which name, which settings ----------------------------------------------------


def _complete(options: argparse.Namespace) -> list[str]:
    """Fills in the league's address, the run's folder and the learner's name if they were not
    given. Returns the flags that it adds.
    """
    if options.matchmaker is None:
        run_dir, address = running_league(options.run_dir)
        options.run_dir, options.matchmaker = run_dir, address
        options.name = _free_name(options)
        log.info("joining the league in %s as %s", run_dir, options.name)
        flags = {"--matchmaker": address, "--run-dir": str(run_dir), "--name": options.name}
        return [word for flag in flags.items() for word in flag]
    if options.run_dir is None:
        shown = of_run(None, "worker", token_file=options.token_file, tls=options.tls)
        address, reminders = options.matchmaker, Reminders(log.info)
        options.run_dir = join(address, shown, options.assignments, on_wait=reminders)
        options.name = options.name or _free_name(options)
        log.info("joining %s as %s, files are in %s", address, options.name, options.run_dir)
        return ["--run-dir", str(options.run_dir), "--name", options.name]
    options.name = options.name or MAIN
    return []


def _free_name(options: argparse.Namespace) -> str:
    """Returns `--name`, or chooses a name that no running learner uses and that
    `[[supervisor.learners]]` does not reserve.

    Raises:
        ConfigError: `--name` names a running learner.
    """
    sections = _sections(options)
    with _client(options, sections) as client:
        status, lives = client.status(), client.players(kinds=[PlayerKind.LIVE])
    running = {
        worker.worker.removeprefix("learner-")
        for worker in status.workers
        if status.is_running(worker)
    }
    if options.name in running:
        raise ConfigError(
            f"--name {options.name}: a learner of that name is running; leave --name out or "
            "choose another"
        )
    if options.name:
        return options.name
    used = running | {entry["name"] for entry in sections["supervisor"]["learners"]}
    steps = sections.of(LearnerSettings).steps
    names = itertools.chain([MAIN], (f"{MAIN}-{number}" for number in itertools.count(2)))
    # In the folder of a joined league, live players without a checkpoint train on other machines.
    if (options.run_dir / JOINED).is_file():
        used |= {live.name for live in lives if not _steps_made(options.run_dir, live.name)}
    free = (name for name in names if name not in used)
    return next(name for name in free if _steps_made(options.run_dir, name) < steps)


def _steps_made(run_dir: Path, name: str) -> int:
    """Returns the step of a learner's newest checkpoint, or 0 if there is no checkpoint."""
    files = (run_dir / f"learner-{name}" / "checkpoints").glob("step_*.pt")
    return max((int(file.stem.removeprefix("step_")) for file in files), default=0)


def _sections(options: argparse.Namespace) -> Sections:
    """Resolves the run's settings, with the changes that `[[supervisor.learners]]` makes for this
    learner. If no role was given, it also fills in the role.
    """
    assignments = list(options.assignments)
    if options.steps is not None:
        assignments.append(f"learner.steps={options.steps}")
    sources = options.run_dir, options.preset, options.config
    sections = resolve_run(*sources, assignments)
    entries = {entry["name"]: entry for entry in sections["supervisor"]["learners"]}
    entry = entries.get(options.name, {"role": Role.MAIN.value, "set": ()})
    options.role = options.role or entry["role"]
    return resolve_run(*sources, [*entry["set"], *assignments]) if entry["set"] else sections


def _client(options: argparse.Namespace, sections: Sections, **waiting: Any) -> MatchmakerClient:
    from league.rpc.client import MatchmakerClient

    options.tls = options.tls or sections.of(SecuritySettings).tls_folder
    credentials = of_run(options.run_dir, "worker", token_file=options.token_file, tls=options.tls)
    return MatchmakerClient(options.matchmaker, credentials=credentials, **waiting)


# -- training ------------------------------------------------------------------------------------


def _load(threads: int) -> None:
    """Sets the number of OpenMP threads, and imports torch and the modules for training."""
    os.environ.setdefault("OMP_NUM_THREADS", str(threads))
    import learner.exploiter.generations
    import learner.train.session  # noqa: F401


def _load_brawl(sections: Sections) -> None:
    """Loads the compiled game before the ranks are forked, so that they share its 40 MB."""
    game = sections.of(GameSettings)
    if game.name == "brawl":
        game.make(1).close()


def run(options: argparse.Namespace, sections: Sections) -> None:
    """Trains according to the command line, alone or as one of several ranks.

    Args:
        options: the flags, with the league and the learner's name filled in.
        sections: this learner's settings.
    """
    role, threads = Role(options.role), sections.of(LearnerSettings).threads
    if role in EXPLOITING:
        step_back(NICE)
    _load(threads)
    import torch

    from league.agent.device import choose_devices, keep_memory
    from learner.distributed import rank_group
    from learner.exploiter.generations import ExploiterLearner, settings_of
    from learner.train.build import SessionSettings, check_stages
    from learner.train.memory import is_out_of_memory, too_little
    from learner.train.parts import build_parts
    from learner.train.session import Session

    torch.set_num_threads(threads)
    keep_memory()
    devices, sentence = choose_devices(DeviceFlags.of(options.gpu, options.cpu, options.ranks))
    device = devices[rank_here() if is_rank() else 0]
    log.info("%s", sentence)
    _check_start(options, len(devices))
    settings, exploiting = SessionSettings.of(sections), sections.of(ExploiterSettings)
    if role in EXPLOITING:
        settings = settings_of(settings, exploiting, role)
    stop = stop_flag()
    rank_group.join(device)
    with _client(options, sections, wait_seconds=600, on_wait=_reminder(stop)) as client:
        rivals = [player.name for player in client.players(kinds=[PlayerKind.RIVAL])]
        check_stages(settings, sections["matchmaker"]["mixes"], rivals)
        context = (client, options.run_dir, device)
        common = {"name": options.name, "should_stop": stop}
        try:
            if role in EXPLOITING:
                ExploiterLearner(settings, exploiting, *context, role=role, **common).run()
            else:
                initial, parent = _weights_to_start(options, client, settings.game.name)
                parts = build_parts(settings, *context, initial=initial, parent=parent, **common)
                session = Session(parts)
                if session.group.any(stop()):
                    session.leave()
                else:
                    session.run()
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
            raise too_little(settings, device, "nothing was lost") from error
    rank_group.leave()


def _check_start(options: argparse.Namespace, devices: int) -> None:
    """Refuses flags that do not suit the role, and `--from` if the learner has made steps."""
    if Role(options.role) in EXPLOITING:
        if options.source:
            raise ConfigError(
                f"--from {options.source}: {options.name} is an exploiter, whose generations start "
                "from what exploiter.start says: leave --from out"
            )
        if devices > 1:
            raise ConfigError(
                f"{options.name} is an exploiter, which learns on one device: name one"
            )
    if options.source and not options.if_new and _steps_made(options.run_dir, options.name):
        raise ConfigError(
            f"--from {options.source}: {options.name} in {options.run_dir} has made steps already; "
            "leave --from out (or add --if-new) to continue, or give a new --run-dir or --name"
        )


def _weights_to_start(
    options: argparse.Namespace, client: MatchmakerClient, game: str
) -> tuple[Values | None, str]:
    """Reads the weights that `--from` names.

    Returns:
        The weights (None without `--from`), and the name of the league member that they belong to,
        "" if they belong to no member.
    """
    from league.rpc.blobs import blobs_of
    from learner.train.build import initial_values

    if not options.source:
        return None, ""
    blobs = blobs_of(options.run_dir, client)
    values, parent = initial_values(options.source, blobs, client.players(), game)
    return {"network": values["network"]} if options.weights_only else values, parent


def _reminder(stop: Callable[[], bool]) -> Callable[[str], None]:
    """Makes the function that is called while the learner waits for the matchmaker. It logs why the
    learner waits, and ends the wait when the learner is asked to stop.
    """
    remind = Reminders(log.info)

    def on_wait(sentence: str) -> None:
        remind(sentence)
        if stop():
            raise Unavailable("stopped while waiting for the matchmaker: start again to continue")

    return on_wait


def stop_flag() -> Callable[[], bool]:
    """Catches SIGTERM and Ctrl-C, and returns a function that is True after either of them."""
    stops: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda received, _: stops.append(received))
    return lambda: bool(stops)
