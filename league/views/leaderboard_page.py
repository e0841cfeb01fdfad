"""The leaderboard as one self-contained page: no scripts, nothing loaded from elsewhere."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files

from league.exploiters import is_mains_snapshot
from league.metrics import wilson_interval
from league.players import PayoffCell, PlayerKind
from league.views.leaderboard import Leaderboard, Standing
from league.views.text import percent, when

WIDTH, HEIGHT = 1000, 320
LEFT, RIGHT, EDGE = 46, 890, 24
LABEL_GAP = 15
ROUND_STEPS = (1, 2, 5, 10, 20, 50, 100, 1000)
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
            score_curve(board),
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
    rows = [s.rating.player.name for s in board.standings][:ROWS]
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


@dataclass(frozen=True)
class Axes:
    """From steps and scores to places in the picture."""

    last_step: int
    low: float
    high: float

    def x(self, step: int) -> float:
        return LEFT + (RIGHT - LEFT) * step / self.last_step

    def y(self, score: float) -> float:
        return HEIGHT - EDGE - (HEIGHT - 2 * EDGE) * (score - self.low) / (self.high - self.low)


def score_curve(board: Leaderboard) -> str:
    """A section of the page; empty when there are fewer than two snapshots."""
    snapshots = [s for s in board.standings if is_mains_snapshot(s.rating.player)]
    if len(snapshots) < 2:
        return ""
    snapshots.sort(key=lambda s: s.rating.player.step)
    bots = [s for s in board.standings if s.rating.player.kind is PlayerKind.BOT]
    scores = [s.rating.score for s in (*snapshots, *bots)]
    axes = Axes(max(snapshots[-1].rating.player.step, 1), min(scores) - 1, max(scores) + 1)
    inside = _grid(axes) + _bot_levels(bots, axes) + _snapshot_line(snapshots, axes)
    return (
        "<section><h2>Score over training</h2>"
        "<p>Each dot is a frozen snapshot; dashed lines are the bots.</p>"
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img">{inside}</svg></section>\n'
    )


def _grid(axes: Axes) -> str:
    lines = [
        f'<line class="grid" x1="{LEFT}" x2="{RIGHT}" y1="{axes.y(value):.1f}" y2="{axes.y(value):.1f}"/>'
        f'<text x="{LEFT - 8}" y="{axes.y(value) + 4:.1f}" text-anchor="end">{value:.0f}</text>'
        for value in _ticks(axes.low, axes.high)
    ]
    foot = (
        f'<text x="{LEFT}" y="{HEIGHT - 4}">0</text>'
        f'<text x="{RIGHT}" y="{HEIGHT - 4}" text-anchor="end">{axes.last_step:,} steps</text>'
    )
    return "".join(lines) + foot


def _bot_levels(bots: Sequence[Standing], axes: Axes) -> str:
    heights = [axes.y(bot.rating.score) for bot in bots]
    return "".join(
        f'<line class="bots" x1="{LEFT}" x2="{RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        f'<text x="{RIGHT + 8}" y="{label + 4:.1f}">{escape(bot.rating.player.name)}</text>'
        for bot, y, label in zip(bots, heights, _spread(heights), strict=True)
    )


def _snapshot_line(snapshots: Sequence[Standing], axes: Axes) -> str:
    points = [(axes.x(s.rating.player.step), axes.y(s.rating.score)) for s in snapshots]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dots = "".join(
        f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="4">'
        f"<title>{escape(s.rating.player.name)}: {s.rating.score:.2f}</title></circle>"
        for (x, y), s in zip(points, snapshots, strict=True)
    )
    return f'<polyline class="snapshots" points="{path}"/>{dots}'


def _ticks(low: float, high: float) -> list[float]:
    """About five round values between the two."""
    step = next((step for step in ROUND_STEPS if (high - low) / step <= 6), high - low)
    first = -(-low // step) * step
    return [first + step * i for i in range(int((high - first) // step) + 1)]


def _spread(heights: Sequence[float]) -> list[float]:
    """The labels' heights, moved apart so that they do not overlap."""
    moved = list(heights)
    order = sorted(range(len(moved)), key=lambda i: moved[i])
    for above, below in itertools.pairwise(order):
        moved[below] = max(moved[below], moved[above] + LABEL_GAP)
    return moved
