"""Freezes the learner's weights as snapshots and as references (frozen copies that the learner's
policy stays near). Both are members of the league.

A snapshot's card describes the snapshot: sizes, game, step, origin and metrics.
"""

from __future__ import annotations

import dataclasses
import logging
import time
from collections.abc import Mapping, Sequence

from league.agent.contract import PlayingNetwork
from league.agent.network import AgentNetwork
from league.agent.snapshot import SnapshotCard, save_snapshot
from league.errors import AlreadyExists
from league.ids import ReferenceName, SnapshotName
from league.players import Book, Player, PlayerKind, PlayerState
from league.rpc.client import MatchmakerClient
from league.runs.blobs import BlobFolder

_NAMES = {PlayerKind.SNAPSHOT: SnapshotName, PlayerKind.REFERENCE: ReferenceName}
log = logging.getLogger(__name__)


class SnapshotPublisher:
    """Publishes snapshots and references (see the module): stores the file with the weights, then
    registers the member.

    Args:
        client: connection to the matchmaker.
        blobs: folder of the league's weights.
        card: a card with the fields that all snapshots have in common. Step, parent, scale, metrics
            and time are set for each snapshot.
        live: the player that learns.
        incarnation: the learner's incarnation (see `learner.train.join`).

    Attributes:
        parent: name of the newest snapshot.
        last_step: step of the newest snapshot.
    """

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

    def continue_from(self, source: str, config_hash: str) -> None:
        """Makes the snapshot `source` the parent of the next snapshot, because the learner has
        taken over its weights. `config_hash` is the hash of the learner's settings from now on.
        """
        self.parent = source
        self._card = dataclasses.replace(self._card, config_hash=config_hash)

    def card(self, step: int, reward_scale: float, metrics: Mapping[str, float]) -> SnapshotCard:
        """Makes the card of a snapshot at `step`.

        The card is part of the checkpoint that is written before the snapshot. So if a run dies
        between checkpoint and snapshot, it makes the same file again when it continues.

        Args:
            step: step of the training.
            reward_scale: divisor of the rewards.
            metrics: numbers to keep on the card.
        """
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
        """Freezes `network` as the member ``LIVE@step``. A second call with the same card changes
        nothing. A milestone is never retired.
        """
        player = self._freeze(network, card, PlayerKind.SNAPSHOT, milestone)
        self.parent, self.last_step = player.name, card.step
        waits = player.state is PlayerState.CANDIDATE
        log.info(
            "published %s%s", player.name, ", a candidate until its gate decides" if waits else ""
        )
        return player

    def register(self, player: Player) -> Player:
        """Makes a player a member of the league."""
        registered, retired = self._client.register_players([player], self._incarnation)
        for name in retired:
            log.info("retired %s: the league keeps the newest snapshots", name)
        return registered[0]

    def promote(self) -> None:
        """Makes the newest snapshot a milestone, which is never retired. After its last step, a
        learner calls `promote` in place of `publish` if this step already has a snapshot.
        """
        for player in self._client.players(kinds=[PlayerKind.SNAPSHOT]):
            if player.name == self.parent and not player.milestone:
                self.register(dataclasses.replace(player, milestone=True))

    def _freeze(
        self, network: PlayingNetwork, card: SnapshotCard, kind: PlayerKind, milestone: bool = False
    ) -> Player:
        """Makes `network` a member of the league.

        A run that continues from an older checkpoint may reach a step for the second time, with
        other weights. The number of the incarnation then becomes part of the name.
        """
        player = Player(
            name=str(_NAMES[kind](self._live.name, card.step)),
            game=self._live.game,
            kind=kind,
            role=self._live.role,
            parent=card.parent,
            digest=save_snapshot(self._blobs, network, card),
            step=card.step,
            creator=self._live.creator,
            card_json=card.to_json(),
            milestone=milestone,
            created_at=card.created_at,
        )
        try:
            return self.register(player)
        except AlreadyExists:
            for existing in self._client.players(kinds=[kind]):
                if existing.digest == player.digest:
                    return existing
            name = str(_NAMES[kind](f"{self._live.name}.{self._incarnation}", card.step))
            return self.register(dataclasses.replace(player, name=name))

    # -- references -----------------------------------------------------------------------------

    def publish_reference(self, network: AgentNetwork, step: int) -> str:
        """Makes `network` a reference, the member ``LIVE.reference-STEP``, and returns its name.

        The card holds no time. So a run that dies before its next checkpoint later makes the same
        file and the same member again.
        """
        card = dataclasses.replace(self.card(step, 1.0, {}), created_at=0.0)
        return self._freeze(network, card, PlayerKind.REFERENCE).name

    def keep_references(self, names: Sequence[str]) -> None:
        """Retires the learner's references (frozen copies) that are not in `names`, so that they
        are no longer drawn as opponents.
        """
        retired, returned = self._client.keep_references(self._incarnation, names)
        for name in retired:
            log.info("retired %s: it has left the portfolio", name)
        for name in returned:
            log.info("%s is back", name)

    def reference_scores(self) -> Mapping[str, float]:
        """Returns the score of each reference (frozen copy of the learner). If a reference has no
        rating, its parent snapshot's score is returned.

        Many references have no rating, because a reference plays only if a mix names the category
        `reference`. The parent snapshot was frozen at most one `snapshot_interval` earlier. Scores
        from clean matches (which only measure) can't be compared with scores from training matches.
        So all scores come from the same kind of matches: from clean matches, unless training
        matches give more references a score.
        """
        references = self._client.players(kinds=[PlayerKind.REFERENCE])
        return max((self._scores(book, references) for book in (Book.EVAL, Book.TRAIN)), key=len)

    def _scores(self, book: Book, references: Sequence[Player]) -> dict[str, float]:
        rated = {row.player.name: row.score for row in self._client.ratings(book) if row.games}
        scores = {row.name: rated.get(row.name, rated.get(row.parent)) for row in references}
        return {name: score for name, score in scores.items() if score is not None}
