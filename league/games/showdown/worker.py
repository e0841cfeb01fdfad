"""Runs a worker process, which plays a part of the game's battles in its simulator.

Shape suffixes: R rows of a request, 2 seats, A choices, V width of a seat's view.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from poke_env.battle import AbstractBattle

from league.games.choice_game import mixed
from league.games.hosted import serve_process
from league.games.showdown.kinds import BOTS, FORMATS, Kind
from league.games.showdown.observation import Writer, own_team
from league.games.showdown.simulator import Simulator

Answer = tuple[bytes, dict[int, str]]
"""A record of `seen_type` for each row (match), and for each failed row the reason. The records of
failed rows must be ignored.
"""
UNREAD = AbstractBattle.MESSAGES_TO_IGNORE | {
    *("t:", "expire", "uhtmlchange", "tempnotify", "tempnotifyoff"),
    *("win", "tie", "bigerror"),
}
"""Types of Showdown's lines that say nothing about a battle's state."""


def seen_type(kind: Kind[Any]) -> np.dtype[np.void]:
    """Returns the dtype of a row's record: views, legal choices and results of the last frame."""
    return np.dtype(
        [
            ("views", np.float32, (2, Writer(kind.active).width)),
            ("acting", np.bool_, (2,)),
            ("legal", np.bool_, (2, len(kind.action_names))),
            ("choices", np.int32, (2,)),  # in the last frame, including bots
            ("alive", np.float32, (2,)),  # the share of each team that has not fainted
            ("hp", np.float32, (2,)),  # the share of each team's hit points that is left
            ("turn", np.int32),
            ("team", np.int16, (2,)),  # index in the pool, or -1 if the format draws the team
            ("refused", np.int8, (2,)),  # choices of the last frame that the simulator refused
            ("lead", np.int8),  # result of an ended match: 1 if seat 0 won, -1 if seat 1 won
            ("ended", np.bool_),
        ]
    )


class View:
    """Follows a battle from the lines that Showdown sends to a player."""

    def __init__(self, battle: AbstractBattle) -> None:
        self.battle, self.refused = battle, 0

    def read(self, line: str) -> None:
        """Updates the battle from a line of Showdown's. Errors of poke-env pass through."""
        words = line.split("|")
        if len(words) < 2 or words[1] in UNREAD:
            return
        if words[1] == "request":
            self.battle.parse_request(json.loads(line.split("|", 2)[2]))
        elif words[1] == "error":
            self.refused += 1
        else:
            self.battle.parse_message(words)


class Match:
    """Follows a battle from both players' views. `teams` has each seat's team as an index in the
    pool of teams, or -1 if the format draws the team.
    """

    def __init__(self, kind: Kind[Any], writer: Writer, seed: int, teams: Sequence[int]) -> None:
        self._kind, self._writer, self._teams, self._frame = kind, writer, teams, 0
        self._draws = mixed(np.array([seed], np.uint64))
        self._views = [View(kind.battle(name)) for name in ("p1", "p2")]
        self._must, self._winner = [False, False], None
        self._nothing = np.arange(len(kind.action_names)) == 0
        self._legal = [self._nothing, self._nothing]

    def read(self, answer: dict[str, Any]) -> None:
        """Updates the match from the simulator's answer. Errors of poke-env pass through."""
        if "error" in answer:
            raise RuntimeError(answer["error"].splitlines()[0])
        for view, lines in zip(self._views, answer["lines"], strict=True):
            view.refused = 0
            for line in lines:
                view.read(line)
        self._must, self._winner = answer["must"], answer["winner"]
        self._legal = [
            self._kind.legal(view.battle) if must else self._nothing
            for view, must in zip(self._views, self._must, strict=True)
        ]

    def chosen(self, actions_2: NDArray[np.intp], bots: Sequence[int]) -> list[int]:
        """Returns both seats' choices in this frame."""
        choices = []
        for seat, bot in enumerate(bots):
            if bot < 0:
                choices.append(int(actions_2[seat]))
                continue
            draw = int(mixed(self._draws + np.uint64(2 * self._frame + seat))[0])
            battle, legal_A = self._views[seat].battle, self._legal[seat]
            choices.append(self._kind.chosen(battle, BOTS[bot].name, legal_A, draw))
        return choices

    def words(self, choices: Iterable[int]) -> list[str | None]:
        """Returns the choices as Showdown's commands, or None for a player who need not choose."""
        self._frame += 1
        return [
            self._kind.words(view.battle, int(choice)) if must else None
            for view, choice, must in zip(self._views, choices, self._must, strict=True)
        ]

    def write(self, seen: NDArray[np.void], is_last: bool) -> None:
        """Writes the match into `seen`, a record of `seen_type`, except the field `choices`."""
        for seat, view in enumerate(self._views):
            self._writer.write(view.battle, seen["views"][seat])
            team = own_team(view.battle)
            seen["alive"][seat] = np.mean([not pokemon.fainted for pokemon in team])
            seen["hp"][seat] = np.mean([pokemon.current_hp_fraction for pokemon in team])
            seen["refused"][seat] = view.refused
        seen["acting"], seen["legal"], seen["team"] = self._must, self._legal, self._teams
        seen["turn"] = self._views[0].battle.turn
        seen["ended"] = self._winner is not None or is_last
        if self._winner is not None:
            seen["lead"] = (0, 1, -1)[self._winner + 1]
        elif is_last:  # the winner has more Pokémon left, or else a larger share of hit points
            ours, theirs = zip(seen["alive"].tolist(), seen["hp"].tolist(), strict=True)
            seen["lead"] = (ours > theirs) - (ours < theirs)


class Worker:
    """Plays a part of the game's battles. A battle is identified by its row in the game's arrays.
    If a request takes longer than `step_seconds`, SIGALRM ends the process.
    """

    def __init__(
        self, folder: str, battle_format: str, teams: Sequence[str], step_seconds: float
    ) -> None:
        self._format, self._teams, self._step_seconds = battle_format, teams, step_seconds
        self._kind, self._simulator = FORMATS[battle_format], Simulator(folder)
        self._writer = Writer(self._kind.active)
        self._matches: dict[int, Match] = {}

    def begin(
        self, rows: list[int], seeds: list[int], played: list[bytes], bots: list[list[int]]
    ) -> Answer:
        """Begins matches. To continue a saved match, its earlier actions are played again."""
        seen_R = np.zeros(len(rows), seen_type(self._kind))
        drawn = [self._drawn(seed) for seed in seeds]
        packed = [[self._teams[n] if n >= 0 else None for n in both] for both in drawn]
        begins = zip(rows, seeds, packed, strict=True)
        self._limit_call()
        answers = self._simulator.ask(
            [["begin", row, self._format, str(seed), teams] for row, seed, teams in begins]
        )

        def begin_one(index: int) -> None:
            match = Match(self._kind, self._writer, seeds[index], drawn[index])
            self._matches[rows[index]] = match
            match.read(answers[index])
            for actions_2 in self._actions(played[index]):
                self._limit_call()
                (answer,) = self._simulator.ask([["choose", rows[index], match.words(actions_2)]])
                match.read(answer)
            match.write(seen_R[index], is_last=False)

        failed = self._each(range(len(rows)), begin_one)
        return self._answer(seen_R, {rows[index]: why for index, why in failed.items()})

    def step(
        self, rows: list[int], actions: bytes, is_last: list[bool], bots: list[list[int]]
    ) -> Answer:
        """Plays a frame of each match."""
        seen_R, actions_R2 = np.zeros(len(rows), seen_type(self._kind)), self._actions(actions)
        commands: dict[int, list[Any]] = {}

        def choose_one(index: int) -> None:
            match = self._matches[rows[index]]
            seen_R["choices"][index] = match.chosen(actions_R2[index], bots[index])
            commands[index] = ["choose", rows[index], match.words(seen_R["choices"][index])]

        self._limit_call()
        failed = self._each(range(len(rows)), choose_one)
        answers = dict(zip(commands, self._simulator.ask(list(commands.values())), strict=True))

        def read_one(index: int) -> None:
            match = self._matches[rows[index]]
            match.read(answers[index])
            match.write(seen_R[index], is_last[index])

        failed |= self._each(answers, read_one)
        return self._answer(seen_R, {rows[index]: why for index, why in failed.items()})

    def close(self) -> None:
        """Ends the simulator."""
        self._simulator.close()

    def log(self, rows: list[int]) -> str:
        """Returns the first row's match so far, in the form of Showdown's replays."""
        return self._replay("log", rows[0])

    def last(self, rows: list[int]) -> str:
        """Returns the first row's previous match, from start to end."""
        return self._replay("last", rows[0])

    def _replay(self, verb: str, row: int) -> str:
        self._limit_call()
        (text,) = self._simulator.ask([[verb, row]])
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        return str(text)

    def _drawn(self, seed: int) -> list[int]:
        """Draws each seat's team from the match's seed. Returns indices in the pool of teams, or -1
        if there is no pool.
        """
        if not self._teams:
            return [-1, -1]
        draws_2 = mixed(np.array([seed], np.uint64) + np.array([1, 2], np.uint64))
        return (draws_2 % np.uint64(len(self._teams))).tolist()

    def _each(self, places: Iterable[int], play: Callable[[int], None]) -> dict[int, str]:
        """Calls `play` for each index in `places`, and returns the errors of failed matches."""
        failed = {}
        for index in places:
            try:
                play(index)
            except Exception as error:  # whatever poke-env may raise
                lines = str(error).strip().splitlines() or [""]
                kind = type(error).__name__
                failed[index] = f"the battle can't be followed: {kind}: {lines[0][:200]}"
        return failed

    def _answer(self, seen_R: NDArray[np.void], failed: dict[int, str]) -> Answer:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        return seen_R.tobytes(), failed

    def _actions(self, content: bytes) -> NDArray[np.intp]:
        """Decodes one-hot choices to indices, [R, 2]."""
        width = len(self._kind.action_names)
        return np.frombuffer(content, np.uint8).reshape(-1, 2, width).argmax(-1)

    def _limit_call(self) -> None:
        """Gives the simulator `step_seconds` from now. After this time SIGALRM ends the process."""
        signal.setitimer(signal.ITIMER_REAL, self._step_seconds)


if __name__ == "__main__":
    serve_process(Worker)
