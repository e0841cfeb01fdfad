"""Freezes the learner's weights into snapshots and makes them members of the league."""

from __future__ import annotations

import dataclasses
import logging
import time
from collections.abc import Mapping

from league.agent.contract import PlayingNetwork
from league.agent.snapshot import SnapshotCard, save_snapshot
from league.errors import AlreadyExists
from league.ids import SnapshotName
from league.players import Player, PlayerKind, PlayerState
from league.rpc.client import MatchmakerClient
from league.runs.blobs import BlobFolder

log = logging.getLogger(__name__)


class Publisher:
    """Writes the blob first, registers it after, so that no member lacks its weights."""

    def __init__(
        self,
        client: MatchmakerClient,
        blobs: BlobFolder,
        card: SnapshotCard,
        live: Player,
        incarnation: int,
    ) -> None:
        self._client, self._blobs, self._card, self._live = client, blobs, card, live
        self._incarnation = incarnation
        self.parent = card.parent
        self.last_step = 0

    def card(self, step: int, reward_scale: float, metrics: Mapping[str, float]) -> SnapshotCard:
        """The card of a snapshot at `step`. The checkpoint before it keeps the card, so that a run
        which dies in between makes the very same file again."""
        return dataclasses.replace(
            self._card,
            step=step,
            parent=self.parent,
            reward_scale=reward_scale,
            metrics=dict(metrics),
            created_at=time.time(),
        )

    def publish(
        self, network: PlayingNetwork, card: SnapshotCard, milestone: bool = False
    ) -> Player:
        """Freezes `network` as ``LIVE@step`` and registers it; the same again changes nothing."""
        digest = save_snapshot(self._blobs, network, card)
        try:
            player = self._register(self._live.name, digest, card, milestone)
        except AlreadyExists:
            player = self._of_another_branch(digest, card, milestone)
        self.parent, self.last_step = player.name, card.step
        waits = player.state is PlayerState.CANDIDATE
        log.info(
            "published %s%s", player.name, ", a candidate until its gate decides" if waits else ""
        )
        return player

    def promote(self) -> None:
        """Makes the newest snapshot a milestone: the run's last one, when a stop had published
        it before.
        """
        for player in self._client.players(kinds=[PlayerKind.SNAPSHOT]):
            if player.name == self.parent and not player.milestone:
                self._client.register_players(
                    [dataclasses.replace(player, milestone=True)], self._incarnation
                )

    def _of_another_branch(self, digest: str, card: SnapshotCard, milestone: bool) -> Player:
        """A run that goes on from an older checkpoint than its newest snapshot comes by the same
        step with other weights: the incarnation is part of the name then, unless an earlier life
        registered it.
        """
        for player in self._client.players(kinds=[PlayerKind.SNAPSHOT]):
            if player.digest == digest:
                return player
        return self._register(f"{self._live.name}.{self._incarnation}", digest, card, milestone)

    def _register(self, lineage: str, digest: str, card: SnapshotCard, milestone: bool) -> Player:
        player = Player(
            name=str(SnapshotName(lineage, card.step)),
            game=self._live.game,
            kind=PlayerKind.SNAPSHOT,
            role=self._live.role,
            parent=card.parent,
            digest=digest,
            step=card.step,
            creator=self._live.creator,
            card_json=card.to_json(),
            milestone=milestone,
            created_at=card.created_at,
        )
        return self._enter(player)

    def _enter(self, player: Player) -> Player:
        registered, retired = self._client.register_players([player], self._incarnation)
        for name in retired:
            log.info("retired %s: the league keeps the newest snapshots", name)
        return registered[0]
