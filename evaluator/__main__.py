"""``python -m evaluator``."""

from evaluator.main import main

raise SystemExit(main())
