"""Collects the requested evaluations from the log's events."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from league.evaluations import Evaluation, EvaluationState, Target, targets
from league.players import Book, Event

EVENTS = ("evaluation_requested", "evaluation_cancelled", "rules_changed")
"""Kinds of events that `Evaluations` reads."""


class Asked(NamedTuple):
    """Holds a requested evaluation, whose state is open or cancelled. Whether the evaluation is
    done follows from the match counts in its book (kind of match).
    """

    evaluation: Evaluation
    targets: list[Target]


class Evaluations:
    """Keeps all evaluations by number, in the order of the requests."""

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self.asked: dict[int, Asked] = {}
        for event in events:
            self.take(event)

    def take(self, event: Event) -> None:
        """Applies an event of a kind in `EVENTS`. New rules of the game end all evaluations,
        because results under the old rules don't count.
        """
        if event.kind == "rules_changed":
            for number in self.asked:
                self._end(number, "the rules of the game have changed since")
        elif event.kind == "evaluation_requested":
            evaluation = evaluation_of(event)
            self.asked[event.position] = Asked(evaluation, targets(evaluation))
        else:
            data = json.loads(event.data_json)
            self._end(data["number"], data["reason"])

    def _end(self, number: int, reason: str) -> None:
        evaluation, wanted = self.asked[number]
        if evaluation.state is EvaluationState.OPEN:
            ended = replace(evaluation, state=EvaluationState.CANCELLED, reason=reason)
            self.asked[number] = Asked(ended, wanted)


def evaluation_of(event: Event) -> Evaluation:
    """Reads an evaluation from its event."""
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
