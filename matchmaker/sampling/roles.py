"""Implements AlphaStar's rules for each role: which opponents a learner plays, when it saves a
snapshot, and when its weights are reset.

In Vinyals et al. 2019 (Nature 575), the text of the Methods and the published pseudocode disagree,
so there is a preset for each. This implementation differs from both of them in three ways. First,
where text and pseudocode use the "current" weights of another learner, this implementation uses the
newest snapshot of that learner. Second, a snapshot is saved before an exploiter is reset, while the
pseudocode stores the reset network. Third, an exploiter must beat a fixed list of frozen players,
the victims of its generation, instead of the current mains.
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
"""Roles of learners that have rules."""
PAST_SHARE, VERIFIED_SHARE, SELF_SHARE = 0.50, 0.15, 0.35
"""Shares of a main's matches: PFSP (which prefers hard opponents) over all past players, PFSP over
players that the main may have forgotten how to beat, and self-play.
"""
NO_LONGER_BEATS = 0.5
"""Win probability below which, in the paper's text, a main "can no longer beat" a player."""
EXPLOITED_BELOW, FORGOTTEN_BELOW, TOO_STRONG = 0.3, 0.7, 0.3
"""Bounds in the pseudocode for the learner's win rate against another player. Below the first
bound, a past exploiter counts as unbeaten. Below the second bound, a past main counts as forgotten.
Up to the third bound, a current main is too strong.
"""
TEXT_TOO_STRONG, PSEUDOCODE_TOO_STRONG = 0.2, 0.1
"""A main is too strong for a main exploiter to learn from if the exploiter's win probability is
below the first number (in the text), or at most the second number (in the pseudocode)."""
BEATS_ABOVE = 0.7
"""A learner counts as beating a player if its win probability is above this bound."""

SELF, CURRENT, PAST = "self", "current", "snapshots"
EXPLOITERS, FORGOTTEN, EASIER = "exploiters", "forgotten", "easier"


@dataclass(frozen=True, kw_only=True)
class Rival:
    """Describes a possible opponent.

    Attributes:
        parent: the live player from which the opponent was frozen, or the opponent itself if it is
            live.
        role: the role of this live player.
        chance: posterior mean of the learner's win probability, ½ against itself.
    """

    name: str
    parent: str
    role: Role
    chance: float


@dataclass(frozen=True, kw_only=True)
class Situation:
    """Describes the league as a learner's rules see it.

    Attributes:
        mains: the current mains. If the learner is a main, it appears as its live player. Other
            mains appear as their newest snapshots.
        past: all active snapshots of learners, oldest first.
    """

    learner: str
    role: Role
    mains: tuple[Rival, ...]
    past: tuple[Rival, ...]


@dataclass(frozen=True, kw_only=True)
class Branch:
    """Describes a share of the matches, and the players among which a rule draws the opponents."""

    label: str
    share: float
    rule: str
    names: tuple[str, ...]


def branches(preset: RolePreset, situation: Situation) -> list[Branch]:
    """Divides the learner's matches into branches, whose shares sum to 1. A branch may have no
    players.
    """
    return _RULES[preset, situation.role](situation)


def _main_by_text(situation: Situation) -> list[Branch]:
    """Gives 35 % of the matches to self-play, 50 % to all past players, and 15 % to players that
    the main no longer beats. If there are no players that the main no longer beats, these 15 % go
    to self-play, too.
    """
    rivals = (Role.NONE, Role.MAIN, Role.MAIN_EXPLOITER)
    past = [rival for rival in situation.past if rival.role in rivals]
    lost_to = [rival for rival in past if rival.chance < NO_LONGER_BEATS]
    self_share = SELF_SHARE + (0.0 if lost_to else VERIFIED_SHARE)
    branches = [_branch(PAST, PAST_SHARE, "pfsp_hard", situation.past)]
    if lost_to:
        branches.append(_branch(FORGOTTEN, VERIFIED_SHARE, "pfsp_hard", lost_to))
    share = _part(situation)
    return branches + [_against(situation, main, self_share * share) for main in situation.mains]


def _main_by_pseudocode(situation: Situation) -> list[Branch]:
    """Gives the same shares as `_main_by_text`, with two differences.

    First, the 15 % go to exploiters if the learner wins less than 30 % of its matches against any
    of them. Otherwise the 15 % are divided equally among the mains. `without_monotonic_suffix`
    returns the snapshots of a main that the learner may have forgotten how to beat. A main's part
    goes to these snapshots if the learner wins less than 70 % of its matches against any of them.
    Otherwise the part goes to the main itself.

    Second, if a current main is too strong for the learner, the past snapshots of this main replace
    it.
    """
    branches = [_branch(PAST, PAST_SHARE, "pfsp_hard", situation.past)]
    exploiters = [rival for rival in situation.past if rival.role is Role.MAIN_EXPLOITER]
    exploited = any(rival.chance < EXPLOITED_BELOW for rival in exploiters)
    share = _part(situation)
    for main in situation.mains:
        past = _past_of(situation, [main.parent])
        forgotten = without_monotonic_suffix(past)
        self_share, verified_share = SELF_SHARE * share, VERIFIED_SHARE * share
        if exploited:
            branches.append(_branch(EXPLOITERS, verified_share, "pfsp_hard", exploiters))
        elif any(rival.chance < FORGOTTEN_BELOW for rival in forgotten):
            branches.append(_branch(FORGOTTEN, verified_share, "pfsp_hard", forgotten))
        else:
            self_share += verified_share
        if main.chance > TOO_STRONG or not past:
            branches.append(_against(situation, main, self_share))
        else:
            branches.append(_branch(EASIER, self_share, "pfsp_var", past))
    return branches


def without_monotonic_suffix(past: Sequence[Rival]) -> list[Rival]:
    """Drops the longest suffix of `past` in which each player is at least as hard to beat as the
    player before it. Such a suffix shows normal progress, not that the learner has forgotten
    something.
    """
    for last in range(len(past) - 1, 0, -1):
        if past[last - 1].chance < past[last].chance:
            return list(past[: last + 1])
    return []


def _main_exploiter_by_text(situation: Situation) -> list[Branch]:
    """Gives half of the matches to current mains and half to past mains. Past mains are drawn by
    PFSP with f_var, which prefers opponents of equal strength.

    Past mains also replace a current main that the exploiter beats in less than 20 % of matches.
    """
    past = _past_of(situation, [main.parent for main in situation.mains])
    branches = [_branch(PAST, 0.5, "pfsp_var", past)]
    share = 0.5 * _part(situation)
    for main in situation.mains:
        if main.chance < TEXT_TOO_STRONG and past:
            branches.append(_branch(PAST, share, "pfsp_var", past))
        else:
            branches.append(_against(situation, main, share))
    return branches


def _main_exploiter_by_pseudocode(situation: Situation) -> list[Branch]:
    """Gives all matches to current mains.

    A main's past snapshots, drawn by PFSP with f_var (which prefers equal opponents), replace a
    current main that the exploiter beats in at most 10 % of matches.
    """
    branches = []
    share = _part(situation)
    for main in situation.mains:
        past = _past_of(situation, [main.parent])
        if main.chance > PSEUDOCODE_TOO_STRONG or not past:
            branches.append(_against(situation, main, share))
        else:
            branches.append(_branch(EASIER, share, "pfsp_var", past))
    return branches


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
    """Returns each current main's part if a share of the matches is divided equally among the
    mains.
    """
    return 1.0 / max(1, len(situation.mains))


def _against(situation: Situation, main: Rival, share: float) -> Branch:
    """Returns the branch of matches against a current main. If this main is the learner itself, the
    branch is self-play.
    """
    label = SELF if main.parent == situation.learner else CURRENT
    return _branch(label, share, "uniform", [main])


def _past_of(situation: Situation, parents: Sequence[str]) -> list[Rival]:
    return [rival for rival in situation.past if rival.parent in parents]


def _branch(label: str, share: float, rule: str, rivals: Iterable[Rival]) -> Branch:
    return Branch(label=label, share=share, rule=rule, names=tuple(rival.name for rival in rivals))


class SnapshotRule(NamedTuple):
    """Says when a learner's next snapshot is due, in intervals between snapshots.

    Attributes:
        earliest: number of intervals before which no snapshot is due.
        latest: number of intervals after which a snapshot is always due.
        beaten: between `earliest` and `latest`, a snapshot is due once the learner beats all of
            these players.
        reset: probability that the learner's weights are reset after a snapshot.
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
    """Decides whether a snapshot is due.

    Args:
        preset: paper or pseudocode.
        situation: the league as the learner sees it.
        steps: steps since the last snapshot.
        interval: steps between snapshots.
    """
    rule = SNAPSHOT_RULES[preset, situation.role]
    if steps >= rule.latest * interval:
        return True
    if steps < rule.earliest * interval:
        return False
    rivals = {"mains": situation.mains, "past": situation.past, "none": ()}[rule.beaten]
    return bool(rivals) and min(rival.chance for rival in rivals) > BEATS_ABOVE


def resets_after_snapshot(preset: RolePreset, role: Role, uniform: float) -> bool:
    """Returns whether a learner's weights are reset after its snapshot. `uniform` is a random
    number in [0, 1).
    """
    return uniform < SNAPSHOT_RULES[preset, role].reset
