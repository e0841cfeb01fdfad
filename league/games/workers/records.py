"""Defines the records in which a learner and its game workers exchange the arrays of matches.

Shape suffixes: R rows of a worker, 2 seats, A action width.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from league.errors import DataCorrupt, InvalidInput
from league.games.base import CHOICE, BatchedGame, GameSpec

RESET = np.dtype([("seed", "<u8"), ("begins", "?"), ("bots", "i1", (2,))])
"""A row of a request to reset: the seed of its match, whether a match begins, and its bots."""


def step_type(spec: GameSpec) -> np.dtype[np.void]:
    """Returns the dtype of a row in a request to step."""
    return np.dtype(
        [
            ("actions", "u1", (2, spec.action_size)),
            ("bots", "i1", (2,)),
            ("idle", "?"),
            ("next_seed", "<u8"),
        ]
    )


def row_type(spec: GameSpec) -> np.dtype[np.void]:
    """Returns the dtype of a row in a response to a reset or a step."""
    choices: list[Any] = [("legal", "?", (2, spec.action_size))]
    return np.dtype(
        [
            ("observations", "<f4", (2, spec.observation_size)),
            ("terms", "<f4", (2, len(spec.reward_terms))),
            ("stats", "<f4", (2, len(spec.stats))),
            ("next_seed", "<u8"),
            ("frames", "<i4"),
            ("ended", "?"),
            ("is_played", "?"),  # whether `played` is known
            ("played", "u1", (2, spec.action_size)),
            *(choices if spec.action_kind == CHOICE else []),
        ]
    )


def ended_type(spec: GameSpec) -> np.dtype[np.void]:
    """Returns the dtype of a match that has ended, in a response to a step."""
    return np.dtype(
        [
            ("observations", "<f4", (2, spec.observation_size)),
            ("stats", "<f4", (2, len(spec.stats))),
            ("frames", "<i4"),
            ("outcome", "<f4"),
        ]
    )


def rows_of(game: BatchedGame) -> NDArray[np.void]:
    """Returns the state of all matches as records of `row_type`."""
    rows_R = np.zeros(game.num_matches, row_type(game.spec))
    rows_R["observations"], rows_R["terms"] = game.observations_N2O, game.reward_terms_N2K
    rows_R["stats"], rows_R["next_seed"] = game.stats_N2S, game.next_seeds_N
    rows_R["frames"], rows_R["ended"] = game.frames_N, game.ended_N
    if game.legal_N2A is not None:
        rows_R["legal"] = game.legal_N2A
    played_N2A = game.played_N2A()
    if played_N2A is not None:
        rows_R["is_played"], rows_R["played"] = True, played_N2A
    return rows_R


def ends_of(game: BatchedGame) -> NDArray[np.void]:
    """Returns the matches that ended in the newest step as records of `ended_type`."""
    ended = np.flatnonzero(game.ended_N)
    ends_R = np.zeros(len(ended), ended_type(game.spec))
    ends_R["observations"] = game.final_observations_N2O[ended]
    ends_R["stats"], ends_R["frames"] = game.final_stats_N2S[ended], game.final_frames_N[ended]
    ends_R["outcome"] = game.outcomes_N[ended]
    return ends_R


def checked_rows(
    content: bytes, kind: np.dtype[np.void], count: int, max_frames: int
) -> NDArray[np.void]:
    """Reads the records of a response.

    Args:
        content: the records.
        kind: `row_type` or `ended_type`.
        count: number of records.
        max_frames: the time limit of a match.

    Raises:
        InvalidInput: the records have a wrong size, or numbers that no game has. The message says
            what was sent.
    """
    if len(content) != kind.itemsize * count:
        raise InvalidInput(f"{len(content)} bytes: {kind.itemsize * count} are wanted")
    rows_R, names = np.frombuffer(content, kind), kind.names or ()
    for field in ("observations", "terms", "stats", "outcome"):
        if field in names and not np.isfinite(rows_R[field]).all():
            raise InvalidInput(f"NaN or infinity in {field}")
    if "outcome" in names and not np.isin(rows_R["outcome"], (0.0, 0.5, 1.0)).all():
        raise InvalidInput("an unknown outcome")
    if "legal" in names and not rows_R["legal"].any(-1).all():
        raise InvalidInput("a seat without a legal choice")
    if not ((rows_R["frames"] >= 0) & (rows_R["frames"] <= max_frames)).all():
        raise InvalidInput("a match of an impossible length")
    return rows_R


def rules_digest(game: BatchedGame) -> str:
    """Returns a digest of the game's description, rules and options.

    The digest does not cover the game's name, which may hold a folder of one machine.
    """
    name = game.spec.name
    shown = asdict(replace(game.spec, name="", reward_presets={}))
    rules = game.rules_text().replace(name, "", 1)
    text = json.dumps([shown, rules], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def state_bytes(state: Mapping[str, NDArray]) -> bytes:
    """Writes arrays as bytes."""
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, **state)
    return file.getvalue()


def state_of(content: bytes) -> dict[str, NDArray]:
    """Reads the arrays that `state_bytes` wrote. Raises `DataCorrupt` for other bytes."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if any(part.compress_type != zipfile.ZIP_STORED for part in archive.infolist()):
                raise ValueError("it is compressed")
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            return dict(arrays)
    except Exception as error:  # NumPy raises half a dozen kinds for damaged bytes
        raise DataCorrupt(f"the saved matches are damaged ({type(error).__name__})") from None
