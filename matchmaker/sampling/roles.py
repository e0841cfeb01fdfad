"""AlphaStar's rules: opponents by role, and when a learner takes a snapshot and starts again.

Vinyals et al. 2019, Nature 575: the text of the Methods and the published pseudocode disagree, so
each is a preset. Where this differs: another learner's "current" weights are its newest snapshot;
a snapshot is saved before an exploiter is reset (the pseudocode stores the reset network); and an
exploiter must beat its generation's victims, frozen when it began, instead of the current mains.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from league.players import Role

RolePreset = Literal["alphastar-paper", "alphastar-pseudocode"]
PAPER: RolePreset = "alphastar-paper"
PSEUDOCODE: RolePreset = "alphastar-pseudocode"
LEARNING = (Role.MAIN, Role.MAIN_EXPLOITER, Role.LEAGUE_EXPLOITER)
"""Roles that have rules."""
PAST_SHARE, VERIFIED_SHARE, SELF_SHARE = 0.50, 0.15, 0.35
"""A main's: PFSP over all past players, over those it may have forgotten, and self-play."""
NO_LONGER_BEATS = 0.5
"""In the paper's text, a main verifies itself against players that it "can no longer beat"."""
EXPLOITED_BELOW, FORGOTTEN_BELOW, TOO_STRONG = 0.3, 0.7, 0.3
"""In the pseudocode: the least win rate against past exploiters, a past main, a current main."""
TEXT_TOO_STRONG, PSEUDOCODE_TOO_STRONG = 0.2, 0.1
"""Win probability of a main exploiter up to which a main is too strong to learn from."""
BEATS_ABOVE = 0.7
"""Win probability from which on a rival counts as beaten."""

SELF, CURRENT, PAST = "self", "current", "snapshots"
EXPLOITERS, FORGOTTEN, EASIER = "exploiters", "forgotten", "easier"


@dataclass(frozen=True, kw_only=True)
class Rival:
    """A possible opponent: `parent` is the live player that it is, or is a copy of, with this
    `role`; `chance` the posterior mean of the learner's win probability, ½ against itself.
    """

    name: str
    parent: str
    role: Role
    chance: float


@dataclass(frozen=True, kw_only=True)
class Situation:
    """What a learner's rule depends on: the current `mains` (itself, if it is one, others by their
    newest snapshot) and the `past`, all active snapshots of learners, oldest first.
    """

    learner: str
    role: Role
    mains: tuple[Rival, ...]
    past: tuple[Rival, ...]


@dataclass(frozen=True, kw_only=True)
class Branch:
    """A share of the matches, and the rule that draws one of `names` for it."""

    label: str
    share: float
    rule: str
    names: tuple[str, ...]


def branches(preset: RolePreset, situation: Situation) -> list[Branch]:
    """Returns the learner's branches, perhaps without names; their shares sum to 1."""
    return _RULES[preset, situation.role](situation)


def _main_by_text(situation: Situation) -> list[Branch]:
    """35 % self-play, 50 % over all past, 15 % over forgotten players or else self-play."""
    rivals = (Role.NONE, Role.MAIN, Role.MAIN_EXPLOITER)
    past = [rival for rival in situation.past if rival.role in rivals]
    lost_to = [rival for rival in past if rival.chance < NO_LONGER_BEATS]
    self_share = SELF_SHARE + (0.0 if lost_to else VERIFIED_SHARE)
    found = [_branch(PAST, PAST_SHARE, "pfsp_hard", situation.past)]
    if lost_to:
        found.append(_branch(FORGOTTEN, VERIFIED_SHARE, "pfsp_hard", lost_to))
    part = _part(situation)
    return found + [_against(situation, main, self_share * part) for main in situation.mains]


def _main_by_pseudocode(situation: Situation) -> list[Branch]:
    """The same shares, but verified first against exploiters, then against one main's past."""
    found = [_branch(PAST, PAST_SHARE, "pfsp_hard", situation.past)]
    exploiters = [rival for rival in situation.past if rival.role is Role.MAIN_EXPLOITER]
    exploited = any(rival.chance < EXPLOITED_BELOW for rival in exploiters)
    part = _part(situation)
    for main in situation.mains:
        past = _past_of(situation, [main.parent])
        forgotten = without_monotonic_suffix(past)
        self_share, verified_share = SELF_SHARE * part, VERIFIED_SHARE * part
        if exploited:
            found.append(_branch(EXPLOITERS, verified_share, "pfsp_hard", exploiters))
        elif any(rival.chance < FORGOTTEN_BELOW for rival in forgotten):
            found.append(_branch(FORGOTTEN, verified_share, "pfsp_hard", forgotten))
        else:
            self_share += verified_share
        if main.chance > TOO_STRONG or not past:
            found.append(_against(situation, main, self_share))
        else:
            found.append(_branch(EASIER, self_share, "pfsp_var", past))
    return found


def without_monotonic_suffix(past: Sequence[Rival]) -> list[Rival]:
    """Returns the past up to the newest player that is beaten more often than the one before it.

    After it the win rate only falls: the newer player is the stronger one, and nothing is
    forgotten.
    """
    for last in range(len(past) - 1, 0, -1):
        if past[last - 1].chance < past[last].chance:
            return list(past[: last + 1])
    return []


def _main_exploiter_by_text(situation: Situation) -> list[Branch]:
    """Half of the time, and against a main it beats below 20 %, f_var over past mains; else it."""
    past = _past_of(situation, [main.parent for main in situation.mains])
    found = [_branch(PAST, 0.5, "pfsp_var", past)]
    share = 0.5 * _part(situation)
    for main in situation.mains:
        if main.chance < TEXT_TOO_STRONG and past:
            found.append(_branch(PAST, share, "pfsp_var", past))
        else:
            found.append(_against(situation, main, share))
    return found


def _main_exploiter_by_pseudocode(situation: Situation) -> list[Branch]:
    """The current main, or f_var over its past where the win rate is up to 10 %."""
    found = []
    share = _part(situation)
    for main in situation.mains:
        past = _past_of(situation, [main.parent])
        if main.chance > PSEUDOCODE_TOO_STRONG or not past:
            found.append(_against(situation, main, share))
        else:
            found.append(_branch(EASIER, share, "pfsp_var", past))
    return found


def _league_exploiter(rule: str) -> Callable[[Situation], list[Branch]]:
    return lambda situation: [_branch(PAST, 1.0, rule, situation.past)]


_RULES: dict[tuple[RolePreset, Role], Callable[[Situation], list[Branch]]] = {
    (PAPER, Role.MAIN): _main_by_text,
    (PAPER, Role.MAIN_EXPLOITER): _main_exploiter_by_text,
    (PAPER, Role.LEAGUE_EXPLOITER): _league_exploiter("pfsp_hard"),
    (PSEUDOCODE, Role.MAIN): _main_by_pseudocode,
    (PSEUDOCODE, Role.MAIN_EXPLOITER): _main_exploiter_by_pseudocode,
    (PSEUDOCODE, Role.LEAGUE_EXPLOITER): _league_exploiter("pfsp_capped"),
}


def _part(situation: Situation) -> float:
    """Returns one main's part of what is shared among the mains."""
    return 1.0 / max(1, len(situation.mains))


def _against(situation: Situation, main: Rival, share: float) -> Branch:
    """Returns the branch against a current main; against itself it is self-play."""
    label = SELF if main.parent == situation.learner else CURRENT
    return _branch(label, share, "uniform", [main])


def _past_of(situation: Situation, parents: Sequence[str]) -> list[Rival]:
    return [rival for rival in situation.past if rival.parent in parents]


def _branch(label: str, share: float, rule: str, rivals: Iterable[Rival]) -> Branch:
    return Branch(label=label, share=share, rule=rule, names=tuple(rival.name for rival in rivals))


class SnapshotRule(NamedTuple):
    """When a snapshot is due: never below `earliest` intervals, always from `latest` on, in between
    once all of `beaten` are beaten. `reset` is the chance that the learner starts again after it.
    """

    earliest: float
    latest: float
    beaten: Literal["mains", "past", "none"]
    reset: float


SNAPSHOT_RULES: dict[tuple[RolePreset, Role], SnapshotRule] = {
    (PAPER, Role.MAIN): SnapshotRule(1, 1, "none", 0.0),
    (PAPER, Role.MAIN_EXPLOITER): SnapshotRule(0, 2, "mains", 1.0),
    (PAPER, Role.LEAGUE_EXPLOITER): SnapshotRule(0, 1, "past", 0.25),
    (PSEUDOCODE, Role.MAIN): SnapshotRule(1, 2, "past", 0.0),
    (PSEUDOCODE, Role.MAIN_EXPLOITER): SnapshotRule(1, 2, "mains", 1.0),
    (PSEUDOCODE, Role.LEAGUE_EXPLOITER): SnapshotRule(1, 2, "past", 0.25),
}


def snapshot_due(preset: RolePreset, situation: Situation, steps: int, interval: int) -> bool:
    """Returns whether a snapshot is due `steps` after the last one."""
    rule = SNAPSHOT_RULES[preset, situation.role]
    if steps >= rule.latest * interval:
        return True
    if steps < rule.earliest * interval:
        return False
    rivals = {"mains": situation.mains, "past": situation.past, "none": ()}[rule.beaten]
    return bool(rivals) and min(rival.chance for rival in rivals) > BEATS_ABOVE


def resets_after_snapshot(preset: RolePreset, role: Role, uniform: float) -> bool:
    """Returns whether a learner starts again after its snapshot; `uniform` is drawn from [0, 1)."""
    return uniform < SNAPSHOT_RULES[preset, role].reset
