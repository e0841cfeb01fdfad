"""Calls the matchmaker. Arguments and results are domain types, and errors are classes of
`league.errors`.

If a call is sent again (`league.rpc.channel`), it keeps its request id, so it takes effect only
once. A reply means that the effect is on disk.
"""

from __future__ import annotations

import hashlib
import os
import socket
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple, TypeVar

from league.errors import DataCorrupt
from league.evaluations import Evaluation, Report
from league.exploiters import Generation, Standing
from league.gates import CandidateGate
from league.ids import new_id
from league.players import (
    Assignment,
    Book,
    Event,
    Incarnation,
    MatchLine,
    MatchRecord,
    MatchResult,
    Pairing,
    PayoffCell,
    Player,
    PlayerKind,
    PlayerState,
    Rating,
    Role,
    Verdict,
)
from league.population import MemberCopy, Population
from league.rpc.channel import TRANSFER_SECONDS, Connection
from league.rpc.convert import encoded, from_enum, from_message
from league.runs.blobs import MOST_BYTES, PART_BYTES, BlobKind
from league.runs.files import parse_json
from league.stages import CurriculumStatus, Place, Stage, StageRequest
from league.status import LeagueStatus, MixChange, Pause
from league.v1 import evaluator_pb2 as e
from league.v1 import exploiters_pb2 as x
from league.v1 import matchmaker_pb2 as m

V = TypeVar("V")

NODE = "KUMITE_NODE"
"""Environment variable with the name of a worker's machine. Default: the machine's host name."""


class Beat(NamedTuple):
    """Holds the reply to a worker's heartbeat.

    Attributes:
        fenced: whether the worker has been started again since. Calls of the start that sent this
            heartbeat are then refused.
        lease_deadline: Unix time in seconds at which the worker's leases expire unless it makes
            further progress.
        asked: the stage that an operator asks the worker's learner to enter, or None.
        paused: whether an operator has paused the learners.
    """

    fenced: bool
    lease_deadline: float
    asked: StageRequest | None
    paused: bool = False


class Leaderboard(NamedTuple):
    """Holds the ratings of a book, best first.

    `anchors` has the pinned ratings by player, which are the same in all books. `log_position` and
    `event_position` are the log positions of the newest result and of the newest event.
    """

    ratings: list[Rating]
    anchors: dict[str, float]
    log_position: int
    event_position: int


class Payoffs(NamedTuple):
    """Holds the match counts of each pair of players that met in a book, and the log positions of
    the newest result and of the newest event.
    """

    cells: list[PayoffCell]
    log_position: int
    event_position: int


class MatchmakerClient(Connection):
    """Calls the matchmaker. Opening a client never fails, because the first call waits for the
    service.

    An incarnation is a start of a worker. In all methods, `incarnation` identifies the calling
    worker (as a number, or as the `Incarnation` itself), and `by` names the operator, for the log.
    A worker's call raises `Fenced` if the worker has been started again since.

    Matches are counted in three books: the matches of learners (train), and the clean matches, in
    which both players are frozen, with sampled actions (eval) or with the likeliest (greedy).
    """

    def _ask(self, method: str, **fields: Any) -> Any:
        """Sends the request of a call, and returns the reply. If the request has a field for a
        request id, it gets a new id, unless `fields` has an id.
        """
        name = f"{method}Request"
        message: Any = next(getattr(api, name) for api in (m, x, e) if hasattr(api, name))
        if "request_id" in message.DESCRIPTOR.fields_by_name:
            fields["request_id"] = fields.get("request_id") or new_id()
        values = {name: encoded(value) for name, value in fields.items()}
        return self._call(method, message(**values))

    # Workers' calls.

    def register_players(
        self, players: Iterable[Player], incarnation: int | Incarnation = 0
    ) -> tuple[list[Player], list[str]]:
        """Registers players. A parent must come before its copies. A second call changes nothing.

        Returns:
            The players in their present state, and the names of snapshots that retired because of
            ``max_saved``.

        Raises:
            AlreadyExists: another player has the name.
        """
        reply = self._ask("RegisterPlayers", players=list(players), incarnation=incarnation)
        return _all(Player, reply.players), list(reply.retired)

    def open_incarnation(
        self,
        worker: str,
        player: str = "",
        checkpoint_step: int = 0,
        checkpoint_log_position: int = 0,
        carried_matches: Sequence[str] = (),
        game_version: str = "",
    ) -> Incarnation:
        """Opens a new incarnation of a worker and fences its earlier incarnations.

        A worker calls this at each start. Calls of a fenced incarnation are refused, so a worker
        that was replaced can do no harm.

        Args:
            worker: the worker's name, such as "learner-main" or "evaluator-0".
            player: the live player that the worker trains, or "" for an evaluator.
            checkpoint_step: the step of the checkpoint from which a learner continues.
            checkpoint_log_position: log position of the last result acknowledged before the
                checkpoint, 0 without results.
            carried_matches: ids of the matches in progress at the checkpoint.
            game_version: the version of the rules by which the worker plays.

        Raises:
            VersionMismatch: the league uses another version of the rules than `game_version`.
        """
        reply = self._ask(
            "OpenIncarnation",
            worker=worker,
            player=player,
            checkpoint_step=checkpoint_step,
            checkpoint_log_position=checkpoint_log_position,
            carried_matches=carried_matches,
            game_version=game_version,
        )
        carried = tuple(_all(Assignment, reply.carried))
        return Incarnation(
            number=reply.incarnation, carried=carried, lost_results=reply.lost_results
        )

    def acquire_matches(
        self, incarnation: int | Incarnation, count: int, mix: str
    ) -> list[Assignment]:
        """Leases `count` matches between the worker's learner and opponents drawn from `mix`."""
        reply = self._ask("AcquireMatches", incarnation=incarnation, count=count, mix=mix)
        return _all(Assignment, reply.assignments)

    def acquire_pairings(
        self, incarnation: int | Incarnation, pairings: Sequence[Pairing]
    ) -> list[Assignment]:
        """Leases matches between named players, in pairs of matches with the same seed and swapped
        seats.
        """
        reply = self._ask("AcquirePairings", incarnation=incarnation, pairings=list(pairings))
        return _all(Assignment, reply.assignments)

    def release_matches(
        self, incarnation: int | Incarnation, match_ids: Sequence[str] = (), reason: str = ""
    ) -> int:
        """Gives up the worker's leases on these matches, by default all open leases. Returns how
        many it gave up.
        """
        ids = list(match_ids)
        reply = self._ask("ReleaseMatches", incarnation=incarnation, match_ids=ids, reason=reason)
        return int(reply.released)

    def report_results(
        self,
        incarnation: int | Incarnation,
        results: Sequence[MatchResult],
        request_id: str | None = None,
    ) -> tuple[list[Verdict], int]:
        """Reports results. Each result is accepted exactly once, or refused with a reason.

        Args:
            incarnation: the reporting worker's incarnation.
            results: finished and failed matches.
            request_id: the id of an earlier attempt, None for a new request.

        Returns:
            A verdict for each result, in order, and the log position of the newest result.
        """
        reported = list(results)
        reply = self._ask(
            "ReportResults", request_id=request_id, incarnation=incarnation, results=reported
        )
        return _all(Verdict, reply.verdicts), reply.log_position

    def heartbeat(
        self,
        incarnation: int | Incarnation,
        progress: int,
        step: int = 0,
        mix: str = "",
        activity: str = "",
        metrics: Mapping[str, float] | None = None,
    ) -> Beat:
        """Reports that the worker is alive, and its progress.

        Args:
            incarnation: the worker's incarnation.
            progress: frames played. Leases are extended only while it rises.
            step: the learner's step.
            mix: the mix of opponents in use.
            activity: the worker's present activity in a few words, for people.
            metrics: the newest metrics by name.
        """
        reply = self._ask(
            "Heartbeat",
            incarnation=incarnation,
            progress=progress,
            step=step,
            mix=mix,
            activity=activity,
            metrics=metrics or {},
            node=os.environ.get(NODE) or socket.gethostname(),
        )
        asked = _part(StageRequest, reply, "asked")
        return Beat(reply.fenced, reply.lease_deadline, asked, reply.paused)

    def keep_references(
        self, incarnation: int | Incarnation, names: Iterable[str]
    ) -> tuple[list[str], list[str]]:
        """Makes `names` the only references of a learner that are drawn as opponents.

        References are frozen copies of a learner that regularise its training.

        Returns:
            Names of the references that retired, and of the references that came back.
        """
        reply = self._ask("KeepReferences", incarnation=incarnation, names=list(names))
        return list(reply.retired), list(reply.returned)

    def enter_stage(
        self,
        incarnation: int | Incarnation,
        step: int,
        stages: Iterable[Stage],
        place: Place,
        reason: str = "",
    ) -> StageRequest | None:
        """Reports the stages of a learner's curriculum, and which of them is active.

        Returns:
            The operator's request that the learner has not obeyed yet, or None.
        """
        reply = self._ask(
            "EnterStage",
            incarnation=incarnation,
            step=step,
            stages=list(stages),
            reason=reason,
            **asdict(place),
        )
        return _part(StageRequest, reply, "asked")

    def compare_member(
        self,
        incarnation: int | Incarnation,
        step: int,
        last_step: int,
        values: Mapping[str, float],
        applied: int = 0,
    ) -> MemberCopy | None:
        """Compares a main with the other mains of its population, if a comparison is due.

        Args:
            incarnation: the incarnation of the main's worker.
            step: the main's step.
            last_step: the step at which its training ends.
            values: its settings that may change, by name.
            applied: number of the newest copy that it has applied, 0 without a copy.

        Returns:
            The copy that the main has to apply now, or None.
        """
        reply = self._ask(
            "CompareMember",
            incarnation=incarnation,
            step=step,
            last_step=last_step,
            values=values,
            applied=applied,
        )
        return _part(MemberCopy, reply, "copy")

    def put_blob(self, content: bytes) -> str:
        """Uploads weights, unless the league has them, and returns their digest.

        Raises:
            InvalidInput: the content is not a snapshot's weights.
            Refused: the token has uploaded too much.
        """
        digest = hashlib.sha256(content).hexdigest()

        def parts() -> Iterator[m.PutBlobRequest]:
            for start in range(0, len(content), PART_BYTES):
                part = m.PutBlobRequest(content=content[start : start + PART_BYTES])
                if not start:
                    part.digest, part.size = digest, len(content)
                yield part

        self._repeated(
            lambda: self._stub.PutBlob(parts(), timeout=TRANSFER_SECONDS, metadata=self._metadata)
        )
        return digest

    # Readers' calls.

    def get_blob(self, digest: str, kind: BlobKind = BlobKind.WEIGHTS) -> bytes:
        """Fetches a blob.

        Raises:
            NotFound: the league does not have it.
            DataCorrupt: other bytes arrived.
        """
        request = m.GetBlobRequest(digest=digest, kind=encoded(kind))

        def received() -> bytes:
            content = bytearray()
            stream = self._stub.GetBlob(request, timeout=TRANSFER_SECONDS, metadata=self._metadata)
            for part in stream:
                content += part.content
                if len(content) > MOST_BYTES:
                    stream.cancel()
                    break
            return bytes(content)

        content = self._repeated(received)
        if hashlib.sha256(content).hexdigest() != digest:
            raise DataCorrupt(f"{self.address} sent other bytes than those of {digest}: ask again")
        return content

    def settings(self) -> dict[str, dict[str, Any]]:
        """Returns the run's settings for workers on other machines. The values are not checked.

        Raises:
            DataCorrupt: the reply is not an object of objects.
            Refused: the matchmaker does not know the settings.
        """
        try:
            sections = parse_json(self._ask("GetSettings").settings_json)
        except ValueError as error:
            raise DataCorrupt(f"{self.address} sent no settings ({error}): check it") from None
        if not isinstance(sections, dict) or not all(
            isinstance(section, dict) for section in sections.values()
        ):
            raise DataCorrupt(
                f"{self.address} sent no settings: it is no matchmaker of this version"
            )
        return sections

    def anchors(self) -> dict[str, float]:
        """Returns the pinned ratings by player, in points, including players without a match."""
        return self.leaderboard().anchors

    def curricula(self) -> list[CurriculumStatus]:
        """Returns the curricula of all learners that have reported one: the stages, and which of
        them is active.
        """
        return _all(CurriculumStatus, self._ask("GetCurricula").curricula)

    def population(self) -> Population:
        """Returns the mains that compare themselves with each other, and the copies so far."""
        return from_message(Population, self._ask("GetPopulation"))

    def players(
        self, kinds: Iterable[PlayerKind] = (), states: Iterable[PlayerState] = ()
    ) -> list[Player]:
        """Returns players in order of registration: all players, or only players of the given kinds
        and states.
        """
        reply = self._ask("ListPlayers", kinds=list(kinds), states=list(states))
        return _all(Player, reply.players)

    def ratings(self, book: Book = Book.EVAL) -> list[Rating]:
        """Returns the ratings of a book, best first."""
        return self.leaderboard(book).ratings

    def leaderboard(self, book: Book = Book.EVAL) -> Leaderboard:
        """Returns the same ratings as `ratings`, with the log positions of the newest result and
        event that they include.
        """
        reply = self._ask("GetRatings", book=book)
        ratings, anchors = _all(Rating, reply.ratings), dict(reply.anchors)
        return Leaderboard(ratings, anchors, reply.log_position, reply.event_position)

    def payoff(
        self,
        book: Book = Book.EVAL,
        rows: Sequence[str] = (),
        columns: Sequence[str] = (),
        *,
        with_stats: bool = False,
        climb: bool = False,
    ) -> list[PayoffCell]:
        """Returns the counts of every pair of players that met, from the point of view of the first
        player (the row).

        Args:
            book: the book.
            rows, columns: names of the first and of the second players, empty for all players.
            with_stats: whether to add the number of frames, the results by seat, and means of the
                row's statistics. Only the books of clean matches (eval and greedy) have them.
            climb: whether to split a learner's matches in the train book by its progress. Each
                match then belongs to the newest snapshot that the learner had frozen when the match
                ended. The row "main@50000" has the matches that main ended between this snapshot
                and its next snapshot, and "main@0" has the matches before its first snapshot.
                Matches against opponents that learn are left out.
        """
        return self.payoffs(book, rows, columns, with_stats=with_stats, climb=climb).cells

    def payoffs(
        self,
        book: Book = Book.EVAL,
        rows: Sequence[str] = (),
        columns: Sequence[str] = (),
        *,
        with_stats: bool = False,
        climb: bool = False,
    ) -> Payoffs:
        """Returns the same counts as `payoff`, with the log positions of the newest result and
        event that they include.
        """
        asked = {"rows": rows, "columns": columns, "with_stats": with_stats, "climb": climb}
        reply = self._ask("GetPayoff", book=book, **asked)
        return Payoffs(_all(PayoffCell, reply.cells), reply.log_position, reply.event_position)

    def match(self, match_id: str) -> MatchRecord:
        """Returns the record of a match, by its id or the id's beginning. Raises `NotFound`."""
        return from_message(MatchRecord, self._ask("GetMatch", match_id=match_id))

    def matches(
        self,
        player: str = "",
        opponent: str = "",
        *,
        book: Book | None = None,
        category: str = "",
        before: int = 0,
        limit: int = 50,
    ) -> tuple[list[MatchLine], int]:
        """Returns matches with a result, the newest first.

        Args:
            player: only matches of this player.
            opponent: with `player`, only matches between these two players.
            book: only matches of this book.
            category: only matches of this category of opponents.
            before: only results before this position of the log, 0 for all.
            limit: the largest number of matches on a page.

        Returns:
            A page of up to `limit` matches, and the value of `before` that gets the next page (0
            after the last page). A page before the last may be short or even empty, because each
            call searches only a part of the log.
        """
        asked = {"player": player, "opponent": opponent, "category": category, "limit": limit}
        book_field = {} if book is None else {"book": book}
        reply = self._ask("ListMatches", before=before, **asked, **book_field)
        return _all(MatchLine, reply.matches), int(reply.next_before)

    def status(self) -> LeagueStatus:
        """Returns the league's status: workers, open leases, and for each learner the shares of its
        mix.
        """
        return from_message(LeagueStatus, self._ask("GetStatus"))

    def watch(self, after: int = 0) -> Iterator[Event]:
        """Yields events after position `after` as they come. -1 yields only new events.

        If the stream breaks, it reconnects and continues after the last event. A matchmaker that
        serves read-only ends the stream after its last event.
        """
        position = after

        def opened() -> Iterator[m.Event]:
            return self._stub.Watch(m.WatchRequest(after=position), metadata=self._metadata)

        for message in self._follow(opened):
            position = message.position
            yield from_message(Event, message)

    # Operators' calls.

    def ask_stage(self, stage: str, by: str, player: str = "") -> StageRequest:
        """Asks a learner to enter a stage of its curriculum before its next rollout.

        Args:
            stage: the stage's name, or "next".
            by: the operator.
            player: the learner's player. It may be "" if only one player has a curriculum.

        Raises:
            NotFound: there is no such stage, or no learner with stages.
            InvalidInput: the learner is in that stage already, there is no next stage, or several
                players have a curriculum and none is named.
            Refused: the learner has done all its steps, or the league is served read-only.
        """
        reply = self._ask("AskStage", player=player, stage=stage, by=by)
        return from_message(StageRequest, reply.asked)

    def set_mix(self, mix: str, weights: Mapping[str, float], by: str) -> MixChange:
        """Changes weights of a mix, by which opponents are drawn, for all draws from now on.

        Args:
            mix: the mix's name.
            weights: relative weights by category. Other categories keep their weights. A weight of
                0 removes a category.
            by: the operator.

        Raises:
            NotFound: there is no such mix or category.
            InvalidInput: a weight is not allowed, or no weight above 0 is left.
        """
        reply = self._ask("SetMix", mix=mix, weights=weights, by=by)
        return from_message(MixChange, reply.change)

    def pause_learners(self, by: str, *, resume: bool = False) -> Pause:
        """Pauses all learners before their next rollout, or lets them go on.

        Returns:
            The pause that begins or ends.

        Raises:
            InvalidInput: nothing would change.
        """
        return from_message(Pause, self._ask("PauseLearners", resume=resume, by=by).pause)

    def pin_rating(self, player: str, mu: float, by: str) -> int:
        """Fixes (pins) a player's rating at `mu` points in every book, for all results from now on.

        Returns:
            The log position after which the pin holds.

        Raises:
            NotFound: there is no such player.
            InvalidInput: the player learns, or `mu` is not a possible rating.
        """
        return int(self._ask("PinRating", player=player, mu=mu, by=by).log_position)

    def unpin_rating(self, player: str, by: str) -> int:
        """Ends a pin. The player's rating continues from its value before the pin.

        Returns:
            The log position after which the player is rated again.

        Raises:
            NotFound: there is no such player.
            InvalidInput: it is not pinned.
        """
        return int(self._ask("PinRating", player=player, unpin=True, by=by).log_position)

    def quarantine(self, player: str, reason: str, by: str) -> PlayerState:
        """Puts a player other than a learner into quarantine, so that it gets no new matches. Its
        results stay.

        Raises:
            NotFound: there is no such player.
            InvalidInput: the player learns or is in quarantine already, or no reason is given.
            Refused: the player's gate is open.
        """
        reply = self._ask("Quarantine", player=player, reason=reason, by=by)
        return from_enum(PlayerState, reply.state)

    def release_player(self, player: str, by: str) -> PlayerState:
        """Ends a player's quarantine, and returns the player's new state.

        Raises:
            NotFound: there is no such player.
            InvalidInput: it is not in quarantine.
        """
        reply = self._ask("Quarantine", player=player, release=True, by=by)
        return from_enum(PlayerState, reply.state)

    def add_rival(self, player: Player, by: str) -> PlayerState:
        """Adds a rival (another person's agent), or brings a removed rival back. The agent's bundle
        must be among the run's blobs.

        Raises:
            AlreadyExists: another player has its name.
            InvalidInput: the player is no rival.
        """
        reply = self._ask("AddRival", player=player, by=by)
        return from_enum(PlayerState, reply.state)

    def remove_rival(self, player: str, by: str) -> PlayerState:
        """Retires a rival. Its results stay.

        Raises:
            NotFound: there is no such player.
            InvalidInput: the player is no rival, or removed already.
            Refused: it is in quarantine.
        """
        reply = self._ask("RemoveRival", player=player, by=by)
        return from_enum(PlayerState, reply.state)

    def quarantine_worker(self, worker: str, reason: str, by: str) -> int:
        """Puts an evaluator into quarantine. It gets no more matches, and its results of clean
        matches (both players frozen) no longer count.

        Returns:
            How many results no longer count.

        Raises:
            NotFound: there is no such worker.
            InvalidInput: the worker trains a player or is in quarantine already, or no reason is
                given.
        """
        asked = {"worker": worker, "reason": reason, "by": by}
        return int(self._ask("QuarantineWorker", **asked).results)

    def release_worker(self, worker: str, by: str, *, repaired: bool = False) -> int:
        """Lets an evaluator play again. Its earlier results count again, unless `repaired` is set.

        Set `repaired` if the evaluator had a fault when it reported these results.

        Returns:
            How many results count again.

        Raises:
            NotFound: there is no such worker.
            InvalidInput: it is not in quarantine, and does not disagree with another worker.
        """
        asked = {"worker": worker, "release": True, "repaired": repaired, "by": by}
        return int(self._ask("QuarantineWorker", **asked).results)

    # Requested evaluations.

    def request_evaluation(
        self,
        player: str,
        opponents: Iterable[str],
        matches: int,
        by: str,
        book: Book = Book.EVAL,
        request_id: str | None = None,
    ) -> Evaluation:
        """Asks the evaluators for matches of a frozen player against each of `opponents`.

        Args:
            player: a name or a mixture, as for `opponents`.
            opponents: names of players, or mixtures such as "based=3,random=1". The name of a live
                player stands for its newest snapshot.
            matches: number of matches against each opponent that `book` should have at the end,
                including earlier matches. It must be even.
            by: the person who asks.
            book: the book that counts the matches, eval or greedy.
            request_id: the id of an earlier attempt, None for a new request.

        Returns:
            The evaluation. In it, live players and named mixtures are replaced by frozen players.

        Raises:
            NotFound: there is no such player, or no snapshot of it yet.
            InvalidInput: a number, a mixture or a book is not allowed.
            Refused: a player is in quarantine, or too many evaluations are open.
        """
        reply = self._ask(
            "RequestEvaluation",
            request_id=request_id,
            player=player,
            opponents=list(opponents),
            matches=matches,
            book=book,
            by=by,
        )
        return from_message(Evaluation, reply.evaluation)

    def cancel_evaluation(self, number: int, reason: str, by: str) -> Evaluation:
        """Ends an open evaluation and returns it. An evaluation that has ended does not change.

        Raises:
            NotFound: there is no such evaluation.
            InvalidInput: no reason is given.
        """
        reply = self._ask("CancelEvaluation", number=number, reason=reason, by=by)
        return from_message(Evaluation, reply.evaluation)

    def evaluations(self, *, open_only: bool = False) -> list[Evaluation]:
        """Returns the evaluations in the order of the requests."""
        return [report.evaluation for report in self.reports(open_only=open_only)]

    def reports(self, *, open_only: bool = False) -> list[Report]:
        """Returns the evaluations with their progress, without scores."""
        return _all(Report, self._ask("ListReports", open_only=open_only).reports)

    def report(self, number: int) -> Report:
        """Returns the progress and the scores of an evaluation. Raises `NotFound`."""
        return from_message(Report, self._ask("GetReport", number=number).report)

    def watch_reports(self, number: int = 0) -> Iterator[Report]:
        """Yields the report of an evaluation now and whenever it changes, until the evaluation
        ends.

        If `number` is 0, it yields the reports of all open and future evaluations, without end. If
        the stream breaks, it reconnects.
        """
        request = e.WatchReportsRequest(number=number)
        for message in self._follow(
            lambda: self._evaluations.WatchReports(request, metadata=self._metadata)
        ):
            yield from_message(Report, message)

    # Generations, gates and patches of exploiters.

    def begin_generation(
        self,
        incarnation: int,
        learner: str,
        role: Role,
        number: int,
        step: int,
        victims: Sequence[str] = (),
        parent: str = "",
    ) -> Generation:
        """Begins the next generation of an exploiter, a learner that trains to beat frozen players
        (its victims).

        Args:
            incarnation: the incarnation of the exploiter's worker.
            learner: name of the exploiter.
            role: role of the exploiter.
            number: the number of the next generation. If it is the number of the newest generation,
                the call returns that generation again.
            step: the exploiter's present step.
            victims: names of the victims. Without names, the victims are snapshots of the mains.
            parent: the candidate with whose weights the generation starts, or "".

        Raises:
            NotFound: there is no main to exploit yet, or a named victim does not exist.
            InvalidInput: the number or the role can't follow the newest generation.
        """
        reply = self._ask(
            "BeginGeneration",
            incarnation=incarnation,
            learner=learner,
            role=role,
            number=number,
            victims=victims,
            step=step,
            parent=parent,
        )
        return from_message(Generation, reply.generation)

    def generation(self, learner: str) -> Generation | None:
        """Returns the newest generation of an exploiter, None before its first."""
        return _part(Generation, self._ask("GetGeneration", learner=learner), "generation")

    def standing(self, player: str, steps: int, interval: int) -> Standing:
        """Returns whether a learner should save a snapshot now, and whether its weights should then
        be reset.

        Args:
            player: the live player.
            steps: steps since its last snapshot, or since it began.
            interval: steps between two regular snapshots.
        """
        reply = self._ask("GetStanding", player=player, steps=steps, interval=interval)
        return from_message(Standing, reply)

    def open_gate(self, incarnation: int, player: Player) -> CandidateGate:
        """Registers a snapshot of an exploiter as a candidate, and opens its gate (the test that it
        must pass to become an opponent). A second call changes nothing.

        Raises:
            AlreadyExists: another player has the name.
        """
        return self._gate("OpenGate", incarnation=incarnation, player=player)

    def acquire_gate_matches(
        self, incarnation: int, candidate: str, count: int
    ) -> list[Assignment]:
        """Leases matches of a candidate against the victim whose test is being played. Returns []
        once the gate is decided.
        """
        asked = {"incarnation": incarnation, "candidate": candidate, "count": count}
        return _all(Assignment, self._ask("AcquireGateMatches", **asked).assignments)

    def decide_gate(self, incarnation: int, candidate: str) -> CandidateGate:
        """Judges a candidate's gate by the results so far, and returns it. An accepted candidate
        becomes an opponent.
        """
        return self._gate("DecideGate", incarnation=incarnation, candidate=candidate)

    def give_up_gate(self, incarnation: int, candidate: str, reason: str) -> CandidateGate:
        """Closes a gate that can't be played. Its decision is "undecided"."""
        asked = {"incarnation": incarnation, "candidate": candidate, "reason": reason}
        return self._gate("GiveUpGate", **asked)

    def _gate(self, method: str, **fields: Any) -> CandidateGate:
        return from_message(CandidateGate, self._ask(method, **fields).gate)

    def gates(self, *, open_only: bool = False, certificates: bool = False) -> list[CandidateGate]:
        """Returns gates in the order of opening."""
        reply = self._ask("GetGates", open_only=open_only, with_certificates=certificates)
        return _all(CandidateGate, reply.gates)

    def review_exploiters(self, incarnation: int, player: str) -> tuple[list[str], list[str]]:
        """Decides which exploiters a main has patched, which means that it beats them now.

        The clean matches (both players frozen) of the main's snapshot `player` decide this.

        Returns:
            The newly patched exploiters, and the patched exploiters to which the main loses again.
        """
        reply = self._ask("ReviewExploiters", incarnation=incarnation, player=player)
        return list(reply.patched), list(reply.returned)


def _all(cls: type[V], messages: Iterable[Any]) -> list[V]:
    return [from_message(cls, message) for message in messages]


def _part(cls: type[V], reply: Any, name: str) -> V | None:
    """Returns a part of a reply, or None if the part is missing."""
    return from_message(cls, getattr(reply, name)) if reply.HasField(name) else None
