"""Defines the tree of errors. A message says what is wrong, gives the value, and says what to do.

Programs print only the message and exit with `exit_code`: 2 for wrong input, 3 for a full disk,
4 for damaged data, 6 for a read-only disk (which a restart does not repair), 75 for a rank that
ended because another rank had, and 1 for all other errors. Services send the gRPC code that
`league.rpc.status` lists for the class.
"""

from __future__ import annotations

import difflib
import errno
from collections.abc import Iterable, Iterator
from contextlib import contextmanager


def nearest(word: str, known: Iterable[str]) -> str:
    """Returns «did you mean 'based'?» if a known word looks like `word`.

    If `word` is the name of a snapshot, such as main@50000, the function suggests the snapshot of
    the same learner at the nearest step.

    Args:
        word: the word that was not found.
        known: the words to choose from.

    Returns:
        The question, or "" if no known word is similar.
    """
    lineage, at, step = word.rpartition("@")
    if at and step.isdecimal():  # neighbouring steps rarely share enough digits for difflib
        steps = [name.rpartition("@") for name in known]
        ages = [int(age) for name, _, age in steps if name == lineage and age.isdecimal()]
        if ages:
            return f"did you mean '{lineage}@{min(ages, key=lambda age: abs(age - int(step)))}'?"
        known = ["".join(parts) for parts in steps]
    close = difflib.get_close_matches(word, sorted(known), n=1)
    return f"did you mean {close[0]!r}?" if close else ""


def plain(text: str) -> str:
    """Replaces each control character by a blank.

    Control characters could forge a line of a log or steer a terminal.
    """
    return text if text.isprintable() else "".join(c if c.isprintable() else " " for c in text)


class LeagueError(Exception):
    """The base class of all expected errors. The message may contain text from an untrusted
    source.
    """

    exit_code = 1
    retry_seconds = 0.0
    """Seconds after which the caller of a service should repeat the call. 0 means never."""

    def __str__(self) -> str:
        return plain(super().__str__())


class InvalidInput(LeagueError):
    """Says that the caller's value is wrong. The same call will fail again."""

    exit_code = 2


class InvalidName(InvalidInput):
    """Rejects a name that no player, match or file can have."""


class ConfigError(InvalidInput):
    """Rejects a setting, preset or flag that can't be used."""


class NothingPlayable(ConfigError):
    """Says that no match can be played: all opponents are unplayable, or every match fails."""


class NotFound(LeagueError):
    """Says that a player, match, file or preset does not exist."""


class AlreadyExists(LeagueError):
    """Says that the name belongs to something else."""


class Refused(LeagueError):
    """Says that the state of the league forbids the call, for example because the player is retired
    or the worker is in quarantine.
    """


class Fenced(Refused):
    """Says that this worker must stop, because a newer process of the same worker has started."""


class Quarantined(Refused):
    """Says that the worker is in quarantine: it gets no matches until an operator releases it."""


class Unauthenticated(LeagueError):
    """Says that the service requires a token, but the call has no token or an unknown token."""

    exit_code = 2


class Forbidden(LeagueError):
    """Says that the role of the token does not allow this call."""

    exit_code = 2


class Unavailable(LeagueError):
    """Says that a service or resource can't be reached now. The same call may work later."""


class Busy(Unavailable):
    """Says that the service is overloaded. The client repeats the call after `retry_seconds`."""

    def __init__(self, message: str, retry_seconds: float = 1.0) -> None:
        super().__init__(message)
        self.retry_seconds = retry_seconds


class Closing(Busy):
    """Says that the service is stopping. It answers again after a restart."""


class RankGone(Unavailable):
    """Says that another process (rank) of this learner has ended, so this rank can't continue. The
    exit code tells this rank from the rank that failed.
    """

    exit_code = 75


class DataCorrupt(LeagueError):
    """Says that a file's content is damaged. For example, it does not match the digest in the
    file's name, or an agent's weights do not fit the description in the file's metadata.
    """

    exit_code = 4


class VersionMismatch(DataCorrupt):
    """Says that data was made with another version of its file format or of the game's rules."""


class NumericalFault(LeagueError):
    """Reports NaN or infinity where a finite number is required. The message names the tensor."""


class DeviceError(LeagueError):
    """Says that a compute device is missing or out of memory, so another device must be chosen."""

    exit_code = 2


class StorageFull(LeagueError):
    """Says that the disk has no space left. Data that was on disk before is intact."""

    exit_code = 3
    retry_seconds = 1.0


def is_full(error: OSError) -> bool:
    """Returns whether the error means that the disk, or the user's quota on it, is full."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


@contextmanager
def suppress_full() -> Iterator[None]:
    """Ends the block without an error if the disk is full."""
    try:
        yield
    except OSError as error:
        if not is_full(error):
            raise


class StorageReadOnly(LeagueError):
    """Says that the disk is read-only. Data that was on disk before is intact."""

    exit_code = 6
    retry_seconds = 1.0


def storage_fault(error: OSError) -> LeagueError | None:
    """Converts an `OSError` to the league's error if the disk is full or read-only. Otherwise
    returns None.
    """
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
