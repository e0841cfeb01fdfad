"""Makes parts of a page: forms, links and charts. `league.views.html` has the general parts."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final
from urllib.parse import urlencode

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from league.console.text import long_duration, percent, when
from league.errors import plain
from league.metrics import wilson_interval
from league.runs.records import broken
from league.status import Pause
from league.views.html import Text, bar, joined, section, text

MOST_POINTS: Final = 300
"""Largest number of points of a line. A chart is only some 600 pixels wide."""
NARROW: Final = 0.12
"""A stage that is shorter than this share of all stages has no name in a chart."""
MARGINS: Final = {"left": 52, "right": 16}
"""Pixels around the area of a chart. static/viewer.js relies on the same numbers."""
ZOOM: Final = {
    "right": 0,
    "top": 0,
    "itemSize": 12,
    "feature": {"dataZoom": {"yAxisIndex": "none", "title": {"zoom": "zoom", "back": "back"}}},
}
"""Buttons above a chart. The first lets people mark a range to enlarge, and the second goes back.
"""
GRID: Final = {"lineStyle": {"color": "#8a93a040"}}
"""Style of grid lines, visible in both themes."""
SHORT: Final = {
    ":formatter": "v => v >= 1e6 ? +(v / 1e6).toFixed(2) + 'M' : v >= 1e4 ? "
    "+(v / 1e3).toFixed(1) + 'k' : +v.toFixed(2) + ''",
    "hideOverlap": True,
}
"""Labels for an axis of steps, such as 2.5M or 50k."""
SECONDS: Final = {":formatter": "v => +v.toFixed(1) + ' s'", "hideOverlap": True}
"""Labels for an axis of seconds of a film."""


@dataclass(frozen=True, kw_only=True)
class Chart:
    """Describes a chart that ECharts draws. `words` explains the chart, also to people who can't
    see it.
    """

    title: str
    words: str
    options: Mapping[str, Any] = field(default_factory=dict)
    height: int = 260
    wide: bool = False
    painted: bool = False
    """Whether the chart sets the colours of its text. Otherwise the text follows the page's theme.
    """
    timed: bool = False
    """Whether the horizontal axis is the time of the page's film. A click on the chart then moves
    the film to that time.
    """


class Filters(Markup):
    """A section with a form of `filters`. The browser keeps what people enter, so a change of these
    values alone does not draw the form again.
    """


Block = Markup | Chart


def link(words: Text, path: str, **query: object) -> Markup:
    """Returns a link to a page of the dashboard. Parameters without a value are left out."""
    return Markup('<a href="{}">{}</a>').format(address(path, **query), text(words))


def here(words: Text, path: str, number: str, more: Text = "", /, **query: object) -> Markup:
    """Returns a link that updates the page without loading it again, and keeps the focus.

    Args:
        words: the link's text.
        path: the page.
        number: the link's id.
        more: further attributes.
        query: the page's parameters.
    """
    return Markup('<a href="{}" id="{}" data-now{}>{}</a>').format(
        address(path, **query), number, more, text(words)
    )


def address(path: str, **query: object) -> str:
    """Returns the address of a page. It is relative, because a proxy may serve all pages under a
    prefix. Parameters without a value are left out.
    """
    values = {
        name.rstrip("_"): str(value) for name, value in query.items() if value not in ("", None)
    }
    relative = path.removeprefix("/") or "./"
    return f"{relative}?{urlencode(values)}" if values else relative


def player_link(name: str) -> Markup:
    return link(name, "/player", name=name)


def wins_bar(wins: int, games: int) -> Markup:
    """Returns a share of wins with its 95 % Wilson interval, drawn and as text."""
    if not games:
        return Markup("")
    interval = wilson_interval(wins, games)
    return bar(interval.low, wins / games, interval.high) + percent(wins / games)


def sparkline(values: Sequence[float]) -> Markup:
    """Returns a small line without axes."""
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
    """Returns a drop-down list for a form, after its label.

    The list sets the parameter `name`. `values` has the text to show for each value.
    """
    options = joined(
        Markup('<option value="{}"{}>{}</option>').format(
            value, Markup(" selected") if value == chosen else "", text(words)
        )
        for value, words in values.items()
    )
    return Markup('<label>{} <select name="{}">{}</select></label>').format(label, name, options)


def entry(name: str, label: str, value: str, *, names: str = "", is_needed: bool = False) -> Markup:
    """Returns a text field for a form.

    Args:
        name: the parameter that the field sets.
        label: the text in front of the field.
        value: the field's initial value.
        names: the id of a list of suggestions, or "".
        is_needed: whether the browser refuses an empty field.
    """
    suggested = Markup(' list="{}"').format(names) if names else ""
    needed = Markup(" required") if is_needed else ""
    return Markup('<label>{} <input name="{}" value="{}"{}{}></label>').format(
        label, name, text(value), suggested, needed
    )


def answer(parameters: Mapping[str, str]) -> list[Block]:
    """Returns a block with the outcome of an operator's request, or [] without a request."""
    message = parameters.get("said", "")
    words = Markup('<p role="status">{}</p>').format(text(message))
    return [section("Asked", words)] if message else []


def paused(pause: Pause) -> str:
    """Returns sentences on learners that an operator has paused."""
    return f"Paused since {when(pause.at)} by {pause.by}. The evaluator goes on."


def suggestions(number: str, names: Iterable[str]) -> Markup:
    """Returns a list of suggestions for text fields, with the id `number`."""
    options = joined(Markup('<option value="{}">').format(text(name)) for name in names)
    return Markup('<datalist id="{}">{}</datalist>').format(number, options)


def filters(*parts: Text) -> Markup:
    """Returns a form that acts as people type and choose (see static/viewer.js)."""
    return Markup("<form data-now>{}</form>").format(joined(parts, " "))


def form(*parts: Text, action: str = "", method: str = "get", button: str = "Show") -> Markup:
    target = Markup(' action="{}"').format(address(action)) if action else ""
    return Markup('<form method="{}"{}>{}<button>{}</button></form>').format(
        method, target, joined(parts, " "), button
    )


def ago(seconds: float, now: float | None = None) -> Text:
    """Returns how long ago a time was, with the time as a hint, and "" for 0.

    Args:
        seconds: the time, in Unix seconds.
        now: the time now. None: by the clock of this machine.
    """
    if seconds <= 0:
        return ""
    now = time.time() if now is None else now
    past = f"{long_duration(max(0.0, now - seconds))} ago"
    return Markup('<span title="{}">{}</span>').format(when(seconds), past)


def thinned(
    steps: NDArray[Any], values: NDArray[Any], most: int = MOST_POINTS
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Reduces a line to at most `most` points.

    Args:
        steps, values: the line, of shape [N].
        most: the largest number of points.

    Returns:
        Means of neighbouring points. The last point stays unchanged.
    """
    steps, values = np.asarray(steps, float), np.asarray(values, float)
    if len(steps) <= most:
        return steps, values
    edges = np.linspace(0, len(steps) - 1, most).astype(int)
    sizes = np.diff(np.append(edges, len(steps)))
    means = [np.add.reduceat(column, edges) / sizes for column in (steps, values)]
    for mean, whole in zip(means, (steps, values), strict=True):
        mean[-1] = whole[-1]
    return means[0], means[1]


def line(
    name: str,
    steps: NDArray[Any],
    values: NDArray[Any],
    colour: str = "",
    most: int = MOST_POINTS,
    **more: Any,
) -> dict[str, Any]:
    """Returns a line for a line chart.

    Args:
        name: the line's name in the legend.
        steps, values: the line, of shape [N].
        colour: its colour, "" for ECharts' choice.
        most: the largest number of its points.
        more: further options of ECharts.
    """
    x, y = broken(*thinned(steps, values, most))
    points = [
        [float(at), round(float(value), 5) if np.isfinite(value) else None]
        for at, value in zip(x, y, strict=True)
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
    """Returns the band of an interval around the line `name`: two invisible lines, with the area
    between them filled. `low` and `high` have shape [N].
    """
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
    seconds: float = 0.0,
    stages: Sequence[tuple[float, str]] | None = None,
) -> Chart:
    """Returns a line chart.

    Args:
        title: the chart's title.
        words: an explanation of the chart.
        series: the lines, from `line` and `band`.
        shares: whether the values are shares, from 0 to 1.
        log: whether the values have a logarithmic axis.
        x: "value" for steps, "time" for Unix milliseconds.
        seconds: the length of the page's film, if the horizontal axis has the film's seconds.
        stages: the step at which each stage begins, and the stage's name. The chart shows the
            stages as bands. The last entry is the step at which the last stage ends, without a
            name. None: the chart shows no stages, and no buttons for zooming. Only the page Curves
            passes stages.
    """
    named = [line["name"] for line in series if not line.get("silent")]
    axis: dict[str, Any] = {"type": "log" if log else "value", "scale": True, "splitLine": GRID}
    if shares:
        axis |= {"min": 0, "max": 1}
    options: dict[str, Any] = {
        "grid": MARGINS | {"top": 40 if len(named) > 1 or stages is not None else 24, "bottom": 28},
        "xAxis": {
            "type": x,
            "max": seconds or "dataMax",
            "splitLine": {"show": False},
            "axisLabel": SECONDS if seconds else SHORT if x == "value" else {"hideOverlap": True},
        },
        "yAxis": axis,
        "legend": {"show": len(named) > 1, "data": named, "top": 0, "type": "scroll", "right": 60},
        "tooltip": {"trigger": "axis", "renderMode": "richText"},
        "series": list(series),
    }
    if stages is not None:
        options |= {"toolbox": ZOOM}
    if stages and series:
        length = stages[-1][0] - stages[0][0]
        bands = [_band(number, *pair, length) for number, pair in enumerate(pairwise(stages))]
        area = {"silent": True, "data": bands}
        options["series"][0] = series[0] | {"markArea": area}
    return Chart(title=title, words=words, options=options, timed=seconds > 0)


def _band(
    number: int, stage: tuple[float, str], following: tuple[float, str], length: float
) -> list[dict[str, Any]]:
    """Returns the band of a stage, given the stage that follows and the length of all stages. A
    narrow band has no name, because the names would overlap.
    """
    (begin, name), (end, _) = stage, following
    is_wide = end - begin >= NARROW * length
    label = {"position": "insideTop", "color": "#7d8590", "fontSize": 10, "show": is_wide}
    style = {"color": "#8a93a0", "opacity": 0.14 if number % 2 else 0.0}
    return [{"xAxis": begin, "name": name, "label": label, "itemStyle": style}, {"xAxis": end}]
