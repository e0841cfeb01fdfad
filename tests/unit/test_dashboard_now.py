"""What the dashboard's first page says of a league that runs, hangs, or has ended."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
import screens

from league.replay.highlights import WIN, Highlight
from league.status import SILENT_SECONDS, Vitals, WorkerStatus
from league.views.dashboard.pages import now


def alarms(seconds: float, *workers: WorkerStatus) -> str:
    """The alarms of a league in which `seconds` have passed since the first worker's last beat."""
    league = screens.full().league
    status = league.status
    vitals = Vitals(now=screens.NOW + seconds)
    league = replace(league, status=replace(status, vitals=vitals, workers=workers))
    page = now.show(SimpleNamespace(facts=league, events=list, run_dir=None), {})
    (found,) = (str(block) for block in page if "Alarms" in str(block))
    return found


@pytest.fixture
def evaluator() -> WorkerStatus:
    return replace(
        screens.LEARNER, worker="evaluator-0", player="", last_beat_at=screens.NOW + 600.0
    )


def test_a_league_that_runs_has_no_alarm():
    assert "None." in alarms(5.0, screens.LEARNER)


def test_a_worker_that_is_silent_next_to_others_is_an_alarm(evaluator):
    found = alarms(601.0, screens.LEARNER, evaluator)
    assert 'class="alarm"' in found
    assert screens.LEARNER.worker in found
    assert "10 min" in found
    assert evaluator.worker not in found


def test_a_run_that_has_ended_is_said_once_and_hides_no_other_trouble(evaluator):
    broken = replace(evaluator, last_beat_at=screens.NOW, trouble="disagrees with evaluator-1 <b>")
    found = alarms(SILENT_SECONDS + 1.0, screens.LEARNER, broken)
    assert screens.LEARNER.worker not in found
    assert found.count('class="alarm"') == 1
    assert "evaluator-1 &lt;b&gt;" in found
    assert "None." not in found


def test_a_run_that_ended_a_moment_ago_does_not_stand_still(evaluator):
    done = replace(screens.LEARNER, activity="done")
    found = alarms(2.0, done, replace(evaluator, activity="stopped", last_beat_at=screens.NOW))
    assert "None." in found


def processes(*workers: WorkerStatus) -> str:
    league = screens.full().league
    league = replace(league, status=replace(league.status, workers=workers))
    page = now.show(SimpleNamespace(facts=league, events=list, run_dir=None), {})
    (found,) = (str(block) for block in page if "Processes" in str(block))
    return found


def test_the_speed_of_learners_and_evaluators_is_shown(evaluator):
    for speed, words in ((3.25, "3.2 matches/s"), (0.03, "1.8 matches/min"), (0.0, "")):
        found = processes(replace(evaluator, metrics={"rate/matches_per_second": speed}))
        assert words in found
        assert ("matches/" in found) is bool(words)


def test_a_dashboard_serves_pages_after_a_persons_match(evaluator):
    for activity, is_said in (("a person plays", False), ("stopped", True)):
        found = processes(replace(evaluator, worker="dashboard", mix="", activity=activity))
        assert ("serves pages" in found) is is_said
        assert ("stopped" in processes(replace(evaluator, activity=activity))) is is_said
        assert "stopped" not in found


def test_nodes_are_shown_where_there_are_several(evaluator):
    learner = replace(screens.LEARNER, node="gpu-1")
    found = processes(learner, replace(evaluator, node="<b>gpu-2"))
    assert "gpu-1" in found
    assert "&lt;b&gt;gpu-2" in found
    assert "gpu-1" not in processes(learner, replace(evaluator, node="gpu-1"))


def test_a_highlight_says_whose_win_over_which_bot_it_is(tmp_path):
    league = screens.full().league
    wins = [
        Highlight(kind=WIN, match_id=name, names=("kiter", name), winner=name, words="2 of 3",
                  value=0.4, at=screens.NOW)
        for name in (league.newest, "main@7")
    ]  # fmt: skip
    source = SimpleNamespace(
        facts=league,
        events=list,
        run_dir=tmp_path,
        highlights=lambda: wins,
        replays=lambda: {one.match_id: tmp_path for one in wins},
        shown=lambda: None,
        is_served=lambda: False,
    )
    page = "".join(map(str, now.show(source, {})))
    assert "▶ Win of the newest agent over its hardest bot: kiter<" in page
    assert "▶ Win of main@7 over its hardest bot: kiter<" in page


@pytest.mark.parametrize(("sigma", "is_sure"), [(0.1, True), (8.0, False)])
def test_a_lead_smaller_than_its_margin_is_not_sure(sigma, is_sure):
    league = screens.full().league
    rated = tuple(
        replace(one, sigma=sigma, mu=30.0 - place) for place, one in enumerate(league.ratings)
    )
    source = SimpleNamespace(facts=replace(league, ratings=rated), events=list, run_dir=None)
    progress = str(now.show(source, {})[0])
    assert " above " in progress
    assert ("not sure" not in progress) is is_sure
