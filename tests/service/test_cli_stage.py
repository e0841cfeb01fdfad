"""``bin/league stage`` shows the stages with what would end the present one, and asks for
another.
"""

import json
import re

import pytest
from small_league import played
from staged import STAGES, events

from league.cli.main import main
from league.players import Book, Pairing
from league.stages import Place


@pytest.fixture
def at(league):
    return ["--address", league.server.address]


def said(capsys, *words):
    code = main(["stage", *words])
    told = capsys.readouterr()
    return code, told.out, told.err


def lines(text):
    return dict(line.split("\t", 1) for line in text.splitlines() if line.count("\t") == 1)


def test_the_stages_are_shown_with_what_would_end_the_present_one(league, at, capsys):
    learner, client = league.open(), league.client
    client.enter_stage(learner, 300, STAGES, Place(since_step=300))
    client.heartbeat(learner, 1, 500, "constant")
    code, out, _ = said(capsys, *at)
    assert code == 0
    assert out.splitlines()[:2] == [
        "on\tstage\tmix\treward\tends_by_wins\tends_by_steps",
        "*\tfirst\tconstant\t\t70% against based\t900",
    ]
    shown = lines(out)
    assert (shown["stage"], shown["since step"], shown["now at step"]) == (
        "first",
        "300 (by itself)",
        "500",
    )
    assert "based" in shown["estimate"]
    assert re.search(r"70% .*\bbased\b.* 700 steps", shown["ended by"])
    client.heartbeat(learner, 2, 2500, "constant")
    evaluator = client.open_incarnation("evaluator-0").number
    pairing = Pairing(player="main@2000", opponent="based", pairs=20, book=Book.EVAL, seed=1)
    found = client.acquire_pairings(evaluator, [pairing])
    outcomes = [float(a.seats[0].name == "main@2000") for a in found]
    outcomes[0] = 1.0 - outcomes[0]
    client.report_results(evaluator, [played(a, o) for a, o in zip(found, outcomes, strict=True)])
    _, out, _ = said(capsys, *at)
    estimate = lines(out)["estimate"]
    assert re.search(r"^main .* 96 % \(82 to 99 %\) .*\bbased\b.*\b40\b", estimate)
    trained, _, _ = league.play(learner, 60)
    of_based = sum(match.opponent.name == "based" for match in trained)
    assert of_based >= STAGES[0].min_matches
    _, out, _ = said(capsys, *at)
    assert re.search(rf"\b{40 + of_based}\b", lines(out)["estimate"])


def test_a_stage_is_asked_for_by_name_and_taken_up(league, at, capsys):
    learner, client = league.open(), league.client
    client.enter_stage(learner, 0, STAGES, Place())
    code, out, err = said(capsys, "next", *at)
    assert (code, out) == (0, "")
    assert re.search("^main .*'second'", err)
    _, out, _ = said(capsys, *at)
    assert lines(out)["asked for"].startswith("second by ")
    (event,) = events(league, "stage_asked")
    by = json.loads(event.data_json)["by"]
    assert by in event.text
    assert "@" in by
    client.enter_stage(
        learner, 9, STAGES, Place(index=1, since_step=9, by_hand=True, obeyed=event.position)
    )
    shown = lines(said(capsys, *at)[1])
    assert shown["since step"] == "9 (by hand)"
    assert "bin/league stage next" in shown["ended by"]
    assert "asked for" not in shown
    client.enter_stage(learner, 99, STAGES, Place(index=2, since_step=99, obeyed=event.position))
    assert "bin/league" not in lines(said(capsys, *at)[1])["ended by"]


def test_a_learner_that_is_done_enters_no_stage(league, at, capsys):
    learner = league.open()
    league.client.enter_stage(learner, 0, STAGES, Place())
    league.client.heartbeat(learner, 1, 5000, "constant", "done")
    assert "bin/league" not in lines(said(capsys, *at)[1])["ended by"]
    code, _, err = said(capsys, "next", *at)
    assert code == 1
    assert re.search("^league: main .*--steps", err)
