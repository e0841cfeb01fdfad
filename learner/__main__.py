"""``python -m learner``."""

from learner.distributed.team import end_at_once
from learner.main import main

end_at_once(main())
