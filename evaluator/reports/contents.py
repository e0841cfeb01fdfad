"""Puts reports together: about a benchmark, a snapshot of a league, or a whole run."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from evaluator.benchmark.scores import Score
from evaluator.reports import players as of_player
from evaluator.reports.players import (
    Bound,
    Met,
    bounds_of,
    group_scores,
    measured,
    met_in_log,
)
from league.console.text import span, when
from league.errors import LeagueError, NotFound, nearest
from league.exploiters import is_mains_snapshot
from league.games.base import GameSpec
from league.games.exact import is_exact
from league.games.registry import game_spec, is_safe_in_files
from league.ids import SnapshotName
from league.metrics import Measured
from league.players import Book, Player, PlayerKind, Rating, newest_snapshot
from league.rpc.client import MatchmakerClient
from league.runs.exploits import exploits_of
from league.stats.ratings.cross_check import cross_check
from league.views.leaderboard import MOST_FITTED
from league.views.report import Forest, Panel, Report, Section, Trend

TOP = 5
TOLD = 20
"""Largest number of opponents in the table of training matches."""


def of_benchmark(scores: Sequence[Score], spec: GameSpec, facts: Mapping[str, Any]) -> Report:
    """Returns the report of a benchmark. `facts` says how the matches were played."""
    met, player = of_player.met_in_benchmark(scores, spec), scores[0].player
    payoffs = spec.payoff_unit
    return Report(
        title=f"Benchmark of {player}",
        lead=f"{'Greedy' if facts['greedy'] else 'Sampled'} play of {spec.name}, every seed once "
        "from either seat",
        facts=_player_facts(met, payoffs),
        sections=of_player.player_sections(player, met, (), payoffs),
        numbers={"player": player, **facts, **_player_numbers(player, spec.name, met, (), payoffs)},
        end=_end(),
    )


def of_league_player(
    client: MatchmakerClient, name: str, run: str, exploits: Path | None = None, game: str = ""
) -> Report:
    """Returns a report about a member of a league, from the member's clean matches (both players
    frozen).

    Args:
        exploits: folder with the certificates of `bin/league exploit`.
        game: the name of the run's game, or "". This name replaces the game's name in the log, if
            that game is not built in and importing it could run code from an unknown author.

    Raises:
        NotFound: there is no such player, or the player has no clean match.
    """
    players = {player.name: player for player in client.players()}
    if name not in players:
        hint = nearest(name, players) or "bin/league players lists them"
        raise NotFound(f"there is no player {name!r} in {run}: {hint}")
    player = players[name]
    if player.kind is PlayerKind.LIVE:
        player = newest_snapshot(name, players.values(), client.ratings())
    played_game = player.game if is_safe_in_files(player.game, {}) else game
    payoffs = client.status().payoff_unit
    met, bounds = _seen(client, player.name, played_game, players, exploits, payoffs)
    if not met and not bounds:
        raise NotFound(
            f"{player.name} has no clean matches yet: bin/league eval {player.name} --report DIR "
            "plays some"
        )
    numbers: dict[str, Any] = {"player": player.name, "run": run}
    numbers |= _player_numbers(player.name, played_game, met, bounds, payoffs)
    return Report(
        title=player.name,
        lead=f"A player of the run {run}, by its clean matches",
        facts={"steps": f"{player.step:,}", **_player_facts(met, payoffs)},
        sections=[
            of_player.summary(numbers["headline"], player.name),
            *of_player.player_sections(player.name, met, bounds, payoffs),
        ],
        numbers=numbers,
        end=_end(),
    )


def of_run(
    client: MatchmakerClient, run: str, exploits: Path | None = None, game: str = ""
) -> Report:
    """Returns a report about a whole run: its ratings, its training, and its newest evaluated
    snapshot.

    Args:
        exploits: as for `of_league_player`.
        game: as for `of_league_player`.

    Raises:
        NotFound: the run has no clean match yet.
    """
    players = {player.name: player for player in client.players()}
    status, rated = client.status(), client.ratings()
    played = [rating for rating in rated if rating.games]
    if not played:
        raise NotFound(f"{run} has no clean matches yet: wait for its evaluator")
    ratings = _fitted(client, played, players)
    mains = [rating.player for rating in played if is_mains_snapshot(rating.player)]
    sections = [_over_steps(ratings, players), _best(ratings)]
    training, counts = _training(client, players)
    sections.append(training)
    numbers: dict[str, Any] = {
        "run": run,
        "game": status.game,
        "log_position": status.log_position,
        "ratings": {name: asdict(rating) for name, rating in ratings.items()},
        "training_matches": counts,
    }
    facts = {
        "game": status.game,
        "steps": f"{max((worker.step for worker in status.workers), default=0):,}",
        "snapshots evaluated": f"{len(mains)} of {sum(map(is_mains_snapshot, players.values()))}",
        "clean matches": f"{sum(rating.games for rating in played) // 2:,}",
    }
    if mains:
        newest = max(mains, key=lambda player: player.step)
        played_game = newest.game if is_safe_in_files(newest.game, {}) else game
        payoffs = status.payoff_unit
        met, bounds = _seen(client, newest.name, played_game, players, exploits, payoffs)
        figures = _player_numbers(newest.name, played_game, met, bounds, payoffs)
        numbers["newest"] = {"player": newest.name, **figures}
        sections.insert(0, of_player.summary(figures["headline"], newest.name))
        sections += of_player.player_sections(newest.name, met, bounds, payoffs)
    return Report(
        title=run,
        lead="A run of the league: ratings, training, and its newest evaluated snapshot",
        facts=facts,
        sections=[section for section in sections if section is not None],
        numbers=numbers,
        end=f"{_end()}, result {status.log_position} of the log.",
    )


def _end() -> str:
    return f"Kumite {version('kumite')}, {when(time.time())}"


def _seen(
    client: MatchmakerClient,
    name: str,
    game: str,
    players: Mapping[str, Player],
    exploits: Path | None,
    payoffs: str,
) -> tuple[list[Met], list[Bound]]:
    frames_per_second, largest = 0, None
    with suppress(LeagueError):  # the game's package or folder is not on this machine
        spec = game_spec(game)
        frames_per_second, largest = spec.frames_per_second, spec.largest_payoff
    cells = client.payoff(Book.EVAL, rows=[name], with_stats=True)
    met = met_in_log(cells, players, frames_per_second, largest)
    entries = exploits_of(exploits, name, players[name].digest) if exploits is not None else []
    gates = client.gates(certificates=True)
    return met, bounds_of(name, gates, met, players, entries, payoffs)


def _player_facts(met: Sequence[Met], payoffs: str) -> dict[str, str]:
    scores, unit = group_scores(met), of_player.unit_of(met, payoffs)
    shown = {
        f"{unit.name or 'points'} against {name}": unit.text(score.value)
        if unit.name
        else f"{score.value:.0%}"
        for name, score in scores.items()
    }
    return {"matches": f"{sum(row.matches for row in met):,}", **shown}


def _player_numbers(
    player: str, game: str, met: Sequence[Met], bounds: Sequence[Bound], payoffs: str
) -> dict[str, Any]:
    scores, unit = group_scores(met), of_player.unit_of(met, payoffs)
    gaps = {
        f"{group} - {other}": asdict(of_player.gap(scores[group], scores[other]))
        for group in scores
        for other in scores
        if group is not other
    }
    ancestors = of_player.ancestors(met)
    return {
        "opponents": [asdict(row) | {"score": asdict(row.score)} for row in met],
        "groups": {name: asdict(score) for name, score in scores.items()},
        "gaps": gaps,
        "beaten": sorted(of_player.beaten(met)),
        "ancestors": [asdict(row) | {"score": asdict(row.score)} for row in ancestors],
        "scores": unit.words,
        "headline": of_player.headline(player, met, bounds, exact=is_exact(game), payoffs=payoffs),
        "drops": [row.opponent for row in of_player.drops(ancestors)],
        "exploitability": [
            asdict(bound) | {"exploitability": bound.exploitability} for bound in bounds
        ],
    }


def _fitted(
    client: MatchmakerClient, rated: Sequence[Rating], players: Mapping[str, Player]
) -> dict[str, Measured]:
    """Returns each player's rating, best first, from a fit to all games.

    If there are too many players for a quick fit, it returns TrueSkill's ratings without intervals.
    """
    if len(rated) > MOST_FITTED:
        return {rating.player.name: Measured(rating.mu) for rating in rated}
    cells, climb = client.payoff(Book.EVAL), client.payoff(Book.TRAIN, climb=True)
    intervals = cross_check(rated, cells, list(players.values()), climb).intervals
    return dict(sorted(intervals.items(), key=lambda item: -item[1].value))


def _over_steps(ratings: Mapping[str, Measured], players: Mapping[str, Player]) -> Section | None:
    lines: dict[str, list[tuple[float, Measured]]] = {}
    for name, rating in ratings.items():
        if is_mains_snapshot(players[name]):
            lineage = SnapshotName.parse(name).lineage
            lines.setdefault(lineage, []).append((float(players[name].step), rating))
    for points in lines.values():
        points.sort(key=lambda point: point[0])
    if not lines:
        return None
    return Section(
        title="Rating over steps",
        words="The fit of all matches, in points of TrueSkill's scale (4.17 points apart, "
        "the better one wins 76 %), with the 95 % interval of each snapshot as a band.",
        chart=Trend(x_label="steps", lines=lines),
        is_main=True,
    )


def _best(ratings: Mapping[str, Measured]) -> Section:
    best = list(ratings.items())[:TOP]
    first = best[0][1]
    alike = [name for name, rating in ratings.items() if rating.high >= first.low]
    if math.isnan(first.low):
        words = "Without intervals, as there are too many players to fit quickly."
    elif len(alike) == 1:
        words = "The first is stronger than every other by both intervals."
    else:
        words = (
            f"The intervals of {len(alike)} players overlap the first one's: which of them is the "
            "strongest is not shown. bin/league compare decides between two."
        )
    return Section(
        title="The best",
        words=words,
        chart=Forest(
            rows=[name for name, _ in best],
            groups=[""] * len(best),
            panels=[Panel(title="rating, points", values=[rating for _, rating in best])],
        ),
        headings=("player", "rating#", "95 %#"),
        rows=[
            (name, f"{rating.value:.2f}", span(rating.low, rating.high)) for name, rating in best
        ],
        is_main=True,
    )


def _training(
    client: MatchmakerClient, players: Mapping[str, Player]
) -> tuple[Section | None, dict[str, dict[str, int]]]:
    """Returns the training matches of every live player, by opponent. Snapshots of a lineage count
    together.
    """
    live = [name for name, player in players.items() if player.kind is PlayerKind.LIVE]
    counts: dict[str, dict[str, int]] = {}
    for cell in client.payoff(Book.TRAIN, rows=live) if live else ():
        other = players.get(cell.column)
        frozen = other is not None and other.kind is PlayerKind.SNAPSHOT
        name = f"{SnapshotName.parse(cell.column).lineage}'s snapshots" if frozen else cell.column
        count = counts.setdefault(f"{cell.row} against {name}", {"matches": 0, "wins": 0})
        count["matches"] += cell.games
        count["wins"] += cell.wins
    if not counts:
        return None, counts
    most = sorted(counts.items(), key=lambda item: -item[1]["matches"])[:TOLD]
    total = sum(count["matches"] for count in counts.values())
    return (
        Section(
            title="Matches in training",
            words="Share of all training matches by opponent, and what the learner won of them "
            "while it changed: no measure of its last snapshot.",
            chart=Forest(
                rows=[name for name, _ in most],
                groups=[""] * len(most),
                panels=[
                    Panel(
                        title="share of all matches",
                        values=[Measured(count["matches"] / total) for _, count in most],
                        percent=True,
                    ),
                    Panel(
                        title="won in training",
                        values=[measured(count["wins"], count["matches"]) for _, count in most],
                        percent=True,
                    ),
                ],
            ),
            headings=("learner and opponent", "matches#", "share#", "won#"),
            rows=[
                (
                    *(name, f"{count['matches']:,}", f"{count['matches'] / total:.1%}"),
                    f"{count['wins'] / count['matches']:.1%}",
                )
                for name, count in most
            ],
        ),
        counts,
    )
