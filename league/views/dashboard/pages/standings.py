"""Shows the leaderboard, a single player, and a comparison of two players."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import NormalDist

from markupsafe import Markup

from league.console.text import percent, when
from league.metrics import wilson_interval
from league.players import Book, PayoffCell, Player, PlayerKind, PlayerState, Rating
from league.stats.ratings.belief import Belief, spread
from league.stats.ratings.elo import HALF_WIDTH, elo
from league.views.dashboard.blocks import (
    Block,
    choice,
    entry,
    form,
    link,
    player_link,
    sparkline,
    suggestions,
    wins_bar,
)
from league.views.dashboard.source import Source
from league.views.html import Text, facts, joined, section, table, tag

ROWS, FAILURES = 50, 5
BOOKS = {"eval": "clean matches", "greedy": "greedy matches", "train": "training"}
SORTS = {"rank": "rank", "games": "games", "step": "step", "name": "name"}


def show(source: Source, parameters: Mapping[str, str]) -> list[Block]:
    book = Book(_known(parameters, "book", BOOKS))
    kind, sort = parameters.get("kind", ""), _known(parameters, "sort", SORTS)
    search, number = parameters.get("search", ""), _page(parameters)
    ratings = source.ratings(book)
    kinds = sorted({group for rating in ratings for group in _groups(rating.player)})
    listed = [
        rating
        for rating in ratings
        if (not kind or kind in _groups(rating.player))
        and search.lower() in rating.player.name.lower()
    ]
    keys = {
        "games": lambda rating: -rating.games,
        "step": lambda rating: -rating.player.step,
        "name": lambda rating: rating.player.name,
    }
    if sort in keys:
        listed.sort(key=keys[sort])
    chosen = {"book": book.value, "kind": kind, "sort": sort, "search": search}
    filters = form(
        choice("book", "matches", BOOKS, book.value),
        choice("kind", "players", {"": "all", **{group: group for group in kinds}}, kind),
        choice("sort", "sorted by", SORTS, sort),
        entry("search", "name", search),
    )
    files = joined(
        (
            Markup('<a href="download/leaderboard.{}" download>{}</a>').format(name, name.upper())
            for name in ("csv", "json", "md")
        ),
        " ",
    )
    headings = ["rank#", "player", "role", "score#", "rating, 95 %#", "Elo#", "trend", "games#"]
    rows = [_row(rating) for rating in listed[number * ROWS : (number + 1) * ROWS]]
    words = (
        "Score = mu − 3 sigma of TrueSkill, and Elo is mu on Elo's scale. A draw is not a win. The "
        "marks in the bar are the 95 % interval of the share of wins. Download: "
    )
    return [
        section(
            "Leaderboard",
            filters,
            table([*headings, "wins", "state", "parent", "step#"], rows),
            _pages(number, len(listed), "/leaderboard", chosen),
            words=joined([words, files]),
        )
    ]


def _known(parameters: Mapping[str, str], name: str, values: Mapping[str, str]) -> str:
    """Returns a parameter's value if it is in `values`, or else the first of the values."""
    value = parameters.get(name, "")
    return value if value in values else next(iter(values))


def _page(parameters: Mapping[str, str]) -> int:
    value = parameters.get("page", "0")
    return int(value) if value.isdecimal() and len(value) < 7 else 0


def _pages(number: int, total: int, path: str, chosen: Mapping[str, str]) -> Markup:
    last = max(0, (total - 1) // ROWS)
    if not last:
        return Markup("")
    steps = []
    if number > 0:
        steps.append(link("‹ before", path, **chosen, page=number - 1))
    steps.append(Markup("<span>{:,} to {:,} of {:,}</span>").format(
        number * ROWS + 1, min(total, (number + 1) * ROWS), total))  # fmt: skip
    if number < last:
        steps.append(link("next ›", path, **chosen, page=number + 1))
    return Markup('<div class="pages">{}</div>').format(joined(steps, " "))


def _groups(player: Player) -> Iterator[str]:
    """Yields the groups by which players can be filtered."""
    yield player.kind.value
    if player.role.value != "none":
        yield player.role.value.replace("_", " ")


def _interval(rating: Rating) -> str:
    half = HALF_WIDTH * rating.sigma
    return f"{rating.mu:.2f} ± {half:.2f}"


def _row(rating: Rating) -> Sequence[Text]:
    player = rating.player
    return (
        str(rating.rank or ""),
        joined([player_link(player.name), tag("anchor") if rating.pinned else ""], " "),
        joined((tag(group, group) for group in _groups(player)), " "),
        f"{rating.score:.2f}",
        *(_interval(rating), f"{elo(rating.mu):.0f}"),
        sparkline(rating.trend),
        f"{rating.games:,}",
        wins_bar(rating.wins, rating.games),
        player.state.value,
        player_link(player.parent) if player.parent else "",
        f"{player.step:,}" if player.step else "",
    )


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
        "entered": when(player.created_at) or "–",
    }
    if player.parent:
        numbers["parent"] = player_link(player.parent)
    if rating:
        numbers |= {"rank": str(rating.rank or "–"), "score": f"{rating.score:.2f}"}
        numbers |= {"rating": _interval(rating), "Elo": f"{elo(rating.mu):.0f}"}
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
            blocks.append(section(f"Against whom: {words}", _payoff_table(cells)))
    return blocks


def _failures(source: Source, player: Player) -> Block:
    """Returns the newest failed matches of a rival with their reasons, and its late decisions."""
    newest, _ = source.matches(player=player.name, limit=ROWS)
    failed = [line for line in newest if line.failed]
    rows = []
    for line in failed[:FAILURES]:
        result = source.match(line.match_id).result
        reason = "" if result is None else result.failure
        rows.append(
            (when(line.received_at), reason, link("details", "/match", match=line.match_id))
        )
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
                _interval(rated) if rated else "",
                f"{elo(rated.mu):.0f}" if rated else "",
                f"{rated.games:,}" if rated else "",
                wins_bar(rated.wins, rated.games) if rated else "",
            )
        )
    headings = ("player", "score#", "rating, 95 %#", "Elo#", "games#", "wins")
    blocks.append(section("Ratings", table(headings, rows)))
    first, second = names
    words = []
    if first in ratings and second in ratings:
        chance = _chance(ratings[first], ratings[second])
        words.append(f"By their ratings {first} scores {percent(chance)} of a match's points.")
    met = source.payoff(Book.EVAL, (first,), (second,))
    blocks.append(section("Against each other", _payoff_table(met), words=" ".join(words)))
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
