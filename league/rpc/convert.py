"""Converts domain values (frozen dataclasses) to protobuf messages and back, field by field.

A dataclass and its message have the same field names, so the type hints of the dataclass are enough
for a conversion:

- an enum becomes the proto's enum, whose names have a prefix (``PlayerKind.LIVE`` is
  ``PLAYER_KIND_LIVE``, and ``NONE`` is ``..._UNSPECIFIED``). In a string field it becomes its
  value.
- a dataclass inside another becomes a message in the field of the same name. If the outer message
  has no such field, the fields of the inner dataclass become fields of the outer message.
- ``X | None`` is a message that may be missing, or a number that is 0 for None.
- a text loses its control characters on arrival, because it may reach logs and terminals.

A player inside another message is sent without its card, which describes its agent. The weights
file has the card, and `ListPlayers` sends it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass, replace
from enum import Enum
from functools import cache, lru_cache
from types import NoneType, UnionType
from typing import Any, NamedTuple, TypeVar, cast, get_args, get_origin, get_type_hints

from league import exploiters, gates, players, population, stages, status
from league.errors import InvalidInput, plain
from league.v1 import evaluator_pb2, exploiters_pb2, matchmaker_pb2, types_pb2

V = TypeVar("V")
E = TypeVar("E", bound=Enum)
Convert = Callable[[Any], Any]

_MESSAGES: dict[type, Any] = {
    gates.CandidateGate: exploiters_pb2.Gate,
    exploiters.Standing: exploiters_pb2.GetStandingResponse,
    status.LeagueStatus: matchmaker_pb2.GetStatusResponse,
    population.Population: matchmaker_pb2.GetPopulationResponse,
    players.MatchRecord: matchmaker_pb2.GetMatchResponse,
    players.MatchResult: types_pb2.Result,
    players.Verdict: types_pb2.ResultVerdict,
    stages.CurriculumStatus: types_pb2.Curriculum,
    stages.Place: types_pb2.Curriculum,
}
"""Messages that are not named after their dataclass."""
_MODULES = (types_pb2, matchmaker_pb2, exploiters_pb2, evaluator_pb2)


class _Field(NamedTuple):
    name: str
    encode: Convert | None  # None leaves the value unchanged
    decode: Convert | None
    may_be_missing: bool = False  # a message field that may be unset
    is_flat: bool = False  # its fields are fields of the outer message


class _Plan(NamedTuple):
    message: Any
    fields: tuple[_Field, ...]


def to_message(value: Any) -> Any:
    """Returns the message of a domain value."""
    return _plan(type(value)).message(**_arguments(value))


def from_message(cls: type[V], message: Any) -> V:
    """Returns the domain value of a message.

    Args:
        cls: the class of the value.
        message: the message.

    Raises:
        InvalidInput: an enum value is unknown, or the number of seats is not two.
    """
    values: dict[str, Any] = {}
    for name, _, decode, may_be_missing, is_flat in _plan(cls).fields:
        if is_flat:
            values[name] = cast(Convert, decode)(message)
        elif may_be_missing and not message.HasField(name):
            values[name] = None
        else:
            raw = getattr(message, name)
            values[name] = raw if decode is None else decode(raw)
    return cls(**values)


def encoded(value: Any) -> Any:
    """Converts a value for a field of a message. An incarnation becomes its number."""
    if isinstance(value, list):
        return [encoded(entry) for entry in value]
    if isinstance(value, players.Incarnation):
        return value.number
    if isinstance(value, Enum):
        return _numbers(type(value))[value]
    return to_message(value) if is_dataclass(value) else value


def from_enum(cls: type[E], number: int, unspecified: E | None = None) -> E:
    """Returns the enum's member with a number.

    Args:
        cls: the enum.
        number: the proto's number.
        unspecified: the member for 0. Without it, 0 is an error.

    Raises:
        InvalidInput: no member has the number.
    """
    member: E = _enum_decoder(cls, False, unspecified)(number)
    return member


def plain_names(values: Mapping[str, float]) -> dict[str, float]:
    """Returns the same numbers by name, with control characters removed from the names."""
    if "".join(values).isprintable():
        return dict(values)
    return {plain(name): value for name, value in values.items()}


def _arguments(value: Any) -> dict[str, Any]:
    arguments: dict[str, Any] = {}
    for name, encode, _, _, is_flat in _plan(type(value)).fields:
        field = getattr(value, name)
        if is_flat:
            arguments |= _arguments(field)
        elif field is not None:
            arguments[name] = field if encode is None else encode(field)
    return arguments


@cache
def _numbers(cls: type[E]) -> dict[E, int]:
    words = [f"_{letter}" if letter.isupper() else letter.upper() for letter in cls.__name__]
    prefix = "".join(words).upper().strip("_")
    return {
        member: getattr(
            types_pb2, f"{prefix}_{'UNSPECIFIED' if member.name == 'NONE' else member.name}"
        )
        for member in cls
    }


def _planned(cls: Any) -> _Plan:
    if cls in _MESSAGES:
        message = _MESSAGES[cls]
    else:
        candidates = (getattr(module, cls.__name__, None) for module in _MODULES)
        message = next(filter(None, candidates))
    hints, descriptors = get_type_hints(cls), message.DESCRIPTOR.fields_by_name
    plan = []
    for field in fields(cls):
        name, hint = field.name, hints[field.name]
        if name not in descriptors:
            plan.append(_Field(name, None, _decoder(hint, False, None), is_flat=True))
            continue
        is_text = descriptors[name].type == descriptors[name].TYPE_STRING
        default = None if field.default is MISSING else field.default
        encode, decode = _encoder(hint, is_text), _decoder(hint, is_text, default)
        optional = _optional(hint)
        may_be_missing = optional is not None and is_dataclass(optional)
        if optional is not None and not may_be_missing:
            decode = _none_for_zero
        plan.append(_Field(name, encode, decode, may_be_missing))
    return _Plan(message, tuple(plan))


_plan: Callable[[Any], _Plan] = cache(_planned)


def _optional(hint: Any) -> Any:
    """Returns X of ``X | None``, or None for other hints."""
    if get_origin(hint) is not UnionType or NoneType not in get_args(hint):
        return None
    return next(argument for argument in get_args(hint) if argument is not NoneType)


def _none_for_zero(value: Any) -> Any:
    return value or None


def _encoder(hint: Any, is_text: bool) -> Convert | None:
    hint = _optional(hint) or hint
    if get_origin(hint) is tuple:
        inner = _encoder(get_args(hint)[0], is_text)
        return None if inner is None else lambda values: [inner(value) for value in values]
    if hint is players.Player:
        return _seat
    if isinstance(hint, type) and issubclass(hint, Enum):
        numbers = {member: member.value for member in hint} if is_text else _numbers(hint)
        return numbers.__getitem__
    return to_message if is_dataclass(hint) else None


def _decoder(hint: Any, is_text: bool, default: Any) -> Convert | None:
    hint = _optional(hint) or hint
    if get_origin(hint) is tuple:
        first, last = get_args(hint)[0], get_args(hint)[-1]
        inner = _decoder(first, is_text, None) or (lambda value: value)
        if last is Ellipsis:
            return lambda values: tuple(inner(value) for value in values)
        return lambda values: _pair(values, inner)
    if get_origin(hint) is not None and issubclass(get_origin(hint), Mapping):
        return plain_names
    if hint is str:
        return plain
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _enum_decoder(hint, is_text, default)
    if hint is players.Player:
        return lambda message: _seated(message.SerializeToString())
    if is_dataclass(hint):
        return lambda message: from_message(cast(type[Any], hint), message)
    return None


def _enum_decoder(cls: type[E], is_text: bool, default: E | None) -> Convert:
    members = {member.value: member for member in cls}
    if not is_text:
        members = {number: member for member, number in _numbers(cls).items()}
        if default is not None:
            members.setdefault(0, default)

    def decode(raw: Any) -> E:
        try:
            return members[raw]
        except KeyError:
            names = ", ".join(str(member.value) for member in cls)
            raise InvalidInput(f"{raw!r} is no {cls.__name__}: known are {names}") from None

    return decode


def _pair(values: Any, inner: Convert) -> tuple[Any, ...]:
    if len(values) != 2:
        raise InvalidInput(f"{len(values)} seats were given: two are wanted")
    return tuple(map(inner, values))


@lru_cache(maxsize=4096)
def _seated(message: bytes) -> players.Player:
    return from_message(players.Player, types_pb2.Player.FromString(message))


@lru_cache(maxsize=4096)
def _seat(player: players.Player) -> Any:
    """Returns the message of a player, as part of another message.

    It is cached, because the same players occur again and again. This is safe, because the outer
    message copies it.
    """
    return to_message(replace(player, card_json=""))
