"""A sweep's search space, its score, and its files."""

from __future__ import annotations

import csv
import json
import math
import signal
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from ports import free_port

from league.cluster.engine import EngineName
from league.errors import ConfigError, DataCorrupt, InvalidInput, NotFound, Unavailable
from league.evaluations import MAX_PAIRS
from league.games.settings import GameSettings
from league.metrics import Measured
from league.players import PayoffCell
from league.settings.base import Sections, lay_over, resolve
from league.sweep.command import sweep
from league.sweep.final import play_final
from league.sweep.results import ranked, render, write_preset, write_results
from league.sweep.score import elo_lead, value_against
from league.sweep.space import Dimension, assignment, read_space, trials_of
from league.sweep.trial import Order, Rung, Trial, read_trial, thinned, write_trial
from league.sweep.tune import interrupts

SPACE = """
[sweep]
learner.learning_rate = { low = 1e-4, high = 1e-2, scale = "log" }
learner.n_epochs = { low = 1, high = 4 }
learner.ent_coef = [0.0, 0.01]
matchmaker.mixes.league.self = { low = 0.1, high = 0.9 }
"""


def written(folder: Path, text: str) -> Path:
    file = folder / "search.toml"
    file.write_text(text)
    return file


def board() -> Sections:
    return resolve("board", environment={})


def test_each_part_of_each_dimension_has_a_trial(tmp_path: Path) -> None:
    file = written(tmp_path, SPACE)
    trials = trials_of(read_space(file), board(), 8, seed=3, where=str(file))
    rates = sorted(math.log10(trial["learner.learning_rate"]) for trial in trials)  # pyrefly: ignore
    for part, rate in enumerate(rates):
        assert -4 + part / 4 - 0.01 <= rate <= -4 + (part + 1) / 4 + 0.01
    epochs = [trial["learner.n_epochs"] for trial in trials]
    assert sorted(epochs) == [1, 1, 2, 2, 3, 3, 4, 4]
    assert sorted(trial["learner.ent_coef"] for trial in trials) == [0.0] * 4 + [0.01] * 4  # pyrefly: ignore
    assert trials == trials_of(read_space(file), board(), 8, seed=3, where=str(file))
    assert trials != trials_of(read_space(file), board(), 8, seed=4, where=str(file))


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("learner.lerning_rate = [0.1]", "learning_rate"),
        ("lerner.learning_rate = [0.1]", "learner"),
        ("learner.learning_rate = [-1.0]", "learning_rate"),
        ("learner.learning_rate = { low = 0.1, high = 0.2, scle = 'log' }", "scale"),
        ("learner.learning_rate = { low = 0.2, high = 0.1 }", "0.2"),
        ("learner.learning_rate = { low = 0.0, high = 0.1, scale = 'log' }", "above 0"),
        ("learner.learning_rate = { low = 0.1, high = 0.2, scale = 'lin' }", "lin"),
        ("learner.learning_rate = { low = 0.1, high = '0.2' }", "0.2"),
        ("learner.learning_rate = { low = 0.1 }", "None"),
        ("learner.learning_rate = 0.1", "0.1"),
        ("learner.learning_rate = []", "learning_rate"),
        ("learner.learning_rate = {}", "learning_rate"),
        ("learner.steps = [1000, 2000]", "learner.steps"),
        ('cluster.store = ["s3://one", "s3://two"]', "cluster.store"),
        ("learner.batch_size = [1000]", "n_steps"),
        ("learner.batch_size = [512]\nlearner.gradient_parts = [16, 32]", "gradient_parts"),
        ("", "[sweep]"),
    ],
)
def test_a_space_that_cannot_be_searched_is_refused(tmp_path: Path, line: str, named: str) -> None:
    file = written(tmp_path, f"[sweep]\n{line}\n")
    with pytest.raises(ConfigError) as refusal:
        trials_of(read_space(file), board(), 2, seed=0, where=str(file))
    assert named in str(refusal.value)
    assert str(file) in str(refusal.value)


def test_other_commands_ignore_the_space(tmp_path: Path) -> None:
    file = written(tmp_path, 'extends = "board"\n[learner]\nsteps = 5_000\n' + SPACE)
    assert resolve(None, file, environment={})["learner"]["steps"] == 5_000


def test_whole_numbers_stay_whole_on_a_log_scale() -> None:
    sizes = Dimension(name="learner.n_epochs", low=1, high=8, scale="log")
    values = [sizes.at(share / 100) for share in range(100)]
    assert set(values) == set(range(1, 9))


def cell(column: str, wins: int, draws: int, losses: int, **paid: float) -> PayoffCell:
    return PayoffCell(row="main@5", column=column, wins=wins, draws=draws, losses=losses, **paid)  # pyrefly: ignore


def test_each_opponent_counts_equally_however_often_it_was_met() -> None:
    cells = [cell("a", 900, 0, 100), cell("b", 2, 4, 4)]
    value, has_payoffs = value_against(cells, {"main@5": 1.0}, ["a", "b"])
    assert not has_payoffs
    assert value.value == pytest.approx((0.8 - 0.2) / 2)
    assert value.low < value.value < value.high
    assert value.high - value.low > 0.4  # as wide as ten matches leave it


def test_a_score_in_a_game_with_payoffs_is_the_mean_payment() -> None:
    cells = [cell("a", 60, 0, 40, paid=30.0, staked=150.0, squares=250.0)]
    value, has_payoffs = value_against(cells, {"main@5": 1.0}, ["a"])
    assert has_payoffs
    assert value.value == pytest.approx(0.3)
    half = 1.96 * math.sqrt((2.5 - 0.3**2) / 100)
    assert value.high - value.low == pytest.approx(2 * half, rel=0.05)


def test_a_mixture_is_the_mean_of_its_members() -> None:
    other = PayoffCell(row="main@9", column="a", wins=0, draws=0, losses=50)
    shares = {"main@5": 0.75, "main@9": 0.25}
    value, _ = value_against([cell("a", 100, 0, 0), other], shares, ["a"])
    assert value.value == pytest.approx(0.5)


def test_no_score_without_matches_against_the_whole_field() -> None:
    with pytest.raises(NotFound, match="b"):
        value_against([cell("a", 1, 0, 0)], {"main@5": 1.0}, ["a", "b"])


def test_a_mixture_of_many_snapshots_is_thinned_evenly_to_the_newest() -> None:
    half = [f"main@{step}" for step in range(1, 101)]
    kept = [int(name.partition("@")[2]) for name in thinned(half, 15)]
    assert len(kept) * 15 <= MAX_PAIRS < (len(kept) + 1) * 15
    assert kept[-1] == 100
    assert {later - earlier for earlier, later in pairwise(kept)} == {5, 6}
    assert thinned(half[:17], 15) == half[:17]
    assert thinned(half, 1000) == half[-1:]


def test_an_elo_lead_of_all_points_is_finite() -> None:
    lead = elo_lead(Measured(9 / 11, 0.0, 1.0))  # ten times the opponent's points
    assert lead.value == pytest.approx(400.0)
    assert lead.low == 0.0
    assert math.isfinite(lead.high)


def order(folder: Path) -> Order:
    return Order(
        folder=folder, main="main", rungs=(10, 30), score="rating", average=False, matches=20
    )


def rung(steps: int, value: float) -> Rung:
    score = Measured(value, value - 0.1, value + 0.1)
    return Rung(steps=steps, player="main@30", score=score, unit="Elo", matches=40, seconds=5.0)


def some_trials() -> list[Trial]:
    settings = [{"learner.ent_coef": value, "game.reward": "<b>"} for value in (0.0, 0.1, 0.2)]
    return [
        Trial(number=0, settings=settings[0], rungs=(rung(10, 300.0),), stopped=True),
        Trial(number=1, settings=settings[1], rungs=(rung(10, 50.0), rung(30, 80.0))),
        Trial(number=2, settings=settings[2], fault="<script>"),
    ]


def test_trials_that_trained_longer_rank_first(tmp_path: Path) -> None:
    trials = some_trials()
    assert [trial.number for trial in ranked(trials)] == [1, 0, 2]
    table, page = write_results(order(tmp_path), trials)
    with table.open() as file:
        rows = list(csv.DictReader(file))
    assert [row["state"] for row in rows] == ["done", "stopped", "failed"]
    assert rows[0]["score"] == "80.0"
    assert rows[0]["learner.ent_coef"] == "0.1"
    assert rows[2]["rank"] == ""
    assert "<script>" not in page.read_text()
    assert "<b>" not in render(order(tmp_path), trials).partition("<h2>")[2]


def test_a_final_ranks_the_trials_that_reached_the_last_rung(tmp_path: Path) -> None:
    last = (rung(10, 50.0), rung(30, 80.0)), (rung(10, 50.0), rung(30, 20.0))
    trials = [
        Trial(number=0, settings={}, rungs=(rung(10, 300.0),), stopped=True),
        Trial(number=1, settings={}, rungs=last[0], final=Measured(-5.0, -9.0, -1.0)),
        Trial(number=2, settings={}, rungs=last[1], final=Measured(5.0, 1.0, 9.0)),
        Trial(number=3, settings={}, rungs=(rung(10, 400.0),), stopped=True),
    ]
    assert [trial.number for trial in ranked(trials)] == [2, 1, 3, 0]
    table, page = write_results(order(tmp_path), trials)
    with table.open() as file:
        rows = list(csv.DictReader(file))
    assert [row["final"] for row in rows] == ["5.0", "-5.0", "", ""]
    assert [rows[0][name] for name in ("final_low", "final_high", "score")] == [
        "1.0",
        "9.0",
        "20.0",
    ]
    assert "-5" in page.read_text()
    write_preset(tmp_path / "best.toml", trials[2], board(), "board")
    assert "final" in (tmp_path / "best.toml").read_text()


def meeting(row: str, column: str, wins: int, losses: int) -> dict[str, object]:
    counts = {"row": row, "column": column, "wins": wins, "draws": 0, "losses": losses}
    return {"asked": wins + losses, "cell": counts}


def final_of(folder: Path, trials: list[Trial]) -> list[Trial]:
    return play_final(order(folder), board().of(GameSettings), trials, 20, lambda line: None)


def test_pairs_on_disk_are_not_played_again(tmp_path: Path) -> None:
    rungs = rung(10, 50.0), rung(30, 80.0)
    trials = [Trial(number=number, settings={}, rungs=rungs) for number in range(3)]
    pairs = [
        meeting("trial-000", "trial-001", 5, 15),
        meeting("trial-000", "trial-002", 10, 10),
        meeting("trial-001", "trial-002", 50, 50),
        meeting("trial-001", "trial-007", 20, 0),  # which is no trial
    ]
    (tmp_path / "final.json").write_text(json.dumps({"pairs": pairs}))
    found = final_of(tmp_path, trials)  # the folder has no players
    assert [trial.number for trial in ranked(found)] == [1, 2, 0]
    values = [trial.final.value for trial in found if trial.final]
    assert values[0] == -values[1] < 0
    assert values[2] == 0


def test_a_single_finalist_plays_no_final(tmp_path: Path) -> None:
    trials = some_trials()
    assert final_of(tmp_path, trials) == trials
    assert not (tmp_path / "final.json").exists()


@pytest.mark.parametrize("text", ['{"pairs": [{"asked": 2}]}', '{"pairs": 3}', '{"a": []}', "["])
def test_a_damaged_final_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "final.json").write_text(text)
    rungs = rung(10, 50.0), rung(30, 80.0)
    with pytest.raises(DataCorrupt, match=r"final\.json"):
        final_of(tmp_path, [Trial(number=at, settings={}, rungs=rungs) for at in range(2)])


def test_no_final_of_trials_that_play_different_games(tmp_path: Path) -> None:
    file = written(tmp_path, 'extends = "board"\n[sweep]\ngame.name = ["kuhn", "leduc"]\n')
    with pytest.raises(InvalidInput, match="final"):
        sweep(file, final=10, out=tmp_path / "swept")
    assert not (tmp_path / "swept").exists()


def test_a_trial_is_read_as_it_was_written(tmp_path: Path) -> None:
    trial = some_trials()[1]
    write_trial(tmp_path, trial)
    assert read_trial(tmp_path, 1, {}) == trial
    assert read_trial(tmp_path, 7, {"learner.ent_coef": 1.0}).rungs == ()
    (tmp_path / "trial-001.json").write_text('{"number": 1, "settings": {}, "rungs": [{}]}')
    with pytest.raises(DataCorrupt, match=r"trial-001\.json"):
        read_trial(tmp_path, 1, {})


def test_the_written_preset_has_all_settings_of_the_best_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUMITE_LEARNER__N_EPOCHS", "3")
    file = written(tmp_path, 'extends = "board"\n[learner]\nsteps = 5_000\n' + SPACE)
    flags = ["learner.desired_kl=none", 'game.name="leduc"']
    sections = resolve("board", file, flags)
    settings = {
        "learner.ent_coef": 0.3,
        "matchmaker.mixes.league.random": 0.5,  # the preset's mix has other members, too
        "supervisor.learners": [{"name": "main"}, {"name": "second"}],
    }
    target = tmp_path / "best.toml"
    write_preset(target, Trial(number=0, settings=settings), sections, "board")
    trial = [assignment(*setting) for setting in settings.items()]
    assert resolve(None, target, environment={}) == lay_over(sections, None, trial)


def test_choices_may_be_lists(tmp_path: Path) -> None:
    lists = '[[{ name = "main" }], [{ name = "main" }, { name = "second" }]]'
    file = written(tmp_path, f"[sweep]\nsupervisor.learners = {lists}\n")
    trials = trials_of(read_space(file), board(), 2, seed=0, where=str(file))
    sizes = [len(trial["supervisor.learners"]) for trial in trials]  # pyrefly: ignore
    assert sorted(sizes) == [1, 2]


@pytest.mark.parametrize(("low", "high"), [(0.12341, 0.12344), (0.99996, 0.99999)])
def test_no_value_lies_outside_a_narrow_range(low: float, high: float) -> None:
    dimension = Dimension(name="learner.gamma", low=low, high=high)
    assert all(low <= float(str(dimension.at(share / 10))) <= high for share in range(10))


def test_without_ray_the_message_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    file = written(tmp_path, 'extends = "board"\n' + SPACE)
    with pytest.raises(InvalidInput, match=r"kumite\[cluster\]"):
        sweep(file)
    assert not (tmp_path / "sweeps").exists()


def test_the_example_of_the_docs_can_be_searched(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "sweep.md").read_text(encoding="utf-8")
    file = written(tmp_path, page.partition("```toml\n")[2].partition("```")[0])
    sections = resolve(None, file, environment={})
    assert len(trials_of(read_space(file), sections, 16, seed=0, where=str(file))) == 16


@pytest.mark.parametrize("address", ["head", "127.0.0.1:{port}"])
def test_a_cluster_that_does_not_answer_is_named_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    pytest.importorskip("ray")
    address = address.format(port=free_port())
    monkeypatch.setenv("RAY_ADDRESS", address)
    monkeypatch.setenv("HOME", str(tmp_path))  # without a token
    file = written(tmp_path, 'extends = "board"\n' + SPACE)
    with pytest.raises(Unavailable, match=address):
        sweep(file, engine=EngineName.RAY)


def test_a_cluster_without_an_address_is_not_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    file = written(tmp_path, 'extends = "board"\n' + SPACE)
    with pytest.raises(InvalidInput, match="RAY_ADDRESS"):
        sweep(file, engine=EngineName.RAY, out=tmp_path / "swept")
    assert not (tmp_path / "swept").exists()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_ctrl_c_counts_even_while_python_deletes_an_object() -> None:
    class Deleted:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    with interrupts() as is_interrupted:
        assert not is_interrupted()
        Deleted()  # Python ignores its exception
        assert is_interrupted()
    assert signal.getsignal(signal.SIGINT) == before
