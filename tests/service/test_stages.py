"""An operator moves a learner to another stage: through the matchmaker, once, over crashes of either."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from small_league import live, played, small_league
from test_matchmaker_process import matchmaker, ready_port

from league.cli.main import main
from league.client import MatchmakerClient
from league.errors import Fenced, InvalidInput, NotFound, Refused
from league.players import Book, Pairing
from league.stages import Place, Stage

STAGES = (
    Stage(
        name="first", mix="constant", until_opponent="based", until_win_rate=0.7, min_matches=4, max_steps=900
    ),
    Stage(name="second", mix="league", reward="duel", manual=True),
    Stage(name="last", mix="league"),
)


@pytest.fixture
def league(tmp_path):
    with small_league(tmp_path) as made:
        yield made


def events(client_or_league, *kinds):
    with client_or_league.server.store.read() as reader:
        return [event for event in reader.events(0, 1000) if event.kind in kinds]


def test_a_request_reaches_the_learner_until_it_says_that_it_obeyed(league):
    learner, client = league.open(), league.client
    assert client.enter_stage(learner, 100, STAGES, Place()) is None
    assert client.heartbeat(learner, 1, 120, "constant").asked is None
    asked = client.ask_stage("next", "anna@desk")
    assert (asked.stage, asked.by, asked.at) == ("second", "anna@desk", league.clock.now())
    assert client.ask_stage("second", "bert@desk") == asked, "it is on its way already"
    assert client.heartbeat(learner, 2, 140, "constant").asked == asked
    (status,) = client.curricula()
    assert (status.stages, status.asked, status.step) == (STAGES, asked, 140)
    place = Place(index=1, since_step=150, by_hand=True, obeyed=asked.number)
    assert client.enter_stage(learner, 150, STAGES, place, "asked for by hand by anna@desk") is None
    assert client.heartbeat(learner, 3, 160, "league").asked is None
    (status,) = client.curricula()
    assert (status.place, status.asked, status.stage) == (place, None, STAGES[1])
    assert [event.text for event in events(league, "stage", "stage_asked")] == [
        "main is in stage 'first' at step 100",
        "anna@desk asks main to enter stage 'second'",
        "main enters stage 'second' at step 150: asked for by hand by anna@desk",
    ]


def test_the_newest_request_counts_and_one_can_be_taken_back(league):
    learner, client = league.open(), league.client
    client.enter_stage(learner, 0, STAGES, Place())
    client.ask_stage("second", "anna")
    client.ask_stage("last", "bert")
    assert client.heartbeat(learner, 1).asked.stage == "last"
    back = client.ask_stage("first", "anna")
    assert client.heartbeat(learner, 1).asked == back
    with pytest.raises(InvalidInput, match="in stage 'first' already"):
        client.ask_stage("first", "anna")


def test_a_learner_back_at_an_older_checkpoint_is_asked_again(league):
    first, client = league.open(), league.client
    client.enter_stage(first, 0, STAGES, Place())
    asked = client.ask_stage("last", "anna")
    client.enter_stage(first, 50, STAGES, Place(index=2, since_step=50, by_hand=True, obeyed=asked.number))
    second = league.open()
    assert client.enter_stage(second, 0, STAGES, Place()) == asked
    assert client.heartbeat(second, 1).asked == asked
    with pytest.raises(Fenced):
        client.enter_stage(first, 60, STAGES, Place())


def test_what_was_told_twice_is_one_event(league):
    learner = league.open()
    for _ in range(2):
        league.client.enter_stage(learner, 0, STAGES, Place())
    assert len(events(league, "stage")) == 1


@pytest.mark.parametrize(
    ("error", "sentence", "ask"),
    [
        (
            NotFound,
            "no learner of this league has told its stages yet",
            lambda c, _: c.ask_stage("next", "a"),
        ),
        (InvalidInput, "by is empty", lambda c, _: c.ask_stage("next", " ")),
        (InvalidInput, "by has 81 characters", lambda c, _: c.ask_stage("next", "a" * 81)),
        (InvalidInput, "each its own: a, a", lambda c, n: c.enter_stage(n, 0, [stage("a")] * 2, Place())),
        (InvalidInput, "stages = 0", lambda c, n: c.enter_stage(n, 0, [], Place())),
        (
            InvalidInput,
            "stages = 65",
            lambda c, n: c.enter_stage(n, 0, map(stage, map(str, range(65))), Place()),
        ),
        (InvalidInput, "stage 3 is none", lambda c, n: c.enter_stage(n, 0, STAGES, Place(index=3))),
        (InvalidInput, "obeyed = 900", lambda c, n: c.enter_stage(n, 0, STAGES, Place(obeyed=900))),
        (InvalidInput, "is no share", lambda c, n: c.enter_stage(n, 0, [stage("a", 1.5)], Place())),
        (
            InvalidInput,
            "a name in a stage has 81",
            lambda c, n: c.enter_stage(n, 0, [stage("a" * 81)], Place()),
        ),
        (InvalidInput, "trains nobody", lambda c, n: c.enter_stage(n + 1, 0, STAGES, Place())),
    ],
)
def test_what_can_not_be_told_or_asked(league, error, sentence, ask):
    learner = league.open()
    league.client.open_incarnation("evaluator-0")
    with pytest.raises(error, match=sentence):
        ask(league.client, learner)
    assert events(league, "stage", "stage_asked") == []


def stage(name, until_win_rate=1.0):
    return Stage(name=name, mix="league", until_win_rate=until_win_rate)


def test_a_request_is_there_after_kill_9_of_the_matchmaker(tmp_path):
    db = tmp_path / "league.db"
    with matchmaker(db) as process, MatchmakerClient(f"127.0.0.1:{ready_port(process)}") as client:
        client.register_players([live()])
        learner = client.open_incarnation("learner-main", "main").number
        client.enter_stage(learner, 0, STAGES, Place())
        asked = client.ask_stage("last", "anna@desk")
        process.kill()
        process.wait()
    with matchmaker(db) as process, MatchmakerClient(f"127.0.0.1:{ready_port(process)}") as client:
        assert client.heartbeat(learner, 1).asked == asked
        (status,) = client.curricula()
        assert (status.asked, status.stages) == (asked, STAGES)
    reader = matchmaker(db, "--read-only")
    with reader as process, MatchmakerClient(f"127.0.0.1:{ready_port(process)}") as client:
        assert client.curricula()[0].asked == asked
        with pytest.raises(Refused, match="only reads"):
            client.ask_stage("second", "anna")


# -- the command ------------------------------------------------------------------------------------


def said(capsys, *words):
    code = main(["stage", *words])
    told = capsys.readouterr()
    return code, told.out, told.err


def lines(text):
    return dict(line.split("\t", 1) for line in text.splitlines() if line.count("\t") == 1)


@pytest.fixture
def at(league):
    return ["--address", league.server.address]


def test_the_stages_are_shown_with_what_would_end_the_present_one(league, at, capsys):
    learner, client = league.open(), league.client
    client.enter_stage(learner, 300, STAGES, Place(since_step=300))
    client.heartbeat(learner, 1, 500, "constant")
    code, out, _ = said(capsys, *at)
    assert code == 0
    assert out.splitlines()[:2] == [
        "on\tstage\tmix\treward\tends_by_wins\tends_by_steps",
        "*\tfirst\tconstant\t\t70% of 4 against based\t900",
    ]
    shown = lines(out)
    assert (shown["stage"], shown["since step"], shown["now at step"]) == ("first", "300 (by itself)", "500")
    assert shown["measured"] == "nothing yet: no snapshot has been evaluated against based"
    assert shown["ended by"] == (
        "70% wins against based in at least 4 clean matches, or its time-out in 700 steps"
    )
    evaluator = client.open_incarnation("evaluator-0").number
    pairing = Pairing(player="main@2000", opponent="based", pairs=5, book=Book.EVAL, seed=1)
    found = client.acquire_pairings(evaluator, [pairing])
    outcomes = [float(a.seats[0].name == "main@2000") for a in found]
    outcomes[0] = 1.0 - outcomes[0]
    client.report_results(evaluator, [played(a, o) for a, o in zip(found, outcomes, strict=True)])
    _, out, _ = said(capsys, *at)
    # 9 of 10: Newcombe (1998) gives 0.5958 to 0.9821
    assert lines(out)["measured"] == (
        "main@2000 won 9 of 10: 90.0% (95 % Wilson interval 59.6% to 98.2%), goal reached"
    )


def test_a_stage_is_asked_for_by_name_and_taken_up(league, at, capsys):
    learner, client = league.open(), league.client
    client.enter_stage(learner, 0, STAGES, Place())
    code, out, err = said(capsys, "next", *at)
    assert (code, out) == (0, "")
    assert err == "main is asked to enter stage 'second': it does before its next rollout\n"
    _, out, _ = said(capsys, *at)
    assert lines(out)["asked for"].startswith("second by ")
    (event,) = events(league, "stage_asked")
    by = json.loads(event.data_json)["by"]
    assert by in event.text
    assert "@" in by
    client.enter_stage(learner, 9, STAGES, Place(index=1, since_step=9, by_hand=True, obeyed=event.position))
    shown = lines(said(capsys, *at)[1])
    assert shown["since step"] == "9 (by hand)"
    assert shown["ended by"] == "hand alone (bin/league stage next)"
    assert "asked for" not in shown
    client.enter_stage(learner, 99, STAGES, Place(index=2, since_step=99, obeyed=event.position))
    assert lines(said(capsys, *at)[1])["ended by"] == "the end of the run: it is the last stage"


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["secand"], 1, "main has no stage 'secand': did you mean 'second'?"),
        (["first"], 2, "main is in stage 'first' already: name another one"),
        (["next", "--player", "second"], 1, "'second' has no curriculum here: there are main"),
    ],
)
def test_bad_names_are_one_sentence(league, at, capsys, words, code, sentence):
    league.client.enter_stage(league.open(), 0, STAGES, Place())
    assert said(capsys, *words, *at) == (code, "", f"league: {sentence}\n")


def test_a_league_without_stages_and_a_learner_that_is_done(league, at, capsys):
    code, _, err = said(capsys, *at)
    assert (code, err.count("\n")) == (1, 1)
    assert "no learner of this league has told its stages yet" in err
    learner = league.open()
    league.client.enter_stage(learner, 0, STAGES, Place())
    league.client.heartbeat(learner, 1, 5000, "constant", "done")
    assert lines(said(capsys, *at)[1])["ended by"] == "nothing more: all steps are done"
    code, _, err = said(capsys, "next", *at)
    assert (code, err) == (
        1,
        "league: main has done all its steps: start the run again with more (--steps) first\n",
    )


def test_a_run_that_does_not_go_on_is_shown_and_not_changed(tmp_path, capsys):
    with small_league(tmp_path) as league:
        league.client.enter_stage(league.open(), 0, STAGES, Place())
    assert said(capsys, "--run-dir", str(tmp_path))[0] == 0
    code, _, err = said(capsys, "next", "--run-dir", str(tmp_path))
    assert (code, err.count("\n")) == (1, 1)
    assert f"{tmp_path} is not going on: start it again" in err


# -- a real learner ---------------------------------------------------------------------------------

SETTINGS = (
    "curriculum.stages=[{name='wait', mix='constant', manual=true}, "
    "{name='short', mix='league', max_steps=512}, {name='end', mix='past'}]",
    "learner.checkpoint_seconds=0.1",
)
MIXES = {"constant": {"constant": 1.0}, "league": {"random": 1.0}, "past": {"based": 1.0}}


@pytest.mark.timeout(400)  # processes on a machine that may be busy
def test_a_learner_obeys_once_over_kill_9_and_goes_on_as_before(tmp_path):
    with small_league(tmp_path, snapshots=(), mixes=MIXES) as league:
        client, at = league.client, league.server.address
        with learner(at, tmp_path, "--steps", "100000") as running:
            wait_for(lambda: [one for one in client.curricula() if one.step >= 512])
            assert client.curricula()[0].stage.name == "wait", "nothing ends it by itself"
            client.ask_stage("next", "anna@desk")
            wait_for(lambda: client.curricula()[0].stage.name == "end")
            kept = kill_behind_its_checkpoint(running, client.curricula()[0].place.since_step, tmp_path)
        entered = [event.text for event in events(league, "stage")]
        assert len(entered) == 3
        assert "asked for by hand by anna@desk" in entered[1]
        assert "in 512 steps and is left" in entered[2]
        before = matches_by_mix(league)
        client.ask_stage("wait", "bert@desk")  # while nobody is there
        with learner(at, tmp_path, "--steps", "100000") as running:
            wait_for(lambda: client.curricula()[0].stage.name == "wait")
            place = client.curricula()[0].place
            assert place.since_step == kept, "before its first rollout"
            wait_for(lambda: client.curricula()[0].step >= place.since_step + 1024)
            running.send_signal(signal.SIGTERM)
            assert running.wait(60) == 0
        assert client.curricula()[0].place == place
        entered = [event.text for event in events(league, "stage")]
        assert len(entered) == 4, "the first request is not obeyed again"
        assert "enters stage 'wait'" in entered[3]
        after = matches_by_mix(league)
        assert after.keys() == {"constant", "league", "past"}
        assert after["constant"] > before["constant"], "it plays the mix that was asked for"
    log = (tmp_path / "learner.log").read_text()
    assert log.count("asked for by hand by anna@desk") == 1
    assert log.count("asked for by hand by bert@desk") == 1


def matches_by_mix(league):
    with league.server.store.read() as reader:
        return {mix: count for _, mix, _, count in reader.category_counts()}


def kill_behind_its_checkpoint(process, step, folder):
    checkpoints = folder / "learner-main" / "checkpoints"

    def newest():
        return max(
            (int(file.stem.removeprefix("step_")) for file in checkpoints.glob("step_*.pt")), default=0
        )

    wait_for(lambda: newest() > step)
    process.kill()
    process.wait()
    return newest()


class learner:  # noqa: N801
    """The process, ended with the block."""

    def __init__(self, address, folder, *flags):
        command = [sys.executable, "-m", "learner", "--matchmaker", address, "--run-dir", str(folder)]
        chosen = [part for setting in SETTINGS for part in ("--set", setting)]
        mixes = ["--set", "matchmaker.mixes={constant={constant=1.0}, league={random=1.0}, past={based=1.0}}"]
        with open(folder / "learner.log", "a") as log:
            self.process = subprocess.Popen(
                [*command, "--preset", "smoke", "--cpu", *chosen, *mixes, *flags],
                stderr=log,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
            )

    def __enter__(self):
        return self.process

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


def wait_for(condition, seconds=120):
    limit = time.monotonic() + seconds
    while time.monotonic() < limit:
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("waited too long")
