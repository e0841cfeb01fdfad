"""Plays a trial of a sweep: a whole small league in a separate folder, scored by its clean
matches.

A clean match is a match of two frozen players. A trial is scored at each rung, which is a number of
training steps. The scores are kept next to the run's folder, so an interrupted trial continues
where it was.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from league.contest.league import League
from league.errors import DataCorrupt, LeagueError, NotFound, Unavailable, nearest
from league.evaluations import MAX_PAIRS, mixture_of, text_of
from league.ids import average_of, lineage_of
from league.metrics import Measured
from league.players import Book, PayoffCell, Player, PlayerKind, later_half
from league.runs import finding
from league.runs.files import first_fault, read_json, write_whole
from league.service import die_with_parent
from league.settings.base import variables_of_children
from league.sweep.score import elo_lead, value_against
from league.sweep.space import Choice, assignment

if TYPE_CHECKING:  # gRPC takes a quarter of a second to load
    from league.rpc.client import MatchmakerClient

RATING = "rating"
"""The score that is a rating against all bots of the game."""
POLL_SECONDS = 0.3
STARTS = 3
"""Number of starts of a league that ends before it is scored, as when its last snapshot
came too late for the evaluator.
"""


@dataclass(frozen=True, kw_only=True)
class Order:
    """Says how all trials of a sweep are played.

    Attributes:
        folder: the sweep's folder, with `config` in it.
        main: the learner that is scored.
        rungs: the training steps at which it is scored, in rising order.
        score: `RATING`, or the player that it has to beat.
        average: whether the later half of the learner's snapshots is scored, as a mixture, instead
            of its newest snapshot.
        matches: clean matches against each opponent at each rung.
    """

    folder: Path
    main: str
    rungs: tuple[int, ...]
    score: str
    average: bool
    matches: int

    @property
    def config(self) -> Path:
        return self.folder / "config.toml"

    def run_dir(self, number: int) -> Path:
        return self.folder / f"trial-{number:03}"

    def log(self, number: int) -> Path:
        return self.folder / f"trial-{number:03}.log"


@dataclass(frozen=True, kw_only=True)
class Rung:
    """Scores a trial after `steps` training steps.

    Attributes:
        player: the scored player.
        score: the score with its 95 % interval, in `unit`.
        matches: number of clean matches that count.
        seconds: time since the trial began, in all its starts.
    """

    steps: int
    player: str
    score: Measured
    unit: str
    matches: int
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Trial:
    """Records a trial: its settings, and its scores so far.

    Attributes:
        stopped: whether ASHA has ended it, because others scored better.
        fault: why it failed.
        final: its value against the other finalists, if the final was played. Its record does not
            have it (`league.sweep.final`).
    """

    number: int
    settings: Mapping[str, Choice]
    rungs: tuple[Rung, ...] = ()
    stopped: bool = False
    fault: str = ""
    final: Measured | None = None

    @property
    def last(self) -> Rung | None:
        return self.rungs[-1] if self.rungs else None

    @property
    def seconds(self) -> float:
        return self.rungs[-1].seconds if self.rungs else 0.0


def _file(folder: Path, number: int) -> Path:
    return folder / f"trial-{number:03}.json"


def read_trial(folder: Path, number: int, settings: Mapping[str, Choice]) -> Trial:
    """Reads a trial's record. A trial that has not begun has no scores.

    Raises:
        DataCorrupt: the record is damaged.
    """
    from pydantic import TypeAdapter, ValidationError

    file = _file(folder, number)
    content: dict[str, Any] = read_json(file) or {"number": number, "settings": settings}
    try:
        return TypeAdapter(Trial).validate_python(content)
    except ValidationError as error:
        raise DataCorrupt(f"{file} is damaged ({first_fault(error)}): take it away") from None


def write_trial(folder: Path, trial: Trial) -> None:
    write_whole(_file(folder, trial.number), json.dumps(asdict(trial), indent=1) + "\n")


def play(
    order: Order, trial: Trial, report: Callable[[Rung], None], *, is_on_cpu: bool = False
) -> None:
    """Trains a trial's league, and scores it at each rung.

    Args:
        order: how trials are played.
        trial: the record of the trial.
        report: is called with the score at each rung, including earlier starts' rungs. It may end
            the trial by never returning.
        is_on_cpu: whether the league trains on the CPU even if there is a GPU.

    Raises:
        LeagueError: the league failed, or can't be scored.
    """
    for rung in trial.rungs:
        report(rung)
    if trial.stopped:
        return
    began = time.monotonic() - trial.seconds
    try:
        for _ in range(STARTS):
            if len(trial.rungs) == len(order.rungs):
                return
            with _league(order, trial, is_on_cpu) as league:
                while len(trial.rungs) < len(order.rungs) and league.poll() is None:
                    rung = _scored(order, trial)
                    if rung is None:
                        time.sleep(POLL_SECONDS)
                        continue
                    rung = replace(rung, seconds=round(time.monotonic() - began, 1))
                    trial = replace(trial, rungs=(*trial.rungs, rung), fault="")
                    write_trial(order.folder, trial)
                    report(rung)
            if league.returncode and len(trial.rungs) < len(order.rungs):
                raise LeagueError(_last_line(order.log(trial.number)))
        if len(trial.rungs) < len(order.rungs):
            raise Unavailable(
                f"the league ended {STARTS} times before it was scored at "
                f"{order.rungs[len(trial.rungs)]:,} steps: read {order.log(trial.number)}"
            )
    except LeagueError as error:
        write_trial(order.folder, replace(trial, fault=str(error)))
        raise


@contextmanager
def _league(order: Order, trial: Trial, is_on_cpu: bool) -> Iterator[subprocess.Popen[bytes]]:
    """Runs the trial's league during the block. The kernel ends the league's processes when the
    league or this process ends.
    """
    words = [sys.executable, die_with_parent.__file__, str(os.getpid()), sys.executable, "-m"]
    words += ["league.cluster.main", "--headless", "--no-dashboard"]
    words += ["--config", str(order.config), "--run-dir", str(order.run_dir(trial.number))]
    words += ["--set", 'cluster.store=""']  # a store belongs to a single league
    words += ["--cpu"] if is_on_cpu else []
    for name, value in trial.settings.items():
        words += ["--set", assignment(name, value)]
    # variables with settings would override the trial's, and are in the shared settings already
    variables = variables_of_children().items()
    own = {name: value for name, value in variables if not name.startswith("RAY_")}
    with order.log(trial.number).open("ab") as log:
        process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=own, start_new_session=True
        )
    try:
        yield process
    finally:  # all that counts is on disk, and a league that ends normally writes reports first
        process.kill()
        process.wait()


def _last_line(log: Path) -> str:
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines()]
    last = next((line for line in reversed(lines) if line), f"no message in {log}")
    return last.removeprefix("start-league: ")


def _scored(order: Order, trial: Trial) -> Rung | None:
    """Scores the league at the trial's next rung. Returns None while the league can't be asked, or
    has not reached the rung.
    """
    run_dir = order.run_dir(trial.number)
    if finding.live_address(run_dir) is None:
        return None
    with suppress(Unavailable), League(run_dir=run_dir).connect() as client:
        steps = order.rungs[len(trial.rungs)]
        players = client.players()
        found = scored_at(order, players, steps)
        return None if found is None else _rung(order, client, players, *found, steps)
    return None


def scored_at(order: Order, players: Sequence[Player], steps: int) -> tuple[str, list[str]] | None:
    """Returns who is scored at the rung of so many steps, and the names of its snapshots. Returns
    None if the main has not reached the rung.
    """
    own = sorted(
        (
            player
            for player in players
            if player.kind is PlayerKind.SNAPSHOT and lineage_of(player.name) == order.main
        ),
        key=lambda player: player.step,
    )
    reached = next((player for player in own if player.step >= steps), None)
    if reached is None:
        return None
    if not order.average:
        return reached.name, [reached.name]
    half = later_half(order.main, [one for one in own if one.step <= reached.step])
    bots = sum(player.kind is PlayerKind.BOT for player in players)
    names = thinned([one.name for one in half], bots if order.score == RATING else 1)
    return f"{average_of(order.main)} to {reached.step}", names


def thinned(names: Sequence[str], opponents: int) -> list[str]:
    """Leaves out snapshots evenly, so that an evaluation of the others against so many opponents is
    not too large. The last snapshot stays.
    """
    count = min(len(names), max(1, MAX_PAIRS // max(1, opponents)))
    return [names[(at + 1) * len(names) // count - 1] for at in range(count)]


def value_of(
    order: Order,
    cells: Iterable[PayoffCell],
    members: Mapping[str, float],
    field: Sequence[str],
) -> tuple[Measured, str]:
    """Returns the value against the field in the unit of the sweep's scores, and the unit. Raises
    the errors of `value_against`.
    """
    value, has_payoffs = value_against(cells, members, field)
    if has_payoffs:
        return value, "payoff a match"
    return (elo_lead(value), "Elo") if order.score == RATING else (value, "points")


def _rung(
    order: Order,
    client: MatchmakerClient,
    players: Sequence[Player],
    player: str,
    names: Sequence[str],
    steps: int,
) -> Rung:
    """Asks the league's evaluators for the matches of a rung, waits for them, and scores them.

    Args:
        players: the league's players.
        player, names: the scored player, and its snapshots.
        steps: the steps of the rung.

    Raises:
        NotFound: there is no such opponent.
    """
    others = [one.name for one in players if one.name not in names]
    field = [one.name for one in players if one.kind is PlayerKind.BOT]
    if order.score != RATING:
        if order.score not in others:
            hint = nearest(order.score, others) or f"bots are {', '.join(field)}"
            raise NotFound(f"--score {order.score}: there is no such player to beat: {hint}")
        field = [order.score]
    members = text_of(dict.fromkeys(names, 1.0))
    asked = client.request_evaluation(members, field, order.matches, "league sweep")
    while (found := client.report(asked.number)).is_open:
        time.sleep(POLL_SECONDS)
    met = mixture_of(found.evaluation.player)
    cells = client.payoff(Book.EVAL, list(met), field)  # also of matches that others asked for
    value, unit = value_of(order, cells, met, field)
    return Rung(
        steps=steps,
        player=player,
        score=value,
        unit=unit,
        matches=sum(cell.games for cell in cells),
        seconds=0.0,
    )
