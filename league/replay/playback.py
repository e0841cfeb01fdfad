"""Plays recorded matches again, and compares their ends with the recorded ends."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np

from league.errors import DataCorrupt, Unavailable, VersionMismatch
from league.games.base import EXTERNAL, BatchedGame
from league.replay.match import Replay, final_digest


class Playback:
    """Plays a replay again and checks its end. Use it as a context manager.

    By default, the object makes the game of the replay's recipe, and closes it at the end. If the
    caller passes a game, this game must have the same recipe. It stays open, and can play the next
    replay.

    Raises:
        DataCorrupt: the replay belongs to another game.
        VersionMismatch: the game's rules have changed.
    """

    def __init__(self, replay: Replay, game: BatchedGame | None = None) -> None:
        self.replay, self._is_own = replay, game is None
        self.game = replay.recipe.make() if game is None else game
        try:
            self._seat_bots()
        except BaseException:
            self.__exit__()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_own:
            self.game.close()

    def _seat_bots(self) -> None:
        """Seats the bots that the game has to play again."""
        spec, shape = self.game.spec, self.replay.actions_T2A.shape[1:]
        if shape != (2, spec.action_size):
            raise DataCorrupt(
                f"the replay has actions of shape {shape}, {spec.name} takes "
                f"(2, {spec.action_size}): the file was not written by this game"
            )
        for place, contender in enumerate(self.replay.seats):
            bot = contender.bot
            try:
                self.game.bots_N2[0, place] = spec.bot_index(bot) if bot else EXTERNAL
            except KeyError:
                raise VersionMismatch(
                    f"{spec.name} has no bot {bot!r} any more: use the replay with the Kumite "
                    "that recorded it"
                ) from None

    def moments(self) -> Iterator[int]:
        """Yields the number of each frame, from 0. At each yield, the game is in the state before
        this frame is played. There is no yield for the end of the match.

        Raises:
            DataCorrupt: the match does not end as recorded.
            Unavailable: the game fails.
        """
        game, replay = self.game, self.replay
        game.reset(np.array([replay.seed], np.uint64))
        for now, actions_2A in enumerate(replay.actions_T2A):
            yield now
            game.step(actions_2A[None])
            if 0 in game.failures:
                raise Unavailable(f"the match can't be played again: {game.failures[0]}")
            if bool(game.ended_N[0]) != (now + 1 == replay.frames):
                raise _otherwise(f"ended after {now + 1} frames, {replay.frames} are recorded")
        if (outcome := float(game.outcomes_N[0])) != replay.outcome:
            raise _otherwise(f"ended with outcome {outcome:g}, {replay.outcome:g} is recorded")
        if final_digest(game, 0) != replay.final:
            raise _otherwise("ended in another state than the recorded one")

    def frames(self) -> Iterator[dict[str, Any]]:
        """Yields the game's frame (`BatchedGame.frame`) at each of the `moments`."""
        return (self.game.frame(0) for _ in self.moments())


def verify(replay: Replay) -> None:
    """Plays a replay from start to end, and raises the errors of `Playback` and `moments`."""
    with Playback(replay) as playback:
        for _ in playback.moments():
            pass


def _otherwise(what: str) -> DataCorrupt:
    return DataCorrupt(
        f"the match, played again, {what}: the rules changed unnoticed, or the file is forged"
    )


def end_frame(game: BatchedGame, last: dict[str, Any]) -> dict[str, Any]:
    """Returns a frame that shows the end of the match in row 0.

    Some games don't keep the state after the last step. For these games, the function returns a
    copy of the frame before that step, with the final payoffs and the final frame number.

    Args:
        game: the game right after the match's last step.
        last: the frame before the last step.
    """
    if (end := game.final_frame(0)) is not None:
        return end
    frame = {**last, "frame": int(game.final_frames_N[0]), "ended": True}
    if "seats" in last and "reward" in game.spec.stats:
        paid_2 = game.final_stats_N2S[0, :, game.spec.stats.index("reward")]
        frame["seats"] = [
            {**seat, "acts": False, "payoff": float(paid)}
            for seat, paid in zip(last["seats"], paid_2, strict=True)
        ]
    return frame
