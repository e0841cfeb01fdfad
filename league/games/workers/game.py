"""Plays a game in worker processes, on this machine or others.

All workers step at the same time. If a worker dies, only its matches fail. While it is started
again, its rows (places for matches) are absent, and the other workers continue.

Shape suffixes: N matches, R rows of a worker, 2 seats, A actions.
"""

from __future__ import annotations

import json
import logging
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from league.errors import ConfigError, DataCorrupt, InvalidInput, Unavailable
from league.games.base import BatchedGame, GameSpec, check_saved
from league.games.hosted import START_SECONDS
from league.games.registry import make_batched
from league.games.workers.links import Link, LocalLink, RemoteLink
from league.games.workers.pool import Share, Workers
from league.games.workers.records import (
    RESET,
    checked_rows,
    ended_type,
    row_type,
    rules_digest,
    step_type,
)
from league.security.credentials import Credentials
from league.v1 import workers_pb2 as pb

JOIN_SECONDS = 20.0
"""How long a learner waits at its start for the last workers, once some workers have answered."""
MOST_STATE = 64 << 10
"""Bytes of a saved match that a worker on another machine may send."""
log = logging.getLogger(__name__)


class WorkerGame(BatchedGame):
    """Plays N matches of a game in workers.

    Args:
        spec: the game.
        rules: the text of the game's rules (`BatchedGame.rules_text`).
        links: the workers. The matches are divided among them in this order.

    Raises:
        InvalidInput: there are no matches.
    """

    def __init__(self, spec: GameSpec, rules: str, links: Sequence[Link]) -> None:
        super().__init__(spec, sum(link.matches for link in links))
        self._rules = rules
        self.host = Workers(links)
        weakref.finalize(self, self.host.close)
        self._seeds_N = np.zeros(self.num_matches, np.uint64)  # of matches that are absent
        self._played_N2A = np.zeros((self.num_matches, 2, spec.action_size), np.uint8)
        self._tells_played = False
        self._row, self._end = row_type(spec), ended_type(spec)
        self._step_N = np.zeros(self.num_matches, step_type(spec))
        self._is_begun = False

    @property
    def worker_pids(self) -> list[int]:
        """The process ids of the workers on this machine."""
        return [share.link.pid for share in self.host.shares if share.link.pid is not None]

    def reset(self, seeds: NDArray[np.uint64], where: NDArray[np.bool_] | None = None) -> None:
        """Begins new matches. The first reset begins a match in every row, and waits for the
        workers.

        Raises:
            InvalidInput: a wrong shape.
            ConfigError: a worker plays another game.
            Unavailable: no worker can be reached or started.
        """
        seeds_N, where_N = self.checked_seeds(seeds, where)
        if not self._is_begun:
            self._join()
            where_N[:] = True
        asked = []
        for share in self.host.shares:
            if not where_N[share.rows].any():
                continue
            if share.is_present:
                self._send_reset(share, seeds_N, where_N)
                asked.append(share)
            else:
                self._await_begin(share, seeds_N, where_N)
        for share in asked:
            if not self._begun(share, where_N):
                self._await_begin(share, seeds_N, where_N)

    def _await_begin(
        self, share: Share, seeds_N: NDArray[np.uint64], where_N: NDArray[np.bool_]
    ) -> None:
        """Notes the seeds of matches that begin as soon as the worker is there."""
        rows = np.flatnonzero(where_N[share.rows]) + share.rows.start
        self._seeds_N[rows] = seeds_N[rows]
        self.next_seeds_N[rows] = seeds_N[rows] + np.uint64(1)
        self.frames_N[rows], self.stats_N2S[rows] = 0, 0.0

    def _send_reset(
        self, share: Share, seeds_N: NDArray[np.uint64], where_N: NDArray[np.bool_]
    ) -> None:
        rows_R = np.zeros(share.link.matches, RESET)
        rows_R["seed"], rows_R["begins"] = seeds_N[share.rows], where_N[share.rows]
        rows_R["bots"] = self.bots_N2[share.rows]
        share.link.send(pb.WorkRequest(work=pb.WORK_RESET, rows=rows_R.tobytes()))

    def _begun(self, share: Share, where_N: NDArray[np.bool_]) -> bool:
        """Reads the response to a reset. Returns False if the worker's matches are lost."""
        try:
            response = share.link.receive()
            rows_R = self._records(share, response.rows, self._row, share.link.matches)
        except Unavailable as error:
            self._lose(share, str(error))
            return False
        self._show(share, rows_R, where_N[share.rows])
        return True

    def begin_absent(self, everywhere: bool = False) -> None:
        """Begins the matches of `absent_N` whose workers are there again. While no worker is there,
        it waits.

        Args:
            everywhere: whether to wait until all workers are there.

        Raises:
            Unavailable: no worker was there for `host.wait_seconds`.
        """
        if not self.absent_N.any():
            return
        host = self.host

        def are_enough() -> bool:
            ready = [share.is_present or host.poll(share) for share in host.shares]
            return all(ready) if everywhere else any(ready)

        host.wait(are_enough, host.wait_seconds)
        for share in host.shares:
            # Lost matches first fail in a step.
            if not share.is_present and not share.lost and share.link.poll():
                self._begin_share(share)
        if not host.should_stop() and not any(share.is_present for share in host.shares):
            problems = {share.link.problem for share in host.shares} - {""}
            if problems:
                raise Unavailable(f"no worker plays {self.spec.name}: {min(problems)}")

    def _begin_share(self, share: Share) -> None:
        """Begins the matches of all rows of a worker."""
        where_N = np.ones(self.num_matches, np.bool_)
        self._send_reset(share, self._seeds_N, where_N)
        if self._begun(share, where_N):
            share.is_present, self.absent_N[share.rows] = True, False
        else:
            share.lost = ""  # no match has begun that could fail

    def _join(self) -> None:
        """Waits for the workers at the start. Continues without the workers that are late, as long
        as some workers are there.
        """
        host = self.host
        are_local = any(isinstance(share.link, LocalLink) for share in host.shares)
        began, first = time.monotonic(), [0.0]

        def are_enough() -> bool:
            ready = [host.poll(share) for share in host.shares]
            other = [share.link for share in host.shares if share.link.is_other_game]
            if other:
                raise ConfigError(other[0].problem)
            first[0] = first[0] or (time.monotonic() if any(ready) else 0.0)
            late = bool(first[0]) and time.monotonic() - first[0] > JOIN_SECONDS
            return all(ready) or late

        host.wait(are_enough, START_SECONDS if are_local else host.wait_seconds)
        present = [share for share in host.shares if host.poll(share)]
        if not present:
            problem = next((share.link.problem for share in host.shares), "")
            waited = time.monotonic() - began
            raise Unavailable(
                f"no worker plays {self.spec.name}: {problem or f'none answered in {waited:.0f} s'}"
            )
        for share in host.shares:
            share.is_present = share in present
            self.absent_N[share.rows] = not share.is_present
        self._is_begun = True

    def step(self, actions_N2A: NDArray[np.uint8], frames: int = 1) -> None:
        """Plays frames in the rows whose workers are there. All workers play at the same time."""
        actions_N2A = self.checked_actions(actions_N2A, frames)
        self.refuse_illegal(actions_N2A)
        if not self._is_begun:
            raise InvalidInput("no match was begun, or the game was closed: reset it")
        self.reward_terms_N2K[:] = 0.0
        self.ended_N[:] = False
        self._played_N2A[:] = 0
        rows_N = self._step_N
        rows_N["actions"], rows_N["bots"], rows_N["idle"] = actions_N2A, self.bots_N2, self.idle_N
        rows_N["next_seed"] = self.next_seeds_N
        asked = [share for share in self.host.shares if share.is_present]
        for share in asked:
            content = rows_N[share.rows].tobytes()
            share.link.send(pb.WorkRequest(work=pb.WORK_STEP, number=frames, rows=content))
        failures: dict[int, str] = {}
        for share in asked:
            self._stepped(share, failures)
        for share in self.host.shares:
            if share.lost:
                rows = range(self.num_matches)[share.rows]
                self._fail_lost(rows)
                failures |= dict.fromkeys(rows, share.lost)
                share.lost, self.absent_N[share.rows] = "", True
        self.failures = failures

    def _stepped(self, share: Share, failures: dict[int, str]) -> None:
        """Reads the response to a step, and adds its failures."""
        try:
            response = share.link.receive()
            rows_R = self._records(share, response.rows, self._row, share.link.matches)
            ended = np.flatnonzero(rows_R["ended"])
            ends_R = self._records(share, response.ended, self._end, len(ended))
        except Unavailable as error:
            self._lose(share, str(error))
            return
        rows = share.rows
        self._show(share, rows_R, np.ones(len(rows_R), np.bool_))
        self.reward_terms_N2K[rows], self.ended_N[rows] = rows_R["terms"], rows_R["ended"]
        self._tells_played = bool(rows_R["is_played"].all())
        self._played_N2A[rows] = rows_R["played"]
        ended += rows.start
        self.final_observations_N2O[ended] = ends_R["observations"]
        self.final_stats_N2S[ended], self.final_frames_N[ended] = ends_R["stats"], ends_R["frames"]
        self.outcomes_N[ended] = ends_R["outcome"]
        failures |= {
            rows.start + one.row: one.reason or f"{share.link.name} gave no reason"
            for one in response.failures
            if one.row < share.link.matches
        }

    def _records(
        self, share: Share, content: bytes, kind: np.dtype[np.void], count: int
    ) -> NDArray[np.void]:
        """Reads and checks records. Raises `Unavailable` for wrong sizes and numbers."""
        try:
            return checked_rows(content, kind, count, self.spec.max_frames)
        except InvalidInput as error:
            raise Unavailable(f"{share.link.name} sent {error}") from None

    def _show(self, share: Share, rows_R: NDArray[np.void], where_R: NDArray[np.bool_]) -> None:
        """Writes the current state of the rows `where_R` of a worker."""
        rows = np.flatnonzero(where_R) + share.rows.start
        seen_R = rows_R[where_R]
        self.observations_N2O[rows], self.stats_N2S[rows] = seen_R["observations"], seen_R["stats"]
        self.frames_N[rows], self.next_seeds_N[rows] = seen_R["frames"], seen_R["next_seed"]
        if self.legal_N2A is not None:
            self.legal_N2A[rows] = seen_R["legal"]

    def _lose(self, share: Share, reason: str) -> None:
        """Gives up a worker. Its matches fail in the current step, or in the next one."""
        log.warning("%s: its %d matches have failed", reason, share.link.matches)
        if share.link.problem != reason:
            share.link.drop(reason)
        share.is_present, share.lost = False, reason

    def _fail_lost(self, rows: range) -> None:
        """Ends lost matches without an outcome. The next matches of their rows are absent."""
        lost = np.array(rows, np.intp)
        self.final_observations_N2O[lost] = self.observations_N2O[lost]
        self.final_frames_N[lost], self.final_stats_N2S[lost] = (
            self.frames_N[lost],
            self.stats_N2S[lost],
        )
        self.reward_terms_N2K[lost], self.outcomes_N[lost] = 0.0, 0.5
        self.ended_N[lost] = True
        self._seeds_N[lost] = self.next_seeds_N[lost]
        self.next_seeds_N[lost] += np.uint64(1)
        self.frames_N[lost], self.stats_N2S[lost] = 0, 0.0

    # -- everything but resets and steps --------------------------------------------------------

    def rules_text(self) -> str:
        """Returns the text of the rules."""
        return self._rules

    def played_N2A(self) -> NDArray[np.uint8] | None:
        """Returns the actions of both seats in the last frame, [N, 2, A]. None if the game does not
        report the actions of its bots.
        """
        return self._played_N2A.copy() if self._tells_played else None

    def frame(self, match: int) -> dict[str, Any]:
        """Returns a match's current state."""
        return self._shown(pb.WORK_FRAME, match) or {"frame": int(self.frames_N[match])}

    def final_frame(self, match: int) -> dict[str, Any] | None:
        """Returns the last frame of the previous match of a row, if the game keeps it."""
        return self._shown(pb.WORK_FINAL_FRAME, match)

    def _shown(self, work: pb.Work, match: int) -> dict[str, Any] | None:
        share = next(s for s in self.host.shares if s.rows.start <= match < s.rows.stop)
        asked = pb.WorkRequest(work=work, number=match - share.rows.start)
        shown = next(iter(self._asked([share], asked)), None)
        return None if shown is None else _json(shown.text)

    def clipped(self) -> Mapping[str, int]:
        """Counts the observed values that the game had to clip since the last call."""
        total: dict[str, int] = {}
        for response in self._asked(self.host.shares, pb.WorkRequest(work=pb.WORK_CLIPPED)):
            for name, count in (_json(response.text) or {}).items():
                total[str(name)] = total.get(str(name), 0) + int(count)
        return total

    def _asked(self, shares: Sequence[Share], request: pb.WorkRequest) -> Iterator[pb.WorkResponse]:
        """Sends a request to the workers that are there, and yields their responses."""
        asked = [share for share in shares if share.is_present]
        for share in asked:
            share.link.send(request)
        for share in asked:
            try:
                yield share.link.receive()
            except Unavailable as error:
                self._lose(share, str(error))

    def own_state(self) -> dict[str, NDArray]:
        """Returns the seeds of absent matches."""
        return {"seeds_N": self._seeds_N}

    def save(self) -> dict[str, NDArray]:
        """Copies the whole state, which includes the saved matches of each worker. The matches of a
        worker that is absent, or that dies meanwhile, can't be continued from it.
        """
        state = super().save()
        saved = [b""] * len(self.host.shares)
        for place, share in enumerate(self.host.shares):
            for response in self._asked([share], pb.WorkRequest(work=pb.WORK_SAVE)):
                saved[place] = response.state
        sizes = [
            [share.link.matches, len(one)]
            for share, one in zip(self.host.shares, saved, strict=True)
        ]
        return state | {
            "worker_sizes": np.array(sizes, np.int64),
            "worker_states": np.frombuffer(b"".join(saved), np.uint8).copy(),
        }

    def load(self, state: dict[str, NDArray]) -> None:
        """Continues from a state that `save` returned, with the same division among workers.

        Raises:
            DataCorrupt: the state does not fit, or was saved with other workers.
            VersionMismatch: the matches were played under other rules, options or another time
                limit.
            Unavailable: no worker can be reached or started.
        """
        sizes, shares = state.get("worker_sizes"), self.host.shares
        check_saved(state, "worker_sizes", np.zeros((len(shares), 2), np.int64))
        assert sizes is not None
        if sizes[:, 0].tolist() != [share.link.matches for share in shares] or sizes.min() < 0:
            raise DataCorrupt("the matches were saved with other workers: begin new ones")
        check_saved(state, "worker_states", np.zeros(int(sizes[:, 1].sum()), np.uint8))
        super().load(state)
        if not self._is_begun:
            self._join()
        parts = np.split(state["worker_states"], np.cumsum(sizes[:, 1])[:-1])
        for share, part in zip(shares, parts, strict=True):
            if not len(part):
                self._lose(share, "its worker was absent when the matches were saved")
                continue
            request = pb.WorkRequest(work=pb.WORK_LOAD, state=part.tobytes())
            responses = list(self._asked([share], request))
            if not responses:
                raise DataCorrupt(f"{share.link.name} can't continue the saved matches")
            rows_R = self._records(share, responses[0].rows, self._row, share.link.matches)
            self._show(share, rows_R, np.ones(len(rows_R), np.bool_))

    def close(self) -> None:
        """Ends the workers of this machine and the connections to others. `reset` and `load` begin
        again.
        """
        self.host.close()
        self._is_begun = False


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        raise Unavailable("a game worker sent no JSON: use the same version of Kumite") from None


def make_spread(
    name: str,
    num_matches: int,
    *,
    workers: Sequence[str | None],
    credentials: Credentials,
    max_frames: int | None,
    options: Mapping[str, Any],
) -> WorkerGame:
    """Makes matches of a game that workers play.

    Args:
        name: the game's name.
        num_matches: N. The workers get equal parts. No worker is used for less than a match.
        workers: the address HOST:PORT of each worker, or None for a process on this machine.
        credentials: the league's token and certificates, for workers on other machines.
        max_frames: time limit in frames. None means the game's own limit.
        options: the game's options.
    """
    game = make_batched(name, 1, max_frames=max_frames, **options)
    try:
        spec, rules, digest = game.spec, game.rules_text(), rules_digest(game)
    finally:
        game.close()
    used = workers[:num_matches]
    sizes = np.diff(np.linspace(0, num_matches, len(used) + 1).astype(int)).tolist()
    local = json.dumps({"name": name, "max_frames": max_frames, **options})
    row = row_type(spec).itemsize + ended_type(spec).itemsize + MOST_STATE
    links: list[Link] = [
        LocalLink(f"game worker {number}", size, digest, local)
        if address is None
        else RemoteLink(address, size, digest, credentials, size * row + (1 << 20))
        for number, (address, size) in enumerate(zip(used, sizes, strict=True), 1)
    ]
    return WorkerGame(spec, rules, links)
