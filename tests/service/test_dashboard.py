"""The dashboard in a real browser, over a real league."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cli_league import make_run
from game_run import make_game_run
from playwright.sync_api import Browser, Page, Route, WebSocket, WebSocketRoute, sync_playwright
from playwright.sync_api import TimeoutError as PlaywrightTimeout
from waiting import PATIENCE, wait_for

from league.cli.main import main
from league.games.settings import GameSettings
from league.ids import lineage_of
from league.players import Book
from league.replay import load_replay, verify
from league.replay.highlights import Highlight, add_highlights
from league.rpc.client import MatchmakerClient
from league.runs.finding import FORMAT
from league.runs.folder import write_config
from league.security.tokens import TokenFile
from league.settings.base import resolve
from league.stats.ratings.elo import PER_POINT, SIGMAS, elo
from league.views.leaderboard import gather, render_html
from matchmaker.main import MatchmakerServer
from matchmaker.settings import MatchmakerSettings

CHROMIUM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
PAGES = (
    *("/", "/leaderboard", "/curves", "/payoffs", "/lineage", "/matches", "/mix", "/play", "/work"),
    *("/player?name=main@2000", "/compare?first=main@2000&second=based"),
)
QUICK = ("/", "/leaderboard", "/play")  # forms, tables, films: the rest takes a minute
COLOUR = "button => getComputedStyle(button).backgroundColor"
BOXES = """parts => parts.map(part => part.getBoundingClientRect())
    .map(box => [box.left, box.top, box.right, box.bottom])"""
HOSTILE = '<img src=x onerror="window.harmed=1"><script>window.harmed=1</script>'

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: apt-get install chromium")


def apart(call: Callable[..., Any], *arguments: Any) -> Any:
    """Calls it in another thread: Playwright runs an event loop in this one."""
    with ThreadPoolExecutor(1) as executor:
        return executor.submit(call, *arguments).result()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run's folder, with the replay of one of its matches."""
    run_dir = tmp_path_factory.mktemp("dashboard") / "run"
    ids = apart(make_run, run_dir)
    (run_dir / "replays").mkdir()
    kept = run_dir / "replays" / f"{ids['gauntlet']}.replay"
    words = ["demo", "main@2000", "based", "--run-dir", str(run_dir), "--save", str(kept)]
    assert main(words) == 0
    seen = Highlight(
        kind="live",
        match_id=ids["gauntlet"],
        names=("main@2000", "based"),
        winner="based",
        words="",
        value=1.0,
        at=time.time(),
    )
    rally = seen.model_copy(update={"kind": "rally", "words": HOSTILE, "winner": HOSTILE})
    lost = seen.model_copy(update={"kind": "closest", "match_id": HOSTILE})
    gone = seen.model_copy(update={"match_id": "gone", "at": time.time() + 9})
    add_highlights(run_dir, [seen, rally, lost, gone])
    return run_dir


@pytest.fixture(scope="module")
def client(run: Path) -> Iterator[MatchmakerClient]:
    """The running league."""
    server = apart(lambda: MatchmakerServer(db=run / "league.db", port=0).__enter__())
    with MatchmakerClient(server.address) as found:
        yield found
    apart(server.__exit__, None, None, None)


@pytest.fixture(scope="module")
def address(run: Path, client: MatchmakerClient) -> Iterator[str]:
    """Where the dashboard of the running league is."""
    with serving(run) as found:
        yield found


@contextmanager
def serving(
    run_dir: Path, *words: str, prefix: Sequence[str] = (), **options: Any
) -> Iterator[str]:
    """The dashboard's own process, and its address. `prefix` is a command that starts it, and
    `options` are of `subprocess.Popen`.
    """
    command = [*prefix, sys.executable, "-m", "league", "dashboard", "--run-dir", str(run_dir)]
    command += words
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    options = {"stdout": subprocess.PIPE, "text": True, "env": own} | options
    with subprocess.Popen(command, **options) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()
        assert process.wait(PATIENCE) in (0, -signal.SIGTERM)


@contextmanager
def browsing(*words: str) -> Iterator[Page]:
    """A tab of a browser. Another tab would load and compile the pages' scripts again."""
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox", *words]
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield new_tab(browser)
        browser.close()


def new_tab(browser: Browser) -> Page:
    """A tab that knows nothing of the browser's other tabs."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(1000 * PATIENCE)
    return context.new_page()


@pytest.fixture(scope="module")
def tab() -> Iterator[Page]:
    with browsing() as found:
        yield found


@pytest.fixture
def page(tab: Page, address: str) -> Iterator[Page]:
    """The tab, which must see no error, and send requests to the dashboard alone."""
    wrong = list[str]()
    own = (address, address.replace("http", "ws"), "data:", "blob:")

    def is_own(url: str) -> bool:
        return not url or url.startswith(own)

    listeners: dict[Any, Callable[[Any], None]] = {
        # A dashboard of an earlier test may still report that its server has gone.
        "console": lambda one: (
            wrong.append(one.text) if one.type == "error" and is_own(one.location["url"]) else None
        ),
        "pageerror": lambda error: wrong.append(str(error)),
        "request": lambda one: None if one.url.startswith(own) else wrong.append(one.url),
    }
    tab.goto("about:blank")  # the page of an earlier test asks for its dashboard again and again
    for event, listener in listeners.items():
        tab.on(event, listener)
    yield tab
    for event, listener in listeners.items():
        tab.remove_listener(event, listener)
    tab.goto("about:blank")
    assert not wrong


@pytest.mark.parametrize(
    "path",
    [path if path in QUICK else pytest.param(path, marks=pytest.mark.long) for path in PAGES],
)
def test_every_page_shows_the_league_and_reads_well(page: Page, address: str, path: str) -> None:
    from axe_playwright_python.sync_playwright import Axe

    page.goto(address + path)
    page.wait_for_selector("main section h2")
    page.wait_for_function(
        """() => [...document.querySelectorAll(".chart")].every(
            chart => chart.querySelector("svg path, svg circle"))"""
    )
    page.wait_for_timeout(700)
    assert "Not found" not in page.inner_text("main")
    for chart in page.query_selector_all(".chart"):
        assert chart.query_selector("svg path, svg circle"), chart.inner_text()
    found = Axe().run(page).response["violations"]
    serious = [one for one in found if one["impact"] in ("serious", "critical")]
    assert not serious, [(one["id"], [node["html"] for node in one["nodes"]]) for one in serious]


def test_the_menu_is_painted_before_any_script_runs(tab: Page, address: str) -> None:
    assert tab.context.browser is not None
    context = tab.context.browser.new_context(java_script_enabled=False)
    try:
        plain = context.new_page()
        plain.goto(f"{address}/leaderboard")
        menu = plain.locator("header a[href]").all()
        assert len(menu) > 8
        assert all(link.is_visible() for link in menu[1:])  # the first skips to the content
        assert "<style>" not in plain.inner_text("body")
    finally:
        context.close()


@pytest.fixture
def phone(page: Page) -> Iterator[Page]:
    """The tab, as small as a phone."""
    page.set_viewport_size({"width": 390, "height": 844})
    yield page
    page.set_viewport_size({"width": 1280, "height": 900})


def test_an_exported_leaderboard_fits_a_laptops_window(
    page: Page, client: MatchmakerClient
) -> None:
    board = gather(client, title="laptop-1", now=0.0)
    large = {"step": 10_002_432, "games": 1680, "win_rate": 0.931, "greedy_win_rate": 0.943}
    large |= {"fit": -12.0, "fit_low": -14.26, "fit_high": -10.68, "player": "main@10002432"}
    rows = tuple(row | large for row in board.rows for _ in range(20))
    page.set_viewport_size({"width": 1366, "height": 768})
    page.set_content(render_html(replace(board, rows=rows)))
    table = page.locator(".wide").first
    assert table.evaluate("frame => frame.scrollWidth <= frame.clientWidth")
    page.set_viewport_size({"width": 390, "height": 844})
    box = table.bounding_box()
    assert box is not None
    assert box["height"] <= 844, "its scrollbar is in the window"
    page.set_viewport_size({"width": 1280, "height": 900})


@pytest.mark.parametrize("path", ["/payoffs", "/lineage", "/curves"])
def test_what_scrolls_on_a_phone_can_be_focused(phone: Page, address: str, path: str) -> None:
    from axe_playwright_python.sync_playwright import Axe

    phone.goto(address + path)
    phone.wait_for_selector(".chart svg path", state="attached")
    options = {"runOnly": ["scrollable-region-focusable"]}
    assert not Axe().run(phone, options=options).response["violations"]


def test_a_live_player_has_the_step_of_its_learner(
    page: Page, address: str, client: MatchmakerClient
) -> None:
    reached = max(one.step for one in client.status().workers if one.player == "main")
    assert reached > 0
    page.goto(f"{address}/player?name=main")
    page.wait_for_selector(f'dl div:has(dt:text-is("step")) dd:text-is("{reached:,}")')


def test_a_phones_row_of_tabs_shows_the_tab_of_the_page(phone: Page, address: str) -> None:
    for path, name in (("/work", "Evaluate"), ("/", "Now")):
        phone.goto(address + path)
        link = phone.wait_for_selector(f'nav a[aria-current="page"]:has-text("{name}")')
        assert link is not None
        phone.wait_for_timeout(300)
        box = link.bounding_box()
        assert box is not None
        assert 0 <= box["x"] <= 390 - box["width"]


def test_numbers_are_those_of_the_services(
    page: Page, address: str, client: MatchmakerClient
) -> None:
    page.goto(f"{address}/leaderboard?kind=snapshot&open=main")
    page.wait_for_selector("tbody tr")
    lineage, *shown = (row.query_selector_all("td") for row in page.query_selector_all("tbody tr"))
    ratings = [one for one in client.ratings() if one.player.kind.value == "snapshot"]
    names = [row[1].inner_text().split()[0] for row in shown]
    assert names == [one.player.name for one in ratings]
    assert [[row[column].inner_text() for column in (9, 2)] for row in shown] == [
        [f"{one.score:.2f}", f"{elo(one.mu):,.0f} ± {PER_POINT * SIGMAS * one.sigma:.0f}"]
        for one in ratings
    ]
    assert lineage[2].inner_text() == shown[0][2].inner_text()
    with page.expect_download() as download:
        page.click("text=CSV")
    lines = Path(download.value.path()).read_text().splitlines()
    assert lines[1].split(",")[1] == client.ratings()[0].player.name


def test_the_leaderboard_is_sorted_unfolded_and_filtered_in_place(
    page: Page, address: str, client: MatchmakerClient
) -> None:
    page.goto(f"{address}/leaderboard")
    page.wait_for_selector("tbody tr")
    page.evaluate("window.same = true")

    def column(number: int) -> list[str]:
        return [one.split()[0] for one in page.locator(f"td:nth-child({number})").all_inner_texts()]

    games = sorted(int(text.replace(",", "")) for text in column(8))
    for words, expected in (("games ▾", games[::-1]), ("games ▴", games)):
        page.focus("#by-games")
        page.keyboard.press("Enter")
        page.wait_for_selector(f'th:has-text("{words}")')
        assert [int(text.replace(",", "")) for text in column(8)] == expected
        page.wait_for_function("document.activeElement.id == 'by-games'")
    page.click("#open-main")
    page.wait_for_selector('#open-main[aria-expanded="true"]')
    snapshots = [one.player.name for one in client.ratings() if lineage_of(one.player.name)]
    assert {*snapshots} < {*page.locator("td:nth-child(2) .under + a").all_inner_texts()} | {""}
    page.locator("[name=search]").press_sequentially("main@1", delay=20)
    page.wait_for_function("document.querySelectorAll('tbody tr').length == 1")
    assert column(2) == ["main@1000"]
    assert page.evaluate("document.activeElement.name") == "search"
    page.select_option("[name=kind]", "bot")
    page.wait_for_selector("text=Nothing yet")
    assert page.evaluate("window.same"), "the page was not loaded again"
    page.reload()  # the address has all choices
    page.wait_for_selector("text=Nothing yet")
    assert page.input_value("[name=search]") == "main@1"


def test_a_page_follows_the_league(page: Page, address: str, client: MatchmakerClient) -> None:
    page.goto(address)
    page.wait_for_selector("text=learner-main")
    number = client.open_incarnation("learner-main", "main", checkpoint_step=2000).number
    client.heartbeat(number, 2, step=4321, mix="league", activity="quite another activity")
    page.wait_for_selector("text=quite another activity")
    assert "4,321" in page.inner_text("main")


def test_the_front_page_says_who_leads_and_shows_a_live_match_and_highlights(
    page: Page, address: str, client: MatchmakerClient
) -> None:
    ratings = client.ratings()
    best = ratings[0]
    own = lineage_of(best.player.name)
    second = next(one for one in ratings if lineage_of(one.player.name) != own)
    films = list[Route]()
    page.route("**/film/*", lambda route: films.append(route))
    page.goto(address)
    page.wait_for_selector("p:has-text('is the best member')")
    page.wait_for_selector('[data-live] [role="status"]:has-text("Loading the match")')
    page.wait_for_selector("[data-live] button", state="hidden")
    films.pop().continue_()
    page.unroute_all()
    said = re.search(
        r"(\S+) is the best member. It joined .+ and is (\d+) ± \d+ Elo \(2 sigma\) above "
        r"([^\s,]+?)[,.]\s",
        page.inner_text("main"),
    )
    assert said
    assert (said[1], said[3]) == (best.player.name, second.player.name)
    assert int(said[2]) == round(elo(best.mu) - elo(second.mu))
    page.wait_for_selector("[data-live][data-frame]")
    screen = page.query_selector('[data-live] [data-part="screen"]')
    assert screen is not None
    assert len(screen.screenshot()) > 5000
    assert "main@2000 against based" in page.inner_text('[data-live] [data-part="state"]')
    page.click('[data-live] [data-part="toggle"]')
    page.wait_for_selector('[data-live] button:has-text("play")')
    assert page.locator("a:has-text('▶')").all_inner_texts() == ["▶ Best rally"]  # of kept replays
    assert page.evaluate("window.harmed") is None
    page.click("a:has-text('▶ Best rally')")
    page.wait_for_selector('[data-film] [data-part="clock"]:not(:empty)')


def test_a_live_match_that_cant_be_shown_says_only_why(tab: Page, address: str) -> None:
    assert tab.context.browser is not None
    page = new_tab(tab.context.browser)
    page.clock.install()
    answers = [{"status": 404, "body": "gone"}, {"status": 503, "body": "busy"}]
    page.route("**/film/*", lambda route: route.fulfill(**answers.pop()))
    page.goto(address)
    said = page.locator('[data-live] [role="status"]:has-text("can\'t be shown")')
    said.filter(has_text="busy").wait_for()
    said.filter(has_text="gone").wait_for()  # after a passing failure it is asked for again
    page.clock.fast_forward(10_000)
    assert said.inner_text() == "The match can't be shown: gone"
    page.context.close()


def test_a_replay_plays_and_can_be_stepped_and_sought(page: Page, address: str) -> None:
    page.goto(f"{address}/matches?player=main@2000&opponent=based")
    page.click("text=▶ replay")
    page.wait_for_selector('[data-film] [data-part="clock"]:not(:empty)')
    part = '[data-film] [data-part="{}"]'.format

    def now() -> int:
        return int(page.input_value(part("seek")))

    started = now()
    page.wait_for_function(f"document.querySelector('{part('seek')}').value > {started + 5}")
    page.click(part("toggle"))
    page.wait_for_timeout(150)
    stopped = now()
    page.wait_for_timeout(200)
    assert now() == stopped
    page.click(part("forward"))
    page.wait_for_function(f"document.querySelector('{part('seek')}').value == {stopped + 1}")
    page.fill(part("seek"), "7")
    page.wait_for_timeout(150)
    assert now() == 7
    screen = page.query_selector(part("screen"))
    assert screen is not None
    assert len(screen.screenshot()) > 5000
    page.wait_for_selector("text=Reward terms of main@2000")
    page.wait_for_selector("text=Value estimates")


def test_a_film_and_its_charts_show_the_same_moment(page: Page, address: str) -> None:
    page.goto(f"{address}/matches?player=main@2000&opponent=based")
    page.click("text=▶ replay")
    seek = '[data-film] [data-part="seek"]'
    page.wait_for_selector('[data-film] [data-part="clock"]:not(:empty)')
    chart = page.locator(".timed:has(svg path)").first
    box = chart.bounding_box()
    assert box is not None
    left, width = 52, box["width"] - 52 - 16  # of the chart's area
    last = float(page.inner_text('[data-part="clock"]').split(":")[-1])

    def second_at(share: float) -> float:
        """The page's second after a click, which a chart that just arrives may take."""
        chart.click(position={"x": left + share * width, "y": 90})
        page.wait_for_timeout(400)  # the address follows after 0.2 s
        return float(page.evaluate("new URLSearchParams(location.search).get('second') ?? 0"))

    wait_for(lambda: 0.0 < second_at(0.25) < last / 3)
    wait_for(lambda: second_at(0.5) > last / 3)
    second = second_at(0.5)
    assert second == pytest.approx(2 * last / 4, abs=0.3)
    assert page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--at')")
    picture = page.input_value(seek)
    page.goto(f"{page.url}&other=1")
    page.wait_for_selector('[data-film] [data-part="clock"]:not(:empty)')
    page.wait_for_function(f"document.querySelector('{seek}').value == {picture}")


def test_matches_with_replays_are_listed_by_themselves(page: Page, address: str) -> None:
    page.goto(f"{address}/matches?player=main@2000&opponent=based&replays=kept")
    page.wait_for_selector("tbody tr")
    (row,) = page.query_selector_all("tbody tr")
    assert "▶ replay" in row.inner_text()
    page.goto(f"{address}/matches?player=main@2000&opponent=based&replays=kept&book=train")
    page.wait_for_selector("text=Nothing yet")


def test_a_match_is_fought_by_key_presses_rated_and_kept(
    page: Page, address: str, client: MatchmakerClient, run: Path
) -> None:
    begin(page, f"{address}/play?first=human&second=constant&rated=yes")
    page.click('[data-part="full"]')
    assert page.evaluate("document.fullscreenElement !== null")
    page.keyboard.press("Space")  # jumps, and does not press the button again
    assert page.evaluate("document.fullscreenElement !== null")
    page.keyboard.down("d")
    page.wait_for_function("document.querySelector('[data-play]').dataset.frame > 15")
    page.keyboard.up("d")
    page.wait_for_selector("[data-play][data-over]")
    said = page.inner_text('[data-part="state"]')
    assert "rated" in said
    assert "not rated" not in said
    (own,) = [one for one in client.ratings() if one.player.name == "human"]
    assert own.games == 1
    (match,), _ = client.matches("human", "constant", book=Book.EVAL)
    assert (run / "replays" / f"{match.match_id}.replay").is_file()
    replay = load_replay(run / "replays" / f"{match.match_id}.replay")
    verify(replay)
    assert replay.actions_T2A[:, 0].any()
    assert not replay.actions_T2A[:, 1].any()
    href = page.get_attribute('[data-part="choices"] a:has-text("replay")', "href")
    assert href == f"match?match={match.match_id}"
    wait_for(lambda: not seems_to_hang(client))
    # the second of the pair: the same seed from the other seat
    begin(page, f"{address}/play?first=constant&second=human&rated=yes")
    page.goto(address)  # who leaves gives the match back
    wait_for(lambda: open_leases(client) == 0)
    assert [one.games for one in client.ratings() if one.player.name == "human"] == [1]


def begin(page: Page, address: str) -> None:
    """Begins the match that an address proposes, as a person does."""
    page.goto(address)
    page.click("button:has-text('Begin')")
    page.wait_for_selector("[data-play][data-frame]")


def choose(page: Page) -> None:
    """Chooses with the mouse until the match is over."""
    choices = page.locator('[data-part="choices"] button:not([data-part])')
    while not page.query_selector("[data-play][data-over]"):
        with contextlib.suppress(PlaywrightTimeout):  # the button has just gone
            choices.first.click(timeout=1000)
        page.wait_for_timeout(100)


def seems_to_hang(client: MatchmakerClient) -> bool:
    """Whether the dashboard would, if no heartbeat came for a quarter of an hour from now on."""
    status = client.status()
    (worker,) = [one for one in status.workers if one.worker == "dashboard"]
    later = replace(status.vitals, now=status.vitals.now + 1000)
    return replace(status, vitals=later).is_silent(worker)


def open_leases(client: MatchmakerClient) -> int:
    """Of the dashboard."""
    return next(one.open_leases for one in client.status().workers if one.worker == "dashboard")


def test_an_address_begins_no_match_and_no_page_frames_one(
    tab: Page, address: str, client: MatchmakerClient, tmp_path: Path
) -> None:
    own = f"{address}/play?first=human&second=constant&rated=yes"
    games = [one.games for one in client.ratings() if one.player.name == "human"]
    sockets, note = list[str](), lambda one: sockets.append(one.url)
    tab.on("websocket", note)
    tab.goto(own)
    tab.wait_for_selector("text=Begin")
    tab.wait_for_function("window.socket?.connected")  # what else a page opens by itself is open
    assert not [url for url in sockets if "/play/" in url]
    foreign = tmp_path / "foreign.html"
    foreign.write_text(f'<iframe src="{own}"></iframe>')
    tab.goto(foreign.as_uri())
    tab.wait_for_selector("iframe")
    (frame,) = tab.frames[1:]
    frame.wait_for_load_state()
    assert not frame.query_selector("form")
    tab.goto("about:blank")
    tab.remove_listener("websocket", note)
    assert not [url for url in sockets if "/play/" in url]
    assert [one.games for one in client.ratings() if one.player.name == "human"] == games


def test_a_click_asks_for_one_match_and_another_gives_it_up(tab: Page, address: str) -> None:
    assert tab.context.browser is not None
    page = new_tab(tab.context.browser)
    page.set_viewport_size({"width": 1366, "height": 768})
    page.clock.install()
    asked, given_up = list[str](), list[str]()

    def load(route: WebSocketRoute) -> None:
        """Never begins the match."""
        asked.append(route.url)
        route.on_close(lambda *_: given_up.append(route.url))

    page.route_web_socket("**/play/socket?*", load)
    page.goto(f"{address}/play")
    page.click(".levels button:has-text('Easy')")
    box = page.locator('[data-play] [role="status"]:has-text("Loading the players")').bounding_box()
    assert box is not None
    assert 0 < box["y"] < box["y"] + box["height"] < 768, "in the picture, and on the screen"
    assert not page.query_selector("text=compiles the game")
    page.clock.fast_forward(10_000)
    page.wait_for_selector('[data-play] [role="status"]:has-text("compiles the game")')
    for _ in range(6):
        page.keyboard.press("Space")  # jumps, and does not press the button again
    page.click(".levels button:has-text('Easy')")
    page.click(".levels button:has-text('Hard')")
    wait_for(lambda: page.title() and len(asked) == 2)
    wait_for(lambda: page.title() and given_up)
    assert given_up == asked[:1]
    page.context.close()


@pytest.mark.long
def test_keys_are_places_of_the_keyboard(page: Page, address: str, run: Path) -> None:
    begin(page, f"{address}/play?first=human&second=constant&rated=no")
    page.evaluate(  # the key of the D in a Russian layout
        """() => document.querySelector("[data-part=screen]").dispatchEvent(new KeyboardEvent(
            "keydown", {key: "в", code: "KeyD", bubbles: true}))"""
    )
    page.wait_for_selector("[data-play][data-over]")
    href = page.get_attribute('[data-part="choices"] a:has-text("replay")', "href")
    assert href is not None
    replay = load_replay(run / "replays" / f"{href.partition('=')[2]}.replay")
    assert replay.actions_T2A[:, 0].any()


def test_levels_are_members_by_rating_and_keys_are_explained(
    page: Page, address: str, client: MatchmakerClient
) -> None:
    page.goto(f"{address}/play")
    page.wait_for_selector(".levels button")
    levels = page.locator(".levels button").all()
    names = [level.get_attribute("value") for level in levels]
    assert [level.inner_text().split()[0] for level in levels] == ["Easy", "Medium", "Hard"]
    ratings = {one.player.name: one.score for one in client.ratings()}
    found = [ratings[name] for name in names if name is not None]
    assert found == sorted(found)
    playable = [name for name in ratings if name not in ("human", "main", "constant")]
    assert names[-1] == max(playable, key=lambda name: ratings[name])
    for words in ("J light", "SPACE jump", "L dash"):
        page.wait_for_selector(f'.keys li:has-text("{words}")')
    page.wait_for_selector("p:has-text('count in the ratings')")


@pytest.mark.long
def test_the_best_of_three_is_fought_after_a_countdown(page: Page, address: str, run: Path) -> None:
    seen = list[str]()

    def note(socket: WebSocket) -> None:
        socket.on("framereceived", lambda text: seen.append(text))

    page.on("websocket", note)
    page.goto(f"{address}/play?first=human&second=constant&rated=no")
    page.wait_for_selector("[data-play]", state="attached")
    page.evaluate(  # presses a key when the countdown begins, which is too early
        """() => new MutationObserver(([change]) => {
            if (change.target.textContent !== "3") return;
            for (const kind of ["keydown", "keyup"])
                document.body.dispatchEvent(
                    new KeyboardEvent(kind, {code: "KeyJ", bubbles: true}));
        }).observe(document.querySelector("[data-part=count]"), {childList: true})"""
    )
    page.click("button:has-text('Begin')")
    page.wait_for_selector("[data-play][data-frame]")
    state = '[data-part="state"]:has-text("{}")'.format
    for words in ("Best of three: 0 to 1", "You lose the best of three, 0 to 2"):
        page.keyboard.down("ArrowLeft")  # off the ground, and down
        page.wait_for_selector(state(words))
        page.keyboard.up("ArrowLeft")
        page.keyboard.press("Enter")
        page.wait_for_selector("[data-play][data-frame]:not([data-over])")
    page.remove_listener("websocket", note)
    messages = [json.loads(text) for text in seen if text.startswith("{")]
    counts = [next(iter(message.values())) for message in messages if "count" in message]
    assert counts[:8] == ["3", "2", "1", "Go!"] * 2
    page.wait_for_selector(state("Best of three: 0 to 0"))  # of the next three, a draw
    href = page.get_attribute('[data-part="choices"] a:has-text("replay")', "href")
    assert href is not None
    replay = load_replay(run / "replays" / f"{href.partition('=')[2]}.replay")
    assert not replay.actions_T2A[:, 0].any()


@pytest.mark.long
def test_a_bot_is_fought_on_a_phone_before_the_evaluator_has_started(
    tab: Page, tmp_path: Path
) -> None:
    run_dir = tmp_path / "run"
    run_dir.mkdir()
    (run_dir / "run.json").write_text(json.dumps({"format": FORMAT}))
    sections = resolve(assignments=["game.match_seconds=4"], environment={})
    write_config(run_dir / "config.toml", sections)
    server = apart(lambda: MatchmakerServer(run_dir / "league.db", 0).__enter__())
    browser = tab.context.browser
    assert browser is not None
    context = browser.new_context(
        viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True
    )
    context.set_default_timeout(1000 * PATIENCE)
    with (
        serving(run_dir) as address,
        contextlib.closing(context),
        MatchmakerClient(server.address) as client,
    ):
        phone = context.new_page()
        phone.goto(f"{address}/play")
        assert client.players() == []
        phone.click(".levels button:has-text('Easy')")
        phone.wait_for_selector("[data-play][data-frame]")
        phone.wait_for_function("document.querySelector('[data-play]').dataset.frame > 5")
        phone.locator(".pad [data-key=d]").dispatch_event("pointerdown")
        still = phone.locator(".pad [data-key=a]").evaluate(COLOUR)
        assert phone.locator(".pad [data-key=d]").evaluate(COLOUR) != still
        phone.wait_for_function("document.querySelector('[data-play]').dataset.frame > 15")
        phone.locator(".pad [data-key=d]").dispatch_event("pointerup")
        assert not phone.is_visible(".keys")
        phone.wait_for_selector("[data-play][data-over]")
        assert "It is rated" in phone.inner_text('[data-part="state"]')
        assert "Enter" not in phone.inner_text('[data-part="again"]')
        phone.evaluate("delete document.querySelector('[data-play]').dataset.over")
        for size, name in (((844, 390), "landscape"), ((390, 844), "portrait")):
            phone.set_viewport_size(dict(zip(("width", "height"), size, strict=True)))
            for is_full in (False, True):
                if is_full:
                    phone.evaluate("document.querySelector('[data-play]').requestFullscreen()")
                    phone.wait_for_function("document.fullscreenElement")
                phone.evaluate("document.querySelector('[data-play]').scrollIntoView()")
                places = phone.locator("[data-play] canvas, .pad button").evaluate_all(BOXES)
                assert len(places) > 8
                for left, top, right, bottom in places:
                    assert -1 <= left < right <= size[0] + 1, (name, is_full, places)
                    assert -1 <= top < bottom <= size[1] + 1, (name, is_full, places)
            phone.evaluate("document.exitFullscreen()")
            phone.wait_for_function("!document.fullscreenElement")
        assert [one.games for one in client.ratings() if one.player.name == "human"] == [1]
    apart(server.__exit__, None, None, None)
    (kept,) = (run_dir / "replays").glob("*.replay")
    names = sections.of(GameSettings).spec().action_names
    assert load_replay(kept).actions_T2A[:, :, names.index("D")].any()


@pytest.mark.skipif(sys.platform != "linux", reason="finds a process in /proc")
def test_a_finished_run_is_shown_and_a_lost_connection_is_said(tab: Page, tmp_path: Path) -> None:
    apart(make_game_run, tmp_path / "run", ["game.name=brawl", "game.match_seconds=60"])
    TokenFile(tmp_path / "run").ensure()  # of a dashboard that other machines reached
    state = '[data-part="state"]:has-text("{}")'.format
    with serving(tmp_path / "run") as address:
        tab.goto(address)
        tab.wait_for_selector("h2:has-text('Highlights')")
        assert not tab.query_selector("[data-live]"), "no match will appear there"
        tab.goto(f"{address}/play")
        tab.wait_for_selector("p:has-text('do not count')")
        opened = f"bin/start-league --run-dir {tmp_path / 'run'}"
        tab.wait_for_selector(f'p code:text-is("{opened}")')
        begin(tab, f"{address}/play?first=human&second=constant&rated=yes")
        tab.wait_for_selector(state("not rated"))
        own = next(int(path.parent.name) for path in Path("/proc").glob("[0-9]*/cmdline")
                   if f"dashboard\0--run-dir\0{tmp_path}" in path.read_text())  # fmt: skip
        os.kill(own, signal.SIGSTOP)
        tab.wait_for_selector(state("does not answer"))
        os.kill(own, signal.SIGCONT)
        tab.wait_for_selector(state("not rated"))
    tab.wait_for_selector(state("connection is lost"))


@pytest.mark.long
def test_a_game_of_cards_is_played_with_the_mouse_and_a_person_may_think_for_long(
    tab: Page, tmp_path: Path
) -> None:
    """Until the matchmaker is gone, which the pages say."""
    run_dir, settings = tmp_path / "run", MatchmakerSettings(game="kuhn")
    apart(make_game_run, run_dir, ["game.name=kuhn"])
    server = apart(lambda: MatchmakerServer(run_dir / "league.db", 0, settings).__enter__())
    with serving(run_dir) as address:
        seen, beats = list[str](), set[float]()

        def note(socket: WebSocket) -> None:
            socket.on("framereceived", lambda text: seen.append(text))

        tab.on("websocket", note)
        begin(tab, f"{address}/play?first=human&second=main@1000&rated=yes")
        with MatchmakerClient(server.address) as client:

            def heard() -> int:
                playing = [o for o in client.status().workers if o.activity == "a person plays"]
                beats.update(one.last_beat_at for one in playing)
                return len(beats)

            wait_for(lambda: heard() == 2)
            assert not tab.query_selector("[data-play][data-over]")
            choose(tab)
            assert [one.games for one in client.ratings() if one.player.name == "human"] == [1]
        tab.click('[data-part="choices"] a:has-text("replay")')
        tab.wait_for_selector('[data-film] [data-part="clock"]:not(:empty)')
        apart(server.__exit__, None, None, None)
        for path in ("/leaderboard", "/"):
            tab.goto(address + path)
            tab.wait_for_selector(".alarm:has-text('matchmaker')")
        tab.remove_listener("websocket", note)
    drawn = [json.loads(text)["frame"] for text in seen if '"frame"' in text and "[" in text]
    cards = [line for frame in drawn if "verdict" not in frame for line in frame["lines"]
             if line[0] == "main@1000"]  # fmt: skip
    assert cards
    assert all("card ?" in line[1] for line in cards)
    (kept,) = (run_dir / "replays").glob("*.replay")
    verify(load_replay(kept))


def test_two_members_fight_while_people_watch(page: Page, address: str) -> None:
    begin(page, f"{address}/play?first=main@2000&second=based")
    page.wait_for_function("document.querySelector('[data-play]')?.dataset.frame > 20")
    assert not page.query_selector_all('[data-part="choices"] button')


@pytest.mark.long
def test_operators_change_a_mix(page: Page, address: str, client: MatchmakerClient) -> None:
    page.goto(f"{address}/mix")
    form = page.locator("form[action='mix']")
    form.locator("[name=opponent]").fill("random")
    for weight, words in (("many", "'many' is no weight"), ("-1", "-1 is no weight")):
        form.locator("[name=weight]").fill(weight)
        form.locator("[name=opponent]").fill("random")
        form.locator("button").click()
        page.wait_for_selector(f'[role="status"]:has-text("{words}")')
    form.locator("[name=opponent]").fill("random")
    form.locator("[name=weight]").fill("2")
    form.locator("button").click()
    page.wait_for_selector('[role="status"]:has-text("has random = 2")')
    (change,) = client.status().changes
    assert (change.weights, change.by) == ({"random": 2.0}, "dashboard")
    page.wait_for_selector(f'tr:has-text("{change.mix}"):has-text("random = 2")')


@pytest.mark.long
def test_operators_pause_the_learners(page: Page, address: str, client: MatchmakerClient) -> None:
    page.goto(f"{address}/mix")
    page.click("button:has-text('Pause')")
    page.wait_for_selector('[role="status"]:has-text("learners hold")')
    assert (pause := client.status().pause) is not None
    assert pause.by == "dashboard"
    page.goto(address)
    page.click("section:has-text('Paused since') a:has-text('resume the learners')")
    page.wait_for_selector("p:has-text('Paused since')")
    page.click("button:has-text('Resume')")
    page.wait_for_selector('[role="status"]:has-text("learners go on")')
    assert client.status().pause is None


def test_only_operators_change_the_league(run: Path, client: MatchmakerClient) -> None:
    import httpx

    TokenFile(run).ensure()
    mix = {"mix": "league", "opponent": "based", "weight": "7"}
    changes = client.status().changes
    with serving(run, "--name", "kumite.test") as address:
        port = address.rpartition(":")[2]
        with httpx.Client(base_url=address, headers={"host": f"kumite.test:{port}"}) as visitor:
            token = (TokenFile(run).folder / "worker.token").read_text().strip()
            assert visitor.post("/pause").status_code == 401
            visitor.post("/login", data={"token": token})
            for path, form in (("/pause", {}), ("/resume", {}), ("/mix", mix)):
                answer = visitor.post(path, data=form)
                assert "token+of+an+operator" in answer.headers["location"]
    assert client.status().pause is None
    assert client.status().changes == changes


def test_operators_ask_for_evaluations(
    page: Page, address: str, client: MatchmakerClient, run: Path
) -> None:
    page.goto(f"{address}/work")
    form = page.locator("form[action='evaluate']")
    form.locator("[name=player]").fill("main@1000")
    form.locator("[name=opponents]").fill("random, based")
    form.locator("[name=count]").fill("8")
    form.locator("button").click()
    page.wait_for_selector("text=is asked for")
    newest = client.evaluations()[-1]
    assert (newest.player, newest.opponents, newest.matches) == (
        "main@1000",
        ("random", "based"),
        8,
    )
    page.goto(f"{address}/work")
    for one in client.report(newest.number).scores:
        counts = f"{one.wins}–{one.draws}–{one.losses}" if one.matches else "none yet"
        page.wait_for_selector(
            f'tr:has-text("{newest.number}"):has-text("{one.opponent} {counts}")'
        )
    form.locator("[name=player]").fill("nobody")
    form.locator("[name=opponents]").fill("random")
    client.request_evaluation("main@1000", ["constant"], 8, by="another")
    page.wait_for_selector('tr:has-text("constant"):has-text("another")')
    assert form.locator("[name=player]").input_value() == "nobody", "the table alone is drawn again"
    form.locator("button").click()
    page.wait_for_selector('[role="status"]:has-text("nobody")')
    (run / "logs").mkdir(exist_ok=True)
    (run / "logs" / "exploit.log").write_text("first line\nsecond line\n")
    page.goto(f"{address}/work")
    page.wait_for_selector("pre")
    assert page.inner_text("pre").splitlines() == ["first line", "second line"]


def test_what_workers_say_stays_text(page: Page, address: str, client: MatchmakerClient) -> None:
    number = client.open_incarnation("learner-main", "main", checkpoint_step=2000).number
    metrics = {f"winrate/{HOSTILE}": 0.5, "rate/steps_per_second": 1.0}
    client.heartbeat(number, 3, 5000, mix=HOSTILE[:70], activity=HOSTILE, metrics=metrics)
    for path in ("/", "/mix", f"/player?name={HOSTILE}", f"/matches?player={HOSTILE}",
                 f"/work?said={HOSTILE}", f"/leaderboard?search={HOSTILE}"):  # fmt: skip
        page.goto(address + path)
        page.wait_for_selector("main section")
        page.wait_for_timeout(300)
        assert page.evaluate("window.harmed") is None
        assert not page.query_selector("main img")
    page.goto(address)
    page.wait_for_selector("text=onerror")


@pytest.fixture
def gate(tmp_path: Path) -> Callable[..., Any]:
    """Requests a page through the gate of an address; returns status and body."""
    import httpx
    from starlette.applications import Starlette
    from starlette.responses import PlainTextResponse
    from starlette.routing import Route

    from league.security.tokens import TokenBook
    from league.views.dashboard.access import Access, Gate

    file = TokenFile(tmp_path)
    tokens = {role.word: text for role, text in file.make().items()}

    async def shown(request: Any) -> PlainTextResponse:
        return PlainTextResponse(request.state.role.word)

    async def visit(
        own: Access, base: str, token: str, method: str, more: dict[str, Any]
    ) -> tuple[int, str]:
        app = Gate(Starlette(routes=[Route("/", shown, methods=["GET", "POST"])]), own)
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url=base) as visitor:
            if token:
                await visitor.post("/login", data={"token": tokens.get(token, token)})
            answer = await visitor.request(method, "/", **more)
        return answer.status_code, answer.text

    def ask(host: str, method: str = "GET", name: str = "", token: str = "", **more: Any) -> Any:
        own = Access(host, None if host == "127.0.0.1" else TokenBook(file))
        base = f"http://{name or host}:8000"
        return apart(lambda: asyncio.run(visit(own, base, token, method, more)))

    return ask


def test_a_loopback_address_is_for_this_machine_alone(gate: Callable[..., Any]) -> None:
    assert gate("127.0.0.1") == (200, "operator")
    assert gate("127.0.0.1", name="localhost") == (200, "operator")
    assert gate("127.0.0.1", "POST", headers={"origin": "http://127.0.0.1:8000"})[0] == 200
    assert gate("127.0.0.1", "POST", headers={"origin": "http://evil.example"})[0] == 403


def test_elsewhere_a_token_of_the_run_is_asked_for(gate: Callable[..., Any]) -> None:
    status, body = gate("192.0.2.1")
    assert status == 401
    assert "token" in body
    assert gate("192.0.2.1", token="read") == (200, "read")
    assert gate("192.0.2.1", token="operator") == (200, "operator")
    assert gate("192.0.2.1", token="wrong")[0] == 401


def test_a_host_without_tokens_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["dashboard", "--address", "127.0.0.1:1", "--host", "192.0.2.1"]
    assert main(words) != 0
    assert re.search("192.0.2.1.*tokens", capsys.readouterr().err)
    words = ["dashboard", "--address", "127.0.0.1:1", "--name", "kumite.example.org"]
    assert main(words) != 0
    assert re.search("kumite.example.org.*tokens", capsys.readouterr().err)
    assert main([*words[:3], "--name", "https://kumite.example.org/"]) != 0
    assert "https://kumite.example.org/" in capsys.readouterr().err
