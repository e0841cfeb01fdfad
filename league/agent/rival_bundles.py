"""Packs rivals (other people's agents) into bundles, and records which bundles this user trusts.

A bundle is a zip file. It holds the rival's program, `my_agent.py`, in the format of the AI²
tournament, and the data files that the program reads. `rivals.py` plays the bundle.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import shutil
import subprocess
import tempfile
import zipfile
from pathlib import Path, PurePosixPath

from league.agent.rival_worker import FILE
from league.errors import DataCorrupt, InvalidInput
from league.ids import checked_digest
from league.runs.blobs import BlobFolder, BlobKind
from league.runs.files import open_file

LINK = "player.json"
"""Name of the file with the address of a rival that runs elsewhere and is reached over gRPC
(`player_link.py`). The rival's bundle has no other file.
"""
MODELS = (".zip", ".onnx")
"""File name endings of models that `rival_model.py` can play."""
MOST_FILES, MOST_BYTES = 1000, 64 << 20
"""Largest number of files in a bundle, and their largest total size in bytes."""
TOO_MUCH = f"it wrote over {2 * MOST_FILES:,} files or {2 * MOST_BYTES:,} bytes"
LOOK_SECONDS = 2.0
"""Seconds between two checks of how much a process has written."""


def pack(path: Path, most_bytes: int | None = None) -> bytes:
    """Makes the bundle of a rival (another person's agent). Equal files give equal bytes.

    Hidden files and `__pycache__` are left out.

    Args:
        path: a Python file, a folder with `my_agent.py`, a zip file of such a folder, or a model
            of Stable-Baselines3 (.zip) or ONNX.
        most_bytes: largest total size of the files, instead of `MOST_BYTES`.

    Raises:
        InvalidInput: there is no such file, or the folder is too large or lacks `my_agent.py`.
        DataCorrupt: the zip file is damaged, or too large.
    """
    most_bytes = most_bytes or MOST_BYTES
    if path.is_dir():
        found = {
            inner.relative_to(path).as_posix(): inner
            for inner in sorted(path.rglob("*"))
            if not any(
                part.startswith(".") or part == "__pycache__"
                for part in inner.relative_to(path).parts
            )
            and not (inner.is_dir() and not inner.is_symlink())
        }
        if FILE not in found:
            raise InvalidInput(f"{path} has no {FILE}: name the folder that holds the agent's file")
    elif path.suffix in MODELS:
        if zipfile.is_zipfile(path) and FILE in zipfile.ZipFile(path).namelist():
            with tempfile.TemporaryDirectory() as folder:
                unpack(path.read_bytes(), Path(folder), most_bytes)
                return pack(Path(folder), most_bytes)
        player = Path(__file__).with_name("rival_model.py")
        found = {FILE: player, f"model{path.suffix}": path}
        if (weights := path.with_name(f"{path.name}.data")).is_file():  # a large ONNX model
            found[weights.name] = weights
    else:
        found = {FILE: path}
    if len(found) > MOST_FILES:
        raise InvalidInput(f"{path} has {len(found):,} files: {MOST_FILES:,} are the most")
    left, content = most_bytes, io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_STORED) as bundle:
        for name, inner in found.items():
            if inner.is_symlink() or not inner.is_file():
                raise InvalidInput(f"{inner} is no file: a rival is files and folders only")
            left -= inner.stat().st_size
            if left < 0:
                raise InvalidInput(f"{path} has over {most_bytes:,} bytes: take files away")
            entry = zipfile.ZipInfo(name)  # has a fixed date
            entry.external_attr = 0o644 << 16
            bundle.writestr(entry, inner.read_bytes())
    return content.getvalue()


def packed(path: Path, most_bytes: int | None = None) -> bytes:
    """Makes a bundle like `pack`. A zip file may also have `my_agent.py` in a folder inside.

    Raises:
        InvalidInput: as for `pack`, or the zip file is damaged or has no agent.
    """
    if path.suffix != ".zip":
        return pack(path, most_bytes)
    most_bytes = most_bytes or MOST_BYTES
    try:
        with open_file(path, most_bytes) as file, zipfile.ZipFile(file) as files:
            entries = [entry for entry in files.infolist() if not entry.is_dir()]
            if sum(entry.file_size for entry in entries) > most_bytes:
                raise InvalidInput(f"{path} has over {most_bytes:,} bytes: take files away")
            agents = [one.filename for one in entries if PurePosixPath(one.filename).name == FILE]
            if not agents and "data" in files.namelist():  # a model of Stable-Baselines3
                return pack(path, most_bytes)
            if not agents:
                raise InvalidInput(f"{path} has no {FILE}, and is no model: name another zip file")
            top, content = min(agents, key=len).removesuffix(FILE), io.BytesIO()
            with zipfile.ZipFile(content, "w") as inner:
                for entry in entries:
                    if entry.filename.startswith(top):
                        inner.writestr(entry.filename.removeprefix(top), files.read(entry))
        with tempfile.TemporaryDirectory() as folder:
            unpack(content.getvalue(), Path(folder), most_bytes)
            return pack(Path(folder), most_bytes)
    except (DataCorrupt, zipfile.BadZipFile, OSError, ValueError, RuntimeError) as error:
        raise InvalidInput(f"{path} can't be opened ({error}): make it again") from None


def link(address: str, game: str, version: str, token_file: Path | None, tls: Path | None) -> bytes:
    """Makes the bundle for a player that runs elsewhere.

    Args:
        address: HOST:PORT.
        game, version: the league's game, and the version of its rules.
        token_file: a file with the token that the player requires.
        tls: a folder with certificates, for a player that uses TLS.

    Returns:
        The bundle, with the paths of the token and of the certificates, but not their contents.
    """
    files = {
        name: str(path.absolute()) if path else ""
        for name, path in (("token_file", token_file), ("tls", tls))
    }
    text = json.dumps({"address": address, "game": game, "version": version, **files})
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as bundle:
        bundle.writestr(zipfile.ZipInfo(LINK), text)
    return content.getvalue()


def digest_of(bundle: bytes) -> str:
    """Returns a bundle's SHA-256 digest. Bundles are stored and trusted by their digests."""
    return hashlib.sha256(bundle).hexdigest()


def is_link(bundle: bytes) -> bool:
    """Returns whether a bundle holds the address of a player instead of the player's files."""
    try:
        with zipfile.ZipFile(io.BytesIO(bundle)) as files:
            return FILE not in files.namelist()
    except (zipfile.BadZipFile, ValueError):
        return False


def unpack(bundle: bytes, folder: Path, most_bytes: int | None = None) -> None:
    """Writes a bundle's files into `folder`.

    Raises:
        DataCorrupt: the bundle is damaged, exceeds a limit (`MOST_FILES`, `most_bytes`), has
            neither `my_agent.py` nor a player's address, or names files outside `folder`.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(bundle)) as files:
            entries = files.infolist()
            places = [PurePosixPath(entry.filename) for entry in entries]
            if (
                len(entries) > MOST_FILES
                or sum(entry.file_size for entry in entries) > (most_bytes or MOST_BYTES)
                or any(place.is_absolute() or ".." in place.parts for place in places)
                or not {FILE, LINK} & {*files.namelist()}
            ):
                raise DataCorrupt("the bundle is no rival's: add the rival again")
            for entry, place in zip(entries, places, strict=True):
                (folder / place).parent.mkdir(parents=True, exist_ok=True)
                (folder / place).write_bytes(files.read(entry))
    except (zipfile.BadZipFile, OSError, ValueError, RuntimeError, NotImplementedError) as error:
        raise DataCorrupt(f"the bundle can't be opened ({error}): add the rival again") from None


def holds_too_much(folder: str) -> bool:
    """Returns whether a folder has more than twice the files or bytes that a bundle may have."""
    files = size = 0
    try:
        for place, _, names in os.walk(folder):
            files += 1 + len(names)
            for name in names[: 2 * MOST_FILES]:
                with contextlib.suppress(OSError):  # the file is gone
                    size += os.lstat(os.path.join(place, name)).st_size
            if files > 2 * MOST_FILES or size > 2 * MOST_BYTES:
                return True
    except RecursionError:  # a thousand nested folders
        return True
    return False


def remove(folder: str) -> None:
    """Removes a folder in which an agent has written, even if it contains very deeply nested
    folders.
    """
    try:
        shutil.rmtree(folder, ignore_errors=True)
    except RecursionError:
        with contextlib.suppress(OSError):
            subprocess.run(["/bin/rm", "-rf", "--", folder], stderr=subprocess.DEVNULL)


def trust(digest: str) -> None:
    """Records that this user agrees to run a bundle on this machine.

    Raises:
        InvalidInput: the record can't be written.
    """
    if is_trusted(digest):
        return
    file = _trusted()
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with file.open("a", encoding="ascii") as notes:
            notes.write(f"{checked_digest(digest)}\n")
    except OSError as error:
        raise InvalidInput(
            f"{file}, which lists the rivals that you trust, can't be written ({error.strerror}): "
            "name a folder that can be written by XDG_STATE_HOME"
        ) from None


def is_trusted(digest: str) -> bool:
    """Returns whether this user has agreed to run a bundle on this machine.

    The record is not kept in the run's folder, because a run's folder may come from another person.
    """
    with contextlib.suppress(OSError, UnicodeDecodeError):
        return digest in _trusted().read_text("ascii").split()
    return False


def state_folder() -> Path:
    """Returns the folder in which this user's choices on this machine are recorded."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "kumite"


def _trusted() -> Path:
    return state_folder() / "trusted-rivals"


def bundles(blobs: BlobFolder) -> BlobFolder:
    """Returns the folder, among a run's stored files (blobs), that holds the rivals' bundles."""
    return blobs.of(BlobKind.RIVAL)
