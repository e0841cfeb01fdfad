"""Stages of curricula: where each learner says it is, and what an operator asks of it.

Both are events of the log, so a request that was answered is there after any crash.
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
"""Activity in the last heartbeat of a learner whose steps are done."""


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
    """Records a learner's stages and its place in them; returns the request it has to obey."""
    caller = league.current_incarnation(tx, incarnation)
    if not caller.player:
        raise InvalidInput(f"{caller.worker} trains no player: it has no stages")
    checks.number(step, "step", 0, checks.MAX_STEP)
    checks.text(reason, "reason")
    place = Place(index=index, since_step=since_step, by_hand=by_hand, obeyed=obeyed)
    _check(league, stages, place)
    told = CurriculumStatus(player=caller.player, stages=tuple(stages), place=place)
    if told != league.view.curricula.get(told.player):
        name = told.stage.name
        text = f"{told.player} is in stage {name!r} at step {step:,}"
        if reason:
            text = f"{told.player} enters stage {name!r} at step {step:,}: {reason}"
        league.log(
            tx,
            "stage",
            text,
            player=told.player,
            mix=told.stage.mix,
            step=step,
            stages=[asdict(stage) for stage in told.stages],
            place=asdict(told.place),
            reason=reason,
        )
    return unobeyed(league, told.player, place)


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
    """An operator asks a learner to enter a stage, by name or "next"; the newest request counts."""
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
    """The newest request for a player's stage, if it was not obeyed at `place`; None without."""
    asked = league.view.requests.get(player)
    return asked if place and asked and asked.number > place.obeyed else None


def curricula(league: League, reader: Reader) -> list[CurriculumStatus]:
    """Every learner's curriculum, by name, with what was asked of it and how far it is."""
    workers = (row for row in reader.newest_incarnations() if row.player)
    beats = {row.player: reader.beat(row.number) for row in workers}
    found = []
    for player, told in sorted(league.view.curricula.items()):
        beat = beats.get(player)
        found.append(
            replace(
                told,
                asked=unobeyed(league, player, told.place),
                step=beat.step if beat else told.place.since_step,
                done=beat is not None and beat.activity == DONE,
            )
        )
    return found
