"""Names with an inner structure: they are made and parsed only here."""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass

from league.errors import InvalidName

_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")
_SNAPSHOT = re.compile(
    r"(?P<lineage>(?:[a-z0-9][a-z0-9_.-]{0,63}:)?[a-z0-9][a-z0-9_.-]{0,63})@(?P<step>[0-9]{1,15})"
)
_RUN = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")
_REFERENCE = re.compile(r"(?P<lineage>[a-z0-9][a-z0-9_.-]{0,63})\.reference-(?P<step>[0-9]{1,15})")
_LEARNER = re.compile(r"[a-z0-9][a-z0-9_.-]{0,53}")
_GENERATION = re.compile(rf"(?P<learner>{_LEARNER.pattern})\.g(?P<number>[1-9][0-9]{{0,8}})")
SHOWN = 80
"""Characters of a wrong name that a sentence repeats."""
_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class SnapshotName:
    """Name of a frozen player: ``main@50000`` is ``main`` after 50,000 learner steps.

    One that came from another run says so: ``first:main@50000`` is of the lineage ``first:main``.
    """

    lineage: str
    step: int

    def __str__(self) -> str:
        return f"{self.lineage}@{self.step}"

    @property
    def run(self) -> str:
        """The run that it came from, "" for one of this league."""
        run, colon, _ = self.lineage.partition(":")
        return run if colon else ""

    def imported(self, run: str) -> SnapshotName:
        """Its name in another league, where one that was imported before keeps its own.

        Raises `InvalidName` when `run` can't be part of it.
        """
        if self.run:
            return self
        if not _RUN.fullmatch(run):
            raise InvalidName(
                f"{run[:SHOWN]!r} can't name a run here: use up to 64 of a-z 0-9 _ . -"
            )
        return SnapshotName(f"{run}:{self.lineage}", self.step)

    @classmethod
    def parse(cls, name: str) -> SnapshotName:
        """Raises `InvalidName` when `name` is no snapshot's."""
        match = _SNAPSHOT.fullmatch(name)
        if match is None:
            raise InvalidName(f"{name[:SHOWN]!r} is no snapshot's name: one looks like main@50000")
        return cls(match["lineage"], int(match["step"]))


@dataclass(frozen=True)
class ReferenceName:
    """Name of a frozen copy of a learner for regularisation, such as ``main.reference-50000``."""

    lineage: str
    step: int

    def __str__(self) -> str:
        return f"{self.lineage}.reference-{self.step}"

    @classmethod
    def parse(cls, name: str) -> ReferenceName:
        """Raises `InvalidName` when `name` is no reference's."""
        match = _REFERENCE.fullmatch(name)
        if match is None:
            raise InvalidName(
                f"{name[:SHOWN]!r} is no reference's name: one looks like main.reference-50000"
            )
        return cls(match["lineage"], int(match["step"]))


@dataclass(frozen=True)
class GenerationName:
    """Name of the live player of an exploiter's generation, such as ``main-exploiter.g2``."""

    learner: str
    number: int

    def __str__(self) -> str:
        return f"{self.learner}.g{self.number}"

    @classmethod
    def parse(cls, name: str) -> GenerationName:
        """Raises `InvalidName` when `name` is no generation's."""
        match = _GENERATION.fullmatch(name)
        if match is None:
            raise InvalidName(
                f"{name[:SHOWN]!r} is no generation's name: one looks like main-exploiter.g2"
            )
        return cls(match["learner"], int(match["number"]))


def checked_player_name(name: str) -> str:
    """`name` itself when a player may have it, else `InvalidName`."""
    if _NAME.fullmatch(name) or _SNAPSHOT.fullmatch(name):
        return name
    raise InvalidName(
        f"{name[:SHOWN]!r} can't name a player: use up to 64 of a-z 0-9 _ . -, and "
        "@STEP after it for a snapshot"
    )


def checked_learner_name(name: str) -> str:
    """`name` itself when a learner that has generations may have it, else `InvalidName`."""
    if _LEARNER.fullmatch(name):
        return name
    raise InvalidName(
        f"{name[:SHOWN]!r} can't name an exploiter's learner: use up to 54 of a-z 0-9 _ . -, for a "
        f"generation's name is its name with .gNUMBER after it"
    )


def checked_digest(digest: str) -> str:
    """`digest` itself when it is a lower-case sha256, so safe in a path, else `InvalidName`."""
    if _DIGEST.fullmatch(digest):
        return digest
    raise InvalidName(f"{digest[:SHOWN]!r} is no sha256 digest: 64 hexadecimal digits are wanted")


def new_id() -> str:
    """A fresh identifier for a request, match or lease."""
    return uuid.uuid4().hex
