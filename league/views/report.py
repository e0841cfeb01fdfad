"""Draws a report on players, as a web page that contains its pictures, and as a single picture.

A chart is a `Forest` (rows with intervals, in panels side by side) or a `Trend` (lines over steps).
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from markupsafe import Markup

from league.errors import InvalidInput, plain
from league.metrics import Measured
from league.runs.files import write_whole
from league.views.html import page, section, table
from league.views.style import FAINT, GRID, INK, PALETTE, STYLE, png_of

if TYPE_CHECKING:  # Matplotlib takes half a second to load
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.legend import Legend

COLORS: Final = (*PALETTE[:4], PALETTE[5], PALETTE[7])
"""Colours of groups and lines, in order."""
MANY = 8
"""A table with more columns than this has a smaller font."""
WIDTH = 10.6
"""Width of a chart, in inches."""


@dataclass(frozen=True, kw_only=True)
class Panel:
    """Describes a panel of a forest: for each row a number with its interval, or None."""

    title: str
    values: Sequence[Measured | None]
    percent: bool = False
    reference: float | None = None
    """The position of a thin reference line, or None."""


@dataclass(frozen=True, kw_only=True)
class Forest:
    """Describes a chart of named rows, with numbers in panels. Each group of rows has a colour."""

    rows: Sequence[str]
    groups: Sequence[str]
    panels: Sequence[Panel]

    @property
    def height(self) -> float:
        """The height of the chart, in inches."""
        return 1.0 + 0.27 * len(self.rows)


@dataclass(frozen=True, kw_only=True)
class Trend:
    """Describes a chart of named lines. A line connects points (x, number), and a band shows the
    numbers' intervals.
    """

    x_label: str
    lines: Mapping[str, Sequence[tuple[float, Measured]]]
    height: float = 3.2


@dataclass(frozen=True, kw_only=True)
class Section:
    """Describes a section of a report.

    Attributes:
        words: an explanation of the section and its results.
        headings, rows: a table. A ``#`` at the end of a heading marks a column of numbers, and a
            ``|`` a column of centred cells.
        shades: for heat maps, the intensity of each cell's colour, from 0 to 1.
        is_main: whether the chart is also in the report's PNG.
    """

    title: str
    words: str
    chart: Forest | Trend | None = None
    headings: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    shades: Sequence[Sequence[float]] = ()
    is_main: bool = False


@dataclass(frozen=True, kw_only=True)
class Report:
    """Holds a whole report. `numbers` is the content of the JSON file."""

    title: str
    lead: str
    facts: Mapping[str, str]
    sections: Sequence[Section]
    numbers: Mapping[str, Any] = field(default_factory=dict)
    end: str = ""


def make_folder(folder: Path) -> None:
    """Makes the folder of a report. Raises `InvalidInput` if it can't be made."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(
            f"{folder} can't be a folder ({error.strerror}): name another place"
        ) from None


def write(report: Report, folder: Path) -> list[Path]:
    """Writes ``report.html``, ``.json`` and ``.png`` into `folder` and returns their paths. Raises
    `InvalidInput` if the folder can't be made.
    """
    content: dict[str, str | bytes] = {
        "html": render_html(report),
        "json": json.dumps(finite(report.numbers), indent=1) + "\n",
        "png": render_png(report),
    }
    make_folder(folder)
    paths = [folder / f"report.{ending}" for ending in content]
    for path, body in zip(paths, content.values(), strict=True):
        write_whole(path, body)
    return paths


def finite(value: Any) -> Any:
    """Returns the value for JSON. None replaces infinity and NaN, which JSON can't express."""
    if isinstance(value, Mapping):
        return {key: finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [finite(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def render_html(report: Report) -> str:
    """Returns a page for a browser."""
    shown = []
    for number, block in enumerate(report.sections):
        kind = "heat" if block.shades else "many" if len(block.headings) > MANY else ""
        pieces = []
        if block.chart is not None:
            picture = Markup('<div class="picture">{}</div>')
            pieces.append(picture.format(Markup(_svg(block.chart, number))))
        if block.rows:
            pieces.append(table(block.headings, _shaded(block), kind))
        if pieces:
            shown.append(section(block.title, *pieces, words=block.words))
    return page(report.title, report.title, report.lead, report.facts, shown, report.end)


def _shaded(section: Section) -> Sequence[Sequence[str]]:
    """Returns the rows of a table with the section's shades as backgrounds of the cells."""
    if not section.shades:
        return section.rows
    cell = Markup('<span style="background:rgba(0,114,178,{:.2f})">{}</span>')
    return [
        [row[0], *map(cell.format, (0.75 * fraction for fraction in shade), map(plain, row[1:]))]
        for shade, row in zip(section.shades, section.rows, strict=True)
    ]


def _svg(chart: Forest | Trend, number: int) -> str:
    """Returns a chart as SVG for a page. `number` makes the SVG's ids unique on the page."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    text = io.StringIO()
    with rc_context({**STYLE, "svg.fonttype": "none", "svg.hashsalt": f"chart {number}"}):
        figure = Figure(figsize=(WIDTH, chart.height), layout="constrained")
        _draw(figure, chart)
        nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        FigureCanvasSVG(figure).print_svg(text, metadata=nothing)
    drawn = text.getvalue()
    return drawn[drawn.index("<svg") :]


def render_png(report: Report) -> bytes:
    """Returns the main sections' charts as PNG, two per row. A chart with several panels takes a
    whole row.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    lines: list[list[Section]] = []
    for shown in report.sections:
        if shown.chart is None or not shown.is_main:
            continue
        if lines and len(lines[-1]) == 1 and not any(map(_is_wide, (shown, lines[-1][0]))):
            lines[-1].append(shown)
        else:
            lines.append([shown])
    heights = [max(shown.chart.height for shown in line if shown.chart) + 0.4 for line in lines]
    with rc_context(STYLE):
        size = 15, 1.1 + sum(heights)
        figure = Figure(figsize=size, dpi=100, facecolor="white", layout="constrained")
        top, *below = figure.subfigures(
            1 + len(lines), 1, height_ratios=[1.1, *heights], squeeze=False
        )[:, 0]
        top.text(0.015, 0.62, report.title, fontsize=18, fontweight="bold", parse_math=False)
        facts = "   ".join(f"{name}: {text}" for name, text in report.facts.items())
        top.text(0.015, 0.22, facts, color=FAINT, parse_math=False)
        for band, line in zip(below, lines, strict=True):
            parts = band.subfigures(1, len(line), squeeze=False)[0]
            for shown, frame in zip(line, parts, strict=True):
                assert shown.chart is not None
                title = frame.suptitle(shown.title, x=0.015, ha="left", fontweight="bold")
                title.set_parse_math(False)
                _draw(frame, shown.chart)
        return png_of(figure)


def _is_wide(section: Section) -> bool:
    return isinstance(section.chart, Forest) and len(section.chart.panels) > 1


def _draw(figure: Figure | SubFigure, chart: Forest | Trend) -> None:
    if isinstance(chart, Forest):
        _draw_forest(figure, chart)
    else:
        _draw_trend(figure.subplots(), chart)


def _draw_forest(figure: Figure | SubFigure, chart: Forest) -> None:
    from matplotlib.lines import Line2D

    groups = list(dict.fromkeys(chart.groups))
    color_of = dict(zip(groups, COLORS * len(groups), strict=False))
    columns = figure.subplots(1, len(chart.panels), sharey=True, squeeze=False)[0]
    for axes, panel in zip(columns, chart.panels, strict=True):
        _grid(axes, panel.percent, along="x")
        if len(chart.panels) > 1:
            axes.set_title(panel.title, color=FAINT, fontweight="normal", fontsize=10)
        else:
            axes.set_xlabel(panel.title)
        if panel.reference is not None:
            axes.axvline(panel.reference, color=FAINT, linewidth=0.9, linestyle=(0, (3, 3)))
        for y, (mean, group) in enumerate(zip(panel.values, chart.groups, strict=True)):
            if mean is None or not math.isfinite(mean.value):
                continue
            color = color_of[group]
            if math.isfinite(mean.low):
                axes.hlines(y, mean.low, mean.high, color=color, linewidth=2.2, alpha=0.55)
            axes.plot(mean.value, y, "o", color=color, markersize=5.5)
        if panel.percent:  # from 0, and never so narrow that rounded ticks repeat
            axes.set_xlim(-0.03, min(1.03, max(0.13, axes.get_xlim()[1])))
    columns[0].set_ylim(len(chart.rows) - 0.5, -0.5)
    columns[0].set_yticks(range(len(chart.rows)), chart.rows, color=INK, parse_math=False)
    if 1 < len(groups) < len(chart.rows):
        dots = [
            Line2D([], [], marker="o", linestyle="", color=color_of[group], label=group)
            for group in groups
        ]
        _plain(
            figure.legend(handles=dots, loc="outside lower center", ncols=len(dots), frameon=False)
        )


def _draw_trend(axes: Axes, chart: Trend) -> None:
    _grid(axes, percent=False, along="y")
    axes.set_xlabel(chart.x_label)
    axes.xaxis.set_major_formatter(
        lambda x, _: f"{x / 1e6:g}M" if abs(x) >= 1e5 else f"{x / 1e3:g}k" if x else "0"
    )
    for (name, points), color in zip(chart.lines.items(), COLORS * len(chart.lines), strict=False):
        x, values = [x for x, _ in points], [mean.value for _, mean in points]
        low, high = [mean.low for _, mean in points], [mean.high for _, mean in points]
        axes.fill_between(x, low, high, color=color, alpha=0.18, linewidth=0)
        axes.plot(x, values, "-o", color=color, markersize=3.5, linewidth=1.6, label=name)
    if len(chart.lines) > 1:
        _plain(axes.legend(frameon=False))


def _plain(legend: Legend) -> None:
    for text in legend.get_texts():
        text.set_parse_math(False)


def _grid(axes: Axes, percent: bool, along: str) -> None:
    from matplotlib.ticker import PercentFormatter

    if percent:
        axis = axes.xaxis if along == "x" else axes.yaxis
        axis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axes.grid(color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(length=0)
    axes.spines[["left", "bottom"]].set_visible(False)
