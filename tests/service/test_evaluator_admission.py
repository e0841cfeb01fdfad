"""The evaluator plays the gates of mains' snapshots with real agents, by turns with gauntlets."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from evaluating import SETTINGS, wait_for
from rps_agents import GAME, PAPER, ROCK, SCISSORS, rps_player

from evaluator.runner import Evaluator
from evaluator.settings import EvaluatorSettings
from league.exploiters import GateState
from league.games.registry import make_batched
from league.players import Book, Player, PlayerKind, PlayerState, Role
from league.rpc.client import MatchmakerClient
from league.stats.gates import Certificate
from matchmaker.main import MatchmakerServer
from matchmaker.settings import AdmissionSettings, MatchmakerSettings


@contextmanager
def rps_league(folder: Path, **admission: float) -> Iterator[MatchmakerClient]:
    """With a member that takes rock."""
    chosen = AdmissionSettings(**admission)  # type: ignore[arg-type]
    settings = MatchmakerSettings(game=GAME, admit="gate", admission=chosen)
    with (
        MatchmakerServer(db=folder / "league.db", settings=settings, seed=1) as server,
        MatchmakerClient(server.address, wait_seconds=5) as connection,
    ):
        live = Player(
            name="main", game=GAME, kind=PlayerKind.LIVE, role=Role.MAIN, creator="learner-main"
        )
        connection.register_players([live, rps_player(folder, "main", 100, ROCK)])
        yield connection


@pytest.fixture
def client(tmp_path: Path) -> Iterator[MatchmakerClient]:
    with rps_league(tmp_path) as connection:
        yield connection


@contextmanager
def evaluating(client: MatchmakerClient, folder: Path) -> Iterator[Evaluator]:
    with MatchmakerClient(client.address, wait_seconds=5) as own:
        settings = EvaluatorSettings(**SETTINGS.model_dump())
        evaluator = Evaluator(own, make_batched(GAME, settings.parallel_matches), folder, settings)
        evaluator.open()
        thread = threading.Thread(target=evaluator.run)
        thread.start()
        try:
            yield evaluator
        finally:
            evaluator.stop.set()
            thread.join(20)
            evaluator.journal.close()
            assert not thread.is_alive()


def states(client: MatchmakerClient) -> dict[str, GateState]:
    return {gate.candidate: gate.state for gate in client.gates()}


def test_a_better_snapshot_is_admitted_and_a_worse_one_is_not(
    client: MatchmakerClient, tmp_path: Path
) -> None:
    """Paper beats rock; rock then loses to paper, and scissors beat it."""
    names = [f"main@{step}" for step in (100, 200, 300, 400)]
    with evaluating(client, tmp_path) as evaluator:
        for step, choice in ((200, PAPER), (300, ROCK), (400, SCISSORS)):
            client.register_players([rps_player(tmp_path, "main", step, choice)])
            wait_for(lambda: GateState.OPEN not in states(client).values(), 60)
        wait_for(lambda: evaluator.queue.gauntlets_done == 4, 60)
    gates = client.gates(certificates=True)
    decided = [GateState.ACCEPTED, GateState.REJECTED, GateState.ACCEPTED]
    assert [gate.state for gate in gates] == decided
    assert [gate.victims[0].victim for gate in gates] == ["main@100", "main@200", "main@200"]
    for gate in gates:
        (test,) = gate.victims
        certificate = Certificate.from_json(test.certificate_json)
        assert 2 * sum(test.pairs) == test.matches
        assert certificate.gate.counts == test.pairs
    met = {cell.row for cell in client.payoff(Book.EVAL, rows=names) if cell.column == "random"}
    assert met == set(names), "the rejected one has a gauntlet too: a curriculum may wait for it"
    shown = {p.name: p.state for p in client.players(kinds=[PlayerKind.SNAPSHOT])}
    active, retired = PlayerState.ACTIVE, PlayerState.RETIRED
    assert shown == dict(zip(names, (active, active, retired, active), strict=True))
    assert client.status().open_leases == 0


def test_an_evaluator_that_stops_in_a_gate_leaves_it_to_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As strong as rock, and asked to be little stronger: that takes long."""
    monkeypatch.setattr("matchmaker.acts.gate.PAIR_LIMIT", 50_000)
    with rps_league(tmp_path, elo1=2.0) as client:
        client.register_players([rps_player(tmp_path, "main", 200, None)])
        found = []
        for matches in (20, 40):
            with evaluating(client, tmp_path):
                wait_for(lambda wanted=matches: client.gates()[0].victims[0].matches >= wanted, 60)  # type: ignore[misc]
            (gate,) = client.gates()
            assert (gate.state, client.status().open_leases) == (GateState.OPEN, 0)
            found.append(gate.victims[0].pairs)
    assert all(then <= now for then, now in zip(*found, strict=True))


def test_a_candidate_whose_weights_are_gone_is_given_up(
    client: MatchmakerClient, tmp_path: Path
) -> None:
    player = rps_player(tmp_path, "main", 200, PAPER)
    client.register_players([player])
    next((tmp_path / "blobs").glob(f"{player.digest}*")).unlink()
    with evaluating(client, tmp_path):
        wait_for(lambda: states(client) == {"main@200": GateState.UNDECIDED}, 60)
    assert player.digest[:12] in client.gates()[0].reason
