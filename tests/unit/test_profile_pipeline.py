"""`bin/league profile` measures the real pipeline: the parts add up, what is cut is scaled up."""

import math
from pathlib import Path

import pytest
from profiled_games import NAP
from profiling import FACTS, SMALL, kuhn, pipeline_of

from league.settings.base import resolve
from learner.profile import words
from learner.profile.opponents import mix_of
from learner.profile.rows import Row
from learner.profile.trace import gpu_busy_share
from learner.profile.worker import Measured, Order, measure, session_settings


def test_the_parts_of_a_real_burst_add_up_to_its_time(tmp_path):
    pipeline = pipeline_of(resolve("smoke", None, SMALL, environment={}), tmp_path)
    pipeline.warm_up(2.0)
    burst = pipeline.burst(1.0)
    assert burst.whole
    assert burst.steps % (8 * 8) == 0
    assert pipeline.model.num_timesteps >= burst.steps > 0
    assert math.isclose(sum(burst.parts.values()), burst.seconds, rel_tol=1e-9)
    assert set(burst.parts) == {"game", "opponents", "inference", "learning", "other"}
    assert all(seconds > 0 for seconds in burst.parts.values())
    assert burst.cpu_seconds > 0
    assert math.isclose(burst.seconds, burst.measured_seconds, rel_tol=1e-6)


@pytest.mark.parametrize("seconds", [0.4, 0.04])  # one that may hold a rollout, and one that can't
@pytest.mark.parametrize("regularised", [False, True])
def test_an_update_longer_than_a_burst_is_scaled_up_from_its_beginning(
    tmp_path, regularised, seconds
):
    long = ["learner.n_steps=512", "learner.batch_size=512", "learner.n_epochs=50"]
    sections = kuhn("slow", *long, f"regularisation.alpha={0.01 * regularised}")
    pipeline = pipeline_of(sections, tmp_path)
    pipeline.warm_up(seconds)
    burst = pipeline.burst(seconds)
    assert not burst.whole
    assert ("references" in burst.parts) == regularised
    assert burst.steps == 8 * 512
    assert burst.parts["game"] >= 512 * NAP
    assert burst.parts["game"] < 512 * NAP * 8  # as large a factor as a busy machine may need
    assert burst.seconds > 2 * burst.measured_seconds
    assert math.isclose(sum(burst.parts.values()), burst.seconds, rel_tol=1e-9)


@pytest.mark.parametrize(
    ("matches", "sequences", "epochs", "done", "factor"),
    [
        (8, 2, 1, 4, 1.0),
        (8, 2, 10, 4, 10.0),
        (8, 2, 10, 1, 40.0),
        (6, 4, 2, 1, 3.0),
        (6, 4, 2, 3, 1.2),
    ],
)
def test_a_cut_update_counts_the_sequences_it_saw(
    tmp_path, matches, sequences, epochs, done, factor
):
    sections = kuhn(
        "",
        f"learner.matches={matches}",
        f"learner.batch_size={8 * sequences}",
        f"learner.n_epochs={epochs}",
    )
    assert pipeline_of(sections, tmp_path)._minibatches_share(done) == pytest.approx(factor)


def test_a_slow_game_is_named_as_the_bottleneck(tmp_path):
    pipeline = pipeline_of(kuhn("slow", "learner.n_epochs=1", "learner.batch_size=64"), tmp_path)
    pipeline.warm_up(0.2)
    slow = Row({})
    slow.add(Measured(bursts=[vars(pipeline.burst(0.3))]))
    assert slow.slowest() == "game"
    told = words.bottleneck(slow, FACTS)
    assert told.startswith("game takes ")
    assert "learner.matches" in told


def order(sections):
    settings = session_settings(sections)
    return Order(
        sections=sections,
        device="cpu",
        mix=mix_of(sections, settings),
        snapshots=(),
        blobs=Path("unused"),
        seconds=0.1,
        bursts=1,
    )


def test_a_process_that_is_killed_or_finds_no_memory_is_a_failure_and_no_end():
    assert len(measure(order(kuhn("deadly"))).bursts) == 1
    killed = measure(order(kuhn("deadly", "learner.matches=16")))
    assert "was killed, most likely because memory ran out" in killed.failure
    huge = measure(order(kuhn("", "learner.matches=1000000000000")))
    assert huge.failure.startswith("too little memory on cpu: Unable to allocate")
    assert killed.bursts == huge.bursts == []


def test_the_busy_share_of_a_trace_counts_overlapping_work_once():
    events = [
        {"cat": "cpu_op", "ts": 0, "dur": 10},
        {"cat": "kernel", "ts": 1, "dur": 3},
        {"cat": "kernel", "ts": 2, "dur": 1},
        {"cat": "gpu_memcpy", "ts": 3, "dur": 2},
        {"cat": "gpu_user_annotation", "ts": 0, "dur": 20},
        {"cat": "gpu_memset", "ts": 12, "dur": 4},
        {"ph": "M"},
    ]
    assert gpu_busy_share(events) == pytest.approx((4 + 4) / 20)
    assert gpu_busy_share(events[:1]) is None
