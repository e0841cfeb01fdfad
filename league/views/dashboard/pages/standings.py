"""Shows the leaderboard, a single player, and a comparison of two players."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from statistics import NormalDist

from markupsafe import Markup

from league.console.text import percent
from league.ids import lineage_of
from league.metrics import wilson_interval
from league.players import Book, PayoffCell, Player, PlayerKind, PlayerState, Rating
from league.stats.ratings.belief import Belief, spread
from league.stats.ratings.elo import PER_POINT, SIGMAS, elo
from league.views.dashboard.blocks import (
    Block,
    Filters,
    ago,
    choice,
    entry,
    filters,
    form,
    here,
    link,
    player_link,
    sparkline,
    suggestions,
    wins_bar,
)
from league.views.dashboard.source import Source
from league.views.html import Text, bar, facts, joined, section, table, tag, text

ROWS, FAILURES, MOST = 50, 5, 200
"""Largest numbers of rows: `ROWS` of results and matches, `FAILURES` of failed matches, and `MOST`
of the leaderboard.
"""
TREND = 40
"""Largest number of snapshots in the trend of a lineage."""
BOOKS = {"eval": "clean matches", "greedy": "greedy matches", "train": "training"}
HINTS = {"greedy": "Greedy: each key takes its likelier value and is not drawn by its probability."}
"""Explanations of books."""
HEADINGS = ("rank#", "player", "Elo#", "", "trend", "newest", "wins#", "games#", "steps#", "score#")
SORTS: Mapping[str, Callable[[Rating], float | str]] = {
    "rank": lambda rating: rating.rank or math.inf,
    "player": lambda rating: rating.player.name,
    "Elo": lambda rating: -rating.mu,
    "wins": lambda rating: -rating.wins / max(1, rating.games),
    "games": lambda rating: -rating.games,
    "steps": lambda rating: -rating.player.step,
    "score": lambda rating: -rating.score,
}
"""Sort keys by heading. A click on a heading sorts by its key, and a second click reverses the
order.
"""


def show(source: Source, parameters: Mapping[str, str]) -> list[Block]:
    usual = {"book": "eval", "kind": "", "search": "", "sort": "rank", "open": ""}
    chosen = {name: parameters.get(name, value) for name, value in usual.items()}
    if chosen["book"] not in BOOKS:
        chosen["book"] = usual["book"]
    kind, search = chosen["kind"], chosen["search"].lower()
    ratings = source.ratings(Book(chosen["book"]))
    kinds = sorted({group for rating in ratings for group in _groups(rating.player)})
    listed = [
        rating
        for rating in ratings
        if (not kind or kind in _groups(rating.player)) and search in rating.player.name.lower()
    ]
    rows = list(islice(_rows(listed, chosen), MOST))
    more = f"The first {MOST} rows: a name finds the others." if len(rows) == MOST else ""
    files = (
        Markup('<a href="download/leaderboard.{}" download>{}</a>').format(name, name.upper())
        for name in ("csv", "json", "md")
    )
    words = joined(
        (
            "A lineage shows its best and its newest snapshot, and unfolds. Elo is mu of TrueSkill "
            "on Elo's scale, ± 2 sigma, which leaves out errors that players share: ",
            Markup("<code>bin/league ratings --fit</code>"),
            " has 95 % intervals. Ranks are by score = mu − 3 sigma. A draw is not a win. "
            f"{HINTS.get(chosen['book'], '')} Download: ",
        )
    )
    kept = filters(
        choice("book", "matches", BOOKS, chosen["book"]),
        choice("kind", "players", {"": "all", **{group: group for group in kinds}}, kind),
        entry("search", "name", chosen["search"]),
    )
    return [
        Filters(section("Leaderboard", kept, words=joined([words, joined(files, " ")]))),
        section(
            f"{len(listed):,} players",
            table([_heading(name, chosen) for name in HEADINGS], rows),
            words=more,
        ),
    ]


def _heading(name: str, chosen: Mapping[str, str]) -> Text:
    """Returns a column's heading, a link if the column can sort the page."""
    key, sort = name.rstrip("#"), chosen["sort"]
    if key not in SORTS:
        return name
    words = f"{key} {'▾' if sort == key else '▴'}" if sort.lstrip("-") == key else key
    target = {**chosen, "sort": f"-{key}" if sort == key else key}
    return here(words, "/leaderboard", f"by-{key}", **target) + name[len(key) :]


def _rows(listed: Sequence[Rating], chosen: Mapping[str, str]) -> Iterator[Sequence[Text]]:
    """Yields a row for each lineage and for each other player, and below an open lineage its
    snapshots. A search opens all lineages.
    """
    by, is_back = SORTS.get(chosen["sort"].lstrip("-"), SORTS["rank"]), chosen["sort"][:1] == "-"
    lanes: dict[str, list[Rating]] = {}
    for rating in listed:
        lanes.setdefault(lineage_of(rating.player.name) or rating.player.name, []).append(rating)
    bounds = [bound for rating in listed for bound in _bounds(rating)]
    scale = min(bounds, default=0.0), max(bounds, default=1.0)
    opened = {*chosen["open"].split(",")} - {""}
    for name, lane in sorted(lanes.items(), key=lambda item: by(item[1][0]), reverse=is_back):
        if len(lane) == 1:
            yield _row(lane[0], scale)
            continue
        is_open = name in opened or bool(chosen["search"])
        state = Markup(' aria-expanded="{}"').format(str(is_open).lower())
        words = f"{'▾' if is_open else '▸'} {name}, {len(lane):,} snapshots"
        target = ",".join(sorted(opened ^ {name}))
        fold = here(words, "/leaderboard", f"open-{name}", state, **{**chosen, "open": target})
        steps = sorted(lane, key=lambda rating: rating.player.step)
        last = steps[-1].player.name
        newest = link(f"{last} {_elo(steps[-1])}", "/player", name=last)
        trend = [rating.mu for rating in steps[:: -(-len(steps) // TREND)]]
        yield _row(lane[0], scale, fold + Markup("<br>"), newest, trend)
        for rating in sorted(lane, key=by, reverse=is_back) if is_open else ():
            yield _row(rating, scale, Markup('<span class="under"></span>'))


def _row(
    rating: Rating,
    scale: tuple[float, float],
    before: Text = "",
    newest: Text = "",
    trend: Sequence[float] = (),
) -> Sequence[Text]:
    """Returns a row of the leaderboard.

    Args:
        scale: the least and the largest rating of the page.
        before: text before the player's name.
        newest: text on the newest snapshot of the player's lineage.
        trend: ratings of the player's lineage. If it is empty, the player's own past scores are
            drawn.
    """
    player, (low, high) = rating.player, scale
    least, most = ((bound - low) / ((high - low) or 1.0) for bound in _bounds(rating))
    tags = [*[*_groups(player)][-1:], *["anchor"] * rating.pinned]
    tags += [player.state.value] * (player.state is not PlayerState.ACTIVE)
    return (
        str(rating.rank or ""),
        joined([before, player_link(player.name), *(tag(words, words) for words in tags)], " "),
        _elo(rating),
        bar(least, (least + most) / 2, most, f"of {elo(low):,.0f} to {elo(high):,.0f}"),
        sparkline(trend or rating.trend),
        newest,
        percent(rating.wins / rating.games) if rating.games else "",
        f"{rating.games:,}",
        f"{player.step:,}" if player.step else "",
        f"{rating.score:.2f}",
    )


def _bounds(rating: Rating) -> tuple[float, float]:
    """Returns both ends of μ ± 2 σ."""
    half = SIGMAS * rating.sigma
    return rating.mu - half, rating.mu + half


def _elo(rating: Rating) -> str:
    return f"{elo(rating.mu):,.0f} ± {PER_POINT * SIGMAS * rating.sigma:.0f}"


def _groups(player: Player) -> Iterator[str]:
    """Yields the groups by which players can be filtered."""
    yield player.kind.value
    if player.role.value != "none":
        yield player.role.value.replace("_", " ")


def _chance(first: Rating, second: Rating) -> float:
    """Returns the share of a match's points that TrueSkill expects the first player to score."""
    pair = [Belief(rating.mu, rating.sigma) for rating in (first, second)]
    return NormalDist().cdf((first.mu - second.mu) / spread(*pair))


def _reached(source: Source, player: Player) -> int:
    """Returns the player's step. For a live player this is the learner's current step."""
    steps = [worker.step for worker in source.status().workers if worker.player == player.name]
    return max(steps, default=player.step)


def show_player(source: Source, parameters: Mapping[str, str]) -> list[Block]:
    """Shows the player in the parameter `name`: its rating, and its results by opponent."""
    player = source.player(parameters.get("name", ""))
    name, blocks = player.name, list[Block]()
    rating = {rating.player.name: rating for rating in source.ratings(Book.EVAL)}.get(name)
    numbers: dict[str, Text] = {
        "kind": joined((tag(group) for group in _groups(player)), " "),
        "state": player.state.value,
        "step": f"{_reached(source, player):,}",
        "entered": ago(player.created_at) or "–",
    }
    if player.parent:
        numbers["parent"] = player_link(player.parent)
    if rating:
        numbers |= {"rank": str(rating.rank or "–"), "score": f"{rating.score:.2f}"}
        numbers |= {"Elo, ± 2 sigma": _elo(rating)}
    if player.held_out:
        numbers["held out"] = "never met in training"
    links = joined(
        [
            link("its matches", "/matches", player=name),
            link("compare it", "/compare", first=name),
            link("fight it", "/play", second=name),
        ],
        " · ",
    )
    blocks.append(section(name, facts(numbers), Markup("<p>{}</p>").format(links)))
    if player.kind is PlayerKind.RIVAL:
        blocks.append(_failures(source, player))
    for book, words in BOOKS.items():
        cells = source.payoff(Book(book), (name,), ())
        if cells:
            hint = HINTS.get(book, "")
            blocks.append(section(f"Against whom: {words}", _payoff_table(cells), words=hint))
    return blocks


def _failures(source: Source, player: Player) -> Block:
    """Returns the newest failed matches of a rival with their reasons, and its late decisions."""
    newest, _ = source.matches(player=player.name, limit=ROWS)
    failed = [line for line in newest if line.failed]
    rows = []
    for line in failed[:FAILURES]:
        result = source.match(line.match_id).result
        reason = "" if result is None else result.failure
        rows.append((ago(line.received_at), reason, link("details", "/match", match=line.match_id)))
    cells = source.payoff(Book.EVAL, (player.name,), (), with_stats=True)
    late = sum(cell.games * cell.means.get("late_decisions", 0.0) for cell in cells)
    words = f"{len(failed)} of its newest {len(newest)} matches failed. In its "
    words += f"{sum(cell.games for cell in cells):,} clean matches {late:,.0f} decisions were late."
    if player.state is PlayerState.QUARANTINED:
        words += " It is in quarantine and not drawn. "
        words += f"`bin/league quarantine {player.name} --release` lets it play again."
    return section("Failures", table(("ended", "reason", ""), rows), words=words)


def _payoff_table(cells: Iterable[PayoffCell]) -> Markup:
    ordered = sorted(cells, key=lambda cell: -cell.games)[:ROWS]
    rows = []
    for cell in ordered:
        interval = wilson_interval(cell.wins, cell.games)
        rows.append(
            (
                player_link(cell.column),
                *(f"{count:,}" for count in (cell.wins, cell.draws, cell.losses)),
                wins_bar(cell.wins, cell.games),
                f"{percent(interval.low)} to {percent(interval.high)}",
                link("matches", "/matches", player=cell.row, opponent=cell.column),
            )
        )
    return table(("opponent", "won#", "drawn#", "lost#", "wins", "95 % interval", ""), rows)


def show_comparison(source: Source, parameters: Mapping[str, str]) -> list[Block]:
    """Shows the players in the parameters `first` and `second`: their ratings, their matches, and
    their common opponents.
    """
    names = [parameters.get("first", ""), parameters.get("second", "")]
    blocks: list[Block] = [
        suggestions("players", source.players()),
        section(
            "Compare two players",
            form(
                entry("first", "first", names[0], names="players"),
                entry("second", "second", names[1], names="players"),
                button="Compare",
            ),
        ),
    ]
    if not all(names):
        return blocks
    pair = [source.player(name) for name in names]
    ratings = {rating.player.name: rating for rating in source.ratings(Book.EVAL)}
    rows = []
    for player in pair:
        rated = ratings.get(player.name)
        rows.append(
            (
                player_link(player.name),
                f"{rated.score:.2f}" if rated else "not rated yet",
                _elo(rated) if rated else "",
                f"{rated.games:,}" if rated else "",
                wins_bar(rated.wins, rated.games) if rated else "",
            )
        )
    headings = ("player", "score#", "Elo, ± 2 sigma#", "games#", "wins")
    blocks.append(section("Ratings", table(headings, rows)))
    first, second = names
    words = list[Text]()
    if first in ratings and second in ratings:
        chance = _chance(ratings[first], ratings[second])
        words.append(f"By their ratings {first} scores {percent(chance)} of a match's points.")
    met = source.payoff(Book.EVAL, (first,), (second,))
    bounds = [wilson_interval(cell.wins + cell.draws / 2, cell.games) for cell in met]
    if not any(bound.low > 0.5 or bound.high < 0.5 for bound in bounds):
        folder = ["--run-dir", str(source.run_dir)] if source.run_dir else []
        command = shlex.join(["bin/league", "compare", *names, *folder])
        code = Markup("<code>{}</code>").format(text(command))
        words += ["Their matches don't show who is stronger.", code, "plays until that is sure."]
    blocks.append(section("Against each other", _payoff_table(met), words=joined(words, " ")))
    common = [
        {cell.column: cell for cell in source.payoff(Book.EVAL, (name,), ())} for name in names
    ]
    shared = [name for name in common[0] if name in common[1]]
    both = [
        (
            player_link(name),
            wins_bar(common[0][name].wins, common[0][name].games),
            wins_bar(common[1][name].wins, common[1][name].games),
        )
        for name in shared[:ROWS]
    ]
    blocks.append(section("Against the same opponents", table(("opponent", first, second), both)))
    return blocks
