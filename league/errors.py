"""One tree of errors. A message says what is wrong, with which value, and what to do.

Launchers print the message alone and exit with `exit_code`: 2 for wrong input, 4 for damaged data
and 6 for a read-only disk, which no restart cures, 3 for a full disk, and 1 for all else. Services
send it with the gRPC code that `league.rpc.status` gives for the class.
"""

from __future__ import annotations

import difflib
import errno
from collections.abc import Iterable, Iterator
from contextlib import contextmanager


def nearest(word: str, known: Iterable[str]) -> str:
    """Asks «did you mean 'based'?» when one of `known` looks like `word`; "" otherwise."""
    lineage, at, step = word.rpartition("@")
    if at and step.isdecimal():  # of one lineage the nearest step, which is seldom alike in letters
        steps = [name.rpartition("@") for name in known]
        ages = [int(age) for name, _, age in steps if name == lineage and age.isdecimal()]
        if ages:
            return f"did you mean '{lineage}@{min(ages, key=lambda age: abs(age - int(step)))}'?"
        known = ["".join(parts) for parts in steps]
    close = difflib.get_close_matches(word, sorted(known), n=1)
    return f"did you mean {close[0]!r}?" if close else ""


def plain(text: str) -> str:
    """The text on one line and without control characters, which could forge a line or steer a
    terminal: a blank takes the place of each.
    """
    return text if text.isprintable() else "".join(c if c.isprintable() else " " for c in text)


class LeagueError(Exception):
    """Anything that the league reports on purpose. It may repeat what a stranger sent."""

    exit_code = 1
    retry_seconds = 0.0
    """When the caller of a service should send the same call again; 0 for never."""

    def __str__(self) -> str:
        return plain(super().__str__())


class InvalidInput(LeagueError):
    """The caller's value is wrong; the same call will fail again."""

    exit_code = 2


class InvalidName(InvalidInput):
    """A name that no player, match or file can have."""


class ConfigError(InvalidInput):
    """A setting, preset or flag that can't be used."""


class NothingPlayable(ConfigError):
    """No match can be played on: only unplayable opponents are handed out, or every match fails."""


class NotFound(LeagueError):
    """A player, match, file or preset that does not exist."""


class AlreadyExists(LeagueError):
    """The name is taken by something else."""


class Refused(LeagueError):
    """The state of the league forbids it: a fenced lease, a retired player, a held-out opponent."""


class Fenced(Refused):
    """A newer incarnation of this worker exists: this one must stop."""


class Quarantined(Refused):
    """The worker is in quarantine: it gets no matches until an operator releases it."""


class Unauthenticated(LeagueError):
    """The service wants a token, and the call has none or an unknown one."""

    exit_code = 2


class Forbidden(LeagueError):
    """The token is known, and its role does not allow this call."""

    exit_code = 2


class Unavailable(LeagueError):
    """A service or resource can't be reached now; the same call may work later."""


class Busy(Unavailable):
    """Too much is asked for at once; the client sends the same call again in `retry_seconds`."""

    def __init__(self, message: str, retry_seconds: float = 1.0) -> None:
        super().__init__(message)
        self.retry_seconds = retry_seconds


class Closing(Busy):
    """The service stops; after a restart it answers again."""


class RankGone(Unavailable):
    """Another rank of the same learner has ended, and the others can't continue without it."""


class DataCorrupt(LeagueError):
    """A file does not hold what its name or card says."""

    exit_code = 4


class VersionMismatch(DataCorrupt):
    """Made by another version of the format or the rules."""


class NumericalFault(LeagueError):
    """NaN or infinity where a number must be; the message names the tensor."""


class DeviceError(LeagueError):
    """A compute device that is missing or out of memory: another one must be chosen."""

    exit_code = 2


class StorageFull(LeagueError):
    """No space left to write; what was on disk is whole."""

    exit_code = 3
    retry_seconds = 1.0


def is_full(error: OSError) -> bool:
    """Whether the disk is full, or its user's quota."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


@contextmanager
def suppress_full() -> Iterator[None]:
    """Ends the block quietly at an error of a full disk."""
    try:
        yield
    except OSError as error:
        if not is_full(error):
            raise


class StorageReadOnly(LeagueError):
    """The disk takes no more writes (read-only, or broken); what was on disk is whole."""

    exit_code = 6
    retry_seconds = 1.0


def storage_fault(error: OSError) -> LeagueError | None:
    """What to tell people of a disk that is full or read-only; None for another error."""
    if is_full(error):
        return StorageFull(
            "the disk is full: free some space and start again, to continue from the newest "
            "checkpoint"
        )
    if error.errno == errno.EROFS:
        return StorageReadOnly(
            f"{error.filename} is on a disk that takes no writes: mount it for writing, or choose "
            "another --run-dir"
        )
    return None
