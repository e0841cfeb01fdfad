"""Ranks the trials that reached the last rung by clean matches against each other.

Bots that every good trial beats can't tell good trials apart, but the trials can. Each pair of
finalists plays the same number of matches, with swapped seats and the same seeds. The counts of the
pairs are kept in the sweep's folder, so an interrupted final continues with the missing pairs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

from league.console.text import measured
from league.contest.league import League
from league.errors import DataCorrupt
from league.games.base import CHOICE, GameSpec
from league.games.settings import GameSettings
from league.players import PayoffCell
from league.runs.files import first_fault, read_json, write_whole
from league.sweep.trial import Order, Trial, scored_at, value_of

if TYPE_CHECKING:  # they load torch
    from league.contest.members import Entrant

FILE = "final.json"
ROWS = 512
"""Matches at once in games of choices, whose short matches pay for larger batches. Other games play
`league.contest.matches.ROWS` at once.
"""


@dataclass(frozen=True, kw_only=True)
class Meeting:
    """Counts the matches of a pair of trials. `asked` matches were played, and `cell` counts those
    that did not fail, for the folders' names of both trials.
    """

    asked: int
    cell: PayoffCell


def play_final(
    order: Order,
    settings: GameSettings,
    trials: Sequence[Trial],
    matches: int,
    on_pair: Callable[[str], None],
) -> list[Trial]:
    """Plays the missing pairs of the final.

    Args:
        order: how the trials were played.
        settings: the trials' game.
        trials: all trials of the sweep.
        matches: the number of matches of each pair. Pairs that have played more are kept.
        on_pair: receives a line of progress before the final and after each pair.

    Returns:
        The trials. Each finalist has its value against the other finalists. With fewer than two
        finalists, no trial has a value.

    Raises:
        DataCorrupt: the counts on disk are damaged, or a pair could not finish any match.
        InvalidInput: the finalists can't play each other.
    """
    finalists = {
        order.run_dir(trial.number).name: trial
        for trial in trials
        if len(trial.rungs) == len(order.rungs)
    }
    if len(finalists) < 2:
        return list(trials)
    pairs, met = list(combinations(finalists, 2)), _read(order.folder / FILE)
    missing = {
        pair: seed
        for seed, pair in enumerate(pairs)
        if pair not in met or met[pair].asked < matches
    }
    if missing:
        on_pair(f"(final of {len(finalists)} trials: {len(missing)} pairs of {matches:,} matches)")
        for number, cell in enumerate(_played(order, settings, missing, matches), 1):
            met[cell.row, cell.column] = Meeting(asked=matches, cell=cell)
            content = {"pairs": [asdict(meeting) for meeting in met.values()]}
            write_whole(order.folder / FILE, json.dumps(content, indent=1) + "\n")
            value, unit = value_of(order, [cell], {cell.row: 1.0}, [cell.column])
            line = f"{cell.row} against {cell.column}: {measured(value)} {unit}"
            on_pair(f"final, pair {number} of {len(missing)}: {line}")
    cells = [met[pair].cell for pair in pairs]
    cells += [_mirrored(cell) for cell in cells]
    values = {
        trial.number: value_of(order, cells, {name: 1.0}, [one for one in finalists if one != name])
        for name, trial in finalists.items()
    }
    return [
        replace(trial, final=values[trial.number][0]) if trial.number in values else trial
        for trial in trials
    ]


def _read(file: Path) -> dict[tuple[str, str], Meeting]:
    from pydantic import TypeAdapter, ValidationError

    content = read_json(file) or {"pairs": []}
    try:
        found = TypeAdapter(list[Meeting]).validate_python(content.get("pairs"))
    except ValidationError as error:
        raise DataCorrupt(
            f"{file} is damaged ({first_fault(error)}): take it away, then the same command plays "
            "the final again"
        ) from None
    return {(one.cell.row, one.cell.column): one for one in found if one.cell.games > 0}


def _played(
    order: Order, settings: GameSettings, seeds: Mapping[tuple[str, str], int], matches: int
) -> Iterator[PayoffCell]:
    """Plays pairs of trials, and yields the counts of each pair. `seeds` has the seed of each
    pair's sampled actions. The seeds of the matches are the same in all pairs.
    """
    import torch

    from league.contest.matches import ROWS as USUAL
    from league.contest.matches import bouts_of, play
    from league.stats.payoff import PayoffTable

    torch.set_num_threads(1)  # more threads make small networks slower
    spec = settings.spec()
    names = dict.fromkeys(name for pair in seeds for name in pair)
    entrants = {name: _entrant(order, spec, name) for name in names}
    for pair, seed in seeds.items():
        first, second = (entrants[name] for name in pair)
        own, table, failures = {one.contender for one in first.members}, PayoffTable(), {}
        for replay in play(
            settings,
            [*first.members, *second.members],
            bouts_of(first, second, matches, seed=0),
            seed=seed,
            greedy=False,
            failures=failures,
            rows=ROWS if spec.action_kind == CHOICE else USUAL,
        ):
            paid = [stats.get("payoff", 0.0) for stats in replay.stats]
            seats = pair if replay.seats[0] in own else pair[::-1]
            table.add(*seats, replay.outcome, (paid[0] - paid[1]) / 2.0)
        if not table.cells():
            why = next(iter(failures.values()))
            raise DataCorrupt(f"no match of {' and '.join(pair)} could be finished: {why}")
        yield table.cell(*pair)


def _entrant(order: Order, spec: GameSpec, name: str) -> Entrant:
    """Returns the player that was scored at the last rung of a trial."""
    from league.contest.members import Entrant, Finder

    finder = Finder(League(run_dir=order.folder / name))
    _, names = scored_at(order, finder.players, order.rungs[-1]) or ("", [])
    if not names:
        raise DataCorrupt(
            f"{order.folder / name} no longer has the snapshots that were scored: restore a copy, "
            "or leave out the final with --final 0"
        )
    members = [replace(one, name=f"{name}/{one.name}") for one in finder.find(spec, names)]
    weights = (1.0 / len(members),) * len(members)
    return Entrant(name=name, members=tuple(members), weights=weights)


def _mirrored(cell: PayoffCell) -> PayoffCell:
    return replace(
        cell,
        row=cell.column,
        column=cell.row,
        wins=cell.losses,
        losses=cell.wins,
        paid=-cell.paid,
    )
