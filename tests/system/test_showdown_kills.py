"""kill -9 of Node, of the environment's workers and of the learner while a league trains on
Showdown: no acknowledged result is lost, none counts twice, and training resumes whole.

KUMITE_KILLS=30 python -m pytest -m slow -s tests/system/test_showdown_kills.py
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import noting_league
import pytest
from test_kills import CARRIED_TWICE
from test_league import League, assert_whole

from league.errors import ConfigError, Unavailable
from league.games.showdown.install import installed

pytest.importorskip("poke_env")
try:
    installed()
except ConfigError as error:
    pytest.skip(str(error), allow_module_level=True)

KILLS = int(os.environ.get("KUMITE_KILLS", "4"))
SEED = 7
UNAWAITED = 0.25
"""The share of kills that don't wait until the learner has made steps: most meet a start."""
KILLED = 1
"""How a league exits of which a process, here one that has just been started, was late to stop."""
KINDS = {"node": "simulator.js", "worker": "league.games.showdown.worker", "learner": "learner"}
"""What is killed, by a word of its command line."""
SETTINGS = (
    *("learner.matches=8", "learner.n_steps=16", "learner.batch_size=64", "learner.n_epochs=1"),
    *("learner.snapshot_interval=512", "game.options.workers=1"),
    *("evaluator.matches_per_snapshot=6", "evaluator.milestone_matches=4", "evaluator.nice=0"),
)
STARTS = "SELECT * FROM incarnations WHERE worker = 'learner-main'"
FORGOTTEN = """
SELECT position FROM lost_results l JOIN results r USING (position)
JOIN incarnations i ON i.number = l.incarnation
WHERE max(r.end_step0, r.end_step1) <= i.checkpoint_step
"""
PLAYED_TWICE = f"""
SELECT position FROM results r JOIN ({STARTS}) before ON before.number = r.incarnation
JOIN ({STARTS}) i ON i.number > before.number
WHERE max(r.end_step0, r.end_step1) > i.checkpoint_step
AND position NOT IN (SELECT position FROM lost_results)
"""


class KilledShowdown:
    """A league, of which `kill` kills something."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.killed, self.resumed = folder, Counter[str](), 0
        self.seen: dict[int, str] = {}
        self.league = self.start(1_000_000)

    def start(self, steps: int) -> League:
        settings = (word for one in SETTINGS for word in ("--set", one))
        flags = ("--preset", "showdown", *settings, "--steps", str(steps))
        self.league = League(self.folder, *flags, program=(noting_league.__file__,))
        return self.league

    def members(self) -> dict[str, list[int]]:
        """The ids of the processes to kill, by kind."""
        found: dict[str, list[int]] = {kind: [] for kind in KINDS}
        queue = [self.league.process.pid]
        for pid in queue:  # grows
            try:
                queue += map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
                words = Path(f"/proc/{pid}/cmdline").read_text()
            except OSError:  # it has just ended
                continue
            for kind, word in KINDS.items():
                if any(Path(one).name == word for one in words.split("\0")[:3]):
                    found[kind].append(pid)
                    self.seen[pid] = words
        return found

    def until(self, condition: Callable[[], object]) -> None:
        """Waits; a league that gave up, as it does when a process dies often, starts again."""
        while not condition():
            if (code := self.league.process.poll()) is not None:
                assert code == Unavailable.exit_code, self.league.words
                assert "ended 6 times within 5 minutes" in self.league.words
                self.resumed += 1
                self.start(1_000_000)
            time.sleep(0.1)

    def kill(self, kind: str, draws: random.Random) -> None:
        """Kills one process of a kind at a random moment."""
        self.league.started_at = time.time()
        if draws.random() >= UNAWAITED:
            self.until(self.trains)
        time.sleep(draws.uniform(0.0, 6.0))
        self.until(lambda: self.members()[kind])
        with contextlib.suppress(ProcessLookupError, IndexError):  # it has just ended
            os.kill(draws.choice(self.members()[kind]), signal.SIGKILL)
            self.killed[kind] += 1

    def trains(self) -> bool:
        """Whether the learner has made steps since the last kill."""
        return bool(self.members()["learner"]) and self.league.steps() > 0

    def left(self) -> list[int]:
        """Processes that still run."""

        def words(pid: int) -> str:
            try:
                return Path(f"/proc/{pid}/cmdline").read_text()
            except OSError:
                return ""

        return [pid for pid, before in self.seen.items() if words(pid) == before]


@pytest.mark.slow
@pytest.mark.timeout(600 + 30 * KILLS)
@pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")
def test_kills_lose_no_acknowledged_result_and_training_resumes_whole(tmp_path: Path) -> None:
    began, draws = time.monotonic(), random.Random(SEED)
    run = KilledShowdown(tmp_path / "run")
    try:
        run.until(lambda: run.league.steps() >= 640)  # after a checkpoint that has results
        kinds = (list(KINDS) * KILLS)[:KILLS]
        draws.shuffle(kinds)
        for kind in kinds:
            run.kill(kind, draws)
        run.league.started_at = time.time()
        run.until(run.trains)
        run.league.process.send_signal(signal.SIGINT)
        assert run.league.process.wait() in (0, KILLED), run.league.words
        reached = saved(run.league)
        league = run.start(reached + 128)
        while league.process.poll() is None:
            run.members()
            time.sleep(0.2)
        assert league.process.returncode == 0, league.words
    finally:
        run.league.process.kill()
        run.league.process.wait()
    assert not run.left(), "processes of the league are left"
    assert "its steps" in league.words
    assert saved(league) >= reached + 128
    print(f"\n{checked(run, reached)}, {time.monotonic() - began:.0f} s")


def saved(league: League) -> int:
    """The step of the newest snapshot."""
    ((step,),) = league.query("SELECT max(step) FROM players WHERE kind = 'snapshot'")
    assert isinstance(step, int), league.words
    return step


def checked(run: KilledShowdown, reached: int) -> str:
    """Compares what processes were told with the log; returns the counts in words."""
    league = run.league
    assert_whole(league)
    noted = [line.split() for line in (run.folder / "acknowledged").read_text().splitlines()]
    acknowledged = {match: int(position) for match, position in noted}
    assert acknowledged
    assert len(acknowledged) == len(noted), "a result was acknowledged twice"
    rows = league.query(
        "SELECT match_id, r.position FROM results r JOIN assignments USING (ordinal)"
    )
    stored = dict(rows)
    assert len(stored) == len(rows), "a match has two results"
    missing = {match for match, position in acknowledged.items() if stored.get(match) != position}
    assert not missing, f"{len(missing)} acknowledged results are not where they were said to be"
    assert not league.query(CARRIED_TWICE), "a carried match counts under both its ids"
    assert not league.query(FORGOTTEN), "results of before a checkpoint were given up"
    assert not league.query(PLAYED_TWICE), "results of after a checkpoint count beside the new ones"
    starts = league.query(f"SELECT checkpoint_step FROM ({STARTS}) ORDER BY number")
    assert starts == sorted(starts), "training fell back"  # type: ignore[type-var]
    assert starts[-1] == (reached,)
    failures = league.query("SELECT failure, count(*) FROM results WHERE failed GROUP BY failure")
    (lost,) = league.query("SELECT count(*) FROM lost_results")
    kills = ", ".join(f"{kind} {count} times" for kind, count in run.killed.items())
    return (
        f"killed: {kills}; the league was started again {run.resumed} times; {len(acknowledged):,} "
        f"results acknowledged, {len(stored):,} in the log, {lost[0]:,} of a lost branch; "
        f"failed: {dict(failures)}; learner started from {[step for (step,) in starts]}, ended at "
        f"{saved(league)}"
    )
