"""Makes and parses structured names. No other module splits names.

A lineage is the series of all snapshots of a learner, and has the name of the learner.
"""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass

from league.errors import InvalidName

_WORD = "[a-z0-9][a-z0-9_.-]"
_NAME = rf"{_WORD}{{0,63}}"
_SNAPSHOT = rf"(?P<lineage>(?:{_NAME}:)?{_NAME})@(?P<step>[0-9]{{1,15}})"
_REFERENCE = rf"(?P<lineage>{_NAME})\.reference-(?P<step>[0-9]{{1,15}})"
_LEARNER = rf"{_WORD}{{0,53}}"
_GENERATION = rf"(?P<learner>{_LEARNER})\.g(?P<number>[1-9][0-9]{{0,8}})"
_DIGEST = r"[0-9a-f]{64}"
_AVERAGE = rf"(?P<lineage>(?:{_NAME}:)?{_NAME})@average"
NASH = "league@nash"
"""Name of the league's Nash mixture. No player can have this name, because the @ in a player's name
is followed by a number.
"""
SHOWN = 80
"""Maximum number of characters that an error message quotes from an invalid name."""


def _matched(pattern: str, name: str, fault: str) -> re.Match[str]:
    """Matches the whole name, or raises `InvalidName` with the name and the `fault`."""
    match = re.fullmatch(pattern, name)
    if match is None:
        raise InvalidName(f"{name[:SHOWN]!r} {fault}")
    return match


@dataclass(frozen=True)
class SnapshotName:
    """Names a snapshot, a frozen player: ``main@50000`` is ``main`` after 50,000 learner steps.

    If a snapshot was imported from another run, its name begins with the name of this run.
    ``first:main@50000`` has the lineage ``first:main``.
    """

    lineage: str
    step: int

    def __str__(self) -> str:
        return f"{self.lineage}@{self.step}"

    @property
    def run(self) -> str:
        """Returns the run from which the snapshot was imported, or ""."""
        run, colon, _ = self.lineage.partition(":")
        return run if colon else ""

    def imported(self, run: str) -> SnapshotName:
        """Returns the name that the snapshot gets when another league imports it from `run`. A name
        that already begins with a run's name is unchanged.

        Raises:
            InvalidName: `run` can't be part of a name.
        """
        if self.run:
            return self
        _matched(_NAME, run, "can't name a run here: use up to 64 of a-z 0-9 _ . -")
        return SnapshotName(f"{run}:{self.lineage}", self.step)

    @classmethod
    def parse(cls, name: str) -> SnapshotName:
        """Parses a snapshot's name, or raises `InvalidName`."""
        match = _matched(_SNAPSHOT, name, "is no snapshot's name: one looks like main@50000")
        return cls(match["lineage"], int(match["step"]))


@dataclass(frozen=True)
class ReferenceName:
    """Names a frozen copy of a learner, such as ``main.reference-50000``. Regularisation keeps the
    learner's policy close to such copies.
    """

    lineage: str
    step: int

    def __str__(self) -> str:
        return f"{self.lineage}.reference-{self.step}"

    @classmethod
    def parse(cls, name: str) -> ReferenceName:
        """Parses a reference's name, or raises `InvalidName`."""
        fault = "is no reference's name: one looks like main.reference-50000"
        match = _matched(_REFERENCE, name, fault)
        return cls(match["lineage"], int(match["step"]))


@dataclass(frozen=True)
class GenerationName:
    """Names the live player of an exploiter's generation, such as ``main-exploiter.g2``."""

    learner: str
    number: int

    def __str__(self) -> str:
        return f"{self.learner}.g{self.number}"

    @classmethod
    def parse(cls, name: str) -> GenerationName:
        """Parses the name of a generation's player, or raises `InvalidName`."""
        fault = "is no generation's name: one looks like main-exploiter.g2"
        match = _matched(_GENERATION, name, fault)
        return cls(match["learner"], int(match["number"]))


def checked_player_name(name: str) -> str:
    """Returns `name` if a player may have it. Otherwise raises `InvalidName`."""
    fault = "can't name a player: use up to 64 of a-z 0-9 _ . -, and @STEP after it for a snapshot"
    return _matched(f"{_NAME}|{_SNAPSHOT}", name, fault)[0]


def checked_learner_name(name: str) -> str:
    """Returns `name` if an exploiter's learner may have it. Otherwise raises `InvalidName`."""
    fault = (
        "can't name an exploiter's learner: use up to 54 of a-z 0-9 _ . -, for a generation's name "
        "is its name with .gNUMBER after it"
    )
    return _matched(_LEARNER, name, fault)[0]


def lineage_of(name: str) -> str:
    """Returns ``main`` for ``main@50000`` and ``main@average``, and "" for a name without @."""
    return name.rpartition("@")[0]


def average_of(lineage: str) -> str:
    """Returns the name of a lineage's average, ``main@average`` for ``main``.

    The average is a mixture of the lineage's later snapshots.
    """
    return f"{lineage}@average"


def averaged_lineage(name: str) -> str:
    """Returns ``main`` for the average ``main@average``, and "" for a name that is no average."""
    match = re.fullmatch(_AVERAGE, name)
    return match["lineage"] if match else ""


def is_mixture(name: str) -> bool:
    """Returns whether the name is a lineage's average or `NASH`."""
    return name == NASH or bool(averaged_lineage(name))


def checked_digest(digest: str) -> str:
    """Returns `digest` if it is a lower-case sha256, so it is safe in a path.

    Raises:
        InvalidName: `digest` is not a sha256.
    """
    return _matched(_DIGEST, digest, "is no sha256 digest: 64 hexadecimal digits are wanted")[0]


def new_id() -> str:
    """Returns a new identifier for a request, match or lease."""
    return uuid.uuid4().hex
