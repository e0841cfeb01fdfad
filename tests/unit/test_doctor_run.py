"""The doctor on the run folder of a healthy training: unchanged, and with files changed as
illness would.
"""

from __future__ import annotations

import re
import shutil

import numpy as np
import pytest
import sick_environments
import sick_games
import torch
from torch.utils.tensorboard import SummaryWriter
from trained_runs import all_score, causes, change_rows, findings, rewrite, train

from league.agent.network import AgentNetwork
from league.errors import NotFound
from league.games.registry import game_spec, reward_weights
from league.players import PayoffCell
from league.runs.records import read_scalars
from league.settings.base import resolve
from league.settings.file import write_config
from learner.doctor.findings import Verdict, primary_causes
from learner.doctor.run import read_run
from learner.train.checkpoint import CheckpointFolder

NO_TERMS = ("step", "matches", "total")
"""Columns of reward_breakdown.csv that are no terms."""


@pytest.fixture(scope="module")
def healthy(tmp_path_factory):
    return train(tmp_path_factory.mktemp("healthy"))


@pytest.fixture
def run(healthy, tmp_path):
    """A copy of the healthy run, to be changed."""
    return shutil.copytree(healthy, tmp_path / "run")


def test_a_run_that_trains_is_healthy(healthy):
    found = {finding.key: finding for finding in findings(healthy)}
    assert [(one.key, one.measured) for one in found.values() if one.verdict.is_bad] == []
    judged = {key for key, one in found.items() if one.verdict is Verdict.OK}
    assert judged >= {"9", "16", "18", "A", "B", "E", "V", "W"}


def fade(values, to):
    """Falls slowly, and stays there for the last twelve."""
    falling = len(values) - 12
    return np.concatenate([np.geomspace(values[0], to, falling), np.full(12, to)])


def second_half(values, factor):
    half = len(values) // 2
    return np.concatenate(
        [values[:half], values[half:] * np.linspace(1.0, factor, len(values) - half)]
    )


CHANGED = [
    ("18", "failure", {"policy__entropy": lambda v: fade(v, 0.05)}),
    ("18", "warning", {"policy__entropy": lambda v: fade(v, 0.5)}),
    ("E", "failure", {"policy__entropy": lambda v: np.where(np.arange(len(v)) < 20, v, 0.1 * v)}),
    ("E", "warning", {"policy__entropy": lambda v: np.where(np.arange(len(v)) < 20, v, 0.4 * v)}),
    ("V", "failure", {"value__explained_variance": lambda v: np.full_like(v, -0.4)}),
    (
        "V",
        "warning",
        {"value__explained_variance": lambda v: np.where(np.arange(len(v)) < 20, 0.6, 0.01)},
    ),
    ("A", "failure", {"reward__scale": lambda v: second_half(v, 20.0)}),
    ("A", "warning", {"reward__scale": lambda v: second_half(v, 5.0)}),
    ("16", "failure", {"policy__approx_kl": lambda v: v * 0.0 + 0.3}),
    ("16", "failure", {"policy__approx_kl": lambda v: v * 0.0}),
    ("16", "warning", {"policy__approx_kl": lambda v: v * 0.0 + 0.05}),
    ("B", "failure", {"reward__largest": lambda v: np.minimum(v, 1.0)}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("key", "verdict", "changes"),
    CHANGED,
    ids=[f"{key}-{verdict}-{n}" for n, (key, verdict, _) in enumerate(CHANGED)],
)
def test_what_the_scalars_say_is_named_alone(run, key, verdict, changes):
    rewrite(run, **changes)
    assert causes(run) == {key: (verdict, set())}


def test_one_sided_results_stand_under_the_entropy_that_made_them(run):
    rewrite(
        run,
        policy__entropy=lambda values: np.where(
            np.arange(len(values)) < 25, fade(values, 0.05), 0.05
        ),
    )
    all_score(run, 0.0)
    found = causes(run)
    assert list(found) == ["18"]
    assert "W" in found["18"][1]


def test_play_that_only_loses_is_warned_of_and_not_of_its_win_rewards(run):
    all_score(run, 0.0)
    assert causes(run)["W"] == ("warning", set())


def test_play_that_always_wins_has_nobody_to_learn_from(run):
    all_score(run, 1.0, times=3)
    found = primary_causes(findings(run))
    (cause,) = [cause for cause in found if cause.finding.key == "W"]
    assert "stronger opponents" in cause.finding.fix


@pytest.mark.parametrize(
    ("share", "verdict"), [(0.78, "ok"), (0.82, "warning"), (0.94, "warning"), (0.96, "failure")]
)
def test_a_term_is_warned_of_from_80_percent_and_fails_from_95(run, share, verdict):
    table = run / "learner-main" / "reward_breakdown.csv"
    change_rows(table, lambda row: {"damage": share / (1.0 - share) * others(row, "damage")})
    (finding,) = [one for one in findings(run) if one.key == "9"]
    assert finding.measured.startswith(f"damage carries {share:.0%} ")
    assert finding.verdict.value == verdict
    assert causes(run) == ({} if verdict == "ok" else {"9": (verdict, set())})


def others(row, but):
    """What all terms of an update but one paid, regardless of sign."""
    return sum(abs(float(value)) for name, value in row.items() if name not in (*NO_TERMS, but))


def test_a_run_in_which_the_outcome_carries_all_is_no_patient(run):
    table = run / "learner-main" / "reward_breakdown.csv"
    change_rows(
        table,
        lambda row: {
            name: float(row[name]) * 1e-3 for name in row if name not in (*NO_TERMS, "win")
        },
    )
    found = {finding.key: finding for finding in findings(run)}
    assert found["9"].verdict is Verdict.OK
    assert found["9"].measured.startswith(("win carries 9", "win carries 100%"))


def test_a_term_that_never_fires(run):
    config = run / "config.toml"
    flags = ("game.match_seconds=3", "game.reward_weights.taunt=1.0")
    write_config(config, resolve("smoke", assignments=flags, environment={}))
    change_rows(run / "learner-main" / "behavior_metrics.csv", lambda row: {}, times=3)
    change_rows(run / "learner-main" / "reward_breakdown.csv", lambda row: {"taunt": 0.0})
    (finding,) = [one for one in findings(run) if one.key == "9"]
    assert finding.verdict is Verdict.WARNING
    # a combo may not have come up either
    assert re.search(r"never fires: [^;]*\btaunt\b", finding.measured)


def test_what_falls_in_a_run_is_judged_as_it_is_now(run):
    last = np.array([0.03])
    rewrite(
        run,
        learning__rate=lambda values: np.append(values[1:], last),
        policy__clip_range=lambda v: v * 0 + last,
    )
    now = read_run(run).set_up.settings.learner
    assert (now.learning_rate, now.learning_rate_final) == (pytest.approx(0.03), None)
    assert now.clip_range == pytest.approx(0.03)


def test_training_that_flatters_is_told_by_clean_matches(run):
    all_score(run, 1.0)
    cells = [PayoffCell(row="main@5000", column="constant", wins=40, draws=0, losses=60)]
    (finding,) = [one for one in findings(run, cells) if one.key == "14"]
    assert finding.verdict is Verdict.WARNING
    assert "60%" in finding.measured


def test_one_minibatch_an_update_is_no_stuck_policy(run):
    """Its KL is measured before the only step, and 0."""
    flags = ("game.match_seconds=3", "learner.batch_size=256", "learner.n_epochs=1")
    write_config(run / "config.toml", resolve("smoke", assignments=flags, environment={}))
    rewrite(run, policy__approx_kl=lambda values: values * 0.0)
    assert "16" not in causes(run)


def test_a_run_of_too_few_updates_is_not_judged(run):
    tensorboard = run / "learner-main" / "tensorboard"
    scalars = read_scalars(tensorboard)
    shutil.rmtree(tensorboard)
    with SummaryWriter(str(tensorboard)) as writer:
        for name, series in scalars.items():
            for step, value in list(zip(series.steps, series.values, strict=True))[:5]:
                writer.add_scalar(name, float(value), int(step))
    found = {finding.key: finding for finding in findings(run)}
    assert {found[key].verdict for key in ("16", "18", "A", "E", "V")} == {Verdict.UNKNOWN}
    assert found["18"].measured == "too little to judge: 5 updates"


def test_a_folder_without_a_run_is_no_patient(tmp_path):
    with pytest.raises(NotFound, match=r"has no config\.toml"):
        read_run(tmp_path)
    write_config(tmp_path / "config.toml", resolve("smoke", environment={}))
    with pytest.raises(NotFound, match=r"has no learner-main yet"):
        read_run(tmp_path)


def test_an_exploiter_is_examined_by_its_own_settings_and_its_newest_generation(run):
    """It plays one stage for another reward, and starts again in a folder for each
    generation.
    """
    learners = '[{name="main"},{name="rival",role="main_exploiter",set=["learner.gamma=0.9"]}]'
    flags = (f"supervisor.learners={learners}", "exploiter.reward=duel", "exploiter.mix=victims")
    sections = resolve(
        "smoke", assignments=(*flags, "matchmaker.mixes.victims.victims=1"), environment={}
    )
    write_config(run / "config.toml", sections)
    rival = (run / "learner-main").rename(run / "learner-rival")
    for number, step in (("9", 7000), ("10", 8192)):
        place = shutil.copytree(
            rival / "checkpoints", rival / f"generation-{number}" / "checkpoints"
        )
        folder = CheckpointFolder(place)
        saved = folder.read_newest()
        saved["algorithm"]["num_timesteps"] = step
        folder.write(8192, saved)
    shutil.rmtree(rival / "checkpoints")
    evidence = read_run(run, "rival")
    assert evidence.step == 8192
    assert evidence.learner.gamma == evidence.set_up.settings.learner.gamma == 0.9
    assert evidence.set_up.mix == {"victims": 1.0}
    duel = reward_weights(game_spec("brawl"), "duel")
    assert evidence.set_up.weights_K.tolist() == duel.tolist()
    trained, fresh = (
        evidence.set_up.network(evidence.set_up.agent),
        AgentNetwork(evidence.set_up.agent),
    )
    assert not torch.equal(trained.actor.last.bias, fresh.actor.last.bias)


FAST = ("learner.learning_rate=0.3", "learner.learning_rate_final=0.3", "learner.desired_kl=none")
ILL = [
    ("9", ["game.reward_weights.toward_opponent=5000"], {}),
    ("16", FAST, {}),
    ("18", ["agent.key_bias=-10"], {}),
    ("B", [], {"environment": sick_environments.Clipping}),
]


@pytest.mark.parametrize(
    ("key", "flags", "parts"),
    [
        pytest.param(
            *ill, id=ill[0], marks=[pytest.mark.slow] if ill[0] in ("9", "16", "18") else []
        )
        for ill in ILL
    ],
)
def test_what_was_trained_ill_shows_in_its_files(tmp_path, key, flags, parts):
    found = causes(train(tmp_path, *flags, **parts))
    assert next(iter(found)) == key, found
    assert [one for one, (verdict, _) in found.items() if verdict == "failure"] == [key]


@pytest.mark.slow
def test_a_scale_that_never_settles_has_drifted(tmp_path):
    sick_games.Inflation.factor = 1.0
    found = causes(
        train(tmp_path, game=lambda matches: sick_games.Inflation(matches, max_frames=90))
    )
    assert found["A"][0] == "failure"
