"""``python -m learner``."""

from learner.main import main

raise SystemExit(main())
