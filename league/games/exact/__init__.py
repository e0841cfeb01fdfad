"""Exact values of small games: whole trees, best responses, NashConv and exploitability, in plain
numpy.

tree = game_tree(rules_of(make_batched("kuhn", 1)))
nash_conv(tree, uniform_table(tree))             # 0.916667
exploitability(tree, table_of(tree, policy))     # of anything that answers observations
"""

from __future__ import annotations

from league.games.exact.policies import Histories, strategy_table, table_of, uniform_table
from league.games.exact.tree import GameTree, game_tree, rules_of
from league.games.exact.values import (
    BestResponse,
    best_response,
    best_response_value,
    expected_value,
    exploitability,
    nash_conv,
)

__all__ = [
    "BestResponse",
    "GameTree",
    "Histories",
    "best_response",
    "best_response_value",
    "expected_value",
    "exploitability",
    "game_tree",
    "nash_conv",
    "rules_of",
    "strategy_table",
    "table_of",
    "uniform_table",
]
