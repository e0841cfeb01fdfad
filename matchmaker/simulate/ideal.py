"""What a rule would give if the learner knew the true win chances: by groups of opponents.

Shape suffixes: C candidates.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict

import numpy as np

from matchmaker.sampling.mixes import normalised
from matchmaker.simulate.cast import Cast
from matchmaker.simulate.scenarios import Scenario
from matchmaker.store.base import Reader

_NEWEST = "SELECT max(draw) FROM assignments WHERE mix != '' GROUP BY incarnation"
_DRAWN = """
SELECT i.player, a.category, CASE a.learner_seat WHEN 0 THEN a.seat1 ELSE a.seat0 END, count(*)
FROM assignments a JOIN incarnations i ON i.number = a.incarnation
WHERE a.mix != '' AND a.replaces = '' GROUP BY 1, 2, 3
"""


def groups_of(
    reader: Reader, scenario: Scenario, cast: Cast, power: float
) -> dict[tuple[str, str], tuple[int, float | None]]:
    """By (learner, group of opponents): matches drawn by a rule, and the share of the learner's
    such matches that the rule would give to the group by the truth; None where the rule does not go
    by win chances.

    Categories of one candidate (bots, self-play) are left out. Candidates are those of a learner's
    last draw.
    """
    drawn: dict[str, Counter[str]] = defaultdict(Counter)
    wanted: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    several: dict[str, set[str]] = defaultdict(set)
    known: dict[str, bool] = defaultdict(lambda: True)
    last = {}
    for (number,) in reader.select(_NEWEST):
        row = reader.draw(number)
        assert row is not None
        body = json.loads(row.body_json)
        last[body["player"]] = body
    for player, body in last.items():
        for category, share in body["shares"].items():
            names = [name for name, _ in body["candidates"][category]]
            if len(names) < 2:
                continue
            several[player].add(category)
            rule = body.get("rules", {}).get(category, body["rule"])
            weights = _true_weights(
                rule, scenario, cast.number[player], [cast.number[n] for n in names], power
            )
            if weights is None:
                known[player] = False
                continue
            for name, weight in zip(names, normalised(weights), strict=True):
                wanted[player][scenario.group_N[cast.number[name]]] += share * weight
    for player, category, opponent, count in reader.select(_DRAWN):
        if category in several[player]:
            drawn[player][scenario.group_N[cast.number[opponent]]] += count
    found = {}
    for player, counts in drawn.items():
        total = sum(wanted[player].values())
        for group, count in sorted(counts.items()):
            ideal = wanted[player].get(group, 0.0) / total if known[player] and total else None
            found[player, group] = (count, ideal)
    return found


def _true_weights(
    rule: str, scenario: Scenario, learner: int, others: list[int], power: float
) -> list[float] | None:
    other_C = np.array(others)
    p_C = scenario.chances(np.full(len(other_C), learner), other_C).score_G
    weights = {
        "uniform": np.ones_like(p_C),
        "pfsp_hard": (1.0 - p_C) ** power,
        "pfsp_var": p_C * (1.0 - p_C),
        "pfsp_linear": 1.0 - p_C,
        "pfsp_capped": np.minimum(0.5, 1.0 - p_C),
    }.get(rule)
    return None if weights is None else [float(weight) for weight in weights]
