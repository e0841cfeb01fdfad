from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class RequestEvaluationRequest(_message.Message):
    __slots__ = ("player",)
    PLAYER_FIELD_NUMBER: _ClassVar[int]
    player: str
    def __init__(self, player: _Optional[str] = ...) -> None: ...

class RequestEvaluationResponse(_message.Message):
    __slots__ = ("place",)
    PLACE_FIELD_NUMBER: _ClassVar[int]
    place: int
    def __init__(self, place: _Optional[int] = ...) -> None: ...

class GetEvaluatorStatusRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetEvaluatorStatusResponse(_message.Message):
    __slots__ = ("queue", "current", "matches_done", "matches_total", "gauntlets_done", "drained")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    CURRENT_FIELD_NUMBER: _ClassVar[int]
    MATCHES_DONE_FIELD_NUMBER: _ClassVar[int]
    MATCHES_TOTAL_FIELD_NUMBER: _ClassVar[int]
    GAUNTLETS_DONE_FIELD_NUMBER: _ClassVar[int]
    DRAINED_FIELD_NUMBER: _ClassVar[int]
    queue: _containers.RepeatedScalarFieldContainer[str]
    current: str
    matches_done: int
    matches_total: int
    gauntlets_done: int
    drained: bool
    def __init__(self, queue: _Optional[_Iterable[str]] = ..., current: _Optional[str] = ..., matches_done: _Optional[int] = ..., matches_total: _Optional[int] = ..., gauntlets_done: _Optional[int] = ..., drained: _Optional[bool] = ...) -> None: ...
