"""One of two ranks that make an update together: `two_ranks.py FOLDER RANK` (see
test_descent.py).
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch
from test_descent import rolled_out

from learner.ppo.advantage import ReturnScale
from learner.rollout.buffer import Minibatch


def main(folder: Path, rank: int) -> None:
    torch.set_num_threads(1)
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{folder / 'meet'}", rank=rank, world_size=2
    )
    batch = Minibatch(**torch.load(folder / "batch.pt"))
    half = list(batch.split(2))[rank]
    model = rolled_out(should_stop=lambda: False)
    model.references.logits_MTCA = torch.load(
        folder / "references.pt"
    )  # of the rollout that the batch is from
    model.buffer.minibatch = lambda rows: half
    model.should_stop = lambda: rank == 1
    sums = model.group.sum(model._sums(half.rows_B))
    measured, stops = model._update(half.rows_B, sums)
    scale = ReturnScale(3, 0.9, model.group)
    rewards_TN = np.arange(24, dtype=np.float32).reshape(4, 6)[:, 3 * rank : 3 * rank + 3]
    for _ in range(2):
        scale.update(rewards_TN, rewards_TN > 20)
    torch.save(
        {
            "weights": model.policy.state_dict(),
            "measured": measured,
            "scale": scale.scale,
            "stops": [stops, model.group.any(rank == 1)],
        },
        folder / f"rank{rank}.pt",
    )
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
