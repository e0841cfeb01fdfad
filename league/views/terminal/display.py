"""Where the supervisor shows its state: a live screen, or plain lines."""

from __future__ import annotations

import contextlib
import threading
import time
from abc import ABC, abstractmethod
from typing import TextIO

from rich.console import Console
from rich.live import Live

from league.views.terminal.facts import Note, Screen
from league.views.terminal.lines import progress_lines
from league.views.terminal.panels import view


class Display(ABC):
    """A reader of the supervisor's state. When its terminal closes, it goes silent."""

    @abstractmethod
    def show(self, screen: Screen) -> None:
        """Takes the newest state; may be called many times a second."""

    @abstractmethod
    def add_note(self, note: Note) -> None:
        """Takes an event; any thread may call it."""

    @abstractmethod
    def close(self) -> None:
        """Restores the terminal. Repeating it is safe."""


class LiveDisplay(Display):
    """The whole terminal as one picture, drawn every `seconds`."""

    def __init__(self, console: Console, seconds: float = 1.0) -> None:
        self._console = console
        self._seconds = seconds
        self._drawn_at = 0.0
        self._live = Live(console=console, screen=True, auto_refresh=False)
        self._is_open = True
        self._live.start()

    def show(self, screen: Screen) -> None:
        if not self._is_open or time.monotonic() - self._drawn_at < self._seconds:
            return
        self._drawn_at = time.monotonic()
        width, height = self._console.size
        try:
            self._live.update(view(screen, width, height), refresh=True)
        except OSError:  # the terminal was closed
            self._is_open = False

    def add_note(self, note: Note) -> None:
        self._drawn_at = 0.0  # the next picture, which shows it, is due at once

    def close(self) -> None:
        self._is_open = False
        with contextlib.suppress(OSError):
            self._live.stop()


class LineDisplay(Display):
    """Plain lines: each event as it comes, and the state every `seconds` if it has changed."""

    def __init__(self, stream: TextIO, seconds: float = 10.0) -> None:
        self._stream: TextIO | None = stream
        self._seconds = seconds
        self._said_at = time.monotonic()
        self._last: tuple[str, ...] = ()
        self._lock = threading.Lock()

    def show(self, screen: Screen) -> None:
        if time.monotonic() - self._said_at < self._seconds:
            return
        self._said_at = time.monotonic()
        lines = progress_lines(screen)
        for line in lines:
            if line not in self._last:
                self._write(screen.now, line)
        self._last = lines

    def add_note(self, note: Note) -> None:
        self._write(note.at, note.text)

    def close(self) -> None:
        pass

    def _write(self, at: float, text: str) -> None:
        clock = time.strftime("%H:%M:%S", time.localtime(at))
        with self._lock:
            if self._stream is None:
                return
            try:
                print(clock, text, file=self._stream, flush=True)
            except OSError:  # the reader of a pipe has ended; training continues
                self._stream = None
