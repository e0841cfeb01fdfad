"""A learner that runs out of memory for real, in its first update.

python starved_learner.py [the learner's own flags]
"""

import resource
import sys

from learner.main import main
from learner.ppo.league_ppo import LeaguePPO

HEADROOM = 4 << 20


def starve_update():
    """The process may hold hardly more than before its first update, whose activations do not
    fit.
    """
    train = LeaguePPO.train

    def limited(model):
        with open("/proc/self/statm") as file:
            size = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (size + HEADROOM, resource.RLIM_INFINITY))
        train(model)

    LeaguePPO.train = limited


if __name__ == "__main__":
    starve_update()
    sys.exit(main(sys.argv[1:]))
