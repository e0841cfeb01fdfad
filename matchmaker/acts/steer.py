"""Records how operators change a running league: the weights of mixes, and pauses of the learners.

The changes are stored as events of the log. So once an operator's call has been answered, the
change survives any crash.
"""

from __future__ import annotations

from collections.abc import Mapping

from league.errors import InvalidInput, NotFound, nearest
from league.players import CATEGORIES, PlayerKind
from league.status import MixChange, Pause
from matchmaker.acts import checks
from matchmaker.state.league import League
from matchmaker.state.steering import change_of
from matchmaker.store.transaction import Transaction

_NAMED = (PlayerKind.BOT, PlayerKind.RIVAL)
"""Kinds of players whose names a mix can use as categories."""


def set_mix(
    league: League, tx: Transaction, mix: str, weights: Mapping[str, float], by: str
) -> MixChange:
    """Changes weights of a mix of opponents for all draws from now on.

    Args:
        mix: name of the mix.
        weights: relative weights by category. Categories that are not named keep their weights,
            and a weight of 0 removes a category.
        by: the operator, for the log.

    Raises:
        NotFound: there is no such mix or category.
        InvalidInput: a weight is negative or not finite, no weight above 0 is left, a bot is held
            out, or `by` is empty.
    """
    _check_operator(by)
    mixes = league.sampling.mixes
    if mix not in mixes:
        hint = nearest(mix, mixes) or f"there are {', '.join(mixes)}"
        raise NotFound(f"there is no mix {mix[:80]!r}: {hint}")
    checks.number(len(weights), "weights", 1, checks.MAX_BATCH)
    for category, weight in weights.items():
        _check_category(league, category)
        if not 0.0 <= weight <= checks.MAX_MEASURED:
            raise InvalidInput(
                f"{mix}.{category} = {weight:g} is no weight: give a number from 0, which removes "
                f"the category, to {checks.MAX_MEASURED:g}"
            )
    if not any({**mixes[mix], **weights}.values()):
        raise InvalidInput(f"mix {mix!r} would have no weight above 0: give one of them more")
    drawn = [
        (player, category, count)
        for (player, name, category), count in league.view.drawn.items()
        if name == mix
    ]
    weights = dict(sorted(weights.items()))  # a message's map has no order
    words = ", ".join(f"{mix}.{category} = {weight:g}" for category, weight in weights.items())
    event = league.log(
        tx,
        "mix_changed",
        f"{by} sets {words}",
        mix=mix,
        weights=weights,
        by=by,
        configured=league.settings.mixes[mix],
        drawn=drawn,
    )
    return change_of(event)


def pause_learners(league: League, tx: Transaction, resume: bool, by: str) -> Pause:
    """Pauses or resumes all learners, and returns the pause that begins or ends.

    Raises:
        InvalidInput: nothing would change, or `by` is empty.
    """
    _check_operator(by)
    pause = league.view.steering.pause
    if resume:
        if pause is None:
            raise InvalidInput("the learners are not paused: there is nothing to resume")
        league.log(tx, "learners_resumed", f"{by} lets the learners go on", by=by)
        return pause
    if pause is not None:
        raise InvalidInput(f"{pause.by} has paused the learners: `bin/league resume` ends this")
    event = league.log(tx, "learners_paused", f"{by} pauses the learners", by=by)
    return Pause(by=by, at=event.at)


def _check_operator(by: str) -> None:
    checks.text(by, "by", checks.MAX_NAME)
    if not by.strip():
        raise InvalidInput("the log notes who steers the league: by is empty")


def _check_category(league: League, category: str) -> None:
    players = league.view.players.values()
    named = [player.name for player in players if player.kind in _NAMED and not player.held_out]
    if category in (*CATEGORIES, *named):
        return
    if category in league.view.players and league.view.players[category].held_out:
        raise InvalidInput(
            f"{category} is held out for the evaluator and never trained against: name another bot"
        )
    known = [*CATEGORIES, *named]
    hint = nearest(category, known) or f"there are {', '.join(known)}"
    raise NotFound(f"{category[:80]!r} is neither a category nor a bot or rival here: {hint}")
