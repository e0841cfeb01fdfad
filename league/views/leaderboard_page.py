"""The leaderboard as one self-contained page: no scripts, nothing loaded from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files

from league.metrics import wilson_interval
from league.players import PayoffCell
from league.views.leaderboard import Leaderboard, Row, texts_of
from league.views.text import percent, when

OPPONENTS = 12
ROWS = 40


def page(board: Leaderboard) -> str:
    """The whole page."""
    title = escape(board.title)
    style = (files("league.views") / "leaderboard.css").read_text(encoding="utf-8")
    snapshots = [
        row for row in board.rows if row["kind"] == "snapshot" and "exploiter" not in row["role"]
    ]
    newest = max((row["step"] for row in snapshots), default=0)
    facts = {
        "leads": board.rows[0]["player"] if board.rows else "no player yet",
        "clean matches": f"{board.matches:,}",
        "rated snapshots": str(len(snapshots)),
        "steps of the newest rated": f"{newest:,}",
    }
    shown = (f"<div><b>{escape(fact)}</b><span>{name}</span></div>" for name, fact in facts.items())
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>Leaderboard of {title}</title><style>{style}</style></head>\n<body><main>"
        f"<h1>{title}</h1><p>Leaderboard of a {escape(board.game)} league</p>"
        f'<div class="facts">{"".join(shown)}</div>\n'
        f"{_ratings(board)}{_heat_map(board)}{_shares(board)}"
        f"<footer>Kumite {escape(board.version)}, {when(board.made_at)}, "
        f"result {board.log_position} of the log.</footer></main></body></html>\n"
    )


def _section(
    title: str, words: str, headings: Sequence[str], rows: Iterable[str], kind: str = ""
) -> str:
    """A table with a title. ``#`` after a heading marks numbers, ``|`` cells in the middle."""
    sides = {"#": "n", "|": "c"}
    head = "".join(
        f'<th class="{sides.get(name[-1:], "")}">{escape(name.rstrip("#|"))}</th>'
        for name in headings
    )
    return (
        f'<section><h2>{title}</h2><p>{words}</p><div class="wide"><table class="{kind}"><thead>'
        f"<tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div></section>\n"
    )


def _cells(values: Iterable[str], kind: str) -> str:
    return "".join(f'<td class="{kind}">{value}</td>' for value in values)


def _ratings(board: Leaderboard) -> str:
    words = (
        "TrueSkill over clean matches: keys sampled, seats swapped, common seeds. Score = mu − 3 "
        "sigma. A draw is not a win. Greedy: the same with each key's likelier value. The fit of "
        f"all games has the 95 % interval of mu. {escape(board.agreement)}"
    )
    headings = (
        *("rank", "player", "", "step#", "score#", "mu#", "sigma#", "fit 95 %#", "games#"),
        *("wins#", "95 % interval", "greedy#"),
    )
    return _section("Ratings", words, headings, map(_rating_row, board.rows))


def _rating_row(row: Row) -> str:
    low, high, texts = 100 * row["wilson_low"], 100 * row["wilson_high"], texts_of(row)
    bar = "" if not row["games"] else (
        f'<div class="bar" title="{low:.1f} % to {high:.1f} %">'
        f'<i style="width:{100 * row["win_rate"]:.1f}%"></i>'
        f'<em style="left:{low:.1f}%;width:{high - low:.1f}%"></em></div>'
    )  # fmt: skip
    if row["disagrees"] is not None:
        hint = f"mu is {row['disagrees']:+.1f} off the fit"
        texts["fit"] = f'<span class="tag apart" title="{hint}">{texts["fit"]} ≠</span>'
    texts["score"] = f"<b>{texts['score']}</b>"
    numbers = [texts[name] for name in ("step", "score", "mu", "sigma", "fit", "games", "wins")]
    anchor = ' <span class="tag">anchor</span>' if row["pinned"] else ""
    return (
        f'<tr class="{"top" if row["rank"] <= 3 else ""}"><td class="rank">{row["rank"]}</td>'
        f'<td class="name">{escape(row["player"])}</td>'
        f'<td><span class="tag {row["kind"]}">{row["kind"]}</span>{anchor}</td>'
        f"{_cells(numbers, 'n')}<td>{bar}</td>{_cells([texts['greedy']], 'n')}</tr>"
    )


def _heat_map(board: Leaderboard) -> str:
    if not board.cells:
        return ""
    columns = board.opponents(OPPONENTS)
    by_pair = {(cell.row, cell.column): cell for cell in board.cells}
    met = {row for row, column in by_pair if column in columns}
    names = [row["player"] for row in board.rows if row["player"] in met][:ROWS]
    rows = (
        f'<tr><td class="name">{escape(name)}</td>'
        f"{''.join(_heat_cell(by_pair.get((name, column))) for column in columns)}</tr>"
        for name in names
    )
    words = (
        "Share of matches that the row won against the column. Columns: the bots and the opponents "
        "met most often. Hover for the counts."
    )
    return _section("Wins by pair", words, ["", *(f"{one}|" for one in columns)], rows, "heat")


def _heat_cell(cell: PayoffCell | None) -> str:
    if cell is None or not cell.games:
        return "<td></td>"
    won = cell.wins / cell.games
    interval = wilson_interval(cell.wins, cell.games)
    colour, strength = ("--win", won - 0.5) if won >= 0.5 else ("--lose", 0.5 - won)
    bounds = f"{100 * interval.low:.1f} to {100 * interval.high:.1f} %"
    counts = f"{cell.wins} won, {cell.draws} drawn, {cell.losses} lost; {bounds}"
    shade = f"background:rgba(var({colour}),{0.06 + strength:.2f})"
    return f'<td title="{counts}" style="{shade}">{100 * won:.0f}</td>'


def _shares(board: Leaderboard) -> str:
    if not board.shares:
        return ""
    rows = (
        f"<tr>{_cells((escape(one.player), escape(one.category)), 'name')}"
        f"{_cells((percent(one.configured), percent(one.realised), f'{one.matches:,}'), 'n')}</tr>"
        for one in board.shares
    )
    words = "Shares of each learner's opponent mix, set and drawn."
    headings = ("learner", "category", "set#", "drawn#", "matches#")
    return _section("Opponents in training", words, headings, rows)
