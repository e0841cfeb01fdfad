"""Plays a match over a websocket. The server sends frames, and the browser sends keys.

The browser sends `{"keys": [0 or 1, ...]}` when a key changes, or `{"choice": number}`. It receives
`begin` once, then the `count` messages of a countdown if a person plays with keys, and then each
`frame`, with `choices` if the person has to choose. At the end it receives `end`, the outcome in
words.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import numpy as np
from fastapi import WebSocket, WebSocketDisconnect

from league.errors import LeagueError, Refused
from league.games.drawing import drawable, still_part, verdict
from league.security.roles import AccessRole
from league.views.dashboard.arena import BEAT_SECONDS, MOST_WAITING, Arena, LiveMatch

CHOICE_SECONDS = 0.6
"""Time between two choices of other players, so that people can see each choice."""
COUNTDOWN = ("3", "2", "1")
COUNT_SECONDS = 0.7
"""Time between two words of the countdown."""
LATEST_SECONDS = 0.25
"""Largest delay of a match, compared with real time, that the match makes up for. It does not make
up for any further delay.
"""


class Player:
    """Holds a person's keys and choices, as the browser sends them."""

    def __init__(self, width: int) -> None:
        self.held_A = np.zeros(width, np.uint8)
        self._tapped_A = self.held_A.copy()
        self._chosen: asyncio.Queue[int] = asyncio.Queue(4)

    def take(self, text: str) -> None:
        """Handles a message. Malformed messages are ignored."""
        try:
            message = json.loads(text)
            keys, number = message.get("keys"), message.get("choice")
        except (ValueError, AttributeError, RecursionError):
            return
        if isinstance(keys, list) and len(keys) == len(self.held_A):
            self.held_A[:] = [key == 1 for key in keys]
            self._tapped_A |= self.held_A
        if type(number) is int and not self._chosen.full():
            self._chosen.put_nowait(number)

    def keys(self) -> np.ndarray[Any, np.dtype[np.uint8]]:
        """Returns the keys that are held now or were pressed since the last frame."""
        found_A = self.held_A | self._tapped_A
        self._tapped_A[:] = 0
        return found_A

    async def choice(self, among: dict[int, str]) -> np.ndarray[Any, np.dtype[np.uint8]]:
        """Waits for a choice in `among`, and returns it one-hot."""
        while (number := await self._chosen.get()) not in among:
            pass
        chosen_A = np.zeros(len(self.held_A), np.uint8)
        chosen_A[number] = 1
        return chosen_A


async def play(socket: WebSocket, arena: Arena) -> None:
    """Plays the match that the address describes, until it ends or the browser disconnects."""
    await socket.accept()
    asked = socket.query_params
    may_rate = socket.state.role >= AccessRole.WORKER
    wants_rating = asked.get("rated") == "yes"
    names = asked.get("first", ""), asked.get("second", "")
    is_rated = wants_rating and may_rate
    listener: asyncio.Task[None] | None = None
    match: LiveMatch | None = None
    try:
        spec = await asyncio.to_thread(lambda: arena.settings().spec())
        person = Player(spec.action_size)
        listener = asyncio.create_task(_listen(socket, person))
        async with _turn(arena, listener):
            if listener.done():  # the browser has left, or its page has asked for another match
                return
            match = await _begin(arena, names, is_rated=is_rated)
    except LeagueError as error:
        with suppress(WebSocketDisconnect):
            await socket.send_json({"problem": str(error)})
            await socket.close()
        return
    finally:
        if match is None and listener is not None:
            listener.cancel()
            await asyncio.gather(listener, return_exceptions=True)
    if wants_rating and not may_rate and match.person is not None:
        match.verdict = "It is not rated: your token only reads."
    run = asyncio.create_task(_run(socket, match, person))
    beats = asyncio.create_task(_beat(match.beat))
    try:
        await asyncio.wait({listener, run}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (listener, run, beats):
            task.cancel()
        await asyncio.gather(listener, run, beats, return_exceptions=True)
        await asyncio.to_thread(match.close)


@asynccontextmanager
async def _turn(arena: Arena, listener: asyncio.Task[None]) -> AsyncIterator[None]:
    """Waits until no other match loads. Raises `Refused` if too many browsers wait already."""
    if sum(not one.done() for one in arena.waiting) >= MOST_WAITING:
        raise Refused(f"{MOST_WAITING} matches wait to be loaded already: try again in a minute.")
    arena.waiting.add(listener)
    try:
        await arena.loading.acquire()
    finally:
        arena.waiting.discard(listener)
    try:
        yield
    finally:
        arena.loading.release()


async def _begin(arena: Arena, names: tuple[str, str], *, is_rated: bool) -> LiveMatch:
    """Begins a match, with heartbeats meanwhile. A first match may wait for the compiler, and a
    worker without heartbeats counts as hanging.
    """
    beats = asyncio.create_task(_beat(lambda: arena.beat(0)))
    try:
        return await asyncio.to_thread(arena.begin, names, is_rated=is_rated)
    finally:
        beats.cancel()


async def _beat(beat: Callable[[], None]) -> None:
    while True:
        with suppress(LeagueError):  # an error will show when the match reports its outcome
            await asyncio.to_thread(beat)
        await asyncio.sleep(BEAT_SECONDS)


async def _listen(socket: WebSocket, person: Player) -> None:
    try:
        while True:
            person.take(await socket.receive_text())
    except (WebSocketDisconnect, KeyError, RuntimeError):
        return


async def _run(socket: WebSocket, match: LiveMatch, person: Player) -> None:
    first = match.frame()
    keys = [] if match.person is None or match.is_choice else _keys(match)
    await socket.send_json(
        {
            "begin": {
                "still": still_part(first),
                "names": match.names,
                "keys": keys,
                "words": match.spec.action_words,
                "person": match.person,
            },
            "note": match.verdict,
        }
    )
    if keys:
        await socket.send_json({"frame": drawable(first, match.names)})
        for word in COUNTDOWN:
            await socket.send_json({"count": word})
            await asyncio.sleep(COUNT_SECONDS)
        await socket.send_json({"count": "Go!"})
        person.keys()  # discards keys that were pressed before
    loop = asyncio.get_running_loop()
    period = CHOICE_SECONDS if match.is_choice else 1.0 / match.spec.frames_per_second
    due, frame = loop.time(), drawable(first, match.names)
    while not match.is_over:
        choices = match.choices()
        await socket.send_json({"frame": frame, "choices": choices})
        due = max(due + period, loop.time() - LATEST_SECONDS)
        await asyncio.sleep(max(0.0, due - loop.time()))
        done_A = await person.choice(choices) if choices else person.keys()
        try:
            await asyncio.to_thread(match.advance, done_A)
        except LeagueError as error:
            await socket.send_json({"problem": str(error)})
            return
        if not match.is_over:
            frame = drawable(match.frame(), match.names)
    over = verdict(match.names, match.winner())
    end = match.game.final_frame(0)
    if end is not None:
        frame = drawable(end, match.names)
    await socket.send_json({"frame": frame | {"verdict": over}})
    message = f"{over['text']}. {match.verdict}".strip()
    await socket.send_json({"end": message, "winner": match.winner(), "replay": match.replay})


def _keys(match: LiveMatch) -> list[str]:
    """Returns the keyboard key for each key of the game. If all of the game's keys are named after
    letters or the space bar, these are the keyboard keys. Otherwise the keyboard keys are digits.
    """
    names = match.spec.action_names
    if all(len(name) == 1 or name == "space" for name in names):
        return [" " if name == "space" else name.lower() for name in names]
    return [str((number + 1) % 10) for number in range(len(names))][:10]
