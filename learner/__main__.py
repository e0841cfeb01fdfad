import logging
import os
import sys

from league.garbage import collect_rarely
from learner.main import main

if __name__ == "__main__":
    collect_rarely()
    code = main()
    # Everything is on disk: the interpreter's own clean-up takes seconds on a busy machine.
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
