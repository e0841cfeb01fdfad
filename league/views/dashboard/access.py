"""Decides who may view the pages and who may operate them. If visitors need a token, the token's
role decides. Otherwise only this machine can reach the pages, and every visitor may view and
operate them.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import parse_qs

from markupsafe import Markup
from starlette.requests import HTTPConnection
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from league.security.roles import AccessRole
from league.security.settings import is_loopback
from league.security.tokens import TokenBook

COOKIE = "kumite_token"
LOGIN = "/login"
HEADERS = [
    (
        "content-security-policy",
        "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; "
        "script-src-attr 'none'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
        "object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    ),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "same-origin"),
]
"""Headers of every response. Other sites may not show a page in a frame, and a page loads nothing
from other sites. Inline scripts and `eval` are allowed because Vue and NiceGUI need them.
"""
FORM = Markup(
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Kumite</title>'
    '<meta name="viewport" content="width=device-width, initial-scale=1">'
    "<style>body{{font:16px system-ui;max-width:28rem;margin:4rem auto;padding:0 1rem}}"
    "input,button{{font:inherit;padding:.4rem;width:100%;margin:.4rem 0}}</style></head><body>"
    "<h1>Kumite</h1><p>{}</p><form method=post action={}><label>A token of the run "
    "(the text of a file in its folder <code>tokens</code>)"
    "<input name=token type=password autocomplete=off></label>"
    "<button>Look</button></form></body></html>"
)


@dataclass(frozen=True)
class Access:
    """Decides who may reach the pages.

    Attributes:
        host: the address that the dashboard listens on.
        book: the run's tokens, or None if visitors need no token.
        names: names under which proxies serve the pages, as HOST or HOST:PORT.
    """

    host: str
    book: TokenBook | None = None
    names: tuple[str, ...] = ()

    @property
    def hosts(self) -> list[str]:
        """Returns the Host headers to which the dashboard responds.

        The list prevents DNS rebinding. In this attack, another web site points its own name at
        this machine. Its pages, opened in a browser on this machine, can then send requests to the
        dashboard. A dashboard that serves only this machine may have no tokens. Then only this list
        stops such requests.
        """
        if not is_loopback(self.host):
            return ["*"]
        hosts = [self.host, "localhost", "127.0.0.1", "[::1]"]
        return hosts + [name.partition(":")[0] for name in self.names]

    def role(self, token: str) -> AccessRole:
        """Returns the role that a token grants."""
        if self.book is None:
            return AccessRole.OPERATOR
        entry = self.book.find(token) if token else None
        return AccessRole.NONE if entry is None else entry.access

    def is_own(self, origin: str | None, host: str) -> bool:
        """Returns whether a request comes from a page of the dashboard or from no page at all,
        according to its headers Origin and Host.
        """
        return not origin or origin.partition("://")[2] in (host, *self.names)


class Gate:
    """Refuses visitors who lack a required token, and requests from pages of other sites."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app, self._access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        asked = HTTPConnection(scope)
        role = self._access.role(asked.cookies.get(COOKIE, ""))
        answer: ASGIApp = self._app
        if not self._access.is_own(asked.headers.get("origin"), asked.headers.get("host", "")):
            answer = HTMLResponse("<p>This page may not ask the dashboard.</p>", 403)
        elif scope["path"] == LOGIN and scope["type"] == "http":
            answer = await self._login(scope, receive)
        elif role < AccessRole.READ:
            answer = _form(scope, "This league wants to know who looks.")
        else:
            scope["state"] = {**scope.get("state", {}), "role": role}
        await answer(scope, receive, send)

    async def _login(self, scope: Scope, receive: Receive) -> Response:
        body = b""
        while scope["method"] == "POST" and len(body) < 4096:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        token = parse_qs(body.decode("latin-1")).get("token", [""])[0].strip()
        if self._access.role(token) < AccessRole.READ:
            return _form(scope, "There is no such token." if token else "")
        answer = RedirectResponse("./", 303)
        # without a path, the cookie applies to the folder of the pages, even under a proxy's prefix
        is_secure = scope["scheme"] == "https"
        answer.set_cookie(
            COOKIE, token, path=None, secure=is_secure, httponly=True, samesite="strict"
        )
        return answer


def _form(scope: Scope, words: str) -> Response:
    """Returns a page that asks for a token. The form's address is relative, because a proxy may add
    a prefix.
    """
    target = "../" * (scope["path"].count("/") - 1) + LOGIN[1:]
    return HTMLResponse(FORM.format(words, target), 401)
