"""Lets the `SubmittedAgent` of a file play as in the tournament, in one process a match.

    python -I ai2_seat.py FILE

It needs Python 3.10 and numpy alone, and refuses the file anything more. Its first line of output
is {"start_seconds": …}; then it reads an observation of the original a line, a JSON list, and
answers each with {"action": […], "ms": …}.
"""

import importlib.abc
import importlib.util
import json
import os
import sys
import time
import types
from typing import Any


class Agent:
    """What an agent without files meets of the original's base class."""

    def __init__(self, file_path: Any = None) -> None:
        self.file_path = self._gdown() if file_path is None else file_path
        self.initialized = False

    def get_env_info(self, env: Any) -> None:
        self.env = env
        self._initialize()
        self.initialized = True

    def _gdown(self) -> Any:
        return None

    def _initialize(self) -> None:
        pass

    def save(self, file_path: str) -> None:
        pass

    def reset(self) -> None:
        pass


class Refusal(importlib.abc.MetaPathFinder):
    """Finds nothing but the standard library and numpy."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name.partition(".")[0] not in {*sys.stdlib_module_names, "numpy"}:
            raise ModuleNotFoundError(f"{name} is not in the standard library, and is not numpy")


def main(file: str) -> None:
    """Plays until the input ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the agent prints
    import numpy as np

    sys.meta_path.insert(0, Refusal())
    for name in ("environment", "environment.agent"):
        sys.modules[name] = types.ModuleType(name)
    sys.modules["environment.agent"].Agent = Agent  # type: ignore[attr-defined]
    began = time.perf_counter()
    spec = importlib.util.spec_from_file_location("my_agent", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    agent = module.SubmittedAgent()
    if callable(agent):
        sys.exit("its SubmittedAgent can be called, and the tournament would: take out __call__")
    agent.get_env_info(None)
    print(json.dumps({"start_seconds": time.perf_counter() - began}), file=answers, flush=True)
    for line in sys.stdin:
        seen = np.array(json.loads(line))
        began = time.perf_counter()
        action = agent.predict(seen)
        ms = (time.perf_counter() - began) * 1000.0
        answer = {"action": np.asarray(action, float).tolist(), "ms": ms}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
