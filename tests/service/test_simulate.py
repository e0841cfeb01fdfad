"""Simulated leagues: known answers, the same league for a seed, a broken sampler noticed."""

from __future__ import annotations

import json

import numpy as np
import pytest

from league.cli.main import main
from matchmaker.sampling.draw import Distribution
from matchmaker.settings import MatchmakerSettings
from matchmaker.simulate.report import follows, report_of
from matchmaker.simulate.scenarios import SCENARIOS, Drift, scenario_of
from matchmaker.simulate.simulation import Plan, Simulation
from matchmaker.store.sqlite import SqliteStore
from matchmaker.tools.fsck import full_scan


def simulate(
    folder, scenario="elo", *, players=30, matches=4000, learners=2, seed=1, faults=0.05, **settings
):
    """Simulates a league, whose log stays in `folder`, and returns its report."""
    folder.mkdir(exist_ok=True)
    plan = Plan(
        scenario=scenario,
        players=players,
        matches=matches,
        learners=learners,
        seed=seed,
        faults=faults,
        batch=100,
    )
    with (
        Simulation(folder, MatchmakerSettings(**settings), plan) as simulation,
        simulation.client,
    ):
        simulation.run()
        return report_of(simulation)


def whole(folder):
    store = SqliteStore(folder / "league.db", read_only=True)
    with store.read() as reader:
        assert full_scan(reader) == []
    store.close()


@pytest.fixture(scope="module")
def elo(tmp_path_factory):
    folder = tmp_path_factory.mktemp("elo")
    return folder, simulate(folder, matches=4000, faults=0.1)


@pytest.mark.long
def test_on_a_line_ratings_come_out_in_order_and_predict(elo):
    folder, report = elo
    ratings = report["ratings"]
    assert ratings["players"] == 28
    assert ratings["fit_error"] < 0.05
    training = [tenth["played"] for tenth in report["calibration"]["train"]]
    assert max(training[:3]) < min(training[-3:])
    for tenth in report["calibration"]["eval"]:
        assert tenth["played"] == pytest.approx(tenth["predicted"], abs=0.12)
    assert follows(report)
    whole(folder)


def test_configured_expected_and_realised_shares_agree(elo):
    _, report = elo
    shares = {row["category"]: row for row in report["shares"]}
    assert {name: row["configured"] for name, row in shares.items()} == pytest.approx(
        {"snapshots": 0.7, "constant": 0.05, "based": 0.15, "random": 0.1}
    )
    for row in shares.values():
        assert row["expected"] == pytest.approx(row["configured"])
        assert row["realised"] == pytest.approx(row["configured"], abs=0.03)


def test_every_match_is_accounted_for(elo):
    folder, report = elo
    leases, faults = report["leases"], report["faults"]
    assert set(faults) == {"died", "hung", "reported twice"}
    assert report["matches"] == leases["reported"] + leases["expired"]
    assert 4000 <= report["matches"] < 4004  # clean ones come in fours
    assert leases["open"] == leases["abandoned"] == leases["released"] == leases["refused"] == 0
    assert leases["expired"] > 0 < leases["late"]
    assert leases["duplicate"] > 0
    store = SqliteStore(folder / "league.db", read_only=True)
    with store.read() as reader:
        assert reader.select("SELECT count(*) FROM results")[0][0] == leases["reported"]
    store.close()


@pytest.mark.long
def test_rock_paper_scissors_gives_f_var_its_shares(tmp_path):
    """Against those it beats at .9, .5 and .1 a learner plays .09 : .25 : .09."""
    settings = {"within_snapshots": "pfsp_var"}
    report = simulate(tmp_path, "rps", players=20, matches=3000, **settings)
    rows = {(row["learner"], row["against"]): row for row in report["groups"]}
    assert follows(report)
    for (learner, group), row in rows.items():
        camp = {"main": "rock", "main-2": "scissors"}[learner]  # the numbers after three bots
        even, other = 0.25 / 0.43, 0.09 / 0.43
        assert row["by_the_truth"] == pytest.approx(even if group == camp else other, abs=0.05)
        # less than by the truth: at first the learner knows none of its chances
        assert (row["realised"] > 0.38) == (group == camp)


@pytest.mark.long
def test_rock_paper_scissors_gives_each_group_a_third_of_the_nash_mixture(tmp_path):
    report = simulate(tmp_path, "rps", players=20, matches=2500, within_snapshots="nash")
    assert follows(report)
    assert len(report["groups"]) == 6
    for row in report["groups"]:
        assert row["by_the_truth"] == pytest.approx(1 / 3, abs=1e-6)
    whole(tmp_path)


def test_the_same_seed_is_the_same_league_and_another_is_another(tmp_path):
    first, again, other = (
        simulate(
            tmp_path / name,
            "drift",
            players=15,
            matches=400,
            seed=seed,
            roles="alphastar-pseudocode",
        )
        for name, seed in (("a", 3), ("b", 3), ("c", 4))
    )
    for report in (first, again, other):
        report.pop("speed")
    assert json.dumps(first) == json.dumps(again)
    assert json.dumps(first) != json.dumps(other)


def test_a_broken_sampler_is_noticed(monkeypatch, capsys):
    """One place too far to the left, where there are many."""
    sound = Distribution.pick

    def broken(self, uniform):
        place = sound(self, uniform)
        return max(0, place - 1) if len(self.names) > 10 else place

    monkeypatch.setattr(Distribution, "pick", broken)
    assert main(["simulate", "--players", "20", "--matches", "1500"]) == 1
    assert " NOT " in capsys.readouterr().err


@pytest.mark.long
def test_learners_that_drift_take_snapshots(tmp_path):
    report = simulate(
        tmp_path, "drift", players=24, matches=2000, learners=3, roles="alphastar-paper", faults=0.0
    )
    assert report["players"] == 3 + 3 + report["snapshots_taken"] <= 24
    assert report["snapshots_taken"] >= 8
    assert report["ratings"]["fit_error"] < 0.15
    assert follows(report)
    whole(tmp_path)


@pytest.mark.parametrize("name", SCENARIOS)
def test_chances_are_chances_and_sides_agree(name):
    scenario = scenario_of(name, np.random.default_rng(0), 40, 2)
    first, second = np.divmod(np.arange(40 * 40), 40)
    chances, mirrored = scenario.chances(first, second), scenario.chances(second, first)
    np.testing.assert_allclose(chances.score_G + mirrored.score_G, 1.0)
    np.testing.assert_allclose(chances.draw_G, mirrored.draw_G, atol=1e-12)
    assert chances.win_G.min() >= -1e-12
    np.testing.assert_allclose(chances.score_G[first == second], 0.5)
    assert len(scenario.group_N) == 40


def test_scenarios_are_what_they_are_called():
    rng, everybody = np.random.default_rng(0), np.arange(30)
    rps = scenario_of("rps", rng, 9, 1).chances(np.array([0, 1, 2, 0]), np.array([1, 2, 0, 3]))
    np.testing.assert_allclose(rps.score_G, [0.9, 0.9, 0.9, 0.5])
    line = scenario_of("elo", rng, 30, 1)
    best, worst = np.argmax(line.strength_N), np.argmin(line.strength_N)
    assert line.chances(np.array([best]), np.array([worst])).score_G[0] > 0.9
    for name in ("disc", "blotto"):  # cyclic: each beats some and loses to some
        cyclic = scenario_of(name, rng, 30, 1)
        scores = [cyclic.chances(np.full(30, one), everybody).score_G for one in everybody]
        assert np.mean([score.max() > 0.55 and score.min() < 0.45 for score in scores]) > 0.9
    drift = Drift(rng, 12, 2)
    before = drift.strength_N[3]
    drift.advance(3, 5000)
    assert drift.strength_N[3] > before + 1.0
    forget = scenario_of("forget", rng, 12, 2)
    forget.strength_N[3:] = [2.0, 0.0, 2.0, 1.9, -0.3, -1.0, -3.0, 0.0, 0.0]
    learner, others = np.full(4, 3), np.array([6, 7, 8, 9])
    before = forget.chances(learner, others).score_G
    lost = forget.forget(3, others)
    place = lost - 6
    assert before[place] == pytest.approx(0.9, abs=0.03)
    after, theirs = forget.chances(learner, others), forget.chances(others, learner)
    assert (after.score_G[place], theirs.score_G[place]) == pytest.approx((0.3, 0.7))
    assert np.delete(after.score_G, place).tolist() == np.delete(before, place).tolist()


@pytest.mark.parametrize(
    ("words", "value"),
    [
        (["--scenario", "elos"], "'elos'"),
        (["--players", "5"], "--players 5"),
        (["--players", "x"], "'x'"),
        (["--faults", "2"], "--faults 2"),
        (["--plot", "a.jpg"], "a.jpg"),
    ],
)
def test_a_wrong_flag_is_refused_with_its_value(words, value, capsys):
    assert main(["simulate", *words]) != 0
    assert value in capsys.readouterr().err


def test_piped_no_two_tables_have_one_heading(capsys):
    assert main(["simulate", "--players", "15", "--matches", "600"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(set(lines))
    assert sum(line.startswith("eval\t") for line in lines) == 10
    assert sum(line.startswith("train\t") for line in lines) == 10


def test_a_league_in_the_way_is_not_overwritten(elo, capsys):
    folder, _ = elo
    before = (folder / "league.db").read_bytes()
    assert main(["simulate", "--run-dir", str(folder)]) != 0
    assert "holds a league already" in capsys.readouterr().err
    assert (folder / "league.db").read_bytes() == before


def test_the_picture_is_drawn(tmp_path, capsys):
    picture = tmp_path / "league.png"
    words = ["--players", "15", "--matches", "300", "--plot", str(picture)]
    assert main(["simulate", "--scenario", "disc", *words]) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert "categories\tchi-squared" in capsys.readouterr().out


@pytest.mark.long
def test_the_sampler_expects_what_learners_that_change_score(tmp_path):
    """And it notices a forgotten opponent; with all matches ever counted alike the error is .1."""
    report = simulate(tmp_path, "forget", players=50, matches=4000, learners=1, faults=0.0)
    expected = report["expected_scores"]
    assert expected["matches"] > 2500
    assert expected["error"] < 0.07
    lost = report["forgotten"]["main"]
    assert lost["noticed_after"] <= 20


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_in_a_league_as_long_as_a_laptops_expected_scores_are_within_five_percent(tmp_path, seed):
    report = simulate(tmp_path, "forget", players=104, matches=18_300, learners=1, seed=seed)
    assert report["expected_scores"]["error"] < 0.05
    assert report["forgotten"]["main"]["noticed_after"] <= 20
