"""What a run folder's files tell: the learner's scalars and tables, its newest checkpoint, clean
matches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from league.agent.config import AgentConfig
from league.agent.network import AgentNetwork
from league.cluster.settings import SupervisorSettings
from league.errors import NotFound
from league.players import PayoffCell, Role
from league.runs.alarm_watch import AlarmWatch
from league.runs.alarms import Alarm, largest_entropy
from league.runs.records import Row, Series, read_rows, read_scalars, read_updates
from league.settings.base import Sections, resolve
from learner.doctor.findings import Finding, unknown
from learner.doctor.setup import SetUp, set_up_of
from learner.settings import LearnerSettings
from learner.train.checkpoint import CheckpointFolder, Values

FEWEST_UPDATES, FEWEST_MATCHES = 10, 40
"""Fewer tell nothing."""


@dataclass(frozen=True, kw_only=True)
class RunEvidence:
    """One learner's files.

    Attributes:
        folder: the run. name: of the learner. scalars: TensorBoard's values by tag. matches: rows
        of monitor.csv. rewards: rows of reward_breakdown.csv, one an update. clean: clean matches
        of this learner's snapshots against each opponent. set_up: the run's settings with the
        newest checkpoint's network. learner: the settings as they were written; those of `set_up`
        have the newest step size and clip. step: of that checkpoint, 0 when there is none.
        stage_start: step at which its stage began. alarms: those of `league.runs.alarms` that were
        on at the end, found from the files alone.
    """

    folder: Path
    name: str
    scalars: Mapping[str, Series]
    matches: Sequence[Row]
    rewards: Sequence[Row]
    set_up: SetUp
    learner: LearnerSettings
    step: int = 0
    stage_start: int = 0
    clean: Sequence[PayoffCell] = field(default_factory=tuple)
    alarms: Sequence[Alarm] = field(default_factory=tuple)

    def scalar(self, tag: str) -> tuple[float, ...]:
        return tuple(self.at_steps(tag).values())

    def at_steps(self, tag: str) -> dict[int, float]:
        """A tag's values by learner step."""
        series = self.scalars.get(tag)
        return (
            {}
            if series is None
            else dict(zip(series.steps.tolist(), series.values.tolist(), strict=True))
        )

    def alarms_of(self, *kinds: str) -> list[Alarm]:
        return [alarm for alarm in self.alarms if alarm.kind in kinds]

    def late(self, tag: str) -> tuple[float, ...]:
        """The last fifth of a tag's values, at least ten where there are as many."""
        values = self.scalar(tag)
        return values[-max(10, len(values) // 5) :]


def too_short(key: str, what: str) -> Finding:
    """A reason that the run's files say too little of."""
    return unknown(key, f"too little to judge: {what}")


def read_run(folder: Path, name: str = "main", clean: Sequence[PayoffCell] = ()) -> RunEvidence:
    """Reads a run; raises `NotFound` when there is nothing to read yet, `ConfigError`,
    `DataCorrupt`.
    """
    learner = folder / f"learner-{name}"
    config = folder / "config.toml"
    if not config.is_file():
        raise NotFound(f"{folder} has no config.toml: name the folder of a run with --run-dir")
    if not learner.is_dir():
        raise NotFound(
            f"{folder} has no learner-{name} yet: wait for its first update, or name another"
        )
    saved = _checkpoints(learner).read_newest()
    scalars = read_scalars(learner / "tensorboard")
    sections, role = _own_settings(config, learner, name)
    settings = sections.of(LearnerSettings)
    set_up = _set_up(sections, saved, scalars, role)
    stage_start = 0 if saved is None else int(saved["curriculum"]["stage_start"])
    return RunEvidence(
        folder=folder,
        name=name,
        scalars=scalars,
        matches=read_rows(learner / "monitor.csv"),
        rewards=read_rows(learner / "reward_breakdown.csv"),
        set_up=set_up,
        learner=settings,
        stage_start=stage_start,
        step=int(saved["algorithm"]["num_timesteps"]) if saved is not None else 0,
        clean=tuple(clean),
        alarms=_alarms(learner, set_up, stage_start),
    )


def _checkpoints(learner: Path) -> CheckpointFolder:
    """Of the learner, or of the newest generation of one that begins anew."""
    generations = sorted(
        learner.glob("generation-*"), key=lambda place: int(place.name.rpartition("-")[2])
    )
    return CheckpointFolder((generations[-1] if generations else learner) / "checkpoints")


def _own_settings(config: Path, learner: Path, name: str) -> tuple[Sections, Role]:
    """The run's settings with those of the learner's own over them, and what it is there for."""
    sections = resolve(None, config, environment={})
    entries = sections.of(SupervisorSettings).learners
    for entry in entries:
        if entry.name == name:
            return resolve(None, config, entry.set, environment={}), Role(entry.role)
    by_hand = any(learner.glob("generation-*"))  # both kinds of exploiters take the same settings
    return sections, Role.MAIN_EXPLOITER if by_hand else Role.MAIN


def _alarms(learner: Path, set_up: SetUp, stage_start: int) -> tuple[Alarm, ...]:
    """What the learner's own watch would say now, had it seen the whole stage."""
    spec, settings = set_up.spec, set_up.settings.learner
    weights = dict(zip(spec.reward_terms, set_up.weights_K.tolist(), strict=True))

    def weights_at(step: int) -> Mapping[str, float]:
        return weights if step > stage_start else {}

    watch = AlarmWatch(
        largest_entropy(spec.action_kind, spec.action_size),
        settings.desired_kl or settings.target_kl,
    )
    for update in read_updates(learner, weights_at):
        watch.update(update)
    return tuple(watch.active.values())


def _set_up(
    sections: Sections, saved: Values | None, scalars: Mapping[str, Series], role: Role
) -> SetUp:
    """The run's settings as they are now: stage, step size, clip and weights of its newest
    checkpoint.
    """
    if saved is None:
        return set_up_of(sections, role=role)
    for setting, name in (("learning_rate", "learning/rate"), ("clip_range", "policy/clip_range")):
        if name in scalars:
            newest = float(scalars[name].values[-1])
            sections["learner"] |= {setting: newest, f"{setting}_final": None}
    weights = saved["algorithm"]["network"]

    def loaded(agent: AgentConfig) -> AgentNetwork:
        network = AgentNetwork(agent)
        network.load_state_dict(weights)
        return network

    return replace(set_up_of(sections, saved["curriculum"]["index"], role), network=loaded)
