"""The snapshots' networks that a gauntlet needs, loaded and checked before any match is leased."""

from __future__ import annotations

from collections import OrderedDict

from league.agent.contract import PlayingNetwork
from league.agent.snapshot import SnapshotCard, load_snapshot
from league.errors import NotFound, VersionMismatch
from league.games.base import GameSpec
from league.players import Player
from league.runs.blobs import BlobFolder

RESIDENT = 16
"""Networks kept in memory: leaders and parents come again in the next gauntlet."""


class Weights:
    """Networks and cards by digest out of `blobs`, for the game `spec`; the newest used stay in
    memory.
    """

    def __init__(self, blobs: BlobFolder, spec: GameSpec) -> None:
        self._blobs = blobs
        self._spec = spec
        self._loaded: OrderedDict[str, tuple[PlayingNetwork, SnapshotCard]] = OrderedDict()

    def card(self, player: Player) -> SnapshotCard:
        """The card of a snapshot whose weights are whole and fit the game.

        Raises `NotFound`, `DataCorrupt` or `VersionMismatch`, naming the player.
        """
        try:
            _, card = self._load(player.digest)
        except NotFound as error:
            raise NotFound(f"{player.name}: {error}") from None
        if (card.game, card.game_version) != (self._spec.name, self._spec.version):
            raise VersionMismatch(
                f"{player.name} was made for {card.game} {card.game_version}, here is {self._spec.name} "
                f"{self._spec.version}: evaluate it with the version that it was trained in"
            )
        return card

    def network(self, digest: str) -> PlayingNetwork:
        """The network itself, as `BatchedPolicy` asks for it."""
        return self._load(digest)[0]

    def _load(self, digest: str) -> tuple[PlayingNetwork, SnapshotCard]:
        if digest not in self._loaded:
            self._loaded[digest] = load_snapshot(self._blobs, digest, device="cpu")
        self._loaded.move_to_end(digest)
        while len(self._loaded) > RESIDENT:
            self._loaded.popitem(last=False)
        return self._loaded[digest]
