"""What the dashboard's leaderboard says of lineages, bots and strangers."""

from __future__ import annotations

import html
import re
import shlex
from dataclasses import replace
from types import SimpleNamespace

import pytest
import screens

from league.players import Book, PayoffCell, PlayerKind, Rating
from league.runs.folder import write_config
from league.settings.base import resolve
from league.views.dashboard.pages import payoffs, play, standings

HOSTILE = "<img src=x onerror=alert(1)>@5"


def shown(ratings: tuple[Rating, ...], **parameters: str) -> list[str]:
    """The rows of the page as text without tags."""
    blocks = standings.show(SimpleNamespace(ratings=lambda book: ratings), parameters)
    rows = re.findall(r"<tr>(.*?)</tr>", "".join(map(str, blocks)), re.DOTALL)[1:]
    return [re.sub(r"<[^>]*>", " ", row) for row in rows]


@pytest.fixture
def ratings() -> tuple[Rating, ...]:
    return screens.ratings()


def test_a_lineage_is_a_row_between_the_bots_with_its_best_and_its_newest(ratings):
    best, *_ = snapshots = [one for one in ratings if one.player.kind is PlayerKind.SNAPSHOT]
    newest = replace(best.player, name="main@900000", step=900_000)
    ratings += (replace(snapshots[-1], player=newest, rank=99),)
    rows = shown(ratings)
    assert len(rows) == 1 + len(screens.BOTS)
    (row,) = (row for row in rows if "main" in row)
    assert best.player.name in row
    assert newest.name in row
    assert snapshots[1].player.name not in row
    opened = shown(ratings, open="main")
    assert len(opened) == len(rows) + len(snapshots) + 1
    assert sum(snapshots[1].player.name in row for row in opened) == 1


def test_names_stay_text_and_a_search_finds_them_in_a_folded_lineage(ratings):
    stranger = replace(ratings[0].player, name=HOSTILE)
    ratings += (replace(ratings[0], player=stranger), replace(ratings[1], player=stranger))
    page = str(
        standings.show(SimpleNamespace(ratings=lambda book: ratings), {"open": HOSTILE[:-2]})
    )
    assert "<img" not in page
    assert "&lt;img" in page
    assert len(shown(ratings, search="ONERROR")) == 3
    assert shown(ratings, search="nobody") == []


def hardest(source: SimpleNamespace) -> list[str]:
    page = "".join(map(str, play.show(source, {})))
    return re.findall(r'value="([^"]*)"><b>Hard', page)


def test_the_hardest_level_is_the_best_member_of_the_leaderboard(ratings, tmp_path):
    sure, unsure, *others = (
        replace(one, player=replace(one.player, digest="d" * 64)) for one in ratings
    )
    unsure = replace(unsure, mu=sure.mu + 1.0)  # its score ranks it below
    write_config(tmp_path / "config.toml", resolve(environment={}))
    source = SimpleNamespace(
        run_dir=tmp_path,
        players=lambda: {one.player.name: one.player for one in (sure, unsure, *others)},
        ratings=lambda book: [sure, unsure, *others],
        is_served=lambda: True,
    )
    assert hardest(source) == [sure.player.name]
    newest = replace(sure.player, name="main@900000", step=900_000)  # without a rating
    bots = [one for one in ratings if one.player.kind is PlayerKind.BOT]
    source.players = lambda: {one.name: one for one in (newest, *(bot.player for bot in bots))}
    source.ratings = lambda book: [replace(bot, wins=1, draws=0, losses=0) for bot in bots]
    playable = [bot.player.name for bot in bots if bot.player.name != play.STILL]
    assert hardest(source) == playable[:1]
    source.ratings = lambda book: []
    assert hardest(source) == [newest.name]


@pytest.mark.parametrize(("wins", "is_sure"), [(0, False), (6, False), (40, True)])
def test_two_members_whose_matches_decide_nothing_have_a_command_that_does(wins, is_sure, ratings):
    names = [one.player.name for one in ratings[:2]]
    cell = PayoffCell(row=names[0], column=names[1], wins=wins, draws=0, losses=4)
    by_name = {one.player.name: one.player for one in ratings}
    source = SimpleNamespace(
        run_dir="a run",
        players=lambda: by_name,
        player=by_name.__getitem__,
        ratings=lambda book: ratings,
        payoff=lambda book, rows, columns: [cell] if wins else [],
    )
    shown = standings.show_comparison(source, dict(zip(("first", "second"), names, strict=True)))
    page = html.unescape("".join(map(str, shown)))
    command = shlex.join(["bin/league", "compare", *names, "--run-dir", "a run"])
    assert (f"<code>{command}</code>" in page) is not is_sure


def test_the_pages_explain_greedy_matches(ratings):
    best = ratings[0].player
    cell = PayoffCell(row=best.name, column="based", wins=3, draws=0, losses=1)
    source = SimpleNamespace(
        ratings=lambda book: ratings,
        player=lambda name: best,
        status=lambda: SimpleNamespace(workers=()),
        payoff=lambda book, *_: (cell,) if book is met else (),
    )
    for met, is_said in ((Book.EVAL, False), (Book.GREEDY, True)):
        pages = (
            standings.show(source, {"book": met.value}),
            standings.show_player(source, {"name": best.name}),
        )
        assert ["likelier value" in "".join(map(str, page)) for page in pages] == [is_said] * 2


def test_the_map_of_payoffs_shows_every_bot_and_the_newest_and_best_others(ratings):
    few = 2 * len(screens.BOTS) - 2  # the bots are more than half of these
    names = payoffs.chosen(ratings, few)
    assert set(screens.BOTS) < set(names)
    others = [one for one in ratings if one.player.kind is PlayerKind.SNAPSHOT]
    newest = max(others, key=lambda one: one.player.step)
    assert {newest.player.name, others[0].player.name} <= set(names)
    assert len(names) < len(ratings)


def test_no_page_calls_two_sigma_a_confidence_of_95_percent(ratings):
    one, other = (rating.player for rating in ratings[:2])
    source = SimpleNamespace(
        run_dir=None,
        ratings=lambda book: ratings,
        players=lambda: {player.name: player for player in (one, other)},
        player=lambda name: {player.name: player for player in (one, other)}[name],
        status=lambda: SimpleNamespace(workers=()),
        payoff=lambda book, *_: (),
    )
    for page in (
        standings.show_player(source, {"name": one.name}),
        standings.show_comparison(source, {"first": one.name, "second": other.name}),
    ):
        shown = "".join(map(str, page))
        assert "± " in shown
        assert not re.search(r"Elo[^<]*95 %", shown)
