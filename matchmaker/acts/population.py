"""Compares the mains of a population, and lets a main copy a better main's weights and settings.

A comparison takes two calls of a member. The first call requests clean matches (both players
frozen) of the member's newest snapshot against the newest snapshot of each other main. The second
call, an interval later, judges these matches. Each match is judged once, and all intervals of a run
hold together with `CONFIDENCE`.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, replace

from league.errors import InvalidInput, NotFound, Refused
from league.evaluations import EvaluationState
from league.players import Book, Player, PlayerKind, PlayerState, Role, newest_snapshot
from league.population import Member, MemberCopy
from league.stats.population import better_member, confidence_of_each, perturbed
from matchmaker.acts import checks, evaluate
from matchmaker.sampling.draw import derived_seed
from matchmaker.state.league import League
from matchmaker.store.transaction import Transaction

MATCHES = 400
"""Clean matches of a main's newest snapshot against each other main's for a comparison. They show a
lead of 0.2 points or more in most cases."""
CONFIDENCE = 0.95
"""Confidence of all comparisons of a run together."""
FACTOR = 1.25
"""Factor by which a copy multiplies or divides each setting, at random."""
BY = "the population"
"""Name of the league itself in the evaluations that it requests."""


def compare_member(
    league: League,
    tx: Transaction,
    incarnation: int,
    step: int,
    last_step: int,
    values: Mapping[str, float],
    applied: int,
) -> MemberCopy | None:
    """Compares a main with the other mains, if a comparison is due.

    A repeated call is safe: until the main reports that it has applied a copy, it gets this copy
    again.

    Args:
        step: the main's present step.
        last_step: the step at which its training ends.
        values: its settings that may change, by name.
        applied: number of the newest copy that it has applied, 0 without a copy.

    Returns:
        The copy that the main has to apply now, or None.

    Raises:
        InvalidInput: the worker does not train a main, or a field is out of bounds.
    """
    row = league.current_incarnation(tx, incarnation)
    checks.number(step, "step", 0, checks.MAX_STEP)
    checks.number(last_step, "last_step", 0, checks.MAX_STEP)
    checks.number(applied, "applied", 0, checks.MAX_STEP)
    _check_values(values)
    interval, state = league.settings.population_interval, league.view.population
    if not interval:
        return None
    live = _mains(league)
    if row.player not in live:
        raise InvalidInput(f"{row.worker} trains no main: only mains make up a population")
    copy = state.newest_copy(row.player)
    if copy is not None and copy.number > applied:
        return copy
    member = state.members.get(row.player)
    if member is not None and step - member.step < interval:
        return None
    if member is not None and member.evaluation:
        found = evaluate.report(league, member.evaluation)
        if found.is_open:
            return None  # the evaluators are late, so the main asks again after its next snapshot
        done = found.evaluation.state is EvaluationState.DONE
        comparisons = max(1, last_step // interval)
        confidence = confidence_of_each(CONFIDENCE, len(live), comparisons)
        if done and (
            copy := _judged(league, tx, found.evaluation.player, member, step, confidence)
        ):
            return copy
    _request(league, tx, Member(player=row.player, step=step, values=dict(values)), live)
    return None


def _check_values(values: Mapping[str, float]) -> None:
    checks.number(len(values), "values", 0, checks.MAX_METRICS)
    for name, value in values.items():
        checks.text(name, "a setting's name", checks.MAX_NAME)
        if not abs(value) <= checks.MAX_MEASURED:
            raise InvalidInput(f"{name} = {value:g} is no setting: give a number")


def _mains(league: League) -> list[str]:
    """Returns the names of the league's mains."""
    return [
        player.name
        for player in league.view.players.values()
        if player.kind is PlayerKind.LIVE
        and player.role is Role.MAIN
        and player.state is PlayerState.ACTIVE
    ]


def _request(league: League, tx: Transaction, member: Member, live: list[str]) -> None:
    """Requests the matches of a member's next comparison, and logs its present settings. The
    comparison is left out if no snapshot can be paired, or if too many evaluations are open.
    """
    fit = [one for one in league.view.players.values() if one.state is not PlayerState.QUARANTINED]
    newest = dict[str, Player]()
    for name in live:
        with suppress(NotFound):  # it has only just begun
            newest[name] = newest_snapshot(name, fit)
    own, others = newest.pop(member.player, None), [one.name for one in newest.values()]
    if own is not None and others:
        with suppress(Refused):
            asked = evaluate.request_evaluation(
                league, tx, own.name, others, MATCHES, Book.EVAL, BY
            )
            member = replace(member, evaluation=asked.number)
    words = ", ".join(f"{name} = {value:g}" for name, value in sorted(member.values.items()))
    text = f"{member.player} trains with {words}"
    league.log(tx, "member_compared", text, member=asdict(member))


def _judged(
    league: League, tx: Transaction, own: str, member: Member, step: int, confidence: float
) -> MemberCopy | None:
    """Judges a comparison. Logs and returns a copy if another member is better for certain."""
    view = league.view
    payoff = view.tables[Book.EVAL].payoff
    cells = {
        name: payoff.cell(name, own)
        for name in evaluate.report(league, member.evaluation).evaluation.opponents
        if view.players[name].state is not PlayerState.QUARANTINED
    }
    chosen = better_member(cells, payoff.stakes, confidence)
    if chosen is None:
        return None
    source, value = chosen
    other = next(
        (
            entry
            for entry in view.population.members.values()
            if view.players[source].creator == view.players[entry.player].creator
        ),
        member,
    )
    rng = random.Random(derived_seed(league.seed, member.evaluation, step))
    copy = MemberCopy(
        number=0,
        player=member.player,
        step=step,
        source=source,
        digest=view.players[source].digest,
        values=perturbed(other.values, FACTOR, rng),
        score=value.value,
        low=value.low,
        high=value.high,
        confidence=confidence,
        matches=cells[source].games,
    )
    words = ", ".join(f"{name} = {value:g}" for name, value in sorted(copy.values.items()))
    text = (
        f"{copy.player} copies {source}, which beats {own} by {value.value:.3g} a match (at least "
        f"{value.low:.3g}, {copy.matches} matches), and continues with {words}"
    )
    event = league.log(tx, "member_copied", text, copy=asdict(copy))
    return replace(copy, number=event.position, at=event.at)
