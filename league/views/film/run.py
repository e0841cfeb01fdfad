"""Films a run: excerpts of its kept matches, from the first steps to the last, each with its
snapshot's rating.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from league.console.output import say
from league.contest.league import League
from league.contest.recordings import find_replay, replays_of
from league.errors import LeagueError, NotFound, plain
from league.exploiters import is_mains_snapshot
from league.ids import SnapshotName
from league.metrics import wilson_interval
from league.players import Book, PayoffCell, Player, PlayerKind, Rating
from league.replay import Playback, Replay, load_replay
from league.replay.highlights import WORDS, Highlight, read_highlights
from league.runs.files import read_json
from league.settings.presets import read_tables
from league.stats.ratings.elo import PER_POINT, SIGMAS, elo
from league.status import LeagueStatus
from league.views.facts import LeagueFacts
from league.views.film.clip import VERDICT_SECONDS, Clip, Cut
from league.views.film.files import Show, usual_shape, write_clips

ENDINGS = (".html", ".gif", ".mp4")
TITLE_SECONDS, NUMBERS_SECONDS, END_SECONDS = 3.0, 2.5, 4.0
"""How long the run's title, the numbers before an excerpt, and the end are shown."""
PLAYED_SECONDS, MOST_PLAYED_SECONDS = 5.0, 8.0
"""Usual and largest length of an excerpt, in seconds, without the verdict."""


@dataclass(frozen=True, kw_only=True)
class _Kept:
    """Holds a kept replay. `hero` is the main learner's snapshot that the film shows in it."""

    path: Path
    replay: Replay
    hero: Player
    highlight: Highlight | None


@dataclass(frozen=True, kw_only=True)
class _Facts:
    """Holds the facts that the film shows. `cells` has the results of the snapshots' clean matches,
    by the names of both players.
    """

    title: Sequence[str]
    players: Mapping[str, Player]
    ratings: Mapping[str, Rating]
    cells: Mapping[tuple[str, str], PayoffCell]

    def is_bot(self, name: str) -> bool:
        return name in self.players and self.players[name].kind is PlayerKind.BOT

    def strength(self, hero: Player) -> list[str]:
        """Returns lines with a snapshot's steps, and its Elo ± 2 σ."""
        lines = [f"{hero.step:,} steps"]
        if (rating := self.ratings.get(hero.name)) is not None:
            half = PER_POINT * SIGMAS * rating.sigma
            lines.append(f"Elo {elo(rating.mu):.0f} ± {half:.0f}")
        return lines

    def hardest(self, hero: Player) -> list[str]:
        """Returns a line on the bot against which the snapshot scores least, or [] if it has met no
        bot.
        """
        bots = [
            cell
            for (name, opponent), cell in self.cells.items()
            if name == hero.name and self.is_bot(opponent)
        ]
        if not bots:
            return []
        worst = min(bots, key=_score)
        bounds = wilson_interval(_score(worst) * worst.games, worst.games)
        low, share, high = (f"{100 * x:.0f}" for x in (bounds.low, _score(worst), bounds.high))
        return [f"hardest bot: {worst.column}, {share} % of the points ({low} to {high} %)"]

    def rank(self, kept: _Kept) -> tuple[float, ...]:
        """Returns a sort key for matches of snapshots with equal steps. The first match is shown.
        The key prefers highlights, then matches that the player with the higher rating won, and
        then matches against bots.
        """
        seat = kept.replay.names.index(kept.hero.name)
        opponent = kept.replay.names[1 - seat]
        own, other = self.ratings.get(kept.hero.name), self.ratings.get(opponent)
        best = None if own is None or other is None else seat if own.mu > other.mu else 1 - seat
        is_usual = best is not None and kept.replay.winner == best
        kind = list(WORDS).index(kept.highlight.kind) if kept.highlight else len(WORDS)
        return kind, not is_usual, not self.is_bot(opponent)


def _score(cell: PayoffCell) -> float:
    return (cell.wins + cell.draws / 2) / cell.games


def film_run(
    path: Path,
    league: League,
    *,
    seconds: float = 60.0,
    fps: float | None = None,
    width: int | None = None,
    most_bytes: float = math.inf,
    show: Show = lambda text: None,
) -> int:
    """Writes a film of a run's training.

    The film begins with a title. Then it shows the ends of kept matches, in the order of their
    snapshots' steps. Before each match it shows the snapshot's rating. It closes with the progress
    from the first snapshot to the last.

    Args:
        path: the file, which ends in .html, .gif or .mp4.
        league: the run.
        seconds: largest length of the film in seconds, 15 or more.
        fps: pictures per second.
        width: width in pixels.
        most_bytes: largest size of a .gif. Its pictures are made smaller until it fits.
        show: shows a line of progress.

    Returns:
        The number of matches.

    Raises:
        InvalidInput: the ending is unknown, the width or speed is impossible, a package is missing,
            or a .gif does not fit into `most_bytes`.
        NotFound: there is no such run, or no replay of its snapshots that can be shown.
    """
    usual_width, usual_fps = usual_shape(path, ENDINGS)
    fps, run_dir, faults = usual_fps if fps is None else fps, league.folder(), list[str]()
    with league.connect() as client:
        players = {player.name: player for player in client.players()}
        kept = list(_kept(league, players, faults))
        heroes = list({one.hero.name for one in kept})
        facts = _Facts(
            title=_title(run_dir, client.status()),
            players=players,
            ratings={rating.player.name: rating for rating in client.ratings(Book.EVAL)},
            cells={
                (cell.row, cell.column): cell
                for cell in (client.payoff(Book.EVAL, heroes) if heroes else ())
            },
        )
    room = seconds - TITLE_SECONDS - END_SECONDS
    show("choosing matches")
    most = max(1, round(room / (NUMBERS_SECONDS + PLAYED_SECONDS + VERDICT_SECONDS)))
    chosen = list(_chosen(league, facts, kept, most, faults))
    if faults:
        say(f"(replays left out: {len(faults)}, the first as {faults[0]})")
    if not chosen:
        raise NotFound(
            f"{run_dir} keeps no match of its snapshots that can be shown: the evaluator keeps "
            "some of every snapshot, so let the run train and evaluate for a few minutes"
        )
    played = min(MOST_PLAYED_SECONDS, room / len(chosen) - NUMBERS_SECONDS - VERDICT_SECONDS)
    clips = []
    for one, length in chosen:
        pair = " against ".join(one.replay.names)
        why = f" ({WORDS[one.highlight.kind]})" if one.highlight else ""
        numbers = [*facts.strength(one.hero), *facts.hardest(one.hero), pair + why]
        cut, caption = Cut(start=max(0.0, length - played)), ": ".join(facts.strength(one.hero))
        opening = [(numbers, NUMBERS_SECONDS)]
        clips.append(Clip(one.replay, fps, cut, caption=caption, opening=opening))
    last = chosen[-1][0].hero
    ends = dict.fromkeys([clips[0].caption, clips[-1].caption])
    end = [facts.title[0], *ends, *facts.hardest(last), "filmed by Kumite: bin/league film"]
    clips[0].opening = [(facts.title, TITLE_SECONDS), *clips[0].opening]
    clips[-1].closing = [(end, END_SECONDS)]
    width = usual_width if width is None else width
    write_clips(path, clips, facts.title[0], width, most_bytes, show)
    return len(clips)


def _title(run_dir: Path, status: LeagueStatus) -> list[str]:
    """Returns the name of the run, its game and preset, its agent, and its steps so far."""
    run, agent = read_json(run_dir / "run.json"), dict[str, Any]()
    if (config := run_dir / "config.toml").exists():
        agent |= read_tables(config).sections.get("agent", {})
    parts = {"an encoder": agent.get("encoder") != "none", "an LSTM": agent.get("recurrent")}
    built = f"{agent.get('size')} agent with {' and '.join(filter(parts.get, parts))}"
    metrics = LeagueFacts(leading="learner-main", status=status).metrics
    steps, target = (int(metrics.get(f"progress/{name}steps", 0)) for name in ("", "target_"))
    lines = [
        run_dir.resolve().name,
        status.game + (f", preset {run['preset']}" if "preset" in run else ""),
        built if "size" in agent else "",
        f"{steps:,} of {target:,} steps so far" if steps < target else f"{steps:,} steps",
    ]
    return [plain(line) for line in lines if line]


def _kept(league: League, players: Mapping[str, Player], faults: list[str]) -> Iterator[_Kept]:
    """Yields the readable replays of the snapshots of this run's main learners, each with the
    snapshot that is trained longest. The errors of unreadable replays are added to `faults`.
    """
    highlights = {
        one.match_id: one for one in read_highlights(league.folder()) if one.kind in WORDS
    }
    for path in replays_of(league):
        try:
            replay = load_replay(path)
        except LeagueError as error:
            faults.append(str(error))
            continue
        heroes = [
            player
            for seat in replay.seats
            if (player := players.get(seat.name)) is not None
            and player.digest == seat.digest
            and is_mains_snapshot(player)
            and not SnapshotName.parse(player.name).run
        ]
        if heroes:
            hero = max(heroes, key=lambda player: player.step)
            yield _Kept(path=path, replay=replay, hero=hero, highlight=highlights.get(path.stem))


def _chosen(
    league: League, facts: _Facts, kept: Sequence[_Kept], most: int, faults: list[str]
) -> Iterator[tuple[_Kept, float]]:
    """Divides the training into at most `most` stretches, and yields a match of each stretch with
    its length in seconds. The first match is by the earliest snapshot, and the last match by the
    latest snapshot. The errors of matches that can't be played again are added to `faults`.
    """
    kept = sorted(kept, key=lambda one: one.hero.step)
    count = min(most, len(kept))
    for number in range(count):
        stretch = kept[number * len(kept) // count : (number + 1) * len(kept) // count]
        edge = {0: 1, count - 1: -1}.get(number, 0)
        for one in sorted(stretch, key=lambda one: (edge * one.hero.step, facts.rank(one))):
            try:
                replay = find_replay(league, str(one.path))
                with Playback(replay) as playback:
                    for _ in playback.moments():
                        pass
                    length = replay.frames / playback.game.spec.frames_per_second
            except LeagueError as error:
                faults.append(str(error))
                continue
            yield replace(one, replay=replay), length
            break
