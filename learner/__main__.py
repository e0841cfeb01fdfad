"""Runs `python -m learner`."""

import logging
import os
import sys

from league.garbage import collect_rarely
from learner.distributed.watch import WATCHED, watch

if __name__ == "__main__":
    if WATCHED in os.environ:
        sys.exit(watch())
    collect_rarely()
    from learner.main import main

    code = main()
    # All data is on disk by now. `os._exit` skips the interpreter's clean-up, which takes seconds
    # on a busy machine.
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
