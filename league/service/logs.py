"""Writes log lines for people or for programs, and a line for slow or failed calls."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Hashable, Mapping
from typing import Any, Literal, TextIO

from league.errors import plain
from league.service.interceptor import Call
from league.service.rate_limiter import peer_host

HUMAN = "%(asctime)s %(levelname)s %(message)s"
SLOW_SECONDS = 1.0
"""A slower call gets a log line, but each method gets at most one line in `LINE_SECONDS`. Even the
longest calls should take only a tenth of `SLOW_SECONDS`.
"""
LINE_SECONDS = 10.0
"""Within this time, all slow calls of a method share a log line. So do all calls that a machine
makes without a valid token. Otherwise, a flood of calls could fill the disk or slow down a busy
service.
"""
MOST_LINES = 1000
_FAILED = ("UNKNOWN", "INTERNAL", "DATA_LOSS")
_STRANGERS = ("UNAUTHENTICATED", "PERMISSION_DENIED")
_log = logging.getLogger("calls")


class Seldom(logging.Filter):
    """Lets each cause pass only once in `LINE_SECONDS`. It also filters log records: the cause of a
    record is the line of code that wrote it.
    """

    def __init__(self) -> None:
        super().__init__()
        self._passed: dict[Hashable, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        return self.is_due((record.pathname, record.lineno))

    def is_due(self, cause: Hashable) -> bool:
        """Returns whether a cause may pass now. If it may, notes the time."""
        now = time.monotonic()
        if now - self._passed.get(cause, -LINE_SECONDS) < LINE_SECONDS:
            return False
        if len(self._passed) >= MOST_LINES:
            self._passed.clear()
        self._passed[cause] = now
        return True


class _Lines(logging.StreamHandler[TextIO]):
    """Marks the handler that `configure` made, so that it can be found again."""


class _Human(logging.Formatter):
    """Formats a record as a single line, even if its message has line breaks. A traceback follows
    on indented lines.
    """

    def formatMessage(self, record: logging.LogRecord) -> str:
        return plain(super().formatMessage(record))

    def formatException(self, ei: Any) -> str:
        return "\n".join(f"  {plain(line)}" for line in super().formatException(ei).splitlines())


def configure(
    form: Literal["human", "json"], stream: TextIO | None = None, *, seldom: bool = False
) -> None:
    """Sends all log records to `stream`, as lines for people or as one JSON object per line.

    Args:
        form: whether to write lines for people or JSON.
        stream: the stream. None means stderr, but then nothing changes if another program (such as
            a test) has already configured logging.
        seldom: whether each line of code may write only one record in `LINE_SECONDS`. Set it for a
            process in which strangers can cause records.
    """
    root = logging.getLogger()
    ours = [handler for handler in root.handlers if isinstance(handler, _Lines)]
    if stream is None and len(ours) < len(root.handlers):
        return
    handler = _Lines(stream or sys.stderr)
    handler.setFormatter(_json() if form == "json" else _Human(HUMAN))
    if seldom:
        handler.addFilter(Seldom())
    for old in ours:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(logging.INFO)


def _json() -> logging.Formatter:
    import structlog  # loads the colours of terminals, which lines for people do not need

    stdlib, processors = structlog.stdlib, structlog.processors
    return stdlib.ProcessorFormatter(
        foreign_pre_chain=[
            stdlib.add_log_level,
            stdlib.add_logger_name,
            processors.TimeStamper(fmt="iso", utc=True, key="time"),
            stdlib.ExtraAdder(),
        ],
        processors=[
            stdlib.ProcessorFormatter.remove_processors_meta,
            processors.format_exc_info,
            processors.EventRenamer("message"),
            processors.JSONRenderer(),
        ],
    )


class CallLog:
    """Observes calls, and writes log lines about them.

    Args:
        every: whether all calls get a line. If not, only three kinds of calls get a line: calls
            that failed by a fault of the service, slow calls, and calls that were refused because
            of their token. Of the last two kinds, each method or peer gets at most one line in
            `LINE_SECONDS`.
        details: function that returns further fields for a call, such as the worker's name.
    """

    def __init__(
        self,
        every: bool,
        details: Callable[[Call], Mapping[str, Any]] = lambda call: {},
    ) -> None:
        self._every, self._details = every, details
        self._seldom = Seldom()

    def __call__(self, call: Call) -> None:
        is_slow = call.seconds >= SLOW_SECONDS and call.reply is not None  # streams have no reply
        is_slow = is_slow and self._seldom.is_due(call.method)
        is_stranger = call.code in _STRANGERS and self._seldom.is_due(peer_host(call.peer))
        is_warning = is_slow or is_stranger or call.code in _FAILED
        if not (self._every or is_warning):
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
        level = logging.WARNING if is_warning else logging.INFO
        _log.log(level, "%s", _sentence(facts), extra=facts)


def _sentence(facts: Mapping[str, Any]) -> str:
    ids = {key: facts.get(key, "") for key in ("worker", "token", "request_id")}
    about = ", ".join(f"{key} {value}" for key, value in ids.items() if value)
    about = f" ({about})" if about else ""
    error = f": {facts['error']}" if "error" in facts else ""
    milliseconds = 1000 * facts["seconds"]
    return (
        f"{facts['method']} from {facts['peer']}: {facts['code']} in {milliseconds:.1f} ms"
        f"{about}{error}"
    )
