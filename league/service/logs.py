"""Log lines for people or for programs, and a line for calls that are slow, fail or are to be
seen.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, Literal, TextIO

from league.service.calls import Call
from league.service.rates import peer_host

HUMAN = "%(asctime)s %(levelname)s %(message)s"
STRANGER_SECONDS = 10.0
MOST_HOSTS = 1000
_BROKEN = ("UNKNOWN", "INTERNAL", "DATA_LOSS")
_STRANGERS = ("UNAUTHENTICATED", "PERMISSION_DENIED")
_log = logging.getLogger("calls")


class _Lines(logging.StreamHandler[TextIO]):
    """The handler that `configure` made, so that it finds it again."""


def configure(form: Literal["human", "json"], stream: TextIO | None = None) -> None:
    """Sends all that is logged to `stream`, as lines for people or one JSON object a line; again
    changes it.

    Without `stream` it is stderr, where nobody else (a test, a program that embeds us) has seen to
    logging.
    """
    root = logging.getLogger()
    ours = [handler for handler in root.handlers if isinstance(handler, _Lines)]
    if stream is None and len(ours) < len(root.handlers):
        return
    handler = _Lines(stream or sys.stderr)
    handler.setFormatter(_json() if form == "json" else logging.Formatter(HUMAN))
    for old in ours:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(logging.INFO)


def _json() -> logging.Formatter:
    import structlog  # it loads a terminal's colours, which people's lines do without

    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[
            structlog.stdlib.add_log_level,
            structlog.stdlib.add_logger_name,
            structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
            structlog.stdlib.ExtraAdder(),
        ],
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.format_exc_info,
            structlog.processors.EventRenamer("message"),
            structlog.processors.JSONRenderer(),
        ],
    )


class CallLog:
    """An observer that writes one line for a call.

    Args:
        every: whether all calls get one; else only slow ones, those that failed inside, and now and
        then
            those of machines whose token is missing, unknown or too weak.
        slow_seconds: from when on a call is slow (streams are never).
        details: what a request says of its sender, such as the worker's name.
    """

    def __init__(
        self,
        every: bool,
        slow_seconds: float,
        details: Callable[[Call], Mapping[str, Any]] = lambda call: {},
    ) -> None:
        self._every, self._slow, self._details = every, slow_seconds, details
        self._told: dict[str, float] = {}

    def __call__(self, call: Call) -> None:
        is_slow = call.seconds >= self._slow and call.reply is not None
        has_broken = call.code in _BROKEN
        is_stranger = call.code in _STRANGERS and self._first_of(call.peer)
        if not (self._every or is_slow or has_broken or is_stranger):
            return
        facts = {
            "method": call.method,
            "code": call.code,
            "seconds": round(call.seconds, 6),
            "peer": call.peer,
            "token": call.caller.name if call.caller else "",
            "request_id": str(getattr(call.request, "request_id", ""))[:80],
            **self._details(call),
        }
        if call.error is not None:
            facts["error"] = str(call.error)[:500]
        level = logging.WARNING if is_slow or has_broken or is_stranger else logging.INFO
        _log.log(level, "%s", _sentence(facts), extra=facts)

    def _first_of(self, peer: str) -> bool:
        """Whether no line was written for this machine lately: strangers must not fill the disk."""
        host, now = peer_host(peer), time.monotonic()
        if now - self._told.get(host, -STRANGER_SECONDS) < STRANGER_SECONDS:
            return False
        if len(self._told) >= MOST_HOSTS:
            self._told.clear()
        self._told[host] = now
        return True


def _sentence(facts: Mapping[str, Any]) -> str:
    said = {key: facts.get(key, "") for key in ("worker", "token", "request_id")}
    about = ", ".join(f"{key} {value}" for key, value in said.items() if value)
    error = f": {facts['error']}" if "error" in facts else ""
    took = f"{1000 * facts['seconds']:.1f} ms"
    about = f" ({about})" if about else ""
    return f"{facts['method']} from {facts['peer']}: {facts['code']} in {took}{about}{error}"
