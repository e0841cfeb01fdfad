"""Defines the columns of every CSV in a run folder, each with its meaning.

A file's leading columns are the same in every game. `behavior_metrics.csv` continues with the
game's statistics of the learner's seat, and `reward_breakdown.csv` with the game's reward terms.
Each row has the learner's step.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

MONITOR: Final = {
    "r": "reward of the match, weighted, undiscounted",
    "l": "its length in the learner's decisions",
    "t": "seconds since the learner's start",
    "step": "learner steps at the end of the rollout in which it ended",
    "opponent": "name of the bot or snapshot",
    "score": "the learner's: 1 win, 0.5 draw, 0 loss",
}
"""The three columns of Stable-Baselines3's own monitor.csv, and three further columns."""

BEHAVIOUR: Final = {
    "step": "learner steps at the end of the rollout in which the match ended",
    "match_id": "the match, as `bin/league match` takes it",
    "opponent": "name of the bot or snapshot",
    "category": "kind of opponent in the mix",
    "seat": "the learner's seat, 0 or 1",
    "score": "the learner's: 1 win, 0.5 draw, 0 loss",
    "frames": "length of the match in frames",
}

REWARDS: Final = {
    "step": "learner steps after the rollout",
    "matches": "matches that ended in it",
    "total": "mean weighted reward of a match: the sum of the columns that follow",
}

STRATEGY: Final = {
    "step": "learner steps after the update",
    "latent_norm": "mean Euclidean norm of the strategy latent",
    "latent_mean": "mean of the latent's numbers",
    "latent_spread": "how far the latent's numbers spread over steps and matches: the root of "
    "their mean variance",
    "latent_drift": "how far the latent moves in a match from a rollout's first to its last step, "
    "relative to the distance between two random steps: 0 means that it stays the same, and 1 that "
    "the last latent is unrelated to the first",
    "latent_separation": "share of the latent's variance that lies between kinds of opponents, "
    "corrected for chance: 0 means no separation, and 1 full separation. Empty unless at least two "
    "kinds each have two matches with a full history",
    "attention_entropy": "entropy of the latent's attention over past entries, nats, mean over "
    "heads",
    "attention_entropy_share": "`attention_entropy` divided by its largest possible value: 1 means "
    "that all entries get equal weight",
    "attention_age_frames": "mean age of the entries attended to, in frames",
    "context_entropy_share": "attention_entropy_share of the second attention, whose query comes "
    "from the agent's own observation",
    "context_age_frames": "attention_age_frames of the second attention",
}
"""Each column has the name of a metric, with an underscore instead of the slash: `latent_norm` is
the metric latent/norm.
"""

EVALUATION: Final = {
    "player": "name of the evaluated snapshot",
    "step": "learner steps that trained it",
    "opponent": "name of the bot or snapshot it met",
    "book": "eval: keys sampled at temperature 1; greedy: each key's likelier value",
    "matches": "matches played, each seed from both seats",
    "wins": "matches won",
    "draws": "matches drawn; a draw is not a win",
    "losses": "matches lost",
    "win_rate": "wins / matches",
    "wilson_low": "lower end of the 95 % Wilson interval of win_rate",
    "wilson_high": "upper end of the 95 % Wilson interval of win_rate",
    "win_rate_seat_0": "wins / matches in seat 0",
    "win_rate_seat_1": "wins / matches in seat 1",
    "damage_dealt_mean": "damage dealt a match, points",
    "damage_taken_mean": "damage taken a match, points",
    "knockouts_mean": "opponent's stocks taken a match",
    "falls_mean": "own stocks lost a match",
    "seconds_mean": "length of a match, seconds of game time",
}
"""`docs/evaluator.md` shows this table, and `docs/learner.md` the others."""

TABLES: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        "monitor.csv": MONITOR,
        "behavior_metrics.csv": BEHAVIOUR,
        "reward_breakdown.csv": REWARDS,
        "strategy_analysis.csv": STRATEGY,
        "evaluation_results.csv": EVALUATION,
    }
)
"""Leading columns by file."""
