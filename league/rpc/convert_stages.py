"""Between the values of `league.stages` and protobuf messages; as `league.rpc.convert` for all
others.
"""

from __future__ import annotations

from typing import Protocol

from league.errors import InvalidInput
from league.stages import CurriculumStatus, Place, Stage, StageRequest
from league.v1 import matchmaker_pb2 as m
from league.v1 import types_pb2 as t

Asking = m.HeartbeatResponse | m.EnterStageResponse | m.AskStageResponse | t.Curriculum
"""Messages with a field `asked`."""


class Placed(Protocol):
    """Messages that say where in its curriculum a learner is."""

    index: int
    since_step: int
    by_hand: bool
    obeyed: int


def to_stage(stage: Stage) -> t.Stage:
    return t.Stage(
        name=stage.name,
        mix=stage.mix,
        reward=stage.reward,
        until_opponent=stage.until_opponent,
        until_win_rate=stage.until_win_rate,
        min_matches=stage.min_matches,
        max_steps=stage.max_steps or 0,
        manual=stage.manual,
    )


def from_stage(message: t.Stage) -> Stage:
    return Stage(
        name=message.name,
        mix=message.mix,
        reward=message.reward,
        until_opponent=message.until_opponent,
        until_win_rate=message.until_win_rate,
        min_matches=message.min_matches,
        max_steps=message.max_steps or None,
        manual=message.manual,
    )


def from_place(message: Placed) -> Place:
    return Place(
        index=message.index,
        since_step=message.since_step,
        by_hand=message.by_hand,
        obeyed=message.obeyed,
    )


def to_request(asked: StageRequest | None) -> t.StageRequest | None:
    if asked is None:
        return None
    return t.StageRequest(number=asked.number, stage=asked.stage, by=asked.by, at=asked.at)


def from_request(message: t.StageRequest) -> StageRequest:
    return StageRequest(number=message.number, stage=message.stage, by=message.by, at=message.at)


def request_of(message: Asking) -> StageRequest | None:
    """What a message's `asked` holds, None when it is not set."""
    return from_request(message.asked) if message.HasField("asked") else None


def to_curriculum(status: CurriculumStatus) -> t.Curriculum:
    place = status.place
    return t.Curriculum(
        player=status.player,
        stages=map(to_stage, status.stages),
        index=place.index,
        since_step=place.since_step,
        by_hand=place.by_hand,
        obeyed=place.obeyed,
        asked=to_request(status.asked),
        step=status.step,
        done=status.done,
    )


def from_curriculum(message: t.Curriculum) -> CurriculumStatus:
    """Raises `InvalidInput` when the stage that is on is none of the stages."""
    if not 0 <= message.index < len(message.stages):
        raise InvalidInput(f"{message.player} is in stage {message.index} of {len(message.stages)}")
    return CurriculumStatus(
        player=message.player,
        stages=tuple(map(from_stage, message.stages)),
        place=from_place(message),
        asked=request_of(message),
        step=message.step,
        done=message.done,
    )
