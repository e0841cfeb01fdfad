from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ActionKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ACTION_KIND_UNSPECIFIED: _ClassVar[ActionKind]
    ACTION_KIND_KEYS: _ClassVar[ActionKind]
    ACTION_KIND_CHOICE: _ClassVar[ActionKind]

class Outcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    OUTCOME_UNSPECIFIED: _ClassVar[Outcome]
    OUTCOME_SEAT_0_WON: _ClassVar[Outcome]
    OUTCOME_SEAT_1_WON: _ClassVar[Outcome]
    OUTCOME_DRAW: _ClassVar[Outcome]
    OUTCOME_FAILED: _ClassVar[Outcome]
ACTION_KIND_UNSPECIFIED: ActionKind
ACTION_KIND_KEYS: ActionKind
ACTION_KIND_CHOICE: ActionKind
OUTCOME_UNSPECIFIED: Outcome
OUTCOME_SEAT_0_WON: Outcome
OUTCOME_SEAT_1_WON: Outcome
OUTCOME_DRAW: Outcome
OUTCOME_FAILED: Outcome

class DescribeGameRequest(_message.Message):
    __slots__ = ("contract",)
    CONTRACT_FIELD_NUMBER: _ClassVar[int]
    contract: int
    def __init__(self, contract: _Optional[int] = ...) -> None: ...

class DescribeGameResponse(_message.Message):
    __slots__ = ("contract", "name", "version", "seats", "observation_size", "action_kind", "action_names", "reward_terms", "frames_per_second", "max_frames", "has_text", "has_state")
    CONTRACT_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    SEATS_FIELD_NUMBER: _ClassVar[int]
    OBSERVATION_SIZE_FIELD_NUMBER: _ClassVar[int]
    ACTION_KIND_FIELD_NUMBER: _ClassVar[int]
    ACTION_NAMES_FIELD_NUMBER: _ClassVar[int]
    REWARD_TERMS_FIELD_NUMBER: _ClassVar[int]
    FRAMES_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    MAX_FRAMES_FIELD_NUMBER: _ClassVar[int]
    HAS_TEXT_FIELD_NUMBER: _ClassVar[int]
    HAS_STATE_FIELD_NUMBER: _ClassVar[int]
    contract: int
    name: str
    version: str
    seats: int
    observation_size: int
    action_kind: ActionKind
    action_names: _containers.RepeatedScalarFieldContainer[str]
    reward_terms: _containers.RepeatedScalarFieldContainer[str]
    frames_per_second: int
    max_frames: int
    has_text: bool
    has_state: bool
    def __init__(self, contract: _Optional[int] = ..., name: _Optional[str] = ..., version: _Optional[str] = ..., seats: _Optional[int] = ..., observation_size: _Optional[int] = ..., action_kind: _Optional[_Union[ActionKind, str]] = ..., action_names: _Optional[_Iterable[str]] = ..., reward_terms: _Optional[_Iterable[str]] = ..., frames_per_second: _Optional[int] = ..., max_frames: _Optional[int] = ..., has_text: _Optional[bool] = ..., has_state: _Optional[bool] = ...) -> None: ...

class PlayRequest(_message.Message):
    __slots__ = ("begin", "step", "text", "save", "load")
    BEGIN_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    SAVE_FIELD_NUMBER: _ClassVar[int]
    LOAD_FIELD_NUMBER: _ClassVar[int]
    begin: BeginRequest
    step: StepRequest
    text: TextRequest
    save: SaveRequest
    load: LoadRequest
    def __init__(self, begin: _Optional[_Union[BeginRequest, _Mapping]] = ..., step: _Optional[_Union[StepRequest, _Mapping]] = ..., text: _Optional[_Union[TextRequest, _Mapping]] = ..., save: _Optional[_Union[SaveRequest, _Mapping]] = ..., load: _Optional[_Union[LoadRequest, _Mapping]] = ...) -> None: ...

class BeginRequest(_message.Message):
    __slots__ = ("rows", "seeds", "max_frames")
    ROWS_FIELD_NUMBER: _ClassVar[int]
    SEEDS_FIELD_NUMBER: _ClassVar[int]
    MAX_FRAMES_FIELD_NUMBER: _ClassVar[int]
    rows: _containers.RepeatedScalarFieldContainer[int]
    seeds: _containers.RepeatedScalarFieldContainer[int]
    max_frames: int
    def __init__(self, rows: _Optional[_Iterable[int]] = ..., seeds: _Optional[_Iterable[int]] = ..., max_frames: _Optional[int] = ...) -> None: ...

class StepRequest(_message.Message):
    __slots__ = ("rows", "actions")
    ROWS_FIELD_NUMBER: _ClassVar[int]
    ACTIONS_FIELD_NUMBER: _ClassVar[int]
    rows: _containers.RepeatedScalarFieldContainer[int]
    actions: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, rows: _Optional[_Iterable[int]] = ..., actions: _Optional[_Iterable[int]] = ...) -> None: ...

class TextRequest(_message.Message):
    __slots__ = ("row",)
    ROW_FIELD_NUMBER: _ClassVar[int]
    row: int
    def __init__(self, row: _Optional[int] = ...) -> None: ...

class SaveRequest(_message.Message):
    __slots__ = ("rows",)
    ROWS_FIELD_NUMBER: _ClassVar[int]
    rows: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, rows: _Optional[_Iterable[int]] = ...) -> None: ...

class LoadRequest(_message.Message):
    __slots__ = ("rows", "states")
    ROWS_FIELD_NUMBER: _ClassVar[int]
    STATES_FIELD_NUMBER: _ClassVar[int]
    rows: _containers.RepeatedScalarFieldContainer[int]
    states: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, rows: _Optional[_Iterable[int]] = ..., states: _Optional[_Iterable[bytes]] = ...) -> None: ...

class PlayResponse(_message.Message):
    __slots__ = ("observations", "legal", "rewards", "outcomes", "text", "states")
    OBSERVATIONS_FIELD_NUMBER: _ClassVar[int]
    LEGAL_FIELD_NUMBER: _ClassVar[int]
    REWARDS_FIELD_NUMBER: _ClassVar[int]
    OUTCOMES_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    STATES_FIELD_NUMBER: _ClassVar[int]
    observations: bytes
    legal: bytes
    rewards: bytes
    outcomes: bytes
    text: str
    states: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, observations: _Optional[bytes] = ..., legal: _Optional[bytes] = ..., rewards: _Optional[bytes] = ..., outcomes: _Optional[bytes] = ..., text: _Optional[str] = ..., states: _Optional[_Iterable[bytes]] = ...) -> None: ...
