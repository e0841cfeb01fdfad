"""``bin/learner``: trains one agent against the league until its steps are done or it is
stopped.
"""

from __future__ import annotations

import argparse
import errno
import logging
import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TypeVar

from league.errors import ConfigError, LeagueError, StorageFull, Unavailable
from league.exploiters import EXPLOITING
from league.players import Role
from league.rpc.channel import Reminders
from league.runs.settings import LearnerEntry, SupervisorSettings
from league.security.flags import add_client_flags, client_credentials
from league.security.settings import SecuritySettings
from league.settings.base import Sections, resolve
from league.settings.device_flags import DeviceFlags, add_device_flags
from learner.cloning import main as cloning
from learner.distributed.evenly import Evenly
from learner.distributed.launch import launch
from learner.distributed.team import Team
from learner.exploiter.settings import ExploiterSettings
from learner.settings import LearnerSettings

Outcome = TypeVar("Outcome")
ALONE = Team()
log = logging.getLogger("learner")


def parser() -> argparse.ArgumentParser:
    """The command line."""
    arguments = argparse.ArgumentParser(
        prog="learner",
        description=__doc__,
        epilog="learner clone --help: an agent that plays as recorded players did.",
        allow_abbrev=False,
    )
    arguments.add_argument(
        "--matchmaker", required=True, metavar="HOST:PORT", help="address of the matchmaker"
    )
    arguments.add_argument("--run-dir", required=True, type=Path, help="folder of the run")
    arguments.add_argument(
        "--preset", help="preset when the run folder has no config.toml (default: laptop)"
    )
    arguments.add_argument(
        "--config", type=Path, help="settings file; default: config.toml of the run folder"
    )
    arguments.add_argument(
        "--set", action="append", default=[], metavar="SECTION.KEY=VALUE", dest="assignments"
    )
    add_device_flags(arguments)
    arguments.add_argument(
        "--name", default="main", help="name of the player that learns (default: main)"
    )
    arguments.add_argument(
        "--role",
        choices=[role.value for role in (Role.MAIN, *EXPLOITING)],
        help="its role (default: what [[supervisor.learners]] says of the name, or main)",
    )
    arguments.add_argument(
        "--from",
        dest="source",
        metavar="PLAYER|PATH",
        help="snapshot or checkpoint to start from; steps begin at 0",
    )
    arguments.add_argument(
        "--weights-only",
        action="store_true",
        help="with --from a checkpoint: take its weights alone, not its optimizer and return scale",
    )
    arguments.add_argument(
        "--if-new",
        action="store_true",
        help="with --from: a run that has steps of its own goes on from them",
    )
    arguments.add_argument("--steps", type=int, help="train until this many steps in all")
    add_client_flags(arguments)
    return arguments


def _sections(options: argparse.Namespace) -> Sections:
    file = options.config
    if file is None and options.preset is None and (options.run_dir / "config.toml").is_file():
        file = options.run_dir / "config.toml"
    assignments = list(options.assignments)
    if options.steps is not None:
        assignments.append(f"learner.steps={options.steps}")
    preset = options.preset or (None if file else "laptop")
    sections = resolve(preset, file, assignments)
    entry = _entry(sections, options.name)
    if options.role is None:
        options.role = entry.role if entry is not None else Role.MAIN.value
    if entry is None or not entry.set:
        return sections
    return resolve(preset, file, [*entry.set, *assignments])


def _evenly(sections: Sections, options: argparse.Namespace, stop: StopFlag) -> Evenly | None:
    """What keeps the learner level with those beside it; None where it has the machine to
    itself.
    """
    settings = sections.of(SupervisorSettings)
    names = [entry.name for entry in settings.learners]
    if len(names) == 1 or options.name not in names:
        return None
    return Evenly(options.run_dir / "turns", options.name, should_stop=stop)


def _is_alone(sections: Sections, name: str) -> bool:
    """Whether this is the run's only learner."""
    entries = sections.of(SupervisorSettings).learners
    return [entry.name for entry in entries] == [name]


def _entry(sections: Sections, name: str) -> LearnerEntry | None:
    """What the run's settings say of the learner of this name alone."""
    entries = sections.of(SupervisorSettings).learners
    return next((entry for entry in entries if entry.name == name), None)


def run(options: argparse.Namespace, team: Team = ALONE) -> None:
    """Builds a session from the command line and trains, alone or as one of a team's ranks."""
    sections = _sections(options)
    from league.agent.config import AgentSettings
    from league.games.settings import GameSettings
    from learner.settings import CurriculumSettings, RegularisationSettings

    learner = sections.of(LearnerSettings)
    os.environ.setdefault("OMP_NUM_THREADS", str(learner.threads))
    import torch

    from league.agent.device import choose_devices, keep_memory
    from league.rpc.client import MatchmakerClient
    from league.runs.blobs import BlobFolder
    from learner.exploiter.lives import Lives, settings_of
    from learner.train.assembly import SessionSettings, check_stages, initial_values
    from learner.train.memory import is_out_of_memory, too_little
    from learner.train.session import Session

    torch.set_num_threads(learner.threads)
    keep_memory()
    devices, sentence = choose_devices(DeviceFlags.of(options))
    device = devices[team.rank]
    log.info("%s", sentence)
    settings = SessionSettings(
        game=sections.of(GameSettings),
        agent=sections.of(AgentSettings),
        learner=learner,
        curriculum=sections.of(CurriculumSettings),
        regularisation=sections.of(RegularisationSettings),
    )
    role = Role(options.role)
    own = sections.of(ExploiterSettings)
    if role in EXPLOITING:
        _check_exploiter(options, devices)
        settings = settings_of(settings, own, role)
    clean = sections["evaluator"]
    check_stages(
        settings,
        sections["matchmaker"]["mixes"],
        lambda opponent: clean["matches_by_opponent"].get(opponent, clean["matches_per_opponent"]),
    )
    stop = StopFlag()
    evenly = _evenly(sections, options, stop)
    remind = Reminders(log.info)

    def on_wait(sentence: str) -> None:
        remind(sentence)
        if stop():
            raise Unavailable("stopped while waiting for the matchmaker: start again to go on")

    _refuse_second_start(options)
    team.join(device)
    security = sections.of(SecuritySettings)
    options.tls = options.tls or security.tls_folder
    shown = client_credentials(options, "worker", options.run_dir)
    with (
        MatchmakerClient(
            options.matchmaker, wait_seconds=600, on_wait=on_wait, credentials=shown
        ) as client,
        evenly or nullcontext(),
    ):
        turn = evenly.turn if evenly is not None else lambda steps: 0.0
        initial, parent = None, ""
        if options.source:
            blobs = BlobFolder(options.run_dir / "blobs")
            initial, parent = initial_values(
                options.source, blobs, client.players(), settings.game.name
            )
            if options.weights_only:
                initial = {"network": initial["network"]}
        try:
            if role in EXPLOITING:
                Lives(
                    settings,
                    own,
                    client,
                    options.run_dir,
                    device,
                    name=options.name,
                    role=role,
                    should_stop=stop,
                    turn=turn,
                ).run()
                return
            session = Session(
                settings,
                client,
                options.run_dir,
                device,
                name=options.name,
                should_stop=stop,
                initial=initial,
                parent=parent,
                turn=turn,
            )
            if session.ranks.any(stop()):
                session.leave()
                return
            session.run()
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
            raise too_little(settings, device, "nothing was lost") from error
    team.leave()


def _check_exploiter(options: argparse.Namespace, devices: Sequence[object]) -> None:
    if options.source:
        raise ConfigError(
            f"--from {options.source}: {options.name} is an exploiter, whose generations begin from what "
            "exploiter.start says: leave --from out"
        )
    if len(devices) > 1:
        raise ConfigError(f"{options.name} is an exploiter, which learns on one device: name one")


def _refuse_second_start(options: argparse.Namespace) -> None:
    """A run that has steps goes on from them: another start would be ignored."""
    checkpoints = options.run_dir / f"learner-{options.name}" / "checkpoints"
    if options.source and not options.if_new and any(checkpoints.glob("step_*.pt")):
        raise ConfigError(
            f"--from {options.source}: {options.name} in {options.run_dir} has steps of its own already; "
            "leave --from out (or add --if-new) to go on, or give a new --run-dir or --name"
        )


class StopFlag:
    """Becomes true at SIGTERM or Ctrl-C; asking is a call."""

    def __init__(self) -> None:
        self._stop = False
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._set)

    def _set(self, *_: object) -> None:
        self._stop = True

    def __call__(self) -> bool:
        return self._stop


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code."""
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(name)s: %(message)s", stream=sys.stderr
    )
    words = list(sys.argv[1:] if arguments is None else arguments)
    outcome = attempt(lambda: _work(words))
    if isinstance(outcome, LeagueError):
        print(f"learner: {outcome}", file=sys.stderr)
        return outcome.exit_code
    return outcome


def _work(words: Sequence[str]) -> int:
    if words[:1] == [cloning.COMMAND]:
        cloning.run(cloning.parser().parse_args(words[1:]))
        return 0
    options = parser().parse_args(words)
    sections = _sections(options)
    learner = sections.of(LearnerSettings)
    said = DeviceFlags.of(options)
    flags = said
    if options.role == Role.MAIN.value and _is_alone(sections, options.name):
        flags = said.completed(learner.cpu_ranks, learner.is_shared_evenly)
    if flags.ranks > 1:
        learner.share(flags.ranks)  # refused at once
        more = () if flags == said else flags.arguments()  # the last word of a flag counts
        return launch([*words, *more], flags.ranks)
    run(options)
    return 0


def attempt(work: Callable[[], Outcome]) -> Outcome | LeagueError:
    """What `work` returns, or what it failed by when that is a sentence for a person."""
    try:
        return work()
    except LeagueError as error:
        return error
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        return StorageFull(
            "the disk is full: free some space and start again, the newest checkpoint goes on"
        )
