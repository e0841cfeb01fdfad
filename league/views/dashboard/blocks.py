"""What pages are made of: escaped HTML and charts. Whatever is not `Markup` is text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlencode

import numpy as np
from markupsafe import Markup, escape
from numpy.typing import NDArray

from league.errors import plain
from league.metrics import wilson_interval
from league.runs.records import broken
from league.views.text import percent

PALETTE: Final = (
    *("#2f81c7", "#d9661f", "#12986f", "#b8689a", "#c98a00", "#3fa6d8"),
    *("#8a63d2", "#96763c", "#7d8590"),
)
"""Okabe and Ito's colours, which colour-blind people can distinguish, at a lightness that both
themes bear, and three more.
"""
MOST_POINTS: Final = 300
"""Of a line: a chart is some 600 pixels wide."""
GRID: Final = {"lineStyle": {"color": "#8a93a040"}}
"""Lines that both themes bear."""
SHORT: Final = {
    ":formatter": "v => v >= 1e6 ? v / 1e6 + 'M' : v >= 1e4 ? v / 1e3 + 'k' : String(v)",
    "hideOverlap": True,
}
"""Labels of an axis of steps: 2.5M, 50k."""
Text = str | Markup


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A picture that ECharts draws. `words` say what it shows, to readers who can't see it too."""

    title: str
    words: str
    options: Mapping[str, Any] = field(default_factory=dict)
    height: int = 260
    wide: bool = False
    painted: bool = False
    """Whether it colours its own words: others' follow the theme."""


Block = Markup | Chart


def text(value: object) -> Markup:
    """Anybody's words as text: escaped, and without characters that steer a terminal or a line."""
    return value if isinstance(value, Markup) else escape(plain(str(value)))


def joined(parts: Iterable[Text], between: str = "") -> Markup:
    return Markup(between).join(text(part) for part in parts)


def link(words: Text, path: str, **query: object) -> Markup:
    """A link to a page of the dashboard; leaves out parameters without a value."""
    return Markup('<a href="{}">{}</a>').format(address(path, **query), text(words))


def address(path: str, **query: object) -> str:
    """The address of a page, relative as a proxy may serve all of them under a prefix; leaves out
    parameters without a value.
    """
    given = {
        name.rstrip("_"): str(value) for name, value in query.items() if value not in ("", None)
    }
    own = path.removeprefix("/") or "./"
    return f"{own}?{urlencode(given)}" if given else own


def player_link(name: str) -> Markup:
    return link(name, "/player", name=name)


def section(title: str, *parts: Text, words: Text = "", half: bool = False) -> Markup:
    """A card with a heading; `half` as wide as the page where that is wide."""
    lead = Markup("<p>{}</p>").format(text(words)) if words else ""
    return Markup('<section class="{}"><h2>{}</h2>{}{}</section>').format(
        "half" if half else "whole", text(title), lead, joined(parts)
    )


def facts(items: Mapping[str, Text]) -> Markup:
    """A row of numbers with what they are."""
    cells = (
        Markup("<div><dt>{}</dt><dd>{}</dd></div>").format(text(name), text(value))
        for name, value in items.items()
    )
    return Markup('<dl class="facts">{}</dl>').format(joined(cells))


def table(headings: Sequence[str], rows: Iterable[Sequence[Text]], kind: str = "") -> Markup:
    """A table; `#` after a heading marks numbers."""
    sides = ["n" if name.endswith("#") else "" for name in headings]
    head = joined(
        Markup('<th scope="col" class="{}">{}</th>').format(side, text(name.rstrip("#")))
        for side, name in zip(sides, headings, strict=True)
    )
    body = joined(
        Markup("<tr>{}</tr>").format(
            joined(
                Markup('<td class="{}">{}</td>').format(side, text(cell))
                for side, cell in zip(sides, row, strict=True)
            )
        )
        for row in rows
    )
    if not body:
        return Markup('<p class="none">Nothing yet.</p>')
    frame = '<div class="wide" tabindex="0" role="region" aria-label="table"><table class="{}">'
    return Markup(frame + "<thead><tr>{}</tr></thead><tbody>{}</tbody></table></div>").format(
        kind, head, body
    )


def tag(words: str, kind: str = "") -> Markup:
    return Markup('<span class="tag {}">{}</span>').format(kind, text(words))


def wins_bar(wins: int, games: int) -> Markup:
    """A share of wins with its 95 % Wilson interval, drawn and as text."""
    if not games:
        return Markup("")
    found = wilson_interval(wins, games)
    low, high = 100 * found.low, 100 * found.high
    return Markup(
        '<span class="bar" title="{:.1f} to {:.1f} %"><i style="width:{:.1f}%"></i>'
        '<em style="left:{:.1f}%;width:{:.1f}%"></em></span>{}'
    ).format(low, high, 100 * wins / games, low, high - low, percent(wins / games))


def sparkline(values: Sequence[float]) -> Markup:
    """A small line without axes."""
    if len(values) < 2:
        return Markup("")
    low, high = min(values), max(values)
    scale = 18 / (high - low) if high > low else 0.0
    step = 70 / (len(values) - 1)
    points = " ".join(
        f"{number * step:.1f},{20 - (value - low) * scale:.1f}"
        for number, value in enumerate(values)
    )
    words = f"from {values[0]:.1f} to {values[-1]:.1f}"
    return Markup(
        '<svg class="spark" viewBox="-1 0 72 22" role="img" aria-label="{}">'
        '<polyline points="{}"/></svg>'
    ).format(words, points)


def choice(name: str, label: str, values: Mapping[str, str], chosen: str) -> Markup:
    """A drop-down list of a form: words by value."""
    options = joined(
        Markup('<option value="{}"{}>{}</option>').format(
            value, Markup(" selected") if value == chosen else "", text(words)
        )
        for value, words in values.items()
    )
    return Markup('<label>{} <select name="{}">{}</select></label>').format(label, name, options)


def entry(name: str, label: str, value: str, *, names: str = "", is_needed: bool = False) -> Markup:
    """A text field of a form; `names` is the id of a list of suggestions."""
    suggested = Markup(' list="{}"').format(names) if names else ""
    needed = Markup(" required") if is_needed else ""
    return Markup('<label>{} <input name="{}" value="{}"{}{}></label>').format(
        label, name, text(value), suggested, needed
    )


def suggestions(number: str, names: Iterable[str]) -> Markup:
    """The list of suggestions that text fields name."""
    options = joined(Markup('<option value="{}">').format(text(name)) for name in names)
    return Markup('<datalist id="{}">{}</datalist>').format(number, options)


def form(*parts: Text, action: str = "", method: str = "get", button: str = "Show") -> Markup:
    target = Markup(' action="{}"').format(address(action)) if action else ""
    return Markup('<form method="{}"{}>{}<button>{}</button></form>').format(
        method, target, joined(parts, " "), button
    )


def thinned(
    steps: NDArray[Any], values: NDArray[Any], most: int = MOST_POINTS
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """A line of at most `most` points: means of neighbours, and the last point unchanged."""
    steps, values = np.asarray(steps, float), np.asarray(values, float)
    if len(steps) <= most:
        return steps, values
    edges = np.linspace(0, len(steps) - 1, most).astype(int)
    sizes = np.diff(np.append(edges, len(steps)))
    means = [np.add.reduceat(one, edges) / sizes for one in (steps, values)]
    for mean, whole in zip(means, (steps, values), strict=True):
        mean[-1] = whole[-1]
    return means[0], means[1]


def line(
    name: str, steps: NDArray[Any], values: NDArray[Any], colour: str = "", **more: Any
) -> dict[str, Any]:
    """A series of a line chart."""
    x, y = broken(*thinned(steps, values))
    points = [
        [float(one), round(float(other), 5) if np.isfinite(other) else None]
        for one, other in zip(x, y, strict=True)
    ]
    style = {"lineStyle": {"width": 2, "color": colour}, "itemStyle": {"color": colour}}
    return (
        {"type": "line", "name": plain(name), "data": points, "showSymbol": False}
        | (style if colour else {})
        | more
    )


def band(
    name: str, steps: NDArray[Any], low: NDArray[Any], high: NDArray[Any], colour: str
) -> list[dict[str, Any]]:
    """Two invisible lines with the area between them: an interval around a line."""
    hidden = {
        "lineStyle": {"opacity": 0},
        "stack": f"band {name}",
        "silent": True,
        "tooltip": {"show": False},
    }
    filled = {"areaStyle": {"color": colour, "opacity": 0.13}}
    return [
        line(f"{name} low", steps, low) | hidden,
        line(f"{name} high", steps, np.asarray(high) - np.asarray(low)) | hidden | filled,
    ]


def lines(
    title: str,
    words: str,
    series: Sequence[dict[str, Any]],
    *,
    shares: bool = False,
    log: bool = False,
    x: str = "value",
    height: int = 260,
) -> Chart:
    """A line chart over steps, or over time with `x` as "time"."""
    named = [one["name"] for one in series if not one.get("silent")]
    axis: dict[str, Any] = {"type": "log" if log else "value", "scale": True, "splitLine": GRID}
    if shares:
        axis |= {"min": 0, "max": 1}
    options = {
        "grid": {"left": 52, "right": 16, "top": 40 if len(named) > 1 else 16, "bottom": 28},
        "xAxis": {
            "type": x,
            "max": "dataMax",
            "splitLine": {"show": False},
            "axisLabel": SHORT if x == "value" else {"hideOverlap": True},
        },
        "yAxis": axis,
        "legend": {"show": len(named) > 1, "data": named, "top": 0, "type": "scroll"},
        "tooltip": {"trigger": "axis", "renderMode": "richText"},
        "series": list(series),
    }
    return Chart(title=title, words=words, options=options, height=height)
