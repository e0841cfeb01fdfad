"""Files that are written whole or not at all, and JSON objects."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from pathlib import Path
from typing import Any

from league.errors import DataCorrupt, InvalidInput, StorageFull, is_full


def write_whole(path: Path, content: str | bytes, *, private: bool = False) -> None:
    """Writes a file: readers see the old one or all of the new one, also after a power cut.

    Args:
        path: the file.
        content: text is written as UTF-8.
        private: whether only its owner may read it, from its first byte on.

    Raises:
        InvalidInput: the file can't be made there.
        StorageFull: the disk is full.
    """
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        mode = 0o600 if private else 0o666  # less what the umask takes
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)  # the rename itself
        finally:
            os.close(folder)
    except BaseException as error:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
        if not isinstance(error, OSError):
            raise
        if is_full(error):
            raise StorageFull(
                f"no space left to write {path}: free some and start again, what was saved before "
                "is whole"
            ) from None
        raise InvalidInput(
            f"{path} can't be written ({error.strerror}): name another place"
        ) from None


def private_folder(path: Path) -> None:
    """Makes a folder that only its owner can read, where there is none; raises `InvalidInput`."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"{path} can't be made ({error.strerror}): name another place") from None


def read_json(path: Path) -> dict[str, Any]:
    """The object in a file, empty without the file; raises `DataCorrupt`."""
    if not path.exists():
        return {}
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise DataCorrupt(f"{path} can't be read as JSON ({error}): restore a copy") from None
    if not isinstance(content, dict):
        raise DataCorrupt(f"{path} holds no JSON object: restore a copy")
    return content
