"""Files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path

from league.errors import InvalidInput, StorageFull

PRIVATE = 0o600


def write_whole(path: Path, content: str | bytes, *, private: bool = False) -> None:
    """Writes `content` (text as UTF-8): readers see the old file or all of the new one, also after
    a crash.

    A `private` file only its owner can read, from its first byte on.

    Raises `InvalidInput` when the file can't be made there, `StorageFull` when the disk is full.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        mode = PRIVATE if private else 0o666  # less what the umask takes
        draft.unlink(missing_ok=True)
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
        if error.errno == errno.ENOSPC:
            raise StorageFull(f"no space left to write {path}: free some and try again") from None
        raise InvalidInput(
            f"{path} can't be written ({error.strerror}): name another place"
        ) from None
