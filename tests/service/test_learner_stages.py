"""A learner's process obeys who asks it for another stage, once, over kill -9."""

import signal

import pytest
from learner_process import learners, snapshots
from small_league import small_league
from staged import events
from waiting import wait_for

SETTINGS = (
    "curriculum.stages=[{name='wait', mix='constant'}, "
    "{name='short', mix='league', max_steps=512}, {name='end', mix='past'}]",
    "matchmaker.mixes={constant={constant=1.0}, league={random=1.0}, past={based=1.0}}",
)
FLAGS = ["--steps", "100000", *(word for setting in SETTINGS for word in ("--set", setting))]
MIXES = {"constant": {"constant": 1.0}, "league": {"random": 1.0}, "past": {"based": 1.0}}


@pytest.mark.timeout(400)  # processes on a machine that may be busy
def test_a_learner_obeys_once_over_kill_9_and_goes_on_as_before(tmp_path):
    with small_league(tmp_path, snapshots=(), mixes=MIXES) as league:
        client, at = league.client, league.server.address
        with learners(tmp_path, checkpoint_seconds=0.1) as begin:
            running = begin(at, *FLAGS)
            wait_for(lambda: [one for one in client.curricula() if one.step >= 512])
            assert client.curricula()[0].stage.name == "wait", "nothing ends it by itself"
            client.ask_stage("next", "anna@desk")
            wait_for(lambda: client.curricula()[0].stage.name == "end")
            kept = kill_behind_its_checkpoint(
                running, client.curricula()[0].place.since_step, tmp_path
            )
        entered = [event.text for event in events(league, "stage")]
        assert len(entered) == 3
        assert "anna@desk" in entered[1]
        assert "512 steps" in entered[2]
        before = matches_by_mix(league)
        client.ask_stage("wait", "bert@desk")  # while no learner runs
        with learners(tmp_path, checkpoint_seconds=0.1) as begin:
            running = begin(at, *FLAGS)
            wait_for(lambda: client.curricula()[0].stage.name == "wait")
            place = client.curricula()[0].place
            assert place.since_step == kept, "before its first rollout"
            wait_for(lambda: client.curricula()[0].step >= place.since_step + 1024)
            running.send_signal(signal.SIGTERM)
            assert running.wait() == 0
        assert client.curricula()[0].place == place
        entered = [event.text for event in events(league, "stage")]
        assert len(entered) == 4, "the first request is not obeyed again"
        assert "enters stage 'wait'" in entered[3]
        after = matches_by_mix(league)
        assert after.keys() == {"constant", "league", "past"}
        assert after["constant"] > before["constant"], "it plays the mix that was asked for"
    log = (tmp_path / "learner.log").read_text()
    assert (log.count("anna@desk"), log.count("bert@desk")) == (1, 1)


def test_snapshots_come_half_as_often_in_stages_without_a_goal(tmp_path):
    stages = (
        "curriculum.stages=[{name='often', mix='league', until_opponent='random', "
        "until_win_rate=0.99, max_steps=1024}, {name='seldom', mix='league', max_steps=2048}, "
        "{name='end', mix='league'}]",
        "learner.snapshot_interval=512",
    )
    flags = [word for setting in stages for word in ("--set", setting)]
    with small_league(tmp_path, snapshots=(), mixes=MIXES) as league:
        with learners(tmp_path) as begin:
            assert begin(league.server.address, "--steps", "4096", *flags).wait() == 0
        frozen = [one.step for one in snapshots(league.client)]
    assert frozen == [512, 1024, 2048, 3072, 4096]


def matches_by_mix(league):
    with league.server.store.read() as reader:
        return {mix: count for (_, mix, _), count in reader.category_counts().items()}


def kill_behind_its_checkpoint(process, step, folder):
    checkpoints = folder / "learner-main" / "checkpoints"

    def newest():
        return max(
            (int(file.stem.removeprefix("step_")) for file in checkpoints.glob("step_*.pt")),
            default=0,
        )

    wait_for(lambda: newest() > step)
    process.kill()
    process.wait()
    return newest()
