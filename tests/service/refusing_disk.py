"""A disk that turns read-only under a process that writes to it.

The kernel remounts no disk for reading while somebody has a file of it open for writing; a disk
that fails is made read-only all the same, and then each write through a descriptor that is open
already is refused as well. Here the one is a read-only mount over the same folder, and the other
SQLite's own table of system calls, in which its tests, too, put calls that fail (`xSetSystemCall`,
https://sqlite.org/c3ref/vfs.html).
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CALLS = (b"write", b"pwrite", b"pwrite64")
_Write = ctypes.CFUNCTYPE(
    ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int64, use_errno=True
)
_SetSystemCall = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)


class _Vfs(ctypes.Structure):
    """`sqlite3_vfs` of version 3."""

    _fields_ = (
        *((name, ctypes.c_int) for name in ("version", "file_bytes", "path_bytes")),
        *((name, ctypes.c_void_p) for name in ("next", "name", "data")),
        ("earlier_methods", ctypes.c_void_p * 13),
        ("set_system_call", ctypes.c_void_p),
    )


def mount(*words: object) -> None:
    """Raises `CalledProcessError` when the kernel refuses it."""
    subprocess.run([*map(str, words)], check=True)


def sqlite_library() -> ctypes.CDLL | None:
    """The one that this process has loaded; None where Python has SQLite inside itself."""
    import sqlite3  # loads it

    assert sqlite3.sqlite_version
    lines = Path("/proc/self/maps").read_text().splitlines()
    files = {line.split()[-1] for line in lines if "/libsqlite3" in line}
    return ctypes.CDLL(files.pop()) if len(files) == 1 else None


@contextmanager
def read_only(disk: Path, library: ctypes.CDLL) -> Iterator[None]:
    """Until the end, the disk takes no writes and says so."""
    find = library.sqlite3_vfs_find
    find.argtypes, find.restype = [ctypes.c_char_p], ctypes.POINTER(_Vfs)
    vfs = find(None)
    assert vfs.contents.version >= 3
    change = _SetSystemCall(vfs.contents.set_system_call)

    def refused(descriptor: int, data: int, count: int, offset: int) -> int:
        ctypes.set_errno(errno.EROFS)
        return -1

    refuses = _Write(refused)
    mount("mount", "--bind", disk, disk)
    for _ in range(100):  # the kernel refuses while a write is under way
        with contextlib.suppress(subprocess.CalledProcessError):
            mount("mount", "-o", "remount,bind,ro", disk)
            break
        time.sleep(0.05)
    try:
        for name in CALLS:
            change(vfs, name, ctypes.cast(refuses, ctypes.c_void_p))
        yield
    finally:
        for name in CALLS:
            change(vfs, name, None)  # the system's own again
        mount("umount", "--lazy", disk)  # a reader may still have a file of it open
