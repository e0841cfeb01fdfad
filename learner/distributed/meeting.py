"""A folder for a learner's ranks to meet in, which goes with the process that made it, however that
ends.

``python meeting.py FOLDER`` is who takes it away: a process that is killed can't.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def meeting_place() -> Iterator[Path]:
    """Yields the folder, which this user alone can read."""
    folder = tempfile.mkdtemp(prefix="kumite-ranks-")
    # In a session of its own, where no Ctrl-C reaches it. Its input ends with the block or this
    # process.
    remover = [sys.executable, "-I", "-S", __file__, folder]
    with subprocess.Popen(remover, stdin=subprocess.PIPE, start_new_session=True):
        yield Path(folder)


def main(folder: str) -> None:
    """Waits for the end of the standard input, then removes the folder."""
    sys.stdin.read()
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1])
