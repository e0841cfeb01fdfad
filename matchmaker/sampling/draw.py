"""What one call's opponents are drawn from: everybody's probability for one learner, and its
record.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from league.players import Book, Player
from league.stats.ratings import RatingTable
from matchmaker.acts.clustering import NO_CLUSTERING, Clustering
from matchmaker.sampling.columns import columns_of, weights_of
from matchmaker.sampling.mixes import Distribution, normalised
from matchmaker.sampling.slices import Slice, has_role_rules, slices_of
from matchmaker.settings import MatchmakerSettings
from matchmaker.state.exploiters import NO_EXPLOITERS, ExploiterState

BY_AGE = ("recent", "latest")
"""Rules under which near-copies don't share: the newest snapshots are often alike, and are
wanted.
"""


@dataclass(frozen=True)
class DrawTable:
    """What one call's opponents are drawn from. `body_json` is what the log keeps of it."""

    shares: Distribution
    within: dict[str, Distribution]
    body_json: str
    matches_per_draw: int = 1


def draw_table(
    settings: MatchmakerSettings,
    learner: Player,
    mix_name: str,
    players: Mapping[str, Player],
    tables: Mapping[Book, RatingTable],
    clustering: Clustering = NO_CLUSTERING,
    exploiters: ExploiterState = NO_EXPLOITERS,
) -> DrawTable:
    """The probabilities for one learner now; a pure function of its arguments.

    A mix whose categories are all empty means self-play.
    """
    if not settings.near_copies:
        clustering = NO_CLUSTERING
    parts: dict[str, list[Slice]] = {}
    for one in slices_of(settings, learner, mix_name, players, tables, exploiters):
        parts.setdefault(one.category, []).append(one)
    shares = {
        category: math.fsum(one.weight for one in slices) for category, slices in parts.items()
    }
    weights = {
        category: _weights(slices, learner, tables, clustering)
        for category, slices in parts.items()
    }
    description: dict[str, Any] = {
        "player": learner.name,
        "mix": mix_name,
        "rule": settings.within_snapshots,
        "shares": shares,
        "candidates": {
            category: list(map(list, found.items())) for category, found in weights.items()
        },
    }
    if has_role_rules(settings, learner):
        rules = {category: slices[0].policy.rule for category, slices in parts.items()}
        description |= {"roles": settings.roles, "rules": rules}
    if clustering.position:
        description["clusters"] = clustering.position
    if settings.matches_per_draw > 1:
        description["matches_per_draw"] = settings.matches_per_draw
    return DrawTable(
        Distribution(tuple(shares), tuple(shares.values())),
        {
            name: Distribution(tuple(of), tuple(normalised(list(of.values()))))
            for name, of in weights.items()
        },
        json.dumps(description, separators=(",", ":")),
        settings.matches_per_draw,
    )


def _weights(
    parts: Sequence[Slice],
    learner: Player,
    tables: Mapping[Book, RatingTable],
    clustering: Clustering,
) -> dict[str, float]:
    """Weights of a category's players, not normalised; those of several slices are mixed by
    their shares.
    """
    mixed: dict[str, float] = {}
    for one in parts:
        candidates = columns_of(one.players, learner, tables)
        weights, names = weights_of(one.policy, candidates), candidates.names
        if one.policy.rule not in BY_AGE:
            weights = [
                weight * part for weight, part in zip(weights, clustering.parts(names), strict=True)
            ]
        if len(parts) == 1:
            return dict(zip(names, weights, strict=True))
        for name, share in zip(names, normalised(weights), strict=True):
            mixed[name] = mixed.get(name, 0.0) + one.weight * share
    return mixed


def draw_table_of(body_json: str) -> DrawTable:
    """The table as the log kept it, to draw from it again."""
    body = json.loads(body_json)
    within = {
        category: Distribution(
            tuple(name for name, _ in rows), tuple(normalised([weight for _, weight in rows]))
        )
        for category, rows in body["candidates"].items()
    }
    shares = Distribution(tuple(body["shares"]), tuple(body["shares"].values()))
    return DrawTable(shares, within, body_json, body.get("matches_per_draw", 1))
