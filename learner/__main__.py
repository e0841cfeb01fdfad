import logging
import os
import sys

from league.garbage import collect_rarely
from learner.main import main

if __name__ == "__main__":
    collect_rarely()
    code = main()
    # Skips the interpreter's clean-up, which takes seconds on a busy machine. All data is on disk.
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
