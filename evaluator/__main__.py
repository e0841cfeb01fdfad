"""Runs `python -m evaluator`."""

import sys

from league.garbage import collect_rarely

if __name__ == "__main__":
    collect_rarely()
    from evaluator.main import main

    sys.exit(main())
