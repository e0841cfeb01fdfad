"""Ranks the entrants of a tournament, and writes the table of results as CSV and JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from evaluator.tournament.formats import Encounter, Format, places, scores
from evaluator.tournament.playing import Tournament
from league.metrics import Measured
from league.players import PayoffCell
from league.stats.ratings import RatingTable
from league.stats.ratings.elo import elo, samples
from league.stats.ratings.fit import Array, PairCounts, fit
from league.views.report import finite


@dataclass(frozen=True, kw_only=True)
class Standing:
    """Gives an entrant's place and results.

    Attributes:
        kind: file, rival, bot or weights.
        points: in a round robin, the points of all matches (a draw is ½). In the other formats, the
            points of all encounters.
        elo, elo_low, elo_high: Elo by the fit of all matches, with its 95 % interval.
        crashes: number of matches that the entrant lost or drew because it failed.
        late: number of the entrant's decisions that came late, in all matches.
        mu, sigma: the TrueSkill rating after all matches, rated in the order of the schedule.
    """

    rank: int
    entrant: str
    kind: str
    points: float
    elo: float
    elo_low: float
    elo_high: float
    matches: int
    wins: int
    draws: int
    losses: int
    crashes: int
    late: int
    mu: float
    sigma: float


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Holds the results of a tournament that has been played.

    Attributes:
        standings: the entrants, best first.
        cells: numbers of wins, draws and losses for each pair of entrants, from the point of view
            of either entrant.
        lead: a sentence on how certain the first place is.
    """

    tournament: Tournament
    encounters: list[Encounter]
    standings: list[Standing]
    cells: list[PayoffCell]
    lead: str

    @property
    def names(self) -> list[str]:
        """The entrants' names by number."""
        return [entry.name for entry in self.tournament.entries]


def judge(tournament: Tournament) -> Outcome:
    """Ranks the entrants of a finished tournament.

    A round robin ranks by the points of all matches. A Swiss tournament ranks by the points of the
    encounters, then by the sum of the opponents' points (Buchholz). An elimination ranks by the
    last encounter. Ties are broken by Elo, rounded to a tenth. Entrants with the same Elo share the
    better rank, and the next entrant has the rank that it would have without ties.
    """
    entries, played = tournament.entries, tournament.encounters
    names = [entry.name for entry in entries]
    table = RatingTable()
    for match in tournament.matches:
        if match.outcome is not None:
            seat0, seat1, outcome = names[match.first], names[match.second], match.outcome
            table.fold(seat0, seat1, outcome, margin=match.margin)
    cells = table.payoff.cells()
    counts, order = PairCounts.of_cells(cells, names)
    fitted = fit(counts, len(order))
    place = [order.index(name) for name in names]
    elo_N = elo(fitted.rating_N)[place]
    drawn_SN = elo(samples(fitted, counts, np.random.default_rng(0)))[:, place]
    standings = [
        _standing(tournament, number, _interval(elo_N[number], drawn_SN[:, number]), table)
        for number in range(len(entries))
    ]
    results, form = tournament.results, tournament.plan.form
    keys: list[tuple[float, float]] = [(one.points, 0.0) for one in standings]
    if form is not Format.ROUND_ROBIN:
        won = scores(len(entries), played, results)
        standings = [replace(one, points=n) for one, n in zip(standings, won, strict=True)]
        met = [0.0] * len(entries)
        for one in played:
            if one.second is not None:
                met[one.first] += won[one.second]
                met[one.second] += won[one.first]
        keys = list(zip(won, met, strict=True))
    if form is Format.DOUBLE_ELIMINATION:
        last = places(played, results)
        keys = [last[number] for number in range(len(entries))]
    full = [(key, round(float(x), 1)) for key, x in zip(keys, elo_N, strict=True)]
    ranked = sorted(range(len(full)), key=full.__getitem__, reverse=True)
    in_order = [full[n] for n in ranked]
    listed = [replace(standings[n], rank=1 + in_order.index(full[n])) for n in ranked]
    first, second = ranked[:2]
    gap = _interval(elo_N[first] - elo_N[second], drawn_SN[:, first] - drawn_SN[:, second])
    lead = f"{names[first]} leads {names[second]} by {gap.value:.0f} Elo"
    lead += f" (95 %: {gap.low:.0f} to {gap.high:.0f})"
    if gap.low <= 0.0:
        lead += ", so which of them is stronger is not shown"
    return Outcome(
        tournament=tournament,
        encounters=played,
        standings=listed,
        cells=cells,
        lead=lead,
    )


def _interval(estimate: float, drawn_S: Array) -> Measured:
    """Returns an estimate with the 95 % interval of its samples."""
    low, high = np.quantile(drawn_S, (0.025, 0.975))
    return Measured(float(estimate), float(low), float(high))


def _standing(
    tournament: Tournament, number: int, rating: Measured, table: RatingTable
) -> Standing:
    entry, matches = tournament.entries[number], tournament.matches
    own = [(one, int(number == one.second)) for one in matches if number in one.key[1:]]
    counts = table.payoff.row(entry.name).values()
    wins, draws = sum(one.wins for one in counts), sum(one.draws for one in counts)
    games, belief = sum(one.games for one in counts), table.belief(entry.name)
    return Standing(
        rank=0,
        entrant=entry.name,
        kind=entry.kind,
        points=wins + draws / 2.0,
        elo=rating.value,
        elo_low=rating.low,
        elo_high=rating.high,
        matches=games,
        wins=wins,
        draws=draws,
        losses=games - wins - draws,
        crashes=sum(one.failed[place] for one, place in own),
        late=sum(one.late[place] for one, place in own),
        mu=belief.mu,
        sigma=belief.sigma,
    )


def standing_rows(outcome: Outcome) -> list[dict[str, Any]]:
    """Returns a row for each entrant, with the attributes of its `Standing`."""
    return [
        {name: round(x, 4) if isinstance(x, float) else x for name, x in asdict(one).items()}
        for one in outcome.standings
    ]


def match_rows(outcome: Outcome) -> list[dict[str, Any]]:
    """Returns a row for each match. The outcome is the score of `first`, which has seat 0 in
    matches with an even number.
    """
    names = outcome.names
    titles = {one.key: one.title for one in outcome.encounters}
    return [
        {
            **{"round": titles[one.key], "first": names[one.first], "second": names[one.second]},
            **{"number": one.number, "seed": one.seed, "outcome": one.outcome},
            **{"frames": one.frames, "late_first": one.late[0], "late_second": one.late[1]},
            "failed": ", ".join(names[n] for n, is_failed in one.each(one.failed) if is_failed),
            **{"failure": one.failure, "final": one.final, "replay": one.match_id},
        }
        for one in outcome.tournament.matches
    ]


def as_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Returns rows with the same keys as CSV."""
    text = io.StringIO()
    writer = csv.DictWriter(text, rows[0].keys(), lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _safe(value) for name, value in row.items()} for row in rows)
    return text.getvalue()


def _safe(value: Any) -> Any:
    """Returns the value, with an apostrophe in front if it would be a formula in a spreadsheet."""
    is_formula = isinstance(value, str) and value.startswith(("=", "+", "-", "@"))
    return f"'{value}" if is_formula else value


def results_json(outcome: Outcome) -> str:
    """Returns the tournament's settings and all results as JSON."""
    plan, results = outcome.tournament.plan, outcome.tournament.results
    names, settings = outcome.names, outcome.tournament.settings
    content = {
        "game": settings.name,
        "options": dict(settings.clean_options),
        "match_seconds": settings.match_seconds,
        **asdict(plan),
        "lead": outcome.lead,
        "standings": standing_rows(outcome),
        "pairs": [asdict(cell) for cell in outcome.cells],
        "encounters": [
            {
                **{"stage": one.stage, "title": one.title, "first": names[one.first]},
                "second": None if one.second is None else names[one.second],
                "result": results.get(one.key),
            }
            for one in outcome.encounters
        ],
        "matches": match_rows(outcome),
    }
    return json.dumps(finite(content), indent=1) + "\n"
