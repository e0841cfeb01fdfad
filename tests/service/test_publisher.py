"""Snapshots become members once, whatever happened to the process that publishes them."""

import pytest
import torch

from league.agent.config import AgentConfig, AgentSettings
from league.agent.network import AgentNetwork
from league.agent.snapshot import SnapshotCard, load_snapshot
from league.errors import Fenced
from league.games.registry import game_spec
from league.players import Player, PlayerKind, Role
from league.rpc.client import MatchmakerClient
from league.runs.blobs import BlobFolder
from learner.train.snapshots import SnapshotPublisher
from matchmaker.main import MatchmakerServer
from matchmaker.settings import MatchmakerSettings

LIVE = Player(
    name="main", game="brawl", kind=PlayerKind.LIVE, role=Role.MAIN, creator="learner-main"
)


AGENT = AgentConfig.of(AgentSettings(size="tiny", sequence_length=17), game_spec("brawl"))


@pytest.fixture
def client(server):
    with MatchmakerClient(server.address) as connected:
        connected.register_players([LIVE])
        begin_life(connected)
        yield connected


@pytest.fixture
def blobs(tmp_path):
    return BlobFolder(tmp_path / "blobs")


def publisher(client, blobs, incarnation=1):
    card = SnapshotCard(agent=AGENT, game="brawl", game_version="1")
    return SnapshotPublisher(client, blobs, card, LIVE, incarnation)


def begin_life(client):
    """As the learner does at each start; the number is that of the life, from 1."""
    return client.open_incarnation(LIVE.creator, LIVE.name).number


def network(seed):
    torch.manual_seed(seed)
    return AgentNetwork(AGENT)


def names(client):
    return [player.name for player in client.players(kinds=[PlayerKind.SNAPSHOT])]


def test_each_snapshot_is_the_parent_of_the_next(client, blobs):
    one = publisher(client, blobs)
    for step, seed in ((100, 1), (200, 2)):
        one.publish(network(seed), one.card(step, 1.0, {}))
    first, second = client.players(kinds=[PlayerKind.SNAPSHOT])
    assert (second.name, second.parent, first.parent) == ("main@200", "main@100", "")
    loaded, card = load_snapshot(blobs, second.digest)
    assert card.step == 200
    assert torch.equal(next(loaded.parameters()), next(network(2).parameters()))


def test_the_same_file_again_changes_nothing(client, blobs):
    card = publisher(client, blobs).card(100, 1.0, {"winrate/based": 0.5})
    for _ in range(2):
        one = publisher(client, blobs, begin_life(client))
        one.publish(network(1), SnapshotCard.from_json(card.to_json()))
    assert names(client) == ["main@100"]


def test_another_branch_at_the_same_step_gets_a_name_of_its_own_once(client, blobs):
    publisher(client, blobs).publish(network(1), publisher(client, blobs).card(100, 1.0, {}))
    card = publisher(client, blobs).card(100, 1.0, {})
    for _ in range(2):
        life = begin_life(client)
        player = publisher(client, blobs, life).publish(network(2), card)
        assert player.name == "main.2@100"
    assert names(client) == ["main@100", "main.2@100"]


def test_where_a_gate_decides_a_learner_goes_on_from_its_candidates(tmp_path, blobs):
    settings = MatchmakerSettings(admit="gate")
    with (
        MatchmakerServer(db=tmp_path / "league.db", port=0, settings=settings) as server,
        MatchmakerClient(server.address) as client,
    ):
        client.register_players([LIVE])
        one = publisher(client, blobs, begin_life(client))
        for step in (100, 200, 300):
            card = one.card(step, 1.0, {})
            one.publish(network(step), card)
        again = publisher(client, blobs, begin_life(client))
        again.publish(network(300), card)
        again.promote()
        players = client.players(kinds=[PlayerKind.SNAPSHOT])
        assert [player.state.value for player in players] == ["active", "retired", "candidate"]
        assert [player.parent for player in players] == ["", "main@100", "main@200"]
        assert players[2].milestone


def test_the_last_snapshot_can_be_made_a_milestone_afterwards(client, blobs):
    one = publisher(client, blobs)
    one.publish(network(1), one.card(100, 1.0, {}))
    one.promote()
    one.promote()
    (player,) = client.players(kinds=[PlayerKind.SNAPSHOT])
    assert player.milestone


def test_a_learner_that_was_replaced_publishes_nothing_more(client, blobs):
    old = publisher(client, blobs)
    begin_life(client)
    with pytest.raises(Fenced):
        old.publish(network(1), old.card(100, 1.0, {}))
    assert names(client) == []
