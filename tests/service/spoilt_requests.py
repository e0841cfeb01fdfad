"""Requests as a faithful client sends them, one of every kind, and every way to spoil one field
of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from exploiter_league import candidate
from google.protobuf.descriptor import FieldDescriptor as F
from google.protobuf.message import Message
from remote_league import PART, digest_of, weights
from small_league import SmallLeague, played, rival, snapshot

from league.ids import new_id
from league.players import Book, Pairing, Role
from league.rpc.convert import to_message
from league.v1 import evaluator_pb2 as e
from league.v1 import exploiters_pb2 as x
from league.v1 import matchmaker_pb2 as m
from league.v1 import types_pb2 as t

SERVICES = (
    m.DESCRIPTOR.services_by_name["MatchmakerService"],
    x.DESCRIPTOR.services_by_name["ExploiterService"],
    e.DESCRIPTOR.services_by_name["EvaluatorService"],
)
"""What the matchmaker's process serves; no method of one has the name of another's."""
METHODS = {
    method.name: method
    for service in SERVICES
    for method in service.methods
    if method.name != "GetEvaluatorStatus"  # which it always refuses
}
EXPLOITER = "main-exploiter"
LONG = "x" * 100_000
HOSTILE = "a\x1b[2J\x9b3m\u202e\u2066\r\n9 INFO forged\x85\x07\u2028[/oops][link=u]y"
"""Steers a terminal, forges a line, and is markup; shorter than any bound of a text."""
MANY = 5000
Spoil = tuple[str, Callable[[Any], None]]


def good_requests(league: SmallLeague) -> dict[str, Message]:
    """One request for each call, all of which would be obeyed."""
    number = league.open()
    league.client.open_incarnation("evaluator-0")
    matches = league.client.acquire_matches(number, 2, "league")
    stage = t.Stage(
        name="one",
        mix="league",
        until_opponent="based",
        until_win_rate=0.5,
        min_matches=5,
        max_steps=9,
    )
    league.client._stub.EnterStage(
        m.EnterStageRequest(
            request_id=new_id(),
            incarnation=number,
            stages=[stage, t.Stage(name="two", mix="league")],
        )
    )
    league.client.add_rival(rival("rival"), "bob")
    pairing = Pairing(player="main@1000", opponent="based", pairs=1, book=Book.EVAL, seed=3)
    content = weights(7)
    return {
        "RegisterPlayers": m.RegisterPlayersRequest(
            players=[to_message(snapshot(7000, card_json="{}", creator="x", created_at=1.0))],
            incarnation=number,
        ),
        "OpenIncarnation": m.OpenIncarnationRequest(
            worker="learner-main", player="main", carried_matches=[matches[0].match_id]
        ),
        "AcquireMatches": m.AcquireMatchesRequest(incarnation=number, count=1, mix="league"),
        "AcquirePairings": m.AcquirePairingsRequest(
            incarnation=number, pairings=[to_message(pairing)]
        ),
        "ReleaseMatches": m.ReleaseMatchesRequest(
            incarnation=number, match_ids=[matches[0].match_id], reason="done"
        ),
        "ReportResults": m.ReportResultsRequest(
            incarnation=number, results=[to_message(played(matches[1]))]
        ),
        "Heartbeat": m.HeartbeatRequest(
            incarnation=number,
            progress=5,
            step=6,
            mix="league",
            activity="rollout",
            metrics={"a/b": 1.0},
        ),
        "KeepReferences": m.KeepReferencesRequest(incarnation=number, names=[]),
        "EnterStage": m.EnterStageRequest(
            incarnation=number, step=1, stages=[stage], reason="because"
        ),
        "CompareMember": m.CompareMemberRequest(
            incarnation=number, step=1, last_step=100, values={"ent_coef": 0.1}, applied=0
        ),
        "AskStage": m.AskStageRequest(player="main", stage="two", by="bob"),
        "SetMix": m.SetMixRequest(mix="league", weights={"based": 2.0}, by="bob"),
        "PauseLearners": m.PauseLearnersRequest(by="bob"),
        "Quarantine": m.QuarantineRequest(player="based", reason="loses to all", by="bob"),
        "QuarantineWorker": m.QuarantineWorkerRequest(
            worker="evaluator-0", reason="an old build", by="bob"
        ),
        "AddRival": m.AddRivalRequest(player=to_message(rival("other")), by="bob"),
        "RemoveRival": m.RemoveRivalRequest(player="rival", by="bob"),
        "PinRating": m.PinRatingRequest(player="based", mu=25.0, by="bob"),
        "GetCurricula": m.GetCurriculaRequest(),
        "GetPopulation": m.GetPopulationRequest(),
        "ListPlayers": m.ListPlayersRequest(
            kinds=[t.PLAYER_KIND_BOT], states=[t.PLAYER_STATE_ACTIVE]
        ),
        "GetRatings": m.GetRatingsRequest(book=t.BOOK_EVAL),
        "GetPayoff": m.GetPayoffRequest(book=t.BOOK_TRAIN, rows=["main"], columns=["based"]),
        "GetMatch": m.GetMatchRequest(match_id=matches[0].match_id),
        "ListMatches": m.ListMatchesRequest(
            player="main", opponent="based", book=t.BOOK_TRAIN, category="based", limit=10
        ),
        "GetStatus": m.GetStatusRequest(),
        "Watch": m.WatchRequest(after=0),
        "GetSettings": m.GetSettingsRequest(),
        "GetBlob": m.GetBlobRequest(
            digest=league.client.put_blob(weights()), kind=t.BLOB_KIND_WEIGHTS
        ),
        "PutBlob": m.PutBlobRequest(digest=digest_of(content), size=len(content), content=content),
        **exploiters_requests(league),
        **evaluations_requests(league),
    }


def exploiters_requests(league: SmallLeague) -> dict[str, Message]:
    """Of a generation that begins now, and has a candidate whose gate is open."""
    client, worker = league.client, f"learner-{EXPLOITER}"
    known = client.generation(EXPLOITER)
    following = 1 if known is None else known.number + 1
    opened = client.open_incarnation(worker).number
    begun = client.begin_generation(
        opened, EXPLOITER, Role.MAIN_EXPLOITER, following, 0, ["main@2000"]
    )
    number = client.open_incarnation(worker, begun.player).number
    frozen, other = (candidate(begun, step, card_json="{}", created_at=1.0) for step in (500, 600))
    client.open_gate(number, frozen)
    return {
        "BeginGeneration": x.BeginGenerationRequest(
            incarnation=number,
            learner=EXPLOITER,
            role=t.ROLE_MAIN_EXPLOITER,
            number=following + 1,
            victims=["main@1000"],
            step=500,
            parent=frozen.name,
        ),
        "GetGeneration": x.GetGenerationRequest(learner=EXPLOITER),
        "GetStanding": x.GetStandingRequest(player=begun.player, steps=600, interval=1000),
        "OpenGate": x.OpenGateRequest(incarnation=number, player=to_message(other)),
        "AcquireGateMatches": x.AcquireGateMatchesRequest(
            incarnation=number, candidate=frozen.name, count=2
        ),
        "DecideGate": x.DecideGateRequest(incarnation=number, candidate=frozen.name),
        "GiveUpGate": x.GiveUpGateRequest(
            incarnation=number, candidate=frozen.name, reason="because"
        ),
        "GetGates": x.GetGatesRequest(open_only=True, with_certificates=True),
        "ReviewExploiters": x.ReviewExploitersRequest(incarnation=number, player="main@1000"),
    }


def evaluations_requests(league: SmallLeague, player: str = "main@1000") -> dict[str, Message]:
    """Of an evaluation that is open."""
    number = league.client.request_evaluation(player, ["random"], 2, "bob").number
    return {
        "RequestEvaluation": e.RequestEvaluationRequest(
            player=player, opponents=["random=3,constant=1"], matches=4, by="bob"
        ),
        "CancelEvaluation": e.CancelEvaluationRequest(number=number, by="bob", reason="because"),
        "GetReport": e.GetReportRequest(number=number),
        "ListReports": e.ListReportsRequest(open_only=True),
        "WatchReports": e.WatchReportsRequest(number=number),
    }


def lasting_requests(league: SmallLeague) -> dict[str, Message]:
    """As `good_requests`; none of them, obeyed, puts an end to what another one needs."""
    requests = good_requests(league)
    requests["OpenIncarnation"] = m.OpenIncarnationRequest(worker="learner-other", player="main")
    gate: Any = requests["GiveUpGate"]
    # there is one once the other gate is opened
    gate.candidate = gate.candidate.replace("@500", "@600")
    return requests


STATUS = {"GetEvaluatorStatus": e.GetEvaluatorStatusRequest()}


def is_map(field: Any) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def spoils(message: Message, place: str = "") -> Iterator[Spoil]:
    """Every way to spoil one field of `message`: its place, what is wrong, and a function that
    does it.
    """
    for field in message.DESCRIPTOR.fields:
        name = field.name
        if is_map(field):
            yield from _of_map(place + name, name)
        elif field.is_repeated:
            yield f"{place}{name}: {MANY} of them", lambda target, n=name: _repeat(target, n)
            yield from _of_items(message, field, place)
        elif field.message_type is not None:
            inner = getattr(message, name)
            for what, spoil in spoils(inner, f"{place}{name}."):
                yield what, lambda target, n=name, s=spoil: s(getattr(target, n))
        else:
            for what, value in bad_values(field):
                yield (
                    f"{place}{name}: {what}",
                    lambda target, n=name, v=value: setattr(target, n, v),
                )


def _of_items(message: Message, field: Any, place: str) -> Iterator[Spoil]:
    items = getattr(message, field.name)
    if field.message_type is None:
        for what, value in bad_values(field):
            yield (
                f"{place}{field.name}[0]: {what}",
                lambda target, n=field.name, v=value: getattr(target, n).append(v),
            )
    elif items:
        for what, spoil in spoils(items[0], f"{place}{field.name}[0]."):
            yield what, lambda target, n=field.name, s=spoil: s(getattr(target, n)[0])


def _of_map(place: str, name: str) -> Iterator[Spoil]:
    """Of text to numbers, as all our maps are."""
    yield (
        f"{place}: {MANY} entries",
        lambda target: getattr(target, name).update({f"k{i}": 1.0 for i in range(MANY)}),
    )
    yield f"{place}: a long key", lambda target: getattr(target, name).update({LONG: 1.0})
    for value in (math.nan, math.inf, -math.inf, 1e308, -1e308):
        yield f"{place}: {value}", lambda target, v=value: getattr(target, name).update({"k": v})


def texts(message: Message, place: str = "") -> Iterator[Spoil]:
    """Every place of a text in `message`, and a function that puts `HOSTILE` there."""
    for field in message.DESCRIPTOR.fields:
        name, held = field.name, getattr(message, field.name)
        if is_map(field):
            yield place + name, lambda target, n=name: getattr(target, n).update({HOSTILE: 1.0})
        elif field.message_type is not None and field.is_repeated:
            for what, spoil in texts(held[0], f"{place}{name}[0].") if held else ():
                yield what, lambda target, n=name, s=spoil: s(getattr(target, n)[0])
        elif field.message_type is not None:
            for what, spoil in texts(held, f"{place}{name}."):
                yield what, lambda target, n=name, s=spoil: s(getattr(target, n))
        elif field.type == F.TYPE_STRING and field.is_repeated:
            yield place + name, lambda target, n=name: getattr(target, n).append(HOSTILE)
        elif field.type == F.TYPE_STRING:
            yield place + name, lambda target, n=name: setattr(target, n, HOSTILE)


def _repeat(message: Any, name: str) -> None:
    items = getattr(message, name)
    if not items:
        field = message.DESCRIPTOR.fields_by_name[name]
        items.append({F.CPPTYPE_STRING: "x"}.get(field.cpp_type, 1))
    items.extend([items[0]] * (MANY - 1))


def bad_values(field: Any) -> list[tuple[str, Any]]:
    """Values of the field's type that no field of ours can mean."""
    whole = {F.CPPTYPE_INT32: 31, F.CPPTYPE_INT64: 63}
    if field.cpp_type in whole:
        most = 2 ** whole[field.cpp_type] - 1
        return [("the most", most), ("the least", -most - 1), ("minus two", -2)]
    if field.cpp_type in (F.CPPTYPE_UINT32, F.CPPTYPE_UINT64):
        return []  # seeds: every value is one
    if field.cpp_type in (F.CPPTYPE_DOUBLE, F.CPPTYPE_FLOAT):
        bad = [
            ("NaN", math.nan),
            ("infinity", math.inf),
            ("minus infinity", -math.inf),
            ("-1e300", -1e300),
        ]
        times = [("milliseconds", 1.8e12), ("1e300", 1e300)] if field.name.endswith("_at") else []
        return bad + times
    if field.type == F.TYPE_BYTES:
        return [("empty", b""), ("a large part", b"x" * (PART + 1))]
    if field.cpp_type == F.CPPTYPE_STRING:
        deep = [("brackets", "[" * 60_000)] if field.name.endswith("_json") else []
        return [("100,000 characters", LONG), ("4,000 of three bytes", "\u2603" * 4000), *deep]
    if field.cpp_type == F.CPPTYPE_ENUM:
        return [("99", 99), ("-1", -1)]
    return []
