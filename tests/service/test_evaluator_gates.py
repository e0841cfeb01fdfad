"""The evaluator plays gates of real agents to their end, and has exploiters reviewed."""

from __future__ import annotations

import sqlite3
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from evaluating import FIRST, SETTINGS
from rps_agents import GAME, PAPER, ROCK, SCISSORS, rps_player
from waiting import PATIENCE, wait_for

from evaluator.clean.runner import Evaluator
from evaluator.settings import EvaluatorSettings
from league.games.registry import make_batched
from league.gates import GateState
from league.players import Book, Player, PlayerKind, PlayerState, Role
from league.replay import Recipe
from league.rpc.client import MatchmakerClient
from league.stats.gates import Certificate
from matchmaker.main import MatchmakerServer
from matchmaker.settings import MatchmakerSettings


@contextmanager
def league_of(folder: Path, **settings: str) -> Iterator[MatchmakerClient]:
    """A matchmaker whose main has a snapshot that takes rock."""
    chosen = MatchmakerSettings(game=GAME, **settings)  # type: ignore[arg-type]
    with (
        MatchmakerServer(db=folder / "league.db", settings=chosen, seed=1) as server,
        MatchmakerClient(server.address, wait_seconds=5) as connection,
    ):
        live = Player(
            name="main", game=GAME, kind=PlayerKind.LIVE, role=Role.MAIN, creator="learner-main"
        )
        connection.register_players([live, rps_player(folder, "main", 100, ROCK)])
        yield connection


@pytest.fixture
def client(tmp_path: Path) -> Iterator[MatchmakerClient]:
    with league_of(tmp_path) as connection:
        yield connection


@contextmanager
def evaluating(client: MatchmakerClient, folder: Path) -> Iterator[Evaluator]:
    settings = EvaluatorSettings(**SETTINGS.model_dump())
    with MatchmakerClient(client.address, wait_seconds=5) as own:
        game = make_batched(GAME, 8)
        recipe = Recipe(name=GAME, version=game.spec.version)
        evaluator = Evaluator(own, game, folder, settings, recipe=recipe)
        evaluator.open()
        thread = threading.Thread(target=evaluator.run)
        thread.start()
        try:
            yield evaluator
        finally:
            evaluator.stop.set()
            thread.join(PATIENCE)
            assert not thread.is_alive()


def freeze(client: MatchmakerClient, folder: Path, number: int, choice: int | None) -> str:
    """A candidate of the exploiter's next generation against the present mains."""
    worker = client.open_incarnation("learner-main-exploiter").number
    begun = client.begin_generation(
        worker, "main-exploiter", Role.MAIN_EXPLOITER, number, 10 * number
    )
    worker = client.open_incarnation("learner-main-exploiter", begun.player).number
    player = rps_player(folder, begun.player, 10 * number + 5, choice, begun.role)
    return client.open_gate(worker, player).candidate


def states(client: MatchmakerClient) -> dict[str, GateState]:
    return {gate.candidate: gate.state for gate in client.gates()}


def test_gates_are_played_to_their_end_and_the_main_patches_one(
    client: MatchmakerClient, tmp_path: Path
) -> None:
    paper = freeze(client, tmp_path, 1, PAPER)
    rock = freeze(client, tmp_path, 2, SCISSORS)
    with evaluating(client, tmp_path):
        wait_for(lambda: GateState.OPEN not in states(client).values())
        assert states(client) == {paper: GateState.ACCEPTED, rock: GateState.REJECTED}
        client.register_players([rps_player(tmp_path, "main", 200, SCISSORS)])  # which beats paper
        wait_for(lambda: client.gates()[0].patches)
    (patch,) = client.gates()[0].patches
    assert (patch.main, patch.snapshot, patch.wins + patch.draws + patch.losses) == (
        "main",
        "main@200",
        20,
    )
    accepted = client.gates(certificates=True)[0].victims[0]
    certificate = Certificate.from_json(accepted.certificate_json)
    assert (certificate.subject.candidate, certificate.subject.opponent) == (paper, "main@100")
    assert client.status().open_leases == 0
    metrics = [player.state for player in client.players() if player.name == rock]
    assert metrics == [PlayerState.RETIRED]
    assert client.payoff(Book.EVAL, rows=[rock]) == [], "a rejected one plays no more"


def test_a_gate_goes_before_requests_and_new_snapshots(
    client: MatchmakerClient, tmp_path: Path
) -> None:
    for step in (200, 300):
        client.register_players([rps_player(tmp_path, "main", step, ROCK)])
    client.request_evaluation("main@100", ["main@200"], 40, "bob")
    candidate = freeze(client, tmp_path, 1, PAPER)
    with evaluating(client, tmp_path):
        wait_for(lambda: states(client)[candidate] is GateState.ACCEPTED)
        wait_for(lambda: not client.evaluations(open_only=True))
    with closing(sqlite3.connect(tmp_path / "league.db")) as log:
        kinds = log.execute("SELECT category FROM assignments ORDER BY ordinal").fetchall()
    gate = [kind == ("gate",) for kind in kinds]
    assert gate == sorted(gate, reverse=True), "all gate matches come first"
    assert sum(gate) >= 18
    assert len(gate) - sum(gate) >= 40


def test_a_gate_that_opens_while_the_evaluator_plans_is_played(
    client: MatchmakerClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, frozen = MatchmakerClient.players, list[str]()

    def players(self: MatchmakerClient, *words: object, **named: object) -> list[Player]:
        found = asked(self, *words, **named)  # type: ignore[arg-type]
        if self is not client and not frozen:
            frozen.append("")  # what follows asks for players too
            frozen[:] = [freeze(client, tmp_path, 1, PAPER)]
        return found

    monkeypatch.setattr(MatchmakerClient, "players", players)
    with evaluating(client, tmp_path):
        wait_for(lambda: {*states(client).values()} - {GateState.OPEN})
    assert states(client) == {frozen[0]: GateState.ACCEPTED}


def test_a_candidate_whose_weights_are_gone_is_given_up(
    client: MatchmakerClient, tmp_path: Path
) -> None:
    candidate = freeze(client, tmp_path, 1, PAPER)
    digest = next(p.digest for p in client.players() if p.name == candidate)
    next((tmp_path / "blobs").glob(f"{digest}*")).unlink()
    with evaluating(client, tmp_path):
        wait_for(lambda: states(client) == {candidate: GateState.UNDECIDED})
    assert digest[:12] in client.gates()[0].reason


@pytest.mark.long
def test_an_evaluator_that_stops_in_a_gate_continues_where_the_log_is(
    client: MatchmakerClient, tmp_path: Path
) -> None:
    candidate = freeze(client, tmp_path, 1, None)  # as strong as rock: that takes long
    with evaluating(client, tmp_path):
        wait_for(lambda: client.gates()[0].victims[0].matches >= 10)
    first = client.gates()[0].victims[0].matches
    assert client.status().open_leases == 0
    with evaluating(client, tmp_path):
        wait_for(lambda: states(client)[candidate] is GateState.REJECTED)
    assert client.gates()[0].victims[0].matches >= first


@pytest.mark.long
def test_a_better_snapshot_is_admitted_and_a_worse_one_is_not(
    tmp_path: Path,
) -> None:
    """Paper beats rock; rock then loses to paper, and scissors beat it."""
    with league_of(tmp_path, admit="gate") as client:
        admitted(client, tmp_path)


def admitted(client: MatchmakerClient, tmp_path: Path) -> None:
    names = [f"main@{step}" for step in (100, 200, 300, 400)]
    with evaluating(client, tmp_path) as evaluator:
        for step, choice in ((200, PAPER), (300, ROCK), (400, SCISSORS)):
            client.register_players([rps_player(tmp_path, "main", step, choice)])
            wait_for(lambda: GateState.OPEN not in states(client).values())
        wait_for(lambda: evaluator.snapshots_done == 4)
    gates = client.gates(certificates=True)
    decided = [GateState.ACCEPTED, GateState.REJECTED, GateState.ACCEPTED]
    assert [gate.state for gate in gates] == decided
    assert [gate.victims[0].victim for gate in gates] == ["main@100", "main@200", "main@200"]
    for gate in gates:
        (test,) = gate.victims
        certificate = Certificate.from_json(test.certificate_json)
        assert 2 * sum(test.pairs) == test.matches
        assert certificate.gate.counts == test.pairs
    played = Counter[str]()
    for cell in client.payoff(Book.EVAL, rows=names):
        played[cell.row] += cell.games
    assert played.keys() == set(names), "the rejected one too: a curriculum may wait for it"
    assert min(played.values()) >= FIRST
    shown = {p.name: p.state for p in client.players(kinds=[PlayerKind.SNAPSHOT])}
    active, retired = PlayerState.ACTIVE, PlayerState.RETIRED
    assert shown == dict(zip(names, (active, active, retired, active), strict=True))
    assert client.status().open_leases == 0
