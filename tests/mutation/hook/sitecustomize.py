"""In a process that a test starts: its mutant, or a record of the functions that the process calls.

Python imports this file at start when its folder is on PYTHONPATH; red.py puts it there.
"""

import os
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path


def become(word: str) -> None:
    """Lets the named mutant be imported in its module's place."""
    sys.path.append(str(Path(__file__).parents[1]))
    from mutants import Mutant

    mutant = Mutant.parse(word)
    unchanged = SourceFileLoader.get_code

    def get_code(self, name):
        return mutant.module()[0] if self.path == mutant.path else unchanged(self, name)

    SourceFileLoader.get_code = get_code


def record(calls: str, root: str) -> None:
    """Appends a line for each function's first call: also a killed process leaves them."""
    import threading

    test = os.environ.get("PYTEST_CURRENT_TEST", "").rsplit(" ", 1)[0]
    file = os.open(calls, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    seen = set()

    def called(frame, event, _):
        code = frame.f_code
        if event == "call" and code not in seen:
            seen.add(code)
            if code.co_filename.startswith(root):
                os.write(file, f"{test}\t{code.co_filename}\t{code.co_qualname}\n".encode())

    threading.setprofile(called)
    sys.setprofile(called)


if word := os.environ.get("KUMITE_MUTANT"):
    become(word)
elif calls := os.environ.get("KUMITE_CALLS"):
    record(calls, os.environ["KUMITE_ROOT"])
