"""Plays recorded matches again to collect a player's observations and actions.

Shape suffixes: F frames, T decisions, O observation, A actions. An action is either the set of keys
that the player holds, or a single choice in one-hot encoding.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from league.errors import DataCorrupt, InvalidInput, NotFound, VersionMismatch, nearest
from league.games.base import BatchedGame
from league.games.settings import GameSettings
from league.replay import SUFFIX, Playback, Replay, load_replay
from league.replay.recorder import keys_for_decision

NamedReplay = tuple[Path, Replay]


@dataclass(frozen=True)
class Demonstration:
    """Holds a player's observations and actions in a match, a row for each decision. The player's
    side of the match is called its seat.

    Attributes:
        seed: seed of the match.
        obs_TO: the seat's observations.
        actions_TA: the seat's actions.
        legal_TA: the legal choices, None if the actions are keys.
        own_T: whether the player made the decision itself. It is false if the recorder replaced the
            player's keys in at least one of the decision's frames. The recorder does this to bring
            the player into situations that it usually avoids.
    """

    seed: int
    obs_TO: NDArray[np.float32]
    actions_TA: NDArray[np.uint8]
    legal_TA: NDArray[np.bool_] | None
    own_T: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.obs_TO)

    @property
    def decided_T(self) -> NDArray[np.bool_]:
        """Marks the player's own decisions with more than one legal choice."""
        return self.own_T if self.legal_TA is None else self.own_T & (self.legal_TA.sum(-1) > 1)


def read_replays(folder: Path, game: GameSettings) -> list[NamedReplay]:
    """Reads all replays of a folder, sorted by name.

    Args:
        folder: the folder.
        game: the game that every replay must have recorded.

    Raises:
        NotFound: there are no replays.
        InvalidInput: a replay is of another game.
        VersionMismatch: a replay was played under other rules.
    """
    if not folder.is_dir():
        raise NotFound(
            f"there is no folder {folder}: bin/league record makes one, a run has RUN/replays"
        )
    replays = [
        (path, load_replay(path, lambda: game)) for path in sorted(folder.glob(f"*{SUFFIX}"))
    ]
    if not replays:
        raise NotFound(f"{folder} holds no replays (*{SUFFIX}): fill it with bin/league record")
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
                f"{path} was played by version {recipe.version} of the rules of {recipe.name}, "
                f"which now have version {version}: record the matches again"
            )
    return replays


def demonstrations(
    replays: Sequence[NamedReplay], name: str, *, frame_skip: int
) -> list[Demonstration]:
    """Returns a player's matches, in the order of `replays`. A match in which the player has both
    seats counts once for each seat.

    Raises:
        NotFound: no player has that name.
        InvalidInput: the replays don't hold the player's actions.
        DataCorrupt: when a match is played again, it does not end as recorded.
    """
    collected: list[Demonstration] = []
    # Some games start slowly, so a game is started again only if the next replay's recipe differs.
    recipe, game = None, None
    with ExitStack() as stack:
        for path, replay in replays:
            seats = [seat for seat in replay.seats if seat.name == name]
            if any(seat.bot for seat in seats):
                raise InvalidInput(
                    f"{path} does not hold what {name} did ({replay.recipe.name} does not report "
                    "what its bots do): such a player can't be cloned"
                )
            try:
                if seats and (game is None or replay.recipe != recipe):
                    stack.close()
                    recipe, game = replay.recipe, stack.enter_context(closing(replay.recipe.make()))
                collected += _play_again(replay, game, name, frame_skip) if seats else ()
            except DataCorrupt as error:
                raise type(error)(f"{path}: {error}") from None
    if not collected:
        names = {s.name for _, replay in replays for s in replay.seats}
        hint = nearest(name, names) or f"there are {', '.join(sorted(names)[:12])}"
        raise NotFound(f"no player {name!r} is in the {len(replays)} replays: {hint}")
    return collected


def _play_again(
    replay: Replay, game: BatchedGame | None, name: str, frame_skip: int
) -> list[Demonstration]:
    """Plays a match again and checks that it ends as recorded."""
    obs: list[NDArray[np.float32]] = []  # an entry [2, O] for each decision
    legal: list[NDArray[np.bool_]] = []
    with Playback(replay, game) as playback:
        game = playback.game
        for frame in playback.moments():
            if frame % frame_skip == 0:
                obs.append(game.observations_N2O[0].copy())
                legal += [] if game.legal_N2A is None else [game.legal_N2A[0].copy()]
    collected = []
    for side, contender in enumerate(replay.seats):
        if contender.name == name:
            own_F = np.ones(replay.frames, np.bool_)
            for seat, first, frames in replay.disturbed:
                own_F[first : first + frames] &= seat != side
            demonstration = Demonstration(
                seed=replay.seed,
                obs_TO=np.stack([both_2O[side] for both_2O in obs]),
                actions_TA=keys_of_decisions(replay.actions_T2A[:, side], frame_skip),
                legal_TA=np.stack([both_2A[side] for both_2A in legal]) if legal else None,
                own_T=np.logical_and.reduceat(own_F, np.arange(0, replay.frames, frame_skip)),
            )
            collected.append(demonstration)
    return collected


def keys_of_decisions(actions_FA: NDArray[np.uint8], frame_skip: int) -> NDArray[np.uint8]:
    """Derives the keys `[T, A]` of each decision from the keys of its frames.

    A decision holds every key that the player held in at least one of the decision's frames. There
    is one exception. If the previous decision holds a key, and the player lets this key go and
    presses it again, the decision releases the key. The reason is that a game may react only to a
    new press, for example with a jump (`league.replay.recorder`). But a key that is down in all of
    the decision's frames stays held. Of the rules that were tried, only this rule lets a clone keep
    the strength of a bot (docs/cloning.md).

    Args:
        actions_FA: keys of each frame.
        frame_skip: number of frames of a decision. The last decision may have fewer frames.

    Returns:
        Keys `[T, A]`.
    """
    if frame_skip == 1:
        return actions_FA
    before_A = held_A = np.zeros(actions_FA.shape[1], np.uint8)
    keys = []
    for start in range(0, len(actions_FA), frame_skip):
        frames_FA = actions_FA[start : start + frame_skip]
        held_A = keys_for_decision(frames_FA, before_A, held_A)
        before_A = frames_FA[-1]
        keys.append(held_A)
    return np.stack(keys).astype(np.uint8)
