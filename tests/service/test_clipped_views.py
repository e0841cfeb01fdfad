"""An environment that shows values outside its declared bounds is named while a league trains."""

from __future__ import annotations

from pathlib import Path

from learner_process import learners

from league.rpc.client import MatchmakerClient
from league.runs.alarms import of_metrics
from league.runs.folder import write_config
from league.settings.base import resolve
from learner.doctor.findings import Verdict
from learner.doctor.run import judge_run, read_run
from matchmaker.api.server import MatchmakerServer
from matchmaker.settings import MatchmakerSettings

SETTINGS = (
    'game.name="pettingzoo:signals:Signals"',
    "game.options.workers=1",
    "learner.matches=8",
    "learner.n_steps=16",
    "learner.batch_size=64",
    "learner.steps=384",
)


def test_clipped_values_are_told_during_the_run_and_by_the_doctor(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    sections = resolve("board", assignments=SETTINGS, environment={})
    write_config(config, sections)
    with (
        MatchmakerServer(tmp_path / "league.db", 0, MatchmakerSettings.of(sections)) as server,
        MatchmakerClient(server.address) as client,
        learners(tmp_path) as start,
    ):
        assert start(server.address, "--preset", "board", "--config", str(config)).wait() == 0
        (worker,) = client.status().workers
    names = {"left___1m_/1/0/1", "right/1/0/1"}
    told = {alarm.subject: alarm for alarm in of_metrics(worker.metrics)}
    assert told.keys() >= names
    log = (tmp_path / "learner.log").read_text(encoding="utf-8")
    assert all(log.count(told[name].sentence.split(",")[0]) == 1 for name in names), log
    assert "\x1b" not in log
    (finding,) = [one for one in judge_run(read_run(tmp_path)) if one.key == "C"]
    assert finding.verdict is Verdict.WARNING
    assert "outside 0 to 1" in finding.measured
