"""One tree of errors. A message says what is wrong, with which value, and what to do.

Launchers print the message alone and exit with `exit_code`; services send it with the gRPC code
that `league.status` gives for the class.
"""

from __future__ import annotations


class LeagueError(Exception):
    """Anything that the league reports on purpose."""

    exit_code = 1


class InvalidInput(LeagueError):
    """The caller's value is wrong; the same call will fail again."""

    exit_code = 2


class InvalidName(InvalidInput):
    """A name that no player, match or file can bear."""


class ConfigError(InvalidInput):
    """A setting, preset or flag that can't be used."""


class NotFound(LeagueError):
    """A player, match, file or preset that does not exist."""


class AlreadyExists(LeagueError):
    """The name is taken by something else."""


class Refused(LeagueError):
    """The state of the league forbids it: a fenced lease, a retired player, a held-out opponent."""


class Fenced(Refused):
    """A newer incarnation of this worker exists: this one must stop."""


class Unavailable(LeagueError):
    """A service or resource can't be reached now; the same call may work later."""


class DataCorrupt(LeagueError):
    """A file does not hold what its name or card says."""


class VersionMismatch(DataCorrupt):
    """Made by another version of the format or the rules."""


class NumericalFault(LeagueError):
    """NaN or infinity where a number must be; the message names the tensor."""


class DeviceError(LeagueError):
    """A compute device that is missing or out of memory."""


class StorageFull(LeagueError):
    """No space left to write; what was on disk is whole."""
