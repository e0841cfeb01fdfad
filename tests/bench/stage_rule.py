"""Measures how close to the crossing of its win rate a curriculum stage ends.

    OMP_NUM_THREADS=1 python tests/bench/stage_rule.py [--climbs 200]
    OMP_NUM_THREADS=1 python tests/bench/stage_rule.py --run runs/laptop-1

Without a run, the script simulates learning curves (climbs) like those of preset `laptop`. Half are
steep, as against `constant`, and half are flat, as against `based`. The logit of the win rate
wanders around a straight line. A snapshot every 50,000 steps plays 4 to 16 clean matches against
the opponent, and their results arrive up to two snapshots late. The learner plays 7.6 matches per
1,000 steps, 70 to 100 % of them against the opponent. A match that it wins lasts 4,000 to 20,000
steps of the learner, and other matches last twice as long.

A stage should end at most 100,000 steps before or after its win rate first reaches 70 %. The exit
status is 1 if the rule misses this in over a fifth of the climbs. For comparison, the script also
applies the rule without the learner's training matches, and a rule that uses the share of wins in
60 clean matches of the newest evaluated snapshot.

With a run, the script applies the rule to the run's log, result by result. For each stage, it
prints when it ended and when it would have ended.
"""

from __future__ import annotations

import argparse
import heapq
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

sys.path.insert(0, str(Path(__file__).parents[2]))  # learner.py in this folder is not the package

from league.players import Book, Event, PayoffCell
from league.runs.finding import database_of
from league.stages import Place, Stage, evidence_after
from league.stats.climb import WinRate, goal_reached, win_rate_now
from matchmaker.state.books import RATING_EVENTS, Books
from matchmaker.store.sqlite import SqliteStore

Array = NDArray[np.float64]
SEED, BAR, NEAR, SHARE_BAR = 0, 0.7, 100_000, 0.8
STEPS, GRAIN, INTERVAL, LOOK = 3_000_000, 1_000, 50_000, 10_000
NOISE_SD = 0.1
"""Standard deviation by which a logit wanders from its line in a snapshot interval."""
MATCHES_A_STEP = 7.6e-3
STAGE = Stage(name="climb", mix="bot", until_opponent="bot", until_win_rate=BAR, min_matches=200)


@dataclass(frozen=True)
class Climb:
    """Holds a simulated climb.

    Attributes:
        crossed: step at which the win rate first reaches the bar.
        begun: step at which the stage begins.
        ended: steps at which training matches ended.
        won: whether the learner won these matches.
        came: steps at which the snapshots' clean matches arrive.
        games, wins: numbers of the clean matches, and of wins among them.
        many_won: wins in 60 clean matches of each snapshot.
    """

    crossed: int
    begun: int
    ended: Array
    won: NDArray[np.bool_]
    came: Array
    games: NDArray[np.int64]
    wins: NDArray[np.int64]
    many_won: NDArray[np.int64]


def climb(rng: np.random.Generator, is_quick: bool) -> Climb:
    """Simulates a climb from a weak start to above the bar.

    A steep climb reaches the bar after 0.3M to 0.7M steps, and its stage begins at step 0. A flat
    climb reaches it after 0.7M to 1.2M steps, and its stage begins 0.3M to 0.5M steps before that.
    """
    steps = np.arange(0, STEPS, GRAIN)
    while True:
        first = rng.uniform(-5.0, -2.0) if is_quick else rng.uniform(-1.5, -0.5)
        expected = rng.uniform(3e5, 7e5) if is_quick else rng.uniform(7e5, 1.2e6)
        walk = np.cumsum(rng.normal(0.0, NOISE_SD * np.sqrt(GRAIN / INTERVAL), len(steps)))
        logits = first + (logit(BAR) - first) * steps / expected + walk
        begun = 0 if is_quick else int(expected - rng.uniform(3e5, 5e5))
        crossed = int(steps[np.argmax(logits >= logit(BAR))])
        if crossed > begun and logits.max() >= logit(BAR):
            break
    rates = expit(logits)
    rate = MATCHES_A_STEP * rng.uniform(0.7, 1.0)
    began = np.sort(rng.uniform(begun, STEPS, rng.poisson(rate * (STEPS - begun))))
    won = rng.random(len(began)) < rates[(began / GRAIN).astype(int)]
    ended = began + rng.uniform(4_000, 20_000, len(began)) * np.where(won, 1.0, 2.0)
    frozen = np.arange(INTERVAL, STEPS, INTERVAL)
    games = rng.integers(4, 17, len(frozen))
    return Climb(
        crossed,
        begun,
        ended,
        won,
        frozen + rng.uniform(0, 2 * INTERVAL, len(frozen)),
        games,
        rng.binomial(games, rates[frozen // GRAIN]),
        rng.binomial(60, rates[frozen // GRAIN]),
    )


def cell(step: int, wins: int, games: int) -> PayoffCell:
    return PayoffCell(
        row=f"main@{step}", column="bot", wins=int(wins), draws=0, losses=int(games - wins)
    )


def clean(of: Climb, now: int) -> list[PayoffCell]:
    """Returns the clean matches whose results have arrived by a step."""
    return [
        cell((k + 1) * INTERVAL, of.wins[k], of.games[k]) for k in np.flatnonzero(of.came <= now)
    ]


def training(of: Climb, now: int) -> list[PayoffCell]:
    """Returns the learner's training matches that have ended by a step."""
    over = of.ended <= now
    stretch = (of.ended[over] // INTERVAL).astype(int)
    games, wins = np.bincount(stretch), np.bincount(stretch, of.won[over])
    return [cell(k * INTERVAL, wins[k], games[k]) for k in np.flatnonzero(games)]


def by_all(of: Climb, now: int) -> bool:
    """Applies the rule to clean and training matches."""
    found = win_rate_now("main", clean(of, now), training(of, now), now, least=STAGE.min_matches)
    return goal_reached(STAGE, found)


def by_clean(of: Climb, now: int) -> bool:
    """Applies the rule as if the learner didn't meet the opponent in training."""
    return goal_reached(STAGE, win_rate_now("main", clean(of, now), [], now))


def by_newest(of: Climb, now: int) -> bool:
    """Compares the bar with the share of wins in 60 clean matches of the newest evaluated
    snapshot.
    """
    came = np.flatnonzero(of.came <= now)
    return len(came) > 0 and of.many_won[came[-1]] >= BAR * 60


RULES: dict[str, Callable[[Climb, int], bool]] = {
    "clean and training matches": by_all,
    "clean matches alone": by_clean,
    "newest snapshot, 60 clean matches": by_newest,
}


def simulate(climbs: int) -> bool:
    """Prints how far from the crossing each rule ends its stages. Returns whether our rule is close
    enough in enough climbs.
    """
    late = {name: np.empty(climbs) for name in RULES}
    for number in range(climbs):
        one = climb(np.random.default_rng([SEED, number]), is_quick=number % 2 == 0)
        for name, rule in RULES.items():
            looks = range(one.begun + LOOK, STEPS, LOOK)
            end = next((now for now in looks if rule(one, now)), 10 * STEPS)
            late[name][number] = end - one.crossed
    print(f"{climbs} climbs, end of the stage after the crossing of {BAR:.0%}, in 1,000 steps")
    print(f"{'rule':34} {'within 100':>10} {'quick':>6} {'slow':>6} {'too early':>9} median 80 %")
    for name, steps in late.items():
        near = np.abs(steps) <= NEAR
        low, middle, high = np.quantile(steps, (0.1, 0.5, 0.9)) / 1000
        print(
            f"{name:34} {near.mean():10.1%} {near[::2].mean():6.0%} {near[1::2].mean():6.0%} "
            f"{(steps < -NEAR).mean():9.1%} {middle:6.0f} {low:.0f} to {high:.0f}"
        )
    return bool((np.abs(late["clean and training matches"]) <= NEAR).mean() >= SHARE_BAR)


# -- a run's log ---------------------------------------------------------------------------------


def moments(books: Books, reader: Any) -> Iterator[tuple[int, Event | None]]:
    """Adds a log's results to `books` one by one. Yields the learner's step after each result, and
    the stage events between them.
    """
    step = 0
    events = reader.events_of("stage", *RATING_EVENTS)
    rows = heapq.merge(
        ((row.event_position, row) for row in reader.results()),
        ((event.position, event) for event in events),
        key=lambda found: found[0],
    )
    for _, one in rows:
        if isinstance(one, Event):
            if one.kind == "stage":
                yield step, one
            else:
                books.apply(one)
            continue
        books.add_results([one])
        if one.book is Book.TRAIN:
            step = max(step, one.end_step0, one.end_step1)
        yield step, None


def replay(run: Path) -> None:
    """Prints when each stage of a run's main ended, and when it would have ended by the rule."""
    waiting: list[tuple[Stage, Place]] = []
    next_look, books = 0, Books()
    with closing(SqliteStore(database_of(run), read_only=True)) as store, store.read() as reader:
        for step, event in moments(books, reader):
            if event is not None:
                told = json.loads(event.data_json)
                if told.get("player") != "main" or "stages" not in told:
                    continue
                place, stages = Place(**told["place"]), [Stage(**one) for one in told["stages"]]
                print(f"{told['step']:>9,} {event.text}")
                if stages[place.index].until_opponent:
                    waiting.append((stages[place.index], place))
            elif step >= next_look:
                next_look = step + LOOK
                for stage, place in list(waiting):
                    found = estimate(books, stage, place, step)
                    if goal_reached(stage, found):
                        waiting.remove((stage, place))
                        assert found is not None
                        words = found.sentence("main", stage.until_opponent)
                        print(f"{step:>9,} stage {stage.name!r} ends by the rule: {words}")
    for stage, _ in waiting:
        print(f"stage {stage.name!r} does not end by the rule")


def estimate(books: Books, stage: Stage, place: Place, step: int) -> WinRate | None:
    asked = [stage.until_opponent]
    cells = books.tables[Book.EVAL].payoff.cells(columns=asked)
    own = books.climb.cells(columns=asked)
    after, least = evidence_after(place), stage.min_matches
    return win_rate_now("main", cells, own, step, after=after, least=least)


def main() -> int:
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("--climbs", type=int, default=200)
    words.add_argument("--run", type=Path)
    options = words.parse_args()
    if options.run is None:
        return 0 if simulate(options.climbs) else 1
    replay(options.run)
    return 0


if __name__ == "__main__":
    sys.exit(main())
