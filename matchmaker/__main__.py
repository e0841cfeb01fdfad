"""Runs `python -m matchmaker`."""

import sys

from league.garbage import collect_rarely

if __name__ == "__main__":
    collect_rarely()
    from matchmaker.main import main

    sys.exit(main())
