"""Describes a learner's curriculum: its stages, the learner's place in it, and operators' requests.

A stage sets the learner's opponents and rewards, and the condition under which the stage ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from league.errors import InvalidInput, NotFound, Refused, nearest

NEXT = "next"
"""The word that asks for the stage after the present stage. No stage may have this name."""


@dataclass(frozen=True, kw_only=True)
class Stage:
    """Describes a stage. `learner.settings.StageSettings` documents the fields."""

    name: str
    mix: str
    reward: str = ""
    until_opponent: str = ""
    until_win_rate: float = 1.0
    min_matches: int = 100
    max_steps: int | None = None


@dataclass(frozen=True, kw_only=True)
class StageRequest:
    """Records an operator's request that a learner enter a stage. Only the latest request counts.

    `number` is the position of the request in the log.
    """

    number: int
    stage: str
    by: str
    at: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Place:
    """Gives a learner's place in its curriculum. The learner's checkpoint stores this place.

    `index` is the stage's number, and `since_step` the learner's step when the stage began.
    `by_hand` is true if an operator began the stage. `obeyed` is the log position of the last
    operator's request that the learner has obeyed.
    """

    index: int = 0
    since_step: int = 0
    by_hand: bool = False
    obeyed: int = 0


@dataclass(frozen=True, kw_only=True)
class CurriculumStatus:
    """Combines a learner's stages with its place.

    `asked` is an operator's request that the learner has not obeyed yet.
    """

    player: str
    stages: tuple[Stage, ...]
    place: Place
    asked: StageRequest | None = None
    step: int = 0
    done: bool = False

    @property
    def stage(self) -> Stage:
        return self.stages[self.place.index]

    @property
    def is_climbing(self) -> bool:
        """Returns whether the learner has to reach a win rate before its next stage."""
        return bool(self.stage.until_opponent) and self.stage is not self.stages[-1]


def named_stage(status: CurriculumStatus, name: str) -> Stage:
    """Finds the stage that an operator asks for.

    Args:
        status: the learner's curriculum.
        name: the name of a stage, or "next".

    Raises:
        NotFound: no stage has this name.
        InvalidInput: the learner is in this stage already, or there is no next stage.
        Refused: the learner has done all its steps.
    """
    player, stages, now = status.player, status.stages, status.stage
    if status.done:
        raise Refused(
            f"{player} has done all its steps: start the run again with more (--steps) first"
        )
    if name == NEXT:
        if status.place.index + 1 == len(stages):
            only = "has one stage," if len(stages) == 1 else "is in its last stage,"
            raise InvalidInput(
                f"{player} {only} {now.name!r}: there is no next one, name a stage to go to"
            )
        return stages[status.place.index + 1]
    for stage in stages:
        if stage.name == name:
            return _other(status, stage)
    names = [stage.name for stage in stages]
    raise NotFound(
        f"{player} has no stage {name[:80]!r}: "
        f"{nearest(name, names) or 'there are ' + ', '.join(names)}"
    )


def _other(status: CurriculumStatus, stage: Stage) -> Stage:
    """Returns `stage`, or raises `InvalidInput` if the learner is already in this stage.

    If the learner has not yet obeyed an earlier request, an operator may name the present stage, in
    order to take back that request.
    """
    if stage == status.stage and (status.asked is None or status.asked.stage == stage.name):
        raise InvalidInput(f"{status.player} is in stage {stage.name!r} already: name another one")
    return stage


def one_curriculum(curricula: Iterable[CurriculumStatus], player: str) -> CurriculumStatus:
    """Finds the curriculum of a player.

    Args:
        curricula: the curricula of all learners.
        player: the learner's live player. "" means the only learner that has a curriculum.

    Raises:
        NotFound: the player has no curriculum.
        InvalidInput: no player is named, and there are several to choose from.
    """
    known = {status.player: status for status in curricula}
    if not known:
        raise NotFound("no learner of this league has reported its stages yet: start one, or wait")
    if player in known:
        return known[player]
    if player:
        raise NotFound(f"{player!r} has no curriculum here: there are {', '.join(known)}")
    if len(known) > 1:
        raise InvalidInput(f"several learners have a curriculum: name one of {', '.join(known)}")
    return next(iter(known.values()))


def evidence_after(place: Place) -> int:
    """Returns the step after which a snapshot must have been made for its matches to count toward
    the end of the present stage.

    If an operator began the stage, this is the step at which the stage began. Otherwise it is -1,
    so that all matches count. An operator may send the learner back to an earlier stage, whose goal
    the older matches meet already. If these matches counted, the stage would end again at once.
    """
    return place.since_step if place.by_hand else -1


def checked_stages(stages: Sequence[Stage], index: int) -> None:
    """Raises `InvalidInput` if two stages have the same name, or `index` is out of range."""
    names = [stage.name for stage in stages]
    if len(set(names)) < len(names):
        raise InvalidInput(f"stages need different names: {', '.join(names)}")
    if not 0 <= index < len(names):
        raise InvalidInput(f"stage {index} is none of the {len(names)} stages")
