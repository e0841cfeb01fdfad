"""Runs the worker process of `ai2:FOLDER`, which hosts matches in the original game's own Python.

The worker is a separate program that runs in FOLDER, and needs only Python 3.10 and numpy. Requests
and answers have the form that `league.games.hosted` describes. They use a separate connection,
because the original game prints to standard output.

Shape suffixes: 2 seats, A keys, T frames.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import random
import signal
import sys
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from types import ModuleType
from typing import Any

import numpy as np

KEYS = 10
SEEN = np.dtype(
    [
        ("raw", np.float64, (2, 32)),  # each player's numbers, as the original shows them
        ("taken", np.float64, (2,)),  # damage in the match so far
        ("combos", np.int32, (2,)),  # hits on a stunned opponent in the match so far
        ("keys", np.uint8, (2, KEYS)),  # held in the last frame, zeros before the first frame
        ("ended", np.bool_),
    ]
)
"""The state of a match after a frame, as the game receives it."""
Answer = tuple[bytes, dict[int, str]]
"""A record of `SEEN` for each row (match), and for each failed row the reason. The records of
failed rows must be ignored.
"""


class Match:
    """Plays a match. The match has its own random state, so other matches have no effect on it.

    Args:
        environment: the module with the original game.
        agents: the classes of the original game's bots.
        seed: the match's seed.
    """

    def __init__(self, environment: ModuleType, agents: Sequence[type], seed: int) -> None:
        self._agents, self.combos = agents, [0, 0]
        self.keys = [np.zeros(KEYS, np.bool_)] * 2
        self._bots: dict[tuple[int, int], Any] = {}
        random.seed(seed)
        self._numbers = np.random.MT19937(seed)
        _draw_from(self._numbers)
        self._env = environment.WarehouseBrawl()
        self._env.action_space.seed(seed)
        self._env.hit_during_stun.connect(self._note_combo)
        self.observations, _ = self._env.reset()
        self._state = random.getstate()

    def _note_combo(self, env: Any, agent: str) -> None:
        self.combos[agent == "player"] += 1  # `agent` was hit, so the other seat made the combo

    def step(self, actions_2A: Any, bots: Sequence[int]) -> bool:
        """Plays a frame, and returns whether the original game has ended the match.

        `actions_2A` has the keys that each seat presses. Where `bots` has a bot's index instead of
        -1, the bot chooses the seat's keys.
        """
        random.setstate(self._state)
        _draw_from(self._numbers)
        self._env.objects["platform1"].physics_process(0.05)  # as the original's `run_match` does
        keys = [np.asarray(action, float) for action in actions_2A]
        for seat, bot in enumerate(bots):
            if bot >= 0:
                keys[seat] = self._bot(seat, bot).predict(self.observations[seat])
        self.observations, _, over, _, _ = self._env.step(dict(enumerate(keys)))
        self._state = random.getstate()
        self.keys = [np.asarray(action) > 0.5 for action in keys]
        return over

    def _bot(self, seat: int, bot: int) -> Any:
        if (seat, bot) not in self._bots:
            agent = self._bots[seat, bot] = self._agents[bot]()
            agent.get_env_info(self._env)
        return self._bots[seat, bot]

    def write(self, seen: Any) -> None:
        """Writes the match into `seen`, a record of `SEEN`, except the field `ended`."""
        seen["raw"] = self.observations[0].reshape(2, 32)
        seen["taken"] = [self._env.get_stats(seat).damage_taken for seat in (0, 1)]
        seen["combos"], seen["keys"] = self.combos, self.keys


class Worker:
    """Plays a part of the game's matches. A match is identified by its row in the game's arrays. If
    a call of the original game takes longer than `step_seconds`, SIGALRM ends the process.
    """

    def __init__(self, bots: Sequence[str], step_seconds: float) -> None:
        self._step_seconds = step_seconds
        self._matches: dict[int, Match] = {}
        self._environment = importlib.import_module("environment.environment")
        agents = importlib.import_module("environment.agent")
        self._agents = [getattr(agents, name) for name in bots]
        _spare_the_assets(self._environment)

    def begin(
        self, rows: list[int], seeds: list[int], played: list[bytes], bots: list[list[int]]
    ) -> Answer:
        """Begins matches. To continue a saved match, its earlier actions are played again."""

        def begin_one(row: int, index: int, seen: Any) -> None:
            match = Match(self._environment, self._agents, seeds[index])
            for actions_2A in _actions(played[index]):
                self._limit_call()
                match.step(actions_2A, bots[index])
            self._matches[row] = match
            match.write(seen)

        return self._each(rows, begin_one)

    def step(
        self, rows: list[int], actions: bytes, is_last: list[bool], bots: list[list[int]]
    ) -> Answer:
        """Plays a frame of each match."""
        actions_R2A = _actions(actions)

        def step_one(row: int, index: int, seen: Any) -> None:
            match = self._matches[row]
            over = match.step(actions_R2A[index], bots[index])
            match.write(seen)
            seen["ended"] = over or is_last[index]

        return self._each(rows, step_one)

    def _each(self, rows: list[int], play: Callable[[int, int, Any], None]) -> Answer:
        """Calls `play(row, index, seen)` for each row. A row fails if its match raises an error."""
        seen_R, failed = np.zeros(len(rows), SEEN), {}
        for index, row in enumerate(rows):
            self._limit_call()
            try:
                play(row, index, seen_R[index])
            except Exception as error:
                lines = str(error).strip().splitlines() or [""]
                failed[row] = f"the original raised {type(error).__name__}: {lines[0][:200]}"
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        return seen_R.tobytes(), failed

    def _limit_call(self) -> None:
        """Gives the original game `step_seconds` from now. After this time SIGALRM ends the
        process.
        """
        signal.setitimer(signal.ITIMER_REAL, self._step_seconds)


def _draw_from(numbers: np.random.MT19937) -> None:
    """Makes `numpy.random` draw from `numbers`. Copying the generator's state would take 60 µs
    longer.
    """
    np.random.set_bit_generator(numbers)


def _actions(content: bytes) -> Any:
    return np.frombuffer(content, np.uint8).reshape(-1, 2, KEYS)


def _spare_the_assets(environment: ModuleType) -> None:
    """Makes the original game read its animations once instead of at each reset, which takes 0.29
    s, and prevents its downloads.
    """
    sprite = environment.AnimationSprite2D
    load, loaded = sprite.load_animation, dict[str, Any]()

    def load_once(self: Any, path: str) -> Any:
        if path not in loaded:
            loaded[path] = load(self, path)
        return loaded[path]

    sprite.load_animation = load_once
    environment.gdown.download = lambda *_, **__: None


def main() -> None:
    """Answers requests until the game closes the connection. The worker ignores SIGINT and SIGTERM,
    which the game's process handles.

    The worker's first message is the reason why it can't play, or "".
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    *bots, step_seconds, number = sys.argv[1:]
    connection = Connection(int(number))
    sys.path[0] = os.getcwd()  # replaces this file's folder
    try:
        worker = Worker(bots, float(step_seconds))
    except ModuleNotFoundError as error:
        connection.send(
            f"{sys.executable} has no module {error.name}: install the packages of "
            f"{os.getcwd()}/requirements.txt in its environment"
        )
        return
    except Exception as error:
        connection.send(f"{type(error).__name__}: {error}")
        return
    connection.send("")
    with contextlib.suppress(EOFError, OSError):
        while True:
            verb, *arguments = connection.recv()
            connection.send(getattr(worker, verb)(*arguments))


if __name__ == "__main__":
    main()
