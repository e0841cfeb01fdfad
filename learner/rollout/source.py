"""Hands out matches and takes results. The matches come from the matchmaker or from a list."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Protocol

from league.errors import Fenced, LeagueError
from league.games.base import CHOICE, KEYS
from league.ids import new_id
from league.players import Assignment, MatchResult
from league.rpc.client import MatchmakerClient
from league.service.pace import Pace
from league.stages import StageRequest

AHEAD = {KEYS: 16, CHOICE: 256}
"""Smallest number of assignments to fetch in advance, by the kind of actions. If the actions are
choices, a match may last only one step, so all matches of a batch may end at once.
"""
GATHER_SECONDS = 0.25
"""Shortest time between two exchanges with the matchmaker while enough matches are ready. An
exchange costs the learner and the matchmaker about a millisecond each, no matter how many results
it carries.
"""
HOLD_SECONDS = 0.5
"""Time after which a paused learner checks again whether the pause has ended."""
log = logging.getLogger(__name__)


class OpponentSource(Protocol):
    """Hands out the matches of a `LeagueVecEnv` and takes their results."""

    def take(self) -> Assignment:
        """Returns the next match to play."""

    def report(self, result: MatchResult) -> None:
        """Reports a finished match."""

    def hand_back(self, assignment: Assignment) -> None:
        """Gives back a match that will not be played."""


class RecordedSource:
    """Plays a given list of assignments and keeps the results."""

    def __init__(self, assignments: Iterable[Assignment]) -> None:
        self._left = deque(assignments)
        self.results: list[MatchResult] = []
        self.handed_back: list[Assignment] = []

    def take(self) -> Assignment:
        return self._left.popleft()

    def report(self, result: MatchResult) -> None:
        self.results.append(result)

    def hand_back(self, assignment: Assignment) -> None:
        self.handed_back.append(assignment)


class MatchBroker:
    """Talks to the matchmaker in a thread, so that no step of training waits for the network.

    The thread keeps `ahead` assignments ready, sends results in batches until the matchmaker
    acknowledges them, and sends a heartbeat with the newest progress every `beat_seconds`. If the
    thread fails, the next call from the training loop raises the thread's error.

    Args:
        client: connection to the matchmaker.
        incarnation: the number under which this start of the learner leases matches
            (`learner.train.join`).
        mix: the opponent mix to draw from.
        ahead: assignments to keep ready.
        ready: assignments that are leased already.
        log_position: position of the newest acknowledged result in the league's log.
        beat_seconds: seconds between heartbeats.
        is_leader: whether this process is the leader (rank 0) of the learner's processes (ranks),
            which share an incarnation. The leader sends the heartbeats for all of them, and hands
            back all unplayed matches at the end.
    """

    def __init__(
        self,
        client: MatchmakerClient,
        incarnation: int,
        mix: str,
        *,
        ahead: int,
        ready: Iterable[Assignment] = (),
        log_position: int = 0,
        beat_seconds: float = 1.0,
        is_leader: bool = True,
    ) -> None:
        self._client, self._incarnation, self._ahead = client, incarnation, ahead
        self._beat_seconds, self._is_leader = beat_seconds, is_leader
        self._mix = mix
        self._ready: deque[Assignment] = deque(ready)
        self._dropped: list[str] = []
        self._outbox: list[MatchResult] = []
        self._in_flight = 0
        self._is_flushing = False
        self._beat: tuple[int, int, str, Mapping[str, float]] = (0, 0, "starting", {})
        self._pace = Pace()
        self._log_position = log_position
        self._asked: StageRequest | None = None
        self._paused: bool | None = None
        self._error: LeagueError | None = None
        self._changed = threading.Condition()
        self._closing = False
        self.refused = 0
        self.waiting_seconds = 0.0
        self._thread = threading.Thread(target=self._run, name="match-broker", daemon=True)
        self._thread.start()

    # -- called by the training loop ------------------------------------------------------------

    def take(self) -> Assignment:
        """Returns the next match. Waits for the matchmaker when no match is ready.

        Raises:
            LeagueError: an error of the background thread.
        """
        started = time.monotonic()
        with self._changed:
            while not self._ready:
                self._raise_error()
                self._pace.rests()
                self._changed.wait(0.5)
            assignment = self._ready.popleft()
            self._changed.notify_all()
        self.waiting_seconds += time.monotonic() - started
        return assignment

    def report(self, result: MatchResult) -> None:
        """Queues a result for the next batch."""
        with self._changed:
            self._raise_error()
            self._outbox.append(result)
            self._changed.notify_all()

    def hand_back(self, assignment: Assignment) -> None:
        """Gives back a match that will not be played."""
        with self._changed:
            self._raise_error()
            self._dropped.append(assignment.match_id)

    def beat(self, progress: int, step: int, activity: str, metrics: Mapping[str, float]) -> None:
        """Sets the content of the next heartbeat. If progress, step and activity have not changed
        since the last call, the learner counts as waiting.

        Args:
            progress: number of frames played.
            step: number of the learner's steps.
            activity: the current work.
            metrics: numbers by name.
        """
        with self._changed:
            self._raise_error()
            if (progress, step, activity) == self._beat[:3]:
                self._pace.rests()
            else:
                self._pace.moved()
            self._beat = (progress, step, activity, dict(metrics))

    def change_mix(self, mix: str) -> None:
        """Draws from another opponent mix. Matches drawn ahead are handed back."""
        with self._changed:
            self._mix = mix
            self._dropped += [assignment.match_id for assignment in self._ready]
            self._ready.clear()
            self._changed.notify_all()

    def asked(self) -> StageRequest | None:
        """Returns the stage that an operator asked for, as of the newest heartbeat."""
        with self._changed:
            return self._asked

    def paused(self) -> bool:
        """Returns whether an operator has paused the learners, as of the newest heartbeat. Waits
        for the first heartbeat. Only the leader (rank 0) may call it, because only the leader sends
        heartbeats.
        """
        with self._changed:
            while self._paused is None:
                self._raise_error()
                self._pace.rests()
                self._changed.wait(0.5)
            return self._paused

    def ready(self) -> list[Assignment]:
        """Returns the matches that were drawn and have not yet begun."""
        with self._changed:
            return list(self._ready)

    def flush(self, timeout: float = 30.0) -> int:
        """Waits until every result is acknowledged.

        If the matchmaker does not answer, the wait ends after `timeout` seconds, so that a
        checkpoint can be written. If the run later continues from this checkpoint, results that
        were acknowledged after the wait count as lost.

        Returns:
            The log position of the newest acknowledged result.
        """
        limit = time.monotonic() + timeout
        with self._changed:
            self._is_flushing = True
            self._changed.notify_all()
            while (self._outbox or self._in_flight) and self._error is None:
                if time.monotonic() > limit:
                    log.warning(
                        "results wait for the matchmaker: the checkpoint is written without them"
                    )
                    break
                self._changed.wait(0.05)
            self._is_flushing = False
            return self._log_position

    def close(self, reason: str = "the learner stops") -> None:
        """Ends the thread. The leader (rank 0) sends a last heartbeat and hands back unplayed
        matches.
        """
        with self._changed:
            if self._closing:
                return
            self._closing = True
            self._changed.notify_all()
        self._thread.join(timeout=3)
        if self._is_leader and self._error is None and not self._thread.is_alive():
            with contextlib.suppress(LeagueError):  # must not hide the error that ended the run
                self._send_beat()
                self._client.release_matches(self._incarnation, reason=reason)

    def _raise_error(self) -> None:
        if self._error is not None:
            raise self._error

    # -- the thread -----------------------------------------------------------------------------

    def _run(self) -> None:
        beat_at = 0.0
        try:
            while not self._closing:
                self._send_results()
                self._release()
                self._fetch()
                if time.monotonic() >= beat_at:
                    self._send_beat()
                    beat_at = time.monotonic() + self._beat_seconds
                with self._changed:
                    left = max(0.01, beat_at - time.monotonic())
                    self._changed.wait_for(self._has_work, left)
                    self._changed.wait_for(self._is_urgent, min(left, GATHER_SECONDS))
            self._send_results()
        except Exception as error:  # raised in the training loop, which else would wait for ever
            with self._changed:
                self._error = (
                    error
                    if isinstance(error, LeagueError)
                    else LeagueError(
                        f"the learner's connection to the matchmaker failed: {error!r}"
                    )
                )
                self._changed.notify_all()
            if self._error is not error:
                log.exception("the match broker failed")

    def _has_work(self) -> bool:
        return bool(self._outbox) or len(self._ready) < self._ahead or self._is_urgent()

    def _is_urgent(self) -> bool:
        """Returns whether the thread should contact the matchmaker now, without waiting for more
        results.
        """
        runs_out = 2 * len(self._ready) <= self._ahead
        return runs_out or self._is_flushing or self._closing or bool(self._dropped)

    def _fetch(self) -> None:
        with self._changed:
            wanted, mix = self._ahead - len(self._ready), self._mix
        if wanted <= 0:
            return
        assignments = self._client.acquire_matches(self._incarnation, wanted, mix)
        with self._changed:
            if mix == self._mix:
                self._ready.extend(assignments)
            else:
                self._dropped += [assignment.match_id for assignment in assignments]
            self._changed.notify_all()

    def _release(self) -> None:
        with self._changed:
            dropped, self._dropped = self._dropped, []
        if dropped:
            self._client.release_matches(
                self._incarnation, dropped, reason="the mix changed, or their rival is slow"
            )

    def _send_results(self) -> None:
        with self._changed:
            batch, self._outbox = self._outbox, []
            self._in_flight = len(batch)
        if not batch:
            return
        verdicts, position = self._client.report_results(
            self._incarnation, batch, request_id=new_id()
        )
        for verdict in verdicts:
            if not verdict.accepted:
                self.refused += 1
                log.warning("result of match %s refused: %s", verdict.match_id, verdict.reason)
        with self._changed:
            self._in_flight = 0
            self._log_position = max(self._log_position, position)
            self._changed.notify_all()

    def _send_beat(self) -> None:
        if not self._is_leader:
            return
        with self._changed:
            progress, step, activity, metrics = self._beat
            mix, metrics = self._mix, self._pace.judged(metrics)
        answer = self._client.heartbeat(self._incarnation, progress, step, mix, activity, metrics)
        with self._changed:
            self._asked, self._paused = answer.asked, answer.paused
            self._changed.notify_all()
        if answer.fenced:
            raise Fenced("another process has taken over this learner: this one stops")
