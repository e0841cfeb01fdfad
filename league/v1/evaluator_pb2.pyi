from league.v1 import types_pb2 as _types_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Evaluation(_message.Message):
    __slots__ = ("number", "player", "opponents", "matches", "book", "by", "at", "state", "reason")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    PLAYER_FIELD_NUMBER: _ClassVar[int]
    OPPONENTS_FIELD_NUMBER: _ClassVar[int]
    MATCHES_FIELD_NUMBER: _ClassVar[int]
    BOOK_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    number: int
    player: str
    opponents: _containers.RepeatedScalarFieldContainer[str]
    matches: int
    book: _types_pb2.Book
    by: str
    at: float
    state: str
    reason: str
    def __init__(self, number: _Optional[int] = ..., player: _Optional[str] = ..., opponents: _Optional[_Iterable[str]] = ..., matches: _Optional[int] = ..., book: _Optional[_Union[_types_pb2.Book, str]] = ..., by: _Optional[str] = ..., at: _Optional[float] = ..., state: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class Measured(_message.Message):
    __slots__ = ("value", "low", "high")
    VALUE_FIELD_NUMBER: _ClassVar[int]
    LOW_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    value: float
    low: float
    high: float
    def __init__(self, value: _Optional[float] = ..., low: _Optional[float] = ..., high: _Optional[float] = ...) -> None: ...

class OpponentScore(_message.Message):
    __slots__ = ("opponent", "matches", "wins", "draws", "losses", "win_rate", "means")
    class MeansEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    OPPONENT_FIELD_NUMBER: _ClassVar[int]
    MATCHES_FIELD_NUMBER: _ClassVar[int]
    WINS_FIELD_NUMBER: _ClassVar[int]
    DRAWS_FIELD_NUMBER: _ClassVar[int]
    LOSSES_FIELD_NUMBER: _ClassVar[int]
    WIN_RATE_FIELD_NUMBER: _ClassVar[int]
    MEANS_FIELD_NUMBER: _ClassVar[int]
    opponent: str
    matches: int
    wins: int
    draws: int
    losses: int
    win_rate: Measured
    means: _containers.ScalarMap[str, float]
    def __init__(self, opponent: _Optional[str] = ..., matches: _Optional[int] = ..., wins: _Optional[int] = ..., draws: _Optional[int] = ..., losses: _Optional[int] = ..., win_rate: _Optional[_Union[Measured, _Mapping]] = ..., means: _Optional[_Mapping[str, float]] = ...) -> None: ...

class Report(_message.Message):
    __slots__ = ("evaluation", "scores", "matches_done", "matches_total")
    EVALUATION_FIELD_NUMBER: _ClassVar[int]
    SCORES_FIELD_NUMBER: _ClassVar[int]
    MATCHES_DONE_FIELD_NUMBER: _ClassVar[int]
    MATCHES_TOTAL_FIELD_NUMBER: _ClassVar[int]
    evaluation: Evaluation
    scores: _containers.RepeatedCompositeFieldContainer[OpponentScore]
    matches_done: int
    matches_total: int
    def __init__(self, evaluation: _Optional[_Union[Evaluation, _Mapping]] = ..., scores: _Optional[_Iterable[_Union[OpponentScore, _Mapping]]] = ..., matches_done: _Optional[int] = ..., matches_total: _Optional[int] = ...) -> None: ...

class RequestEvaluationRequest(_message.Message):
    __slots__ = ("request_id", "player", "opponents", "matches", "book", "by")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    PLAYER_FIELD_NUMBER: _ClassVar[int]
    OPPONENTS_FIELD_NUMBER: _ClassVar[int]
    MATCHES_FIELD_NUMBER: _ClassVar[int]
    BOOK_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    player: str
    opponents: _containers.RepeatedScalarFieldContainer[str]
    matches: int
    book: _types_pb2.Book
    by: str
    def __init__(self, request_id: _Optional[str] = ..., player: _Optional[str] = ..., opponents: _Optional[_Iterable[str]] = ..., matches: _Optional[int] = ..., book: _Optional[_Union[_types_pb2.Book, str]] = ..., by: _Optional[str] = ...) -> None: ...

class RequestEvaluationResponse(_message.Message):
    __slots__ = ("evaluation",)
    EVALUATION_FIELD_NUMBER: _ClassVar[int]
    evaluation: Evaluation
    def __init__(self, evaluation: _Optional[_Union[Evaluation, _Mapping]] = ...) -> None: ...

class CancelEvaluationRequest(_message.Message):
    __slots__ = ("request_id", "number", "by", "reason")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    number: int
    by: str
    reason: str
    def __init__(self, request_id: _Optional[str] = ..., number: _Optional[int] = ..., by: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class CancelEvaluationResponse(_message.Message):
    __slots__ = ("evaluation",)
    EVALUATION_FIELD_NUMBER: _ClassVar[int]
    evaluation: Evaluation
    def __init__(self, evaluation: _Optional[_Union[Evaluation, _Mapping]] = ...) -> None: ...

class GetReportRequest(_message.Message):
    __slots__ = ("number",)
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    number: int
    def __init__(self, number: _Optional[int] = ...) -> None: ...

class GetReportResponse(_message.Message):
    __slots__ = ("report",)
    REPORT_FIELD_NUMBER: _ClassVar[int]
    report: Report
    def __init__(self, report: _Optional[_Union[Report, _Mapping]] = ...) -> None: ...

class ListReportsRequest(_message.Message):
    __slots__ = ("open_only",)
    OPEN_ONLY_FIELD_NUMBER: _ClassVar[int]
    open_only: bool
    def __init__(self, open_only: _Optional[bool] = ...) -> None: ...

class ListReportsResponse(_message.Message):
    __slots__ = ("reports",)
    REPORTS_FIELD_NUMBER: _ClassVar[int]
    reports: _containers.RepeatedCompositeFieldContainer[Report]
    def __init__(self, reports: _Optional[_Iterable[_Union[Report, _Mapping]]] = ...) -> None: ...

class WatchReportsRequest(_message.Message):
    __slots__ = ("number",)
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    number: int
    def __init__(self, number: _Optional[int] = ...) -> None: ...

class GetEvaluatorStatusRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetEvaluatorStatusResponse(_message.Message):
    __slots__ = ("queue", "current", "matches_done", "matches_total", "snapshots_done", "drained", "unspent")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    CURRENT_FIELD_NUMBER: _ClassVar[int]
    MATCHES_DONE_FIELD_NUMBER: _ClassVar[int]
    MATCHES_TOTAL_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOTS_DONE_FIELD_NUMBER: _ClassVar[int]
    DRAINED_FIELD_NUMBER: _ClassVar[int]
    UNSPENT_FIELD_NUMBER: _ClassVar[int]
    queue: _containers.RepeatedScalarFieldContainer[str]
    current: str
    matches_done: int
    matches_total: int
    snapshots_done: int
    drained: bool
    unspent: int
    def __init__(self, queue: _Optional[_Iterable[str]] = ..., current: _Optional[str] = ..., matches_done: _Optional[int] = ..., matches_total: _Optional[int] = ..., snapshots_done: _Optional[int] = ..., drained: _Optional[bool] = ..., unspent: _Optional[int] = ...) -> None: ...
