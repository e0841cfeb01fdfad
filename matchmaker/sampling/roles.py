"""Who plays whom by role, and when a learner takes a snapshot and begins anew, after AlphaStar.

Vinyals et al. 2019, Nature 575: the text of its Methods and its published pseudocode disagree, so
each is a preset. All of it is pure: what a learner knows of its rivals goes in, shares of opponents
come out.

Four things are other than published. A learner in a process of its own has only its own newest
weights, so another learner's "current" ones are its newest snapshot. The pseudocode resets an
exploiter's weights first and stores the reset network; here the snapshot is saved before anything
is reset. An exploiter must beat its generation's victims, frozen when it began, where the mains as
they are now are meant. And the mix category `victims` is no branch: with that alone a role's rule
is for snapshots and resets, not for opponents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Literal

from league.players import Role

RolePreset = Literal["alphastar-paper", "alphastar-pseudocode"]
PAPER: RolePreset = "alphastar-paper"
PSEUDOCODE: RolePreset = "alphastar-pseudocode"
LEARNING = (Role.MAIN, Role.MAIN_EXPLOITER, Role.LEAGUE_EXPLOITER)
"""Roles that have rules."""
PAST_SHARE, VERIFIED_SHARE, SELF_SHARE = 0.50, 0.15, 0.35
"""A main's: PFSP over all past players, over those it may have forgotten, and self-play."""
NO_LONGER_BEATS = 0.5
"""The paper's text: a main verifies itself against whom it "can no longer beat"."""
EXPLOITED_BELOW, FORGOTTEN_BELOW, TOO_STRONG = 0.3, 0.7, 0.3
"""The pseudocode: least win rate against past exploiters, against a past main, against a main
itself.
"""
TEXT_TOO_STRONG, PSEUDOCODE_TOO_STRONG = 0.2, 0.1
"""Win probability of a main exploiter up to which the main is too strong to learn from."""

SELF, CURRENT, PAST = "self", "current", "snapshots"
EXPLOITERS, FORGOTTEN, EASIER = "exploiters", "forgotten", "easier"


@dataclass(frozen=True, kw_only=True)
class Rival:
    """A possible opponent, as the learner sees it.

    Attributes:
        parent: the live player that it is a copy of, or is.
        role: of that player.
        chance: that the learner wins, the mean of its posterior; ½ against itself.
    """

    name: str
    parent: str
    role: Role
    chance: float


@dataclass(frozen=True, kw_only=True)
class Situation:
    """What a learner's rule goes by.

    Attributes:
        mains: the main learners as they are now: itself, if it is one, the others by their newest
        snapshot. past: all active snapshots of learners, oldest first.
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
    """The learner's branches with their shares, which sum to 1; several may have one label.

    A branch without names is left to the caller, who spreads its share over the others.
    """
    return _RULES[preset, situation.role](situation)


def _main_by_text(situation: Situation) -> list[Branch]:
    """35 % self-play, 50 % PFSP over all past, 15 % PFSP over forgotten mains and strong past
    main exploiters or, without any, self-play.
    """
    lost_to = [
        rival
        for rival in situation.past
        if rival.role in (Role.NONE, Role.MAIN, Role.MAIN_EXPLOITER)
        and rival.chance < NO_LONGER_BEATS
    ]
    self_share = SELF_SHARE + (0.0 if lost_to else VERIFIED_SHARE)
    found = [_branch(PAST, PAST_SHARE, "pfsp_hard", situation.past)]
    if lost_to:
        found.append(_branch(FORGOTTEN, VERIFIED_SHARE, "pfsp_hard", lost_to))
    return found + [_against(situation, main, self_share) for main in _alike(situation.mains)]


def _main_by_pseudocode(situation: Situation) -> list[Branch]:
    """The same shares, but verified first against exploiters, then against one main's past."""
    found = [_branch(PAST, PAST_SHARE, "pfsp_hard", situation.past)]
    exploiters = [rival for rival in situation.past if rival.role is Role.MAIN_EXPLOITER]
    exploited = any(rival.chance < EXPLOITED_BELOW for rival in exploiters)
    for share, main in _alike(situation.mains):
        past = _past_of(situation, [main.parent])
        forgotten = without_monotonic_suffix(past)
        self_share = SELF_SHARE * share
        if exploited:
            found.append(_branch(EXPLOITERS, VERIFIED_SHARE * share, "pfsp_hard", exploiters))
        elif any(rival.chance < FORGOTTEN_BELOW for rival in forgotten):
            found.append(_branch(FORGOTTEN, VERIFIED_SHARE * share, "pfsp_hard", forgotten))
        else:
            self_share += VERIFIED_SHARE * share
        if main.chance > TOO_STRONG or not past:
            found.append(_against(situation, (1.0, main), self_share))
        else:
            found.append(_branch(EASIER, self_share, "pfsp_var", past))
    return found


def without_monotonic_suffix(past: Sequence[Rival]) -> list[Rival]:
    """The past without its end over which the win rate only falls: there the newer is the
    stronger, and nothing is forgotten. Up to the newest one that is beaten more than the one
    before it, else none.
    """
    for last in range(len(past) - 1, 0, -1):
        if past[last - 1].chance < past[last].chance:
            return list(past[: last + 1])
    return []


def _main_exploiter_by_text(situation: Situation) -> list[Branch]:
    """Half of the time, and against a main it beats below 20 %, f_var over past mains; else the
    main.
    """
    past = _past_of(situation, [main.parent for main in situation.mains])
    found = [_branch(PAST, 0.5, "pfsp_var", past)]
    for share, main in _alike(situation.mains):
        if main.chance < TEXT_TOO_STRONG and past:
            found.append(_branch(PAST, 0.5 * share, "pfsp_var", past))
        else:
            found.append(_against(situation, (share, main), 0.5))
    return found


def _main_exploiter_by_pseudocode(situation: Situation) -> list[Branch]:
    """The current main, or f_var over its past where the win rate is up to 10 %."""
    found = []
    for share, main in _alike(situation.mains):
        past = _past_of(situation, [main.parent])
        if main.chance > PSEUDOCODE_TOO_STRONG or not past:
            found.append(_against(situation, (share, main), 1.0))
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


def _alike(mains: Sequence[Rival]) -> list[tuple[float, Rival]]:
    return [(1.0 / len(mains), main) for main in mains]


def _against(situation: Situation, main: tuple[float, Rival], share: float) -> Branch:
    """Against a main as it is now; itself is self-play."""
    part, rival = main
    label = SELF if rival.parent == situation.learner else CURRENT
    return _branch(label, part * share, "uniform", [rival])


def _past_of(situation: Situation, parents: Sequence[str]) -> list[Rival]:
    return [rival for rival in situation.past if rival.parent in parents]


def _branch(label: str, share: float, rule: str, rivals: Iterable[Rival]) -> Branch:
    return Branch(label=label, share=share, rule=rule, names=tuple(rival.name for rival in rivals))


class Step(Enum):
    """What happens at a learner's snapshot, in the order of `after_snapshot`."""

    SAVE_SNAPSHOT = "save the snapshot"
    RESET_WEIGHTS = "reset the weights"
    RESET_OPTIMIZER = "reset the optimizer"
    RESET_MEMORY = "reset the recurrent state"
    CLEAR_PAYOFFS = "clear its payoff rows"
    NEW_GENERATION = "begin a new generation"


@dataclass(frozen=True, kw_only=True)
class SnapshotRule:
    """When a snapshot is due, in units of the snapshot interval N.

    Attributes:
        earliest, latest: steps since the last one, below which none is due and from which one is.
        beaten: whom the learner must beat in between, the "mains", all "past" players, or nobody.
        reset: chance that the learner begins anew.
    """

    earliest: float
    latest: float
    beaten: Literal["mains", "past", "nobody"]
    reset: float


BEATS_ABOVE = 0.7
SNAPSHOT_RULES: dict[tuple[RolePreset, Role], SnapshotRule] = {
    (PAPER, Role.MAIN): SnapshotRule(earliest=1, latest=1, beaten="nobody", reset=0.0),
    (PAPER, Role.MAIN_EXPLOITER): SnapshotRule(earliest=0, latest=2, beaten="mains", reset=1.0),
    (PAPER, Role.LEAGUE_EXPLOITER): SnapshotRule(earliest=0, latest=1, beaten="past", reset=0.25),
    (PSEUDOCODE, Role.MAIN): SnapshotRule(earliest=1, latest=2, beaten="past", reset=0.0),
    (PSEUDOCODE, Role.MAIN_EXPLOITER): SnapshotRule(
        earliest=1, latest=2, beaten="mains", reset=1.0
    ),
    (PSEUDOCODE, Role.LEAGUE_EXPLOITER): SnapshotRule(
        earliest=1, latest=2, beaten="past", reset=0.25
    ),
}


def snapshot_due(preset: RolePreset, situation: Situation, steps: int, interval: int) -> bool:
    """Whether the learner takes a snapshot, `steps` after its last one, with a snapshot interval of
    N steps.

    "Beats" is a win probability above 70 % against each; nobody to beat is not beaten.
    """
    rule = SNAPSHOT_RULES[preset, situation.role]
    if steps >= rule.latest * interval:
        return True
    if steps < rule.earliest * interval:
        return False
    rivals = {"mains": situation.mains, "past": situation.past, "nobody": ()}[rule.beaten]
    return bool(rivals) and min(rival.chance for rival in rivals) > BEATS_ABOVE


def after_snapshot(preset: RolePreset, role: Role, uniform: float) -> tuple[Step, ...]:
    """What to do, in this order, when a snapshot is due; `uniform` in [0, 1) decides about a
    reset.
    """
    if uniform >= SNAPSHOT_RULES[preset, role].reset:
        return (Step.SAVE_SNAPSHOT,)
    return tuple(Step)
