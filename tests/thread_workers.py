"""Workers of hosted games in threads of the test's process: a process takes seconds of imports."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from league.games import hosted


def threads_of(make: Callable[[list[str]], Any]) -> type:
    """What stands in for `hosted.Process`; `make` builds a worker from a process's command."""

    class WorkerThread:
        def __init__(self, command: list[str], rows: range, **options: Any) -> None:
            self.rows = rows
            self.connection, theirs = multiprocessing.Pipe()
            self.popen = SimpleNamespace(pid=os.getpid())

            def serve() -> None:
                worker = make(command)
                theirs.send("")
                hosted.serve(worker, theirs)
                if hasattr(worker, "close"):
                    worker.close()

            threading.Thread(target=serve, daemon=True).start()

        def end(self) -> None:
            self.connection.close()

    return WorkerThread
