"""Which processes make a league, and with which arguments."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field

from league.cluster.backend import ProcessSpec
from league.cluster.run_folder import RunFolder
from league.device_flags import DeviceFlags
from league.security.settings import joined, reached_at

MATCHMAKER = "matchmaker"
LEARNER = "learner-main"
EVALUATOR = "evaluator-0"


@dataclass(frozen=True, kw_only=True)
class LearnerOptions:
    """Flags of the supervisor that are the learner's business, handed on as they are."""

    steps: int | None = None
    device: DeviceFlags = field(default_factory=DeviceFlags)
    origin: str | None = None
    weights_only: bool = False

    def arguments(self) -> tuple[str, ...]:
        words: list[str] = []
        if self.steps is not None:
            words += ["--steps", str(self.steps)]
        words += self.device.arguments()
        if self.origin is not None:
            words += ["--from", self.origin, "--if-new"]  # restarted, it goes on
        if self.weights_only:
            words += ["--weights-only"]
        return tuple(words)


@dataclass(frozen=True, kw_only=True)
class Topology:
    """The processes, in the order of starting, and where the services listen."""

    specs: tuple[ProcessSpec, ...]
    addresses: dict[str, str]


def plan(
    folder: RunFolder, options: LearnerOptions, *, evaluators: int = 1, host: str = "127.0.0.1"
) -> Topology:
    """One matchmaker and learner, and `evaluators` evaluators (0 or 1), on ports that outlive them.

    `host` is where the services listen, as their own settings say.
    """
    ports = {MATCHMAKER: folder.port("matchmaker")}
    if evaluators:
        ports[EVALUATOR] = folder.port("evaluator")
    addresses = {name: joined(reached_at(host), port) for name, port in ports.items()}
    shared = ("--matchmaker", addresses[MATCHMAKER], "--run-dir", str(folder.path))
    settings = ("--config", str(folder.config))
    arguments = {
        MATCHMAKER: ("--db", str(folder.database), "--port", str(ports[MATCHMAKER]), *settings),
        LEARNER: (*shared, *settings, *options.arguments()),
    }
    if evaluators:
        arguments[EVALUATOR] = (*shared, *settings, "--port", str(ports[EVALUATOR]))
    specs = tuple(
        ProcessSpec(
            name=name,
            command=(sys.executable, "-m", name.partition("-")[0], *words),
            log=folder.log(name),
        )
        for name, words in arguments.items()
    )
    return Topology(specs=specs, addresses=addresses)
