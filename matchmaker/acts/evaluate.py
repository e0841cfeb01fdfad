"""Records and cancels requests for evaluations, and reports their progress. Evaluators play the
matches of open evaluations.

Only the requests are stored, not their progress. An evaluation is done when its book (the results
of one kind of match) counts enough matches between its players, no matter which evaluator played
them or why. If some of the counted matches stop counting later, the evaluation is open again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from league.errors import InvalidInput, NotFound, Refused, nearest
from league.evaluations import (
    MAX_PAIRS,
    Evaluation,
    EvaluationState,
    Report,
    members_of,
    score_of,
    targets,
    text_of,
)
from league.players import Book, PlayerKind, newest_snapshot
from matchmaker.acts import checks
from matchmaker.acts.analyse import nash_of
from matchmaker.acts.assign import check_frozen
from matchmaker.state.evaluations import Asked, evaluation_of
from matchmaker.state.league import League
from matchmaker.store.transaction import Transaction

MAX_OPEN = 100
MAX_MATCHES = 100_000


def request_evaluation(
    league: League,
    tx: Transaction,
    player: str,
    opponents: Sequence[str],
    matches: int,
    book: Book,
    by: str,
) -> Evaluation:
    """Records a request for clean matches, in which both players are frozen.

    Args:
        player: the name of a player or of a mixture. A player that still learns is replaced by its
            newest snapshot.
        opponents: names of players or mixtures. Players that still learn are replaced in the same
            way.
        matches: number of matches against each opponent. It must be even.
        book: the book (kind of match) in which the matches count, eval or greedy.
        by: the person who asks.

    Raises:
        InvalidInput: a field is out of bounds, or a player would meet itself.
        NotFound: a player does not exist.
        Refused: too many evaluations are open, or a player can't be paired.
    """
    checks.text(by, "by", checks.MAX_NAME)
    if not by.strip():
        raise InvalidInput("a request for an evaluation says who asks: by is empty")
    if book is Book.TRAIN:
        raise InvalidInput("an evaluation is of clean matches: name the book eval or greedy")
    checks.number(matches, "matches", 2, MAX_MATCHES)
    if matches % 2:
        raise InvalidInput(f"matches = {matches} is odd: each seed is played from both seats")
    checks.number(len(opponents), "opponents", 1, MAX_PAIRS)
    evaluation = Evaluation(
        number=0,
        player=_frozen(league, player, "player"),
        opponents=tuple(dict.fromkeys(_frozen(league, name, "an opponent") for name in opponents)),
        matches=matches,
        book=book,
        by=by,
    )
    wanted = targets(evaluation)
    for target in wanted:
        if target.player == target.opponent:
            raise InvalidInput(f"{target.player} can't meet itself: name another opponent")
    checks.number(len(wanted), "pairs of players", 1, MAX_PAIRS)
    if sum(1 for _ in _open(league)) >= MAX_OPEN:
        raise Refused(f"{MAX_OPEN} evaluations are open, the most: wait, or cancel some")
    others = ", ".join(evaluation.opponents[:3])
    if more := len(evaluation.opponents) - 3:
        others += f" and {more} others" if more > 0 else ""
    text = (
        f"{by} asks for {matches} matches of {evaluation.player} against {others} in the book "
        f"{book.value}"
    )
    event = league.log(
        tx,
        "evaluation_requested",
        text,
        player=evaluation.player,
        opponents=evaluation.opponents,
        matches=matches,
        book=book.value,
        by=by,
    )
    return standing(league, Asked(evaluation_of(event), wanted))


def _frozen(league: League, who: str, label: str) -> str:
    """Replaces named mixtures by their members, and live players by their newest snapshots."""
    view, shares = league.view, dict[str, float]()
    members = members_of(
        checks.text(who, label, MAX_PAIRS * checks.MAX_PLAYER_NAME),
        view.players.values,
        lambda: nash_of(view.players.values(), view.tables[Book.EVAL]),
    )
    for name, share in members.items():
        player = view.players.get(name)
        if player is None:
            near = nearest(name, view.players) or "bin/league players lists them"
            raise NotFound(f"there is no player {name[:80]!r}: {near}")
        if player.kind is PlayerKind.LIVE:
            player = newest_snapshot(name, view.players.values())
        check_frozen(league, player.name)
        shares[player.name] = shares.get(player.name, 0.0) + share
    return text_of(shares)


def cancel_evaluation(
    league: League, tx: Transaction, number: int, by: str, reason: str
) -> Evaluation:
    """Ends an open evaluation and returns it. An evaluation that has ended does not change.

    Raises:
        NotFound: there is no such evaluation.
        InvalidInput: `by` or `reason` is empty.
    """
    checks.text(by, "by", checks.MAX_NAME)
    checks.text(reason, "reason")
    asked = _asked(league, number)
    if not by.strip() or not reason.strip():
        raise InvalidInput(f"evaluation {number} is cancelled by someone, for a reason: give both")
    evaluation = standing(league, asked)
    if evaluation.state is not EvaluationState.OPEN:
        return evaluation
    reason = f"{by}: {reason}"
    text = f"evaluation {number} of {evaluation.player} is cancelled by {reason}"
    league.log(tx, "evaluation_cancelled", text, number=number, reason=reason)
    return replace(evaluation, state=EvaluationState.CANCELLED, reason=reason)


def cancel_those_of(league: League, tx: Transaction, name: str, by: str, reason: str) -> None:
    """Cancels the open evaluations of a player."""
    for evaluation, wanted in list(_open(league)):
        if any(name in (target.player, target.opponent) for target in wanted):
            cancel_evaluation(league, tx, evaluation.number, by, reason)


def standing(league: League, asked: Asked) -> Evaluation:
    """Returns an evaluation with its present state. It is done if all the requested matches count
    in its book (kind of match).
    """
    evaluation, wanted = asked
    if evaluation.state is EvaluationState.OPEN:
        payoff = league.view.tables[evaluation.book].payoff
        if all(payoff.counts(x.player, x.opponent).games >= x.until for x in wanted):
            return replace(evaluation, state=EvaluationState.DONE)
    return evaluation


def _open(league: League) -> Iterator[Asked]:
    for asked in league.view.evaluations.asked.values():
        if standing(league, asked).state is EvaluationState.OPEN:
            yield asked


def _asked(league: League, number: int) -> Asked:
    asked = league.view.evaluations.asked.get(number)
    if asked is None:
        raise NotFound(
            f"there is no evaluation {number}: `bin/league evaluations` lists those that are"
        )
    return asked


def report(league: League, number: int) -> Report:
    """Reports the progress of an evaluation. An unknown number raises `NotFound`."""
    asked = _asked(league, number)
    evaluation, cell = asked.evaluation, league.view.tables[asked.evaluation.book].payoff.cell
    scores = tuple(score_of(evaluation.player, name, cell) for name in evaluation.opponents)
    return replace(_summary(league, asked), scores=scores)


def summaries(league: League, number: int = 0) -> list[Report]:
    """Returns a report without scores on each evaluation, or only on evaluation `number` if
    `number` is not 0.

    Raises:
        NotFound: there is no such evaluation.
    """
    evaluations = league.view.evaluations.asked.values()
    return [
        _summary(league, asked) for asked in ([_asked(league, number)] if number else evaluations)
    ]


def _summary(league: League, asked: Asked) -> Report:
    payoff = league.view.tables[asked.evaluation.book].payoff
    counts = [payoff.counts(pair.player, pair.opponent).games for pair in asked.targets]
    return Report(
        evaluation=standing(league, asked),
        scores=(),
        matches_done=sum(min(n, x.until) for n, x in zip(counts, asked.targets, strict=True)),
        matches_total=sum(pair.until for pair in asked.targets),
    )
