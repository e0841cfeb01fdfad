"""Records which stage of its curriculum each learner is in, and which stages operators ask learners
to enter.

Both are stored as events of the log. So once an operator's call has been answered, the request
survives any crash.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, replace

from league.errors import InvalidInput
from league.stages import (
    CurriculumStatus,
    Place,
    Stage,
    StageRequest,
    checked_stages,
    named_stage,
    one_curriculum,
)
from matchmaker.acts import checks
from matchmaker.state.league import League
from matchmaker.store.transaction import Reader, Transaction

MAX_STAGES = 64
DONE = "done"
"""Activity in the last heartbeat of a learner that has done all its steps."""


def enter_stage(
    league: League,
    tx: Transaction,
    incarnation: int,
    step: int,
    stages: Sequence[Stage],
    index: int,
    since_step: int,
    by_hand: bool,
    obeyed: int,
    reason: str,
) -> StageRequest | None:
    """Records the stages of a learner's curriculum, and which stage is active. Returns the
    operator's request that the learner has not obeyed yet, or None.

    Args:
        step: the learner's step.
        stages: all stages of its curriculum.
        index: index of the active stage.
        since_step: the learner's step when the stage began.
        by_hand: whether an operator began the stage.
        obeyed: number of the newest request that the learner has obeyed, 0 for no request.
        reason: why the previous stage ended, or "" when the learner starts.

    Raises:
        InvalidInput: a field is out of bounds, or the worker trains no player.
    """
    caller = league.current_incarnation(tx, incarnation)
    if not caller.player:
        raise InvalidInput(f"{caller.worker} trains no player: it has no stages")
    checks.number(step, "step", 0, checks.MAX_STEP)
    checks.text(reason, "reason")
    place = Place(index=index, since_step=since_step, by_hand=by_hand, obeyed=obeyed)
    _check(league, stages, place)
    status = CurriculumStatus(player=caller.player, stages=tuple(stages), place=place)
    if status != league.view.curricula.get(status.player):
        name = status.stage.name
        text = f"{status.player} is in stage {name!r} at step {step:,}"
        if reason:
            text = f"{status.player} enters stage {name!r} at step {step:,}: {reason}"
        league.log(
            tx,
            "stage",
            text,
            player=status.player,
            mix=status.stage.mix,
            step=step,
            stages=[asdict(stage) for stage in status.stages],
            place=asdict(status.place),
            reason=reason,
        )
    return unobeyed(league, status.player, place)


def _check(league: League, stages: Sequence[Stage], place: Place) -> None:
    checks.number(len(stages), "stages", 1, MAX_STAGES)
    checked_stages(stages, place.index)
    checks.number(place.since_step, "since_step", 0, checks.MAX_STEP)
    checks.number(place.obeyed, "obeyed", 0, league.view.event_position)
    for stage in stages:
        for value in (stage.name, stage.mix, stage.reward, stage.until_opponent):
            checks.text(value, "a name in a stage", checks.MAX_NAME)
        if not (math.isfinite(stage.until_win_rate) and 0.0 <= stage.until_win_rate <= 1.0):
            raise InvalidInput(f"{stage.name}: until_win_rate = {stage.until_win_rate} is no share")
        checks.number(stage.min_matches, "min_matches", 0, checks.MAX_STEP)
        checks.number(stage.max_steps or 0, "max_steps", 0, checks.MAX_STEP)


def ask_stage(league: League, tx: Transaction, player: str, stage: str, by: str) -> StageRequest:
    """Records that an operator asks a learner to enter a stage. The newest request counts.

    Args:
        player: the live player, or "" if only one player has a curriculum.
        stage: name of a stage, or "next".
        by: the operator who asks, for the log.

    Raises:
        NotFound: there is no such stage or curriculum.
        InvalidInput: the learner is in this stage already, there is no next stage, several players
            have a curriculum and none is named, or `by` is empty.
        Refused: the learner has done all its steps.
    """
    checks.text(by, "by", checks.MAX_NAME)
    checks.text(player, "player", checks.MAX_PLAYER_NAME)
    checks.text(stage, "stage", checks.MAX_NAME)
    if not by.strip():
        raise InvalidInput("a request for a stage says who asks: by is empty")
    status = one_curriculum(curricula(league, tx), player)
    wanted = named_stage(status, stage)
    if status.asked is not None and status.asked.stage == wanted.name:
        return status.asked
    text = f"{by} asks {status.player} to enter stage {wanted.name!r}"
    event = league.log(tx, "stage_asked", text, player=status.player, stage=wanted.name, by=by)
    return StageRequest(number=event.position, stage=wanted.name, by=by, at=event.at)


def unobeyed(league: League, player: str, place: Place | None) -> StageRequest | None:
    """Returns the newest request for a player's stage, or None if `place` shows that the player has
    obeyed it.
    """
    asked = league.view.requests.get(player)
    return asked if place and asked and asked.number > place.obeyed else None


def curricula(league: League, reader: Reader) -> list[CurriculumStatus]:
    """Returns the curricula of all learners, sorted by the learners' names. Each curriculum comes
    with the request that the learner has not obeyed yet, and with the learner's step.
    """
    workers = (row for row in reader.newest_incarnations() if row.player)
    beats = {row.player: reader.beat(row.number) for row in workers}
    statuses = []
    for player, status in sorted(league.view.curricula.items()):
        beat = beats.get(player)
        statuses.append(
            replace(
                status,
                asked=unobeyed(league, player, status.place),
                step=beat.step if beat else status.place.since_step,
                done=beat is not None and beat.activity == DONE,
            )
        )
    return statuses
