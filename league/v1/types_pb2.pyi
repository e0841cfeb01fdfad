from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class PlayerKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PLAYER_KIND_UNSPECIFIED: _ClassVar[PlayerKind]
    PLAYER_KIND_LIVE: _ClassVar[PlayerKind]
    PLAYER_KIND_SNAPSHOT: _ClassVar[PlayerKind]
    PLAYER_KIND_BOT: _ClassVar[PlayerKind]
    PLAYER_KIND_REFERENCE: _ClassVar[PlayerKind]
    PLAYER_KIND_HUMAN: _ClassVar[PlayerKind]
    PLAYER_KIND_RIVAL: _ClassVar[PlayerKind]

class Role(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ROLE_UNSPECIFIED: _ClassVar[Role]
    ROLE_MAIN: _ClassVar[Role]
    ROLE_MAIN_EXPLOITER: _ClassVar[Role]
    ROLE_LEAGUE_EXPLOITER: _ClassVar[Role]
    ROLE_CLONE: _ClassVar[Role]

class PlayerState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PLAYER_STATE_UNSPECIFIED: _ClassVar[PlayerState]
    PLAYER_STATE_ACTIVE: _ClassVar[PlayerState]
    PLAYER_STATE_RETIRED: _ClassVar[PlayerState]
    PLAYER_STATE_QUARANTINED: _ClassVar[PlayerState]
    PLAYER_STATE_CANDIDATE: _ClassVar[PlayerState]

class BlobKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    BLOB_KIND_UNSPECIFIED: _ClassVar[BlobKind]
    BLOB_KIND_WEIGHTS: _ClassVar[BlobKind]
    BLOB_KIND_RIVAL: _ClassVar[BlobKind]

class Book(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    BOOK_UNSPECIFIED: _ClassVar[Book]
    BOOK_TRAIN: _ClassVar[Book]
    BOOK_EVAL: _ClassVar[Book]
    BOOK_GREEDY: _ClassVar[Book]

class Refusal(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    REFUSAL_UNSPECIFIED: _ClassVar[Refusal]
    REFUSAL_UNKNOWN_MATCH: _ClassVar[Refusal]
    REFUSAL_LEASE_TOKEN: _ClassVar[Refusal]
    REFUSAL_OTHER_INCARNATION: _ClassVar[Refusal]
    REFUSAL_FENCED: _ClassVar[Refusal]
    REFUSAL_RELEASED: _ClassVar[Refusal]
    REFUSAL_WRONG_PLAYER: _ClassVar[Refusal]
    REFUSAL_WRONG_DIGEST: _ClassVar[Refusal]
    REFUSAL_MALFORMED: _ClassVar[Refusal]
    REFUSAL_CONTRADICTION: _ClassVar[Refusal]
    REFUSAL_QUARANTINED: _ClassVar[Refusal]
PLAYER_KIND_UNSPECIFIED: PlayerKind
PLAYER_KIND_LIVE: PlayerKind
PLAYER_KIND_SNAPSHOT: PlayerKind
PLAYER_KIND_BOT: PlayerKind
PLAYER_KIND_REFERENCE: PlayerKind
PLAYER_KIND_HUMAN: PlayerKind
PLAYER_KIND_RIVAL: PlayerKind
ROLE_UNSPECIFIED: Role
ROLE_MAIN: Role
ROLE_MAIN_EXPLOITER: Role
ROLE_LEAGUE_EXPLOITER: Role
ROLE_CLONE: Role
PLAYER_STATE_UNSPECIFIED: PlayerState
PLAYER_STATE_ACTIVE: PlayerState
PLAYER_STATE_RETIRED: PlayerState
PLAYER_STATE_QUARANTINED: PlayerState
PLAYER_STATE_CANDIDATE: PlayerState
BLOB_KIND_UNSPECIFIED: BlobKind
BLOB_KIND_WEIGHTS: BlobKind
BLOB_KIND_RIVAL: BlobKind
BOOK_UNSPECIFIED: Book
BOOK_TRAIN: Book
BOOK_EVAL: Book
BOOK_GREEDY: Book
REFUSAL_UNSPECIFIED: Refusal
REFUSAL_UNKNOWN_MATCH: Refusal
REFUSAL_LEASE_TOKEN: Refusal
REFUSAL_OTHER_INCARNATION: Refusal
REFUSAL_FENCED: Refusal
REFUSAL_RELEASED: Refusal
REFUSAL_WRONG_PLAYER: Refusal
REFUSAL_WRONG_DIGEST: Refusal
REFUSAL_MALFORMED: Refusal
REFUSAL_CONTRADICTION: Refusal
REFUSAL_QUARANTINED: Refusal

class Player(_message.Message):
    __slots__ = ("name", "game", "kind", "role", "state", "parent", "digest", "step", "creator", "card_json", "held_out", "milestone", "created_at")
    NAME_FIELD_NUMBER: _ClassVar[int]
    GAME_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    PARENT_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    CREATOR_FIELD_NUMBER: _ClassVar[int]
    CARD_JSON_FIELD_NUMBER: _ClassVar[int]
    HELD_OUT_FIELD_NUMBER: _ClassVar[int]
    MILESTONE_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    name: str
    game: str
    kind: PlayerKind
    role: Role
    state: PlayerState
    parent: str
    digest: str
    step: int
    creator: str
    card_json: str
    held_out: bool
    milestone: bool
    created_at: float
    def __init__(self, name: _Optional[str] = ..., game: _Optional[str] = ..., kind: _Optional[_Union[PlayerKind, str]] = ..., role: _Optional[_Union[Role, str]] = ..., state: _Optional[_Union[PlayerState, str]] = ..., parent: _Optional[str] = ..., digest: _Optional[str] = ..., step: _Optional[int] = ..., creator: _Optional[str] = ..., card_json: _Optional[str] = ..., held_out: _Optional[bool] = ..., milestone: _Optional[bool] = ..., created_at: _Optional[float] = ...) -> None: ...

class Assignment(_message.Message):
    __slots__ = ("match_id", "ordinal", "lease_token", "lease_deadline", "seats", "learner_seat", "book", "seed", "category", "replaces")
    MATCH_ID_FIELD_NUMBER: _ClassVar[int]
    ORDINAL_FIELD_NUMBER: _ClassVar[int]
    LEASE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    LEASE_DEADLINE_FIELD_NUMBER: _ClassVar[int]
    SEATS_FIELD_NUMBER: _ClassVar[int]
    LEARNER_SEAT_FIELD_NUMBER: _ClassVar[int]
    BOOK_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    CATEGORY_FIELD_NUMBER: _ClassVar[int]
    REPLACES_FIELD_NUMBER: _ClassVar[int]
    match_id: str
    ordinal: int
    lease_token: str
    lease_deadline: float
    seats: _containers.RepeatedCompositeFieldContainer[Player]
    learner_seat: int
    book: Book
    seed: int
    category: str
    replaces: str
    def __init__(self, match_id: _Optional[str] = ..., ordinal: _Optional[int] = ..., lease_token: _Optional[str] = ..., lease_deadline: _Optional[float] = ..., seats: _Optional[_Iterable[_Union[Player, _Mapping]]] = ..., learner_seat: _Optional[int] = ..., book: _Optional[_Union[Book, str]] = ..., seed: _Optional[int] = ..., category: _Optional[str] = ..., replaces: _Optional[str] = ...) -> None: ...

class SeatResult(_message.Message):
    __slots__ = ("player", "digest", "step_start", "step_end", "stats")
    class StatsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    PLAYER_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    STEP_START_FIELD_NUMBER: _ClassVar[int]
    STEP_END_FIELD_NUMBER: _ClassVar[int]
    STATS_FIELD_NUMBER: _ClassVar[int]
    player: str
    digest: str
    step_start: int
    step_end: int
    stats: _containers.ScalarMap[str, float]
    def __init__(self, player: _Optional[str] = ..., digest: _Optional[str] = ..., step_start: _Optional[int] = ..., step_end: _Optional[int] = ..., stats: _Optional[_Mapping[str, float]] = ...) -> None: ...

class Result(_message.Message):
    __slots__ = ("match_id", "lease_token", "outcome", "frames", "seats", "failed", "failure", "finished_at")
    MATCH_ID_FIELD_NUMBER: _ClassVar[int]
    LEASE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    FRAMES_FIELD_NUMBER: _ClassVar[int]
    SEATS_FIELD_NUMBER: _ClassVar[int]
    FAILED_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    FINISHED_AT_FIELD_NUMBER: _ClassVar[int]
    match_id: str
    lease_token: str
    outcome: float
    frames: int
    seats: _containers.RepeatedCompositeFieldContainer[SeatResult]
    failed: bool
    failure: str
    finished_at: float
    def __init__(self, match_id: _Optional[str] = ..., lease_token: _Optional[str] = ..., outcome: _Optional[float] = ..., frames: _Optional[int] = ..., seats: _Optional[_Iterable[_Union[SeatResult, _Mapping]]] = ..., failed: _Optional[bool] = ..., failure: _Optional[str] = ..., finished_at: _Optional[float] = ...) -> None: ...

class ResultVerdict(_message.Message):
    __slots__ = ("match_id", "accepted", "duplicate", "reason", "log_position", "refusal")
    MATCH_ID_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_FIELD_NUMBER: _ClassVar[int]
    DUPLICATE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    LOG_POSITION_FIELD_NUMBER: _ClassVar[int]
    REFUSAL_FIELD_NUMBER: _ClassVar[int]
    match_id: str
    accepted: bool
    duplicate: bool
    reason: str
    log_position: int
    refusal: Refusal
    def __init__(self, match_id: _Optional[str] = ..., accepted: _Optional[bool] = ..., duplicate: _Optional[bool] = ..., reason: _Optional[str] = ..., log_position: _Optional[int] = ..., refusal: _Optional[_Union[Refusal, str]] = ...) -> None: ...

class Rating(_message.Message):
    __slots__ = ("player", "mu", "sigma", "score", "wins", "draws", "losses", "rank", "pinned", "trend")
    PLAYER_FIELD_NUMBER: _ClassVar[int]
    MU_FIELD_NUMBER: _ClassVar[int]
    SIGMA_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    WINS_FIELD_NUMBER: _ClassVar[int]
    DRAWS_FIELD_NUMBER: _ClassVar[int]
    LOSSES_FIELD_NUMBER: _ClassVar[int]
    RANK_FIELD_NUMBER: _ClassVar[int]
    PINNED_FIELD_NUMBER: _ClassVar[int]
    TREND_FIELD_NUMBER: _ClassVar[int]
    player: Player
    mu: float
    sigma: float
    score: float
    wins: int
    draws: int
    losses: int
    rank: int
    pinned: bool
    trend: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, player: _Optional[_Union[Player, _Mapping]] = ..., mu: _Optional[float] = ..., sigma: _Optional[float] = ..., score: _Optional[float] = ..., wins: _Optional[int] = ..., draws: _Optional[int] = ..., losses: _Optional[int] = ..., rank: _Optional[int] = ..., pinned: _Optional[bool] = ..., trend: _Optional[_Iterable[float]] = ...) -> None: ...

class PayoffCell(_message.Message):
    __slots__ = ("row", "column", "wins", "draws", "losses", "seat0_games", "seat0_wins", "frames", "means", "paid", "staked", "squares")
    class MeansEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    ROW_FIELD_NUMBER: _ClassVar[int]
    COLUMN_FIELD_NUMBER: _ClassVar[int]
    WINS_FIELD_NUMBER: _ClassVar[int]
    DRAWS_FIELD_NUMBER: _ClassVar[int]
    LOSSES_FIELD_NUMBER: _ClassVar[int]
    SEAT0_GAMES_FIELD_NUMBER: _ClassVar[int]
    SEAT0_WINS_FIELD_NUMBER: _ClassVar[int]
    FRAMES_FIELD_NUMBER: _ClassVar[int]
    MEANS_FIELD_NUMBER: _ClassVar[int]
    PAID_FIELD_NUMBER: _ClassVar[int]
    STAKED_FIELD_NUMBER: _ClassVar[int]
    SQUARES_FIELD_NUMBER: _ClassVar[int]
    row: str
    column: str
    wins: int
    draws: int
    losses: int
    seat0_games: int
    seat0_wins: int
    frames: int
    means: _containers.ScalarMap[str, float]
    paid: float
    staked: float
    squares: float
    def __init__(self, row: _Optional[str] = ..., column: _Optional[str] = ..., wins: _Optional[int] = ..., draws: _Optional[int] = ..., losses: _Optional[int] = ..., seat0_games: _Optional[int] = ..., seat0_wins: _Optional[int] = ..., frames: _Optional[int] = ..., means: _Optional[_Mapping[str, float]] = ..., paid: _Optional[float] = ..., staked: _Optional[float] = ..., squares: _Optional[float] = ...) -> None: ...

class Share(_message.Message):
    __slots__ = ("category", "configured", "realised", "matches", "player", "mix", "expected", "realised_since", "matches_since")
    CATEGORY_FIELD_NUMBER: _ClassVar[int]
    CONFIGURED_FIELD_NUMBER: _ClassVar[int]
    REALISED_FIELD_NUMBER: _ClassVar[int]
    MATCHES_FIELD_NUMBER: _ClassVar[int]
    PLAYER_FIELD_NUMBER: _ClassVar[int]
    MIX_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_FIELD_NUMBER: _ClassVar[int]
    REALISED_SINCE_FIELD_NUMBER: _ClassVar[int]
    MATCHES_SINCE_FIELD_NUMBER: _ClassVar[int]
    category: str
    configured: float
    realised: float
    matches: int
    player: str
    mix: str
    expected: float
    realised_since: float
    matches_since: int
    def __init__(self, category: _Optional[str] = ..., configured: _Optional[float] = ..., realised: _Optional[float] = ..., matches: _Optional[int] = ..., player: _Optional[str] = ..., mix: _Optional[str] = ..., expected: _Optional[float] = ..., realised_since: _Optional[float] = ..., matches_since: _Optional[int] = ...) -> None: ...

class Stage(_message.Message):
    __slots__ = ("name", "mix", "reward", "until_opponent", "until_win_rate", "min_matches", "max_steps")
    NAME_FIELD_NUMBER: _ClassVar[int]
    MIX_FIELD_NUMBER: _ClassVar[int]
    REWARD_FIELD_NUMBER: _ClassVar[int]
    UNTIL_OPPONENT_FIELD_NUMBER: _ClassVar[int]
    UNTIL_WIN_RATE_FIELD_NUMBER: _ClassVar[int]
    MIN_MATCHES_FIELD_NUMBER: _ClassVar[int]
    MAX_STEPS_FIELD_NUMBER: _ClassVar[int]
    name: str
    mix: str
    reward: str
    until_opponent: str
    until_win_rate: float
    min_matches: int
    max_steps: int
    def __init__(self, name: _Optional[str] = ..., mix: _Optional[str] = ..., reward: _Optional[str] = ..., until_opponent: _Optional[str] = ..., until_win_rate: _Optional[float] = ..., min_matches: _Optional[int] = ..., max_steps: _Optional[int] = ...) -> None: ...

class StageRequest(_message.Message):
    __slots__ = ("number", "stage", "by", "at")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    STAGE_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    number: int
    stage: str
    by: str
    at: float
    def __init__(self, number: _Optional[int] = ..., stage: _Optional[str] = ..., by: _Optional[str] = ..., at: _Optional[float] = ...) -> None: ...

class Curriculum(_message.Message):
    __slots__ = ("player", "stages", "index", "since_step", "by_hand", "obeyed", "asked", "step", "done")
    PLAYER_FIELD_NUMBER: _ClassVar[int]
    STAGES_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    SINCE_STEP_FIELD_NUMBER: _ClassVar[int]
    BY_HAND_FIELD_NUMBER: _ClassVar[int]
    OBEYED_FIELD_NUMBER: _ClassVar[int]
    ASKED_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    player: str
    stages: _containers.RepeatedCompositeFieldContainer[Stage]
    index: int
    since_step: int
    by_hand: bool
    obeyed: int
    asked: StageRequest
    step: int
    done: bool
    def __init__(self, player: _Optional[str] = ..., stages: _Optional[_Iterable[_Union[Stage, _Mapping]]] = ..., index: _Optional[int] = ..., since_step: _Optional[int] = ..., by_hand: _Optional[bool] = ..., obeyed: _Optional[int] = ..., asked: _Optional[_Union[StageRequest, _Mapping]] = ..., step: _Optional[int] = ..., done: _Optional[bool] = ...) -> None: ...
