"""Finds the players that may be drawn, and computes the numbers that the sampling rules need."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from league.errors import ConfigError, NotFound
from league.exploiters import EXPLOITING
from league.ids import lineage_of
from league.players import CATEGORIES, Book, Player, PlayerKind, PlayerState, Role
from league.stats.ratings import BETA, Belief, RatingTable
from matchmaker.sampling import roles
from matchmaker.sampling.mixes import Candidates, adapted_mix
from matchmaker.settings import MatchmakerSettings
from matchmaker.state.analysis import NO_ANALYSIS, Analysis
from matchmaker.state.exploiters import NO_EXPLOITERS, ExploiterState

SELF = "self"
_ROLES = {"snapshots": (Role.NONE, Role.MAIN), "exploiters": EXPLOITING, "clone": (Role.CLONE,)}
"""Roles that the snapshots of a category may have."""
NEWEST_RATED = 2
"""Number of the learner's newest rated snapshots from whose clean ratings (by matches of frozen
players) the learner's strength is estimated.
"""
_LEAST_VARIANCE = 1e-6
"""Lower bound of a variance in points², because a pinned snapshot (with a fixed rating) has
variance 0.
"""
PATCHED_SHARE = 0.1
"""Total weight of the patched exploiters, which the learner beats, as a share of the weight of the
category `exploiters`. The other exploiters together have the category's full weight.
"""
_VICTIM_STATES = (PlayerState.ACTIVE, PlayerState.RETIRED)
"""States of a victim (a player that an exploiter has to beat). A victim that retires during a
generation stays a victim.
"""
_BY_ROLE = ("snapshots", SELF, "exploiters")
"""The rules of the learner's role divide the total weight of these categories, unless the setting
`matchmaker.roles` is "mix".
"""
_WITHOUT_NASH = "pfsp_hard"
"""Rule that replaces "nash" where the Nash mixture says nothing."""


@dataclass(frozen=True)
class Pool:
    """Holds everything that decides which opponents a learner draws."""

    settings: MatchmakerSettings
    learner: Player
    players: Mapping[str, Player]
    tables: Mapping[Book, RatingTable]
    exploiters: ExploiterState = NO_EXPLOITERS
    analysis: Analysis = NO_ANALYSIS

    @property
    def has_role_rules(self) -> bool:
        """Returns whether the learner's role decides which snapshots the learner plays."""
        return self.settings.roles != "mix" and self.learner.role in roles.LEARNING


@dataclass(frozen=True, kw_only=True)
class Slice:
    """Describes a part of a mix: its players, oldest first, and the rule that draws a player."""

    category: str
    weight: float
    rule: str
    players: tuple[Player, ...]


def slices_of(pool: Pool, mix_name: str) -> list[Slice]:
    """Splits a mix into slices, and keeps the slices that have players. The slices' weights sum to
    1.

    If no slice has players, the learner plays against itself.

    Raises:
        NotFound: there is no such mix.
        ConfigError: the mix names a bot that is held out for the evaluator.
    """
    mix = _mix(pool, mix_name)
    if pool.settings.adaptive:
        groups = (members(category, pool.learner, pool.players) for category in mix)
        bots = [player for group in groups for player in group if player.kind is PlayerKind.BOT]
        chances = candidates_of(bots, pool).chances().tolist()
        by_name = {bot.name: chance for bot, chance in zip(bots, chances, strict=True)}
        mix = adapted_mix(mix, by_name, pool.settings.adaptive)
    slices = [part for part in _slices(pool, mix) if part.players and part.weight > 0.0]
    total = math.fsum(part.weight for part in slices)
    if not total:
        rule = pool.settings.within_snapshots
        return [Slice(category=SELF, weight=1.0, rule=rule, players=(pool.learner,))]
    return [replace(part, weight=part.weight / total) for part in slices]


def configured_shares(pool: Pool, mix_name: str) -> dict[str, float]:
    """Returns the share that the settings give to each category, even to a category without
    players. If the rules of the learner's role divide some of the weight, the result has the shares
    that they give.
    """
    mix = pool.settings.mixes.get(mix_name, {})
    weights = dict(mix)
    if pool.has_role_rules:
        weights = {}
        for part in _slices(pool, mix):
            weights[part.category] = weights.get(part.category, 0.0) + part.weight
    total = math.fsum(weights.values()) or 1.0
    return {category: weight / total for category, weight in weights.items()}


def expected_shares(pool: Pool, mix_name: str) -> dict[str, float]:
    """Returns the probability of each category in the next draw, or {} if the mix can't be used."""
    shares: dict[str, float] = {}
    try:
        slices = slices_of(pool, mix_name)
    except (NotFound, ConfigError):
        return {}
    for part in slices:
        shares[part.category] = shares.get(part.category, 0.0) + part.weight
    return shares


def candidates_of(players: Sequence[Player], pool: Pool) -> Candidates:
    """Estimates a learner's chances against players, from its recent matches and the ratings.

    A clean rating comes from clean matches, in which both players are frozen. Against a player with
    a clean rating, the learner is represented by the clean ratings of its newest snapshots. Then
    both ratings are on the same scale, and the learner's exploration does not lower its rating. If
    these snapshots have no clean rating, the learner's rating from training matches is used
    instead.

    Against a player without a clean rating, both ratings come from training matches. A snapshot
    without any rating is assumed to be as strong as the learner.

    Args:
        players: N players.
        pool: the league and the learner.

    Returns:
        The estimates, in the order of the players.
    """
    train, names = pool.tables[Book.TRAIN], tuple(player.name for player in players)
    mine = train.belief(pool.learner.name)
    games_N, points_N = train.recent.evidence(pool.learner.name, names)
    clean, trained = pool.tables[Book.EVAL].columns(names), train.columns(names)
    is_snapshot_N = np.array([player.kind is PlayerKind.SNAPSHOT for player in players], np.bool_)
    is_copy_N = is_snapshot_N & ~trained.knows_N
    mu_N = np.where(is_copy_N, mine.mu, trained.mu_N)
    mu_N = np.where(clean.has_N, clean.mu_N, mu_N)
    variance_N = np.where(is_copy_N, mine.sigma**2, trained.variance_N)
    variance_N = np.where(clean.has_N, clean.variance_N, variance_N)
    belief = _clean_belief(pool) or mine
    own_mu_N = np.where(clean.has_N, belief.mu, mine.mu)
    own_variance_N = np.where(clean.has_N, belief.sigma**2, mine.sigma**2)
    c_N = np.sqrt(2.0 * BETA**2 + own_variance_N + variance_N)
    t_N = (own_mu_N - mu_N) / c_N
    return Candidates(
        names=names,
        games_N=games_N,
        points_N=points_N,
        predicted_N=train.link.curve(t_N),
        quality_N=math.sqrt(2.0) * BETA / c_N * np.exp(-(t_N**2) / 2.0),
        nash_N=np.array([pool.analysis.share(name) for name in names], np.float64),
    )


def _clean_belief(pool: Pool) -> Belief | None:
    """Estimates the learner's strength from the clean ratings (by matches of frozen players) of its
    newest snapshots.

    A rating's weight is the inverse of its variance. The variance of an older snapshot is larger,
    because the learner has changed since. Without a rated snapshot the result is None.
    """
    clean = pool.tables[Book.EVAL]
    rated = (
        player
        for player in reversed(list(pool.players.values()))
        if player.kind is PlayerKind.SNAPSHOT
        and clean.has(player.name)
        and lineage_of(player.name) == pool.learner.name
    )
    newest = list(islice(rated, NEWEST_RATED))
    if not newest:
        return None
    step = max(snapshot.step for snapshot in newest)
    beliefs = [clean.belief(snapshot.name) for snapshot in newest]
    weights = [
        1.0 / max(belief.sigma**2 + clean.drift.variance(snapshot.step, step), _LEAST_VARIANCE)
        for belief, snapshot in zip(beliefs, newest, strict=True)
    ]
    total = math.fsum(weights)
    mu = math.fsum(w * belief.mu for w, belief in zip(weights, beliefs, strict=True)) / total
    return Belief(mu, total**-0.5)


def members(category: str, learner: Player, players: Mapping[str, Player]) -> list[Player]:
    """Lists a category's active players, oldest first. Players that are held out for the evaluator
    are left out.

    Args:
        category: a category, or the name of a bot or a rival.
        learner: the learner, which is the only member of the category "self".
        players: all players by name, in order of registration.
    """
    if category == SELF:
        return [learner]
    if category not in CATEGORIES:
        players = {category: players[category]} if category in players else {}
    return [
        player
        for player in players.values()
        if player.state is PlayerState.ACTIVE
        and not player.held_out
        and player.name != learner.name
        and _belongs(player, category)
    ]


def _belongs(player: Player, category: str) -> bool:
    if player.kind is PlayerKind.BOT:
        return player.name == category
    if player.kind is PlayerKind.RIVAL:
        return category in ("rivals", player.name)
    if player.kind is PlayerKind.REFERENCE:
        return category == "reference"
    is_frozen = player.kind is PlayerKind.SNAPSHOT
    return is_frozen and player.role in _ROLES.get(category, ())


def learner_of(snapshot: Player, players: Mapping[str, Player]) -> str:
    """Returns the name of the live player from which a snapshot was frozen: `main` for `main@500`,
    and also for `main.3@500`.
    """
    lineage = lineage_of(snapshot.name) or snapshot.name
    if lineage in players:
        return lineage
    return lineage.rpartition(".")[0] or lineage


def situation_of(pool: Pool) -> roles.Situation:
    """Describes the league in the form that the rules of the learner's role need. Other learners
    are represented by their newest snapshots.
    """
    learner, players = pool.learner, pool.players
    snapshots = [
        player
        for player in players.values()
        if player.kind is PlayerKind.SNAPSHOT
        and player.role is not Role.CLONE
        and player.state is PlayerState.ACTIVE
        and not player.held_out
    ]
    chances = candidates_of(snapshots, pool).chances().tolist()
    past = [
        roles.Rival(
            name=snapshot.name,
            parent=learner_of(snapshot, players),
            role=snapshot.role,
            chance=chance,
        )
        for snapshot, chance in zip(snapshots, chances, strict=True)
    ]
    newest = {player.parent: player for player in past}
    newest[learner.name] = roles.Rival(
        name=learner.name, parent=learner.name, role=learner.role, chance=0.5
    )
    mains = [
        newest[player.name]
        for player in players.values()
        if player.kind is PlayerKind.LIVE
        and player.role is Role.MAIN
        and player.state is PlayerState.ACTIVE
        and player.name in newest
    ]
    return roles.Situation(
        learner=learner.name, role=learner.role, mains=tuple(mains), past=tuple(past)
    )


def _mix(pool: Pool, name: str) -> Mapping[str, float]:
    mixes = pool.settings.mixes
    if name not in mixes:
        raise NotFound(f"there is no mix {name!r}: [matchmaker] mixes holds {sorted(mixes)}")
    for category in mixes[name]:
        player = pool.players.get(category)
        if player is not None and player.held_out:
            raise ConfigError(
                f"mix {name!r} names {category}, which is held out for the evaluator and never "
                "trained against: take it out of [matchmaker.mixes]"
            )
    return mixes[name]


def _slices(pool: Pool, mix: Mapping[str, float]) -> list[Slice]:
    by_role = pool.has_role_rules
    slices = [
        Slice(
            category=category,
            weight=weight * share,
            rule=_rule_of(pool, category, group),
            players=tuple(group),
        )
        for category, weight in mix.items()
        if not (by_role and category in _BY_ROLE)
        for share, group in _groups(pool, category)
    ]
    weight = sum(mix.get(category, 0.0) for category in _BY_ROLE)
    if by_role and weight:
        assert pool.settings.roles != "mix"
        slices += [
            Slice(
                category=branch.label,
                weight=weight * branch.share,
                rule=branch.rule,
                players=tuple(pool.players[name] for name in branch.names),
            )
            for branch in roles.branches(pool.settings.roles, situation_of(pool))
        ]
    return slices


def _rule_of(pool: Pool, category: str, group: Sequence[Player]) -> str:
    """Returns the rule that draws one of a category's players. "nash" applies only to a group that
    has a share of the mixture, and not to victims, because an exploiter must beat all of them.
    """
    rule = pool.settings.within_snapshots
    has_share = any(pool.analysis.shares.get(player.name) for player in group)
    return _WITHOUT_NASH if rule == "nash" and (category == "victims" or not has_share) else rule


def _groups(pool: Pool, category: str) -> list[tuple[float, list[Player]]]:
    """Splits a category's players into groups, and gives each group a factor for the category's
    weight. The group of exploiters that the learner has patched (beats now) gets a small factor.
    """
    learner, players = pool.learner, pool.players
    if category == "victims":
        names = pool.exploiters.victims_of(learner.name)
        return [(1.0, [players[name] for name in names if players[name].state in _VICTIM_STATES])]
    group = members(category, learner, players)
    if category != "exploiters":
        return [(1.0, group)]
    patched = [player for player in group if pool.exploiters.is_patched(player.name, learner.name)]
    unpatched = [player for player in group if player not in patched]
    return [(1.0, unpatched), *([(PATCHED_SHARE, patched)] if patched else [])]
