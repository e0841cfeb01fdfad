"""Names of conversions that the servicers still call; see `league.rpc.convert`."""

from __future__ import annotations

from typing import Any

from league.rpc.convert import from_message, to_message
from league.stages import Place, Stage, StageRequest

to_stage = to_curriculum = to_message


def from_stage(message: Any) -> Stage:
    return from_message(Stage, message)


def from_place(message: Any) -> Place:
    return from_message(Place, message)


def to_request(asked: StageRequest | None) -> Any:
    return None if asked is None else to_message(asked)
