"""A learner's process holds while an operator has paused the learners, also over kill -9."""

import signal

import pytest
from learner_process import learners
from small_league import small_league
from waiting import wait_for

from league.status import PAUSED, STALLED

MIXES = {"league": {"random": 1.0}}
SETTINGS = ("curriculum.stages=[{name='all', mix='league'}]", "learner.snapshot_interval=100000")
FLAGS = ["--steps", "100000", *(word for setting in SETTINGS for word in ("--set", setting))]


@pytest.mark.long
@pytest.mark.timeout(400)  # processes on a machine that may be busy
def test_a_learner_holds_over_kill_9_and_goes_on(tmp_path):
    with small_league(tmp_path, snapshots=(), mixes=MIXES) as league:
        client = league.client

        def worker():
            return next(iter(client.status().workers), None)

        def beat():
            """Waits for another heartbeat of the learner. Returns its status."""
            league.clock.advance(1.0)
            wait_for(lambda: worker().last_beat_at == league.clock.now())
            return worker()

        with learners(tmp_path) as begin:
            running = begin(league.server.address, *FLAGS)
            wait_for(lambda: worker() and worker().step >= 512)
            client.pause_learners("anna@desk")
            wait_for(lambda: worker().activity == PAUSED)
            held = worker()
            assert [beat().step, beat().step] == [held.step, held.step]
            assert STALLED not in worker().metrics
            assert worker().metrics.get("rate/steps_per_second", 0.0) == 0.0
            checkpoints = tmp_path / "learner-main" / "checkpoints"
            assert (checkpoints / f"step_{held.step:012}.pt").exists(), "a kill loses no step"
            running.kill()
            running.wait()
            running = begin(league.server.address, *FLAGS)
            wait_for(lambda: worker().incarnation > held.incarnation)
            wait_for(lambda: worker().activity == PAUSED)
            assert [beat().step, beat().step] == [held.step, held.step]
            assert client.status().open_leases > 0
            client.pause_learners("anna@desk", resume=True)
            wait_for(lambda: worker().step > held.step)
            client.pause_learners("anna@desk")
            wait_for(lambda: worker().activity == PAUSED)
            running.send_signal(signal.SIGTERM)
            assert running.wait() == 0
            assert worker().activity == "stopped"
