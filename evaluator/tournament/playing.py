"""Plays a tournament's matches on all cores, and continues after a kill from its log.

The log is a file with a line for each unit of work. A unit consists of matches of two entrants that
a process plays together. A unit is in the log as a whole or not at all, and its seed follows from
its first match. So if the agents are deterministic, a tournament has the same results whether or
not it was killed and continued.
"""

from __future__ import annotations

import fcntl
import json
import multiprocessing
import os
import signal
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import IO, Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from evaluator.tournament.entries import Entry
from evaluator.tournament.formats import Encounter, Format, Key, encounters
from league.agent.contract import PlayingNetwork
from league.agent.rival_worker import FILE
from league.agent.rivals import LIMITS, Limits, RivalSeats
from league.agent.snapshot import load_snapshot
from league.contest.matches import play_bouts
from league.contest.table import Conduct
from league.errors import DataCorrupt, InvalidInput, LeagueError, Refused
from league.games.settings import GameSettings
from league.replay import Bout, Recipe, Replay, save_replay
from league.runs.files import first_fault, read_json, write_whole
from league.service.die_with_parent import end_with_parent
from league.settings.device_flags import cores
from league.views.report import make_folder

T = TypeVar("T")
UNIT = 32
"""Largest number of matches in a unit."""
ROWS_OF_RIVALS = 2
"""Number of matches of rivals (other people's agents) that a unit plays at once. A rival has two
processes, one for each of these matches. So no match has to wait for a decision in another match,
and no match fails because of another match.
"""
EXTRA_PAIRS = 5
"""Largest number of pairs of matches that are added while the two entrants of an elimination's
encounter are tied.
"""
FACTS, LOG, REPLAYS = "tournament.json", "matches.jsonl", "replays"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Describes a tournament. When a tournament is continued, only `rounds` may change.

    Attributes:
        matches: number of matches in an encounter, even because each seed is played from both
            seats.
        seed: the first seed.
        greedy: whether networks take the likeliest keys instead of sampling.
        frame_skip: number of frames between decisions of networks. Agents in files decide in every
            frame.
    """

    form: Format
    rounds: int
    matches: int
    seed: int
    greedy: bool
    frame_skip: int

    @property
    def most(self) -> int:
        """The largest number of matches in an encounter."""
        extra = 2 * EXTRA_PAIRS if self.form is Format.DOUBLE_ELIMINATION else 0
        return self.matches + extra


@dataclass(frozen=True, kw_only=True)
class Played:
    """Records a match that was played.

    Attributes:
        stage, first, second: the match's encounter (`Encounter.key`).
        number: the match's number in the encounter. In matches with even numbers, the first entrant
            has seat 0.
        outcome: the first entrant's score: 1, ½ or 0. A rival that fails loses. If both entrants
            fail, the match is a draw. None means that the game itself failed, and the match doesn't
            count.
        margin: the first entrant's payoff minus the second entrant's payoff, in games with payoffs.
        failure: why the match could not be played to its end, or "".
        failed: whether the first entrant failed, and whether the second entrant failed.
        late: how many decisions of the first and of the second entrant came late.
        frames, final, match_id: as in the match's replay. A failed match has no replay.
    """

    stage: int
    first: int
    second: int
    number: int
    seed: int
    outcome: float | None
    margin: float | None = None
    failure: str = ""
    failed: tuple[bool, bool] = (False, False)
    late: tuple[int, int] = (0, 0)
    frames: int = 0
    final: str = ""
    match_id: str = ""

    @property
    def key(self) -> Key:
        return self.stage, self.first, self.second

    def each(self, values: tuple[T, T]) -> Iterator[tuple[int, T]]:
        """Yields both entrants, each with its value."""
        return zip((self.first, self.second), values, strict=True)


_LINE = TypeAdapter(list[Played])


Unit = list[tuple[Key, int]]
"""Matches of two entrants that a process plays together, as pairs: the encounter, and the match's
number in the encounter.
"""


@dataclass
class Tournament:
    """Plays a tournament, and keeps its log and replays in a folder.

    Args:
        folder: the folder for the results.
        plan: the format, and the numbers of rounds and matches.
        settings: the game.
        entries: the entrants.
        limits: limits of the processes in which other people's agents run.
    """

    folder: Path
    plan: Plan
    settings: GameSettings
    entries: Sequence[Entry]
    matches: list[Played] = field(default_factory=list)
    limits: Limits = LIMITS

    @property
    def encounters(self) -> list[Encounter]:
        """The encounters that are known so far."""
        plan = self.plan
        return encounters(plan.form, len(self.entries), plan.rounds, self.results)

    @property
    def results(self) -> dict[Key, float]:
        """The results of the decided encounters: 1 if the first entrant won, ½ for a draw, 0 if it
        lost.
        """
        found = dict[Key, float]()
        for key, played in by_encounter(self.matches).items():
            if not self._missing(played):
                lead = _lead(played)
                found[key] = 0.5 if lead == 0.0 else float(lead > 0.0)
        return found

    def _missing(self, played: Sequence[Played]) -> list[int]:
        """Returns the numbers of the matches that an encounter still needs."""
        wanted = self.plan.matches
        if wanted <= len(played) < self.plan.most and _lead(played) == 0.0:
            wanted = len(played) + 2
        there = {match.number for match in played}
        return [number for number in range(max(wanted, len(played))) if number not in there]

    def play(self, workers: int | None, on_match: Callable[[int, int, float], None]) -> None:
        """Plays all matches that the folder's log does not have. If an agent does not start in
        time, its match is played again later, while no other match is played.

        Args:
            workers: number of processes, by default one for each core.
            on_match: receives the number of matches played so far, the number of matches known so
                far, and the estimated seconds until the known matches are played.

        Raises:
            InvalidInput: the folder holds another tournament.
            Refused: another command is playing in this folder.
            DataCorrupt: the folder's log is damaged.
            LeagueError: a process was killed.
        """
        with self._opened() as log:
            began, before = time.monotonic(), len(self.matches)

            def keep(played: list[Played], total: int) -> None:
                line = json.dumps([asdict(match) for match in played])
                log.write(f"{line}\n".encode())
                log.flush()
                os.fsync(log.fileno())
                self.matches += played
                done = len(self.matches)
                seconds = (time.monotonic() - began) / (done - before)
                on_match(done, total, seconds * (total - done))

            with _pool(workers or cores()) as pool:
                alone = replace(self, matches=[])  # the processes need no copy of all matches
                while units := self._units():
                    waiting = [pool.submit(alone.play_unit, unit) for unit in units]
                    total = len(self.matches) + sum(map(len, units))
                    delayed = list[tuple[list[Played], Unit]]()
                    try:
                        for done in as_completed(waiting):
                            played, unstarted = done.result()
                            if unstarted:
                                delayed.append((played, unstarted))
                            else:
                                keep(played, total)
                        for played, unstarted in delayed:
                            again, _ = pool.submit(alone.play_unit, unstarted, 1).result()
                            rest = [one for one in played if (one.key, one.number) not in unstarted]
                            keep(rest + again, total)
                    except BrokenProcessPool:
                        raise LeagueError(
                            "a process of the tournament was killed, most likely because memory "
                            "ran out: repeat the command to continue, with fewer --workers"
                        ) from None
            known = {one.key for one in self.encounters}  # a continuation may have fewer rounds
            self.matches = [match for match in self.matches if match.key in known]
            self.matches.sort(key=lambda one: (one.key, one.number))

    @contextmanager
    def _opened(self) -> Iterator[IO[bytes]]:
        """Locks the folder, reads its log into `matches`, and yields the log."""
        make_folder(self.folder / REPLAYS)
        with (self.folder / LOG).open("a+b") as log:
            try:
                fcntl.flock(log, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise Refused(
                    f"another command plays in {self.folder}: wait for it, or name another --out"
                ) from None
            self._check_facts()
            log.seek(0)
            whole, _, _ = log.read().rpartition(b"\n")
            log.truncate(len(whole) + 1 if whole else 0)  # drops a line that a kill cut short
            try:
                lines = whole.splitlines()
                self.matches = [match for line in lines for match in _LINE.validate_json(line)]
                if any(not 0 <= n < len(self.entries) for one in self.matches for n in one.key[1:]):
                    raise ValueError("an entrant has no such number")
            except ValueError as error:
                fault = first_fault(error) if isinstance(error, ValidationError) else str(error)
                raise DataCorrupt(
                    f"{self.folder / LOG} is damaged ({fault.lstrip(': ')}): take the folder away"
                ) from None
            yield log

    def _check_facts(self) -> None:
        """Checks that the folder belongs to this tournament, which the folder's file `FACTS`
        describes. In a new folder, it writes this file.
        """
        recipe = Recipe.of(self.settings)
        plan = {name: value for name, value in asdict(self.plan).items() if name != "rounds"}
        own = {
            **plan,
            "form": self.plan.form.value,
            **{"game": recipe.name, "rules": recipe.version, "max_frames": recipe.max_frames},
            "options": dict(recipe.options),
            "entrants": [
                {"name": one.name, "kind": one.kind, "digest": one.member.digest}
                for one in self.entries
            ],
        }
        path = self.folder / FACTS
        known = read_json(path)
        if known and known != own:
            other = next(name for name in own if known.get(name) != own[name])
            raise InvalidInput(
                f"{self.folder} holds another tournament ({other} differs): repeat its command to "
                "continue it, or name another --out"
            )
        write_whole(path, json.dumps(own, indent=1) + "\n")

    def _units(self) -> list[Unit]:
        """Groups the missing matches of the known encounters."""
        played, most = by_encounter(self.matches), self.plan.most
        groups = defaultdict[tuple[int, int, int], Unit](list)
        for one in self.encounters:
            if one.second is None:
                continue
            for number in self._missing(played.get(one.key, ())):
                part = (one.stage * most + number) // UNIT
                groups[part, one.first, one.second].append((one.key, number))
        return [groups[group] for group in sorted(groups)]

    def play_unit(self, unit: Unit, rows: int = ROWS_OF_RIVALS) -> tuple[list[Played], Unit]:
        """Plays the matches of a unit, and keeps their replays. Matches of rivals are played `rows`
        at once.

        Returns:
            All matches of the unit, and the matches in which a rival did not start in time.
        """
        pair = {one.digest: one for one in (self.entries[n].member for n in unit[0][0][1:])}

        def load(digest: str) -> PlayingNetwork:
            blobs = pair[digest].blobs
            assert blobs is not None
            return load_snapshot(blobs, digest)[0]

        folders = [one.blobs for one in pair.values() if one.is_rival and one.blobs is not None]
        rivals = None
        if folders:  # the user agreed to run these rivals before the tournament began
            rivals = RivalSeats(folders[0], self.limits, pair.__contains__)
        recipe, bouts = Recipe.of(self.settings), [self._bout(*match) for match in unit]
        failures, conducts, replays = dict[Bout, str](), dict[Bout, Conduct](), dict[str, Replay]()
        for replay in play_bouts(
            recipe,
            bouts,
            load,
            frame_skip=self.plan.frame_skip,
            seed=int(bouts[0].match_id(recipe)[:8], 16),
            greedy=self.plan.greedy,
            failures=failures,
            rivals=rivals,
            conduct=conducts,
            rows=UNIT if rivals is None else rows,
        ):
            save_replay(self.folder / REPLAYS / f"{replay.match_id}.replay", replay)
            replays[replay.match_id] = replay
        files = [Path(self.entries[n].source).name for n in unit[0][0][1:]]
        played = [
            _played(
                *(*match, bout, replays.get(bout.match_id(recipe)), conducts[bout]),
                *(failures.get(bout, ""), files),
            )
            for match, bout in zip(unit, bouts, strict=True)
        ]
        return played, [
            match for match, bout in zip(unit, bouts, strict=True) if conducts[bout].is_unstarted
        ]

    def _bout(self, key: Key, number: int) -> Bout:
        """Returns a match to play, as a `Bout`. All encounters of a stage play the same seeds from
        both seats.
        """
        stage, *pair = key
        first, second = (self.entries[one].member for one in pair[:: -1 if number % 2 else 1])
        return Bout(
            seats=(first.contender, second.contender),
            bots=(first.seated, second.seated),
            seed=self.plan.seed + (stage * self.plan.most + number) // 2,
        )


@contextmanager
def _pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    """Yields a pool whose processes end when this process ends or the block fails."""
    context: Any = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["evaluator.tournament.playing"])
    pool = ProcessPoolExecutor(workers, context, initializer=_begin)
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for child in multiprocessing.active_children():
            child.terminate()
        raise
    pool.shutdown()


def _begin() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the command, which ends the pool
    end_with_parent()


def _played(
    key: Key,
    number: int,
    bout: Bout,
    replay: Replay | None,
    conduct: Conduct,
    failure: str,
    files: Sequence[str],
) -> Played:
    """Returns a match from the first entrant's point of view. `files` names both agents' files."""
    stage, first, second = key
    order = -1 if number % 2 else 1  # from seats to entrants
    one, other = conduct.failed[::order]
    late, its_late = conduct.late[::order]
    if one != other and (file := files[other]).endswith(".py"):
        failure = failure.replace(FILE, file)
    match = Played(
        stage=stage,
        first=first,
        second=second,
        number=number,
        seed=bout.seed,
        outcome=(1.0 + other - one) / 2.0 if one or other else None,
        failure=failure,
        failed=(one, other),
        late=(late, its_late),
    )
    if replay is None:
        return match
    paid = [stats["payoff"] for stats in replay.stats[::order] if "payoff" in stats]
    return replace(
        match,
        outcome=replay.outcome if order == 1 else 1.0 - replay.outcome,
        margin=paid[0] - paid[1] if len(paid) == 2 else None,
        frames=replay.frames,
        final=replay.final,
        match_id=replay.match_id,
    )


def _lead(played: Sequence[Played]) -> float:
    """Returns the first entrant's lead, in points."""
    return sum(2.0 * one.outcome - 1.0 for one in played if one.outcome is not None)


def by_encounter(matches: Sequence[Played]) -> Mapping[Key, list[Played]]:
    """Groups matches by their encounter."""
    groups = defaultdict[Key, list[Played]](list)
    for match in matches:
        groups[match.key].append(match)
    return groups
