"""What the dashboard's pages are made of, without a browser."""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import threading
import time
from collections.abc import Awaitable
from types import SimpleNamespace

import pytest
from game_run import make_game_run
from small_league import played, report, small_league
from starlette.websockets import WebSocket
from waiting import PATIENCE, wait_for

from league.exploiters import Patch
from league.gates import CandidateGate, GateState, VictimGate
from league.players import Book, Pairing
from league.population import Population
from league.replay.highlights import Highlight, add_highlights
from league.security.roles import AccessRole
from league.stats.gates import BernoulliTest, Gate, Result, Subject, certify
from league.views.dashboard import live
from league.views.dashboard.arena import MOST, Arena
from league.views.dashboard.pages import lineage
from league.views.dashboard.source import Source


@pytest.fixture
def later(monkeypatch):
    """Lets time pass for what is kept."""
    passed = [0.0]
    clock = time.monotonic
    monkeypatch.setattr(time, "monotonic", lambda: clock() + passed[0])
    return lambda seconds: passed.__setitem__(0, passed[0] + seconds)


def test_a_match_is_read_again_until_it_has_a_result(tmp_path, later):
    with small_league(tmp_path) as league:
        source = Source(league.client)
        number = league.client.open_incarnation("evaluator-0").number
        pairing = Pairing(player="main@1000", opponent="random", pairs=1, book=Book.EVAL, seed=1)
        match, other = league.client.acquire_pairings(number, [pairing])
        assert source.match(match.match_id).result is None
        report(league, number, played(match), played(other))
        later(3.0)
        found = source.match(match.match_id)
        assert found.result is not None
        later(600.0)
        assert source.match(match.match_id) is found, "it does not change"
        source.close()


def test_the_newest_match_that_has_a_replay_is_shown_before_other_highlights(tmp_path, later):
    source = Source(SimpleNamespace(address="127.0.0.1:1", credentials=None), run_dir=tmp_path)
    assert source.shown() is None
    (tmp_path / "replays").mkdir()
    for number, (kind, is_kept) in enumerate(
        [("live", False), ("rally", True), ("live", True), ("live", False)]
    ):
        found = Highlight(kind=kind, match_id=str(number), names=("a", "b"), winner="a",
                          words="", value=1.0, at=float(number))  # fmt: skip
        add_highlights(tmp_path, [found])
        if is_kept:
            (tmp_path / "replays" / f"{number}.replay").touch()
        later(9.0)
        shown = source.shown()
        assert (None if shown is None else shown.match_id) == [None, "1", "2", "2"][number]
    source.close()


def test_a_value_that_no_page_waits_for_is_renewed_after_the_page_has_its_answer(later):
    source = Source(SimpleNamespace(address="127.0.0.1:1", credentials=None))
    begun, go_on = threading.Event(), threading.Event()
    values = itertools.chain([0], itertools.repeat(1))

    def read() -> int:
        value = next(values)
        if value:
            begun.set()
            go_on.wait(PATIENCE)
        return value

    assert source.kept("mixture", 1.0, read, behind=True) == 0
    later(2.0)
    assert source.kept("mixture", 1.0, read, behind=True) == 0, "the old value, at once"
    assert begun.wait()
    assert source.kept("mixture", 1.0, read, behind=True) == 0, "while another one is read"
    go_on.set()
    wait_for(lambda: source.kept("mixture", 1.0, read, behind=True) == 1)
    source.close()


def test_matches_whose_browsers_have_left_while_one_loads_never_begin(tmp_path):
    make_game_run(tmp_path / "run", ["game.name=kuhn"])
    begun, go_on = list[tuple[str, ...]](), threading.Event()

    class Slow(Arena):
        def begin(self, names, **words):
            begun.append(names)
            go_on.wait(PATIENCE)
            return super().begin(names, **words)

    arena = Slow(SimpleNamespace(run_dir=tmp_path / "run", players=dict))
    first, second, *_ = arena.names()

    def visit(opponent: str) -> tuple[Awaitable[None], asyncio.Queue, asyncio.Queue]:
        received, sent = asyncio.Queue(), asyncio.Queue()
        received.put_nowait({"type": "websocket.connect"})
        scope = {
            "type": "websocket",
            "path": "/",
            "headers": [],
            "state": {"role": AccessRole.READ},
        }
        scope["query_string"] = f"first={first}&second={opponent}".encode()
        socket = WebSocket(scope, received.get, sent.put)
        return asyncio.create_task(live.play(socket, arena)), received, sent

    async def visits() -> None:
        left = [visit(first) for _ in range(2 * MOST)]
        for _, received, _ in left:
            received.put_nowait({"type": "websocket.disconnect"})
        while not begun:
            await asyncio.sleep(0)
        last, received, sent = visit(second)
        go_on.set()
        assert (await sent.get())["type"] == "websocket.accept"
        assert "begin" in json.loads((await sent.get())["text"])
        received.put_nowait({"type": "websocket.disconnect"})
        await asyncio.gather(last, *(task for task, *_ in left))

    asyncio.run(visits())
    assert begun == [(first, first), (first, second)]


def test_a_gate_has_a_row_for_each_victim_with_its_score():
    gate = Gate(test=BernoulliTest(p0=0.55, p1=0.65)).take(Result(n, 1.0) for n in range(40))
    subject = Subject(
        game="brawl",
        book="eval",
        candidate="exploiter.g1@5",
        candidate_digest="c" * 64,
        opponent="main@9",
        opponent_digest="d" * 64,
    )
    certificate = certify(gate, subject, tuple(range(gate.results)))
    first = VictimGate(
        victim="main@9",
        state=GateState.ACCEPTED,
        wins=gate.results,
        certificate_json=certificate.to_json(),
    )
    second = VictimGate(victim="main@8", state=GateState.UNDECIDED, wins=2, draws=1, losses=3)
    patch = Patch(main="main", snapshot="main@12", wins=9, draws=0, losses=1, posterior=0.98)
    source = SimpleNamespace(
        players=dict,
        population=Population,
        gates=lambda: [
            CandidateGate(
                candidate="exploiter.g1@5",
                generation=None,
                state=GateState.UNDECIDED,
                victims=(first, second),
                reason="its matches failed <b>",
                patches=(patch,),
                opened_at=1.0,
                decided_at=2.0,
            )
        ],
    )
    page = "".join(str(block) for block in lineage.show(source, {}))
    one, other = re.findall(r"<tr><td.*?</tr>", page)[-2:]
    assert f">{gate.results}–0–0<" in one
    assert f"{certificate.estimate.score:.1%} [{certificate.estimate.low:.1%} to 100.0%]" in one
    assert f"{certificate.llr:.2f}" in one
    assert "its matches failed &lt;b&gt;" in one
    assert "main@12" in one
    assert "2–1–3" in other
    assert "main@12" not in other
