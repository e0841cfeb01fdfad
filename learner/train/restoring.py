"""Puts a learner, or one of its ranks, back to where a checkpoint had it."""

from __future__ import annotations

import logging

from league.rpc.client import MatchmakerClient
from learner.distributed.ranks import Ranks
from learner.ppo.league_ppo import LeaguePPO
from learner.rollout.league_vec_env import UNPLAYABLE
from learner.train.checkpoint import (
    Values,
    load_algorithm_state,
    load_environment_state,
    load_references,
    load_weights,
    parts_of,
)
from learner.train.membership import Membership

log = logging.getLogger(__name__)


def go_on(
    model: LeaguePPO,
    client: MatchmakerClient,
    ranks: Ranks,
    saved: Values,
    membership: Membership,
    carries: bool,
) -> None:
    """Goes on from a checkpoint: with its matches, or (`carries` False) with its weights in new
    ones.
    """
    parts = parts_of(saved)
    if not carries:  # perhaps made by another number of ranks: the frames of all are one's
        frames = sum(part["environment"]["frames_played"] for part in parts)
        _begin_anew(model, saved["algorithm"], frames if ranks.leads else 0)
        return
    part = parts[ranks.rank]
    if _restored_matches(model, client, part["environment"], membership):
        load_algorithm_state(model, part["algorithm"])
        model.last_obs_NO = model.env.observations()
    else:
        _begin_anew(model, part["algorithm"], part["environment"]["frames_played"])


def _begin_anew(model: LeaguePPO, algorithm: Values, frames: int) -> None:
    """Goes on with a checkpoint's weights, counters and references, in new matches."""
    load_weights(model, algorithm)
    model.num_timesteps = model.env.learner_step = algorithm["num_timesteps"]
    model._n_updates = algorithm["updates"]
    model.reseed((model.seed or 0) + model.num_timesteps)
    load_references(model, algorithm)
    if model.references is not None:
        model.references.forget_matches()
    model.env.frames_played = frames


def _restored_matches(
    model: LeaguePPO, client: MatchmakerClient, environment: Values, membership: Membership
) -> bool:
    """Puts the checkpoint's matches back in progress; False when one of them can't be played on."""
    env, held = model.env, list(membership.playing)
    try:
        load_environment_state(env, environment, held)
    except (*UNPLAYABLE, ValueError) as error:
        log.warning("the matches in progress can't be played on, new ones begin: %s", error)
        names = [assignment.match_id for assignment in held]
        client.release_matches(membership.incarnation, names, reason="they can't be played on")
        env.assignments = [None] * env.num_envs
        for seat in range(env.num_envs):
            env.opponent_policy.vacate(seat)
        return False
    return True
