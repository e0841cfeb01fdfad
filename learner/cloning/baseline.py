"""What one knows of a player without looking: how often it uses each key or choice.

Shape suffixes: T decisions, A actions.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from learner.cloning.demonstrations import Demonstration


def rates_A(learnt: Sequence[Demonstration]) -> NDArray[np.float64]:
    """Share of the decisions in which each key was down, or choice made.

    Counted from one half each (Jeffreys' prior), so that what never occurred has a rate above 0.
    """
    counts_A = np.sum([d.actions_TA[d.decided_T].sum(0, dtype=np.float64) for d in learnt], axis=0)
    total = sum(int(d.decided_T.sum()) for d in learnt)
    rates: NDArray[np.float64] = (counts_A + 0.5) / (total + 1.0)
    return rates


def marginal_log_loss(learnt: Sequence[Demonstration], held_out: Sequence[Demonstration]) -> float:
    """Nats per decision, on `held_out`, of who knows the rates in `learnt` and looks at nothing.

    `-Σ_a x_a log r_a + (1 - x_a) log(1 - r_a)` for keys, `-log r_x / Σ_legal r_a` for choices;
    forced moves are left out.
    """
    rate_A, lost, steps = rates_A(learnt), 0.0, 0
    for demonstration in held_out:
        free_T = demonstration.decided_T
        x_TA = demonstration.actions_TA[free_T].astype(np.float64)
        steps += len(x_TA)
        if demonstration.legal_TA is None:
            lost -= float((x_TA * np.log(rate_A) + (1.0 - x_TA) * np.log1p(-rate_A)).sum())
        else:
            legal_T = (rate_A * demonstration.legal_TA[free_T]).sum(-1)
            lost -= float((np.log((x_TA * rate_A).sum(-1)) - np.log(legal_T)).sum())
    return lost / max(steps, 1)
