"""For every test, and every process that a test starts."""

import os

# Two OpenMP threads on two busy cores made a learner 50 times slower; `bin/test` sets this too.
os.environ.setdefault("OMP_NUM_THREADS", "1")
