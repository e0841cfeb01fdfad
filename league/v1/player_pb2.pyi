from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class PlayerHello(_message.Message):
    __slots__ = ("contract", "game", "game_version", "observation_size", "action_size")
    CONTRACT_FIELD_NUMBER: _ClassVar[int]
    GAME_FIELD_NUMBER: _ClassVar[int]
    GAME_VERSION_FIELD_NUMBER: _ClassVar[int]
    OBSERVATION_SIZE_FIELD_NUMBER: _ClassVar[int]
    ACTION_SIZE_FIELD_NUMBER: _ClassVar[int]
    contract: int
    game: str
    game_version: str
    observation_size: int
    action_size: int
    def __init__(self, contract: _Optional[int] = ..., game: _Optional[str] = ..., game_version: _Optional[str] = ..., observation_size: _Optional[int] = ..., action_size: _Optional[int] = ...) -> None: ...

class PlayerBeginning(_message.Message):
    __slots__ = ("seat", "seed")
    SEAT_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    seat: int
    seed: int
    def __init__(self, seat: _Optional[int] = ..., seed: _Optional[int] = ...) -> None: ...

class DecideRequest(_message.Message):
    __slots__ = ("hello", "end", "begin", "seats", "observations")
    HELLO_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    BEGIN_FIELD_NUMBER: _ClassVar[int]
    SEATS_FIELD_NUMBER: _ClassVar[int]
    OBSERVATIONS_FIELD_NUMBER: _ClassVar[int]
    hello: PlayerHello
    end: _containers.RepeatedScalarFieldContainer[int]
    begin: _containers.RepeatedCompositeFieldContainer[PlayerBeginning]
    seats: _containers.RepeatedScalarFieldContainer[int]
    observations: bytes
    def __init__(self, hello: _Optional[_Union[PlayerHello, _Mapping]] = ..., end: _Optional[_Iterable[int]] = ..., begin: _Optional[_Iterable[_Union[PlayerBeginning, _Mapping]]] = ..., seats: _Optional[_Iterable[int]] = ..., observations: _Optional[bytes] = ...) -> None: ...

class PlayerFailure(_message.Message):
    __slots__ = ("seat", "reason")
    SEAT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    seat: int
    reason: str
    def __init__(self, seat: _Optional[int] = ..., reason: _Optional[str] = ...) -> None: ...

class DecideResponse(_message.Message):
    __slots__ = ("hello", "keys", "failures")
    HELLO_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    FAILURES_FIELD_NUMBER: _ClassVar[int]
    hello: PlayerHello
    keys: bytes
    failures: _containers.RepeatedCompositeFieldContainer[PlayerFailure]
    def __init__(self, hello: _Optional[_Union[PlayerHello, _Mapping]] = ..., keys: _Optional[bytes] = ..., failures: _Optional[_Iterable[_Union[PlayerFailure, _Mapping]]] = ...) -> None: ...
