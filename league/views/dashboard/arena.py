"""Runs matches that people watch or play in the browser.

Shape suffixes: 1 match, 2 seats, A action width, O observation.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from league.contest.members import Member
from league.errors import Fenced, InvalidInput, LeagueError, NotFound, Refused
from league.games.base import CHOICE, GameSpec, match_result
from league.games.settings import GameSettings
from league.players import (
    Assignment,
    Book,
    Incarnation,
    Pairing,
    Player,
    PlayerKind,
    newest_snapshot,
)
from league.settings.base import resolve
from league.views.dashboard.source import Source

if TYPE_CHECKING:  # torch takes two seconds to load
    from league.agent.batched_policy import BatchedPolicy
    from league.agent.rivals import RivalSeats
    from league.replay import Replay

HUMAN = "human"
"""Name of the league's player for the person at the keyboard."""
WORKER = "dashboard"
BEAT_SECONDS = 5.0
"""Time between two heartbeats of a match, even while the person thinks. A worker that sends no
heartbeats counts as hanging.
"""
MOST = 4
"""Largest number of matches at the same time, because each match takes a part of a core."""
MOST_WAITING = 8
"""Largest number of browsers that wait while another match loads."""
PRIVATE = {"card"}
"""Fields of a seat that a card game hides from the other player."""
_log = logging.getLogger(__name__)


class Arena:
    """Begins matches between members of a league, and reports rated matches.

    Attributes:
        loading: held while a match loads. The others wait, so that requests of browsers that have
            left meanwhile never begin, and do not count among the `MOST` matches.
        waiting: what listens to the browsers that wait for it, done if the browser has left.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._lock = threading.Lock()  # never held during a call of the matchmaker
        self._running = 0
        self.loading = asyncio.Lock()
        self.waiting = set[asyncio.Task[None]]()
        self._asking = threading.Lock()
        self._incarnation: Incarnation | None = None
        self._frames = 0  # frames of all rated matches; leases stay valid while this number rises

    def names(self) -> list[str]:
        """Returns the names of all players: the bots and rivals, then the snapshots, newest first.

        The bots come from the game, because the evaluator registers them only when it starts.
        """
        players = self._source.players().values()
        bots = [bot.name for bot in self.settings().spec().bots]
        bots += [player.name for player in players if player.kind is PlayerKind.RIVAL]
        frozen = [one for one in players if one.digest and one.kind is not PlayerKind.RIVAL]
        return bots + [player.name for player in sorted(frozen, key=lambda player: -player.step)]

    def settings(self) -> GameSettings:
        """Returns the run's game. Raises `NotFound` if the run's folder is not on this machine."""
        run_dir = self._source.run_dir
        if run_dir is None or not (run_dir / "config.toml").is_file():
            raise NotFound("Its game is not known here: open the dashboard with --run-dir.")
        return resolve(file=run_dir / "config.toml", environment={}).of(GameSettings)

    def begin(self, names: Sequence[str], *, is_rated: bool) -> LiveMatch:
        """Begins a match between the players `names`, in the order of seats. Only one of them may
        be `HUMAN`. `is_rated` makes the match count in the ratings.

        Raises:
            NotFound: there is no such player.
            InvalidInput: both players are `HUMAN`.
            Refused: too many matches are being played.
        """
        if list(names).count(HUMAN) > 1:
            raise InvalidInput("Two people can't share a keyboard here: choose an opponent.")
        settings = self.settings()
        pair = [self._seated(name, settings.spec()) for name in names]
        with self._lock:
            if self._running >= MOST:
                raise Refused(f"{MOST} matches are played already: wait for one to end.")
            self._running += 1
        assignment, why_not = None, ""
        try:
            if is_rated and HUMAN in names:
                try:
                    assignment = self._lease(pair)
                except Refused as error:  # the run has ended, or the dashboard is in quarantine
                    why_not = f"It is not rated: {error}."
            if assignment is not None and [seat.name for seat in assignment.seats] != list(names):
                pair.reverse()
            return LiveMatch(self, self._source, settings, pair, assignment, why_not)
        except BaseException:
            if assignment is not None:
                self.give_up(assignment)
            self.ended()
            raise

    def ended(self) -> None:
        """Removes a match from the count. After the last match, it reports that the dashboard has
        stopped, so that its missing heartbeats don't count as hanging.
        """
        with self._lock:
            self._running -= 1
        with self._asking:
            if self._running or self._incarnation is None:
                return
            try:
                self._source.client.heartbeat(self._incarnation, 0, activity="stopped")
            except LeagueError as error:
                _log.warning("the end of a match could not be told: %s", error)

    def _seated(self, name: str, spec: GameSpec) -> Member:
        if name == HUMAN:
            return Member(name=HUMAN)
        for index, bot in enumerate(spec.bots):
            if bot.name == name:
                return Member(name=name, bot=index)
        player = self._source.player(name)
        if player.kind is PlayerKind.LIVE:
            player = newest_snapshot(name, self._source.players().values())
        if not player.digest:
            raise NotFound(f"{name} has no weights to play with: choose a snapshot or a bot.")
        is_rival = player.kind is PlayerKind.RIVAL
        return Member(name=player.name, digest=player.digest, is_rival=is_rival)

    def _lease(self, pair: Sequence[Member]) -> Assignment:
        """Leases a match between the person and a player.

        The matchmaker leases matches in pairs, the second with swapped seats. This method releases
        the match with the unwanted seats.
        """
        first, second = (member.name for member in pair)
        with self._asking:
            other = second if first == HUMAN else first
            seed = secrets.randbits(63)
            pairing = Pairing(player=HUMAN, opponent=other, pairs=1, book=Book.EVAL, seed=seed)
            client = self._source.client
            try:
                wanted, swapped = client.acquire_pairings(self._opened(), [pairing])
            except Fenced:  # another dashboard has taken over this worker's name, so take it back
                self._incarnation = None
                wanted, swapped = client.acquire_pairings(self._opened(), [pairing])
            if [seat.name for seat in wanted.seats] != [first, second]:
                wanted, swapped = swapped, wanted
            client.release_matches(self._opened(), [swapped.match_id], "one seat is played")
            return wanted

    def _opened(self) -> Incarnation:
        """Returns the dashboard's registration as a worker of the matchmaker. The first call opens
        it.
        """
        if self._incarnation is None:
            client, spec = self._source.client, self.settings().spec()
            person = Player(name=HUMAN, game=spec.name, kind=PlayerKind.HUMAN, creator=WORKER)
            bots = (
                Player(name=bot.name, game=spec.name, kind=PlayerKind.BOT, held_out=bot.held_out)
                for bot in spec.bots
            )
            client.register_players([person, *bots])
            version = spec.version
            self._incarnation = client.open_incarnation(WORKER, game_version=version)
        return self._incarnation

    def beat(self, frames: int) -> None:
        """Sends the dashboard's heartbeat. `frames` is the number of new frames of a rated match,
        or 0 for an unrated match. It is added to the total that the heartbeat reports.
        """
        with self._asking:  # no heartbeat may follow the heartbeat that reports the end
            self._frames += frames
            if self._running and self._incarnation is not None:
                activity = "a person plays"
                self._source.client.heartbeat(self._incarnation, self._frames, activity=activity)

    def report(self, match: LiveMatch, assignment: Assignment) -> str:
        """Reports a match, and returns a sentence on whether it is rated."""
        assert self._incarnation is not None
        failure = match.game.failures.get(0, "")
        result = match_result(assignment, match.game, 0, failure=failure, late=match.late())
        (verdict,), _ = self._source.client.report_results(self._incarnation, [result])
        return "It is rated." if verdict.accepted else f"It is not rated: {verdict.reason}."

    def give_up(self, assignment: Assignment) -> None:
        """Releases the lease of a match that was left before its end."""
        if self._incarnation is not None:
            self._source.client.release_matches(
                self._incarnation, [assignment.match_id], "the person left"
            )


class LiveMatch:
    """Plays a match frame by frame. Call `close` at the end.

    Attributes:
        person: the seat of the person, or None.
        game: the game, with a single match.
        verdict: a sentence on whether the match is rated, and if not, why.
        replay: the id of the match's replay, or "" before the end.
    """

    def __init__(
        self,
        arena: Arena,
        source: Source,
        settings: GameSettings,
        pair: Sequence[Member],
        assignment: Assignment | None,
        verdict: str,
    ) -> None:
        from league.replay import BatchRecorder, Recipe

        self._arena, self._source, self._assignment = arena, source, assignment
        self._pair, self.game = pair, settings.make(1)
        self.spec = self.game.spec
        self.person = next((seat for seat, member in enumerate(pair) if member.name == HUMAN), None)
        self._seed = secrets.randbits(63) if assignment is None else assignment.seed
        self._recorder = BatchRecorder(self.game, Recipe.of(settings))
        self._rivals: list[RivalSeats] = []
        self._policies = [self._policy(member) for member in pair]
        self._held_12A = self.game.idle_actions()
        self.game.bots_N2[0] = [member.seated for member in pair]
        self.game.reset(np.array([self._seed], np.uint64))
        self.is_over = False
        self._unsaid = 0  # frames since the last heartbeat
        self.verdict, self.replay = verdict, ""

    @property
    def names(self) -> tuple[str, str]:
        first, second = (member.name for member in self._pair)
        return first, second

    @property
    def is_choice(self) -> bool:
        """Whether players choose instead of pressing keys."""
        return self.spec.action_kind == CHOICE

    def _policy(self, member: Member) -> tuple[BatchedPolicy, int] | None:
        """Returns the policy of a snapshot or rival, and the number of frames for which it holds
        its keys, which is 1 for a rival. Returns None for any other player.
        """
        if not member.digest:
            return None
        from league.agent.batched_policy import BatchedPolicy
        from league.agent.rival_bundles import bundles
        from league.agent.rivals import RivalSeats
        from league.agent.snapshot import load_snapshot, read_card
        from league.runs.blobs import BlobFolder

        assert self._source.run_dir is not None
        folder = BlobFolder(self._source.run_dir / "blobs")
        if not (bundles(folder) if member.is_rival else folder).has(member.digest):
            raise NotFound(f"The weights of {member.name} are not in {folder.root}.")
        rivals, pace = None, 1
        if member.is_rival:
            rivals = RivalSeats(folder)
            self._rivals.append(rivals)
        else:
            pace = read_card(folder, member.digest).frame_skip
        policy = BatchedPolicy(
            1,
            lambda digest: load_snapshot(folder, digest)[0],
            seed=secrets.randbits(32),
            action_size=self.spec.action_size,
            action_kind=self.spec.action_kind,
            rivals=rivals,
        )
        policy.seat(0, member.digest)
        return policy, pace

    def late(self) -> tuple[int, int]:
        """Returns the number of rivals' late decisions, by seat."""
        first, second = (0 if one is None else one[0].late_in(0) for one in self._policies)
        return first, second

    def choices(self) -> dict[int, str]:
        """Returns the names of the person's legal choices by number, or {} if the person has
        nothing to decide.
        """
        if self.person is None or self.game.legal_N2A is None:
            return {}
        legal = np.flatnonzero(self.game.legal_N2A[0, self.person])
        if len(legal) < 2:
            return {}
        return {int(number): self.spec.action_names[number] for number in legal}

    def frame(self) -> dict[str, Any]:
        """Returns the current frame. A person does not see the other player's cards."""
        frame = self.game.frame(0)
        if self.person is not None and "seats" in frame:
            seats = [dict(seat) for seat in frame["seats"]]
            for name in PRIVATE & seats[1 - self.person].keys():
                seats[1 - self.person][name] = "?"
            frame = {**frame, "seats": seats}
        return frame

    def advance(self, done_A: NDArray[np.uint8]) -> None:
        """Plays a frame. `done_A` has the person's pressed keys, or a one-hot choice.

        Raises:
            InvalidInput: a rival has failed, so the match is over.
        """
        game, legal_12A = self.game, self.game.legal_N2A
        number = int(game.frames_N[0])
        held_12A = game.idle_actions() if self.is_choice else self._held_12A
        failures: dict[int, str] = {}
        for seat, playing in enumerate(self._policies):
            if playing is not None and number % playing[1] == 0:
                legal_1A = None if legal_12A is None else legal_12A[:, seat]
                held_12A[0, seat] = playing[0].act(game.observations_N2O[:, seat], legal_1A)[0]
                failures |= playing[0].failures
        if self.person is not None and (done_A.any() or not self.is_choice):
            held_12A[0, self.person] = done_A
        legal_12A = None if legal_12A is None else legal_12A.copy()
        game.step(held_12A)
        game.fail(failures)
        self._recorder.note(held_12A, legal_12A)
        self._unsaid += 1
        if game.ended_N[0]:
            self._finish()
        if failures:
            raise InvalidInput(failures[0])

    def beat(self) -> None:
        """Sends a heartbeat with the frames that a rated match has played since the last heartbeat.

        An unrated match sends 0 frames. After a rated match, the matchmaker expects heartbeats
        until the dashboard's last match has ended. Without them, the dashboard would count as
        hanging while an unrated match continues.
        """
        frames, self._unsaid = self._unsaid, 0
        self._arena.beat(frames if self._assignment is not None else 0)

    def _finish(self) -> None:
        """Reports a rated match, and saves the replay of a person's match."""
        self.is_over = True
        if self._assignment is not None:
            assignment, self._assignment = self._assignment, None
            try:
                self.verdict = self._arena.report(self, assignment)
            except LeagueError as error:
                self.verdict = f"It is not rated: {error}."
            match_id = assignment.match_id
        else:
            match_id = ""
        if self.person is not None and not self.game.failures:
            self.replay = self._kept(match_id)

    def winner(self) -> int | None:
        """Returns the seat that won, or None after a draw."""
        outcome = float(self.game.outcomes_N[0])
        return None if outcome == 0.5 else int(outcome < 0.5)

    def _kept(self, match_id: str) -> str:
        """Saves the replay of a person's match, and returns its id."""
        from league.replay import Bout, save_replay

        first, second = self._pair
        seats, bots = (first.contender, second.contender), (first.seated, second.seated)
        bout = Bout(seats=seats, bots=bots, seed=self._seed)
        replay: Replay = self._recorder.finish(0, bout)
        if match_id:
            replay = replace(replay, match_id=match_id)
        assert self._source.run_dir is not None
        folder: Path = self._source.run_dir / "replays"
        folder.mkdir(exist_ok=True)
        save_replay(folder / f"{replay.match_id}.replay", replay)
        return replay.match_id

    def close(self) -> None:
        """Ends the match. The lease of an unfinished rated match is released."""
        self.game.close()
        for rivals in self._rivals:
            rivals.close()
        if self._assignment is not None:
            assignment, self._assignment = self._assignment, None
            try:
                self._arena.give_up(assignment)
            except LeagueError as error:
                _log.warning("a match could not be given back: %s", error)
        self._arena.ended()
