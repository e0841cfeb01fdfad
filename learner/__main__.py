"""``python -m learner``."""

from learner.main import exit_now, main

exit_now(main())
