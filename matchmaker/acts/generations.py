"""An exploiter begins anew: a live player without a match to its name, against victims that
stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from league.errors import InvalidInput, NotFound
from league.exploiters import EXPLOITING, Generation
from league.ids import GenerationName, SnapshotName, checked_learner_name, checked_player_name
from league.players import Book, Player, PlayerKind, PlayerState, Role
from matchmaker.acts import checks
from matchmaker.acts.register import register_players
from matchmaker.acts.states import change_state
from matchmaker.state.league import League
from matchmaker.store.base import Transaction

MAX_VICTIMS = 32


def begin_generation(
    league: League,
    tx: Transaction,
    number: int,
    learner: str,
    role: Role,
    generation: int,
    victims: Sequence[str],
    step: int,
    parent: str = "",
) -> Generation:
    """Begins generation `generation` of a learner for the worker of incarnation `number`.

    The newest one's number again changes nothing, so that a learner that was killed may ask again.
    A generation has a live player of its own: its payoff rows and its rating begin empty, and those
    of the generations before stay in the log as they were.

    Raises:
        InvalidInput: no exploiter's role, a number that does not follow, or a parent that is not a
        candidate
            of the generation before.
        NotFound: no main has a snapshot yet, or a victim that is named can't be one.
    """
    worker = league.current_incarnation(tx, number).worker
    _check(learner, role, victims, step, parent)
    known = league.view.exploiters.newest(learner)
    if known is not None and known.number == generation:
        return known
    following = 1 if known is None else known.number + 1
    if generation != following:
        raise InvalidInput(
            f"generation {generation} of {learner} can't begin: {following} is the next one"
        )
    if parent and (known is None or _frozen_by(league, parent) != known.player):
        raise InvalidInput(
            f"{parent[: checks.MAX_NAME]!r} is no candidate of generation {generation - 1}"
        )
    name = checked_player_name(str(GenerationName(learner, generation)))
    begun = Generation(
        learner=learner,
        number=generation,
        player=name,
        role=role,
        victims=_victims(league, role, victims),
        since_step=step,
        parent=parent,
    )
    live = Player(
        name=name, game=league.settings.game, kind=PlayerKind.LIVE, role=role, creator=worker
    )
    register_players(league, tx, [live], number)
    if known is not None:
        _retire(league, tx, known.player)
    return _log(league, tx, begun)


def _check(learner: str, role: Role, victims: Sequence[str], step: int, parent: str) -> None:
    """What needs no look at the league; also of a request for the generation that there is."""
    checked_learner_name(learner)
    if role not in EXPLOITING:
        raise InvalidInput(
            f"{learner} is a {role.value}, which has no generations: exploiters have"
        )
    checks.number(len(victims), "victims", 0, MAX_VICTIMS)
    checks.names(victims, "victims")
    checks.number(step, "step", 0, checks.MAX_STEP)
    checks.text(parent, "parent", checks.MAX_PLAYER_NAME)


def _frozen_by(league: League, candidate: str) -> str:
    """The live player that a candidate is a copy of, "" when there is none."""
    gate = league.view.exploiters.gates.get(candidate)
    return "" if gate is None or gate.generation is None else gate.generation.player


def _log(league: League, tx: Transaction, begun: Generation) -> Generation:
    against = ", ".join(begun.victims) + (
        f", with the weights of {begun.parent}" if begun.parent else ""
    )
    event = league.event(
        "generation",
        f"{begun.learner} begins generation {begun.number} at step {begun.since_step:,} against {against}",
        {
            "learner": begun.learner,
            "number": begun.number,
            "player": begun.player,
            "role": begun.role.value,
            "victims": begun.victims,
            "step": begun.since_step,
            "parent": begun.parent,
        },
    )
    league.log_all(tx, [event])
    tx.after_commit(lambda: league.view.add_exploiter_event(event))
    return replace(begun, begun_at=event.at)


def _retire(league: League, tx: Transaction, name: str) -> None:
    """The live player of the generation before: nothing plays under its name any more."""
    words = f"{name} retires: the next generation begins"
    change_state(
        league, tx, league.view.players[name], PlayerState.RETIRED, "player_retired", words
    )


def _victims(league: League, role: Role, named: Sequence[str]) -> tuple[str, ...]:
    if not named:
        return _mains_now(league, role)
    for name in named:
        player = league.view.players.get(name)
        if player is None:
            raise NotFound(
                f"there is no player {name[: checks.MAX_NAME]!r} to exploit: name a snapshot"
            )
        frozen = player.kind is PlayerKind.SNAPSHOT or (
            player.kind is PlayerKind.BOT and not player.held_out
        )
        if not frozen or player.state in (PlayerState.QUARANTINED, PlayerState.CANDIDATE):
            raise NotFound(
                f"{name} can't be a victim: name a snapshot, or a bot that is not held out"
            )
    return tuple(dict.fromkeys(named))


def _mains_now(league: League, role: Role) -> tuple[str, ...]:
    """The newest active snapshot of each main; a league exploiter's victims are the best rated
    others too.
    """
    snapshots = [
        player
        for player in league.view.players.values()
        if player.kind is PlayerKind.SNAPSHOT
        and player.role is Role.MAIN
        and player.state is PlayerState.ACTIVE
        and not SnapshotName.parse(player.name).run  # another run's main learns nothing here
    ]
    newest = {player.creator: player.name for player in snapshots}  # in order of registration
    if not newest:
        raise NotFound(
            "no main has a snapshot yet, so there is nobody to exploit: wait for the first one"
        )
    victims = list(newest.values())
    if role is Role.LEAGUE_EXPLOITER:
        active = {player.name for player in snapshots}
        rated = league.view.tables[Book.EVAL].leaderboard(league.view.players)
        best = [row.player.name for row in rated if row.player.name in active]
        others = [name for name in best if name not in victims]
        victims += others[: league.settings.exploiters.leaders]
    return tuple(victims)
