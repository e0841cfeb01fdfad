"""Small set-ups for the tests of `bin/league profile`, and a row of what it measures."""

import torch

from league.settings.base import resolve
from learner.profile.opponents import make_snapshots, mix_of
from learner.profile.pipeline import Pipeline
from learner.profile.rows import Row
from learner.profile.worker import Measured, session_settings

FACTS = {
    "device": "cpu",
    "gpu": None,
    "processor": "a processor",
    "cores": 2,
    "load_average": [0.5, 0.5, 0.5],
}
SMALL = ["learner.matches=8", "learner.n_steps=8", "learner.batch_size=32"]
KUHN = [*SMALL, "agent.sequence_length=17", "curriculum.stages=[{name='league', mix='league'}]"]
KUHN += ["matchmaker.mixes={league={self=1.0, random=1.0}}"]


def kuhn(factory, *more):
    name = f'game.name="python:profiled_games:{factory}"' if factory else 'game.name="kuhn"'
    return resolve("board", None, [name, *KUHN, *more], environment={})


def pipeline_of(sections, folder):
    settings = session_settings(sections)
    mix = mix_of(sections, settings)
    snapshots = make_snapshots(folder / "blobs", settings, 3) if "snapshots" in mix else []
    torch.set_num_threads(1)
    device = torch.device("cpu")
    return Pipeline(settings, mix, snapshots, folder / "blobs", folder, device)


def row(steps=1000, changes=None, **parts):
    """A row of two bursts; the second took twice as long."""
    parts = {
        "game": 0.1,
        "opponents": 0.2,
        "inference": 0.3,
        "learning": 0.4,
        "other": 0.0,
        **parts,
    }
    bursts = [
        {
            "steps": steps,
            "seconds": factor * sum(parts.values()),
            "parts": {kind: factor * seconds for kind, seconds in parts.items()},
            "cpu_seconds": factor * sum(parts.values()) * 0.9,
            "measured_seconds": 1.0,
            "whole": True,
            "matches_ended": 2,
        }
        for factor in (1.0, 2.0)
    ]
    made = Row(changes or {"matches": 8, "batch_size": 32, "threads": 1})
    made.add(Measured(bursts=bursts, memory={"peak_resident_bytes": 5 << 20}))
    return made
