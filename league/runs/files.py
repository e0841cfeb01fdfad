"""Writes files as a whole or not at all, and reads files and JSON objects from untrusted
sources."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import stat
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from league.errors import DataCorrupt, InvalidInput, StorageFull, is_full

if TYPE_CHECKING:  # most users of this module do without pydantic
    from pydantic import ValidationError

MOST_JSON_BYTES = 64 * 2**20


def write_whole(path: Path, content: str | bytes, *, private: bool = False) -> None:
    """Writes a file. Readers see either the old file or the whole new file, even after a power cut.

    Args:
        content: bytes, or text, which is written as UTF-8.
        private: whether only the owner may read the file, even while it is being written.

    Raises:
        InvalidInput: the file can't be made there.
        StorageFull: the disk is full.
    """
    with whole_file(path, private=private) as file:
        file.write(content.encode() if isinstance(content, str) else content)


@contextlib.contextmanager
def whole_file(path: Path, *, private: bool = False) -> Iterator[BinaryIO]:
    """Yields a file to write. The file gets its name only when the block ends without an error.
    Raises the errors of `write_whole`.
    """
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        mode = 0o600 if private else 0o666  # the umask may remove further rights
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)  # makes the rename durable
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
    """Makes a missing folder that only its owner can read, or raises `InvalidInput`."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"{path} can't be made ({error.strerror}): name another place") from None


def open_file(path: Path, most_bytes: int) -> BufferedReader:
    """Opens a file from an untrusted source for reading.

    Args:
        path: the file.
        most_bytes: the largest size.

    Raises:
        FileNotFoundError: the file is missing.
        DataCorrupt: it is too large, can't be opened, or is not an ordinary file. (A pipe or a
            device might never end.)
    """
    try:
        # without O_NONBLOCK a pipe without a writer would block the call
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise DataCorrupt(f"{path} can't be read ({error.strerror}): check the file") from None
    status = os.fstat(descriptor)
    if stat.S_ISREG(status.st_mode) and status.st_size <= most_bytes:
        return open(descriptor, "rb")
    os.close(descriptor)
    if not stat.S_ISREG(status.st_mode):
        raise DataCorrupt(f"{path} can't be read: it is no ordinary file, so take it away")
    raise DataCorrupt(
        f"{path} has {status.st_size:,} bytes, and no such file has more than {most_bytes:,}: take "
        "it away"
    )


def parse_json(text: str | bytes) -> Any:
    """Returns the value that JSON text describes. Raises `ValueError` if the text is not JSON, or
    is nested too deeply.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def first_fault(error: ValidationError) -> str:
    """Describes pydantic's first error in a few words."""
    first = error.errors(include_url=False)[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"


def read_json(path: Path) -> dict[str, Any]:
    """Returns the JSON object in a file, or {} if there is no file. Raises `DataCorrupt` if the
    file holds anything else.
    """
    try:
        with open_file(path, MOST_JSON_BYTES) as file:
            content = parse_json(file.read())
    except FileNotFoundError:
        return {}
    except (ValueError, OSError) as error:
        raise DataCorrupt(f"{path} can't be read as JSON ({error}): restore a copy") from None
    if not isinstance(content, dict):
        raise DataCorrupt(f"{path} holds no JSON object: restore a copy")
    return content
