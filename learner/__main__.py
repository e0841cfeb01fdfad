"""``python -m learner``."""

from learner.main import main
from learner.team import end_at_once

end_at_once(main())
