"""Runs `python -m matchmaker`."""

import sys

from matchmaker.main import main

sys.exit(main())
