"""What `bin/league profile` says of a row: medians and spread, the bottleneck, what was not
measured.
"""

import pytest
from profiling import FACTS, row

from learner.profile import words
from learner.profile.rows import Spread


def test_a_row_tells_medians_spread_and_shares():
    made = row()
    assert made.steps_per_second() == Spread(750.0, 500.0, 1000.0)
    assert made.steps_per_second().relative == pytest.approx(2 / 3)
    assert made.part_steps_per_second("game") == Spread(7500.0, 5000.0, 10000.0)
    assert made.part_steps_per_second("other") is None
    shares = made.shares()
    assert sum(shares.values()) == pytest.approx(1.0)
    assert shares == pytest.approx(
        {"game": 0.1, "opponents": 0.2, "inference": 0.3, "learning": 0.4, "other": 0}
    )
    assert made.cpu_cores().median == pytest.approx(0.9)
    assert made.steps_per_cpu_second().median == pytest.approx(750 / 0.9)
    assert (made.slowest(), made.matches_ended(), made.whole) == ("learning", 4, True)


@pytest.mark.parametrize("kind", ["game", "opponents", "inference", "learning", "other"])
@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
def test_whatever_takes_most_is_the_bottleneck_with_advice(kind, device):
    told = words.bottleneck(row(**{kind: 9.0}), {**FACTS, "device": device})
    assert told.startswith(f"{kind} takes 9")
    advice = words.ADVICE_CPU if device == "cpu" else words.ADVICE_GPU
    assert advice[kind] in told
    assert "of a core busy" not in told


def test_a_process_that_waits_for_a_core_is_told():
    waiting = row()
    for burst in waiting.bursts:
        burst["cpu_seconds"] = 0.4 * burst["seconds"]
    assert "kept only 0.40 of a core busy" in words.bottleneck(waiting, FACTS)
    assert "load average 0.5 on 2 cores" in words.bottleneck(waiting, FACTS)


def test_what_was_not_measured_is_said():
    told = " ".join(words.not_measured(row(), FACTS, 3, 3, True))
    assert "waiting for the matchmaker" in told
    assert "a GPU: it ran on the CPU" in told
    assert "snapshots were made" not in told
    assert "whole updates" not in told
    assert "several ranks" not in told
    assert "a run learns in 2 on the CPU" in " ".join(
        words.not_measured(row(), FACTS, 3, 3, True, 2)
    )
    cut = row()
    cut.bursts[1]["whole"] = False
    told = " ".join(words.not_measured(cut, {**FACTS, "device": "cuda:0"}, 3, 9, False))
    for words_told in (
        "3 of its 9 snapshots",
        "whole updates",
        "could not be asked",
        "nvidia-smi did not tell",
    ):
        assert words_told in told


def test_a_lead_within_the_spread_is_doubted():
    own, wide = row(1000), row(1200, {"matches": 16, "batch_size": 32, "threads": 1})
    assert "within the spread (600 to 1,200 against 500 to 1,000)" in words.doubt(wide, own)
    assert words.doubt(row(3000, wide.changes), own) == ""
    assert words.doubt(own, own) == words.doubt(wide, None) == ""
