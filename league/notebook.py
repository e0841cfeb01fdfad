"""Opens a league in Python, for notebooks: its tables, its matches, its replays and its agents.

`docs/notebooks.md` describes the columns of the tables.
"""

from __future__ import annotations

import html
import math
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from league.contest.league import League
from league.errors import InvalidInput, Unavailable
from league.players import Book, name_in_book
from league.rpc.client import MatchmakerClient
from league.stats.payoff import Stakes
from league.views.leaderboard import COLUMNS, standings

if TYPE_CHECKING:  # these load numpy, numba and torch
    from league.agent.export.sb3 import SnapshotPolicy
    from league.contest.members import Finder
    from league.players import MatchLine
    from league.replay import Replay

PAGE = 200
"""Maximum number of matches that a single call to the matchmaker returns."""
MOST_MATCHES = 100_000
STANDING = COLUMNS[: COLUMNS.index("greedy_games")]
FIT = COLUMNS[COLUMNS.index("fit") :]
COUNTS = ("row", "column", "games", "wins", "draws", "losses")
PAID = ("payoff", "payoff_low", "payoff_high")
MATCH = (
    *("position", "match_id", "first", "second", "book", "category", "outcome", "frames"),
    *("failed", "received_at"),
)
PLAYED = ("match_id", "seed", "seat", "outcome", "frames")
Table = Any
"""A `pandas.DataFrame`, or a list of dictionaries if pandas is not installed."""


@dataclass
class OpenLeague(League):
    """A league that keeps its connection open until `close` is called."""

    held: ExitStack = field(default_factory=ExitStack)
    client: MatchmakerClient | None = None

    @contextmanager
    def connect(self) -> Iterator[MatchmakerClient]:
        if self.client is None:
            self.client = self.held.enter_context(super().connect())
        try:
            yield self.client
        except Unavailable:  # the next call looks for the league again
            self.close()
            raise

    def close(self) -> None:
        self.client = None
        self.held.close()


@dataclass(frozen=True, repr=False)
class Film:
    """Shows a match as an animation in a notebook's cell."""

    replay: Replay

    def __repr__(self) -> str:
        first, second = self.replay.names
        return f"<Film of {first} against {second}, {self.replay.frames} frames>"

    def _repr_html_(self) -> str:
        from league.views.film import Cut, film_page

        page = html.escape(film_page(self.replay, Cut()))
        return (  # a sandboxed frame, without access to the notebook
            f'<iframe srcdoc="{page}" sandbox="allow-scripts" allow="fullscreen" '
            'style="width: 100%; height: 520px; border: 0"></iframe>'
        )

    def save(self, path: str | Path) -> None:
        """Writes the film, like ``bin/league render``. The file's ending chooses the format."""
        from league.views.film import write_film

        write_film(Path(path), self.replay)


class Run:
    """Reads a league and plays matches between its members. `league.open` returns a `Run`.

    Each match belongs to a book: train (training matches), eval (clean matches with sampled
    actions) or greedy (clean matches with the likeliest actions).

    The first call that needs the matchmaker connects to it, or starts a read-only matchmaker for a
    finished run. The connection ends when the `with` block ends, when `close` is called, or when
    this object is deleted.

    Every method raises a `LeagueError` with a one-sentence message if an argument is wrong, and
    `Unavailable` if no matchmaker answers.
    """

    def __init__(self, league: OpenLeague, blobs: Path | None, game: str | None) -> None:
        self._league = league
        self._blobs, self._game = blobs, game
        self._played: dict[str, bytes] = {}
        weakref.finalize(self, league.held.close)
        if not league.address:
            league.folder()

    def __repr__(self) -> str:
        return f"<Run {self._league.address or self._league.run_dir}>"

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the connection. A later call connects again."""
        self._league.close()

    def ratings(self, book: str = "eval", *, fit: bool = False) -> Table:
        """Returns the ratings of players and mixtures, the best first, like ``bin/league ratings``.

        Args:
            book: eval, greedy or train.
            fit: whether to add columns with ratings that are fitted to all games at once, and the
                95 % intervals of these ratings. The fit takes up to a minute in a large league.
        """
        chosen = _book(book)
        if fit and chosen is Book.TRAIN:
            raise InvalidInput("fit needs players that stay the same: choose eval or greedy")
        with self._league.connect() as client:
            rows = standings(client, chosen, most_fitted=math.inf if fit else 0).rows
        columns = STANDING + FIT if fit else STANDING
        return _table(rows, columns + (("payoff",) if any("payoff" in row for row in rows) else ()))

    def payoff(
        self, book: str = "eval", *, rows: Sequence[str] = (), columns: Sequence[str] = ()
    ) -> Table:
        """Returns the match counts of each pair of players, like ``bin/league payoff``.

        Args:
            book: eval, greedy or train.
            rows, columns: names of players. An empty list means all players. In the books eval and
                greedy, a live player stands for its newest snapshot.
        """
        chosen = _book(book)
        with self._league.connect() as client:
            known = {player.name: player for player in client.players()}
            rated = client.ratings(chosen)
            sides = [
                [name_in_book(name, chosen, known, rated) for name in side]
                for side in (rows, columns)
            ]
            cells = client.payoff(chosen, *sides)
        stakes, records = Stakes.of(cells), list[dict[str, Any]]()
        for cell in cells:
            records.append({name: getattr(cell, name) for name in COUNTS})
            records[-1]["win_rate"] = cell.wins / cell.games
            if paid := stakes.mean(cell):
                records[-1] |= zip(PAID, (paid.value, paid.low, paid.high), strict=True)
        return _table(records, (*COUNTS, "win_rate", *(PAID if stakes.stake else ())))

    def matches(
        self,
        player: str = "",
        opponent: str = "",
        *,
        book: str | None = None,
        category: str = "",
        limit: int = 100,
    ) -> Table:
        """Returns matches with a result, the newest first.

        Args:
            player, opponent: names of players. With `player` alone, the table has only the matches
                of this player. With both, it has only the matches between the two players.
            book: train, eval or greedy, to get only the matches of this book.
            category: a category of opponents, to get only the matches against this category.
            limit: the largest number of matches.
        """
        chosen = None if book is None else _book(book)
        lines: list[MatchLine] = []
        before = -1
        with self._league.connect() as client:
            known = {one.name: one for one in client.players()} if player or opponent else {}
            for name in filter(None, (player, opponent)):
                name_in_book(name, Book.TRAIN, known, ())
            while before and len(lines) < limit:
                more, before = client.matches(
                    player,
                    opponent,
                    book=chosen,
                    category=category,
                    before=max(before, 0),
                    limit=min(limit - len(lines), PAGE),
                )
                lines += more
        return _table(
            (
                vars(line)
                | {"first": line.seats[0], "second": line.seats[1], "book": line.book.value}
                for line in lines
            ),
            MATCH,
        )

    def curves(self, learner: str = "") -> Table:
        """Returns a learner's metrics by its steps, as ``bin/league curves`` draws them.

        Args:
            learner: the learner, by default main, or the first learner if there is no main.
        """
        from league.runs.records import Series
        from league.views.curves import gather

        history = gather(self._league.folder(), learner)
        series = dict(history.scalars)
        for bot, rate in (*history.trained.items(), *history.others.items()):
            series[f"clean/{bot}"] = Series(rate.steps, rate.rate)
        if history.scores is not None:
            series["score"] = history.scores
        rows: dict[int, dict[str, Any]] = {}
        for name, one in series.items():
            for step, value in zip(one.steps.tolist(), one.values.tolist(), strict=True):
                rows.setdefault(step, {"step": step})[name] = value
        return _table([rows[step] for step in sorted(rows)], ["step", *series])

    def play(
        self, player: str, opponent: str, *, matches: int = 20, seed: int = 0, greedy: bool = False
    ) -> Table:
        """Plays matches on this machine, like ``bin/league record``, and returns a row for each.

        `replay` shows the matches of the last call.

        Args:
            player, opponent: a bot, a snapshot, a live player (which means its newest snapshot), a
                .safetensors file or a mixture.
            matches: number of matches, in pairs with swapped seats.
            seed: seed of the first match and of sampled actions.
            greedy: whether networks take the likeliest action.
        """
        if not 1 <= matches <= MOST_MATCHES:
            raise InvalidInput(f"matches = {matches} can't be played: choose 1 to {MOST_MATCHES:,}")
        if seed < 0:
            raise InvalidInput(f"seed = {seed} is negative: choose 0 or more")
        import torch

        from league.contest.recordings import meetings, say_failed
        from league.replay.file import encode

        finder, names = self._finder(), [player, opponent]
        settings = finder.settings(names)
        first, second = finder.entrants(settings.spec(), names)
        self._played, failures, rows = {}, dict[Any, str](), []
        threads = torch.get_num_threads()
        torch.set_num_threads(1)  # more threads make small networks slower
        try:
            options = {"matches": matches, "seed": seed, "greedy": greedy, "failures": failures}
            for seat, replay in meetings(settings, first, second, **options):
                self._played[replay.match_id] = encode(replay)
                outcome = replay.outcome if seat == 0 else 1.0 - replay.outcome
                values = replay.match_id, replay.seed, seat, outcome, replay.frames
                rows.append(dict(zip(PLAYED, values, strict=True)) | dict(replay.stats[seat]))
        finally:
            torch.set_num_threads(threads)
        say_failed(list(failures.values()))
        return _table(rows, (*PLAYED, *settings.spec().stats))

    def replay(self, match: str) -> Film:
        """Returns a match as an animation.

        Args:
            match: a replay file, or the beginning of the id of a match. The last call of `play`
                must have played this match, or the evaluator must have kept its replay.
        """
        from league.contest.recordings import find_replay
        from league.replay.file import decode

        found = [one for name, one in self._played.items() if match and name.startswith(match)]
        if len(found) == 1:
            return Film(decode(found[0]))
        return Film(find_replay(self._league, match, self._game))

    def policy(self, name: str) -> SnapshotPolicy:
        """Returns an agent with the `predict` method of Stable-Baselines3. It can't be trained.

        `card` describes the agent's origin. `card.frame_skip` is the number of frames for which the
        agent repeats each decision.

        Args:
            name: a snapshot, a live player (which means its newest snapshot) or a .safetensors
                file.
        """
        from league.agent.export.sb3 import model_of
        from league.contest.exports import load
        from league.contest.members import check_plays

        finder = self._finder()
        settings = finder.settings([name], alone=True)
        (member,) = finder.find(settings.spec(), [name])
        network, card = load(member)
        check_plays(member.name, card, settings.spec())
        policy: SnapshotPolicy = model_of(network, card).policy
        return policy

    def _finder(self) -> Finder:
        from league.contest.members import Finder

        return Finder(self._league, self._game, self._blobs)


def _table(rows: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> Table:
    """Returns a table whose missing values are NaN in a `DataFrame`, or None in a list."""
    records = [{name: row.get(name) for name in columns} for row in rows]
    try:
        import pandas
    except ImportError:
        return records
    return pandas.DataFrame(records, columns=list(columns))


def _book(name: str) -> Book:
    if name not in (*Book,):
        raise InvalidInput(f"there is no book {name!r}: choose {', '.join(Book)}")
    return Book(name)
