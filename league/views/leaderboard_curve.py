"""The leaderboard's curve, drawn as SVG: score over learner steps, the bots as dashed levels."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from league.exploiters import is_mains_snapshot
from league.players import PlayerKind
from league.views.standings import Leaderboard, Standing

WIDTH, HEIGHT = 1000, 320
LEFT, RIGHT, EDGE = 46, 890, 24
LABEL_GAP = 15
ROUND_STEPS = (1, 2, 5, 10, 20, 50, 100, 1000)


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
    """The labels' heights, pushed apart so that none covers another; order kept."""
    moved = list(heights)
    order = sorted(range(len(moved)), key=lambda i: moved[i])
    for above, below in itertools.pairwise(order):
        moved[below] = max(moved[below], moved[above] + LABEL_GAP)
    return moved
