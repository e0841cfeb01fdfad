"""Watches evaluators, and puts an evaluator into quarantine if it plays a different game than the
other evaluators, because of other rules or corrupted weights.

The watch compares clean matches, in which both players are frozen. The matches are read in the
order in which they were assigned, up to the oldest match with an open lease. In the order of the
results, short matches would come first.

A quarantine deletes no results, and only excludes them. When the worker is released, its results
count again, unless the operator says that the worker was repaired.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Any

from league.errors import InvalidInput, NotFound
from league.stats.homogeneity import Homogeneity, PairOfMatches, found
from matchmaker.acts import checks
from matchmaker.acts.assign import close
from matchmaker.state.league import League
from matchmaker.store import pairings
from matchmaker.store.transaction import Reader, Transaction

WATCH = "the watch"
_log = logging.getLogger(__name__)


def quarantine_worker(
    league: League,
    tx: Transaction,
    worker: str,
    release: bool,
    repaired: bool,
    reason: str,
    by: str,
) -> int:
    """Puts an evaluator into quarantine, or releases it.

    A quarantine ends the evaluator's leases and excludes the results of its clean matches (both
    players frozen) from ratings and payoffs. A release includes these results again, unless
    `repaired` is set.

    Args:
        release: whether to end the quarantine.
        repaired: whether the evaluator had a fault, so that its results from before the release
            stay excluded.
        reason: why the evaluator is in quarantine.
        by: the person who asks.

    Returns:
        The number of results that no longer count, or that count again.

    Raises:
        NotFound: there is no such worker.
        InvalidInput: the worker trains a player, the reason is empty, or nothing would change.
    """
    checks.text(by, "by", checks.MAX_NAME)
    checks.text(reason, "reason")
    quarantines, who = league.view.quarantines, f"{by} " if by else ""
    mine = tx.incarnations_of(checks.worker_name(worker))
    if not mine:
        raise NotFound(f"there is no worker {worker!r}: `bin/league status` lists them")
    numbers = [row.number for row in mine]
    if release:
        if worker not in quarantines.out and worker not in quarantines.torn:
            raise InvalidInput(f"{worker} is in no quarantine, and disagrees with no other worker")
        after = ": its results from before don't count" if repaired else ""
        text = f"{who}lets {worker} play again{after}"
        league.log(tx, "worker_released", text, worker=worker, by=by, repaired=repaired)
        return 0 if repaired else _recounted(league, tx, quarantines.without.intersection(numbers))
    if mine[-1].player:
        raise InvalidInput(
            f"{worker} trains {mine[-1].player}: stop it, and quarantine snapshots of its"
        )
    if not reason.strip():
        raise InvalidInput(f"{worker} is put into quarantine without a reason: say why")
    if worker in quarantines.out:
        raise InvalidInput(f"{worker} is in quarantine already")
    text = f"{who}puts {worker} into quarantine: {reason}"
    more = {"incarnations": numbers, "reason": reason, "by": by}
    league.log(tx, "worker_quarantined", text, worker=worker, **more)
    leases = [lease for number in numbers for lease in tx.open_assignments(number)]
    close(league, tx, leases, "abandoned", f"{worker} is in quarantine")
    return _recounted(league, tx, set(numbers) - quarantines.without)


def _recounted(league: League, tx: Transaction, incarnations: Collection[int]) -> int:
    """Rebuilds ratings and payoffs of clean matches (both players frozen) if these incarnations
    (starts of workers) reported any of the matches. Returns the number of results that they
    reported.
    """
    first, results = pairings.first_counted(tx, incarnations)
    if results:
        tx.drop_folds(after=first - 1)
        tx.after_commit(lambda: league.recount(tx))
    return results


class Watch:
    """Compares the evaluators of a league at each call of `look`."""

    def __init__(self, league: League) -> None:
        self._league = league
        self._counted: Any = None
        self._start_again()

    def _start_again(self) -> None:
        self._compared, self._ordinal = Homogeneity(), 0
        self._first: pairings.PairedResult | None = None  # may begin a pair

    def look(self) -> None:
        """Reads the new clean matches (both players frozen), and quarantines an evaluator that
        plays a different game.

        If the results don't show which evaluator plays a different game, the event in the log names
        all suspects.
        """
        view = self._league.view.checked()
        with view.lock:
            quarantines = view.quarantines
            without, released = quarantines.without, dict(quarantines.watched_after)
            counted = without, released, view.rules_position
        if counted != self._counted:
            self._counted = counted
            self._start_again()
        with self._league.store.read() as reader:
            if not self._take_in(reader):
                return
        guilty, torn = found(self._compared.suspects())
        if guilty is not None:
            reason = f"its results are not those of the other evaluators: {guilty.words}"
            with self._league.store.write() as tx:
                if guilty.worker in view.quarantines.out:
                    return
                quarantine_worker(self._league, tx, guilty.worker, False, False, reason, WATCH)
            _log.error("%s", view.quarantines.sentence(guilty.worker))
        elif any(suspect.worker not in view.quarantines.torn for suspect in torn):
            names = sorted(suspect.worker for suspect in torn)
            text = (
                f"{' and '.join(names)} play different games, and it can't be told which of them "
                f"is right: with {torn[0].worker}, compared with the others, {torn[0].words}; find "
                "out, and use bin/league quarantine --worker NAME with --reason or --release"
            )
            with self._league.store.write() as tx:
                self._league.log(tx, "workers_disagree", text, workers=names)
            _log.error("%s", text)

    def _take_in(self, reader: Reader) -> int:
        """Compares the clean matches since the last call. Returns the number of compared pairs of
        matches (same seed, swapped seats).
        """
        without, released, rules_position = self._counted
        workers = {row.number: row.worker for row in reader.incarnations() if not row.player}
        if len({*workers.values()}) < 2:
            return 0
        pairs, until = 0, pairings.settled(reader)
        for match in pairings.results(reader, self._ordinal, until):
            worker = workers.get(match.incarnation, "")
            since = max(rules_position, released.get(worker, 0))
            if not worker or match.incarnation in without or match.event_position <= since:
                continue
            before, self._first = self._first, match
            if before is None or not match.is_second_of(before):
                continue
            (first, second), seats = sorted((match.seat0, match.seat1)), (before, match)
            points = sum(x.outcome if x.seat0 == first else 1.0 - x.outcome for x in seats)
            draws = sum(x.outcome == 0.5 for x in seats)
            result = PairOfMatches(points, draws, before.failed + match.failed)
            self._compared.add(worker, match.book, first, second, result)
            pairs, self._first = pairs + 1, None
        self._ordinal = until
        return pairs
