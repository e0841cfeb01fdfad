"""What a learner reports: win rates by opponent and side, rates and shares of time."""

import pytest
from learning import finished

import learner.train.metrics as module
from learner.train.metrics import Progress


def ended(index, score, side):
    return finished(index, [1.0, 2.0], {"spawn_side": side}, score=score, frames=300)


def test_a_draw_is_no_win_and_sides_are_told_apart():
    progress = Progress(1000, 30)
    progress.add([ended(0, 1.0, -1), ended(0, 0.5, 1), ended(1, 0.0, 1)])
    metrics = progress.metrics()
    assert metrics["winrate/constant"] == 0.5
    assert metrics["winrate/based"] == 0.0
    assert (metrics["winrate_from/left"], metrics["winrate_from/right"]) == (1.0, 0.0)
    assert metrics["reward/episode_mean"] == 3.0
    assert metrics["match/seconds_mean"] == 10.0


def test_rates_and_shares_come_from_the_clock(monkeypatch):
    now = iter([100.0, 110.0])
    monkeypatch.setattr(module.time, "monotonic", lambda: next(now))
    progress = Progress(1000, 30)
    progress.mark(200, 800, {"game": 1.0, "learning": 0.0})
    progress.mark(400, 1600, {"game": 3.0, "learning": 5.0})
    metrics = progress.metrics()
    assert metrics["rate/steps_per_second"] == 20.0
    assert metrics["rate/frames_per_second"] == 80.0
    assert metrics["progress/seconds_left"] == pytest.approx(30.0)
    assert (metrics["time/game_share"], metrics["time/learning_share"]) == (0.2, 0.5)


def test_nothing_is_claimed_before_anything_happened():
    assert Progress(1000, 30).metrics() == {"progress/target_steps": 1000.0}


def test_bots_are_told_by_name_and_of_the_snapshots_the_hardest_and_the_easiest():
    progress = Progress(1000, 30)
    progress.add([ended(0, 1.0, 1), ended(0, 0.0, 1)])  # constant
    progress.add([ended(3, float(n < 2), 1) for n in range(10)])  # main@1
    progress.add([ended(4, float(n < 7), 1) for n in range(10)])  # main@2
    metrics = progress.metrics()
    against = {name: rate for name, rate in metrics.items() if name.startswith("winrate_against/")}
    assert against == {
        "winrate_against/constant": 0.5,
        "winrate_against/hardest_snapshot": 0.2,
        "winrate_against/easiest_snapshot": 0.7,
    }
    young = Progress(1000, 30)
    young.add([ended(3, 1.0, 1)] * 9)
    assert not any(name.startswith("winrate_against/") for name in young.metrics())


def test_a_kind_of_opponent_that_is_met_no_more_has_no_win_rate():
    progress = Progress(1000, 30)
    progress.add([ended(0, 1.0, -1), ended(1, 0.0, 1)])
    for step in range(module.FORGOTTEN + 1):
        assert progress.metrics()["winrate/constant"] == 1.0
        progress.mark(step, step, {})
        progress.add([ended(1, 0.0, 1)])
    assert "winrate/constant" not in progress.metrics()
    assert progress.metrics()["winrate/based"] == 0.0
