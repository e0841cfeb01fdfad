"""Gathers a league's leaderboard and writes it as Markdown, CSV, JSON or a web page.

A book is a set of matches that are rated together. The eval book holds the clean matches, on which
no learner trains.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from markupsafe import Markup

from league.console.text import percent, span, when
from league.metrics import Measured, wilson_interval
from league.players import Book, PayoffCell, PlayerKind, PlayerState, Rating
from league.rpc.client import MatchmakerClient
from league.runs.files import write_whole
from league.stats.payoff import Stakes, paid_each
from league.stats.ratings.elo import elo
from league.status import Share
from league.views.html import Text, bar, joined, page, section, table, tag

if TYPE_CHECKING:  # scipy takes half a second to load
    from league.stats.ratings.cross_check import CrossCheck
    from league.stats.structure.mixtures import MixtureRating

MOST_FITTED = 1000
"""Largest number of players for which the fit is computed. For this number of players it takes less
than a minute, including the additional nodes for the training between two snapshots
(`league.stats.ratings.lineage`).
"""
COLUMNS = (
    *("rank", "player", "kind", "role", "state", "step", "parent", "score", "mu", "sigma"),
    *("elo", "pinned", "games", "wins", "draws", "losses", "win_rate", "wilson_low", "wilson_high"),
    *("greedy_games", "greedy_win_rate", "fit", "fit_low", "fit_high", "fit_elo", "elo_low"),
    *("elo_high", "disagrees"),
)
"""Columns of the CSV file, and keys of a standing in JSON. In games with payoffs, `payoff` follows.
"""
OPPONENTS = 12
"""Number of columns in the page's payoff table."""
ROWS = 40
Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Leaderboard:
    """Holds the results in a league's eval book at a moment (`made_at`, in Unix seconds)."""

    title: str
    game: str
    version: str
    made_at: float
    log_position: int
    agreement: str
    """A sentence on whether TrueSkill and the fit agree."""
    rows: tuple[Row, ...]
    cells: tuple[PayoffCell, ...]
    shares: tuple[Share, ...]
    unit: str = ""
    """Unit of payoffs, such as "chips per match", or "" in games without payoffs."""

    @property
    def matches(self) -> int:
        """Number of clean matches from which the ratings were computed."""
        return sum(row["games"] for row in self.rows if row["rank"]) // 2


def gather(client: MatchmakerClient, *, title: str, now: float) -> Leaderboard:
    """Reads a leaderboard from a matchmaker. `now` is in Unix seconds."""
    status, standing = client.status(), standings(client, most_fitted=MOST_FITTED)
    rows, cells, fit = standing
    agreement = f"There is no fit of more than {MOST_FITTED:,} players: `bin/league ratings --fit`."
    if fit is not None:
        agreement = fit.words()
    if not any(row["games"] for row in rows):
        agreement = "There are no clean matches yet."
    greedy = {rating.player.name: rating for rating in client.ratings(Book.GREEDY)}
    for row in rows:
        if (rating := greedy.get(row["player"])) and rating.games:
            row |= {"greedy_games": rating.games, "greedy_win_rate": rating.wins / rating.games}
    return Leaderboard(
        title=title,
        game=status.game,
        version=version("kumite"),
        made_at=now,
        log_position=status.log_position,
        agreement=agreement,
        rows=tuple(map(_rounded, rows)),
        cells=tuple(cells),
        shares=status.shares,
        unit=f"{status.payoff_unit or 'payoff'} per match" if paid_each(cells) else "",
    )


class Standings(NamedTuple):
    """Holds the standings in a book.

    `rows` has the players and mixtures, best first. `cells` has the payoffs of pairs. `fit`
    compares the ratings with a fit of all games at once, or is None.
    """

    rows: list[Row]
    cells: list[PayoffCell]
    fit: CrossCheck | None


def standings(
    client: MatchmakerClient, book: Book = Book.EVAL, *, most_fitted: float = 0
) -> Standings:
    """Reads the ratings and payoffs of a book. Only the eval book also rates mixtures.

    Args:
        client: the league.
        book: the book.
        most_fitted: largest number of players for which ratings are also fitted to all games at
            once.
    """
    ratings, cells, players = client.ratings(book), client.payoff(book), client.players()
    paid, fit, mixtures = paid_each(cells), None, list["MixtureRating"]()
    if ratings and len(ratings) <= most_fitted:
        from league.stats.ratings.cross_check import cross_check

        climb = client.payoff(Book.TRAIN, climb=True) if book is Book.EVAL else []
        fit = cross_check(ratings, cells, players, climb)
    if ratings and book is Book.EVAL:
        from league.stats.structure.mixtures import rated_mixtures

        mixtures = rated_mixtures(players, cells, ratings)
    rows = [_row(rating, fit, paid) for rating in ratings]
    for mixture in mixtures:
        mixture_row = _mixture_row(mixture, fit, paid)
        rows.insert(sum(row["score"] >= mixture_row["score"] for row in rows), mixture_row)
    return Standings(rows, cells, fit)


def _row(rating: Rating, fit: CrossCheck | None, paid: Mapping[str, float]) -> Row:
    """Returns a player's row. A missing value is None, and a draw is not a win."""
    player, wins = rating.player, wilson_interval(rating.wins, rating.games)
    interval = None if fit is None else fit.intervals.get(player.name)
    values = (
        *(rating.rank, player.name, player.kind.value, player.role.value, player.state.value),
        *(player.step, player.parent, rating.score, rating.mu, rating.sigma),
        *(elo(rating.mu), rating.pinned),
        *(rating.games, rating.wins, rating.draws, rating.losses),
        rating.wins / rating.games if rating.games else None,
        *(wins.low, wins.high, 0, None),
        *(*_fitted(interval), None if fit is None else fit.gaps.get(player.name)),
    )
    row = dict(zip(COLUMNS, values, strict=True))
    return row | {"payoff": paid.get(player.name)} if paid else row


def _fitted(interval: Measured | None) -> tuple[float | None, ...]:
    """Returns the fitted rating and its interval, in points and in Elo."""
    if interval is None:
        return (None,) * 6
    points = interval.value, interval.low, interval.high
    return (*points, *map(elo, points))


def _mixture_row(mixture: MixtureRating, fit: CrossCheck | None, paid: Mapping[str, float]) -> Row:
    """Returns a mixture's row. Only players have ranks."""
    wins = wilson_interval(mixture.wins, mixture.games)
    row = {"player": mixture.name, "kind": "mixture", "step": 0, "pinned": False}
    row |= {key: getattr(mixture, key) for key in ("score", "mu", "sigma", "games")}
    row |= {key: getattr(mixture, key) for key in ("wins", "draws", "losses")}
    row |= {"elo": elo(mixture.mu), "win_rate": mixture.wins / mixture.games}
    row |= {"wilson_low": wins.low, "wilson_high": wins.high, "greedy_games": 0}
    if paid:
        row["payoff"] = sum(paid[name] * share for name, share in mixture.weights.items())
    if fit is not None:
        fitted = _fitted(fit.of_mixture(mixture.weights))
        first = COLUMNS.index("fit")
        row |= dict(zip(COLUMNS[first : first + 6], fitted, strict=True))
    return dict.fromkeys(COLUMNS) | row


def is_removed(row: Row) -> bool:
    """Returns whether a row is of a rival that was removed from the league."""
    return row["kind"] == PlayerKind.RIVAL.value and row["state"] == PlayerState.RETIRED.value


def _rounded(row: Row) -> Row:
    return {key: round(x, 4) if isinstance(x, float) else x for key, x in row.items()}


def export_all(client: MatchmakerClient, folder: Path, *, title: str, now: float) -> list[Path]:
    """Writes ``leaderboard.md``, ``.csv`` and ``.html`` into `folder` and returns their paths.
    `now` is in Unix seconds.
    """
    board = gather(client, title=title, now=now)
    paths = [folder / f"leaderboard.{name}" for name in ("md", "csv", "html")]
    for path in paths:
        write_whole(path, FORMATS[path.suffix[1:]](board))
    return paths


def render_csv(board: Leaderboard) -> str:
    """Returns CSV with a row for each player."""
    text = io.StringIO()
    columns = [*COLUMNS, "payoff"] if board.unit else COLUMNS
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(board.rows)
    return text.getvalue()


def render_json(board: Leaderboard) -> str:
    """Returns JSON with everything, including payoffs of pairs and shares of opponents."""
    facts = ("title", "game", "version", "made_at", "log_position", "agreement")
    content = {name: getattr(board, name) for name in facts} | {
        "standings": board.rows,
        "payoff": [vars(cell) | {"games": cell.games} for cell in board.cells],
        "shares": [vars(share) for share in board.shares],
    }
    content |= {"payoff_unit": board.unit} if board.unit else {}
    return json.dumps(content, indent=1) + "\n"


def texts_of(row: Row) -> dict[str, str]:
    """Returns a row's numbers as text."""
    has_fit, games = row["fit"] is not None, row["games"]
    return {
        "step": f"{row['step']:,}" if row["step"] else "",
        **{name: f"{row[name]:.2f}" for name in ("score", "mu", "sigma")},
        "elo": f"{row['elo']:.0f}",
        "fit": span(row["fit_low"], row["fit_high"]) if has_fit else "",
        "disagrees": "" if row["disagrees"] is None else f"mu {row['disagrees']:+.1f}",
        "games": f"{games:,}",
        "wins": percent(row["win_rate"]),
        "interval": f"{percent(row['wilson_low'])} to {percent(row['wilson_high'])}"
        if games
        else "",
        "greedy": percent(row["greedy_win_rate"]),
        **({"payoff": f"{row['payoff']:+.2f}"} if row.get("payoff") is not None else {}),
    }


def render_markdown(board: Leaderboard) -> str:
    """Returns a Markdown table, for example for a README."""
    words = _payoff_words(board)
    heads = "rank | player | kind | step | score | mu | sigma | elo | fit 95 % | disagrees"
    sides = "|---:|---|---|---:|---:|---:|---:|---:|---:|---|---:|---:|---:|---:|"
    lines = [
        f"# Leaderboard of {board.title}",
        "",
        f"{board.game}, {board.matches} clean matches, {when(board.made_at)}. Score = mu − 3 "
        "sigma, and Elo is mu on Elo's scale. The fit of all games has the 95 % interval of mu. "
        f"{board.agreement} Wins have a 95 % Wilson interval; a draw is not a win.{words}",
        "",
        f"| {heads} | games | wins | wins 95 % | greedy |{' payoff |' if board.unit else ''}",
        sides + ("---:|" if board.unit else ""),
    ]
    for row in board.rows:
        rank = row["rank"] or ""
        texts = texts_of(row) | {"score": f"**{row['score']:.2f}**"}
        name = row["player"] + " (anchor)" * row["pinned"] + " (removed)" * is_removed(row)
        lines.append(f"| {' | '.join([str(rank), name, row['kind'], *texts.values()])} |")
    return "\n".join(lines) + "\n"


def _payoff_words(board: Leaderboard) -> str:
    return f" Players are rated by the payoff: {board.unit}." if board.unit else ""


def render_html(board: Leaderboard) -> str:
    """Returns a self-contained page. It has no scripts and loads nothing."""
    snapshots = [
        row for row in board.rows if row["kind"] == "snapshot" and "exploiter" not in row["role"]
    ]
    facts = {
        "leads": next((row["player"] for row in board.rows if row["rank"]), "no player yet"),
        "clean matches": f"{board.matches:,}",
        "rated snapshots": str(len(snapshots)),
        "steps of the newest rated": f"{max((row['step'] for row in snapshots), default=0):,}",
    }
    return page(
        f"Leaderboard of {board.title}",
        board.title,
        f"Leaderboard of a {board.game} league",
        facts,
        [_ratings(board), _heat_map(board), _shares(board)],
        f"Kumite {board.version}, {when(board.made_at)}, result {board.log_position} of the log.",
    )


def _ratings(board: Leaderboard) -> Markup:
    words = (
        "TrueSkill over clean matches: keys sampled, seats swapped, common seeds. Score = mu − 3 "
        "sigma, and Elo is mu on Elo's scale. A draw is not a win. Greedy: the same with each "
        "key's likelier value. The fit of all games has the 95 % interval of mu, the bar that "
        "of wins. "
        f"{board.agreement}{_payoff_words(board)}"
    )
    headings = "rank player kind step# score# mu# sigma# elo# fit# games# wins# interval greedy#"
    headings += " payoff#" if board.unit else ""
    return _table("Ratings", words, headings.split(), [_rating(row) for row in board.rows], "board")


def _table(
    title: str, words: str, headings: Sequence[str], rows: Sequence[Sequence[Text]], kind: str
) -> Markup:
    return section(title, table(headings, rows, kind), words=words) if rows else Markup("")


def _rating(row: Row) -> list[Text]:
    texts: dict[str, Text] = {**texts_of(row)}
    if row["disagrees"] is not None:
        hint = f"mu is {row['disagrees']:+.1f} off the fit"
        texts["fit"] = Markup('<span class="tag apart" title="{}">{} ≠</span>').format(
            hint, texts["fit"]
        )
    rank, win_rate = row["rank"], row["win_rate"]
    numbers = ("step", "score", "mu", "sigma", "elo", "fit", "games", "wins")
    return [
        Markup("<b>{}</b>").format(rank) if rank and rank <= 3 else str(rank or ""),
        row["player"],
        joined(
            [tag(row["kind"], row["kind"])]
            + [tag("anchor")] * row["pinned"]
            + [tag("removed")] * is_removed(row),
            " ",
        ),
        *(texts[name] for name in numbers),
        bar(row["wilson_low"], win_rate, row["wilson_high"]) if row["games"] else "",
        texts["greedy"],
        *([texts.get("payoff", "")] if "payoff" in row else []),
    ]


def _heat_map(board: Leaderboard) -> Markup:
    """Returns a heat map of the best players' results against the bots and against the opponents
    that were met most often. Rows and columns are ordered by rank.
    """
    met: dict[str, int] = {}
    for cell in board.cells:
        met[cell.column] = met.get(cell.column, 0) + cell.games
    ranked = [row["player"] for row in board.rows]
    bots = {row["player"] for row in board.rows if row["kind"] == PlayerKind.BOT.value}
    chosen = sorted(met, key=lambda name: (name not in bots, -met[name], name))[:OPPONENTS]
    columns = [name for name in ranked if name in chosen]
    by_pair = {(cell.row, cell.column): cell for cell in board.cells}
    stakes = Stakes.of(board.cells)
    names = [name for name in ranked if any((name, column) in by_pair for column in columns)]
    rows = [
        [name, *(_heat_cell(by_pair.get((name, column)), stakes) for column in columns)]
        for name in names[:ROWS]
    ]
    measure = f"{board.unit} of the row" if board.unit else "Share of matches that the row won"
    words = (
        f"{measure} against the column. Columns: the bots and the opponents met most often. Hover "
        "for the counts."
    )
    title = "Payoffs by pair" if board.unit else "Wins by pair"
    return _table(title, words, ["", *(f"{name}|" for name in columns)], rows, "heat")


def _heat_cell(cell: PayoffCell | None, stakes: Stakes) -> Text:
    if cell is None or not cell.games:
        return ""
    won, interval = cell.wins / cell.games, wilson_interval(cell.wins, cell.games)
    bounds = f"{100 * interval.low:.1f} to {100 * interval.high:.1f} %"
    counts = f"{cell.wins} won, {cell.draws} drawn, {cell.losses} lost; {bounds}"
    text = f"{100 * won:.0f}"
    if paid := stakes.mean(cell):
        won, text = 0.5 + paid.value / (2.0 * stakes.stake), f"{paid.value:+.2f}"
        counts += f"; payoff {paid.low:+.2f} to {paid.high:+.2f}"
    colour = "--win" if won >= 0.5 else "--lose"
    return Markup('<span title="{}" style="background:rgba(var({}),{:.2f})">{}</span>').format(
        counts, colour, 0.06 + abs(won - 0.5), text
    )


def _shares(board: Leaderboard) -> Markup:
    rows = [
        (share.player, share.category, percent(share.configured), percent(share.realised),
         f"{share.matches:,}")
        for share in board.shares
    ]  # fmt: skip
    words = "Shares of each learner's opponent mix, set and drawn."
    headings = ("learner", "category", "set#", "drawn#", "matches#")
    return _table("Opponents in training", words, headings, rows, "shares")


FORMATS: dict[str, Callable[[Leaderboard], str]] = {
    "csv": render_csv,
    "html": render_html,
    "json": render_json,
    "md": render_markdown,
}
