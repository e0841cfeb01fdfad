"""Handles the life of a worker.

Each start of a worker opens an incarnation, which identifies the worker's calls until it is started
again. The next incarnation fences the earlier ones: from then on, their calls are refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from league.errors import Forbidden, InvalidInput, VersionMismatch
from league.players import Assignment, PlayerKind
from league.security.tokens import TokenFile
from league.stages import StageRequest
from matchmaker import limits
from matchmaker.acts import checks
from matchmaker.acts.assign import carry_matches, close
from matchmaker.acts.stage import unobeyed
from matchmaker.state.league import GAME_VERSION, League
from matchmaker.store.rows import BeatRow, IncarnationRow
from matchmaker.store.transaction import Transaction

MAX_CARRIED = 4096


class Opened(NamedTuple):
    """Gives the number of a new incarnation (start of a worker), the leases that it takes over from
    the previous incarnation, and how many results no longer count because they came after the
    learner's checkpoint.
    """

    incarnation: int
    carried: list[Assignment]
    lost_results: int


class Beat(NamedTuple):
    """Answers a heartbeat.

    Attributes:
        fenced: whether the worker has been started again, so that this start's calls are refused.
        lease_deadline: when the worker's leases expire if there is no more progress, in Unix
            seconds.
        asked: the curriculum stage that an operator asked the worker's learner to enter, or None.
        paused: whether the worker trains a player and has to wait, because an operator has paused
            all learners.
    """

    fenced: bool
    lease_deadline: float
    asked: StageRequest | None
    paused: bool = False


def check_owner(league: League, tx: Transaction, token: str, worker: str, number: int) -> None:
    """Checks that the caller's token owns a worker. Otherwise raises `Forbidden`.

    A worker belongs to the token of the role `worker` with which it was first started. After this
    token is revoked, the worker belongs to the token of its next start.

    Args:
        token: name of the token.
        worker: name of the worker. The name may be empty if `number` is given.
        number: number of an incarnation (start) of the worker, or 0.
    """
    if number:
        worker = league.incarnation(tx, number).worker
    if not worker:
        return
    owner = tx.meta(f"owner of {worker}")
    if owner == token:
        return
    if owner and any(entry.name == owner for entry in TokenFile(league.store.path.parent).read()):
        raise Forbidden(
            f"the worker {worker} belongs to the token {owner!r}, and this is {token!r}: choose "
            "another name for yours, or ask an operator to revoke that token"
        )
    if not number:
        tx.set_meta(f"owner of {checks.worker_name(worker)}", token)


def open_incarnation(
    league: League,
    tx: Transaction,
    worker: str,
    player: str,
    checkpoint_step: int,
    checkpoint_log_position: int,
    carried_matches: Sequence[str],
    game_version: str = "",
) -> Opened:
    """Opens a new incarnation of a worker, at each start of the worker.

    The worker's earlier incarnations are fenced, so that their calls are refused. Their open leases
    are abandoned, and the carried matches are leased again. If the worker trains a learner, the
    results after the learner's checkpoint are marked as lost.

    Args:
        worker: name of the worker.
        player: the learner that the worker trains, or "".
        checkpoint_step: the learner's step at its checkpoint.
        checkpoint_log_position: log position of the last result before the checkpoint.
        carried_matches: ids of matches in progress at the checkpoint.
        game_version: version of the game's rules that the worker plays by, or "".

    Raises:
        VersionMismatch: the league plays by other rules.
        NotFound: there is no such player.
        InvalidInput: a field is out of bounds, or the player does not learn.
    """
    checks.worker_name(worker)
    checks.text(game_version, "game_version")
    league_version = tx.meta(GAME_VERSION)
    if game_version and league_version and game_version != league_version:
        raise VersionMismatch(
            f"{worker} plays {league.settings.game} by version {game_version} of its rules, the "
            f"league by version {league_version}: use the same Kumite and game for both"
        )
    checks.text(player, "player", checks.MAX_PLAYER_NAME)
    checks.number(checkpoint_step, "checkpoint_step", 0, checks.MAX_STEP)
    checks.number(checkpoint_log_position, "checkpoint_log_position", 0, league.view.log_position)
    checks.number(len(carried_matches), "carried matches", 0, MAX_CARRIED)
    if player:
        trained = league.player(player)
        if trained.kind is not PlayerKind.LIVE:
            raise InvalidInput(f"{player} is a {trained.kind.value}: only live players train")
    trains = f" and trains {player} from step {checkpoint_step:,}" if player else ""
    again = " again" if tx.incarnations_of(worker) else ""
    text = f"{worker} starts{again}{trains}"
    league.nodes.pop(worker, None)
    event = league.log(
        tx, "incarnation_opened", text, worker=worker, player=player, step=checkpoint_step
    )
    row = IncarnationRow(
        number=0,
        worker=worker,
        player=player,
        checkpoint_step=checkpoint_step,
        checkpoint_log_position=checkpoint_log_position,
        opened_at=event.at,
        event_position=event.position,
    )
    row = row._replace(number=tx.add_incarnation(row))
    fenced = tx.fence(worker, row.number)
    mine = [lease for number in fenced for lease in tx.open_assignments(number)]
    close(league, tx, mine, "abandoned", f"incarnation {row.number} took over")
    lost = _lose(league, tx, row) if player else 0
    return Opened(row.number, carry_matches(league, tx, row, carried_matches), lost)


def _lose(league: League, tx: Transaction, new: IncarnationRow) -> int:
    lost = tx.lose_results(new.player, new.checkpoint_log_position, new.number)
    if lost:
        league.log(
            tx,
            "results_lost",
            f"{lost} results of {new.player} after its checkpoint no longer count in its ratings",
            incarnation=new.number,
            after=new.checkpoint_log_position,
            results=lost,
        )
        tx.drop_folds(after=new.checkpoint_log_position)
        tx.after_commit(lambda: league.reload_fold(tx))
    return lost


def heartbeat(
    league: League,
    tx: Transaction,
    incarnation: int,
    progress: int,
    step: int,
    mix: str,
    activity: str,
    metrics: Mapping[str, float],
    node: str,
) -> Beat:
    """Stores the newest heartbeat. Leases are extended only if `progress` rose since the last
    heartbeat, or while an operator has paused the learners.

    Args:
        progress: frames played.
        step: the learner's step.
        mix: name of the mix that the learner draws from.
        activity: the worker's present activity.
        metrics: newest values by name.
        node: name of the worker's machine. It is kept in memory only, until the next heartbeat.
    """
    caller = league.incarnation(tx, incarnation)
    checks.number(progress, "progress", 0, checks.MAX_STEP)
    checks.number(step, "step", 0, checks.MAX_STEP)
    checks.text(mix, "mix", checks.MAX_NAME)
    checks.text(activity, "activity")
    checks.text(node, "node", checks.MAX_NAME)
    metrics_json = json.dumps(checks.metrics(metrics), separators=(",", ":"))
    now, last = league.clock.now(), tx.beat(incarnation)
    if caller.fenced_by is not None or league.view.is_of_other_rules(caller):
        return Beat(True, now, None)
    league.nodes[caller.worker] = node
    deadline = now + limits.LEASE_SECONDS
    paused = bool(caller.player) and league.view.steering.pause is not None
    if paused:
        tx.renew_leases(deadline, now + limits.LEASE_LIMIT_SECONDS, incarnation)
    elif last is None or progress > last.progress:
        tx.extend_leases(incarnation, deadline)
    else:
        deadline = tx.open_leases(incarnation)[1] or deadline
        progress = last.progress
    curriculum = league.view.curricula.get(caller.player)
    if caller.player and curriculum is None and mix and mix != (last.mix if last else ""):
        text = f"{caller.player} trains in stage {mix!r} from step {step:,}"
        league.log(tx, "stage", text, player=caller.player, mix=mix, step=step)
    tx.set_beat(
        BeatRow(
            incarnation=incarnation,
            at=now,
            progress=progress,
            step=step,
            mix=mix,
            activity=activity,
            metrics_json=metrics_json,
        )
    )
    place = curriculum.place if curriculum else None
    return Beat(False, deadline, unobeyed(league, caller.player, place), paused)
