"""When a member of a population copies another, and with which settings it goes on."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from league.errors import ConfigError
from league.players import PayoffCell
from league.settings.base import lay_over, resolve
from league.stats.payoff import Stakes
from league.stats.population import better_member, confidence_of_each, perturbed
from learner.train.build import SessionSettings
from learner.train.population import tuned, values_of


def cell(wins: int, losses: int, draws: int = 0, **paid: float) -> PayoffCell:
    return PayoffCell(row="a", column="b", wins=wins, draws=draws, losses=losses, **paid)  # pyrefly: ignore


def test_nobody_is_copied_whose_interval_reaches_zero() -> None:
    assert better_member({"a": cell(55, 45)}, Stakes(), 0.95) is None
    assert better_member({"a": cell(40, 160)}, Stakes(), 0.95) is None
    assert better_member({}, Stakes(), 0.95) is None


def test_a_surer_interval_needs_more_matches() -> None:
    cells = {"a": cell(60, 40)}
    assert better_member(cells, Stakes(), 0.9) is not None
    assert better_member(cells, Stakes(), 0.999) is None


def test_the_best_low_end_is_copied_not_the_best_mean() -> None:
    chosen = better_member({"few": cell(9, 1), "many": cell(700, 300)}, Stakes(), 0.95)
    assert chosen is not None
    assert chosen[0] == "many"
    assert chosen[1].value == pytest.approx(0.4)
    assert 0.3 < chosen[1].low < 0.4


def test_in_games_with_payoffs_the_payoff_decides() -> None:
    loses_often_wins_much = cell(30, 70, paid=60.0, staked=130.0, squares=400.0)
    stakes = Stakes.of([loses_often_wins_much])
    assert better_member({"a": loses_often_wins_much}, stakes, 0.95) is not None
    unsure = replace(loses_often_wins_much, paid=10.0)
    assert better_member({"a": unsure}, Stakes.of([unsure]), 0.95) is None


def test_all_comparisons_share_one_confidence() -> None:
    assert confidence_of_each(0.95, 2, 1) == pytest.approx(0.975)
    assert confidence_of_each(0.95, 4, 10) == pytest.approx(1 - 0.05 / 120)
    assert confidence_of_each(0.95, 1, 10) == pytest.approx(0.95)


def test_no_member_is_copied_by_chance_more_often_than_the_confidence_allows() -> None:
    rng = random.Random(0)
    confidence = confidence_of_each(0.9, 3, 5)
    wrong = 0
    for _ in range(200):  # runs of three equal members with five comparisons each
        for _ in range(15):
            wins = [sum(rng.random() < 0.5 for _ in range(60)) for _ in range(2)]
            cells = {str(at): cell(won, 60 - won) for at, won in enumerate(wins)}
            if better_member(cells, Stakes(), confidence):
                wrong += 1
                break
    assert wrong <= 0.1 * 200


def test_a_schedule_keeps_its_shape_when_it_is_perturbed() -> None:
    before = {
        "learning_rate": 1e-3,
        "learning_rate_final": 1e-4,
        "clip_range": 0.2,
        "ent_coef": 0.1,
    }
    seen = set()
    for seed in range(60):
        after = perturbed(before, 1.25, random.Random(seed))
        assert after["learning_rate"] in (1.25e-3, 8e-4)
        assert after["learning_rate_final"] == pytest.approx(after["learning_rate"] / 10)
        assert after["clip_range"] in (0.25, 0.16)
        seen.add(tuple(after.values()))
    assert len(seen) == 8


def test_copied_values_become_settings_and_only_they_change() -> None:
    sections = resolve("laptop", None, ["game.reward_weights={knockout=2.0}"], environment={})
    settings = SessionSettings.of(sections)
    values = values_of(settings)
    assert values["reward.knockout"] == 2.0
    copied = {**values, "learning_rate": 5e-4, "reward.knockout": 3.0, "reward.strange": 9.0}
    after = tuned(settings, copied | {"steps": 1.0})
    assert after.learner.learning_rate == 5e-4
    assert after.learner.steps == settings.learner.steps
    assert after.game.reward_weights == {"knockout": 3.0}
    assert values_of(after) == {**values, "learning_rate": 5e-4, "reward.knockout": 3.0}
    with pytest.raises(ConfigError, match="clip_range"):
        tuned(settings, {"clip_range": -1.0})


def test_the_example_of_the_docs_is_a_population(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "sweep.md").read_text(encoding="utf-8")
    example = page.partition("## A population")[2].partition("```toml\n")[2].partition("```")[0]
    file = tmp_path / "population.toml"
    file.write_text(example)
    sections = resolve(None, file, environment={})
    assert sections["matchmaker"]["population_interval"] == 50_000
    learners = {one["name"]: one["set"] for one in sections["supervisor"]["learners"]}
    fast = SessionSettings.of(lay_over(sections, None, learners["fast"]))
    assert values_of(fast)["learning_rate"] == 3e-3
