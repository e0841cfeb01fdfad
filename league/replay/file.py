"""The file of a replay: `MAGIC`, a checksum, and a compressed payload: a JSON header and the
actions as one bit each. Shape suffixes: T frames, 2 seats, A action width.
"""

from __future__ import annotations

import hashlib
import json
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from league.errors import DataCorrupt, InvalidInput, NotFound, VersionMismatch
from league.replay.match import Contender, Recipe, Replay
from league.runs.files import write_whole

MAGIC = b"KUMITE-REPLAY"
FORMAT = 2
SUFFIX = ".replay"
_CHECKSUM_BYTES = 16
_MOST_BYTES = 64 * 2**20
"""Of an unpacked payload: the longest match has some 4 MB, more is no replay."""


def encode(replay: Replay) -> bytes:
    """The bytes of a replay file."""
    header = json.dumps(_header(replay), separators=(",", ":")).encode()
    payload = struct.pack("<I", len(header)) + header + _pack(replay.actions_T2A)
    packed = zlib.compress(payload, 9)
    return MAGIC + hashlib.sha256(packed).digest()[:_CHECKSUM_BYTES] + packed


def decode(content: bytes, name: str = "the replay") -> Replay:
    """Reads what `encode` wrote. Raises `DataCorrupt` or `VersionMismatch`, calling the file
    `name`.
    """
    if not content.startswith(MAGIC):
        raise DataCorrupt(f"{name} is no replay of Kumite: it does not begin as one")
    start = len(MAGIC) + _CHECKSUM_BYTES
    checksum, packed = content[len(MAGIC) : start], content[start:]
    if hashlib.sha256(packed).digest()[:_CHECKSUM_BYTES] != checksum:
        raise DataCorrupt(f"{name} is damaged or cut short: get another copy of it")
    try:
        payload = zlib.decompressobj().decompress(packed, _MOST_BYTES)
        (length,) = struct.unpack_from("<I", payload)
        header = json.loads(payload[4 : 4 + length])
        if header["format"] == FORMAT:
            return _replay(header, payload[4 + length :])
    except (zlib.error, ValueError, KeyError, TypeError, struct.error) as error:
        raise DataCorrupt(
            f"{name} holds no match that can be read ({error}): get another copy"
        ) from None
    raise VersionMismatch(
        f"{name} has format {header['format']}, this Kumite reads {FORMAT}: use a newer one"
    )


def save_replay(path: Path | str, replay: Replay) -> None:
    """Writes the file whole or not at all."""
    write_whole(Path(path), encode(replay))


def load_replay(path: Path | str) -> Replay:
    """Reads a file. Raises `NotFound`, `DataCorrupt` or `VersionMismatch`."""
    try:
        content = Path(path).read_bytes()
    except FileNotFoundError:
        raise NotFound(f"there is no replay {path}: check the path") from None
    except OSError as error:
        raise InvalidInput(f"{path} can't be read ({error.strerror}): name a replay file") from None
    return decode(content, str(path))


def _header(replay: Replay) -> dict[str, Any]:
    recipe = replay.recipe
    return {
        "format": FORMAT,
        "recipe": {**vars(recipe), "options": dict(recipe.options)},
        "seats": [vars(seat) for seat in replay.seats],
        "seed": replay.seed,
        "match_id": replay.match_id,
        "shape": list(replay.actions_T2A.shape),
        "outcome": replay.outcome,
        "final": replay.final,
        "disturbed": replay.disturbed,
    }


def _pack(actions_T2A: NDArray[np.uint8]) -> bytes:
    """A key after the other, each the frames in which it changed: held keys are runs of zeros."""
    planes_2AT = np.moveaxis(actions_T2A.astype(np.bool_), 0, -1)
    changed_2AT = np.diff(planes_2AT, axis=-1, prepend=False)
    return np.packbits(changed_2AT).tobytes()


def _unpack(packed: bytes, shape: list[int]) -> NDArray[np.uint8]:
    frames, seats, size = shape
    if len(packed) != -(-frames * seats * size // 8):
        raise ValueError(f"{len(packed)} bytes of actions do not make {shape}")
    changed = np.unpackbits(np.frombuffer(packed, np.uint8), count=frames * seats * size)
    planes_2AT = np.bitwise_xor.accumulate(changed.reshape(seats, size, frames), axis=-1)
    return np.ascontiguousarray(np.moveaxis(planes_2AT, -1, 0))


def _replay(header: dict[str, Any], packed: bytes) -> Replay:
    first, second = (Contender(**seat) for seat in header["seats"])
    return Replay(
        recipe=Recipe(**header["recipe"]),
        seats=(first, second),
        seed=int(header["seed"]),
        actions_T2A=_unpack(packed, header["shape"]),
        outcome=float(header["outcome"]),
        final=header["final"],
        match_id=header["match_id"],
        disturbed=tuple((seat, at, count) for seat, at, count in header["disturbed"]),
    )
