from league.v1 import types_pb2 as _types_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class RegisterPlayersRequest(_message.Message):
    __slots__ = ("request_id", "players", "incarnation")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    PLAYERS_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    players: _containers.RepeatedCompositeFieldContainer[_types_pb2.Player]
    incarnation: int
    def __init__(self, request_id: _Optional[str] = ..., players: _Optional[_Iterable[_Union[_types_pb2.Player, _Mapping]]] = ..., incarnation: _Optional[int] = ...) -> None: ...

class RegisterPlayersResponse(_message.Message):
    __slots__ = ("players", "retired")
    PLAYERS_FIELD_NUMBER: _ClassVar[int]
    RETIRED_FIELD_NUMBER: _ClassVar[int]
    players: _containers.RepeatedCompositeFieldContainer[_types_pb2.Player]
    retired: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, players: _Optional[_Iterable[_Union[_types_pb2.Player, _Mapping]]] = ..., retired: _Optional[_Iterable[str]] = ...) -> None: ...

class OpenIncarnationRequest(_message.Message):
    __slots__ = ("request_id", "worker", "player", "checkpoint_step", "checkpoint_log_position", "carried_matches", "game_version")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    WORKER_FIELD_NUMBER: _ClassVar[int]
    PLAYER_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_STEP_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_LOG_POSITION_FIELD_NUMBER: _ClassVar[int]
    CARRIED_MATCHES_FIELD_NUMBER: _ClassVar[int]
    GAME_VERSION_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    worker: str
    player: str
    checkpoint_step: int
    checkpoint_log_position: int
    carried_matches: _containers.RepeatedScalarFieldContainer[str]
    game_version: str
    def __init__(self, request_id: _Optional[str] = ..., worker: _Optional[str] = ..., player: _Optional[str] = ..., checkpoint_step: _Optional[int] = ..., checkpoint_log_position: _Optional[int] = ..., carried_matches: _Optional[_Iterable[str]] = ..., game_version: _Optional[str] = ...) -> None: ...

class OpenIncarnationResponse(_message.Message):
    __slots__ = ("incarnation", "carried", "lost_results")
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    CARRIED_FIELD_NUMBER: _ClassVar[int]
    LOST_RESULTS_FIELD_NUMBER: _ClassVar[int]
    incarnation: int
    carried: _containers.RepeatedCompositeFieldContainer[_types_pb2.Assignment]
    lost_results: int
    def __init__(self, incarnation: _Optional[int] = ..., carried: _Optional[_Iterable[_Union[_types_pb2.Assignment, _Mapping]]] = ..., lost_results: _Optional[int] = ...) -> None: ...

class AcquireMatchesRequest(_message.Message):
    __slots__ = ("request_id", "incarnation", "count", "mix")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    MIX_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    incarnation: int
    count: int
    mix: str
    def __init__(self, request_id: _Optional[str] = ..., incarnation: _Optional[int] = ..., count: _Optional[int] = ..., mix: _Optional[str] = ...) -> None: ...

class AcquireMatchesResponse(_message.Message):
    __slots__ = ("assignments",)
    ASSIGNMENTS_FIELD_NUMBER: _ClassVar[int]
    assignments: _containers.RepeatedCompositeFieldContainer[_types_pb2.Assignment]
    def __init__(self, assignments: _Optional[_Iterable[_Union[_types_pb2.Assignment, _Mapping]]] = ...) -> None: ...

class Pairing(_message.Message):
    __slots__ = ("player", "opponent", "pairs", "book", "seed", "until")
    PLAYER_FIELD_NUMBER: _ClassVar[int]
    OPPONENT_FIELD_NUMBER: _ClassVar[int]
    PAIRS_FIELD_NUMBER: _ClassVar[int]
    BOOK_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    player: str
    opponent: str
    pairs: int
    book: _types_pb2.Book
    seed: int
    until: int
    def __init__(self, player: _Optional[str] = ..., opponent: _Optional[str] = ..., pairs: _Optional[int] = ..., book: _Optional[_Union[_types_pb2.Book, str]] = ..., seed: _Optional[int] = ..., until: _Optional[int] = ...) -> None: ...

class AcquirePairingsRequest(_message.Message):
    __slots__ = ("request_id", "incarnation", "pairings")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    PAIRINGS_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    incarnation: int
    pairings: _containers.RepeatedCompositeFieldContainer[Pairing]
    def __init__(self, request_id: _Optional[str] = ..., incarnation: _Optional[int] = ..., pairings: _Optional[_Iterable[_Union[Pairing, _Mapping]]] = ...) -> None: ...

class AcquirePairingsResponse(_message.Message):
    __slots__ = ("assignments",)
    ASSIGNMENTS_FIELD_NUMBER: _ClassVar[int]
    assignments: _containers.RepeatedCompositeFieldContainer[_types_pb2.Assignment]
    def __init__(self, assignments: _Optional[_Iterable[_Union[_types_pb2.Assignment, _Mapping]]] = ...) -> None: ...

class ReleaseMatchesRequest(_message.Message):
    __slots__ = ("request_id", "incarnation", "match_ids", "reason")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    MATCH_IDS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    incarnation: int
    match_ids: _containers.RepeatedScalarFieldContainer[str]
    reason: str
    def __init__(self, request_id: _Optional[str] = ..., incarnation: _Optional[int] = ..., match_ids: _Optional[_Iterable[str]] = ..., reason: _Optional[str] = ...) -> None: ...

class ReleaseMatchesResponse(_message.Message):
    __slots__ = ("released",)
    RELEASED_FIELD_NUMBER: _ClassVar[int]
    released: int
    def __init__(self, released: _Optional[int] = ...) -> None: ...

class ReportResultsRequest(_message.Message):
    __slots__ = ("request_id", "incarnation", "results")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    incarnation: int
    results: _containers.RepeatedCompositeFieldContainer[_types_pb2.Result]
    def __init__(self, request_id: _Optional[str] = ..., incarnation: _Optional[int] = ..., results: _Optional[_Iterable[_Union[_types_pb2.Result, _Mapping]]] = ...) -> None: ...

class ReportResultsResponse(_message.Message):
    __slots__ = ("verdicts", "log_position")
    VERDICTS_FIELD_NUMBER: _ClassVar[int]
    LOG_POSITION_FIELD_NUMBER: _ClassVar[int]
    verdicts: _containers.RepeatedCompositeFieldContainer[_types_pb2.ResultVerdict]
    log_position: int
    def __init__(self, verdicts: _Optional[_Iterable[_Union[_types_pb2.ResultVerdict, _Mapping]]] = ..., log_position: _Optional[int] = ...) -> None: ...

class HeartbeatRequest(_message.Message):
    __slots__ = ("incarnation", "progress", "step", "mix", "activity", "metrics", "node")
    class MetricsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    MIX_FIELD_NUMBER: _ClassVar[int]
    ACTIVITY_FIELD_NUMBER: _ClassVar[int]
    METRICS_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    incarnation: int
    progress: int
    step: int
    mix: str
    activity: str
    metrics: _containers.ScalarMap[str, float]
    node: str
    def __init__(self, incarnation: _Optional[int] = ..., progress: _Optional[int] = ..., step: _Optional[int] = ..., mix: _Optional[str] = ..., activity: _Optional[str] = ..., metrics: _Optional[_Mapping[str, float]] = ..., node: _Optional[str] = ...) -> None: ...

class HeartbeatResponse(_message.Message):
    __slots__ = ("fenced", "lease_deadline", "asked", "paused")
    FENCED_FIELD_NUMBER: _ClassVar[int]
    LEASE_DEADLINE_FIELD_NUMBER: _ClassVar[int]
    ASKED_FIELD_NUMBER: _ClassVar[int]
    PAUSED_FIELD_NUMBER: _ClassVar[int]
    fenced: bool
    lease_deadline: float
    asked: _types_pb2.StageRequest
    paused: bool
    def __init__(self, fenced: _Optional[bool] = ..., lease_deadline: _Optional[float] = ..., asked: _Optional[_Union[_types_pb2.StageRequest, _Mapping]] = ..., paused: _Optional[bool] = ...) -> None: ...

class KeepReferencesRequest(_message.Message):
    __slots__ = ("request_id", "incarnation", "names")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    NAMES_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    incarnation: int
    names: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, request_id: _Optional[str] = ..., incarnation: _Optional[int] = ..., names: _Optional[_Iterable[str]] = ...) -> None: ...

class KeepReferencesResponse(_message.Message):
    __slots__ = ("retired", "returned")
    RETIRED_FIELD_NUMBER: _ClassVar[int]
    RETURNED_FIELD_NUMBER: _ClassVar[int]
    retired: _containers.RepeatedScalarFieldContainer[str]
    returned: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, retired: _Optional[_Iterable[str]] = ..., returned: _Optional[_Iterable[str]] = ...) -> None: ...

class EnterStageRequest(_message.Message):
    __slots__ = ("request_id", "incarnation", "step", "stages", "index", "since_step", "by_hand", "obeyed", "reason")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    STAGES_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    SINCE_STEP_FIELD_NUMBER: _ClassVar[int]
    BY_HAND_FIELD_NUMBER: _ClassVar[int]
    OBEYED_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    incarnation: int
    step: int
    stages: _containers.RepeatedCompositeFieldContainer[_types_pb2.Stage]
    index: int
    since_step: int
    by_hand: bool
    obeyed: int
    reason: str
    def __init__(self, request_id: _Optional[str] = ..., incarnation: _Optional[int] = ..., step: _Optional[int] = ..., stages: _Optional[_Iterable[_Union[_types_pb2.Stage, _Mapping]]] = ..., index: _Optional[int] = ..., since_step: _Optional[int] = ..., by_hand: _Optional[bool] = ..., obeyed: _Optional[int] = ..., reason: _Optional[str] = ...) -> None: ...

class EnterStageResponse(_message.Message):
    __slots__ = ("asked",)
    ASKED_FIELD_NUMBER: _ClassVar[int]
    asked: _types_pb2.StageRequest
    def __init__(self, asked: _Optional[_Union[_types_pb2.StageRequest, _Mapping]] = ...) -> None: ...

class CompareMemberRequest(_message.Message):
    __slots__ = ("request_id", "incarnation", "step", "last_step", "values", "applied")
    class ValuesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    LAST_STEP_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    APPLIED_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    incarnation: int
    step: int
    last_step: int
    values: _containers.ScalarMap[str, float]
    applied: int
    def __init__(self, request_id: _Optional[str] = ..., incarnation: _Optional[int] = ..., step: _Optional[int] = ..., last_step: _Optional[int] = ..., values: _Optional[_Mapping[str, float]] = ..., applied: _Optional[int] = ...) -> None: ...

class CompareMemberResponse(_message.Message):
    __slots__ = ("copy",)
    COPY_FIELD_NUMBER: _ClassVar[int]
    copy: MemberCopy
    def __init__(self, copy: _Optional[_Union[MemberCopy, _Mapping]] = ...) -> None: ...

class MemberCopy(_message.Message):
    __slots__ = ("number", "player", "step", "source", "digest", "values", "score", "low", "high", "confidence", "matches", "at")
    class ValuesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    PLAYER_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    LOW_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    MATCHES_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    number: int
    player: str
    step: int
    source: str
    digest: str
    values: _containers.ScalarMap[str, float]
    score: float
    low: float
    high: float
    confidence: float
    matches: int
    at: float
    def __init__(self, number: _Optional[int] = ..., player: _Optional[str] = ..., step: _Optional[int] = ..., source: _Optional[str] = ..., digest: _Optional[str] = ..., values: _Optional[_Mapping[str, float]] = ..., score: _Optional[float] = ..., low: _Optional[float] = ..., high: _Optional[float] = ..., confidence: _Optional[float] = ..., matches: _Optional[int] = ..., at: _Optional[float] = ...) -> None: ...

class AskStageRequest(_message.Message):
    __slots__ = ("request_id", "player", "stage", "by")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    PLAYER_FIELD_NUMBER: _ClassVar[int]
    STAGE_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    player: str
    stage: str
    by: str
    def __init__(self, request_id: _Optional[str] = ..., player: _Optional[str] = ..., stage: _Optional[str] = ..., by: _Optional[str] = ...) -> None: ...

class AskStageResponse(_message.Message):
    __slots__ = ("asked",)
    ASKED_FIELD_NUMBER: _ClassVar[int]
    asked: _types_pb2.StageRequest
    def __init__(self, asked: _Optional[_Union[_types_pb2.StageRequest, _Mapping]] = ...) -> None: ...

class SetMixRequest(_message.Message):
    __slots__ = ("request_id", "mix", "weights", "by")
    class WeightsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    MIX_FIELD_NUMBER: _ClassVar[int]
    WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    mix: str
    weights: _containers.ScalarMap[str, float]
    by: str
    def __init__(self, request_id: _Optional[str] = ..., mix: _Optional[str] = ..., weights: _Optional[_Mapping[str, float]] = ..., by: _Optional[str] = ...) -> None: ...

class SetMixResponse(_message.Message):
    __slots__ = ("change",)
    CHANGE_FIELD_NUMBER: _ClassVar[int]
    change: MixChange
    def __init__(self, change: _Optional[_Union[MixChange, _Mapping]] = ...) -> None: ...

class MixChange(_message.Message):
    __slots__ = ("mix", "number", "at", "by", "weights")
    class WeightsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    MIX_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    mix: str
    number: int
    at: float
    by: str
    weights: _containers.ScalarMap[str, float]
    def __init__(self, mix: _Optional[str] = ..., number: _Optional[int] = ..., at: _Optional[float] = ..., by: _Optional[str] = ..., weights: _Optional[_Mapping[str, float]] = ...) -> None: ...

class PauseLearnersRequest(_message.Message):
    __slots__ = ("request_id", "resume", "by")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    RESUME_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    resume: bool
    by: str
    def __init__(self, request_id: _Optional[str] = ..., resume: _Optional[bool] = ..., by: _Optional[str] = ...) -> None: ...

class PauseLearnersResponse(_message.Message):
    __slots__ = ("pause",)
    PAUSE_FIELD_NUMBER: _ClassVar[int]
    pause: Pause
    def __init__(self, pause: _Optional[_Union[Pause, _Mapping]] = ...) -> None: ...

class Pause(_message.Message):
    __slots__ = ("by", "at")
    BY_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    by: str
    at: float
    def __init__(self, by: _Optional[str] = ..., at: _Optional[float] = ...) -> None: ...

class PinRatingRequest(_message.Message):
    __slots__ = ("request_id", "player", "mu", "unpin", "by")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    PLAYER_FIELD_NUMBER: _ClassVar[int]
    MU_FIELD_NUMBER: _ClassVar[int]
    UNPIN_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    player: str
    mu: float
    unpin: bool
    by: str
    def __init__(self, request_id: _Optional[str] = ..., player: _Optional[str] = ..., mu: _Optional[float] = ..., unpin: _Optional[bool] = ..., by: _Optional[str] = ...) -> None: ...

class PinRatingResponse(_message.Message):
    __slots__ = ("log_position",)
    LOG_POSITION_FIELD_NUMBER: _ClassVar[int]
    log_position: int
    def __init__(self, log_position: _Optional[int] = ...) -> None: ...

class QuarantineRequest(_message.Message):
    __slots__ = ("request_id", "player", "release", "reason", "by")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    PLAYER_FIELD_NUMBER: _ClassVar[int]
    RELEASE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    player: str
    release: bool
    reason: str
    by: str
    def __init__(self, request_id: _Optional[str] = ..., player: _Optional[str] = ..., release: _Optional[bool] = ..., reason: _Optional[str] = ..., by: _Optional[str] = ...) -> None: ...

class QuarantineResponse(_message.Message):
    __slots__ = ("state",)
    STATE_FIELD_NUMBER: _ClassVar[int]
    state: _types_pb2.PlayerState
    def __init__(self, state: _Optional[_Union[_types_pb2.PlayerState, str]] = ...) -> None: ...

class AddRivalRequest(_message.Message):
    __slots__ = ("request_id", "player", "by")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    PLAYER_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    player: _types_pb2.Player
    by: str
    def __init__(self, request_id: _Optional[str] = ..., player: _Optional[_Union[_types_pb2.Player, _Mapping]] = ..., by: _Optional[str] = ...) -> None: ...

class AddRivalResponse(_message.Message):
    __slots__ = ("state",)
    STATE_FIELD_NUMBER: _ClassVar[int]
    state: _types_pb2.PlayerState
    def __init__(self, state: _Optional[_Union[_types_pb2.PlayerState, str]] = ...) -> None: ...

class RemoveRivalRequest(_message.Message):
    __slots__ = ("request_id", "player", "by")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    PLAYER_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    player: str
    by: str
    def __init__(self, request_id: _Optional[str] = ..., player: _Optional[str] = ..., by: _Optional[str] = ...) -> None: ...

class RemoveRivalResponse(_message.Message):
    __slots__ = ("state",)
    STATE_FIELD_NUMBER: _ClassVar[int]
    state: _types_pb2.PlayerState
    def __init__(self, state: _Optional[_Union[_types_pb2.PlayerState, str]] = ...) -> None: ...

class QuarantineWorkerRequest(_message.Message):
    __slots__ = ("request_id", "worker", "release", "repaired", "reason", "by")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    WORKER_FIELD_NUMBER: _ClassVar[int]
    RELEASE_FIELD_NUMBER: _ClassVar[int]
    REPAIRED_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    worker: str
    release: bool
    repaired: bool
    reason: str
    by: str
    def __init__(self, request_id: _Optional[str] = ..., worker: _Optional[str] = ..., release: _Optional[bool] = ..., repaired: _Optional[bool] = ..., reason: _Optional[str] = ..., by: _Optional[str] = ...) -> None: ...

class QuarantineWorkerResponse(_message.Message):
    __slots__ = ("results",)
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    results: int
    def __init__(self, results: _Optional[int] = ...) -> None: ...

class GetCurriculaRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetCurriculaResponse(_message.Message):
    __slots__ = ("curricula",)
    CURRICULA_FIELD_NUMBER: _ClassVar[int]
    curricula: _containers.RepeatedCompositeFieldContainer[_types_pb2.Curriculum]
    def __init__(self, curricula: _Optional[_Iterable[_Union[_types_pb2.Curriculum, _Mapping]]] = ...) -> None: ...

class GetPopulationRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetPopulationResponse(_message.Message):
    __slots__ = ("members", "copies")
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    COPIES_FIELD_NUMBER: _ClassVar[int]
    members: _containers.RepeatedCompositeFieldContainer[Member]
    copies: _containers.RepeatedCompositeFieldContainer[MemberCopy]
    def __init__(self, members: _Optional[_Iterable[_Union[Member, _Mapping]]] = ..., copies: _Optional[_Iterable[_Union[MemberCopy, _Mapping]]] = ...) -> None: ...

class Member(_message.Message):
    __slots__ = ("player", "step", "values", "evaluation", "at")
    class ValuesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    PLAYER_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    EVALUATION_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    player: str
    step: int
    values: _containers.ScalarMap[str, float]
    evaluation: int
    at: float
    def __init__(self, player: _Optional[str] = ..., step: _Optional[int] = ..., values: _Optional[_Mapping[str, float]] = ..., evaluation: _Optional[int] = ..., at: _Optional[float] = ...) -> None: ...

class ListPlayersRequest(_message.Message):
    __slots__ = ("kinds", "states")
    KINDS_FIELD_NUMBER: _ClassVar[int]
    STATES_FIELD_NUMBER: _ClassVar[int]
    kinds: _containers.RepeatedScalarFieldContainer[_types_pb2.PlayerKind]
    states: _containers.RepeatedScalarFieldContainer[_types_pb2.PlayerState]
    def __init__(self, kinds: _Optional[_Iterable[_Union[_types_pb2.PlayerKind, str]]] = ..., states: _Optional[_Iterable[_Union[_types_pb2.PlayerState, str]]] = ...) -> None: ...

class ListPlayersResponse(_message.Message):
    __slots__ = ("players",)
    PLAYERS_FIELD_NUMBER: _ClassVar[int]
    players: _containers.RepeatedCompositeFieldContainer[_types_pb2.Player]
    def __init__(self, players: _Optional[_Iterable[_Union[_types_pb2.Player, _Mapping]]] = ...) -> None: ...

class GetRatingsRequest(_message.Message):
    __slots__ = ("book",)
    BOOK_FIELD_NUMBER: _ClassVar[int]
    book: _types_pb2.Book
    def __init__(self, book: _Optional[_Union[_types_pb2.Book, str]] = ...) -> None: ...

class GetRatingsResponse(_message.Message):
    __slots__ = ("ratings", "log_position", "anchors", "event_position")
    class AnchorsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    RATINGS_FIELD_NUMBER: _ClassVar[int]
    LOG_POSITION_FIELD_NUMBER: _ClassVar[int]
    ANCHORS_FIELD_NUMBER: _ClassVar[int]
    EVENT_POSITION_FIELD_NUMBER: _ClassVar[int]
    ratings: _containers.RepeatedCompositeFieldContainer[_types_pb2.Rating]
    log_position: int
    anchors: _containers.ScalarMap[str, float]
    event_position: int
    def __init__(self, ratings: _Optional[_Iterable[_Union[_types_pb2.Rating, _Mapping]]] = ..., log_position: _Optional[int] = ..., anchors: _Optional[_Mapping[str, float]] = ..., event_position: _Optional[int] = ...) -> None: ...

class GetPayoffRequest(_message.Message):
    __slots__ = ("book", "rows", "columns", "with_stats", "climb")
    BOOK_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    WITH_STATS_FIELD_NUMBER: _ClassVar[int]
    CLIMB_FIELD_NUMBER: _ClassVar[int]
    book: _types_pb2.Book
    rows: _containers.RepeatedScalarFieldContainer[str]
    columns: _containers.RepeatedScalarFieldContainer[str]
    with_stats: bool
    climb: bool
    def __init__(self, book: _Optional[_Union[_types_pb2.Book, str]] = ..., rows: _Optional[_Iterable[str]] = ..., columns: _Optional[_Iterable[str]] = ..., with_stats: _Optional[bool] = ..., climb: _Optional[bool] = ...) -> None: ...

class GetPayoffResponse(_message.Message):
    __slots__ = ("cells", "log_position", "event_position")
    CELLS_FIELD_NUMBER: _ClassVar[int]
    LOG_POSITION_FIELD_NUMBER: _ClassVar[int]
    EVENT_POSITION_FIELD_NUMBER: _ClassVar[int]
    cells: _containers.RepeatedCompositeFieldContainer[_types_pb2.PayoffCell]
    log_position: int
    event_position: int
    def __init__(self, cells: _Optional[_Iterable[_Union[_types_pb2.PayoffCell, _Mapping]]] = ..., log_position: _Optional[int] = ..., event_position: _Optional[int] = ...) -> None: ...

class GetMatchRequest(_message.Message):
    __slots__ = ("match_id",)
    MATCH_ID_FIELD_NUMBER: _ClassVar[int]
    match_id: str
    def __init__(self, match_id: _Optional[str] = ...) -> None: ...

class GetMatchResponse(_message.Message):
    __slots__ = ("assignment", "worker", "lease_state", "has_result", "result", "log_position", "lost_branch", "why_json")
    ASSIGNMENT_FIELD_NUMBER: _ClassVar[int]
    WORKER_FIELD_NUMBER: _ClassVar[int]
    LEASE_STATE_FIELD_NUMBER: _ClassVar[int]
    HAS_RESULT_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    LOG_POSITION_FIELD_NUMBER: _ClassVar[int]
    LOST_BRANCH_FIELD_NUMBER: _ClassVar[int]
    WHY_JSON_FIELD_NUMBER: _ClassVar[int]
    assignment: _types_pb2.Assignment
    worker: str
    lease_state: str
    has_result: bool
    result: _types_pb2.Result
    log_position: int
    lost_branch: bool
    why_json: str
    def __init__(self, assignment: _Optional[_Union[_types_pb2.Assignment, _Mapping]] = ..., worker: _Optional[str] = ..., lease_state: _Optional[str] = ..., has_result: _Optional[bool] = ..., result: _Optional[_Union[_types_pb2.Result, _Mapping]] = ..., log_position: _Optional[int] = ..., lost_branch: _Optional[bool] = ..., why_json: _Optional[str] = ...) -> None: ...

class ListMatchesRequest(_message.Message):
    __slots__ = ("player", "opponent", "book", "category", "before", "limit")
    PLAYER_FIELD_NUMBER: _ClassVar[int]
    OPPONENT_FIELD_NUMBER: _ClassVar[int]
    BOOK_FIELD_NUMBER: _ClassVar[int]
    CATEGORY_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    player: str
    opponent: str
    book: _types_pb2.Book
    category: str
    before: int
    limit: int
    def __init__(self, player: _Optional[str] = ..., opponent: _Optional[str] = ..., book: _Optional[_Union[_types_pb2.Book, str]] = ..., category: _Optional[str] = ..., before: _Optional[int] = ..., limit: _Optional[int] = ...) -> None: ...

class ListMatchesResponse(_message.Message):
    __slots__ = ("matches", "next_before")
    MATCHES_FIELD_NUMBER: _ClassVar[int]
    NEXT_BEFORE_FIELD_NUMBER: _ClassVar[int]
    matches: _containers.RepeatedCompositeFieldContainer[MatchLine]
    next_before: int
    def __init__(self, matches: _Optional[_Iterable[_Union[MatchLine, _Mapping]]] = ..., next_before: _Optional[int] = ...) -> None: ...

class MatchLine(_message.Message):
    __slots__ = ("position", "match_id", "seats", "book", "category", "outcome", "frames", "failed", "received_at")
    POSITION_FIELD_NUMBER: _ClassVar[int]
    MATCH_ID_FIELD_NUMBER: _ClassVar[int]
    SEATS_FIELD_NUMBER: _ClassVar[int]
    BOOK_FIELD_NUMBER: _ClassVar[int]
    CATEGORY_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    FRAMES_FIELD_NUMBER: _ClassVar[int]
    FAILED_FIELD_NUMBER: _ClassVar[int]
    RECEIVED_AT_FIELD_NUMBER: _ClassVar[int]
    position: int
    match_id: str
    seats: _containers.RepeatedScalarFieldContainer[str]
    book: _types_pb2.Book
    category: str
    outcome: float
    frames: int
    failed: bool
    received_at: float
    def __init__(self, position: _Optional[int] = ..., match_id: _Optional[str] = ..., seats: _Optional[_Iterable[str]] = ..., book: _Optional[_Union[_types_pb2.Book, str]] = ..., category: _Optional[str] = ..., outcome: _Optional[float] = ..., frames: _Optional[int] = ..., failed: _Optional[bool] = ..., received_at: _Optional[float] = ...) -> None: ...

class GetStatusRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class WorkerStatus(_message.Message):
    __slots__ = ("worker", "incarnation", "player", "step", "mix", "activity", "last_beat_at", "metrics", "open_leases", "trouble", "is_quarantined", "node")
    class MetricsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    WORKER_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    PLAYER_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    MIX_FIELD_NUMBER: _ClassVar[int]
    ACTIVITY_FIELD_NUMBER: _ClassVar[int]
    LAST_BEAT_AT_FIELD_NUMBER: _ClassVar[int]
    METRICS_FIELD_NUMBER: _ClassVar[int]
    OPEN_LEASES_FIELD_NUMBER: _ClassVar[int]
    TROUBLE_FIELD_NUMBER: _ClassVar[int]
    IS_QUARANTINED_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    worker: str
    incarnation: int
    player: str
    step: int
    mix: str
    activity: str
    last_beat_at: float
    metrics: _containers.ScalarMap[str, float]
    open_leases: int
    trouble: str
    is_quarantined: bool
    node: str
    def __init__(self, worker: _Optional[str] = ..., incarnation: _Optional[int] = ..., player: _Optional[str] = ..., step: _Optional[int] = ..., mix: _Optional[str] = ..., activity: _Optional[str] = ..., last_beat_at: _Optional[float] = ..., metrics: _Optional[_Mapping[str, float]] = ..., open_leases: _Optional[int] = ..., trouble: _Optional[str] = ..., is_quarantined: _Optional[bool] = ..., node: _Optional[str] = ...) -> None: ...

class GetStatusResponse(_message.Message):
    __slots__ = ("game", "log_position", "open_leases", "workers", "shares", "version", "vitals", "epochs", "payoff_unit", "pause", "changes")
    GAME_FIELD_NUMBER: _ClassVar[int]
    LOG_POSITION_FIELD_NUMBER: _ClassVar[int]
    OPEN_LEASES_FIELD_NUMBER: _ClassVar[int]
    WORKERS_FIELD_NUMBER: _ClassVar[int]
    SHARES_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    VITALS_FIELD_NUMBER: _ClassVar[int]
    EPOCHS_FIELD_NUMBER: _ClassVar[int]
    PAYOFF_UNIT_FIELD_NUMBER: _ClassVar[int]
    PAUSE_FIELD_NUMBER: _ClassVar[int]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    game: str
    log_position: int
    open_leases: int
    workers: _containers.RepeatedCompositeFieldContainer[WorkerStatus]
    shares: _containers.RepeatedCompositeFieldContainer[_types_pb2.Share]
    version: str
    vitals: Vitals
    epochs: _containers.RepeatedCompositeFieldContainer[RatingEpoch]
    payoff_unit: str
    pause: Pause
    changes: _containers.RepeatedCompositeFieldContainer[MixChange]
    def __init__(self, game: _Optional[str] = ..., log_position: _Optional[int] = ..., open_leases: _Optional[int] = ..., workers: _Optional[_Iterable[_Union[WorkerStatus, _Mapping]]] = ..., shares: _Optional[_Iterable[_Union[_types_pb2.Share, _Mapping]]] = ..., version: _Optional[str] = ..., vitals: _Optional[_Union[Vitals, _Mapping]] = ..., epochs: _Optional[_Iterable[_Union[RatingEpoch, _Mapping]]] = ..., payoff_unit: _Optional[str] = ..., pause: _Optional[_Union[Pause, _Mapping]] = ..., changes: _Optional[_Iterable[_Union[MixChange, _Mapping]]] = ...) -> None: ...

class Vitals(_message.Message):
    __slots__ = ("trouble", "now", "started_at", "store_bytes", "disk_free_bytes", "event_position", "assignments")
    TROUBLE_FIELD_NUMBER: _ClassVar[int]
    NOW_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_FIELD_NUMBER: _ClassVar[int]
    STORE_BYTES_FIELD_NUMBER: _ClassVar[int]
    DISK_FREE_BYTES_FIELD_NUMBER: _ClassVar[int]
    EVENT_POSITION_FIELD_NUMBER: _ClassVar[int]
    ASSIGNMENTS_FIELD_NUMBER: _ClassVar[int]
    trouble: str
    now: float
    started_at: float
    store_bytes: int
    disk_free_bytes: int
    event_position: int
    assignments: int
    def __init__(self, trouble: _Optional[str] = ..., now: _Optional[float] = ..., started_at: _Optional[float] = ..., store_bytes: _Optional[int] = ..., disk_free_bytes: _Optional[int] = ..., event_position: _Optional[int] = ..., assignments: _Optional[int] = ...) -> None: ...

class RatingEpoch(_message.Message):
    __slots__ = ("book", "after_position", "games", "draw_probability")
    BOOK_FIELD_NUMBER: _ClassVar[int]
    AFTER_POSITION_FIELD_NUMBER: _ClassVar[int]
    GAMES_FIELD_NUMBER: _ClassVar[int]
    DRAW_PROBABILITY_FIELD_NUMBER: _ClassVar[int]
    book: _types_pb2.Book
    after_position: int
    games: int
    draw_probability: float
    def __init__(self, book: _Optional[_Union[_types_pb2.Book, str]] = ..., after_position: _Optional[int] = ..., games: _Optional[int] = ..., draw_probability: _Optional[float] = ...) -> None: ...

class WatchRequest(_message.Message):
    __slots__ = ("after",)
    AFTER_FIELD_NUMBER: _ClassVar[int]
    after: int
    def __init__(self, after: _Optional[int] = ...) -> None: ...

class Event(_message.Message):
    __slots__ = ("position", "at", "kind", "text", "data_json")
    POSITION_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    DATA_JSON_FIELD_NUMBER: _ClassVar[int]
    position: int
    at: float
    kind: str
    text: str
    data_json: str
    def __init__(self, position: _Optional[int] = ..., at: _Optional[float] = ..., kind: _Optional[str] = ..., text: _Optional[str] = ..., data_json: _Optional[str] = ...) -> None: ...

class GetSettingsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetSettingsResponse(_message.Message):
    __slots__ = ("settings_json",)
    SETTINGS_JSON_FIELD_NUMBER: _ClassVar[int]
    settings_json: str
    def __init__(self, settings_json: _Optional[str] = ...) -> None: ...

class GetBlobRequest(_message.Message):
    __slots__ = ("digest", "kind")
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    digest: str
    kind: _types_pb2.BlobKind
    def __init__(self, digest: _Optional[str] = ..., kind: _Optional[_Union[_types_pb2.BlobKind, str]] = ...) -> None: ...

class GetBlobResponse(_message.Message):
    __slots__ = ("content",)
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    content: bytes
    def __init__(self, content: _Optional[bytes] = ...) -> None: ...

class PutBlobRequest(_message.Message):
    __slots__ = ("digest", "size", "content")
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    digest: str
    size: int
    content: bytes
    def __init__(self, digest: _Optional[str] = ..., size: _Optional[int] = ..., content: _Optional[bytes] = ...) -> None: ...

class PutBlobResponse(_message.Message):
    __slots__ = ("is_new",)
    IS_NEW_FIELD_NUMBER: _ClassVar[int]
    is_new: bool
    def __init__(self, is_new: _Optional[bool] = ...) -> None: ...
