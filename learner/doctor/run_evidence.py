"""What a run folder's files tell: the learner's scalars and tables, its newest checkpoint, clean matches."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from league.agent.config import AgentConfig
from league.agent.network import AgentNetwork
from league.config import resolve
from league.errors import NotFound
from league.players import PayoffCell
from learner.checkpoint import CheckpointFolder, Values
from learner.doctor.setup import SetUp, set_up_of

Series = tuple[float, ...]
Row = dict[str, str]


@dataclass(frozen=True, kw_only=True)
class RunEvidence:
    """One learner's files.

    Attributes:
        folder: the run. name: of the learner.
        scalars: TensorBoard's values by tag, in order of the steps; the newest of each step.
        matches: rows of monitor.csv. rewards: rows of reward_breakdown.csv, one an update.
        clean: clean matches of this learner's snapshots against each opponent.
        set_up: the run's settings with the newest checkpoint's network.
        step: of that checkpoint, 0 when there is none.
    """

    folder: Path
    name: str
    scalars: dict[str, Series]
    matches: Sequence[Row]
    rewards: Sequence[Row]
    set_up: SetUp
    step: int = 0
    clean: Sequence[PayoffCell] = field(default_factory=tuple)

    def scalar(self, tag: str) -> Series:
        return self.scalars.get(tag, ())

    def late(self, tag: str) -> Series:
        """The last fifth of a tag's values, at least ten where there are as many."""
        values = self.scalar(tag)
        return values[-max(10, len(values) // 5) :]


def read_run(folder: Path, name: str = "main", clean: Sequence[PayoffCell] = ()) -> RunEvidence:
    """Reads a run; raises `NotFound` when there is nothing to read yet, `ConfigError`, `DataCorrupt`."""
    learner = folder / f"learner-{name}"
    config = folder / "config.toml"
    if not config.is_file():
        raise NotFound(f"{folder} has no config.toml: name the folder of a run with --run-dir")
    if not learner.is_dir():
        raise NotFound(f"{folder} has no learner-{name} yet: wait for its first update, or name another")
    saved = CheckpointFolder(learner / "checkpoints").read_newest()
    scalars = read_scalars(learner / "tensorboard")
    return RunEvidence(
        folder=folder,
        name=name,
        scalars=scalars,
        matches=read_table(learner / "monitor.csv"),
        rewards=read_table(learner / "reward_breakdown.csv"),
        set_up=_set_up(config, saved, scalars),
        step=int(saved["algorithm"]["num_timesteps"]) if saved is not None else 0,
        clean=tuple(clean),
    )


def _set_up(config: Path, saved: Values | None, scalars: dict[str, Series]) -> SetUp:
    """The run's settings as they are now: stage, step size and weights of its newest checkpoint."""
    sections = resolve(None, config, environment={})
    if saved is None:
        return set_up_of(sections)
    rate = scalars.get("learning/rate", ())
    if rate:
        sections["learner"] |= {"learning_rate": rate[-1], "learning_rate_final": None}
    weights = saved["algorithm"]["network"]

    def loaded(agent: AgentConfig) -> AgentNetwork:
        network = AgentNetwork(agent)
        network.load_state_dict(weights)
        return network

    return replace(set_up_of(sections, saved["curriculum"]["index"]), network=loaded)


def read_scalars(folder: Path) -> dict[str, Series]:
    """Every scalar of the event files under `folder`; a step that was trained twice counts as it was last."""
    if not folder.is_dir():
        return {}
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    by_step: dict[str, dict[int, float]] = {}
    for file in sorted(folder.rglob("events.out.tfevents.*")):
        events = EventAccumulator(str(file), size_guidance={"scalars": 0})
        events.Reload()
        for tag in events.Tags()["scalars"]:
            by_step.setdefault(tag, {}).update({one.step: one.value for one in events.Scalars(tag)})
    return {tag: tuple(value for _, value in sorted(values.items())) for tag, values in by_step.items()}


def read_table(path: Path) -> list[Row]:
    """Whole rows of a CSV; none when it is not there. Lines that begin with # are its head."""
    if not path.is_file():
        return []
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    return [row for row in rows if None not in row.values()]
