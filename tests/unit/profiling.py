"""Small set-ups for the tests of `bin/league profile`, and a row of what it measures."""

import torch

from league.settings.base import resolve
from learner.profile.measuring import Burst, Measured, Order, Pipeline
from learner.profile.sweep import Row

FACTS = {"device": "cpu", "gpu": None, "processor": "a processor", "cores": 2}
FACTS |= {"load_average": 0.5, "cpu_ranks": 1}
SMALL = ["learner.matches=8", "learner.n_steps=8", "learner.batch_size=32"]
KUHN = [*SMALL, "agent.sequence_length=17", "curriculum.stages=[{name='league', mix='league'}]"]
KUHN += ["matchmaker.mixes={league={self=1.0, random=1.0}}"]
PARTS = {"game": 0.1, "opponents": 0.2, "inference": 0.3, "learning": 0.4, "other": 0.0}


def kuhn(factory, *more):
    name = f'game.name="python:profiled_games:{factory}"' if factory else 'game.name="kuhn"'
    return resolve("board", None, [name, *KUHN, *more], environment={})


def order(sections, folder):
    return Order(sections=sections, device="cpu", snapshots=(), blobs=folder, seconds=0.1, bursts=1)


def pipeline_of(sections, folder):
    torch.set_num_threads(1)
    return Pipeline(order(sections, folder / "blobs"), folder)


def row(steps=1000, changes=None, *, busy=0.9, **parts):
    """A row of two bursts; the second took twice as long."""
    bursts = []
    for factor in (1.0, 2.0):
        spent = {kind: factor * seconds for kind, seconds in (PARTS | parts).items()}
        total = sum(spent.values())
        burst = Burst(
            steps=steps, seconds=total, parts=spent, cpu_seconds=busy * total, matches_ended=2
        )
        bursts.append(burst)
    made = Row(changes or {"matches": 8, "batch_size": 32, "threads": 1})
    made.add(Measured(bursts=bursts, memory={"peak_resident_bytes": 5 << 20}))
    return made
