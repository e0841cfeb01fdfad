"""Lists matches with a result, and shows a match: why it was made, its numbers, and its replay."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from league.console.text import percent, when
from league.errors import LeagueError, NotFound
from league.games.base import CHOICE, GameSpec
from league.players import Book, MatchLine, MatchRecord, MatchResult
from league.views.dashboard.blocks import (
    Block,
    ago,
    choice,
    entry,
    form,
    link,
    player_link,
    suggestions,
)
from league.views.dashboard.replays import insights, replay_of
from league.views.dashboard.source import Source
from league.views.html import Text, facts, joined, section, table, tag

ROWS = 50
CANDIDATES = 15
"""Number of possible opponents to list, starting with the likeliest."""
REPLAYS = {"": "with and without", "kept": f"the newest {ROWS} that are kept"}
BOOKS = {"": "all", "train": "training", "eval": "clean", "greedy": "greedy"}


def show(source: Source, parameters: Mapping[str, str]) -> list[Block]:
    player, opponent = parameters.get("player", ""), parameters.get("opponent", "")
    category, cursor = parameters.get("category", ""), parameters.get("before", "")
    book = Book(parameters["book"]) if parameters.get("book") in (*Book,) else None
    before = int(cursor) if cursor.isdecimal() and len(cursor) < 16 else 0
    if opponent and not player:
        player, opponent = opponent, ""
    chosen = {
        "player": player,
        "opponent": opponent,
        "book": book.value if book else "",
        "category": category,
    }
    recorded = source.replays()
    with_replay = parameters.get("replays") == "kept"
    if with_replay:
        lines, older = _with_replay(source, chosen), 0
    else:
        lines, older = source.matches(before=before, limit=ROWS, **chosen | {"book": book})
    rows = [tuple(_row(line, line.match_id in recorded, source.spec())) for line in lines]
    filters = form(
        entry("player", "player", player, names="players"),
        entry("opponent", "against", opponent, names="players"),
        choice("book", "kind", BOOKS, chosen["book"]),
        entry("category", "category", category),
        choice("replays", "replays", REPLAYS, "kept" if with_replay else ""),
    )
    pages = [link("the newest", "/matches", **chosen)] if before else []
    if older:
        pages.append(link("older ›", "/matches", **chosen, before=older))
    headings = ("ended", "first", "second", "result", "kind", "category", "length#", "")
    words = "Every match with a result. Those with ▶ have a replay: the evaluator keeps the first "
    words += "match and the first loss of each batch, highlights, and the newest live matches. An "
    words += "evaluator on another machine keeps them there. The dashboard keeps matches of people."
    return [
        suggestions("players", source.players()),
        section(
            "Matches",
            filters,
            table(headings, rows),
            Markup('<div class="pages">{}</div>').format(joined(pages, " ")),
            words=words,
        ),
    ]


def _with_replay(source: Source, chosen: Mapping[str, str]) -> list[MatchLine]:
    """Returns the newest matches that fit the filters and have a result and a replay."""
    names = {chosen["player"], chosen["opponent"]} - {""}
    lines: list[MatchLine] = []
    for match_id in source.replays():
        try:
            record = source.match(match_id)
        except NotFound:  # an unrated match is not in the log
            continue
        assignment, result = record.assignment, record.result
        if (
            result is not None
            and names <= {seat.name for seat in assignment.seats}
            and chosen["book"] in ("", assignment.book.value)
            and chosen["category"] in ("", assignment.category)
        ):
            lines.append(_line(record, result))
        if len(lines) == ROWS:
            break
    return lines


def _line(record: MatchRecord, result: MatchResult) -> MatchLine:
    first, second = record.assignment.seats
    return MatchLine(
        position=record.log_position,
        match_id=result.match_id,
        seats=(first.name, second.name),
        book=record.assignment.book,
        category=record.assignment.category,
        outcome=result.outcome,
        frames=result.frames,
        failed=result.failed,
        received_at=result.finished_at,
    )


def _row(line: MatchLine, has_replay: bool, spec: GameSpec | None) -> Iterator[Text]:
    yield ago(line.received_at)
    yield from map(player_link, line.seats)
    yield _result(line.outcome, line.seats) if not line.failed else tag("failed", "bad")
    yield BOOKS[line.book.value]
    yield line.category
    yield _length(line.frames, spec)
    yield link("▶ replay" if has_replay else "details", "/match", match=line.match_id)


def _length(frames: int, spec: GameSpec | None) -> str:
    """Returns how long a match took: in seconds, or in moves of a game of choices. Without the
    game's spec, only its frames are known.
    """
    if spec is None:
        return f"{frames:,} frames"
    if spec.action_kind == CHOICE:
        return f"{frames:,} moves"
    return f"{frames / spec.frames_per_second:,.1f} s"


def _result(outcome: float, names: Sequence[str]) -> str:
    return {1.0: f"{names[0]} wins", 0.0: f"{names[1]} wins"}.get(outcome, "a draw")


def show_match(source: Source, parameters: Mapping[str, str]) -> Iterator[Block]:
    """Shows the match that the parameter `match` names, with its replay if it has been kept."""
    match_id = parameters.get("match", "")
    try:
        record = source.match(match_id)
    except NotFound:
        if match_id not in source.replays():
            raise
        yield section("Match", words="It was not rated, so the log does not have it.")
        yield from _played(source, match_id)
        return
    names = [player.name for player in record.assignment.seats]
    result = record.result
    numbers: dict[str, Text] = {
        "kind": BOOKS[record.assignment.book.value],
        "category": record.assignment.category or "–",
        "played by": record.worker,
        "seed": str(record.assignment.seed),
        "state": record.lease_state,
    }
    if result is not None:
        failed = f"failed: {result.failure}" if result.failed else ""
        numbers["result"] = failed or _result(result.outcome, names)
        numbers["length"] = _length(result.frames, source.spec())
        numbers["ended"] = ago(result.finished_at)
    title = joined((player_link(name) for name in names), " against ")
    yield section("Match", Markup("<h3>{}</h3>").format(title), facts(numbers))
    yield from _played(source, match_id)
    yield _why(record)
    if result is not None:
        stats = [seat.stats for seat in result.seats]
        yield _stats(names, stats, result.frames, source.spec())


def _played(source: Source, match_id: str) -> Iterator[Block]:
    """Yields the match's film and charts if its replay has been kept."""
    try:
        if (replay := replay_of(source, match_id)) is not None:
            yield _viewer(match_id, replay.names)
            yield from insights(source, replay)
    except LeagueError as error:
        yield section("It can't be played again", words=str(error))


def _viewer(match_id: str, names: Sequence[str]) -> Markup:
    """Returns the element in which static/viewer.js plays the film."""
    parts = (
        '<canvas data-part="screen" role="img" aria-label="the match"></canvas><div class="film">'
        '<button data-part="toggle">play</button><button data-part="back" aria-label="one frame '
        'back">‹</button><button data-part="forward" aria-label="one frame on">›</button>'
        '<input data-part="seek" type="range" min="0" value="0" aria-label="time">'
        '<span data-part="clock"></span><select data-part="speed" aria-label="speed">'
        + "".join(
            f'<option value="{speed}"{" selected" if speed == 1 else ""}>{words} ×</option>'
            for speed, words in ((0.25, "¼"), (0.5, "½"), (1, "1"), (2, "2"), (4, "4"))
        )
        + '</select><button data-part="full">full screen</button></div>'
    )
    words = (
        f"{names[0]} is red, {names[1]} blue; the keys that both hold are drawn. Space plays, the "
        "arrows step one frame. A click on a chart shows its moment, and the page's address keeps "
        "the moment at which the film stands."
    )
    viewer = Markup('<div class="viewer" data-film="film/{}">{}</div>').format(
        match_id, Markup(parts)
    )
    return section("Replay", viewer, words=words)


def _why(record: MatchRecord) -> Block:
    """Returns a block on how the match was drawn, from the log."""
    why: dict[str, Any] = json.loads(record.why_json or "{}")
    if not why:
        return section("Why this match", words="It was paired by name: nothing was drawn.")
    shares, category = why.get("shares", {}), record.assignment.category
    numbers = {
        "category": f"{category}, {percent(shares[category])}" if category in shares else category,
        "chance of this opponent in it": percent(why.get("probability")),
        "drawn after result": f"{why.get('log_position', 0):,}",
    }
    if changed := why.get("changed"):
        numbers["mix"] = f"as {changed['by']} changed it at {when(changed['at'])}"
    drawn = why.get("candidates", {}).get(category, [])
    total = sum(weight for _, weight in drawn) or 1.0
    likeliest = sorted(drawn, key=lambda candidate: -candidate[1])[:CANDIDATES]
    rows = [(player_link(name), percent(weight / total)) for name, weight in likeliest]
    parts: list[Text] = [facts(numbers)]
    if rows:
        parts.append(table(("it might have been", "weight#"), rows))
    rule = why.get("rules", {}).get(category) or why.get("rule") or "chance"
    return section("Why this match", *parts, words=f"Drawn by {rule}.", half=True)


def _stats(
    names: Sequence[str], stats: Sequence[Mapping[str, float]], frames: int, spec: GameSpec | None
) -> Block:
    """Returns the statistics of both seats. A sum over the frames is shown as a mean per frame, a
    number of frames as seconds, and a whole number without decimals.
    """
    rows = []
    for name in dict.fromkeys([*stats[0], *stats[1]]):
        words, by = name, 1.0
        if name == "spawn_side":
            rows.append(("began on the", *_sides(stats)))
            continue
        if name == "keys_pressed":  # a key that is held counts in every frame
            words, by = "mean keys held at once", max(1.0, frames)
        elif name.endswith("_sum"):
            words, by = f"mean {name.removesuffix('_sum')}", max(1.0, frames)
        elif name.endswith("_frames") and spec is not None:
            words, by = f"{name.removesuffix('_frames')} seconds", float(spec.frames_per_second)
        numbers = [seat.get(name, 0.0) / by for seat in stats]
        digits = 0 if by == 1.0 and all(number.is_integer() for number in numbers) else 1
        values = (f"{number:,.{digits}f}" for number in numbers)
        rows.append((words.replace("_", " "), *values))
    return section("Numbers", table(("", f"{names[0]}#", f"{names[1]}#"), rows), half=True)


def _sides(stats: Sequence[Mapping[str, float]]) -> Iterator[str]:
    for seat in stats:
        yield "left" if seat.get("spawn_side", 0.0) < 0 else "right"
