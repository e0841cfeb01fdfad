"""Reads and writes the file of a replay.

The file consists of `MAGIC`, a checksum, and a compressed payload. The payload is a JSON header and
the actions, with a bit per frame for each key or choice. Shape suffixes: T frames, 2 seats, A
action width.
"""

from __future__ import annotations

import hashlib
import json
import struct
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from league.errors import DataCorrupt, InvalidInput, NotFound, VersionMismatch
from league.games.settings import Option, OwnGame, check_game_of_file
from league.replay.match import Contender, Recipe, Replay
from league.runs.files import first_fault, open_file, write_whole

MAGIC = b"KUMITE-REPLAY"
FORMAT = 2
SUFFIX = ".replay"
_CHECKSUM_BYTES = 16
_MOST_BYTES = 8 * 2**20
"""Largest size of a file and of its unpacked payload, in bytes. The longest match takes about 4 MB.
"""
_Word = Annotated[str, Field(max_length=500)]
_Frames = Annotated[int, Field(ge=0, le=10**7)]
_Length = Annotated[int, Field(ge=1, le=10**7)]
_Seat = Annotated[int, Field(ge=0, le=1)]


class _Part(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)


class _Recipe(_Part):
    name: _Word
    version: _Word
    max_frames: _Length | None
    options: dict[str, Option]


class _Contender(_Part):
    name: _Word
    digest: Annotated[str, Field(pattern="^([0-9a-f]{64})?$")]
    bot: _Word


class _Format(BaseModel):
    format: int


class _Header(_Part):
    format: int
    recipe: _Recipe
    seats: tuple[_Contender, _Contender]
    seed: Annotated[int, Field(ge=0, lt=2**64)]
    match_id: _Word
    shape: tuple[_Length, Annotated[int, Field(ge=2, le=2)], Annotated[int, Field(ge=1, le=65536)]]
    outcome: Annotated[float, Field(ge=0, le=1)]
    final: _Word
    disturbed: tuple[tuple[_Seat, _Frames, _Frames], ...]


def encode(replay: Replay) -> bytes:
    """Returns the bytes of a replay file."""
    header = json.dumps(_header(replay), separators=(",", ":")).encode()
    payload = struct.pack("<I", len(header)) + header + _pack(replay.actions_T2A)
    packed = zlib.compress(payload, 9)
    return MAGIC + hashlib.sha256(packed).digest()[:_CHECKSUM_BYTES] + packed


def decode(content: bytes, name: str = "the replay") -> Replay:
    """Reads a replay from the bytes that `encode` returned. `name` is the file's name in errors.

    Raises:
        DataCorrupt: the bytes are not a replay.
        VersionMismatch: the replay has another version of the format.
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
        header, actions = payload[4 : 4 + length], payload[4 + length :]
        found = _Format.model_validate_json(header).format
        if found == FORMAT:
            return _replay(_Header.model_validate_json(header), actions)
    except ValidationError as error:
        what = first_fault(error)
    except (zlib.error, ValueError, struct.error) as error:
        what = str(error)
    else:
        raise VersionMismatch(
            f"{name} has format {found}, this Kumite reads {FORMAT}: use a newer one"
        )
    raise DataCorrupt(f"{name} holds no match that can be read ({what}): get another copy")


def save_replay(path: Path | str, replay: Replay) -> None:
    """Writes a replay to a file. The file is written completely or not at all."""
    write_whole(Path(path), encode(replay))


def load_replay(path: Path | str, own: OwnGame | None = None) -> Replay:
    """Reads a file.

    Args:
        path: the file.
        own: returns settings whose game is allowed in addition to the built-in games. None leaves
            the check of the game to `Recipe.make`, for readers that don't play the match.

    Raises:
        NotFound: there is no such file.
        DataCorrupt: the file can't be read, or does not contain a match.
        VersionMismatch: the file has another version of the format.
        InvalidInput: the game of the file is not allowed.
    """
    try:
        with open_file(Path(path), _MOST_BYTES) as file:
            content = file.read()
    except FileNotFoundError:
        raise NotFound(f"there is no replay {path}: check the path") from None
    replay = decode(content, str(path))
    if own is None:
        return replay
    try:
        check_game_of_file(replay.recipe.name, replay.recipe.options, own)
    except InvalidInput as error:
        raise InvalidInput(f"{path} can't be played: {error}") from None
    return replace(replay, recipe=replace(replay.recipe, is_allowed=True))


def _header(replay: Replay) -> dict[str, Any]:
    recipe = replay.recipe
    return {
        "format": FORMAT,
        "recipe": {
            "name": recipe.name,
            "version": recipe.version,
            "max_frames": recipe.max_frames,
            "options": dict(recipe.options),
        },
        "seats": [vars(seat) for seat in replay.seats],
        "seed": replay.seed,
        "match_id": replay.match_id,
        "shape": list(replay.actions_T2A.shape),
        "outcome": replay.outcome,
        "final": replay.final,
        "disturbed": replay.disturbed,
    }


def _pack(actions_T2A: NDArray[np.uint8]) -> bytes:
    """Packs the actions key by key, with a bit for each frame: 1 if the key changed in this frame.
    A key that is held gives a run of zeros, which compresses well.
    """
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


def _replay(header: _Header, packed: bytes) -> Replay:
    first, second = (Contender(**seat.model_dump()) for seat in header.seats)
    return Replay(
        recipe=Recipe(**header.recipe.model_dump()),
        seats=(first, second),
        seed=header.seed,
        actions_T2A=_unpack(packed, header.shape),
        outcome=header.outcome,
        final=header.final,
        match_id=header.match_id,
        disturbed=header.disturbed,
    )
