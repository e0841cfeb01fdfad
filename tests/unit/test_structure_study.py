"""Everything at once: intervals that hold the truth, the same figures again, and a picture."""

import json

import numpy as np
import pytest
from structure_games import RPS, chances, elo, expected, played

from league.stats.structure.study import as_json, study


@pytest.fixture(scope="module")
def rps():
    groups = [([0], [1]), ([0, 1], [0, 1, 2])]
    return study(expected(chances(2 * RPS), 100), groups, draws=40)


def test_rock_paper_scissors(rps):
    assert rps.mass.value == pytest.approx(np.full(3, 1 / 3), abs=1e-6)
    assert (rps.mass.low < 1 / 3).all()
    assert (rps.mass.high > 1 / 3).all()
    assert (rps.supported_N == 1).all()
    assert rps.alpha_mass.value == pytest.approx(np.full(3, 1 / 3))
    assert (rps.cyclicity.share, rps.cyclicity.high) == (1, 1)
    assert 0.85 < rps.cyclicity.low < 1
    assert rps.sure_cycles == 1
    assert rps.clusters.count == 3
    assert rps.pairs_met == 3


def test_groups_are_compared_in_shares_of_a_match(rps):
    rock_paper, without_scissors = rps.performances
    loses = float(rps.table.chance_NN[0, 1])
    assert float(rock_paper.value) == pytest.approx(loses)
    assert rock_paper.low < loses < rock_paper.high
    margin = 2 * (1 - loses) - 1
    assert float(without_scissors.value) == pytest.approx(0.5 - 0.5 * margin / 3, abs=1e-6)


def test_a_large_group_is_not_better_by_luck():
    """All players are equal, but the luckiest of six wins more than half of its matches."""
    held, rng = 0, np.random.default_rng(5)
    for _ in range(5):
        table = played(np.full((7, 7), 0.5), 40, rng)
        groups = [(range(6), [6]), ([6], range(6))]
        for compared in study(table, groups, draws=20).performances:
            held += bool(compared.low <= 0.5 <= compared.high)
    assert held >= 8


def test_the_same_seed_gives_the_same_figures():
    table = played(chances(elo([0, 1, 2, 3])), 20, np.random.default_rng(0))
    one, other = (as_json(study(table, draws=10)) for _ in range(2))
    assert one == other
    assert one["players"] != as_json(study(table, draws=10, seed=1))["players"]


def test_copies_share_a_cluster_whose_mass_is_sure():
    """Which of two copies has the mass is chance; how much they have together is not."""
    rows = [0, 0, 1, 2]
    chance = chances(2 * RPS)[np.ix_(rows, rows)].copy()
    np.fill_diagonal(chance, 0.5)
    found = study(played(chance, 300, np.random.default_rng(4)), draws=60)
    assert found.clusters.members() == [[0, 1], [2], [3]]
    width = found.cluster_mass.high - found.cluster_mass.low
    assert found.cluster_mass.value.sum() == pytest.approx(1)
    assert width[0] < 0.2
    assert (found.mass.high - found.mass.low)[:2].max() > 2 * width[0]


def test_all_of_it_is_json(rps):
    told = json.loads(json.dumps(as_json(rps), allow_nan=False))
    assert [player["nash"]["value"] for player in told["players"]] == pytest.approx(
        [1 / 3] * 3, abs=1e-6
    )
    assert told["cycles"][0]["players"] == ["p0", "p2", "p1"]
    assert told["matches"] == 300
    assert told["clusters"][0]["players"] == ["p0"]
    even = as_json(study(expected(np.full((2, 2), 0.5), 4), draws=3))
    assert even["cyclic"] == {"share": None, "low": 0, "high": 1}
    json.dumps(even, allow_nan=False)
