"""`bin/league profile` measures the real pipeline: parts add up, and what is slow is named."""

import math
from collections import Counter

import numpy as np
import pytest
from profiled_games import NAP
from profiling import SMALL, kuhn, order, pipeline_of

from league.agent.snapshot import load_snapshot
from league.games.registry import game_spec
from league.players import PlayerKind
from league.runs.blobs import BlobFolder
from league.settings.base import resolve
from learner.profile import opponents
from learner.profile.measuring import measure
from learner.profile.opponents import MixSource, make_snapshots
from learner.train.build import SessionSettings
from learner.train.join import live_player


@pytest.mark.parametrize("regularised", [False, True])
def test_the_parts_of_a_real_burst_add_up_to_its_time(tmp_path, regularised):
    flags = [*SMALL, f"regularisation.alpha={0.01 * regularised}"]
    flags += [
        "curriculum.stages=[{name='bots', mix='bots'}]",
        "matchmaker.mixes={bots={based=1.0}}",
    ]
    pipeline = pipeline_of(resolve("smoke", None, flags, environment={}), tmp_path)
    burst = pipeline.burst(0.05)
    assert burst.steps % (8 * 8) == 0
    assert pipeline.model.num_timesteps == burst.steps > 0
    assert math.isclose(sum(burst.parts.values()), burst.seconds, rel_tol=1e-9)
    parts = {"game", "opponents", "inference", "learning", "other"}
    assert set(burst.parts) == parts | ({"references"} if regularised else set())
    assert all(seconds > 0 for name, seconds in burst.parts.items() if name != "opponents")
    assert burst.cpu_seconds > 0
    assert burst.seconds >= 0.05


def test_what_a_slow_game_takes_is_counted_as_the_games(tmp_path):
    pipeline = pipeline_of(kuhn("slow", "learner.n_epochs=1", "learner.batch_size=64"), tmp_path)
    burst = pipeline.burst(0.01)
    assert burst.parts["game"] >= NAP * burst.steps / 8


def test_a_process_that_is_killed_is_a_reported_failure(tmp_path):
    killed = measure(order(kuhn("deadly", "learner.matches=16"), tmp_path))
    assert "killed" in killed.failure
    assert killed.bursts == []


def test_snapshots_are_different_and_bounded_in_size(tmp_path, monkeypatch):
    settings = SessionSettings.of(kuhn(""))
    made = make_snapshots(tmp_path, settings, 5)
    assert len({player.digest for player in made}) == len({player.name for player in made}) == 5
    assert load_snapshot(BlobFolder(tmp_path), made[0].digest)[1].step == made[0].step
    size = next(tmp_path.rglob("*.safetensors")).stat().st_size
    monkeypatch.setattr(opponents, "LARGEST_POOL", 3 * size + size // 2)
    assert len(make_snapshots(tmp_path / "fewer", settings, 5)) == 3


def drawn_from(mix, matches, snapshots=(), **options):
    live = live_player("main", SessionSettings.of(kuhn("")).game.make(1))
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
