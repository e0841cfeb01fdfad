"""The contract of process backends: local processes here, a cluster elsewhere."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class ProcessSpec:
    """What to run. `log` receives its output; `environment` overrides the supervisor's own."""

    name: str
    command: tuple[str, ...]
    log: Path
    environment: Mapping[str, str] = field(default_factory=dict)


class RunningProcess(ABC):
    """A started process. Every method may be called again after its end."""

    @property
    @abstractmethod
    def pid(self) -> int:
        """Process id on its own machine, for people and logs."""

    @abstractmethod
    def poll(self) -> int | None:
        """None while it runs, then its exit code; minus the signal's number if one ended it."""

    @abstractmethod
    def terminate(self) -> None:
        """Asks it to stop (SIGTERM)."""

    @abstractmethod
    def kill(self) -> None:
        """Ends it and all processes that it started, at once."""


class Backend(ABC):
    """Starts processes that end when the supervisor ends, for whatever reason."""

    @abstractmethod
    def start(self, spec: ProcessSpec) -> RunningProcess:
        """Starts `spec` and returns at once. Raises `ConfigError` when its program can't run."""

    @abstractmethod
    def rotate_logs(self) -> None:
        """Moves logs aside that have grown too long."""
