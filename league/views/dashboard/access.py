"""Who may look and who may operate: this machine's users, and elsewhere the bearers of a token."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass
from http.cookies import SimpleCookie
from typing import Any
from urllib.parse import parse_qs

from markupsafe import Markup

from league.security.roles import AccessRole
from league.security.settings import is_loopback
from league.security.tokens import TokenBook

COOKIE = "kumite_token"
LOGIN = "/login"
Scope = MutableMapping[str, Any]
App = Callable[
    [Scope, Callable[..., Awaitable[Any]], Callable[..., Awaitable[Any]]], Awaitable[None]
]
FORM = Markup(
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Kumite</title>'
    '<meta name="viewport" content="width=device-width, initial-scale=1">'
    "<style>body{{font:16px system-ui;max-width:28rem;margin:4rem auto;padding:0 1rem}}"
    "input,button{{font:inherit;padding:.4rem;width:100%;margin:.4rem 0}}</style></head><body>"
    "<h1>Kumite</h1><p>{}</p><form method=post action=/login><label>A token of the run "
    "(the text of a file in its folder <code>tokens</code>)"
    "<input name=token type=password autocomplete=off></label>"
    "<button>Look</button></form></body></html>"
)


@dataclass(frozen=True)
class Access:
    """Who reaches the pages on `host`. `book` holds the run's tokens, None where none is needed."""

    host: str
    book: TokenBook | None = None

    def role(self, token: str) -> AccessRole:
        """What the bearer of a token may do."""
        if self.book is None:
            return AccessRole.OPERATOR
        found = self.book.find(token) if token else None
        return AccessRole.NONE if found is None else found.access


class Gate:
    """Refuses visitors without a token where one is needed, and requests of other sites.

    A name that another site has pointed at this machine is refused on a loopback address, and so
    are other origins' forms and websockets everywhere.
    """

    def __init__(self, app: App, access: Access) -> None:
        self._app, self._access = app, access

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        if not self._is_own(scope, headers):
            await _answer(scope, send, 403, Markup("<p>This is no address of the dashboard.</p>"))
            return
        cookie = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
        role = self._access.role(cookie.value if cookie else "")
        if scope["path"] == LOGIN and scope["type"] == "http":
            await self._login(scope, receive, send)
        elif role < AccessRole.READ:
            await _answer(scope, send, 401, FORM.format("This league wants to know who looks."))
        else:
            scope["state"] = {**scope.get("state", {}), "role": role}
            await self._app(scope, receive, send)

    def _is_own(self, scope: Scope, headers: Mapping[str, str]) -> bool:
        host, origin = headers.get("host", ""), headers.get("origin", "")
        if is_loopback(self._access.host) and not is_loopback(host.rpartition(":")[0] or host):
            return False
        is_safe = scope["type"] == "http" and scope["method"] in ("GET", "HEAD")
        return is_safe or not origin or origin.partition("://")[2] == host

    async def _login(self, scope: Scope, receive: Any, send: Any) -> None:
        body = b""
        while scope["method"] == "POST" and len(body) < 4096:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        token = parse_qs(body.decode("latin-1")).get("token", [""])[0].strip()
        if self._access.role(token) < AccessRole.READ:
            await _answer(scope, send, 401, FORM.format("There is no such token." if token else ""))
            return
        cookie = f"{COOKIE}={token}; HttpOnly; SameSite=Strict; Path=/"
        headers = [(b"location", b"/"), (b"set-cookie", cookie.encode("latin-1"))]
        await _answer(scope, send, 303, Markup(""), headers)


async def _answer(
    scope: Scope,
    send: Any,
    status: int,
    body: Markup,
    headers: list[tuple[bytes, bytes]] | None = None,
) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008})
        return
    kind = (b"content-type", b"text/html; charset=utf-8")
    await send(
        {"type": "http.response.start", "status": status, "headers": [kind, *(headers or [])]}
    )
    await send({"type": "http.response.body", "body": body.encode()})
