"""References as members of the league: frozen copies with a name, a digest, a card and, in time,
a rating.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Mapping, Sequence

from league.agent.network import AgentNetwork
from league.agent.snapshot import save_snapshot
from league.errors import AlreadyExists
from league.ids import ReferenceName
from league.players import Book, Player, PlayerKind
from league.rpc.client import MatchmakerClient
from league.runs.blobs import BlobFolder
from learner.train.publisher import Publisher

log = logging.getLogger(__name__)


class ReferenceMembers:
    """Registers references under a learner's lineage, and asks how strong they are."""

    def __init__(
        self,
        client: MatchmakerClient,
        blobs: BlobFolder,
        publisher: Publisher,
        live: Player,
        incarnation: int,
    ) -> None:
        self._client, self._blobs, self._publisher = client, blobs, publisher
        self._live, self._incarnation = live, incarnation

    def register(self, network: AgentNetwork, step: int) -> str:
        """Makes `network` the member ``LIVE.reference-STEP`` and returns its name.

        A run that died behind this and before its next checkpoint freezes the same copy again: the
        card holds nothing of the moment, so that it is the same file and the same member.
        """
        card = dataclasses.replace(self._publisher.card(step, 1.0, {}), created_at=0.0)
        digest = save_snapshot(self._blobs, network, card)
        player = Player(
            name=str(ReferenceName(self._live.name, step)),
            game=self._live.game,
            kind=PlayerKind.REFERENCE,
            role=self._live.role,
            parent=card.parent,
            digest=digest,
            step=step,
            creator=self._live.creator,
            card_json=card.to_json(),
        )
        try:
            return self._enter(player)
        except AlreadyExists:  # another branch of the run came by this step, with other weights
            lineage = f"{self._live.name}.{self._incarnation}"
            return self._enter(dataclasses.replace(player, name=str(ReferenceName(lineage, step))))

    def keep(self, names: Sequence[str]) -> None:
        """Only these of the learner's references are drawn as opponents from now on; its others
        retire.
        """
        retired, returned = self._client.keep_references(self._incarnation, names)
        for name in retired:
            log.info("retired %s: the learner is no longer held near it", name)
        for name in returned:
            log.info("%s is back", name)

    def _enter(self, player: Player) -> str:
        registered, _ = self._client.register_players([player], self._incarnation)
        return registered[0].name

    def scores(self) -> Mapping[str, float]:
        """The reference's own score, or until it has one its parent snapshot's; the unrated are
        left out.

        A reference meets others only where a mix names the category `reference`; its parent was
        frozen at most one `snapshot_interval` before it. Scores of two books don't compare: clean
        matches count, or training matches where these rate more of the references.
        """
        references = self._client.players(kinds=[PlayerKind.REFERENCE])
        return max((self._scores(book, references) for book in (Book.EVAL, Book.TRAIN)), key=len)

    def _scores(self, book: Book, references: Sequence[Player]) -> dict[str, float]:
        rated = {row.player.name: row.score for row in self._client.ratings(book) if row.games}
        scores = {
            player.name: rated.get(player.name, rated.get(player.parent)) for player in references
        }
        return {name: score for name, score in scores.items() if score is not None}
