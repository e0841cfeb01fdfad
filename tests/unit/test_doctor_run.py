"""The doctor on the run folder of a healthy training, unchanged and with files changed as illness
would, and `bin/league doctor --run-dir` whole.
"""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
import sick
import sick_games
import torch
from stable_baselines3.common.callbacks import BaseCallback
from torch.utils.tensorboard import SummaryWriter

from league.agent.network import AgentNetwork
from league.cli.main import main
from league.errors import NotFound
from league.games.registry import game_spec, reward_weights
from league.players import (
    Book,
    MatchResult,
    Pairing,
    PayoffCell,
    Player,
    PlayerKind,
    Role,
    SeatResult,
)
from league.rpc.client import MatchmakerClient
from league.runs.finding import FORMAT
from league.runs.records import read_scalars
from league.settings.base import resolve
from league.settings.file import write_config
from learner.doctor import command
from learner.doctor.findings import Verdict, ordered, primary_causes
from learner.doctor.run import judge_run, read_run
from learner.doctor.setup import build_model
from learner.train.checkpoint import CheckpointFolder, algorithm_state
from learner.train.monitor import MatchMonitor
from matchmaker.main import MatchmakerServer

UPDATES = 32


class Write(BaseCallback):
    """What the session does with the matches of a rollout."""

    def __init__(self, monitor):
        super().__init__()
        self.monitor = monitor

    def _on_step(self):
        return True

    def _on_rollout_end(self):
        env = self.model.env
        matches, env.finished = env.finished, []
        self.monitor.write(matches, self.num_timesteps)


def train(folder, *flags, **parts):
    """Trains for some updates with the main job's own parts, which write the files that they
    always write.
    """
    flags = ("game.match_seconds=3", *flags)
    set_up = replace(sick.set_up(*flags), **parts)
    learner = folder / "learner-main"
    model = build_model(set_up, set_up.settings, learner)
    monitor = MatchMonitor(learner, set_up.spec, 0)
    try:
        model.learn(UPDATES * model.n_envs * model.n_steps, callback=Write(monitor))
    finally:
        monitor.close()
        model.env.game.close()
    values = {"algorithm": algorithm_state(model), "curriculum": {"index": 0, "since_step": 0}}
    CheckpointFolder(learner / "checkpoints").write(model.num_timesteps, values)
    write_config(folder / "config.toml", resolve("smoke", assignments=flags, environment={}))
    return folder


def findings(folder, clean=()):
    return ordered(judge_run(read_run(folder, clean=clean)))


def causes(folder, clean=()):
    """Every cause with its verdict, and what stands under it."""
    found = primary_causes(findings(folder, clean))
    return {
        cause.finding.key: (cause.finding.verdict.value, {one.key for one in cause.consequences})
        for cause in found
    }


def rewrite(folder, **changes: Callable[[np.ndarray], np.ndarray]):
    """Writes the scalars again, some of them changed; `policy__entropy` is policy/entropy."""
    tensorboard = folder / "learner-main" / "tensorboard"
    scalars = read_scalars(tensorboard)
    shutil.rmtree(tensorboard)
    changed = {name.replace("__", "/"): change for name, change in changes.items()}
    assert set(changed) <= set(scalars)
    with SummaryWriter(str(tensorboard)) as writer:
        for name, series in scalars.items():
            values = changed.get(name, lambda values: values)(series.values.copy())
            for step, value in zip(series.steps, values, strict=True):
                writer.add_scalar(name, float(value), int(step))


def change_rows(path, change, times=1):
    """Changes every row of a CSV with a dictionary of its fields; writes each `times` times."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    head = [line for line in lines if line.startswith("#")]
    rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    with open(path, "w", newline="", encoding="utf-8") as file:
        file.writelines(head)
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        for row in rows:
            writer.writerows([row | change(row)] * times)


def all_score(folder, score, times=1):
    """Every match ends alike, and is paid for it as a win or a loss is."""
    for name in ("monitor.csv", "behavior_metrics.csv"):
        change_rows(folder / "learner-main" / name, lambda row: {"score": score}, times)
    paid = 20.0 * (score - 0.5)
    change_rows(folder / "learner-main" / "reward_breakdown.csv", lambda row: {"win": paid})
    rewrite(folder, reward__largest=lambda values: np.maximum(values, 10.0))


def write_league(folder, wins):
    """The log of a league in which the run's snapshot has played 40 clean matches against
    `constant`.
    """
    (folder / "run.json").write_text(
        json.dumps({"format": FORMAT, "version": "0.1.0", "preset": "smoke"})
    )
    snapshot = Player(
        name="main@8192",
        game="brawl",
        kind=PlayerKind.SNAPSHOT,
        role=Role.MAIN,
        digest="0" * 64,
        step=8192,
    )
    bot = Player(name="constant", game="brawl", kind=PlayerKind.BOT)
    pairing = Pairing(player=snapshot.name, opponent=bot.name, pairs=20, book=Book.EVAL, seed=1)
    with (
        MatchmakerServer(db=folder / "league.db", port=0) as server,
        MatchmakerClient(server.address) as client,
    ):
        client.register_players([snapshot, bot])
        number = client.open_incarnation("evaluator-0").number
        matches = client.acquire_pairings(number, [pairing])
        client.report_results(number, [_result(match, n < wins) for n, match in enumerate(matches)])
    return folder


def _result(match, is_won):
    """A clean match that the snapshot won or lost, whichever its seat."""
    seats = tuple(SeatResult(player=player.name, digest=player.digest) for player in match.seats)
    first = match.seats[0].kind is PlayerKind.SNAPSHOT
    return MatchResult(
        match_id=match.match_id,
        lease_token=match.lease_token,
        outcome=float(is_won == first),
        frames=90,
        seats=seats,
    )


NO_TERMS = ("step", "matches", "total")
"""Columns of reward_breakdown.csv that are no terms."""


@pytest.fixture(scope="module")
def healthy(tmp_path_factory):
    """In matches of three seconds no player hits twice in a row: a weight of `combo` would be
    warned of.
    """
    folder = tmp_path_factory.mktemp("runs") / "healthy"
    return write_league(train(folder, "game.reward_weights.combo=0"), wins=20)


@pytest.fixture
def run(healthy, tmp_path):
    """A copy of the healthy run, to be changed."""
    return shutil.copytree(healthy, tmp_path / "run")


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
    own = '["learner.gamma=0.9", "game.reward=duel"]'
    learners = f'[{{name="main"}},{{name="rival",role="main_exploiter",set={own}}}]'
    flags = (f"supervisor.learners={learners}", "exploiter.mix=victims")
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


@contextmanager
def served(run):
    """The run while its matchmaker serves it, as during a run."""
    announced = run / "matchmaker.json"
    with MatchmakerServer(db=run / "league.db", port=0, read_only=True) as server:
        announced.write_text(json.dumps({"address": server.address, "pid": os.getpid()}))
        yield
        announced.unlink()


def examine(run, out, *words):
    """Exit status, everything that `--json` holds, and what is bad: by reason its verdict and
    measure.
    """
    status = main(["doctor", "--run-dir", str(run), "--json", str(out), *words])
    told = json.loads(out.read_text(encoding="utf-8"))
    bad = {
        one["reason"]: (one["verdict"], one["measured"])
        for one in told["findings"]
        if one["verdict"] in ("warning", "failure")
    }
    return status, told, bad


def measured(told, key):
    (finding,) = [one for one in told["findings"] if one["reason"] == key]
    return finding["measured"]


def test_a_run_that_trains_is_healthy_by_its_files_its_weights_and_its_clean_matches(
    healthy, tmp_path, capsys
):
    status, told, bad = examine(healthy, tmp_path / "told.json")
    assert (status, bad, told["causes"]) == (0, {}, [])
    assert told["subject"] == f"{healthy.name} at step {UPDATES * 256:,}"
    assert {one["reason"] for one in told["findings"]} == {*map(str, range(1, 21)), *"BOVAWE"}
    judged = {one["reason"] for one in told["findings"] if one["verdict"] == "ok"}
    assert judged >= {"9", "16", "18", "A", "B", "E", "V", "W"}
    # by its curve, where the set-up says the same
    assert measured(told, "18").startswith("entropy ")
    assert measured(told, "14").startswith("training scores exceed clean ones by at most ")
    assert "healthy" in capsys.readouterr().out.splitlines()[0]


def test_what_its_files_alone_show_fails_beside_a_healthy_set_up(run, tmp_path):
    rewrite(run, reward__largest=lambda values: np.minimum(values, 1.0))
    with served(run):
        status, told, bad = examine(run, tmp_path / "told.json")
    assert (status, told["verdict"]) == (1, "failure")
    assert list(bad) == ["B"]
    assert bad["B"][1].endswith("1 arrived")


def test_what_its_weights_alone_show_fails_beside_healthy_files(run, tmp_path):
    folder = CheckpointFolder(run / "learner-main" / "checkpoints")
    saved = folder.read_newest()
    saved["algorithm"]["network"]["actor.last.bias"] -= 12.0
    folder.write(saved["algorithm"]["num_timesteps"], saved)
    with served(run):
        status, told, bad = examine(run, tmp_path / "told.json")
    assert status == 1
    assert told["causes"][0]["reason"] == "18"
    assert len(told["causes"]) == 1
    assert (bad["18"][0], bad["18"][1].split(" of ")[0]) == ("failure", "0%")


def test_clean_matches_tell_of_training_that_flatters_in_a_run_that_goes_on(run, tmp_path):
    all_score(run, 1.0)
    with served(run):
        status, _, bad = examine(run, tmp_path / "told.json")
    assert status == 0  # warnings count as none
    assert bad == {"14": ("warning", "training scores exceed clean ones by at most 50% (constant)")}


def test_without_a_league_the_run_is_judged_all_the_same(run, tmp_path, capsys):
    (run / "league.db").unlink()
    status, told, bad = examine(run, tmp_path / "told.json")
    assert (status, bad) == (0, {})
    assert measured(told, "14").endswith("decisions of a rollout")  # what the set-up says of it
    assert "(without clean matches: " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "rows"),
    [("main", ["main@100", "main.g2@300"]), ("main-exploiter", ["main-exploiter.g1@50"])],
)
def test_clean_matches_are_those_of_the_learner_that_is_named(name, rows):
    all_rows = ("main@100", "main.g2@300", "main-exploiter.g1@50", "mainly@7", "constant")
    cells = [PayoffCell(row=row, column="constant", wins=1, draws=0, losses=1) for row in all_rows]
    assert [cell.row for cell in command.cells_of(name, cells)] == rows


FAST = ("learner.learning_rate=0.3", "learner.learning_rate_final=0.3", "learner.desired_kl=none")
ILL = [
    ("9", ["game.reward_weights.toward_opponent=5000"], {}),
    ("16", FAST, {}),
    ("18", ["agent.key_bias=-10"], {}),
]


@pytest.mark.slow
@pytest.mark.parametrize(("key", "flags", "parts"), ILL)
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
