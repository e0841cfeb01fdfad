"""A learner's curriculum as the league sees it: its stages, its place in them, and requests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from league.errors import InvalidInput, NotFound, Refused, nearest

NEXT = "next"
"""Asks for the stage after the present one, so no stage may have this name."""


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One stage; field meanings: `learner.settings.StageSettings`."""

    name: str
    mix: str
    reward: str = ""
    until_opponent: str = ""
    until_win_rate: float = 1.0
    min_matches: int = 100
    max_steps: int | None = None


@dataclass(frozen=True, kw_only=True)
class StageRequest:
    """An operator's request. `number` is its position in the log: the later of two counts."""

    number: int
    stage: str
    by: str
    at: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where in its curriculum a learner is, as its checkpoint stores it."""

    index: int = 0
    since_step: int = 0
    by_hand: bool = False
    obeyed: int = 0


@dataclass(frozen=True, kw_only=True)
class CurriculumStatus:
    """A learner's stages and its place in them; `asked` is a request that it has not obeyed yet."""

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
        """Whether the learner has a goal to reach before its next stage."""
        return bool(self.stage.until_opponent) and self.stage is not self.stages[-1]


def named_stage(status: CurriculumStatus, name: str) -> Stage:
    """The stage that an operator means by `name` or by "next".

    Raises `NotFound` for a name that no stage has, `InvalidInput` for one that can't be asked for,
    and `Refused` when the learner's steps are done.
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
    """`stage`, unless it is on already; then it may only take an unobeyed request back."""
    if stage == status.stage and (status.asked is None or status.asked.stage == stage.name):
        raise InvalidInput(f"{status.player} is in stage {stage.name!r} already: name another one")
    return stage


def one_curriculum(curricula: Iterable[CurriculumStatus], player: str) -> CurriculumStatus:
    """The curriculum of `player`, or the only one where no player is named.

    Raises `NotFound` when there is none, `InvalidInput` when there are several to choose from.
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
    """Step after which a snapshot must be frozen for matches since then to end the present stage.

    A stage that began by hand wants new evidence, else one that is gone back to would end at once
    by matches that ended it before.
    """
    return place.since_step if place.by_hand else -1


def checked_stages(stages: Sequence[Stage], index: int) -> None:
    """Raises `InvalidInput` unless the stages have different names and `index` is one of theirs."""
    names = [stage.name for stage in stages]
    if len(set(names)) < len(names):
        raise InvalidInput(f"stages need different names: {', '.join(names)}")
    if not 0 <= index < len(names):
        raise InvalidInput(f"stage {index} is none of the {len(names)} stages")
