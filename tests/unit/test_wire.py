"""Every domain value survives the way over the wire, but for control characters in its texts;
every error has its code and comes back as itself.
"""

from dataclasses import fields, is_dataclass, replace
from enum import Enum

import grpc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from league import errors
from league.exploiters import Generation, Patch, Standing
from league.gates import CandidateGate, VictimGate
from league.players import (
    Assignment,
    Book,
    Event,
    MatchRecord,
    MatchResult,
    Pairing,
    PayoffCell,
    Player,
    PlayerKind,
    Rating,
    SeatResult,
    Verdict,
)
from league.rpc.convert import from_enum, from_message, to_message
from league.rpc.status import CODES, code_of, error_of
from league.stages import CurriculumStatus, Place, Stage
from league.status import LeagueStatus, MixChange, Share, WorkerStatus
from league.v1 import exploiters_pb2 as x
from league.v1 import types_pb2 as t

text = st.text(max_size=20)
int64 = st.integers(-(2**63), 2**63 - 1)
int32 = st.integers(-(2**31), 2**31 - 1)
number = st.floats(allow_nan=False)
numbers = st.dictionaries(text, number, max_size=3).filter(lambda d: len(d) == len(arrived(d)))


def values(cls, **overrides):
    """Instances whose every field is drawn, so that a field forgotten on the way shows."""
    st.register_type_strategy(str, text)
    st.register_type_strategy(float, number)
    st.register_type_strategy(int, int64)
    return st.builds(cls, **{f.name: overrides.get(f.name, ...) for f in fields(cls)})


def arrived(value):
    """`value` with blanks for the control characters of its texts."""
    if isinstance(value, str) and not isinstance(value, Enum):
        return errors.plain(value)
    if isinstance(value, tuple):
        return tuple(map(arrived, value))
    if isinstance(value, dict):
        return {errors.plain(name): one for name, one in value.items()}
    if is_dataclass(value):
        return replace(value, **{f.name: arrived(getattr(value, f.name)) for f in fields(value)})
    return value


players = values(Player)
bare_players = values(Player, card_json=st.just(""))
seat_results = values(SeatResult, stats=numbers)
assignments = values(
    Assignment,
    seats=st.tuples(bare_players, bare_players),
    learner_seat=int32,
    seed=st.integers(0, 2**64 - 1),
)
results = values(MatchResult, frames=int32, seats=st.tuples(seat_results, seat_results))
workers = values(WorkerStatus, metrics=numbers)
statuses = values(
    LeagueStatus,
    workers=st.lists(workers, max_size=2).map(tuple),
    shares=st.lists(values(Share), max_size=2).map(tuple),
    changes=st.lists(values(MixChange, weights=numbers), max_size=2).map(tuple),
)
stages = values(Stage, max_steps=st.none() | st.integers(1, 2**63 - 1))
gates = values(
    CandidateGate,
    generation=st.none() | values(Generation, number=int32, victims=st.tuples(text, text)),
    victims=st.tuples(values(VictimGate, pairs=st.just((1, 2, 3, 4, 5)))),
    patches=st.tuples(values(Patch)),
)
CASES = [
    players,
    assignments,
    results,
    values(Verdict),
    values(Pairing, pairs=int32, until=int32, seed=st.integers(0, 2**64 - 1)),
    values(Rating, player=bare_players, rank=int32),
    values(PayoffCell, means=numbers),
    statuses,
    values(MatchRecord, assignment=assignments, result=st.none() | results),
    values(Event),
    values(CurriculumStatus, stages=st.tuples(stages), place=values(Place, index=int32)),
    gates,
    values(Standing),
]


@pytest.mark.parametrize("strategy", CASES)
def test_nothing_is_lost_on_the_way(strategy):
    @settings(max_examples=15, deadline=None)
    @given(strategy)
    def check(value):
        message = to_message(value)
        copy = type(message).FromString(message.SerializeToString())
        assert from_message(type(value), copy) == arrived(value)

    check()


def test_what_no_value_can_hold_is_refused():
    with pytest.raises(errors.InvalidInput, match="PlayerKind"):
        from_message(Player, t.Player(name="a"))
    with pytest.raises(errors.InvalidInput, match="GateState"):
        from_message(CandidateGate, x.Gate(candidate="a", state="ajar"))
    for number in (0, 99):
        with pytest.raises(errors.InvalidInput, match=f"{number}.*Book"):
            from_enum(Book, number)
    assert from_enum(Book, 0, Book.EVAL) is Book.EVAL
    with pytest.raises(errors.InvalidInput, match="0 seats"):
        from_message(Assignment, t.Assignment(book=t.BOOK_EVAL))


def test_players_without_a_state_are_active():
    player = from_message(Player, t.Player(name="a", kind=t.PLAYER_KIND_BOT))
    assert player == Player(name="a", game="", kind=PlayerKind.BOT)


def test_cards_stay_at_home_in_assignments():
    player = Player(name="a", game="g", kind=PlayerKind.BOT, card_json="{}")
    assert to_message(player).card_json == "{}"
    rating = Rating(player=player, mu=0, sigma=1, score=0, wins=0, draws=0, losses=0, rank=1)
    assert to_message(rating).player.card_json == ""


def every_error(cls=errors.LeagueError):
    yield cls
    for below in cls.__subclasses__():
        yield from every_error(below)


def test_every_error_has_a_code():
    missing = [
        cls.__name__
        for cls in every_error()
        if cls.__module__ == errors.__name__ and cls not in CODES
    ]
    assert missing == []
    assert len(CODES) > 10


def test_an_unlisted_error_takes_its_bases_code():
    class Special(errors.NotFound):
        pass

    assert code_of(Special("x")) is CODES[errors.NotFound]


class Failure:
    def __init__(self, code, name="", details="why"):
        self._code, self._name, self._details = code, name, details

    def code(self):
        return self._code

    def details(self):
        return self._details

    def trailing_metadata(self):
        return (("kumite-error", self._name),) if self._name else ()


@pytest.mark.parametrize("cls", sorted(CODES, key=lambda cls: cls.__name__))
def test_errors_come_back_as_themselves(cls):
    error = error_of(Failure(CODES[cls], cls.__name__))
    assert type(error) is cls
    assert str(error) == "why"


def test_an_error_of_grpc_itself_takes_the_nearest_class():
    assert type(error_of(Failure(grpc.StatusCode.DEADLINE_EXCEEDED))) is errors.Unavailable
    assert type(error_of(Failure(grpc.StatusCode.INTERNAL, "NoSuchClass"))) is errors.LeagueError
