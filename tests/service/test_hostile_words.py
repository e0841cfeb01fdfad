"""What a stranger writes reaches people as text: no terminal is steered, no line forged, and
nothing that it sends ends a drawing.
"""

from __future__ import annotations

import io
import json
import logging
import math
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from evaluating import running
from evaluator_league import register_bots_and_live
from google.protobuf.descriptor import FieldDescriptor as F
from google.protobuf.message import Message
from rich.console import Console
from small_league import SmallLeague, played, small_league
from spoilt_requests import HOSTILE, STATUS, evaluations_requests, is_map, lasting_requests, texts
from test_bounds import fresh, refusal_of, stub_of
from test_cli_terminal import on_terminal
from test_reader import reading

from league.cli.main import main
from league.rpc.client import MatchmakerClient
from league.rpc.convert import to_message
from league.service.logs import configure
from league.service.settings import OperationsSettings
from league.stages import Place, Stage
from league.v1 import evaluator_pb2 as e
from league.v1 import exploiters_pb2 as x
from league.v1 import matchmaker_pb2 as m
from league.views.facts import LeagueFacts, Screen
from league.views.terminal.display import LineDisplay, print_summary
from league.views.terminal.panels import view
from matchmaker.api.server import MatchmakerServer
from matchmaker.store.rows import BeatRow

BEGINS = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} (INFO|WARNING|ERROR) |  ")
"""How a line of the log for people begins, a traceback's too."""
EXTREME = {
    "time/game_share": 1e308,
    "progress/steps": 1e308,
    "progress/seconds_left": 1e308,
    "rate/steps_per_second": -1e308,
    "winrate/[/oops]": 1e308,
    "exploiter/generation": 1e308,
    "alarm/entropy_collapse": 1e308,
    HOSTILE: 1.0,
}
STYLES = re.compile(r"\x1b\[[0-9;]*m|\x1b\]8;id=\d+;[^\x1b]*\x1b\\\\|\r")


def is_harmless(text: str) -> bool:
    """Whether it is printable but for ends of lines and colours."""
    return STYLES.sub("", text).replace("\n", "").isprintable() and "\x1b]8" not in text


def words_in(message: Message) -> Iterator[str]:
    """Every text inside a message."""
    for field, value in message.ListFields():
        if is_map(field):
            yield from value
        elif field.message_type is not None:
            for one in value if field.is_repeated else [value]:
                yield from words_in(one)
        elif field.cpp_type == F.CPPTYPE_STRING:
            yield from value if field.is_repeated else [value]


def answers(league: SmallLeague, match_id: str) -> Iterator[Message]:
    """Everything that the matchmaker sends to readers, in the wire's form."""
    yield stub_of(league, "GetStatus")(m.GetStatusRequest())
    yield stub_of(league, "GetCurricula")(m.GetCurriculaRequest())
    yield stub_of(league, "ListPlayers")(m.ListPlayersRequest())
    yield stub_of(league, "GetGates")(x.GetGatesRequest(with_certificates=True))
    yield stub_of(league, "GetMatch")(m.GetMatchRequest(match_id=match_id))
    yield stub_of(league, "ListReports")(e.ListReportsRequest())
    newest = league.server.league.view.event_position
    for event in stub_of(league, "Watch")(m.WatchRequest(after=0)):
        yield event
        if event.position == newest:
            return


@pytest.fixture
def logged() -> Iterator[io.StringIO]:
    """What the services log; the test's own logging comes back."""
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    yield io.StringIO()
    root.handlers[:] = before
    root.setLevel(level)


@pytest.mark.parametrize("form", ["human", "json"])
def test_no_text_of_any_request_steers_a_terminal_or_forges_a_line(
    tmp_path: Path, logged: io.StringIO, form: Any
) -> None:
    """In the answers, in all that readers get, and in the logs of both services."""
    logging.getLogger().handlers.clear()  # pytest's, by whose format a traceback would be kept
    configure(form, logged)
    try:
        raise ValueError(HOSTILE)
    except ValueError:
        logging.exception(HOSTILE)
    operations = OperationsSettings(log_calls=True)
    obeyed: list[str] = []
    with small_league(tmp_path, operations=operations) as league:
        requests = lasting_requests(league)
        for method, good in requests.items():
            free = []
            for place, spoil in texts(good):
                request = fresh(good)
                spoil(request)
                sentence = refusal_of(league, method, request)
                assert is_harmless(sentence), (method, place, sentence)
                if not sentence:
                    free.append((place, spoil))
            obeyed += [f"{method}.{place}" for place, _ in free]
        opened = league.open()
        (match,) = league.client.acquire_matches(opened, 1, "league")
        failed = to_message(played(match))
        failed.failed, failed.failure, failed.seats[0].stats[HOSTILE] = True, HOSTILE, 1.0
        asked = m.ReportResultsRequest(request_id="r", incarnation=opened, results=[failed])
        assert refusal_of(league, "ReportResults", asked) == ""
        league.client.heartbeat(opened, 1, metrics={HOSTILE: 1.0})
        for answer in answers(league, match.match_id):
            for text in words_in(answer):
                assert text.isprintable(), text
        with running(league.client, tmp_path, operations=operations) as run:
            for method, good in (evaluations_requests(league) | STATUS).items():
                for place, spoil in texts(good):
                    request = fresh(good)
                    spoil(request)
                    sentence = refusal_of(league, method, request, run.stub)
                    assert is_harmless(sentence), (method, place, sentence)
    assert {"Heartbeat.activity", "Heartbeat.metrics", "ReleaseMatches.reason"} <= {*obeyed}
    assert {"RequestEvaluation.by", "CancelEvaluation.reason"} <= {*obeyed}
    lines = logged.getvalue().split("\n")
    assert lines.pop() == ""
    assert len(lines) > len(obeyed)
    for line in lines:
        assert line.isprintable(), line
        assert json.loads(line) if form == "json" else BEGINS.match(line), line


def screen_of(facts: LeagueFacts) -> Screen:
    return Screen(run_dir="run", preset="smoke", device="", started_at=1.0, now=2.0, league=facts,
                  learners=("learner-main", "learner-other"))  # fmt: skip


def pictures(address: str, beat: Callable[[], object] = lambda: None) -> str:
    """What a person sees of a league: the live view, the lines, the summary, the commands. A view
    shows the workers whose heartbeats came since it began.
    """
    said: list[str] = []
    with reading(address, said) as reader:
        beat()
        reader.look_again(60)
        screen = screen_of(reader.facts)
    assert screen.league.learner is not None
    stream = io.StringIO("\n".join(said))
    console = Console(file=stream, force_terminal=True, width=110, height=40)
    console.print(view(screen, 110, 40), height=40)
    print_summary(console, screen, [])
    LineDisplay(stream, 0.0).show(screen)
    for command in ("status", "stage"):
        code, text = on_terminal(command, "--address", address)
        assert code == 0, text
        stream.write(text)
    return stream.getvalue()


def printed(address: str, capsys: pytest.CaptureFixture[str]) -> str:
    """What commands print for other programs."""
    for command in ("status", "stage", "players"):
        assert main([command, "--address", address]) == 0
    return capsys.readouterr().out.replace("\t", " ")


@pytest.mark.parametrize("program", ["league.cli", "league.cluster"])
def test_words_that_a_terminals_encoding_lacks_are_printed_as_escapes(program: str) -> None:
    prints = f"""
from {program} import main
main.app = main.parse = lambda *_, **__: print("対戦") or 0
exit(main.main([]))
"""
    done = subprocess.run(
        [sys.executable, "-c", prints],
        env=os.environ | {"PYTHONIOENCODING": "latin-1"},
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr
    assert rb"\u5bfe\u6226" in done.stdout


def test_a_hostile_heartbeat_is_drawn_as_text_and_bounded_numbers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also where it is in a log of an earlier version, which took anything."""
    db = tmp_path / "league.db"
    stages = [Stage(name="one", mix="league")]
    with MatchmakerServer(db=db) as server, MatchmakerClient(server.address) as client:
        register_bots_and_live(client)
        worker = client.open_incarnation("learner-main", "main").number
        client.enter_stage(worker, 0, stages, Place(index=0, since_step=0))
        found = pictures(
            server.address, lambda: client.heartbeat(worker, 1, 1, HOSTILE, HOSTILE, EXTREME)
        )
        found += printed(server.address, capsys)
        (learner,) = client.status().workers
    assert max(map(abs, learner.metrics.values())) <= 1e15
    assert is_harmless(found), found
    assert found.count("[/oops][link=u]y") > 3, "as it was written"
    with MatchmakerServer(db=db) as server:
        numbers = json.dumps(EXTREME | {"time/learning_share": math.nan, "winrate/x": math.inf})
        late = time.time() + 3600.0
        beat = BeatRow(worker, late, 2, 2, HOSTILE, HOSTILE, metrics_json=numbers)
        with server.store.write() as tx:
            tx.set_beat(beat)
            server.league.log(tx, "leases_released", HOSTILE)
    with MatchmakerServer(db=db, read_only=True) as server:
        found = pictures(server.address) + printed(server.address, capsys)
        assert main(["watch", "--address", server.address]) == 0
    found += capsys.readouterr().out.replace("\t", " ")
    assert is_harmless(found), found
    assert found.count("[/oops][link=u]y") > 3
