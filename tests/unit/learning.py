"""A small learner on the real game with a recorded list of matches, for the learner's tests."""

import numpy as np
import torch

from league.agent.batched_policy import BatchedPolicy
from league.agent.config import SIZES, AgentConfig
from league.agent.network import AgentNetwork
from league.games.registry import game_spec, make_batched, reward_weights
from league.players import Assignment, Book, Player, PlayerKind, Role
from learner.ppo.league_ppo import LeaguePPO
from learner.rollout.league_vec_env import LeagueVecEnv
from learner.rollout.matches import FinishedMatch
from learner.rollout.source import RecordedSource
from learner.settings import LearnerSettings

MATCHES, STEPS = 6, 8
LIVE = Player(name="main", game="brawl", kind=PlayerKind.LIVE, role=Role.MAIN)


def snapshot_player(name, seed):
    """A frozen player whose digest is the seed of its weights."""
    return Player(name=name, game="brawl", kind=PlayerKind.SNAPSHOT, digest=f"{seed:064x}")


def config(game="brawl", sequence_length=17):
    spec, narrow = game_spec(game), {"width": 16, "memory": 16, "observation_hidden": 16}
    return AgentConfig(
        observation_size=spec.observation_size,
        own_size=spec.own_size,
        action_size=spec.action_size,
        action_kind=spec.action_kind,
        sequence_length=sequence_length,
        **{**SIZES["tiny"], **narrow, "feed_forward": 32},
    )


def network_of(digest):
    torch.manual_seed(int(digest, 16))
    return AgentNetwork(config())


def assignments(count):
    """A fixed list of matches against bots, snapshots and itself, on both seats."""
    bots = [
        Player(name=name, game="brawl", kind=PlayerKind.BOT)
        for name in ("constant", "based", "random")
    ]
    others = [*bots, snapshot_player("main@1", 1), snapshot_player("main@2", 2), LIVE]
    made = []
    for i in range(count):
        seat = i // 3 % 2
        opponent = others[i % len(others)]
        made.append(
            Assignment(
                match_id=f"match-{i}",
                ordinal=i,
                lease_token=f"token-{i}",
                lease_deadline=0.0,
                seats=(LIVE, opponent) if seat == 0 else (opponent, LIVE),
                learner_seat=seat,
                book=Book.TRAIN,
                seed=1000 + i,
                category=opponent.name,
            )
        )
    return made


def finished(index, reward_terms, stats, *, score=1.0, frames=40):
    """The match of that index in the list, as it ended."""
    return FinishedMatch(
        assignment=assignments(index + 1)[index],
        score=score,
        steps=10,
        frames=frames,
        reward_terms=np.array(reward_terms),
        stats=stats,
    )


def make_env(matches=None, *, num_matches=MATCHES, max_frames=120, reward="laptop"):
    game = make_batched("brawl", num_matches, max_frames=max_frames)
    plan = assignments(200) if matches is None else matches
    return env_of(game, plan, network_of, frame_skip=4, reward=reward)


def env_of(game, matches, load, *, frame_skip, reward):
    spec = game.spec
    sizes = {"action_size": spec.action_size, "action_kind": spec.action_kind}
    batched_policy = BatchedPolicy(game.num_matches, load, seed=5, **sizes)
    batched_policy.set_live(load("7"))
    weights = reward_weights(spec, reward, {})
    source = RecordedSource(matches)
    return LeagueVecEnv(game, source, batched_policy, frame_skip=frame_skip, reward_weights=weights)


def make_model(env, agent=None, **changes):
    """A learner; `changes` are fields of LearnerSettings or keywords of LeaguePPO."""
    torch.manual_seed(0)
    options = {
        "n_steps": STEPS,
        "batch_size": STEPS * 2,
        "n_epochs": 2,
        "learning_rate": 1e-3,
        "seed": 3,
        "device": "cpu",
        "matches": env.num_envs,
        **changes,
    }
    fields = options.keys() & LearnerSettings.model_fields
    settings = LearnerSettings(**{name: options.pop(name) for name in fields})
    policy = {"agent": agent or config()}
    model = LeaguePPO("LeaguePolicy", env, settings, policy_kwargs=policy, **options)
    env.opponent_policy.set_live(model.policy.network)
    return model


def weights(model):
    return {name: value.clone() for name, value in model.policy.network.state_dict().items()}


def same(first, second):
    return all(torch.equal(first[name], second[name]) for name in first)


def random_keys(rng, num_matches=MATCHES):
    return (rng.random((num_matches, 10)) < 0.2).astype(np.uint8)
