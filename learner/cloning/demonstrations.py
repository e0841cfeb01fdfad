"""Reads replays and plays them again, to see what one player saw at its decisions and what it did.

Shape suffixes: N rows (matches at once), F frames, T decisions, O observation, A actions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from league.errors import DataCorrupt, InvalidInput, NotFound, VersionMismatch, nearest
from league.games.base import BatchedGame
from league.games.settings import GameSettings
from league.replay import SUFFIX, Replay, check_end, load_replay
from league.replay.playback import check_length, seat
from league.replay.recorder import keys_for_decision

ROWS = 64


@dataclass(frozen=True)
class Demonstration:
    """What one seat saw and did in a match, decision by decision."""

    seed: int
    obs_TO: NDArray[np.float32]
    actions_TA: NDArray[np.uint8]
    legal_TA: NDArray[np.bool_] | None
    own_T: NDArray[np.bool_]
    """Where the player did it itself; elsewhere the recorder had disturbed it."""

    def __len__(self) -> int:
        return len(self.obs_TO)

    @property
    def decided_T(self) -> NDArray[np.bool_]:
        """Where the player chose: a forced move (one legal choice) says nothing, nor do others'
        keys.
        """
        return self.own_T if self.legal_TA is None else self.own_T & (self.legal_TA.sum(-1) > 1)


def read_replays(folder: Path, game: GameSettings) -> list[tuple[Path, Replay]]:
    """All replays of a folder, by name. Raises in a sentence when there are none, or of another
    game.
    """
    if not folder.is_dir():
        raise NotFound(
            f"there is no folder {folder}: bin/league record makes one, a run has RUN/replays"
        )
    paths = sorted(folder.glob(f"*{SUFFIX}"))
    if not paths:
        raise NotFound(f"{folder} holds no replays (*{SUFFIX}): fill it with bin/league record")
    replays = [(path, load_replay(path)) for path in paths]
    version = game.spec().version
    for path, replay in replays:
        recipe = replay.recipe
        if recipe.name != game.name:
            raise InvalidInput(
                f"{path} is a match of {recipe.name}, [game] is {game.name}: "
                f"take it out, or add --set game.name={recipe.name}"
            )
        if recipe.version != version:
            raise VersionMismatch(
                f"{path} was played under version {recipe.version} of the rules of {recipe.name}, here they "
                f"have version {version}: record the matches anew"
            )
    return replays


def demonstrations(
    replays: Sequence[tuple[Path, Replay]], name: str, *, frame_skip: int, key_rule: str
) -> list[Demonstration]:
    """The matches of the player `name`, from each seat that it had, in the order of `replays`.

    Every replay is held to how it ended. Raises `NotFound` when nobody is called so, `InvalidInput`
    when its actions are not in the replays, `DataCorrupt` when a match ends otherwise than
    recorded.
    """
    played = [(path, replay) for path, replay in replays if name in (s.name for s in replay.seats)]
    if not played:
        known = {s.name for _, replay in replays for s in replay.seats}
        hint = nearest(name, known) or f"there are {', '.join(sorted(known)[:12])}"
        raise NotFound(f"nobody called {name!r} sits in the {len(replays)} replays: {hint}")
    for path, replay in played:
        if any(s.name == name and s.bot for s in replay.seats):
            raise InvalidInput(
                f"{path} does not hold what {name} did ({replay.recipe.name} does not tell what its bots "
                "do): such a player can't be cloned"
            )
    found: dict[int, list[Demonstration]] = {}
    for group in _groups(played):
        again = _PlayedAgain([played[number] for number in group], name, frame_skip, key_rule)
        found |= dict(zip(group, again.demonstrations(), strict=True))
    return [demonstration for number in sorted(found) for demonstration in found[number]]


def _groups(played: Sequence[tuple[Path, Replay]]) -> Iterator[list[int]]:
    """Numbers of matches that one batched game can play: of one recipe, `ROWS` at most."""
    by_recipe: dict[str, list[int]] = {}
    for number, (_, replay) in enumerate(played):
        by_recipe.setdefault(str(replay.recipe), []).append(number)
    for numbers in by_recipe.values():
        for first in range(0, len(numbers), ROWS):
            yield numbers[first : first + ROWS]


class _PlayedAgain:
    """Matches of one recipe, played again side by side and held to their ends."""

    def __init__(
        self, group: Sequence[tuple[Path, Replay]], name: str, frame_skip: int, key_rule: str
    ) -> None:
        self._group, self._name = group, name
        self._frame_skip, self._key_rule = frame_skip, key_rule
        self._obs: list[NDArray[np.float32]] = []  # of each decision, [N, 2, O]
        self._legal: list[NDArray[np.bool_]] = []
        game = group[0][1].recipe.make(len(group))
        try:
            self._play(game)
        finally:
            game.close()

    def _play(self, game: BatchedGame) -> None:
        for row, (path, replay) in enumerate(self._group):
            _named(path, seat, game, row, replay)
        game.reset(np.array([replay.seed for _, replay in self._group], np.uint64))
        for now in range(1, max(replay.frames for _, replay in self._group) + 1):
            if (now - 1) % self._frame_skip == 0:
                self._obs.append(game.observations_N2O.copy())
                if game.legal_N2A is not None:
                    self._legal.append(game.legal_N2A.copy())
            game.step(self._actions(game, now - 1))
            for row, (path, replay) in enumerate(self._group):
                if now <= replay.frames:
                    _named(path, check_length, game, row, replay, now)
                if now == replay.frames:
                    _named(path, check_end, game, row, replay)

    def _actions(self, game: BatchedGame, frame: int) -> NDArray[np.uint8]:
        """What all rows do in `frame`; those that have ended do nothing of note."""
        actions_N2A = game.idle_actions()
        for row, (_, replay) in enumerate(self._group):
            if frame < replay.frames:
                actions_N2A[row] = replay.actions_T2A[frame]
        return actions_N2A

    def demonstrations(self) -> Iterator[list[Demonstration]]:
        """For each match, what the player saw and did in the seats that it had."""
        for row, (_, replay) in enumerate(self._group):
            seats = [
                place
                for place, contender in enumerate(replay.seats)
                if contender.name == self._name
            ]
            yield [self._of_seat(row, place, replay) for place in seats]

    def _of_seat(self, row: int, place: int, replay: Replay) -> Demonstration:
        decisions = -(-replay.frames // self._frame_skip)
        legal = self._legal[:decisions]
        return Demonstration(
            replay.seed,
            np.stack([obs_N2O[row, place] for obs_N2O in self._obs[:decisions]]),
            keys_of_decisions(replay.actions_T2A[:, place], self._frame_skip, self._key_rule),
            np.stack([legal_N2A[row, place] for legal_N2A in legal]) if legal else None,
            _own(replay, place, self._frame_skip),
        )


def _own(replay: Replay, place: int, frame_skip: int) -> NDArray[np.bool_]:
    """The decisions of which no frame was disturbed, [T]."""
    disturbed_F = np.zeros(replay.frames, np.bool_)
    for seat_number, first, frames in replay.disturbed:
        if seat_number == place:
            disturbed_F[first : first + frames] = True
    return ~np.logical_or.reduceat(disturbed_F, np.arange(0, replay.frames, frame_skip))


def _named(path: Path, check: Callable[..., None], *arguments: Any) -> None:
    """Calls a check and puts the file's name before what it says."""
    try:
        check(*arguments)
    except DataCorrupt as error:
        raise type(error)(f"{path}: {error}") from None


def keys_of_decisions(
    actions_FA: NDArray[np.uint8], frame_skip: int, key_rule: str
) -> NDArray[np.uint8]:
    """The keys of each decision `[T, A]`, from those of its frames (the last one may have fewer).

    `taps`: as an agent follows (`league.replay.recorder`); `any`: down in one of the frames;
    `majority`: in half of them or more; `first`: in the first.
    """
    starts = np.arange(0, len(actions_FA), frame_skip)
    if key_rule == "first" or frame_skip == 1:
        return actions_FA[starts]
    if key_rule == "taps":
        return _followed(actions_FA, starts, frame_skip)
    down_TA = np.add.reduceat(actions_FA.astype(np.int64), starts, axis=0)
    if key_rule == "any":
        return (down_TA > 0).astype(np.uint8)
    frames_T1 = np.diff(starts, append=len(actions_FA))[:, None]
    return (2 * down_TA >= frames_T1).astype(np.uint8)


def _followed(
    actions_FA: NDArray[np.uint8], starts: NDArray[np.int64], frame_skip: int
) -> NDArray[np.uint8]:
    keys_TA = np.zeros((len(starts), actions_FA.shape[1]), np.uint8)
    before_A = held_A = np.zeros(actions_FA.shape[1], np.uint8)
    for t, start in enumerate(starts):
        frames_FA = actions_FA[start : start + frame_skip]
        held_A = keys_TA[t] = keys_for_decision(frames_FA, before_A, held_A)
        before_A = frames_FA[-1]
    return keys_TA
