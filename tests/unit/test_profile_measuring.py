"""`bin/league profile` measures the real pipeline: parts add up, and what is cut is scaled up."""

import math
from collections import Counter

import numpy as np
import pytest
from profiled_games import NAP
from profiling import FACTS, SMALL, kuhn, order, pipeline_of

from league.agent.snapshot import load_snapshot
from league.errors import ConfigError
from league.games.registry import game_spec
from league.players import PlayerKind
from league.runs.blobs import BlobFolder
from league.settings.base import resolve
from learner.profile import opponents, report
from learner.profile.measuring import Measured, measure, session_settings
from learner.profile.opponents import MixSource, make_snapshots, mix_of, snapshots_of_a_run
from learner.profile.sweep import Row
from learner.train.join import live_player


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
def test_an_update_longer_than_a_burst_is_scaled_up(tmp_path, regularised, seconds):
    long = ["learner.n_steps=512", "learner.batch_size=512", "learner.n_epochs=50"]
    sections = kuhn("slow", *long, f"regularisation.alpha={0.01 * regularised}")
    pipeline = pipeline_of(sections, tmp_path)
    pipeline.warm_up(seconds)
    burst = pipeline.burst(seconds)
    assert not burst.whole
    assert ("references" in burst.parts) == regularised
    assert burst.steps == 8 * 512
    # the upper bound is as large a factor as a busy machine may need
    assert 512 * NAP <= burst.parts["game"] < 512 * NAP * 8
    assert burst.seconds > 2 * burst.measured_seconds
    assert math.isclose(sum(burst.parts.values()), burst.seconds, rel_tol=1e-9)


@pytest.mark.parametrize(
    ("matches", "sequences", "epochs", "done", "factor"),
    [(8, 2, 1, 4, 1.0), (8, 2, 10, 1, 40.0), (6, 4, 2, 1, 3.0), (6, 4, 2, 3, 1.2)],
)
def test_a_cut_update_counts_the_sequences_it_saw(
    tmp_path, matches, sequences, epochs, done, factor
):
    sizes = {"matches": matches, "batch_size": 8 * sequences, "n_epochs": epochs}
    sections = kuhn("", *(f"learner.{name}={value}" for name, value in sizes.items()))
    assert pipeline_of(sections, tmp_path).minibatch_factor(done) == pytest.approx(factor)


def test_a_slow_game_is_named_as_the_bottleneck(tmp_path):
    pipeline = pipeline_of(kuhn("slow", "learner.n_epochs=1", "learner.batch_size=64"), tmp_path)
    pipeline.warm_up(0.2)
    slow = Row({})
    slow.add(Measured(bursts=[pipeline.burst(0.3)]))
    assert report.bottleneck(slow, FACTS).startswith("game takes ")


def test_a_process_that_is_killed_or_finds_no_memory_is_a_reported_failure(tmp_path):
    assert len(measure(order(kuhn("deadly"), tmp_path)).bursts) == 1
    killed = measure(order(kuhn("deadly", "learner.matches=16"), tmp_path))
    assert "killed" in killed.failure
    huge = measure(order(kuhn("", "learner.matches=1000000000000"), tmp_path))
    assert "too little memory on cpu" in huge.failure
    assert killed.out_of_memory
    assert huge.out_of_memory
    assert killed.bursts == huge.bursts == []


@pytest.mark.parametrize(("preset", "count"), [("laptop", 100), ("full", 200), ("smoke", 6)])
def test_as_many_snapshots_as_a_run_would_hold(preset, count):
    assert snapshots_of_a_run(resolve(preset, environment={})) == count


def test_snapshots_are_different_and_bounded_in_size(tmp_path, monkeypatch):
    settings = session_settings(kuhn(""))
    made = make_snapshots(tmp_path, settings, 5)
    assert len({player.digest for player in made}) == len({player.name for player in made}) == 5
    assert load_snapshot(BlobFolder(tmp_path), made[0].digest)[1].step == made[0].step
    size = next(tmp_path.rglob("*.safetensors")).stat().st_size
    monkeypatch.setattr(opponents, "LARGEST_POOL", 3 * size + size // 2)
    assert len(make_snapshots(tmp_path / "fewer", settings, 5)) == 3


def drawn_from(mix, matches, snapshots=(), **options):
    live = live_player("main", session_settings(kuhn("")).game.make(1))
    source = MixSource(mix, game_spec("brawl"), live, snapshots, seed=0, **options)
    return [source.take() for _ in range(matches)]


def test_the_mix_is_played_by_its_weights_and_empty_categories_leave_theirs():
    snapshots = [opponents.snapshot_player(game_spec("brawl"), f"{i:064x}", i) for i in (1, 2)]
    mix = {"snapshots": 6.0, "based": 2.0, "self": 2.0, "exploiters": 30.0, "random": 0.0}
    drawn = drawn_from(mix, 4000, snapshots)
    shares = {name: n / 4000 for name, n in Counter(match.category for match in drawn).items()}
    assert shares == pytest.approx({"snapshots": 0.6, "based": 0.2, "self": 0.2}, abs=0.03)
    names = Counter(match.opponent.name for match in drawn if match.category == "snapshots")
    assert min(names.values()) / max(names.values()) > 0.85
    assert np.mean([match.learner_seat for match in drawn]) == pytest.approx(0.5, abs=0.03)
    assert len({match.seed for match in drawn}) == 4000
    held_out = next(bot.name for bot in game_spec("brawl").bots if bot.held_out)
    (alone,) = drawn_from({"exploiters": 1.0, held_out: 1.0}, 1)
    assert alone.opponent.kind is PlayerKind.LIVE


def test_matches_of_a_draw_are_in_a_row():
    mix = {"based": 1.0, "random": 1.0, "constant": 2.0}
    names = [match.opponent.name for match in drawn_from(mix, 400, matches_per_draw=4)]
    draws = [set(names[i : i + 4]) for i in range(0, 400, 4)]
    assert all(len(draw) == 1 for draw in draws)
    assert set.union(*draws) == set(mix)


def test_a_stage_without_its_mix_is_refused():
    sections = kuhn("", "curriculum.stages=[{name='x', mix='nowhere'}]")
    with pytest.raises(ConfigError, match="nowhere"):
        mix_of(sections, session_settings(sections))
