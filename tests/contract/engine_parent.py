"""Starts a process by an engine, prints its id, and waits: ``engine_parent.py ENGINE FOLDER``."""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from engine_contract import SLEEPS, spec_of

from league.cluster.engine import Engine, LocalChild


def main(name: str, folder: Path) -> None:
    engine: Engine = LocalChild
    if name == "ray":
        from test_engine_ray import ray_engine

        engine = ray_engine(folder)
    child = engine(spec_of(SLEEPS, folder))
    while not child.pid:
        time.sleep(0.05)
    print(child.pid, flush=True)
    time.sleep(600)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
