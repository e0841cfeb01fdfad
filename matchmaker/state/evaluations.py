"""Evaluations that were asked for: a fold of the log's events."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import NamedTuple

from league.evaluations import Evaluation, EvaluationState, Target, targets
from league.players import Book, Event

EVENTS = ("evaluation_requested", "evaluation_cancelled")
"""Kinds of events that `Evaluations` is made of."""


class Asked(NamedTuple):
    """An evaluation, open or cancelled: whether it is done is for the books to say."""

    evaluation: Evaluation
    targets: list[Target]


class Evaluations:
    """All evaluations by number, in the order of the requests."""

    def __init__(self) -> None:
        self.asked: dict[int, Asked] = {}

    def take(self, event: Event) -> None:
        """Folds one more event, one of `EVENTS`."""
        data = json.loads(event.data_json)
        if event.kind == "evaluation_requested":
            evaluation = evaluation_of(event)
            self.asked[event.position] = Asked(evaluation, targets(evaluation))
        else:
            self._end(data["number"], data["reason"])

    def forget_results(self) -> None:
        """Ends all of them: the rules of the game have changed, and earlier results don't count."""
        for number in self.asked:
            self._end(number, "the rules of the game have changed since")

    def _end(self, number: int, reason: str) -> None:
        evaluation, wanted = self.asked[number]
        if evaluation.state is EvaluationState.OPEN:
            ended = replace(evaluation, state=EvaluationState.CANCELLED, reason=reason)
            self.asked[number] = Asked(ended, wanted)


def evaluation_of(event: Event) -> Evaluation:
    """The evaluation that an event asked for."""
    data = json.loads(event.data_json)
    return Evaluation(
        number=event.position,
        player=data["player"],
        opponents=tuple(data["opponents"]),
        matches=data["matches"],
        book=Book(data["book"]),
        by=data["by"],
        at=event.at,
    )
