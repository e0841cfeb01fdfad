"""Finds the settings, games and commands that installed packages add to Kumite."""

from __future__ import annotations

import functools
import importlib.metadata
import sys
from importlib.metadata import EntryPoints


def entry_points(group: str) -> EntryPoints:
    """Returns the entry points of `group`.

    Reading the metadata of all packages takes tens of milliseconds, and the settings need entry
    points several times. So the result is cached until `sys.path` changes.
    """
    return _read(group, tuple(sys.path))


@functools.cache
def _read(group: str, path: tuple[str, ...]) -> EntryPoints:
    del path  # importlib reads `sys.path` itself
    return importlib.metadata.entry_points(group=group)
