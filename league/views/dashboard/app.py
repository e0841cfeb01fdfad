"""Serves the pages.

A page's function returns blocks, which are pieces of HTML and charts. When the blocks change,
NiceGUI updates the browser. The menu is part of the HTML, so a browser paints it before it has run
any script.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
import socket
import time
from collections.abc import Callable, Iterable, Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Annotated, Any, NamedTuple
from urllib.parse import parse_qsl

from fastapi import Form, Request, Response, WebSocket
from fastapi.responses import HTMLResponse, PlainTextResponse, RedirectResponse
from markupsafe import Markup
from nicegui import app, core, ui
from nicegui.events import GenericEventArguments
from starlette.middleware.trustedhost import TrustedHostMiddleware

from league.errors import LeagueError, NotFound
from league.games.drawing.painter import DRAW_JS
from league.security.roles import AccessRole
from league.views.dashboard import live
from league.views.dashboard.access import HEADERS, Access, Gate
from league.views.dashboard.arena import WORKER, Arena
from league.views.dashboard.blocks import Block, Chart, Filters, address
from league.views.dashboard.connections import BACKLOG, BrowserConnection
from league.views.dashboard.pages import (
    curves,
    lineage,
    matches,
    mix,
    now,
    payoffs,
    play,
    standings,
    work,
)
from league.views.dashboard.replays import film_of
from league.views.dashboard.source import Source
from league.views.html import joined, section, text
from league.views.leaderboard import FORMATS, gather

FIRST_SECONDS = 0.25
"""How long a page waits for its blocks before it is sent with those that are there. The others
follow.
"""
RESPONSE_SECONDS = 60.0
"""How long a page may take to answer. While a game is compiled, everything else hardly runs."""
MOST_QUERY = 4000
"""Largest length of the parameters that a browser sends."""


Show = Callable[[Source, Mapping[str, str]], Iterable[Block]]


class Shown(NamedTuple):
    """Describes a page: its title, the function that makes its blocks, the seconds between two
    updates, and whether the menu lists it.

    A function that reads for more than a moment yields its blocks, the fastest first.
    """

    title: str
    show: Show
    seconds: float
    is_listed: bool = True


PAGES = {
    "/": Shown("Now", now.show, 2.0),
    "/leaderboard": Shown("Leaderboard", standings.show, 5.0),
    "/player": Shown("Player", standings.show_player, 5.0, is_listed=False),
    "/compare": Shown("Comparison", standings.show_comparison, 5.0, is_listed=False),
    "/curves": Shown("Curves", curves.show, 10.0),
    "/payoffs": Shown("Who beats whom", payoffs.show, 10.0),
    "/lineage": Shown("Lineage", lineage.show, 5.0),
    "/matches": Shown("Matches", matches.show, 5.0),
    "/match": Shown("Match", matches.show_match, 60.0, is_listed=False),
    "/mix": Shown("Opponent mix", mix.show, 5.0),
    "/play": Shown("Play", play.show, 60.0),
    "/work": Shown("Evaluate", work.show, 3.0),
}
"""Pages by path."""
FAILURES = {
    404: "There is no such page.",
    500: "The dashboard failed here. Load the page again, or see logs/dashboard.log of the run.",
}
"""What the dashboard says when a request fails, by HTTP status."""


def serve(source: Source, access: Access, listening: socket.socket) -> None:
    """Serves the league on a listening socket, until SIGTERM or Ctrl-C."""
    for path in PAGES:
        _add_page(source, path)
    _add_files(source)
    app.add_middleware(Gate, access=access)
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=access.hosts, www_redirect=False)
    for status, words in FAILURES.items():
        app.add_exception_handler(status, _failed(source, status, words))
    core.sio.eio.cors_allowed_origins = []  # the gate refuses other origins
    for library in ("engineio.server", "socketio.server"):
        logging.getLogger(
            library
        ).handlers.clear()  # their handlers would log untrusted text unchanged
    host, port = listening.getsockname()[:2]
    ui.run(
        host=host,
        port=port,
        fd=listening.fileno(),
        title="Kumite",
        favicon="🥋",
        show=False,
        reload=False,
        show_welcome_message=False,
        uvicorn_logging_level="error",
        log_config=None,
        http=BrowserConnection,
        headers=HEADERS,
        backlog=BACKLOG,
        dark=None,
        tailwind=False,  # its compiler of styles would run in the browser
    )


def _failed(source: Source, status: int, words: str) -> Callable[[Request, Exception], Response]:
    """Returns a handler of requests that fail. It answers with a page that has the menu, or with
    plain text if the request does not ask for a page, as those of scripts don't.
    """

    def handle(request: Request, error: Exception) -> Response:
        if "text/html" not in request.headers.get("accept", ""):
            return PlainTextResponse(words, status)
        body = Markup('<div class="content">{}</div>').format(section(f"Error {status}", words))
        menu = _header(source, "", "../" * (request.scope["path"].count("/") - 1))
        return HTMLResponse(f"{_FAILURE_HEAD}{menu}{body}", status)

    return handle


def _add_page(source: Source, path: str) -> None:
    shown = PAGES[path]

    async def page(request: Request) -> None:
        parameters = dict(request.query_params)
        ui.add_head_html(_HEAD)
        ui.page_title(f"{shown.title} · {source.title}")
        ui.add_body_html(f'<div class="bar-top">{_header(source, path)}</div>')
        with ui.element("div").classes("content").props('id="main"'):
            view = View(shown.show, source, parameters)
            is_shown = await view.begin()
        ui.timer(shown.seconds, view.refresh, immediate=not is_shown)

    ui.page(path, response_timeout=RESPONSE_SECONDS)(page)


def _add_files(source: Source) -> None:
    """Adds routes for films, scripts, downloads and operators' requests."""

    @app.get("/film/{match_id}")
    def _film(match_id: str) -> Response:
        try:
            film = film_of(source, match_id)
        except LeagueError as error:
            return PlainTextResponse(str(error), 422)
        if film is None:
            return PlainTextResponse("no replay is kept of this match", 404)
        content = gzip.compress(json.dumps(film, separators=(",", ":")).encode(), 5)
        headers = {"content-encoding": "gzip"}
        return Response(content, media_type="application/json", headers=headers)

    @app.get("/live")
    def _live() -> dict[str, Any]:
        newest = source.shown()
        if newest is None:
            return {}
        return {"match": newest.match_id, "names": newest.names, "at": newest.at}

    @app.get("/download/leaderboard.{kind}")
    def _leaderboard(kind: str) -> Response:
        if kind not in FORMATS:
            return PlainTextResponse(f"there is no leaderboard as {kind[:20]}", 404)
        board = gather(source.client, title=source.title, now=time.time())
        name = f'attachment; filename="leaderboard.{kind}"'
        return Response(
            FORMATS[kind](board), media_type="text/plain", headers={"content-disposition": name}
        )

    @app.post("/evaluate")
    def _evaluate(
        request: Request,
        player: Annotated[str, Form()] = "",
        opponents: Annotated[str, Form()] = "",
        count: Annotated[str, Form()] = "",
    ) -> Response:
        names = [name.strip() for name in opponents.split(",") if name.strip()]
        matches = int(count) if count.isdecimal() and len(count) < 8 else 0
        ask = source.client.request_evaluation

        def act() -> str:
            evaluation = ask(player.strip(), names, matches, by=WORKER)
            return f"Evaluation {evaluation.number} is asked for."

        return _answered(request, act)

    @app.post("/exploit")
    def _exploit(
        request: Request,
        player: Annotated[str, Form()] = "",
        steps: Annotated[str, Form()] = "",
    ) -> Response:
        def act() -> str:
            victim = source.player(player.strip())
            source.exploiting.start(victim.name, int(steps) if steps in work.STEPS else 100_000)
            return f"An exploiter is trained against {victim.name}."

        return _answered(request, act)

    @app.post("/mix")
    def _mix(
        request: Request,
        mix: Annotated[str, Form()] = "",
        opponent: Annotated[str, Form()] = "",
        weight: Annotated[str, Form()] = "",
    ) -> Response:
        def act() -> str:
            try:
                weights = {opponent.strip(): float(weight)}
            except ValueError:
                return f"{weight[:20]!r} is no weight: give a number from 0."
            change = source.client.set_mix(mix.strip(), weights, by=WORKER)
            return f"The mix {change.mix} has {change.words} from the next draw on."

        return _answered(request, act, "/mix")

    @app.post("/pause")
    def _pause(request: Request) -> Response:
        def act() -> str:
            source.client.pause_learners(WORKER)
            return "The learners hold before their next rollouts."

        return _answered(request, act, "/mix")

    @app.post("/resume")
    def _resume(request: Request) -> Response:
        def act() -> str:
            source.client.pause_learners(WORKER, resume=True)
            return "The learners go on."

        return _answered(request, act, "/mix")

    arena = Arena(source)

    @app.websocket("/play/socket")
    async def _play(socket: WebSocket) -> None:
        await live.play(socket, arena)

    for script in SCRIPTS:
        _add_script(script)


def _answered(request: Request, act: Callable[[], str], page: str = "/work") -> Response:
    """Carries out an operator's request, and redirects to a page that shows the outcome."""
    if request.state.role < AccessRole.OPERATOR:
        message = "This needs a token of an operator."
    else:
        try:
            message = act()
        except LeagueError as error:
            message = str(error)
    return RedirectResponse(address(page, said=message), 303)


def _add_script(path: Traversable) -> None:
    content = path.read_text(encoding="utf-8")
    app.get(f"/scripts/{path.name}")(
        lambda: Response(content, media_type="text/javascript; charset=utf-8")
    )


def _header(source: Source, path: str, root: str = "") -> Markup:
    """Returns the menu. `root` is the relative address of the front page's folder."""
    items = joined(
        Markup('<li><a href="{}"{}>{}</a></li>').format(
            root + address(target),
            Markup(' aria-current="page"') if target == path else "",
            shown.title,
        )
        for target, shown in PAGES.items()
        if shown.is_listed
    )
    return Markup(
        '<header><a class="skip" href="#main">Skip to the content</a><b>Kumite</b> <span>{}</span>'
        "<nav><ul>{}</ul></nav></header>"
    ).format(text(source.title), items)


class View:
    """Shows the blocks of a page in a browser, and sends changes."""

    def __init__(
        self,
        show: Show,
        source: Source,
        parameters: Mapping[str, str],
    ) -> None:
        self._show, self._source, self._parameters = show, source, parameters
        self._holder = ui.element("div").classes("blocks")
        for kind in ("click", "input"):
            self._holder.on(kind, self._choose, throttle=0.3, js_handler=_CHOOSE)
        self._shown: list[Block] = []
        self._elements: list[Any] = []
        self._reading: asyncio.Task[list[Block]] | None = None

    async def begin(self) -> bool:
        """Shows the blocks that can be read within `FIRST_SECONDS`. If there are more, it shows a
        note that they are being read, because a browser must not wait long for the page.

        Returns:
            Whether all blocks are shown.
        """
        read: list[Block] = []
        self._reading = asyncio.create_task(asyncio.to_thread(self._read, read))
        await asyncio.wait({self._reading}, timeout=FIRST_SECONDS)
        is_read = self._reading.done()
        if is_read:
            await self.refresh()
        else:
            self._put([*read, section("Reading…", words="This takes a few seconds.")])
        return is_read

    async def refresh(self) -> None:
        """Reads the blocks again and sends changes."""
        if self._reading is None:
            self._reading = asyncio.create_task(asyncio.to_thread(self._read, []))
        reading = self._reading
        blocks = await reading
        if reading is self._reading:  # else other parameters were chosen meanwhile
            self._reading = None
            self._put(blocks)

    async def _choose(self, event: GenericEventArguments) -> None:
        """Shows the page with other parameters, which the browser sends as a query string."""
        self._parameters = dict(parse_qsl(str(event.args)[:MOST_QUERY]))
        self._reading = None
        await self.refresh()

    def _put(self, blocks: list[Block]) -> None:
        same = 0
        for old, new in zip(self._shown, blocks, strict=False):
            if _shape(old) != _shape(new):
                break
            if old != new and not isinstance(new, Filters):
                _update(self._elements[same], new)
            same += 1
        for _ in self._shown[same:]:
            self._elements.pop()
            self._holder.remove(same)
        with self._holder:
            self._elements += map(_element, blocks[same:])
        self._shown = blocks

    def _read(self, blocks: list[Block]) -> list[Block]:
        """Adds the page's blocks to `blocks`, one by one, and returns it."""
        try:
            for block in self._show(self._source, self._parameters):
                blocks.append(block)
        except LeagueError as error:
            heading = "Not found" if isinstance(error, NotFound) else "The league can't be shown"
            alarm = Markup('<p class="alarm">{}</p>').format(text(str(error)))
            blocks.append(section(heading, alarm))
        return blocks


def _shape(block: Block) -> object:
    return block.title if isinstance(block, Chart) else type(block)


def _element(block: Block) -> Any:
    if not isinstance(block, Chart):
        return ui.html(block, sanitize=False)
    kinds = ["chart", *["wide-chart"] * block.wide, *["themed"] * (not block.painted)]
    with ui.element("section").classes(" ".join(kinds)) as holder:
        ui.html(Markup("<h2>{}</h2><p>{}</p>").format(block.title, block.words), sanitize=False)
        chart = ui.echart(dict(block.options), renderer="svg").style(f"height:{block.height}px")
        if block.wide:  # on a phone the chart scrolls
            holder.props.update({"tabindex": "0", "role": "region", "aria-label": block.title})
        chart.props["role"], chart.props["aria-label"] = "img", block.title
        chart.classes(*["timed"] * block.timed)
    return chart


def _update(element: Any, block: Block) -> None:
    if isinstance(block, Chart):
        element.options.clear()
        element.options.update(block.options)
        element.update()
    else:
        element.set_content(block)


_CHOOSE = "(event) => { const query = chosen(event); if (query !== null) emit(query); }"
HERE = files("league.views.dashboard") / "static"
SCRIPTS = (DRAW_JS, files("league.views.film") / "player.js", HERE / "viewer.js", HERE / "play.js")
_STYLE = (HERE / "dashboard.css").read_text(encoding="utf-8")
_SCRIPTS = "".join(f'<script defer src="scripts/{script.name}"></script>' for script in SCRIPTS)
_HEAD = f"<style>{_STYLE}</style>{_SCRIPTS}<script>document.documentElement.lang = 'en'</script>"
_FAILURE_HEAD = (
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Kumite</title><meta '
    f'name="viewport" content="width=device-width, initial-scale=1"><style>{_STYLE}'
    "* { box-sizing:border-box; } body { margin:0; }</style></head>"
    '<body><script>if (matchMedia("(prefers-color-scheme: dark)").matches) '
    'document.body.classList.add("body--dark")</script>'
)
