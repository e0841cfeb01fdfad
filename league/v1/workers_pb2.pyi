from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Work(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    WORK_UNSPECIFIED: _ClassVar[Work]
    WORK_OPEN: _ClassVar[Work]
    WORK_RESET: _ClassVar[Work]
    WORK_STEP: _ClassVar[Work]
    WORK_SAVE: _ClassVar[Work]
    WORK_LOAD: _ClassVar[Work]
    WORK_FRAME: _ClassVar[Work]
    WORK_FINAL_FRAME: _ClassVar[Work]
    WORK_CLIPPED: _ClassVar[Work]
WORK_UNSPECIFIED: Work
WORK_OPEN: Work
WORK_RESET: Work
WORK_STEP: Work
WORK_SAVE: Work
WORK_LOAD: Work
WORK_FRAME: Work
WORK_FINAL_FRAME: Work
WORK_CLIPPED: Work

class WorkRequest(_message.Message):
    __slots__ = ("work", "number", "rows", "state")
    WORK_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    work: Work
    number: int
    rows: bytes
    state: bytes
    def __init__(self, work: _Optional[_Union[Work, str]] = ..., number: _Optional[int] = ..., rows: _Optional[bytes] = ..., state: _Optional[bytes] = ...) -> None: ...

class WorkFailure(_message.Message):
    __slots__ = ("row", "reason")
    ROW_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    row: int
    reason: str
    def __init__(self, row: _Optional[int] = ..., reason: _Optional[str] = ...) -> None: ...

class WorkResponse(_message.Message):
    __slots__ = ("error", "game", "rules", "rows", "ended", "failures", "state", "text")
    ERROR_FIELD_NUMBER: _ClassVar[int]
    GAME_FIELD_NUMBER: _ClassVar[int]
    RULES_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    ENDED_FIELD_NUMBER: _ClassVar[int]
    FAILURES_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    error: str
    game: str
    rules: str
    rows: bytes
    ended: bytes
    failures: _containers.RepeatedCompositeFieldContainer[WorkFailure]
    state: bytes
    text: str
    def __init__(self, error: _Optional[str] = ..., game: _Optional[str] = ..., rules: _Optional[str] = ..., rows: _Optional[bytes] = ..., ended: _Optional[bytes] = ..., failures: _Optional[_Iterable[_Union[WorkFailure, _Mapping]]] = ..., state: _Optional[bytes] = ..., text: _Optional[str] = ...) -> None: ...
