"""Whom a main has patched: judged by the clean matches of its newest snapshot, all of which have
been played.

The matches are those of a gauntlet, as many as were planned before the first. By the matches of
training one could look after each of them until luck says yes; and most of those were played by
older weights.
"""

from __future__ import annotations

from league.errors import InvalidInput, NotFound
from league.exploiters import Patch
from league.players import Book, Player, PlayerKind, PlayerState, Role
from league.stats.payoff import Counts
from matchmaker.acts import checks
from matchmaker.state.league import League
from matchmaker.store.base import Transaction


def beats_posterior(counts: Counts) -> float:
    """P(p > ½) for the chance p to win a match, from a flat prior; a draw is half a win and half a
    loss.

    p ~ Beta(1 + wins + ½ draws, 1 + losses + ½ draws).
    """
    from scipy.special import betainc  # half a second to load, and only this wants it

    a = 1.0 + counts.wins + 0.5 * counts.draws
    b = 1.0 + counts.losses + 0.5 * counts.draws
    return float(1.0 - betainc(a, b, 0.5))


def review(league: League, tx: Transaction, number: int, name: str) -> tuple[list[str], list[str]]:
    """Judges accepted exploiters by the clean matches of a main's snapshot, unless there is a newer
    one.

    Returns:
        Exploiters that its main has patched, and those that it has begun to lose to again.
    """
    league.current_incarnation(tx, number)
    snapshot = league.view.players.get(name)
    if snapshot is None:
        raise NotFound(
            f"there is no player {name[: checks.MAX_NAME]!r} to judge by: name a snapshot"
        )
    if snapshot.kind is not PlayerKind.SNAPSHOT or snapshot.role is not Role.MAIN:
        raise InvalidInput(f"{name} is no main's snapshot: exploiters are patched by mains")
    main = main_of(league, snapshot)
    patched, returned = [], []
    for gate in league.view.exploiters.accepted():
        exploiter = gate.candidate
        counts = league.view.tables[Book.EVAL].payoff.counts(name, exploiter)
        if not counts.games or _has_newer_word(league, snapshot, exploiter):
            continue
        chance, threshold = beats_posterior(counts), league.settings.exploiters.patched_posterior
        if chance > threshold and not league.view.exploiters.is_patched(exploiter, main):
            _patch(league, tx, exploiter, main, snapshot, counts, chance)
            patched.append(exploiter)
        elif 1.0 - chance > threshold and league.view.exploiters.is_patched(exploiter, main):
            _return(league, tx, exploiter, main, snapshot, counts)
            returned.append(exploiter)
    return patched, returned


def main_of(league: League, snapshot: Player) -> str:
    """The live player that a snapshot was frozen from, also after a return to an older
    checkpoint.
    """
    for player in league.view.players.values():
        if (
            player.kind is PlayerKind.LIVE
            and player.state is PlayerState.ACTIVE
            and player.creator == snapshot.creator
        ):
            return player.name
    return snapshot.name.partition("@")[0]


def _has_newer_word(league: League, snapshot: Player, exploiter: str) -> bool:
    """Whether a later snapshot of the main has met the exploiter: gauntlets of older ones come
    last.
    """
    payoff = league.view.tables[Book.EVAL].payoff
    return any(
        player.kind is PlayerKind.SNAPSHOT
        and player.creator == snapshot.creator
        and player.step > snapshot.step
        and payoff.counts(player.name, exploiter).games
        for player in league.view.players.values()
    )


def _patch(
    league: League,
    tx: Transaction,
    exploiter: str,
    main: str,
    snapshot: Player,
    counts: Counts,
    chance: float,
) -> None:
    record = f"{counts.wins}-{counts.draws}-{counts.losses}"
    patch = Patch(
        main=main,
        snapshot=snapshot.name,
        wins=counts.wins,
        draws=counts.draws,
        losses=counts.losses,
        posterior=chance,
    )
    kept = {key: value for key, value in vars(patch).items() if key != "at"}
    event = league.event(
        "exploiter_patched",
        f"{main} has patched {exploiter}: {snapshot.name} scores {record} in clean matches, "
        f"so it wins more often than not with probability {chance:.3f}",
        {"exploiter": exploiter, "patch": kept},
    )
    league.log_all(tx, [event])
    tx.after_commit(lambda: league.view.add_exploiter_event(event))


def _return(
    league: League, tx: Transaction, exploiter: str, main: str, snapshot: Player, counts: Counts
) -> None:
    record = f"{counts.wins}-{counts.draws}-{counts.losses}"
    event = league.event(
        "exploiter_returned",
        f"{main} loses to {exploiter} again: {snapshot.name} scores {record} in clean matches",
        {"exploiter": exploiter, "main": main, "snapshot": snapshot.name},
    )
    league.log_all(tx, [event])
    tx.after_commit(lambda: league.view.add_exploiter_event(event))
