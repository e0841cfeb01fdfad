"""Two ranks that learn together: `rank_process.py FOLDER` (see test_ranks.py)."""

from __future__ import annotations

import multiprocessing
import os
import sys
from pathlib import Path

import numpy as np
import torch
from learning import assignments, make_env
from referenced import memories, regularised
from rollouts import updates
from test_descent import rolled_out

from league.cluster.engine import RENDEZVOUS
from learner.distributed.rank_group import RankGroup, join
from learner.ppo.advantage import ReturnScale
from learner.rollout.buffer import Minibatch
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
    return regularised(env, options={"desired_kl": 1e-6, "forecast_coef": 0.5}, **HELD)


def begun(plan):
    model = made(plan)
    model._setup_learn(10**6, None, reset_num_timesteps=False)
    return model


def resumed(folder: Path, group: RankGroup, first, plan):
    """A new model that continues from a checkpoint of `first`, gathered from all ranks."""
    others = group.gather({} if group.is_leader else rank_state(first, first.env, []))[1:]
    checkpoints = CheckpointFolder(folder / "checkpoints")
    if group.is_leader:
        own = {"algorithm": algorithm_state(first), "environment": environment_state(first.env)}
        checkpoints.write(first.num_timesteps, {**own, "ready": [], "ranks": others})
    group.max(0)
    saved = parts_of(checkpoints.read_newest())[group.rank]
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


def summed_gradients(group: RankGroup) -> dict[str, object]:
    """One rank has no gradient of the second parameter."""
    parameters = [torch.nn.Parameter(torch.zeros(size)) for size in (3, 2)]
    parameters[0].grad = torch.full((3,), 1.0 + group.rank)
    if group.rank:
        parameters[1].grad = torch.full((2,), 0.5)
    extra = group.sum_gradients(parameters, torch.tensor([group.rank + 0.5, 4.0]))
    return {"gradients": [one.grad.tolist() for one in parameters], "extra": extra.tolist()}


def collectives(group: RankGroup, network) -> dict[str, object]:
    """What each collective operation returns, and whether weights that differ are noticed."""
    found = {
        "sum": group.sum(torch.tensor([1.0, float(group.rank)])).tolist(),
        "any": [group.any(group.rank == 1), group.any(False)],
        "max": group.max(7 - group.rank),
        "broadcast": group.broadcast({"rank": group.rank}),
        "gather": group.gather("x" * 100 * group.rank),
        **summed_gradients(group),
    }
    with torch.no_grad():
        next(network.parameters()).add_(group.rank * 1e-3)
    for name in ("different", "broadcasted"):
        found[name] = ""
        try:
            group.check_weights(network)
        except Exception as error:
            found[name] = type(error).__name__
        group.broadcast_weights(network)
    return found


def half_an_update(folder: Path, rank: int) -> dict[str, object]:
    """An update on one half of a minibatch, and the return scale over both ranks."""
    batch = Minibatch(**torch.load(folder / "batch.pt"))
    half = list(batch.split(2))[rank]
    model = rolled_out(should_stop=lambda: False)
    # of the rollout that the batch is from
    model.references.logits_MTCA = torch.load(folder / "references.pt")
    model.buffer.minibatch = lambda rows: half
    model.should_stop = lambda: rank == 1
    measured, stops = model._update(half.rows_B, model.group.sum(model._sums(half.rows_B)))
    scale = ReturnScale(3, 0.9, model.group)
    rewards_TN = np.arange(24, dtype=np.float32).reshape(4, 6)[:, 3 * rank : 3 * rank + 3]
    for _ in range(2):
        scale.update(rewards_TN, rewards_TN > 20)
    return {
        "weights": model.policy.state_dict(),
        "measured": measured,
        "scale": scale.scale,
        "stops": [stops, model.group.any(rank == 1)],
    }


def run(folder: Path, rank: int) -> None:
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": "2", RENDEZVOUS: f"file://{folder}/rendezvous"}
    join(torch.device("cpu"))
    group, plan = RankGroup(), assignments(400)[rank::2]
    uninterrupted = begun(plan)
    updates(uninterrupted, 4)
    first = begun(plan)
    updates(first, 2)
    second = resumed(folder, group, first, plan)
    updates(second, 2)
    report = {"uninterrupted": outcome(uninterrupted), "resumed": outcome(second)}
    report["half"] = half_an_update(folder, rank)
    report["collectives"] = collectives(group, second.policy.network)
    report["gone"] = ""
    if rank == 0:  # the other one has ended
        try:
            group.max(0)
        except Exception as error:
            report["gone"] = type(error).__name__
    torch.save(report, folder / f"rank{rank}.pt")


def main(folder: Path) -> None:
    """Forks the ranks, so that both share the imports and the first model's compiled game."""
    torch.set_num_threads(1)
    rolled_out()
    fork = multiprocessing.get_context("fork")
    ranks = [fork.Process(target=run, args=(folder, rank)) for rank in range(2)]
    for rank in ranks:
        rank.start()
    for rank in ranks:
        rank.join()
    sys.exit(any(rank.exitcode for rank in ranks))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
