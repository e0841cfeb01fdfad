"""``python -m league`` is ``bin/league``."""

from league.cli.main import main
from league.garbage import collect_rarely

collect_rarely()
raise SystemExit(main())
