"""Each of the twenty reasons in a set-up that is broken for it alone: named first, its
consequences below.
"""

from __future__ import annotations

from functools import cache

import pytest
import sick
import sick_games
from doctor_cases import CALIBRATED, FRESH, Case

from league.agent import config as agent_config
from learner.doctor.findings import LEADS_TO, REASONS, Cause, Verdict, ordered, primary_causes
from learner.doctor.game import examine_environment, examine_game
from learner.doctor.training import examine_training


def play(set_up):
    return [*examine_game(set_up), *examine_environment(set_up)]


@cache
def healthy_play():
    """What the healthy game shows; cases that break nothing of it and its rewards share this."""
    return play(sick.set_up())


def examine(set_up, *, own_play=True):
    played = play(set_up) if own_play else healthy_play()
    return ordered([*played, *examine_training(set_up, updates=3)])


def causes(set_up, **kind) -> tuple[Cause, ...]:
    return primary_causes(examine(set_up, **kind))


def test_nothing_is_wrong_with_a_healthy_set_up():
    findings = examine(sick.set_up())
    assert {finding.key for finding in findings} >= {str(number) for number in range(1, 21)}
    assert [(one.key, one.measured) for one in findings if one.verdict is not Verdict.OK] == []


SHAKY = {"V"}
"""After three updates the critic's explained variance hangs on a hair: it may stand under any
cause.
"""


def assert_named(case: Case, monkeypatch):
    """The reason alone is a cause; what follows from it stands under it, and nothing else is
    bad.
    """
    if case.sizes is not None:
        monkeypatch.setitem(agent_config.SIZES, "tiny", case.sizes)
    made = case.make()
    found = causes(made, own_play=case.own_play)
    told = {
        cause.finding.key: (
            cause.finding.measured,
            [(one.key, one.measured) for one in cause.consequences],
        )
        for cause in found
    }
    assert list(told) == [case.key], told
    assert found[0].finding.verdict is (Verdict.FAILURE if case.failure else Verdict.WARNING), told
    below = {one.key for one in found[0].consequences}
    assert case.follows <= below <= case.follows | case.may | SHAKY, told


# in every run the fresh ones are asked, which know nothing of how thresholds were set
@pytest.mark.slow
@pytest.mark.parametrize("case", [pytest.param(case, id=case.id) for case in CALIBRATED])
def test_the_broken_part_is_named_with_what_follows(case, monkeypatch):
    assert_named(case, monkeypatch)


@pytest.mark.parametrize("case", [pytest.param(case, id=case.id) for case in FRESH])
def test_set_ups_that_no_threshold_was_fitted_to_are_named_too(case, monkeypatch):
    assert_named(case, monkeypatch)


def test_all_twenty_reasons_are_tried_and_fresh_ones_in_every_run():
    twenty = {str(number) for number in range(1, 21)}
    assert {case.key for case in CALIBRATED} >= twenty
    assert {case.key for case in FRESH} >= twenty | {"B", "O", "V"}


def test_a_dead_key_is_named_and_only_warned_of():
    (cause,) = causes(sick.playing(sick_games.OneKeyDead))
    assert (cause.finding.key, cause.finding.verdict) == ("2", Verdict.WARNING)
    assert "none: space" in cause.finding.measured


def test_causes_have_no_circle_and_name_known_reasons():
    assert set(LEADS_TO) | {key for keys in LEADS_TO.values() for key in keys} <= set(REASONS)
    done: set[str] = set()

    def visit(key, above):
        assert key not in above, [*above, key]
        if key not in done:
            for following in LEADS_TO.get(key, ()):
                visit(following, [*above, key])
            done.add(key)

    for key in LEADS_TO:
        visit(key, [])
