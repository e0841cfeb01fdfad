"""The league that `bin/league profile` plays: a run's mix, and as many snapshots as a run would
hold.
"""

from collections import Counter

import numpy as np
import pytest
from profiling import kuhn

from league.agent.snapshot import load_snapshot
from league.errors import ConfigError
from league.games.registry import game_spec
from league.players import PlayerKind
from league.runs.blobs import BlobFolder
from league.settings.base import resolve
from learner.profile import opponents
from learner.profile.opponents import MixSource, make_snapshots, mix_of, snapshots_of_a_run
from learner.profile.worker import session_settings
from learner.train.membership import live_player


@pytest.mark.parametrize(
    ("preset", "count"), [("laptop", 100), ("full", 200), ("smoke", 6), ("test", 10)]
)
def test_as_many_snapshots_as_a_run_would_hold(preset, count):
    assert snapshots_of_a_run(resolve(preset, environment={})) == count


def test_snapshots_are_different_and_bounded_in_size(tmp_path, monkeypatch):
    settings = session_settings(kuhn(""))
    made = make_snapshots(tmp_path, settings, 5)
    assert len({player.digest for player in made}) == len({player.name for player in made}) == 5
    weights = [
        load_snapshot(BlobFolder(tmp_path), player.digest)[0].state_dict() for player in made
    ]
    assert len({float(sum(part.sum() for part in each.values())) for each in weights}) == 5
    size = next(tmp_path.rglob("*.safetensors")).stat().st_size
    monkeypatch.setattr(opponents, "LARGEST_POOL", 3 * size + size // 2)
    assert len(make_snapshots(tmp_path / "fewer", settings, 5)) == 3


def test_the_mix_is_played_by_its_weights_and_empty_categories_leave_theirs(tmp_path):
    settings = session_settings(resolve("smoke", environment={}))
    live = live_player("main", settings.game.make(1))
    snapshots = [opponents._snapshot(game_spec("brawl"), f"{i:064x}", i) for i in (1, 2)]
    mix = {"snapshots": 6.0, "based": 2.0, "self": 2.0, "exploiters": 30.0, "random": 0.0}
    source = MixSource(mix, game_spec("brawl"), live, snapshots, seed=0)
    drawn = [source.take() for _ in range(4000)]
    shares = {name: n / 4000 for name, n in Counter(match.category for match in drawn).items()}
    assert shares == pytest.approx({"snapshots": 0.6, "based": 0.2, "self": 0.2}, abs=0.03)
    assert {match.opponent.kind for match in drawn} == {
        PlayerKind.BOT,
        PlayerKind.SNAPSHOT,
        PlayerKind.LIVE,
    }
    names = Counter(match.opponent.name for match in drawn if match.category == "snapshots")
    assert min(names.values()) / max(names.values()) > 0.85
    assert np.mean([match.learner_seat for match in drawn]) == pytest.approx(0.5, abs=0.03)
    assert len({match.seed for match in drawn}) == 4000


def test_matches_of_a_draw_are_in_a_row():
    live = live_player("main", session_settings(kuhn("")).game.make(1))
    mix = {"based": 1.0, "random": 1.0, "constant": 2.0}
    source = MixSource(mix, game_spec("brawl"), live, [], seed=0, matches_per_draw=4)
    drawn = [source.take() for _ in range(400)]
    opponents_drawn = [
        {match.opponent.name for match in drawn[i : i + 4]} for i in range(0, 400, 4)
    ]
    assert all(len(names) == 1 for names in opponents_drawn)
    assert set.union(*opponents_drawn) == set(mix)
    assert len({match.seed for match in drawn}) == 400


def test_a_mix_of_nobody_is_self_play():
    live = live_player("main", session_settings(kuhn("")).game.make(1))
    spec = game_spec("brawl")
    held_out = next(bot.name for bot in spec.bots if bot.held_out)
    assert opponents.opponents_by_category({"exploiters": 1.0, held_out: 1.0}, spec, live, []) == {
        "self": [live]
    }


def test_a_stage_without_its_mix_is_refused():
    sections = kuhn("", "curriculum.stages=[{name='x', mix='nowhere'}]")
    with pytest.raises(
        ConfigError, match=r"'nowhere', which \[matchmaker\.mixes\] lacks: it has league"
    ):
        mix_of(sections, session_settings(sections))
