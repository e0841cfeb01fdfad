"""Self-contained web pages: no scripts, nothing loaded from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files


def page(
    title: str, heading: str, lead: str, facts: Mapping[str, str], sections: Iterable[str], end: str
) -> str:
    """A page with a row of facts (text by name) above its sections, which are HTML."""
    style = (files("league.views") / "page.css").read_text(encoding="utf-8")
    shown = (
        f"<div><b>{escape(text)}</b><span>{escape(fact)}</span></div>"
        for fact, text in facts.items()
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(title)}</title><style>{style}</style></head>\n<body><main>"
        f"<h1>{escape(heading)}</h1><p>{escape(lead)}</p>"
        f'<div class="facts">{"".join(shown)}</div>\n{"".join(sections)}'
        f"<footer>{escape(end)}</footer></main></body></html>\n"
    )


def section(
    title: str,
    words: str,
    headings: Sequence[str],
    rows: Sequence[str],
    kind: str = "",
    picture: str = "",
) -> str:
    """A title, words and a picture (both HTML) and a table of ready rows, "" without the last two.
    ``#`` after a heading marks numbers, ``|`` cells in the middle.
    """
    if not rows and not picture:
        return ""
    sides = {"#": "n", "|": "c"}
    head = "".join(
        f'<th class="{sides.get(name[-1:], "")}">{escape(name.rstrip("#|"))}</th>'
        for name in headings
    )
    table = (
        f'<div class="wide"><table class="{kind}"><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )
    shown = f'<div class="picture">{picture}</div>' if picture else ""
    return (
        f"<section><h2>{escape(title)}</h2><p>{words}</p>{shown}{table if rows else ''}</section>\n"
    )


def cells(values: Iterable[str], kind: str) -> str:
    """Table cells of ready HTML."""
    return "".join(f'<td class="{kind}">{value}</td>' for value in values)
