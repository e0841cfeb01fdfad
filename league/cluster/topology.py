"""Decides which processes a league consists of, and with which arguments they start."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field

from league.cluster.engine import Place, ProcessSpec
from league.cluster.settings import ClusterSettings, labels_of
from league.errors import ConfigError
from league.runs.folder import RunFolder
from league.runs.settings import LearnerEntry, SupervisorSettings
from league.security.settings import joined, reached_at
from league.settings.device_flags import DeviceFlags

MATCHMAKER = "matchmaker"
DASHBOARD = "dashboard"
LEARNER = "learner-main"
"""The learner's process in a run that does not name its learners."""
EVALUATOR = "evaluator-0"
"""The first evaluator. It reports the remaining work of all evaluators."""


_MODULES = {DASHBOARD: "league.views.dashboard.main"}
"""Modules of the processes whose names do not tell their module."""


@dataclass(frozen=True, kw_only=True)
class LearnerOptions:
    """Keeps the supervisor's flags for the learners."""

    steps: int | None = None
    device: DeviceFlags = field(default_factory=DeviceFlags)
    origin: str | None = None
    weights_only: bool = False

    def arguments(self, entry: LearnerEntry) -> tuple[str, ...]:
        is_main = entry.role == "main"
        words = [] if entry.name == "main" else ["--name", entry.name]
        if self.steps is not None:
            words += ["--steps", str(self.steps)]
        # an exploiter learns on one device
        words += (self.device if is_main else self.device.first()).arguments()
        if self.origin is not None and is_main:
            words += ["--from", self.origin, "--if-new"]  # a restarted learner continues
            words += ["--weights-only"] if self.weights_only else []
        return tuple(words)


@dataclass(frozen=True, kw_only=True)
class Spread:
    """Says how a plan spreads learners and evaluators over the nodes of a cluster.

    Attributes:
        settings: the section `[cluster]`.
        reached_at: the host at which other nodes reach the matchmaker.
        gpus: the share of a GPU that each rank of a learner takes, 0 without GPUs.
    """

    settings: ClusterSettings
    reached_at: str
    gpus: float = 0.0

    def device(self) -> DeviceFlags:
        """Returns the flags for the learners. Ray shows a learner only the GPUs that it reserved.
        On CPUs a learner that stays on its node has a rank for each reserved core.
        """
        ranks = max(1, int(self.settings.cpus)) if self.settings.ranks == 1 else 0
        return DeviceFlags() if self.gpus else DeviceFlags(cpu=True, cpu_ranks=ranks)

    def learner(self, entry: LearnerEntry, command: tuple[str, ...]) -> Place:
        """Returns the place of a learner, given its command without the run's folder."""
        settings, named = self.settings, () if "--name" in command else ("--name", entry.name)
        own = (word for value in entry.set for word in ("--set", value))
        command += (*named, "--role", entry.role, *own)
        return Place(
            command=command,
            cpus=settings.cpus,
            gpus=self.gpus,
            labels=labels_of(settings.learners),
            ranks=settings.ranks if entry.role == "main" else 1,
            has_steps=True,
        )

    def evaluator(self, name: str, command: tuple[str, ...]) -> Place | None:
        """Returns the place of an evaluator. The first evaluator stays next to the supervisor,
        which asks it for the remaining work.
        """
        if name == EVALUATOR:
            return None
        labels = labels_of(self.settings.evaluators)
        return Place(command=(*command, "--name", name), labels=labels)


@dataclass(frozen=True)
class Address:
    """Says where a service listens, and under which names a proxy serves it.

    Port 0 means a free port, which the service keeps after a restart.
    """

    host: str = "127.0.0.1"
    port: int = 0
    names: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Address:
        """Reads HOST, HOST:PORT or [HOST]:PORT.

        Raises:
            ConfigError: the text is not an address.
        """
        host, colon, port = text.rpartition(":") if text.count(":") == 1 else (text, "", "")
        if text.startswith("["):
            host, _, port = text[1:].partition("]")
            colon, port = port[:1], port[1:]
        if not host or (colon and not (port.isdecimal() and int(port) < 65536)):
            raise ConfigError(f"{text!r} is no place to listen: write HOST or HOST:PORT")
        return cls(host, int(port or 0))


@dataclass(frozen=True, kw_only=True)
class Topology:
    """Lists the processes in the order of starting, and the services' addresses."""

    specs: tuple[ProcessSpec, ...]
    addresses: dict[str, str]
    mains: tuple[str, ...] = (LEARNER,)
    exploiters: tuple[str, ...] = ()
    evaluators: tuple[str, ...] = (EVALUATOR,)
    dashboard: str = ""
    """The dashboard's address for a browser, "" without a dashboard."""

    @property
    def spares(self) -> tuple[str, ...]:
        """Returns the evaluators that run only while there is much to evaluate."""
        return tuple(spec.name for spec in self.specs if spec.is_spare)

    @property
    def learners(self) -> tuple[str, ...]:
        return self.mains + self.exploiters


def plan(
    folder: RunFolder,
    options: LearnerOptions,
    settings: SupervisorSettings,
    *,
    host: str = "127.0.0.1",
    new_epoch: bool = False,
    dashboard: Address | None = None,
    spread: Spread | None = None,
) -> Topology:
    """Plans the matchmaker, the run's learners, its evaluators and its dashboard.

    The matchmaker, the first evaluator and the dashboard keep their ports after a restart.

    Args:
        options: flags for the learners.
        new_epoch: whether the matchmaker begins new ratings if the game's rules have changed.
        dashboard: where the dashboard listens, None without a dashboard.
        spread: how to use a cluster. None keeps all processes on this machine.
    """
    ports = {MATCHMAKER: folder.port("matchmaker")}
    if settings.evaluators:
        ports[EVALUATOR] = folder.port("evaluator")
    addresses = {name: joined(reached_at(host), port) for name, port in ports.items()}
    reach = joined(spread.reached_at, ports[MATCHMAKER]) if spread else addresses[MATCHMAKER]
    config, in_run = ("--config", str(folder.config)), ("--run-dir", str(folder.path))
    shared, elsewhere = ("--matchmaker", reach, *in_run), ("--matchmaker", reach)
    arguments: dict[str, tuple[str, ...]] = {
        MATCHMAKER: ("--db", str(folder.database), "--port", str(ports[MATCHMAKER]), *config)
    }
    if new_epoch:
        arguments[MATCHMAKER] += ("--new-epoch",)
    places: dict[str, Place | None] = {}
    for entry in settings.learners:
        name, flags = process_of(entry), options.arguments(entry)
        arguments[name] = (*shared, *config, *flags)
        if spread is not None:
            places[name] = spread.learner(entry, (*_program(name), *elsewhere, *flags))
    most = settings.evaluators
    if spread is not None and most:
        most = max(most, spread.settings.most_evaluators)
    evaluators = tuple(f"evaluator-{number}" for number in range(most))
    for name in evaluators:
        arguments[name] = (*shared, *config, "--name", name, "--port", str(ports.get(name, 0)))
        if spread is not None:
            places[name] = spread.evaluator(name, (*_program(name), *elsewhere))
    shown = ""
    if dashboard is not None:
        port = dashboard.port or folder.port("dashboard")
        arguments[DASHBOARD] = (*shared, "--host", dashboard.host, "--port", str(port))
        arguments[DASHBOARD] += tuple(f"--name={name}" for name in dashboard.names)
        shown = f"http://{joined(reached_at(dashboard.host), port)}"
    specs = tuple(
        ProcessSpec(
            name=name,
            command=(*_program(name), *words),
            log=folder.log(name),
            needed=name != DASHBOARD,
            vital=name != DASHBOARD and name not in evaluators,
            place=places.get(name),
            is_spare=name in evaluators[settings.evaluators :],
        )
        for name, words in arguments.items()
    )
    return Topology(
        specs=specs,
        addresses=addresses,
        mains=tuple(process_of(entry) for entry in settings.learners if entry.role == "main"),
        exploiters=tuple(process_of(entry) for entry in settings.learners if entry.role != "main"),
        evaluators=evaluators,
        dashboard=shown,
    )


def _program(name: str) -> tuple[str, ...]:
    return sys.executable, "-m", _MODULES.get(name, name.partition("-")[0])


def process_of(entry: LearnerEntry) -> str:
    """Returns the name of a learner's process, which is also the name of its worker and of its
    folder.
    """
    return f"learner-{entry.name}"
