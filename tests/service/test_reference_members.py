"""References as members of the league: registered once whatever happened, rated, and played
against.
"""

import dataclasses
import json
import re

import pytest
import torch
from small_league import played
from test_publisher import LIVE, begin_life, network, publisher

from league.agent.snapshot import SnapshotCard, load_snapshot
from league.errors import Fenced, InvalidInput
from league.ids import ReferenceName
from league.players import Book, PlayerKind, PlayerState
from league.rpc.client import MatchmakerClient
from league.runs.blobs import BlobFolder
from learner import main
from learner.ppo import references as ppo_references
from learner.rollout import source
from matchmaker.main import MatchmakerServer
from matchmaker.settings import MatchmakerSettings


@pytest.fixture
def server(tmp_path):
    mixes = {
        "constant": {"constant": 1.0},
        "league": {"reference": 5.0, "snapshots": 2.0, "constant": 1.0},
        "past": {"snapshots": 1.0},
        "held": {"reference": 1.0},
    }
    settings = MatchmakerSettings(mixes=mixes)
    # 1 in 30,000 seeds draws only one of two references in the 16 matches that a test asks for
    with MatchmakerServer(db=tmp_path / "league.db", port=0, settings=settings, seed=0) as running:
        yield running


@pytest.fixture
def client(server):
    with MatchmakerClient(server.address) as connected:
        connected.register_players([LIVE])
        begin_life(connected)
        yield connected


@pytest.fixture
def blobs(tmp_path):
    return BlobFolder(tmp_path / "blobs")


def references(client):
    return client.players(kinds=[PlayerKind.REFERENCE])


def test_a_reference_enters_with_its_weights_card_and_parent(client, blobs):
    snapshots = publisher(client, blobs)
    snapshots.publish(network(1), snapshots.card(100, 1.0, {}))
    assert snapshots.publish_reference(network(2), 150) == "main.reference-150"
    (player,) = references(client)
    assert (player.parent, player.step, player.creator) == ("main@100", 150, LIVE.creator)
    loaded, card = load_snapshot(blobs, player.digest)
    assert (card.step, card.parent) == (150, "main@100")
    assert SnapshotCard.from_json(player.card_json).step == 150
    assert torch.equal(next(loaded.parameters()), next(network(2).parameters()))


def test_a_life_that_freezes_the_same_copy_again_makes_the_same_member(client, blobs):
    names = [publisher(client, blobs).publish_reference(network(2), 150)]
    names.append(publisher(client, blobs, begin_life(client)).publish_reference(network(2), 150))
    assert names == ["main.reference-150"] * 2
    assert len(references(client)) == 1


def test_another_branch_with_other_weights_bears_the_number_of_its_life(client, blobs):
    publisher(client, blobs).publish_reference(network(2), 150)
    life = begin_life(client)
    assert (
        publisher(client, blobs, life).publish_reference(network(3), 150)
        == f"main.{life}.reference-150"
    )


def test_until_a_reference_is_rated_its_parents_rating_counts(client, blobs):
    snapshots = publisher(client, blobs)
    one = snapshots
    first = one.publish_reference(network(2), 50)
    snapshots.publish(network(1), snapshots.card(100, 1.0, {}))
    second = one.publish_reference(network(3), 150)
    assert one.reference_scores() == {}, "nobody has played"
    play(client, "past")
    parent = score_of(client, "main@100")
    assert one.reference_scores() == {second: parent}, "the first has no parent"
    play(client, "held")
    assert one.reference_scores() == {
        first: score_of(client, first),
        second: score_of(client, second),
    }
    assert score_of(client, second) != parent


def active(client):
    return [player.name for player in references(client) if player.state is PlayerState.ACTIVE]


def test_those_that_leave_retire_and_are_drawn_no_more(client, blobs):
    one = publisher(client, blobs)
    first, second, third = (
        one.publish_reference(network(seed), step) for seed, step in ((2, 50), (3, 150), (4, 250))
    )
    one.keep_references([second, third])
    assert active(client) == [second, third]
    one.keep_references([second])
    one.keep_references([second])
    assert active(client) == [second]
    assert {drawn.opponent.name for drawn in client.acquire_matches(1, 32, "held")} == {second}
    told = [
        event for event in events(client) if event.kind in ("player_retired", "player_returned")
    ]
    assert [json.loads(event.data_json)["player"] for event in told] == [first, third]
    one.keep_references([first])  # a restart from a checkpoint that has it
    assert active(client) == [first]
    assert {drawn.opponent.name for drawn in client.acquire_matches(1, 32, "held")} == {first}


def test_a_learner_retires_no_others_and_a_fenced_one_nobody(client, blobs):
    kept = publisher(client, blobs).publish_reference(network(2), 50)
    client.register_players([dataclasses.replace(LIVE, name="second")])
    second = client.open_incarnation("learner-second", "second").number
    client.keep_references(second, [])
    assert active(client) == [kept]
    with pytest.raises(InvalidInput, match=f"'{kept}' .*learner-second"):
        client.keep_references(second, [kept])
    begin_life(client)
    with pytest.raises(Fenced):
        client.keep_references(1, [])
    assert active(client) == [kept]


def events(client):
    """All that there are by now."""
    last = client.register_players([dataclasses.replace(LIVE, name="last")])[0][0]
    found = []
    for event in client.watch():
        found.append(event)
        if event.kind == "player_registered" and json.loads(event.data_json)["player"] == last.name:
            return found
    raise AssertionError("the events ended")


def score_of(client, name):
    return next(row.score for row in client.ratings(Book.TRAIN) if row.player.name == name)


def play(client, mix):
    found = client.acquire_matches(1, 16, mix)
    client.report_results(1, [played(assignment) for assignment in found])


SETTINGS = (
    "regularisation.alpha=0.01",
    "regularisation.reference_interval=8",
    "regularisation.portfolio_size=3",
    "regularisation.pruning=best",
    "curriculum.stages=[{name='league', mix='league'}]",
)


@pytest.mark.long
@pytest.mark.timeout(400)  # on a machine that may be busy
def test_a_learner_registers_its_references_plays_them_and_goes_on_with_them(
    server, blobs, tmp_path, monkeypatch, caplog
):
    monkeypatch.setattr(ppo_references, "PORTFOLIO_INTERVAL", 8)
    for kind in source.AHEAD:
        monkeypatch.setitem(source.AHEAD, kind, 2)
    monkeypatch.setattr(main, "stop_flag", lambda: lambda: False)  # the signals are pytest's
    caplog.set_level("INFO")
    at = ["--matchmaker", server.address, "--run-dir", str(tmp_path), "--preset", "smoke", "--cpu"]
    chosen = [part for setting in SETTINGS for part in ("--set", setting)]
    for steps in ("1024", "2048"):
        assert main.main([*at, *chosen, "--steps", steps]) == 0
    with MatchmakerClient(server.address) as client:
        entered = references(client)
        names = [ReferenceName.parse(player.name) for player in entered]
        assert names[0] == ReferenceName("main", 0)
        # 4 updates a rollout of 256 steps, a renewal every 8
        assert [name.step for name in names] == [0, 512, 1024, 1536, 2048]
        assert {name.lineage for name in names} == {"main"}, (
            "the second life keeps those of the first"
        )
        assert all(blobs.has(player.digest) for player in entered)
        met = {cell.column for cell in client.payoff(Book.TRAIN) if cell.row == "main"}
        assert met & {player.name for player in entered}, "the mix names them"
        (worker,) = client.status().workers
        kept = active(client)
    assert worker.metrics["reference/anchor_step"] >= 1024.0
    assert worker.metrics["reference/portfolio_2_closest_share"] >= 0.0
    left = set(re.findall(r"(\S+) leaves the portfolio", caplog.text))
    assert len(left) == 2, "of five, three stay"
    assert left == {player.name for player in entered} - set(kept), "they are opponents no more"
