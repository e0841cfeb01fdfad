"""The file of a replay: `MAGIC`, the format's number, the payload's length and checksum, and the
payload, a JSON header and the actions as one bit each, compressed. Shape suffixes: T frames, 2
seats, A action width.
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
FORMAT = 1
SUFFIX = ".replay"
_HEAD = struct.Struct(f"<{len(MAGIC)}sBI16s")  # magic, format, payload's length and checksum
_MOST_BYTES = 64 * 2**20
"""Of an unpacked payload: the longest match has some 4 MB, more is no replay."""


def encode(replay: Replay) -> bytes:
    """The bytes of a replay file."""
    header = json.dumps(_header(replay), separators=(",", ":")).encode()
    payload = struct.pack("<I", len(header)) + header + _pack(replay.actions_T2A)
    packed = zlib.compress(payload, 9)
    return _HEAD.pack(MAGIC, FORMAT, len(packed), hashlib.sha256(packed).digest()[:16]) + packed


def decode(content: bytes, name: str = "the replay") -> Replay:
    """Reads what `encode` wrote. Raises `DataCorrupt` or `VersionMismatch`, calling the file
    `name`.
    """
    if not content.startswith(MAGIC):
        raise DataCorrupt(f"{name} is no replay of Kumite: it does not begin as one")
    if len(content) < _HEAD.size:
        raise DataCorrupt(f"{name} is cut short: it ends within its first {_HEAD.size} bytes")
    _, number, length, checksum = _HEAD.unpack_from(content)
    if number != FORMAT:
        raise VersionMismatch(
            f"{name} has format {number}, this Kumite reads {FORMAT}: use a newer one"
        )
    packed = content[_HEAD.size :]
    if len(packed) < length:
        raise DataCorrupt(f"{name} is cut short: {len(packed)} of its {length} bytes are there")
    if len(packed) > length or hashlib.sha256(packed).digest()[:16] != checksum:
        raise DataCorrupt(
            f"{name} is damaged: its checksum does not fit, so get another copy of it"
        )
    try:
        return _replay(_unpack_payload(packed))
    except (zlib.error, ValueError, KeyError, TypeError, struct.error) as error:
        raise DataCorrupt(
            f"{name} holds no match that can be read ({error}): get another copy"
        ) from None


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
        "game": recipe.name,
        "version": recipe.version,
        "max_frames": recipe.max_frames,
        "options": dict(recipe.options),
        "seats": [{"name": s.name, "digest": s.digest, "bot": s.bot} for s in replay.seats],
        "seed": replay.seed,
        "match_id": replay.match_id,
        "shape": list(replay.actions_T2A.shape),
        "outcome": replay.outcome,
        "final": replay.final,
        **({"disturbed": replay.disturbed} if replay.disturbed else {}),
    }


def _pack(actions_T2A: NDArray[np.uint8]) -> bytes:
    """A key after the other, each the frames in which it changed: held keys are runs of zeros."""
    planes_2AT = np.moveaxis(actions_T2A.astype(np.bool_), 0, -1)
    changed_2AT = np.diff(planes_2AT, axis=-1, prepend=False)
    return np.packbits(changed_2AT).tobytes()


def _unpack(packed: bytes, shape: tuple[int, int, int]) -> NDArray[np.uint8]:
    frames, seats, size = shape
    if len(packed) != -(-frames * seats * size // 8):
        raise ValueError(f"{len(packed)} bytes of actions do not make {shape}")
    changed = np.unpackbits(np.frombuffer(packed, np.uint8), count=frames * seats * size)
    planes_2AT = np.bitwise_xor.accumulate(changed.reshape(seats, size, frames), axis=-1)
    return np.ascontiguousarray(np.moveaxis(planes_2AT, -1, 0))


def _unpack_payload(packed: bytes) -> bytes:
    payload = zlib.decompressobj().decompress(packed, _MOST_BYTES)
    if len(payload) >= _MOST_BYTES:
        raise ValueError(f"more than {_MOST_BYTES} bytes")
    return payload


def _replay(payload: bytes) -> Replay:
    (length,) = struct.unpack_from("<I", payload)
    header = json.loads(payload[4 : 4 + length])
    first, second = (Contender(**seat) for seat in header["seats"])
    frames, seats, size = header["shape"]
    if seats != 2 or frames < 1 or size < 1:
        raise ValueError(f"actions of shape {header['shape']}")
    return Replay(
        recipe=Recipe(
            name=header["game"],
            version=header["version"],
            max_frames=header["max_frames"],
            options=header["options"],
        ),
        seats=(first, second),
        seed=int(header["seed"]),
        actions_T2A=_unpack(payload[4 + length :], (frames, seats, size)),
        outcome=float(header["outcome"]),
        final=header["final"],
        match_id=header["match_id"],
        disturbed=tuple(_span(span, frames) for span in header.get("disturbed", ())),
    )


def _span(span: list[int], frames: int) -> tuple[int, int, int]:
    seat, first, count = map(int, span)
    if seat not in (0, 1) or not 0 <= first < first + count <= frames:
        raise ValueError(f"a disturbance {span} of {frames} frames")
    return seat, first, count
