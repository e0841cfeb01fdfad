"""One of two ranks that learn together: `rank_process.py FOLDER RANK` (see test_ranks.py)."""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from learning import assignments, make_env
from referenced import memories, regularised
from test_league_ppo import updates

from learner.distributed.ranks import Ranks
from learner.distributed.team import Team
from learner.train.checkpoint import (
    CheckpointFolder,
    algorithm_state,
    environment_state,
    load_algorithm_state,
    load_environment_state,
    parts_of,
    rank_state,
)

HELD = {
    "reference_interval": 7,
    "portfolio_interval": 7,
    "portfolio_size": 2,
    "pruning": "diverse",
    "match_share": 0.3,  # minibatches without any on one rank, and with some on the other
}


def made(plan):
    """A model that steers its step size, normalises returns and is held near references."""
    env = make_env(plan, max_frames=60)
    return regularised(
        env, options={"desired_kl": 1e-6, "target_kl": 1.0, "forecast_coef": 0.5}, **HELD
    )


def begun(plan):
    model = made(plan)
    model._setup_learn(10**6, None, reset_num_timesteps=False)
    return model


def resumed(folder: Path, ranks: Ranks, first, plan):
    """A new model that goes on from a checkpoint of `first`, gathered from all ranks."""
    others = ranks.gather({} if ranks.leads else rank_state(first, first.env, []))[1:]
    checkpoints = CheckpointFolder(folder / "checkpoints")
    if ranks.leads:
        own = {"algorithm": algorithm_state(first), "environment": environment_state(first.env)}
        checkpoints.write(first.num_timesteps, {**own, "ready": [], "ranks": others})
    ranks.largest(0)
    saved = parts_of(checkpoints.read_newest())[ranks.rank]
    taken = len(plan) - len(first.env.source._left)
    by_id = {assignment.match_id: assignment for assignment in plan}
    second = made(plan[taken:])
    load_algorithm_state(second, saved["algorithm"])
    held = [by_id[match_id] for match_id in saved["environment"]["matches"]]
    load_environment_state(second.env, saved["environment"], held)
    second.last_obs_NO = second.env.observations()
    second._setup_learn(10**6, None, reset_num_timesteps=False)
    return second


def outcome(model):
    return {
        "weights": {name: value.clone() for name, value in model.policy.state_dict().items()},
        "logged": {name: float(value) for name, value in model.logger.name_to_value.items()},
        "steps": model.num_timesteps,
        "rate": model.rate.scale,
        "scale": model.return_scale.state(),
        "references": [
            [one.name, one.step, [m.clone() for m in memories(one)]]
            for one in model.references.members
        ],
        "keys": model.key_rng.get_state(),
        "observations": torch.from_numpy(model.last_obs_NO.copy()),
    }


def summed_gradients(ranks: Ranks, kind: torch.dtype) -> dict[str, object]:
    """Through shared memory (float32) or in a message: of the second parameter one rank has no
    gradient.
    """
    parameters = [torch.nn.Parameter(torch.zeros(size, dtype=kind)) for size in (3, 2)]
    parameters[0].grad = torch.full((3,), 1.0 + ranks.rank, dtype=kind)
    if ranks.rank:
        parameters[1].grad = torch.full((2,), 0.5, dtype=kind)
    beside = ranks.add_up_gradients(
        parameters, torch.tensor([ranks.rank + 1e-9, 4.0], dtype=torch.float64)
    )
    return {
        "shared": kind == torch.float32 and ranks._shared is not None,
        "gradients": [parameter.grad.tolist() for parameter in parameters],
        "beside": beside.tolist(),
    }


def tell(ranks: Ranks, network) -> dict[str, object]:
    """What ranks say to each other, and how they notice that they are no longer alike."""
    said = {
        "sum": ranks.add_up(torch.tensor([1.0, float(ranks.rank)])).tolist(),
        "any": [ranks.any(ranks.rank == 1), ranks.any(False)],
        "largest": ranks.largest(7 - ranks.rank),
        "leading": dict(ranks.leading({"who": ranks.rank, "tensor": torch.arange(3)})),
        "gathered": [
            dict(one) for one in ranks.gather({"who": ranks.rank, "long": "x" * 100 * ranks.rank})
        ],
    }
    said["gradients"] = [summed_gradients(ranks, kind) for kind in (torch.float32, torch.float64)]
    with torch.no_grad():
        next(network.parameters()).add_(ranks.rank * 1e-3)
    for name in ("apart", "together"):
        try:
            ranks.check_weights(network)
            said[name] = "alike"
        except Exception as error:
            said[name] = f"{type(error).__name__}: {error}"
        ranks.share_weights(network)
    return said


def main(folder: Path, rank: int) -> None:
    torch.set_num_threads(1)
    team = Team(rank=rank, count=2, meeting=folder)
    team.join(torch.device("cpu"))
    ranks, plan = Ranks(), assignments(400)[rank::2]
    uninterrupted = begun(plan)
    updates(uninterrupted, 4)
    first = begun(plan)
    updates(first, 2)
    second = resumed(folder, ranks, first, plan)
    updates(second, 2)
    report = {"uninterrupted": outcome(uninterrupted), "resumed": outcome(second)}
    report["said"] = tell(ranks, second.policy.network)
    report["gone"] = ""
    if rank == 0:  # the other one has ended
        try:
            ranks.largest(0)
        except Exception as error:
            report["gone"] = f"{type(error).__name__}: {error}"
    torch.save(report, folder / f"rank{rank}.pt")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
