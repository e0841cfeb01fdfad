"""What an agent presses that follows a faster player: one set of keys for several frames.

Shape suffixes: F frames of a decision; whatever lies between (rows, seats) is kept; A keys.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def keys_at_pace(
    frames_FA: NDArray[np.uint8], before_A: NDArray[np.uint8], held_A: NDArray[np.uint8]
) -> NDArray[np.uint8]:
    """Keys to hold for F frames `[..., A]`, in which the player pressed `frames_FA` `[F, ..., A]`.

    A key that the player has down in any of the frames is down, for a tap must not be lost. But
    games count presses, and a key held on is not pressed again: one that the player taps anew (down
    after up, from the frame `before_A` on) while the agent still holds it (`held_A`, its decision
    before) is let go first.
    """
    down_A = frames_FA.any(0)
    earlier_FA = np.concatenate([before_A[None], frames_FA[:-1]])
    tapped_A = (frames_FA > earlier_FA).any(0) & ~frames_FA.all(0)
    return (down_A & ~(tapped_A & (held_A > 0))).astype(np.uint8)
