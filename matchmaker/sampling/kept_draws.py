"""What opponents are drawn from is found once and kept, until enough has happened that it would be
different.

Weights are of all candidates, and everybody's change a little with each result. They are found anew
when the learner has LAG results more for each candidate, or the league one; and at once when a
player comes or goes, when what is believed is changed otherwise, and for a call that names another
mix.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from league.players import Player
from matchmaker.sampling.draw import DrawTable, Stream, draw_table
from matchmaker.state.league import League
from matchmaker.store.base import Transaction

LAG = 1 / 8
"""Results of the learner, for each candidate, that its weights may not hold yet."""


@dataclass(frozen=True)
class KeptDraw:
    """A table that calls draw from: `number` is its row in the log, the rest says when it was
    found.
    """

    number: int
    table: DrawTable
    stream: Stream
    generation: int
    results: int
    learner_results: int

    @cached_property
    def candidates(self) -> int:
        return sum(len(distribution.names) for distribution in self.table.within.values())


def current(league: League, tx: Transaction, learner: Player, mix: str) -> KeptDraw:
    """The table to draw this learner's opponents from now; a new one is stored with its first
    draws.
    """
    view, key = league.view, (learner.name, mix)
    kept = view.kept_draws.get(key)
    if kept is not None and _holds(league, kept, learner):
        return kept
    table = draw_table(
        league.settings, learner, mix, view.players, view.tables, view.analysis, view.exploiters
    )
    found = KeptDraw(
        number=tx.add_draw(league.draw_row(table.body_json, league.stream.seed)),
        table=table,
        stream=league.stream,
        generation=view.generation,
        results=view.log_position,
        learner_results=view.results_of[learner.name],
    )
    tx.after_commit(lambda: view.kept_draws.update({key: found}))
    return found


def _holds(league: League, kept: KeptDraw, learner: Player) -> bool:
    view, candidates = league.view, kept.candidates
    return (
        kept.generation == view.generation
        and view.log_position - kept.results < candidates
        and view.results_of[learner.name] - kept.learner_results < max(1.0, LAG * candidates)
    )
