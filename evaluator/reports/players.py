"""Describes a player in a report: opponents, generalisation, forgetting, exploiters.

An ancestor is an earlier snapshot of the same learner. The score against an opponent is the share
of the points (a draw is half a point). In games with payoffs the score is the mean payment per
match. The payment is half of the difference between the player's payoff and the opponent's payoff.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from scipy.special import betaincinv, stdtrit

from evaluator.benchmark.scores import Score
from league.console import text as texts
from league.errors import InvalidName
from league.exploiters import EXPLOITING
from league.games.base import GameSpec
from league.gates import CandidateGate, GateState, VictimGate
from league.ids import SnapshotName
from league.metrics import Measured, interval_at, wilson_interval
from league.players import PayoffCell, Player, PlayerKind
from league.runs.exploits import PAYOFFS, POINTS, Exploit
from league.stats.gates import Certificate
from league.stats.gates.estimate import estimate
from league.stats.payoff import Stakes
from league.views.report import Forest, Panel, Section

TRAINING, HELD_OUT, LEAGUE = "training bots", "held-out bots", "league snapshots"
EXPLOITERS, OTHERS = "exploiters", "others"
GROUPS = (TRAINING, HELD_OUT, LEAGUE, EXPLOITERS, OTHERS)
PANELS = ("damage_ratio", "knockouts", "pickups", "reward")
"""Mean values that the chart of opponents shows if they are known."""
COLUMNS = ("damage_dealt", "damage_taken", "damage_ratio", "knockouts", "falls", "pickups",
           "payoff", "reward", "seconds", "choices")  # fmt: skip
ENOUGH = 20
"""Number of matches against an opponent that the report needs for its claims. With fewer matches,
the chart shows only means that have intervals, an ancestor is combined with neighbouring ancestors,
and the report does not claim that the player beats the opponent.
"""
ERROR = 0.05 / 3
"""A report may make three kinds of false claims: that the player beats an opponent, that it has a
weakness, and that it has become worse against an ancestor (a drop). For each kind, the probability
of any false claim is at most `ERROR`. So all claims of a report are true with a probability of at
least 95 %.
"""
STAKES = "of what is at stake"
"""In games with payoffs, the unit of a bound that comes from a gate (an exploiter's test)."""
MOST = 40
"""Largest number of opponents in a chart or table. The opponents with the most matches are shown.
"""
RATIO_UP_TO = 20.0
"""Damage ratios above this are left out of the chart, where they would squeeze all other values."""


@dataclass(frozen=True, kw_only=True)
class Met:
    """A player's matches against an opponent.

    Attributes:
        ancestor_step: the opponent's step if the opponent is an ancestor, else None.
        paid: in games with payoffs, the mean payment to the player.
        square: in games with payoffs, the mean of the squared payments.
        largest: the largest possible payment of a match, None if the game does not state it.
    """

    opponent: str
    group: str
    wins: int
    draws: int
    losses: int
    win_rate: Measured
    means: Mapping[str, Measured]
    actions: Mapping[str, Measured] = field(default_factory=dict)
    ancestor_step: int | None = None
    paid: Measured | None = None
    square: float = math.nan
    largest: float | None = None

    @property
    def matches(self) -> int:
        return self.wins + self.draws + self.losses

    @property
    def points(self) -> float:
        """Returns the points that the player won. A draw is half a point."""
        return self.wins + self.draws / 2

    @property
    def even(self) -> float:
        """The score against an equally strong opponent."""
        return 0.5 if self.paid is None else 0.0

    @property
    def score(self) -> Measured:
        """The mean payment, or the share of the points."""
        return self.paid or measured(self.points, self.matches)

    def interval(self, confidence: float) -> Measured:
        """Returns the score with an interval that is also valid for few matches.

        In a game with payoffs the interval needs the largest payment of a match. If the game does
        not state this payment, there is no interval.
        """
        if self.paid is None:
            return exact_share(self.points, self.matches, confidence)
        if self.largest is None or math.isnan(self.square):
            return Measured(self.paid.value)
        return interval_at(self.paid.value, self.square, self.matches, self.largest, confidence)


@dataclass(frozen=True, kw_only=True)
class Unit:
    """The unit of scores: shares of the points, or mean payments in games with payoffs."""

    name: str = ""

    @property
    def words(self) -> str:
        return f"{self.name} per match" if self.name else "share of the points"

    @property
    def even(self) -> float:
        """The score against an equally strong opponent."""
        return 0.0 if self.name else 0.5

    def text(self, value: float) -> str:
        """Returns a score as text for a table."""
        return f"{value:+.2f}" if self.name else f"{value:.1%}"

    def interval(self, mean: Measured) -> str:
        """Returns the ends of an interval as text."""
        return f"{mean.low:+.2f} to {mean.high:+.2f}" if self.name else texts.interval(mean)


def unit_of(met: Iterable[Met], name: str) -> Unit:
    """Returns the unit of the scores of these matches. `name` is the unit of the game's payoffs."""
    return Unit(name=name or "payoff") if any(row.paid for row in met) else Unit()


def measured(points: float, worth: float) -> Measured:
    """Returns the share of points that were won, with Wilson's 95 % interval. `worth` is the
    effective number of matches.
    """
    interval = wilson_interval(points, worth)
    return Measured(points / worth if worth else math.nan, interval.low, interval.high)


def exact_share(points: float, matches: int, confidence: float) -> Measured:
    """Returns a share with the interval of C. J. Clopper and E. S. Pearson (Biometrika 26, 1934).

    This interval is also valid for few matches.
    """
    tail = (1.0 - confidence) / 2.0
    low = betaincinv(points, matches - points + 1.0, tail) if points else 0.0
    high = betaincinv(points + 1.0, matches - points, 1.0 - tail) if points < matches else 1.0
    return Measured(points / matches, float(low), float(high))


def met_in_benchmark(scores: Iterable[Score], spec: GameSpec) -> list[Met]:
    """Returns the opponents of a benchmark, grouped by their names."""
    bots = {bot.name: HELD_OUT if bot.held_out else TRAINING for bot in spec.bots}
    return [
        Met(
            opponent=score.opponent,
            group=bots.get(score.opponent) or (LEAGUE if _named(score.opponent) else OTHERS),
            wins=score.wins,
            draws=score.draws,
            losses=score.losses,
            win_rate=score.win_rate,
            means=score.means,
            actions=score.actions,
            ancestor_step=_ancestor_step(score.player, score.opponent),
            paid=score.means.get("payoff"),
            square=_square(score),
            largest=spec.largest_payoff,
        )
        for score in scores
    ]


def _square(score: Score) -> float:
    """Computes the mean of a benchmark's squared payments. It follows from the mean payment and the
    mean's interval, which is a Student interval over pairs.
    """
    paid = score.means.get("payoff")
    if paid is None or score.matches < 4:
        return math.nan
    error = (paid.high - paid.low) / 2.0 / float(stdtrit(score.matches // 2 - 1, 0.975))
    return paid.value**2 + score.matches * error**2


def met_in_log(
    cells: Iterable[PayoffCell],
    players: Mapping[str, Player],
    frames_per_second: int,
    largest: float | None = None,
) -> list[Met]:
    """Returns a player's opponents, from the player's clean matches (both players frozen) in the
    log. The log keeps only sums, so means have no intervals.

    Args:
        frames_per_second: speed of the game, 0 if unknown.
        largest: the largest payment of a match, None if unknown.
    """
    records, cells = [], list(cells)
    stakes = Stakes.of(cells)
    for cell in cells:
        other = players.get(cell.column)
        if other is None or not cell.games:
            continue
        means = {name: Measured(value) for name, value in cell.means.items()}
        if cell.frames and frames_per_second:
            means["seconds"] = Measured(cell.frames / cell.games / frames_per_second)
        if damage := cell.means.get("damage_taken"):
            means["damage_ratio"] = Measured(cell.means["damage_dealt"] / damage)
        is_bot = other.kind is PlayerKind.BOT
        group = (HELD_OUT if other.held_out else TRAINING) if is_bot else LEAGUE
        records.append(
            Met(
                opponent=cell.column,
                group=EXPLOITERS if other.role in EXPLOITING else group,
                wins=cell.wins,
                draws=cell.draws,
                losses=cell.losses,
                win_rate=measured(cell.wins, cell.games),
                means=means,
                ancestor_step=_ancestor_step(cell.row, cell.column),
                paid=stakes.mean(cell),
                square=cell.squares / cell.games,
                largest=largest,
            )
        )
    return records


def _named(name: str) -> SnapshotName | None:
    try:
        return SnapshotName.parse(name)
    except InvalidName:
        return None


def _ancestor_step(player: str, other: str) -> int | None:
    """Returns the step of `other` if it is an earlier snapshot of the player's own learner, else
    None.
    """
    newer, older = _named(player), _named(other)
    if newer is None or older is None or newer.lineage != older.lineage or older.step >= newer.step:
        return None
    return older.step


# --- sections


def player_sections(
    player: str, met: Sequence[Met], bounds: Sequence[Bound] = (), payoffs: str = ""
) -> list[Section]:
    """Returns a report's sections about a player, in order. `payoffs` is the unit of payoffs."""
    unit = unit_of(met, payoffs)
    shown = sorted(met, key=lambda row: -row.matches)[:MOST]
    shown.sort(key=lambda row: (GROUPS.index(row.group), -row.score.low, row.opponent))
    sections = [
        _opponents(player, shown, len(met), unit),
        _generalisation(player, met, unit),
        _forgetting(player, met, unit),
        _exploitability(player, bounds, payoffs),
        _actions(shown),
    ]
    return [section for section in sections if section is not None]


def _opponents(player: str, shown: Sequence[Met], total: int, unit: Unit) -> Section | None:
    if not shown:
        return None
    panels = [Panel(title="win rate", values=[row.win_rate for row in shown], percent=True,
                    reference=0.5)]  # fmt: skip
    if unit.name:
        scores = [row.score for row in shown]
        panels.insert(0, Panel(title=unit.words, values=scores, reference=0.0))
    for name in PANELS:
        values = [
            row.means.get(name) if row.matches >= ENOUGH or _has_interval(row) else None
            for row in shown
        ]
        if name == "damage_ratio":
            values = [mean and (mean if mean.value <= RATIO_UP_TO else None) for mean in values]
        if any(values):
            reference = 1.0 if name == "damage_ratio" else None
            panels.append(Panel(title=name.replace("_", " "), values=values, reference=reference))
    columns = [name for name in COLUMNS if any(name in row.means for row in shown)]
    heads = ["opponent", "group", "matches#", "won–drawn–lost#", "win rate#", "95 %#"]
    words = (
        "Clean matches, seats swapped on common seeds; a draw is not a win. Bars are 95 % intervals"
    )
    if not any(map(_has_interval, shown)):
        words += f" where known; means of fewer than {ENOUGH} matches are in the table alone"
    words += "."
    if total > len(shown):
        words += f" The {len(shown)} of {total} opponents met most often."
    return Section(
        title=f"Opponents of {player}",
        words=words,
        chart=Forest(
            rows=[row.opponent for row in shown],
            groups=[row.group for row in shown],
            panels=panels,
        ),
        headings=[*heads, *(f"{name.replace('_', ' ')}#" for name in columns)],
        rows=[
            (
                *(row.opponent, row.group),
                *(f"{row.matches:,}", f"{row.wins}–{row.draws}–{row.losses}"),
                *(f"{row.win_rate.value:.1%}", texts.interval(row.win_rate)),
                *(texts.measured(row.means[name]) if name in row.means else "" for name in columns),
            )
            for row in shown
        ],
        is_main=True,
    )


def _has_interval(row: Met) -> bool:
    return any(math.isfinite(mean.low) for mean in row.means.values())


def _generalisation(player: str, met: Sequence[Met], unit: Unit) -> Section | None:
    scores = group_scores(met)
    if len(scores) < 2:
        return None
    gaps = [
        f"{group} − {other}: {_gap_words(scores[group], scores[other], unit)}"
        for group, other in ((TRAINING, HELD_OUT), (TRAINING, LEAGUE))
        if {group, other} <= scores.keys()
    ]
    counts = {group: sum(row.group == group for row in met) for group in scores}
    return Section(
        title=f"Generalisation of {player}",
        words=f"{unit.words.capitalize()} by kind of opponent, each opponent counting alike. "
        "Held-out bots, which training never met, show whether it learnt to play or its opponents; "
        f"snapshots are of all ages. {'; '.join(gaps)}.",
        chart=_points(
            [f"{group} ({counts[group]})" for group in scores], scores, scores.values(), unit
        ),
        headings=("opponents", "number#", f"{unit.name or 'points'}#", "95 %#"),
        rows=[
            (group, str(counts[group]), unit.text(score.value), unit.interval(score))
            for group, score in scores.items()
        ],
        is_main=True,
    )


def _points(
    rows: Sequence[str], groups: Iterable[str], scores: Iterable[Measured], unit: Unit
) -> Forest:
    panel = Panel(title=unit.words, values=[*scores], percent=not unit.name, reference=unit.even)
    return Forest(rows=rows, groups=[*groups], panels=[panel])


def group_scores(met: Sequence[Met]) -> dict[str, Measured]:
    """Returns the mean score against each group of opponents. All opponents count equally, even if
    they have different numbers of matches. In a game without payoffs, the interval for k opponents
    with nᵢ matches is computed as for a single opponent with k² / Σ 1/nᵢ matches.
    """
    scores = {}
    for group in GROUPS:
        records = [row for row in met if row.group == group]
        if paid := [row.paid for row in records if row.paid]:
            scores[group] = _mean(paid, [1.0] * len(paid))
        elif records:
            worth = len(records) ** 2 / sum(1 / row.matches for row in records)
            mean = sum(row.score.value for row in records) / len(records)
            scores[group] = measured(min(mean, 1.0) * worth, worth)
    return scores


def _mean(scores: Sequence[Measured], weights: Sequence[float]) -> Measured:
    """Returns the weighted mean of independent scores, whose errors add up in quadrature."""
    shares, total = list(zip(scores, weights, strict=True)), sum(weights)
    value = sum(score.value * weight for score, weight in shares) / total
    below, above = (
        math.hypot(*((score.value - getattr(score, end)) * weight for score, weight in shares))
        / total
        for end in ("low", "high")
    )
    return Measured(value, value - below, value + above)


def gap(score: Measured, other: Measured) -> Measured:
    """Returns the difference of two scores. Its interval combines the Wilson intervals of both
    scores (R. G. Newcombe, Statistics in Medicine 17, 1998, method 10).
    """
    value = score.value - other.value
    below = math.hypot(score.value - score.low, other.high - other.value)
    above = math.hypot(score.high - score.value, other.value - other.low)
    return Measured(value, value - below, value + above)


def _gap_words(score: Measured, other: Measured, unit: Unit) -> str:
    lead = gap(score, other)
    text = f"{100 * lead.value:+.1f} points ({100 * lead.low:+.1f} to {100 * lead.high:+.1f})"
    if unit.name:
        text = f"{unit.text(lead.value)} {unit.name} ({unit.interval(lead)})"
    return text if lead.low > 0 or lead.high < 0 else f"{text}, which may be none"


def _forgetting(player: str, met: Sequence[Met], unit: Unit) -> Section | None:
    earlier = ancestors(met)
    if not earlier:
        return None
    dropped = drops(earlier)
    names = ", ".join(row.opponent for row in dropped)
    verdict = f"Drops: {names}." if dropped else "No drop is shown."
    marks = ["drop" if row in dropped else "no drop" for row in earlier]
    return Section(
        title=f"Forgetting of {player}",
        words=f"{unit.words.capitalize()} against its own earlier snapshots, the newest first, "
        f"which should grow with their age. Neighbours with fewer than {ENOUGH} matches count "
        "together. A drop is marked if it loses to an ancestor, or does worse against it than "
        "against a newer one, and the intervals exclude chance, with 95 % confidence for all drops "
        f"together. {verdict}",
        chart=_points(
            [row.opponent for row in earlier], marks, [row.score for row in earlier], unit
        ),
        headings=("ancestor", "matches#", f"{unit.name or 'points'}#", "95 %#", "shown"),
        rows=[
            (
                *(row.opponent, f"{row.matches:,}"),
                *(unit.text(row.score.value), unit.interval(row.score), mark),
            )
            for row, mark in zip(earlier, marks, strict=True)
        ],
        is_main=True,
    )


def ancestors(met: Iterable[Met]) -> list[Met]:
    """Returns a player's ancestors, the newest first. Ancestors with too few matches are combined
    with their neighbours, until each entry has `ENOUGH` matches if possible.
    """
    earlier = [row for row in met if row.ancestor_step is not None]
    pools: list[list[Met]] = []
    for row in sorted(earlier, key=lambda row: row.ancestor_step or 0):
        if not pools or sum(older.matches for older in pools[-1]) >= ENOUGH:
            pools.append([])
        pools[-1].append(row)
    if len(pools) > 1 and sum(row.matches for row in pools[-1]) < ENOUGH:
        pools[-2:] = [pools[-2] + pools[-1]]
    return [_together(pool) for pool in reversed(pools)]


def _together(pool: Sequence[Met]) -> Met:
    if len(pool) == 1:
        return pool[0]
    counts = [(row.wins, row.draws, row.losses) for row in pool]
    wins, draws, losses = (sum(column) for column in zip(*counts, strict=True))
    paid = [row.paid for row in pool if row.paid]
    return Met(
        opponent=f"{pool[0].opponent} to {pool[-1].ancestor_step} ({len(pool)} together)",
        group=LEAGUE,
        wins=wins,
        draws=draws,
        losses=losses,
        win_rate=measured(wins, wins + draws + losses),
        means={},
        ancestor_step=pool[-1].ancestor_step,
        paid=_mean(paid, [row.matches for row in pool]) if paid else None,
        square=sum(row.square * row.matches for row in pool) / (wins + draws + losses),
        largest=pool[0].largest,
    )


def drops(newest_first: Sequence[Met]) -> list[Met]:
    """Returns the ancestors to which a player loses, or against which it does worse than against a
    newer ancestor. The probability that any of these claims is wrong is at most `ERROR`, because
    the scores' intervals are corrected for the number of ancestors (Bonferroni).

    Args:
        newest_first: all ancestors, as the function `ancestors` returns them.
    """
    dropped, best = list[Met](), newest_first[0].even if newest_first else 0.0
    for row in newest_first:
        score = row.interval(1.0 - ERROR / len(newest_first))
        if score.high < best:
            dropped.append(row)
        best = max(best, score.low)
    return dropped


# --- in a few lines


def headline(
    player: str, met: Sequence[Met], bounds: Sequence[Bound], *, exact: bool, payoffs: str = ""
) -> dict[str, str]:
    """Returns sentences on how exploitable a player is, and which bots and ancestors it beats.

    All of these claims together hold with 95 % confidence (see `beaten` and `bounds_of`).

    Args:
        exact: whether the game is small enough to compute the exploitability exactly.
        payoffs: the unit of payoffs.
    """
    unit = unit_of(met, payoffs)
    lines = {
        "exploitability": f"not measured: bin/league exploit {player} trains exploiters against it"
    }
    if exact:
        lines["exploitability"] = f"bin/league exploitability {player} computes it exactly"
    elif bounds:
        best = bounds[0]
        shown = "no weakness shown"
        if best.exploitability > 0.0:
            shown = f"an exploiter wins {texts.at_least(best.exploitability)} a match or more"
        elif not math.isfinite(best.exploitability):
            shown = "no bound, as the largest payoff of the game is not known"
        counted = {POINTS: "a win is 1, a loss -1", PAYOFFS: Unit(name=payoffs or "payoff").words}
        worth = counted.get(best.unit, best.unit)
        lines["exploitability"] = f"{shown} ({worth}; {best.source}, {best.steps:,} steps)"
    beats = beaten(met)
    for name, group in (("bots", TRAINING), ("held-out bots", HELD_OUT)):
        if records := [row for row in met if row.group == group]:
            lines[name] = _beaten(records, beats, name, unit)
    if records := ancestors(met):
        lines["earlier selves"] = _beaten(records, beats, "earlier selves", unit)
    return lines


def summary(headline: Mapping[str, str], player: str) -> Section:
    """Returns the headline as the first section of a report."""
    return Section(
        title=f"{player} in a few lines",
        words="A player beats an opponent if chance does not explain its share of the points in "
        f"{ENOUGH} matches or more. All claims together hold with 95 % confidence.",
        headings=("about", "found"),
        rows=[*headline.items()],
    )


def beaten(met: Sequence[Met]) -> set[str]:
    """Returns the bots and ancestors that the player beats, by Holm's test (S. Holm, "A simple
    sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6, 1979).
    The probability that any of these claims is wrong is at most `ERROR`. Opponents with fewer than
    `ENOUGH` matches are left out.
    """
    bots = [row for row in met if row.group in (TRAINING, HELD_OUT)]
    left = [row for row in (*bots, *ancestors(met)) if row.matches >= ENOUGH]
    names = set[str]()
    while left:
        confidence = 1.0 - 2.0 * ERROR / len(left)
        beaten_too = {row.opponent for row in left if row.interval(confidence).low > row.even}
        if not beaten_too:
            break
        names |= beaten_too
        left = [row for row in left if row.opponent not in names]
    return names


def _beaten(met: Sequence[Met], beats: Collection[str], group: str, unit: Unit) -> str:
    worst = min(met, key=lambda row: row.score.value)
    number = sum(row.opponent in beats for row in met)
    of = f"all {len(met)}" if number == len(met) > 1 else f"{number} of {len(met)}"
    few = sum(row.matches < ENOUGH for row in met)
    score = f"{100 * worst.score.value:.0f} % of points"
    if unit.name:
        score = f"{unit.text(worst.score.value)} {unit.words}"
    return (
        f"Beats {of} {group} (95 % confidence)"
        + (f"; {few} met in fewer than {ENOUGH} matches" if few else "")
        + f". Hardest: {worst.opponent}, {score}."
    )


# --- exploitability


@dataclass(frozen=True, kw_only=True)
class Bound:
    """Says how much an exploiter won against a player. This is a lower bound on the player's
    exploitability.

    Attributes:
        score: the exploiter's share of the points.
        matches: number of matches.
        source: the kind of matches that give the score, in words for the report.
        steps: number of steps for which the exploiter trained.
        paid: the exploiter's mean payment per match in `unit`, None if only the score is known.
    """

    exploiter: str
    score: Measured
    matches: int
    source: str
    steps: int
    paid: Measured | None = None
    unit: str = POINTS

    @property
    def exploitability(self) -> float:
        """Returns the lower end of the interval of the exploiter's payment per match, -inf if
        unknown. If only the score p is known, the payment is 2p − 1.
        """
        low = 2 * self.score.low - 1 if self.paid is None else self.paid.low
        return -math.inf if math.isnan(low) else low


def bounds_of(
    player: str,
    gates: Iterable[CandidateGate],
    met: Iterable[Met],
    players: Mapping[str, Player],
    exploits: Sequence[Exploit] = (),
    payoffs: str = "",
) -> list[Bound]:
    """Returns a bound for each accepted exploiter that met the player, and for each certificate of
    `bin/league exploit`, the largest first. An exploiter's bound comes from its clean matches (both
    players frozen), or else from its gate (its test against the player). `payoffs` is the unit of
    payoffs, "" in games without payoffs.

    Let k be the number of certificates plus the number of exploiters that were tried. An exploiter
    was tried if it is accepted, or if its gate has matches against the player. Each end of an
    interval is wrong with a probability of at most `ERROR` / k. So the largest of the bounds is too
    high with a probability of at most `ERROR` (Bonferroni).
    """
    tested = [
        gate
        for gate in gates
        if gate.is_exploiters
        and (gate.state is GateState.ACCEPTED or _test_of(gate, player) is not None)
    ]
    clean = {row.opponent: row for row in met if row.matches}
    confidence = 1.0 - 2.0 * ERROR / max(1, len(tested) + len(exploits))
    bounds = [_bound_of(exploit, confidence) for exploit in exploits]
    for gate in tested:
        generation, candidate = gate.generation, players.get(gate.candidate)
        assert generation is not None
        test = _test_of(gate, player)
        if gate.state is not GateState.ACCEPTED:
            continue
        paid, unit = None, STAKES if payoffs else POINTS
        if row := clean.get(gate.candidate):
            score = exact_share(row.matches - row.points, row.matches, confidence)
            source, matches = "clean matches", row.matches
            if row.paid is not None:
                interval = row.interval(confidence)
                paid, unit = Measured(-interval.value, -interval.high, -interval.low), PAYOFFS
        elif test is not None and test.certificate_json:
            decided = Certificate.from_json(test.certificate_json).gate
            held = estimate(decided.test, decided.counts, decided.risks, confidence)
            assert held is not None
            score, source = Measured(held.score, held.low, held.high), "its gate"
            matches = test.matches
        else:
            continue
        bounds.append(
            Bound(
                exploiter=gate.candidate,
                score=score,
                matches=matches,
                source=source,
                steps=max(0, candidate.step - generation.since_step) if candidate else 0,
                paid=paid,
                unit=unit,
            )
        )
    return sorted(bounds, key=lambda bound: (bound.unit == STAKES, -bound.exploitability))


def _test_of(gate: CandidateGate, player: str) -> VictimGate | None:
    """Returns the part of a gate that tests an exploiter against a player, or None if this test has
    no match yet.
    """
    return next((test for test in gate.victims if test.victim == player and test.matches), None)


def _bound_of(exploit: Exploit, confidence: float) -> Bound:
    best = exploit.best
    control = f", placebo {exploit.placebo.value.value:+.2f}" if exploit.placebo else ""
    tries = f"best of {len(exploit.tries)} tries of bin/league exploit"
    return Bound(
        exploiter=best.digest[:12],
        score=exact_share(best.points, best.matches, confidence),
        matches=best.matches,
        source=f"{tries} {best.value.value:+.2f}{control}",
        steps=best.steps,
        paid=exploit.interval(confidence),
        unit=exploit.unit,
    )


def _exploitability(player: str, bounds: Sequence[Bound], payoffs: str) -> Section | None:
    if not bounds:
        return None
    best = bounds[0]
    verdict = "No exploiter beats it for certain: that shows no bound, and no safety either."
    if best.exploitability > 0:
        least = texts.at_least(best.exploitability)
        verdict = f"An opponent wins {least} a match or more ({best.exploiter})."
    return Section(
        title=f"Exploitability of {player}",
        words="A lower bound: what the best exploiter wins a match, 2p − 1 or the game's payoffs, "
        f"at the low end of its interval. {verdict} A longer search may find more.",
        headings=(
            *("exploiter", "steps#", "matches#", "points#", "interval#", "bound#", "unit", "from"),
        ),
        rows=[
            (
                *(
                    bound.exploiter,
                    f"{bound.steps:,}",
                    f"{bound.matches:,}",
                    f"{bound.score.value:.1%}",
                ),
                *(texts.interval(bound.score), texts.at_least(bound.exploitability)),
                *(payoffs or bound.unit if bound.unit == PAYOFFS else bound.unit, bound.source),
            )
            for bound in bounds
        ],
    )


def _actions(shown: Sequence[Met]) -> Section | None:
    recorded = [row for row in shown if row.actions]
    if not recorded:
        return None
    names = sorted(
        recorded[0].actions,
        key=lambda name: -max(row.actions[name].value for row in recorded),
    )
    names = names[:MOST]
    return Section(
        title="Use of actions",
        words="Share of its decisions in which the player used each key or choice, by opponent.",
        headings=["opponent", *(f"{name}|" for name in names)],
        rows=[
            (row.opponent, *(f"{row.actions[name].value:.0%}" for name in names))
            for row in recorded
        ],
        shades=[[row.actions[name].value for name in names] for row in recorded],
    )
