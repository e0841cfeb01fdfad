"""Training curves: gathered from a run's files alone, and drawn whatever is missing."""

import csv
import io
import shutil
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import screens
from PIL import Image
from torch.utils.tensorboard import SummaryWriter

import league
from league.cli.main import main
from league.metrics import wilson_interval
from league.players import PlayerKind
from league.runs.alarms import AlarmWatch
from league.runs.columns import EVALUATION
from league.runs.records import ScalarReader, read_scalars, read_updates
from league.views.curves import Stage, gather
from league.views.dashboard.blocks import Chart, line, lines
from league.views.dashboard.pages import curves as page


def write_csv(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def clean(step, opponent, wins, book="eval", player="main"):
    row = dict.fromkeys(EVALUATION, "")
    return row | {"player": f"{player}@{step}", "step": step, "opponent": opponent, "book": book,
                  "matches": 20, "wins": wins}  # fmt: skip


def scalars(folder, values):
    with SummaryWriter(str(folder)) as writer:
        for step, named in values:
            for name, value in named.items():
                writer.add_scalar(name, value, step)


def metrics(i):
    """Of the i-th of forty updates."""
    return {
        **{
            f"time/{kind}_share": 0.2
            for kind in ("learning", "inference", "opponents", "game", "waiting")
        },
        "policy/entropy": 6.0 - i / 10,
        "policy/approx_kl": 0.01,
        "policy/clip_fraction": 0.1,
        "value/explained_variance": -1 + i / 20,
        "loss/value": 1 / i,
        "gradient/encoder": 0.3,
        "latent/separation": 0.1,
        "reward/episode_mean": i - 20,
        "winrate/based": i / 40,
        "curriculum/stage": float(i > 25),
        "rate/steps_per_second": 1000.0,
    }


@pytest.fixture
def run_dir(tmp_path):
    """A run of forty updates with two stages, two bots and three evaluated snapshots."""
    learner = tmp_path / "learner-main"
    (tmp_path / "run.json").write_text('{"format": 1}')
    (tmp_path / "config.toml").write_text(
        '[[curriculum.stages]]\nname = "first"\n[[curriculum.stages]]\nname = "second"\n'
    )
    scalars(learner / "tensorboard", [(100 * i, metrics(i)) for i in range(1, 41)])
    write_csv(
        learner / "monitor.csv",
        [{"r": 1, "l": 2, "t": 3, "step": 100, "opponent": "based", "score": 1}],
    )
    evaluated = [(1000, 2), (2000, 10), (3000, 18)]
    rows = [clean(step, bot, wins) for step, wins in evaluated for bot in ("based", "clockwork")]
    rows += [
        clean(3000, "based", 20, book="greedy"),
        clean(3000, "main@1000", 20),
        clean(9000, "based", 0, player="x"),
    ]
    write_csv(tmp_path / "evaluator" / "evaluation_results.csv", rows)
    board = [
        {"player": f"main@{s}", "kind": "snapshot", "step": s, "score": s / 100}
        for s in (3000, 1000, 2000)
    ]
    board.append({"player": "based", "kind": "bot", "step": 0, "score": 12.5})
    write_csv(tmp_path / "leaderboard.csv", board)
    return tmp_path


def test_clean_matches_are_pooled_over_three_snapshots_with_their_wilson_interval(run_dir):
    history = gather(run_dir)
    assert (list(history.trained), list(history.others)) == (["based"], ["clockwork"])
    rate = history.trained["based"]
    assert rate.steps.tolist() == [1000, 2000, 3000]
    # greedy, other learners and snapshots left out
    assert rate.rate.tolist() == [2 / 20, 12 / 40, 30 / 60]
    whole = wilson_interval(30, 60)
    assert (rate.low[-1], rate.high[-1]) == (whole.low, whole.high)


def test_scores_stages_and_metrics_come_from_the_files(run_dir):
    history = gather(run_dir)
    assert history.scores is not None
    assert history.scores.steps.tolist() == [1000, 2000, 3000]
    assert history.bot_scores == {"based": 12.5}
    assert history.stages == [Stage(100, "first"), Stage(2600, "second")]
    assert len(history.scalars["policy/entropy"].steps) == 40


def test_a_notebook_gets_the_numbers_that_the_command_draws(run_dir, capsys):
    with league.open(run_dir) as run:
        table = run.curves()
    history = gather(run_dir)
    assert table["step"].tolist() == sorted({*range(100, 4001, 100), 1000, 2000, 3000})
    columns = {name: (one.steps, one.values) for name, one in history.scalars.items()}
    clean = history.trained | history.others
    columns |= {f"clean/{bot}": (rate.steps, rate.rate) for bot, rate in clean.items()}
    columns["score"] = (history.scores.steps, history.scores.values)
    assert [*table.columns] == ["step", *columns]
    for name, (steps, values) in columns.items():
        known = table[["step", name]].dropna()
        assert known["step"].tolist() == steps.tolist()
        assert known[name].tolist() == values.tolist()
    assert main(["curves", "--run-dir", str(run_dir), "--out", str(run_dir / "x.png")]) == 0
    assert f"shows {len(history.scalars)} metrics and {len(clean)} bots" in capsys.readouterr().err


def test_what_a_resumed_run_did_again_counts_once(tmp_path):
    scalars(tmp_path, [(step, {"loss/value": 1.0}) for step in (100, 200, 300, 400)])
    scalars(tmp_path, [(step, {"loss/value": 2.0}) for step in (300, 350)])
    series = read_scalars(tmp_path)["loss/value"]
    assert series.steps.tolist() == [100, 200, 300, 350]
    assert series.values.tolist() == [1.0, 1.0, 2.0, 2.0]


def test_a_reader_finds_what_was_added_and_what_was_done_again(tmp_path):
    reader = ScalarReader(tmp_path / "tensorboard")
    assert reader.read() == {}
    scalars(tmp_path / "tensorboard", [(step, {"loss/value": 1.0}) for step in (100, 200, 300)])
    assert reader.read()["loss/value"].steps.tolist() == [100, 200, 300]
    again = [(200, {"loss/value": 2.0}), (250, {"loss/value": 2.0, "policy/entropy": 0.5})]
    scalars(tmp_path / "tensorboard", again)
    found = reader.read()
    assert found["loss/value"].steps.tolist() == [100, 200, 250]
    assert found["loss/value"].values.tolist() == [1.0, 2.0, 2.0]
    assert found["policy/entropy"].steps.tolist() == [250]


def picture(path):
    return np.asarray(Image.open(io.BytesIO(path.read_bytes())).convert("RGB"))


def test_the_command_draws_a_picture_of_1600_by_1000_with_a_curve_in_every_panel(run_dir, capsys):
    assert main(["curves", "--run-dir", str(run_dir)]) == 0
    drawn = picture(run_dir / "training_curves.png")
    assert drawn.shape == (1000, 1600, 3)
    colourful = np.ptp(drawn.astype(int), axis=2) > 60
    panels = [colourful[y0:y1, x0 : x0 + 330] for y0, y1 in ((80, 380), (450, 670), (740, 960))
              for x0 in (40, 440, 830, 1220)]  # fmt: skip
    assert all(panel.sum() > 40 for panel in panels), [int(panel.sum()) for panel in panels]
    assert "2 bots" in capsys.readouterr().err


def test_a_run_with_hardly_anything_is_drawn_too(tmp_path):
    (tmp_path / "run.json").write_text('{"format": 1}')
    scalars(tmp_path / "learner-main" / "tensorboard", [(64, {"loss/value": 1.0})])
    assert main(["curves", "--run-dir", str(tmp_path), "--out", str(tmp_path / "a.png")]) == 0
    assert picture(tmp_path / "a.png").shape == (1000, 1600, 3)


def test_what_can_not_be_drawn_is_said(run_dir, capsys):
    assert main(["curves", "--run-dir", str(run_dir), "--learner", "other"]) == 2
    assert "'other'" in capsys.readouterr().err
    assert main(["curves", "--run-dir", str(run_dir), "--out", "a.pdf"]) == 2
    assert ".png" in capsys.readouterr().err


def test_a_finished_run_is_watched_again_from_its_files(run_dir):
    learner = run_dir / "learner-main"
    row = {"matches": 30, "total": 3.0, "damage": 3.0}
    rows = [{"step": 100 * i, **row, "win": 0.0 if i > 5 else 1.0} for i in range(1, 41)]
    write_csv(learner / "reward_breakdown.csv", rows)
    match = {
        "match_id": "",
        "opponent": "based",
        "category": "based",
        "seat": 0,
        "score": 0.0,
        "frames": 9,
    }
    played = [{"step": 100 * i, **match} for i in range(1, 41) for _ in range(30)]
    write_csv(learner / "behavior_metrics.csv", played)
    watch = AlarmWatch(6.93, 0.012)
    updates = read_updates(learner, lambda step: {"damage": 1.0, "win": 5.0})
    assert [update.step for update in updates] == [100 * i for i in range(1, 41)]
    told = [(c.alarm.kind, c.alarm.subject) for update in updates for c in watch.update(update)]
    assert ("term_silent", "win") in told
    assert ("never_won", "based") in told
    assert ("value_unexplained", "") in told


def test_a_line_has_a_gap_where_nothing_was_measured():
    steps = np.concatenate([np.arange(0, 1000, 10), np.arange(9000, 9100, 10)])
    drawn = line("constant", steps, np.full(len(steps), 0.5))["data"]
    gaps = [step for step, value in drawn if value is None]
    assert gaps == [990.0]
    assert len(drawn) == len(steps) + 1
    even = line("constant", steps[:100], np.full(100, 0.5))["data"]
    assert [value for _, value in even] == [0.5] * 100


def shown(run_dir, beside=(), ratings=(), **parameters):
    """The charts of a run on the dashboard's page, by title."""
    source = SimpleNamespace(
        run_dir=run_dir,
        beside=beside,
        status=lambda: SimpleNamespace(workers=()),
        ratings=lambda book: ratings,
        kept=lambda key, seconds, read: read(),
        scalars=read_scalars,
    )
    blocks = page.show(source, parameters)
    return {block.title: block for block in blocks if isinstance(block, Chart)}


def charts(run_dir, beside=(), **parameters):
    """The lines of each chart, by title."""
    found = shown(run_dir, beside, **parameters)
    return {title: chart.options["series"] for title, chart in found.items()}


def test_a_snapshots_time_is_in_whole_milliseconds_which_the_browser_does_not_clip(run_dir):
    snapshots = [one for one in screens.ratings() if one.player.kind is PlayerKind.SNAPSHOT]
    rated = [
        replace(one, player=replace(one.player, created_at=1.7e9 + 60 * number + 0.0003))
        for number, one in enumerate(snapshots)
    ]
    series = charts(run_dir, ratings=rated)["Rating over time"]
    assert [at for at, _ in series[-1]["data"]] == [
        1.7e12 + 60_000 * number for number in range(len(snapshots))
    ]


def test_any_metric_can_be_chosen_by_a_part_of_its_name_and_smoothed(run_dir):
    usual = charts(run_dir)
    assert "Entropy" in usual
    assert len(charts(run_dir, metric="POLICY/")) == 3
    assert charts(run_dir, metric="no such") == {}
    ((_, (plain,)),) = charts(run_dir, metric="loss/value").items()
    ((_, (behind, smoothed)),) = charts(run_dir, metric="loss/value", smooth="5").items()
    assert behind["data"] == plain["data"]
    assert smoothed["data"][0][1] == np.median(1 / np.arange(1, 4))
    assert [step for step, _ in smoothed["data"]] == [step for step, _ in plain["data"]]


def test_stages_are_bands_of_the_charts(run_dir):
    ((_, (series,)),) = charts(run_dir, metric="policy/entropy").items()
    bands = series["markArea"]["data"]
    assert [(begin["name"], begin["xAxis"], end["xAxis"]) for begin, end in bands] == [
        ("first", 100, 2600),
        ("second", 2600, 4000),
    ]
    assert all(begin["label"]["show"] for begin, _ in bands)


def test_a_narrow_stage_has_no_name_that_would_cover_another():
    stages = [(0.0, "short"), (10.0, "long"), (100.0, "")]
    series = [line("x", np.array([0.0, 100.0]), np.array([0.0, 1.0]))]
    bands = lines("x", "", series, stages=stages).options["series"][0]["markArea"]["data"]
    assert [begin["label"]["show"] for begin, _ in bands] == [False, True]


def test_a_run_of_another_folder_is_drawn_only_if_the_operator_named_it(run_dir, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere") / run_dir.name
    shutil.copytree(run_dir, elsewhere)
    name, metric = f"{elsewhere.parent.name}/{elsewhere.name}", "loss/value"
    both = charts(run_dir, [elsewhere], metric=metric, **{"with": name})
    assert [line["name"] for line in next(iter(both.values()))] == [run_dir.name, name]
    for asked in (str(elsewhere), f"../../{name}", name):
        (alone,) = charts(run_dir, metric=metric, **{"with": asked}).values()
        assert len(alone) == 1


def test_the_charts_of_ratings_say_why_another_run_is_not_in_them(run_dir, tmp_path):
    other = shutil.copytree(run_dir, tmp_path / "other")
    rated = ("Rating over steps", "Rating over time")
    for parameters, is_said in (({}, False), ({"with": "other"}, True)):
        found = shown(run_dir, [other], screens.ratings(), **parameters)
        words = [found[title].words for title in rated]
        assert ["bin/league compare" in sentence for sentence in words] == [is_said] * 2
        assert [run_dir.name in sentence for sentence in words] == [is_said] * 2
