"""A learner ends its stage by what the matchmaker counted of it: clean and training matches."""

import re
from types import SimpleNamespace

import pytest
from ratings_league import pair, train
from small_league import small_league, snapshot
from staged import events

from league.settings.base import resolve
from league.stages import Place
from learner.distributed.rank_group import RankGroup
from learner.train.build import SessionSettings
from learner.train.curriculum import Curriculum, StageRunner

STAGES = (
    "curriculum.stages=[{name='first', mix='one', until_opponent='based', until_win_rate=0.7, "
    "min_matches=40}, {name='last', mix='one'}]",
    "learner.snapshot_interval=1000",
)


def won(match):
    return 1.0 if match.learner_seat == 0 else 0.0


def lost(match):
    return 1.0 - won(match)


class Learner:
    """A learner between its updates, without the training."""

    def __init__(self, league, incarnation, place=None):
        settings = SessionSettings.of(resolve("smoke", assignments=STAGES, environment={}))
        self.curriculum = Curriculum(settings.curriculum, "main", place)
        self.mixes = []
        self._broker = SimpleNamespace(asked=lambda: None, change_mix=self.mixes.append)
        self._model = SimpleNamespace(
            env=SimpleNamespace(), logger=SimpleNamespace(record=lambda *_: None)
        )
        self._runner = StageRunner(
            settings, league.client, RankGroup(), self.curriculum, incarnation, 0
        )

    def stage_at(self, step):
        self._model.num_timesteps = step
        self._runner.follow(self._model, self._broker)
        return self.curriculum.stage.name


@pytest.fixture
def league(tmp_path):
    with small_league(tmp_path, snapshots=(), mixes={"one": {"based": 1.0}}) as found:
        yield found


def test_training_matches_end_a_stage_once_there_are_enough(league):
    incarnation = league.open()
    learner = Learner(league, incarnation)
    train(league, incarnation, 39, won, step=900)
    assert learner.stage_at(1000) == "first"
    train(league, incarnation, 1, won, step=950)
    assert learner.stage_at(1100) == "first", "not looked again yet"
    assert learner.stage_at(1200) == "last"
    assert learner.mixes == ["one"]
    entered = events(league, "stage")[-1].text
    assert re.match(r"main .*'last' .*1,200: .*\bbased\b.*\b40\b", entered)


def test_the_newest_matches_weigh_more_than_old_ones(league):
    incarnation = league.open()
    learner = Learner(league, incarnation)
    for step in (1000, 2000, 3000, 4000, 5000):
        train(league, incarnation, 40, lost if step < 4000 else won, step=step - 100)
        league.client.register_players([snapshot(step)])
    assert learner.stage_at(5000) == "last", "80 of 200 are won"


def test_clean_matches_end_a_stage_by_themselves(league):
    learner = Learner(league, league.open())
    league.client.register_players([snapshot(1000), snapshot(2000)])
    pair(league, "main@1000", "based", 10)
    assert learner.stage_at(2000) == "first", "20 matches are too few"
    pair(league, "main@2000", "based", 10)
    assert learner.stage_at(3000) == "last"


def test_a_stage_begun_by_hand_does_not_end_by_what_was_before(league):
    incarnation = league.open()
    train(league, incarnation, 100, won, step=900)
    league.client.register_players([snapshot(1000)])
    pair(league, "main@1000", "based", 20)
    learner = Learner(league, incarnation, Place(since_step=1000, by_hand=True))
    assert learner.stage_at(1500) == "first"
    league.client.register_players([snapshot(2000)])
    train(league, incarnation, 50, won, step=2100)
    assert learner.stage_at(2500) == "last"
    by_itself = Learner(league, incarnation, Place(since_step=1000))
    assert by_itself.stage_at(1500) == "last"
