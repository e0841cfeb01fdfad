"""Joins a learner to its league and restores the checkpoint that it continues from.

At each start, a worker gets a number from the matchmaker, its incarnation. Requests under an
earlier incarnation of the worker are refused. All ranks (processes) of a learner share an
incarnation, which the leader (rank 0) opens, so the matchmaker sees a single worker. Each rank
holds its own leases under this incarnation.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice

from league.agent.config import AgentConfig
from league.agent.snapshot import load_snapshot
from league.errors import DataCorrupt, NotFound
from league.exploiters import Generation
from league.games.base import BatchedGame
from league.players import Assignment, Player, PlayerKind, Role
from league.rpc.client import MatchmakerClient
from league.runs.blobs import BlobFolder
from league.stages import Place
from learner.distributed.rank_group import RankGroup
from learner.ppo.league_ppo import LeaguePPO
from learner.rollout.league_vec_env import UNPLAYABLE
from learner.train.build import SessionSettings
from learner.train.checkpoint import (
    Values,
    load_algorithm_state,
    load_environment_state,
    load_weights_and_counters,
    parts_of,
    snapshot_values,
)

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Joined:
    """Holds a rank's incarnation and matches after it has joined the league.

    Attributes:
        incarnation: the learner's incarnation, which all ranks share.
        playing: matches that were in progress at the checkpoint, under new leases.
        ready: matches that had been drawn but not begun at the checkpoint, under new leases.
    """

    incarnation: int
    playing: Sequence[Assignment] = ()
    ready: Sequence[Assignment] = ()


def live_player(name: str, game: BatchedGame, generation: Generation | None = None) -> Player:
    """Returns the live player, the member of the league whose weights the learner trains. Each
    generation of an exploiter is a live player with its own name.
    """
    return Player(
        name=name if generation is None else generation.player,
        game=game.spec.name,
        kind=PlayerKind.LIVE,
        role=Role.MAIN if generation is None else generation.role,
        creator=f"learner-{name}",
    )


def register_players(client: MatchmakerClient, live: Player, game: BatchedGame) -> None:
    """Registers the bots and the live player, which learns. A second call changes nothing."""
    bots = [
        Player(name=bot.name, game=live.game, kind=PlayerKind.BOT, held_out=bot.held_out)
        for bot in game.spec.bots
    ]
    client.register_players([*bots, live])


def fits_log(client: MatchmakerClient, saved: Values) -> bool:
    """Returns whether the league's log contains the matches of a checkpoint. A log that was
    restored from a backup may lack some of them.

    A match's id begins with its place in the log, so the largest id belongs to the newest match. If
    the log has the newest match of the checkpoint, it has all of them. The ids end with random
    digits, so another match at the same place has another id.

    Args:
        client: connection to the matchmaker.
        saved: the checkpoint.
    """
    parts = parts_of(saved)
    held = [name for part in parts for name in (*part["environment"]["matches"], *part["ready"])]
    if saved["log_position"] > client.status().log_position:
        return False
    try:
        return not held or bool(client.match(max(held)))
    except NotFound:
        return False


def snapshot_checkpoint(
    client: MatchmakerClient, blobs: BlobFolder, live: Player, config: AgentConfig
) -> Values | None:
    """Makes the values of a checkpoint from the newest of the learner's snapshots that can be
    continued from.

    Training continues with a new optimizer and new references (frozen copies of the learner).

    Args:
        client: connection to the matchmaker.
        blobs: the snapshots' weights.
        live: the player that learns.
        config: the agent that is to be trained. Snapshots of another agent are passed over.

    Returns:
        The values, or None if there is no such snapshot.
    """
    frozen = client.players(kinds=[PlayerKind.SNAPSHOT])
    for player in reversed([other for other in frozen if other.creator == live.creator]):
        try:
            network, card = load_snapshot(blobs, player.digest)
        except (NotFound, DataCorrupt) as error:
            log.warning("%s can't be continued from: %s", player.name, error)
            continue
        if card.agent != config:
            log.warning("%s can't be continued from: its [agent] settings differ", player.name)
            continue
        places = {view.player: view.place for view in client.curricula()}
        place = places.get(live.name, Place())
        log.warning(
            "no checkpoint here fits the league's log: training continues from %s, with a new "
            "optimizer and new references",
            player.name,
        )
        return {
            "algorithm": {
                **snapshot_values(network, card),
                "num_timesteps": player.step,
                "updates": 0,
            },
            "environment": {"matches": [], "frames_played": 0},
            "log_position": client.status().log_position,
            "curriculum": vars(replace(place, since_step=min(place.since_step, player.step))),
            "publisher": [player.name, player.step],
            "pending": None,
            "over": False,
            "reset": False,
        }
    return None


def continuing_parts(
    saved: Values | None, settings: SessionSettings, game: BatchedGame, group: RankGroup
) -> list[Values]:
    """Splits a checkpoint by rank. Returns an empty list if the checkpoint's matches do not fit the
    settings or the number of ranks.
    """
    parts = [] if saved is None else parts_of(saved)
    if parts and len(parts) != group.size:
        log.info(
            "the checkpoint was made by %d ranks and continues with %d: the matches in progress "
            "are handed back and new ones begin",
            len(parts),
            group.size,
        )
        return []
    fit = all(
        len(part["environment"]["matches"]) == settings.share.matches
        and part["frame_skip"] == settings.game.frame_skip
        and part["game_version"] == game.spec.version
        for part in parts
    )
    return parts if fit else []


def join_league(
    group: RankGroup,
    client: MatchmakerClient,
    live: Player,
    game: BatchedGame,
    saved: Values | None,
    parts: Sequence[Values],
) -> Joined:
    """Registers the bots and the live player, and opens an incarnation for this start of the
    learner. All ranks call it together.

    Args:
        saved: the checkpoint to continue from, if any.
        parts: the checkpoint's parts by rank. Their matches continue under new leases.
    """
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
            game_version=game.spec.version,
        )
        answer = incarnation.number, tuple(incarnation.carried)
    number, carried = group.broadcast(answer)
    carried = iter(carried)
    shares = [[list(islice(carried, len(names))) for names in lists] for lists in held]
    playing, ready = shares[group.rank] if shares else ((), ())
    return Joined(incarnation=number, playing=playing, ready=ready)


def restore(
    model: LeaguePPO,
    client: MatchmakerClient,
    group: RankGroup,
    saved: Values,
    parts: Sequence[Values],
    joined: Joined,
) -> None:
    """Restores a checkpoint. Its matches continue if `parts` has them and they can be restored.
    Otherwise new matches begin.

    Args:
        model: the algorithm.
        client: connection to the matchmaker.
        group: the ranks.
        saved: the checkpoint.
        parts: the checkpoint's parts by rank, from `continuing_parts`.
        joined: the result of `join_league`.
    """
    if not parts:  # the number of ranks may have changed, so the leader counts all frames
        frames = sum(part["environment"]["frames_played"] for part in parts_of(saved))
        load_weights_and_counters(model, saved["algorithm"], frames if group.is_leader else 0)
        return
    part, env = parts[group.rank], model.env
    try:
        load_environment_state(env, part["environment"], joined.playing)
    except (*UNPLAYABLE, ValueError) as error:
        log.warning("the matches in progress can't continue, new ones begin: %s", error)
        names = [assignment.match_id for assignment in joined.playing]
        client.release_matches(joined.incarnation, names, reason="they can't be continued")
        env.assignments = [None] * env.num_envs
        for n in range(env.num_envs):
            env.opponent_policy.vacate(n)
        frames = part["environment"]["frames_played"]
        load_weights_and_counters(model, part["algorithm"], frames)
        return
    load_algorithm_state(model, part["algorithm"])
    model.last_obs_NO = env.observations()
