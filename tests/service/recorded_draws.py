"""A real matchmaker whose draws are recorded, or come from a record: two leagues play the same
matches.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from types import MethodType
from typing import Any

import pytest

from league.players import Assignment
from league.v1 import matchmaker_pb2 as m
from matchmaker.acts import assign as assigning
from matchmaker.acts.incarnate import Opened, open_incarnation
from matchmaker.api.server import MatchmakerServer
from matchmaker.api.service import mutation
from matchmaker.sampling import draw as sampling
from matchmaker.sampling.draw import Draw

Place = tuple[str, int]
"""Of a match: the mix that it was drawn by, and which of that mix's draws it is."""


class NotYet(Exception):
    """The next opponent of the record has not joined this league yet."""


class RecordedDraws:
    """Draws one learner's matches from a record, by mix, and after it continues with a matchmaker's
    own draws.

    A match keeps its place when it is carried over a restart, and what was drawn after a
    checkpoint is drawn again by the process that continues from there. A draw waits until its
    opponent has joined: in the recorded league it had, and how far ahead matches are fetched is a
    matter of time.
    """

    def __init__(self, record: Mapping[str, Sequence[Draw]]) -> None:
        self.record = {mix: list(drawn) for mix, drawn in record.items()}
        self.places: dict[str, Place] = {}
        self._next: Counter[str] = Counter()
        self._mix, self._given = "", list[Draw]()

    def of(self, server: MatchmakerServer, patch: pytest.MonkeyPatch) -> RecordedDraws:
        """Makes them `server`'s, which must not serve yet."""
        patch.setattr(assigning, "draws", self.draws)
        opening = mutation(m, "OpenIncarnation", self.open_incarnation)
        patch.setattr(server.service, "OpenIncarnation", MethodType(opening, server.service))
        answer = mutation(m, "AcquireMatches", self.acquire_matches)

        async def wait(request: m.AcquireMatchesRequest, context: Any) -> m.AcquireMatchesResponse:
            try:
                return await answer(server.service, request, context)
            except NotYet:
                await asyncio.sleep(0.02)  # the learner asks again at once
                return m.AcquireMatchesResponse()

        patch.setattr(server.service, "AcquireMatches", wait)
        return self

    def acquire_matches(
        self, league: Any, tx: Any, incarnation: int, count: int, mix: str
    ) -> list[Assignment]:
        first = self._next[mix]
        known = self.record.setdefault(mix, [])[first : first + count]
        self._given = list(takewhile(lambda draw: draw.opponent in league.view.players, known))
        if known and not self._given:
            raise NotYet(f"{known[0].opponent} has not joined yet")
        self._mix = mix
        count = len(self._given) or count
        matches = assigning.acquire_matches(league, tx, incarnation, count, mix)
        self._next[mix] += len(matches)
        self.places |= {match.match_id: (mix, place) for place, match in enumerate(matches, first)}
        return matches

    def draws(self, *asked: Any) -> Iterator[Draw]:
        if self._given:
            return iter(self._given)
        drawn = list(sampling.draws(*asked))
        self.record[self._mix] += drawn
        return iter(drawn)

    def open_incarnation(self, league: Any, tx: Any, **asked: Any) -> Opened:
        opened = open_incarnation(league, tx, **asked)
        self._next.clear()
        for match in opened.carried:
            mix, index = self.places[match.match_id] = self.places[match.replaces]
            self._next[mix] = max(self._next[mix], index + 1)
        return opened
