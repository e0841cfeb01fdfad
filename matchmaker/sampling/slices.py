"""The parts of a mix that players are drawn for: its categories, or the branches of the
learner's role.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from league.players import Book, Player, PlayerKind, PlayerState, Role
from league.stats.ratings import RatingTable
from matchmaker.sampling import roles
from matchmaker.sampling.candidates import (
    SELF,
    lineage_of,
    members,
    mix_of,
    newest_clean_counts,
    policy_of,
    refuse_held_out,
)
from matchmaker.sampling.columns import columns_of, posteriors
from matchmaker.sampling.mixes import Policy, adapted_mix, category_shares
from matchmaker.settings import MatchmakerSettings
from matchmaker.state.exploiters import NO_EXPLOITERS, ExploiterState

MEETABLE = (PlayerState.ACTIVE, PlayerState.RETIRED)
"""States of victims that can be met: one that retires meanwhile stays a victim."""
PATCHED_SHARE = 0.1
"""Part of the weight of `exploiters` that those together have which the main has patched."""
BY_ROLE = ("snapshots", SELF, "exploiters")
"""Categories whose weights go to the branches of a role."""


@dataclass(frozen=True, kw_only=True)
class Slice:
    """A part of a mix: who may be drawn for it, and how. Weights are relative, categories may
    repeat.
    """

    category: str
    weight: float
    policy: Policy
    players: tuple[Player, ...]


def slices_of(
    settings: MatchmakerSettings,
    learner: Player,
    mix_name: str,
    players: Mapping[str, Player],
    tables: Mapping[Book, RatingTable],
    exploiters: ExploiterState = NO_EXPLOITERS,
) -> list[Slice]:
    """The parts of a mix that have players; their weights sum to 1."""
    mix = mix_of(settings, mix_name)
    refuse_held_out(mix_name, mix, players)
    if settings.adaptive:
        met = {
            category: newest_clean_counts(settings, category, learner, players, tables)
            for category in mix
        }
        known = {name: counts for name, counts in met.items() if counts.games}
        mix = adapted_mix(mix, known, settings.adaptive, settings.prior_games)
    found = _slices(settings, learner, mix, players, tables, exploiters)
    shares = category_shares(
        {str(place): one.weight for place, one in enumerate(found)},
        {str(place): bool(one.players) for place, one in enumerate(found)},
    )
    if not shares:
        return [Slice(category=SELF, weight=1.0, policy=policy_of(settings), players=(learner,))]
    return [replace(found[int(place)], weight=share) for place, share in shares.items()]


def configured_shares(
    settings: MatchmakerSettings,
    learner: Player,
    mix_name: str,
    players: Mapping[str, Player],
    tables: Mapping[Book, RatingTable],
) -> dict[str, float]:
    """Each category's share as the settings have it, whether it has players or not."""
    mix: Mapping[str, float] = settings.mixes.get(mix_name, {})
    weights: dict[str, float] = {}
    for one in _slices(settings, learner, mix, players, tables):
        weights[one.category] = weights.get(one.category, 0.0) + one.weight
    total = sum(weights.values()) or 1.0
    return {category: weight / total for category, weight in weights.items()}


def has_role_rules(settings: MatchmakerSettings, learner: Player) -> bool:
    return settings.roles != "mix" and learner.role in roles.LEARNING


def _slices(
    settings: MatchmakerSettings,
    learner: Player,
    mix: Mapping[str, float],
    players: Mapping[str, Player],
    tables: Mapping[Book, RatingTable],
    exploiters: ExploiterState = NO_EXPLOITERS,
) -> list[Slice]:
    by_role = has_role_rules(settings, learner)
    policy = policy_of(settings)
    found = [
        Slice(category=category, weight=weight * part, policy=policy, players=tuple(group))
        for category, weight in mix.items()
        if not (by_role and category in BY_ROLE)
        for part, group in _groups(settings, category, learner, players, exploiters)
    ]
    weight = sum(mix.get(category, 0.0) for category in BY_ROLE)
    if by_role and weight:
        found += _role_slices(settings, learner, weight, players, tables)
    return found


def _groups(
    settings: MatchmakerSettings,
    category: str,
    learner: Player,
    players: Mapping[str, Player],
    exploiters: ExploiterState,
) -> list[tuple[float, list[Player]]]:
    """A category's players with their part of its weight: patched exploiters together have less."""
    if category == "victims":
        names = exploiters.victims_of(learner.name)
        return [(1.0, [players[name] for name in names if players[name].state in MEETABLE])]
    group = members(category, learner, players)
    if category != "exploiters":
        return [(1.0, group)]
    patched = [player for player in group if exploiters.is_patched(player.name, learner.name)]
    standing = [player for player in group if player not in patched]
    return [(1.0, standing), *([(PATCHED_SHARE, patched)] if patched else [])]


def _role_slices(
    settings: MatchmakerSettings,
    learner: Player,
    weight: float,
    players: Mapping[str, Player],
    tables: Mapping[Book, RatingTable],
) -> list[Slice]:
    """The branches of the learner's role, `weight` in all."""
    preset = settings.roles
    assert preset != "mix"
    policy = policy_of(settings)
    if preset == roles.PSEUDOCODE:
        policy = replace(policy, power=2.0)
    return [
        Slice(
            category=branch.label,
            weight=weight * branch.share,
            policy=replace(policy, rule=branch.rule),
            players=tuple(players[name] for name in branch.names),
        )
        for branch in roles.branches(preset, situation_of(settings, learner, players, tables))
    ]


def situation_of(
    settings: MatchmakerSettings,
    learner: Player,
    players: Mapping[str, Player],
    tables: Mapping[Book, RatingTable],
) -> roles.Situation:
    """What the rules of the learner's role go by: the mains as they are now, and everybody's
    past.
    """

    snapshots = [player for player in players.values() if _is_past(player)]
    a_N, b_N = posteriors(columns_of(snapshots, learner, tables), settings.prior_games)
    past = [
        roles.Rival(name=one.name, parent=learner_of(one, players), role=one.role, chance=chance)
        for one, chance in zip(snapshots, (a_N / (a_N + b_N)).tolist(), strict=True)
    ]
    newest = {one.parent: one for one in past}
    itself = roles.Rival(name=learner.name, parent=learner.name, role=learner.role, chance=0.5)
    mains = [
        itself if name == learner.name else newest[name]
        for name in _mains(players)
        if name == learner.name or name in newest
    ]
    return roles.Situation(
        learner=learner.name, role=learner.role, mains=tuple(mains), past=tuple(past)
    )


def _mains(players: Mapping[str, Player]) -> list[str]:
    return [
        player.name
        for player in players.values()
        if player.kind is PlayerKind.LIVE
        and player.role is Role.MAIN
        and player.state is PlayerState.ACTIVE
    ]


def learner_of(snapshot: Player, players: Mapping[str, Player]) -> str:
    """The live player whose snapshot it is: `main` of `main@500`, and of `main.3@500`, made
    after a return to an older checkpoint.
    """
    lineage = lineage_of(snapshot.name)
    if lineage in players:
        return lineage
    return lineage.rpartition(".")[0] or lineage


def _is_past(player: Player) -> bool:
    return (
        player.kind is PlayerKind.SNAPSHOT
        and player.role is not Role.CLONE
        and player.state is PlayerState.ACTIVE
        and not player.held_out
    )
