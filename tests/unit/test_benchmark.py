"""`evaluator.Benchmark`: who won is counted from both seats, and intervals hold."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch

from evaluator import Benchmark
from evaluator.benchmark.scores import ratio, win_rate
from league.agent.config import AgentConfig, AgentSettings
from league.agent.network import AgentNetwork
from league.errors import InvalidInput, NotFound
from league.games.registry import game_spec


def test_the_other_player_sees_the_same_matches() -> None:
    mine = Benchmark("caller", ["nash"], 40, game="kuhn").run()["nash"]
    its = Benchmark("nash", ["caller"], 40, game="kuhn").run()["caller"]
    assert (mine.matches, mine.wins, mine.losses) == (40, its.losses, its.wins)
    assert mine.means["payoff"].value == -its.means["payoff"].value != 0
    assert mine.means["choices"] == its.means["choices"]
    assert mine.win_rate.value == pytest.approx(mine.wins / 40)
    assert 0 < mine.win_rate.low < mine.win_rate.value < mine.win_rate.high < 1


def test_only_real_decisions_count_as_use_of_an_action() -> None:
    found = Benchmark("caller", ["random"], 20, game="kuhn").run()["random"]
    used = {name: share.value for name, share in found.actions.items()}
    assert used == pytest.approx({"fold": 0.0, "call": 1.0, "raise": 0.0})


@pytest.mark.parametrize("side", ["agent", "opponent"])
def test_a_mixture_scores_by_its_weights_however_few_matches_a_member_has(side: str) -> None:
    mixture = "always-scissors=9,always-paper=1"  # rock beats one and loses to the other
    pair = ("always-rock", mixture) if side == "opponent" else (mixture, "always-rock")
    found = Benchmark(pair[0], {"it": pair[1]}, 10, game="matrix:rps").run()["it"]
    wins = found.win_rate.value
    assert wins == pytest.approx(0.9 if side == "opponent" else 0.1)
    assert found.matches == 10
    assert found.wins == (8 if side == "opponent" else 2)
    assert found.win_rate.low < wins < found.win_rate.high


def test_a_network_in_memory_plays() -> None:
    torch.manual_seed(0)
    network = AgentNetwork(AgentConfig.of(AgentSettings(size="tiny"), game_spec("kuhn")))
    found = Benchmark(network, ["random"], 20, game="kuhn").run()["random"]
    again = Benchmark(network, ["random"], 20, game="kuhn").run()["random"]
    assert found == again
    assert found.wins + found.draws + found.losses == 20
    assert sum(share.value for share in found.actions.values()) == pytest.approx(1.0)


def test_an_odd_number_of_matches_is_rounded_up_to_whole_pairs() -> None:
    assert Benchmark("caller", ["nash"], 5, game="kuhn").run()["nash"].matches == 6


def test_wrong_requests_are_refused() -> None:
    with pytest.raises(InvalidInput, match="2 matches"):
        Benchmark("caller", ["nash"], 2, game="kuhn").run()
    with pytest.raises(NotFound, match="nashh"):
        Benchmark("caller", ["nashh"], 8, game="kuhn").run()


def test_intervals_cover_the_truth_in_95_percent() -> None:
    rng, hits = np.random.default_rng(7), np.zeros(3)
    tries, pairs = 2000, 40
    weight_P = np.where(np.arange(pairs) < 30, 1.0, 2.0)
    for _ in range(tries):
        luck_P = rng.gamma(4.0, 0.25, pairs)  # shared by both sums, as the length of a match is
        top_P, bottom_P = rng.poisson(6.0 * luck_P), rng.poisson(3.0 * luck_P)
        mean, share = ratio(top_P, np.ones(pairs), weight_P), ratio(top_P, bottom_P, weight_P)
        logs = ratio(top_P, bottom_P, weight_P, logs=True)
        hits += [x.low <= truth <= x.high for x, truth in ((mean, 6.0), (share, 2.0), (logs, 2.0))]
    assert (np.abs(hits / tries - 0.95) < 0.02).all()


def test_matches_that_repeat_each_other_count_once() -> None:
    won_P = np.arange(60) % 3 > 0
    even_P = np.ones(60)
    twice = win_rate(np.stack([won_P, won_P], 1), even_P)
    apart = win_rate(np.stack([won_P, np.roll(won_P, 1)], 1), even_P)
    assert twice.value == pytest.approx(apart.value)
    assert twice.high - twice.low > 1.3 * (apart.high - apart.low)
    heavy = win_rate(np.stack([won_P, np.roll(won_P, 1)], 1), np.where(even_P.cumsum() < 7, 9, 0.1))
    assert heavy.high - heavy.low > 2 * (apart.high - apart.low)


def test_what_was_never_seen_is_still_possible() -> None:
    seconds_P, falls_P, even_P = np.full(50, 60.0), np.zeros(50), np.ones(50)
    found = ratio(seconds_P, falls_P, even_P, least=3.0, logs=True)
    assert found.value == pytest.approx(50 * 60 / 3)


def test_importing_the_package_loads_nothing() -> None:
    code = "import evaluator, sys; print({'torch', 'numpy', 'typer', 'scipy'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
