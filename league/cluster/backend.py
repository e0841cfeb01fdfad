"""The contract of what runs processes: here on this machine, elsewhere on a cluster."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class ProcessSpec:
    """What to run. `log` takes what it prints; `environment` is laid over the supervisor's own."""

    name: str
    command: tuple[str, ...]
    log: Path
    environment: Mapping[str, str] = field(default_factory=dict)


class RunningProcess(ABC):
    """A process that was started. Every method may be called again after its end."""

    @property
    @abstractmethod
    def pid(self) -> int:
        """Process id where it runs, for people and logs."""

    @abstractmethod
    def poll(self) -> int | None:
        """None while it runs, then its exit code; minus the signal's number when one ended it."""

    @abstractmethod
    def terminate(self) -> None:
        """Asks it to stop by itself (SIGTERM)."""

    @abstractmethod
    def kill(self) -> None:
        """Ends it and all that it started, at once."""


class Backend(ABC):
    """Starts processes that end when the supervisor does, however that ends."""

    @abstractmethod
    def start(self, spec: ProcessSpec) -> RunningProcess:
        """Starts `spec` and returns at once. Raises `ConfigError` when its program can't be run."""

    @abstractmethod
    def tidy(self) -> None:
        """Housekeeping that is due now and then, such as setting aside logs grown too long."""
