"""Makes pieces of HTML for reports, leaderboards and the dashboard. All text except `Markup` is
escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files

from markupsafe import Markup, escape

from league.errors import plain

Text = str | Markup
SIDES = {"#": "n", "|": "c"}
"""CSS classes of columns, by the last character of the heading."""
PAGE = Markup(
    '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
    '<meta name="viewport" content="width=device-width,initial-scale=1">'
    "<title>{}</title><style>{}</style></head>\n<body><main><h1>{}</h1><p>{}</p>{}\n{}"
    "<footer>{}</footer></main></body></html>\n"
)


def page(
    title: str, heading: str, lead: str, numbers: Mapping[str, str], parts: Iterable[Text], end: str
) -> str:
    """Returns a self-contained page, which has no scripts and loads nothing.

    Args:
        title: the page's title in the browser.
        heading: the heading of the page.
        lead: a sentence below the heading.
        numbers: the facts in a row above the sections, as text by name.
        parts: the sections.
        end: the text of the footer.
    """
    style = Markup((files("league.views") / "page.css").read_text(encoding="utf-8"))
    shown = map(text, (heading, lead))
    body = facts(numbers), joined(parts, "\n"), text(end)
    return str(PAGE.format(text(title), style, *shown, *body))


def text(value: object) -> Markup:
    """Returns untrusted text, escaped.

    Spaces replace control characters and line breaks.
    """
    return value if isinstance(value, Markup) else escape(plain(str(value)))


def joined(parts: Iterable[Text], between: str = "") -> Markup:
    """Returns the parts, escaped and joined by `between`."""
    return Markup(between).join(text(part) for part in parts)


def section(title: str, *parts: Text, words: Text = "", half: bool = False) -> Markup:
    """Returns a card with a heading.

    Args:
        title: the heading.
        parts: the content.
        words: a paragraph between the heading and the content.
        half: makes the card half as wide as the dashboard, if the window is wide.
    """
    lead = Markup("<p>{}</p>").format(text(words)) if words else ""
    return Markup('<section class="{}"><h2>{}</h2>{}{}</section>').format(
        "half" if half else "whole", text(title), lead, joined(parts)
    )


def facts(items: Mapping[str, Text]) -> Markup:
    """Returns a row of numbers with their names."""
    cells = (
        Markup("<div><dt>{}</dt><dd>{}</dd></div>").format(text(name), text(value))
        for name, value in items.items()
    )
    return Markup('<dl class="facts">{}</dl>').format(joined(cells))


def table(headings: Sequence[Text], rows: Iterable[Sequence[Text]], kind: str = "") -> Markup:
    """Returns a table, or the words "Nothing yet".

    Args:
        headings: names of the columns. A ``#`` at the end of a heading marks a column of numbers,
            and a ``|`` a column of centred cells.
        rows: the cells of each row.
        kind: a CSS class.
    """
    sides = [SIDES.get(name[-1:], "") for name in headings]
    head = joined(
        Markup('<th scope="col" class="{}">{}</th>').format(side, text(name.rstrip("#|")))
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
    """Returns words in a small frame. `kind` is a CSS class."""
    return Markup('<span class="tag {}">{}</span>').format(kind, text(words))


def bar(low: float, share: float, high: float, words: str = "") -> Markup:
    """Returns a bar for a share between 0 and 1, with marks at the ends of its interval. `words` is
    the bar's tooltip, by default the interval in percent.
    """
    low, high = 100 * low, 100 * high
    return Markup(
        '<span class="bar" title="{}"><i style="width:{:.1f}%"></i>'
        '<em style="left:{:.1f}%;width:{:.1f}%"></em></span>'
    ).format(words or f"{low:.1f} to {high:.1f} %", 100 * share, low, high - low)
