"""Joins a learner to its league and restores the checkpoint that it continues from.

All ranks of one learner share an incarnation, which the leader opens: for the matchmaker they are
one worker. Each rank holds its own leases under it.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from league.exploiters import Generation
from league.games.base import BatchedGame
from league.players import Assignment, Player, PlayerKind, Role
from league.rpc.client import MatchmakerClient
from learner.distributed.rank_group import RankGroup
from learner.ppo.league_ppo import LeaguePPO
from learner.rollout.league_vec_env import UNPLAYABLE
from learner.train.build import SessionSettings
from learner.train.checkpoint import (
    Values,
    load_algorithm_state,
    load_environment_state,
    load_references,
    load_weights,
    parts_of,
)

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Joined:
    """A rank's place in the league: its incarnation and the matches that it continues.

    `playing` were in progress, `ready` were drawn and not begun; both have new leases.
    """

    incarnation: int
    playing: tuple[Assignment, ...] = ()
    ready: tuple[Assignment, ...] = ()


def live_player(name: str, game: BatchedGame, generation: Generation | None = None) -> Player:
    """The player that learns, whose weights change; an exploiter's is its generation's."""
    return Player(
        name=name if generation is None else generation.player,
        game=game.spec.name,
        kind=PlayerKind.LIVE,
        role=Role.MAIN if generation is None else generation.role,
        creator=f"learner-{name}",
    )


def register_players(client: MatchmakerClient, live: Player, game: BatchedGame) -> None:
    """Registers the game's bots and the live player; a second time it changes nothing."""
    bots = [
        Player(name=bot.name, game=live.game, kind=PlayerKind.BOT, held_out=bot.held_out)
        for bot in game.spec.bots
    ]
    client.register_players([*bots, live])


def can_continue(
    saved: Values, settings: SessionSettings, game: BatchedGame, group: RankGroup
) -> bool:
    """Whether a checkpoint's matches fit these settings and the number of ranks."""
    parts = parts_of(saved)
    if len(parts) != group.size:
        log.info(
            "the checkpoint was made by %d ranks and continues with %d: the matches in progress "
            "are handed back and new ones begin",
            len(parts),
            group.size,
        )
        return False
    return (
        all(len(part["environment"]["matches"]) == settings.share.matches for part in parts)
        and saved["frame_skip"] == settings.game.frame_skip
        and saved["game_version"] == game.spec.version
    )


def join_league(
    group: RankGroup,
    client: MatchmakerClient,
    live: Player,
    game: BatchedGame,
    saved: Values | None,
    continues: bool,
) -> Joined:
    """Registers the bots and the live player, and opens an incarnation.

    Args:
        group: all ranks, which call this together.
        client: of the matchmaker.
        live: the player that learns.
        game: whose bots are registered.
        saved: the checkpoint to continue from, if there is one.
        continues: whether the checkpoint's matches continue, under new leases.
    """
    parts = parts_of(saved) if saved and continues else []
    held = [(part["environment"]["matches"], part["ready"]) for part in parts]
    answer = None
    if group.is_leader:
        register_players(client, live, game)
        incarnation = client.open_incarnation(
            live.creator,
            live.name,
            checkpoint_step=saved["algorithm"]["num_timesteps"] if saved else 0,
            checkpoint_log_position=saved["log_position"] if saved else 0,
            carried_matches=[name for lists in held for names in lists for name in names],
        )
        answer = incarnation.number, tuple(incarnation.carried)
    number, carried = group.broadcast(answer)
    if not held:
        return Joined(incarnation=number)
    first = sum(len(playing) + len(ready) for playing, ready in held[: group.rank])
    playing, ready = map(len, held[group.rank])
    return Joined(
        incarnation=number,
        playing=carried[first : first + playing],
        ready=carried[first + playing : first + playing + ready],
    )


def restore(
    model: LeaguePPO,
    client: MatchmakerClient,
    group: RankGroup,
    saved: Values,
    joined: Joined,
    continues: bool,
) -> None:
    """Restores a checkpoint, with its matches or (`continues` False) with new ones."""
    parts = parts_of(saved)
    if not continues:  # another number of ranks may have made it: the leader takes all frames
        frames = sum(part["environment"]["frames_played"] for part in parts)
        _restore_weights(model, saved["algorithm"], frames if group.is_leader else 0)
        return
    part = parts[group.rank]
    if _restore_matches(model, client, part["environment"], joined):
        load_algorithm_state(model, part["algorithm"])
        model.last_obs_NO = model.env.observations()
    else:
        _restore_weights(model, part["algorithm"], part["environment"]["frames_played"])


def _restore_weights(model: LeaguePPO, algorithm: Values, frames: int) -> None:
    """Restores weights, counters and references; new matches begin."""
    load_weights(model, algorithm)
    model.num_timesteps = model.env.learner_step = algorithm["num_timesteps"]
    model._n_updates = algorithm["updates"]
    model.reseed((model.seed or 0) + model.num_timesteps)
    load_references(model, algorithm)
    if model.references is not None:
        model.references.forget_matches()
    model.env.frames_played = frames


def _restore_matches(
    model: LeaguePPO, client: MatchmakerClient, environment: Values, joined: Joined
) -> bool:
    """Restores the matches in progress; False when one of them can't be continued."""
    env, playing = model.env, list(joined.playing)
    try:
        load_environment_state(env, environment, playing)
    except (*UNPLAYABLE, ValueError) as error:
        log.warning("the matches in progress can't continue, new ones begin: %s", error)
        names = [assignment.match_id for assignment in playing]
        client.release_matches(joined.incarnation, names, reason="they can't be continued")
        env.assignments = [None] * env.num_envs
        for n in range(env.num_envs):
            env.opponent_policy.vacate(n)
        return False
    return True
