"""``python -m league`` is ``bin/league``."""

from league.cli.main import main

raise SystemExit(main())
