"""How much less is known of a learner than was: its strength walks while it learns.

Between two matches of a learner its strength changes by an unknown amount, whether it plays or not.
It is taken as a random walk over the logarithm of its steps, since learning curves are straight
there: from step s to step s′ the variance grows by

    κ · ln((s′ + s₀)/(s + s₀))

which is κ/(s + s₀) a step: much at first, little later, all over again for a learner that was
reset. (State noise of a Kalman filter, as in TrueSkill Through Time, Dangauthier et al. 2007, but
by steps learnt instead of matches played. A walk with one rate for all steps takes the early climb
for noise, or noise for a climb: in leagues of brawl the rate falls from 70 points² a million steps
at the start to 2 after four million.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from league.errors import InvalidInput


@dataclass(frozen=True)
class Drift:
    """A learner's random walk.

    Attributes:
        points2_per_fold: κ, by what σ² grows while the steps grow by a factor of e, in points².
        Runs of
            brawl's preset `laptop` wander by 2 to 8 around a climb of 4 to 5 points a fold
            (`lineage.measured_drift`); TrueSkill knows of no climb, and predicted their training
            matches best with 10 to 20.
        settling_steps: s₀, steps before which nothing is told apart.
    """

    points2_per_fold: float = 10.0
    settling_steps: int = 50_000

    def __post_init__(self) -> None:
        if not (math.isfinite(self.points2_per_fold) and self.points2_per_fold >= 0.0):
            raise InvalidInput(f"drift of {self.points2_per_fold} points² is none: use 0 or more")
        if self.settling_steps < 1:
            raise InvalidInput(f"settling_steps = {self.settling_steps} is too few: use 1 or more")

    def variance(self, since: float, step: float) -> float:
        """Growth of σ² from one learner step to a later one, in points²; 0 where it is not
        later.
        """
        if step <= since:
            return 0.0
        return self.points2_per_fold * math.log(
            (step + self.settling_steps) / (since + self.settling_steps)
        )


NO_DRIFT = Drift(0.0)
