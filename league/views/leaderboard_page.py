"""The leaderboard as one self-contained page: no scripts, nothing loaded from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from importlib.resources import files

from league.exploiters import is_mains_snapshot
from league.metrics import wilson_interval
from league.players import PayoffCell
from league.views.leaderboard import Leaderboard, Standing
from league.views.text import percent, when

OPPONENTS = 12
ROWS = 40


def page(board: Leaderboard) -> str:
    """The whole page."""
    title = escape(board.title)
    return "".join(
        (
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width,initial-scale=1">',
            f"<title>Leaderboard of {title}</title><style>{_style()}</style></head>\n<body><main>",
            f"<h1>{title}</h1><p>Leaderboard of a {escape(board.game)} league</p>{_facts(board)}\n",
            _table(board),
            _heat_map(board),
            _shares(board),
            f"<footer>Kumite {escape(board.version)}, {when(board.made_at)}, "
            f"result {board.log_position} of the log.</footer></main></body></html>\n",
        )
    )


def _style() -> str:
    return (files("league.views") / "leaderboard.css").read_text(encoding="utf-8")


def _facts(board: Leaderboard) -> str:
    snapshots = [s for s in board.standings if is_mains_snapshot(s.rating.player)]
    best = board.standings[0].rating.player.name if board.standings else "no player yet"
    facts = (
        (best, "leads"),
        (f"{board.matches:,}", "clean matches"),
        (str(len(snapshots)), "rated snapshots"),
        (
            f"{max((s.rating.player.step for s in snapshots), default=0):,}",
            "steps of the newest rated",
        ),
    )
    inside = "".join(
        f"<div><b>{escape(value)}</b><span>{name}</span></div>" for value, name in facts
    )
    return f'<div class="facts">{inside}</div>'


def _table(board: Leaderboard) -> str:
    headings = (
        ("rank", ""), ("player", ""), ("", ""), ("step", "n"), ("score", "n"), ("mu", "n"), ("sigma", "n"),
        ("fit 95 %", "n"), ("games", "n"), ("wins", "n"), ("95 % interval", ""), ("greedy", "n"),
    )  # fmt: skip
    head = "".join(f'<th class="{kind}">{name}</th>' for name, kind in headings)
    rows = "".join(_table_row(standing) for standing in board.standings)
    return (
        "<section><h2>Ratings</h2><p>TrueSkill over clean matches: keys sampled, seats swapped, common seeds."
        " Score = mu − 3 sigma. A draw is not a win. Greedy: the same with each key's likelier value."
        f" The fit of all games has the 95 % interval of mu. {escape(board.agreement)}</p>"
        f'<div class="wide"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div></section>\n"
    )


def _table_row(standing: Standing) -> str:
    rating, player = standing.rating, standing.rating.player
    low, high = 100 * standing.interval.low, 100 * standing.interval.high
    won, greedy = standing.win_rate, standing.greedy_win_rate
    bar = (
        f'<div class="bar" title="{low:.1f} % to {high:.1f} %"><i style="width:{100 * won:.1f}%"></i>'
        f'<em style="left:{low:.1f}%;width:{high - low:.1f}%"></em></div>'
        if won is not None
        else ""
    )
    anchor = ' <span class="tag">anchor</span>' if rating.pinned else ""
    return (
        f'<tr class="{"top" if rating.rank <= 3 else ""}"><td class="rank">{rating.rank}</td>'
        f'<td class="name">{escape(player.name)}</td>'
        f'<td><span class="tag {player.kind.value}">{player.kind.value}</span>{anchor}</td>'
        f'<td class="n">{f"{player.step:,}" if player.step else ""}</td>'
        f'<td class="n"><b>{rating.score:.2f}</b></td><td class="n">{rating.mu:.2f}</td>'
        f'<td class="n">{rating.sigma:.2f}</td><td class="n">{_fitted(standing)}</td>'
        f'<td class="n">{rating.games:,}</td>'
        f'<td class="n">{percent(won)}</td><td>{bar}</td><td class="n">{percent(greedy)}</td></tr>'
    )


def _fitted(standing: Standing) -> str:
    """The fit's interval, marked where TrueSkill disagrees."""
    if standing.fit is None:
        return ""
    interval = f"{standing.fit.low:.2f}–{standing.fit.high:.2f}"
    if standing.gap is None:
        return interval
    return (
        f'<span class="tag apart" title="mu is {standing.gap:+.1f} off the fit">{interval} ≠</span>'
    )


def _heat_map(board: Leaderboard) -> str:
    if not board.cells:
        return ""
    columns = board.opponents(OPPONENTS)
    by_pair = {(cell.row, cell.column): cell for cell in board.cells}
    met = {row for row, column in by_pair if column in columns}
    rows = [s.rating.player.name for s in board.standings if s.rating.player.name in met][:ROWS]
    head = "".join(f'<th class="c">{escape(name)}</th>' for name in columns)
    body = "".join(
        f'<tr><td class="name">{escape(row)}</td>{_heat_row(row, columns, by_pair)}</tr>'
        for row in rows
    )
    return (
        "<section><h2>Wins by pair</h2><p>Share of matches that the row won against the column. "
        "Columns: the bots and the opponents met most often. Hover for the counts.</p>"
        f'<div class="wide"><table class="heat"><thead><tr><th></th>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div></section>\n"
    )


def _heat_row(row: str, columns: Iterable[str], by_pair: dict[tuple[str, str], PayoffCell]) -> str:
    return "".join(_heat_cell(by_pair.get((row, column))) for column in columns)


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
    rows = "".join(
        f'<tr><td class="name">{escape(share.player)}</td><td class="name">{escape(share.category)}</td>'
        f'<td class="n">{percent(share.configured)}</td><td class="n">{percent(share.realised)}</td>'
        f'<td class="n">{share.matches:,}</td></tr>'
        for share in board.shares
    )
    return (
        "<section><h2>Opponents in training</h2><p>Shares of each learner's opponent mix, set and drawn.</p>"
        '<table><thead><tr><th>learner</th><th>category</th><th class="n">set</th><th class="n">drawn</th>'
        f'<th class="n">matches</th></tr></thead><tbody>{rows}</tbody></table></section>\n'
    )
