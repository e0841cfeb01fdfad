"""What an analysis makes of matches whose opponents are known to differ, or not to."""

import numpy as np
import pytest
from agents import TINY, network

from evaluator.analysis.analyse import Watched, analyse
from evaluator.analysis.measures import Labels
from league.agent.snapshot import SnapshotCard
from league.errors import InvalidInput
from league.games.registry import game_spec

SPEC = game_spec("brawl")
CARD = SnapshotCard(agent=TINY, game="brawl", game_version=SPEC.version)
AGENT = network(TINY, 3).eval()
SEEDS = 8
LABELS = Labels(np.tile([0, 0, 1, 1], SEEDS), np.repeat(np.arange(SEEDS), 4))


def analysed(seen):
    watched = Watched(opponents=("still", "lively"), labels=LABELS, seen=seen)
    return analyse(AGENT, CARD, SPEC, watched, player="main@1", shuffles=40)


def test_opponents_that_act_differently_are_named():
    rng = np.random.default_rng(0)
    seen = [
        np.tanh((0.1 + k) * rng.normal(size=(40, TINY.observation_size))).astype(np.float32)
        for k in LABELS.opponent_M
    ]
    report = analysed(seen)
    latent, untrained = report["probes"]["latent"], report["probes"]["untrained"]
    assert latent["value"] > 0.8
    assert latent["p_value"] < 0.05
    gain, low, high = report["gain_over_untrained"]
    assert low <= gain <= high
    assert gain == pytest.approx(latent["value"] - untrained["value"])
    for reading in (latent, untrained):  # the latter is told where the latent shows it
        assert f"{reading['value']:.0%}" in report["verdict"]
    for place, one in enumerate(report["opponents"]):
        assert one["distance"][place] == 0.0 < one["distance"][1 - place]


def test_few_seeds_are_too_few_to_tell():
    rng = np.random.default_rng(0)
    few = Labels(LABELS.opponent_M[:8], LABELS.seed_M[:8])
    seen = [rng.normal(size=(40, TINY.observation_size)).astype(np.float32) for _ in few.seed_M]
    watched = Watched(opponents=("still", "lively"), labels=few, seen=seen)
    report = analyse(AGENT, CARD, SPEC, watched, player="main@1", shuffles=40)
    assert "2 seeds" in report["verdict"]


def test_the_length_of_a_match_is_no_part_of_its_first_latent():
    """An error of rounding would be one, if each match were encoded alone."""
    rng = np.random.default_rng(1)
    first = rng.normal(size=(9, TINY.observation_size)).astype(np.float32)
    report = analysed([first[: 2 + 7 * k] for k in LABELS.opponent_M])
    at_first = report["after"][0]
    for reading in ("latent", "untrained", "seen"):
        assert at_first[reading]["value"] == 0.5
        assert at_first[reading]["p_value"] == 1.0


def test_a_latent_that_never_changes_is_refused():
    still = np.zeros((1, TINY.observation_size), np.float32)
    with pytest.raises(InvalidInput, match="main@1"):
        analysed([still] * len(LABELS.seed_M))
