"""Every domain value survives the way over the wire; every error has its code and comes back as
itself.
"""

from dataclasses import fields

import grpc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from league import errors
from league.players import (
    Assignment,
    Book,
    Event,
    LeagueStatus,
    MatchRecord,
    MatchResult,
    Pairing,
    PayoffCell,
    Player,
    PlayerKind,
    Rating,
    SeatResult,
    Share,
    Verdict,
    WorkerStatus,
)
from league.rpc import convert as wire
from league.rpc import convert_status as wire_status
from league.rpc.status import CODES, code_of, error_of
from league.v1 import types_pb2 as t

text = st.text(max_size=20)
int64 = st.integers(-(2**63), 2**63 - 1)
int32 = st.integers(-(2**31), 2**31 - 1)
number = st.floats(allow_nan=False)


def values(cls, **overrides):
    """Instances whose every field is drawn, so that a field forgotten on the way shows."""
    st.register_type_strategy(str, text)
    st.register_type_strategy(float, number)
    st.register_type_strategy(int, int64)
    return st.builds(cls, **{f.name: overrides.get(f.name, ...) for f in fields(cls)})


players = values(Player)
bare_players = values(Player, card_json=st.just(""))
seat_results = values(SeatResult, stats=st.dictionaries(text, number, max_size=3))
assignments = values(
    Assignment,
    seats=st.tuples(bare_players, bare_players),
    learner_seat=int32,
    seed=st.integers(0, 2**64 - 1),
)
results = values(MatchResult, frames=int32, seats=st.tuples(seat_results, seat_results))
workers = values(WorkerStatus, metrics=st.dictionaries(text, number, max_size=3))
statuses = values(
    LeagueStatus,
    workers=st.lists(workers, max_size=2).map(tuple),
    shares=st.lists(values(Share), max_size=2).map(tuple),
)
CASES = [
    (players, wire.to_player, wire.from_player),
    (assignments, wire.to_assignment, wire.from_assignment),
    (results, wire.to_result, wire.from_result),
    (values(Verdict), wire.to_verdict, wire.from_verdict),
    (
        values(Pairing, pairs=int32, seed=st.integers(0, 2**64 - 1)),
        wire.to_pairing,
        wire.from_pairing,
    ),
    (values(Rating, player=bare_players, rank=int32), wire.to_rating, wire.from_rating),
    (values(PayoffCell), wire.to_cell, wire.from_cell),
    (statuses, wire_status.to_status, wire_status.from_status),
    (
        values(MatchRecord, assignment=assignments, result=st.none() | results),
        wire.to_match,
        wire.from_match,
    ),
    (values(Event), wire_status.to_event, wire_status.from_event),
]


@pytest.mark.parametrize("case", range(len(CASES)))
def test_nothing_is_lost_on_the_way(case):
    strategy, to, back = CASES[case]

    @settings(max_examples=15, deadline=None)
    @given(strategy)
    def check(value):
        message = to(value)
        assert back(type(message).FromString(message.SerializeToString())) == value

    check()


@settings(max_examples=25, deadline=None)
@given(st.data(), st.lists(text, unique=True, max_size=4))
def test_statistics_that_all_seats_have_go_without_their_names(data, names):
    stats = st.tuples(*[number] * len(names)).map(
        lambda found: dict(zip(names, found, strict=True))
    )
    alike = values(SeatResult, stats=stats)
    call = data.draw(
        st.lists(values(MatchResult, frames=int32, seats=st.tuples(alike, alike)), max_size=3)
    )
    assert wire.stat_names_of(call) == (tuple(names) if call else ())
    messages = [wire.to_result(result, tuple(names)) for result in call]
    assert not names or not any(seat.stats for message in messages for seat in message.seats)
    copies = [t.Result.FromString(message.SerializeToString()) for message in messages]
    assert [wire.from_result(copy, tuple(names)) for copy in copies] == call


def test_statistics_of_other_names_or_in_another_order_keep_them():
    def played(first, second):
        seats = (SeatResult(player="a", stats=first), SeatResult(player="b", stats=second))
        return MatchResult(match_id="m", lease_token="t", outcome=1.0, frames=1, seats=seats)

    both = {"falls": 1.0, "hits": 2.0}
    assert wire.stat_names_of([played(both, both)]) == ("falls", "hits")
    for other in ({"falls": 1.0}, {"hits": 2.0, "falls": 1.0}, {}):
        assert wire.stat_names_of([played(both, both), played(both, other)]) == ()
    assert wire.stat_names_of([]) == ()


def test_values_without_their_names_are_refused():
    message = t.SeatResult(player="main", stat_values=[1.0, 2.0], stats={"hits": 3.0})
    assert wire.from_seat(message, ["falls", "jumps"]).stats == {
        "falls": 1.0,
        "jumps": 2.0,
        "hits": 3.0,
    }
    with pytest.raises(errors.InvalidInput, match="main has 2 stat_values for 1 stat_names"):
        wire.from_seat(message, ["falls"])


def test_what_no_value_can_hold_is_refused():
    with pytest.raises(errors.InvalidInput, match="player kind"):
        wire.from_player(t.Player(name="a"))
    with pytest.raises(errors.InvalidInput, match="book"):
        wire.from_book(0)
    with pytest.raises(errors.InvalidInput, match="book"):
        wire.from_book(99)
    assert wire.from_book(0, Book.EVAL) is Book.EVAL
    with pytest.raises(errors.InvalidInput, match="0 seats"):
        wire.from_assignment(t.Assignment())


def test_cards_stay_at_home_in_assignments():
    player = Player(name="a", game="g", kind=PlayerKind.BOT, card_json="{}")
    assert wire.to_player(player).card_json == "{}"
    assert wire.to_player(player, card=False).card_json == ""


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
