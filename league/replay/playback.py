"""Plays replays again and holds them to what they record."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from league.errors import DataCorrupt, VersionMismatch
from league.games.base import EXTERNAL
from league.replay.match import Replay, final_digest


class Playback:
    """Plays a replay again: `frames` yields what the game draws, and checks the end against the record."""

    def __init__(self, replay: Replay) -> None:
        self.replay = replay
        self.game = replay.recipe.make()
        try:
            self._seat()
        except BaseException:
            self.game.close()
            raise

    def _seat(self) -> None:
        replay, spec = self.replay, self.game.spec
        if replay.actions_T2A.shape[1:] != (2, spec.action_size):
            raise DataCorrupt(
                f"the replay has actions of shape {replay.actions_T2A.shape[1:]}, {spec.name} takes "
                f"(2, {spec.action_size}): the file was not written by this game"
            )
        for seat, contender in enumerate(replay.seats):
            try:
                self.game.bots_N2[0, seat] = spec.bot_index(contender.bot) if contender.bot else EXTERNAL
            except KeyError:
                raise VersionMismatch(
                    f"{spec.name} has no bot {contender.bot!r} any more: watch the replay with the Kumite "
                    "that recorded it"
                ) from None

    def frames(self) -> Iterator[dict[str, Any]]:
        """From the first frame to the last before the end. Raises `DataCorrupt` when the end is another."""
        game, replay = self.game, self.replay
        game.reset(np.array([replay.seed], np.uint64))
        yield game.frame(0)
        for now, actions_2A in enumerate(replay.actions_T2A, start=1):
            game.step(actions_2A[None])
            if bool(game.ended_N[0]) != (now == replay.frames):
                raise _otherwise(f"ended after {now} frames, {replay.frames} are recorded")
            if now < replay.frames:
                yield game.frame(0)
        self.check_end()

    def check_end(self) -> None:
        """Raises `DataCorrupt` when the match that just ended did so otherwise than recorded."""
        game, replay = self.game, self.replay
        if (outcome := float(game.outcomes_N[0])) != replay.outcome:
            raise _otherwise(f"ended with outcome {outcome:g}, {replay.outcome:g} is recorded")
        if final_digest(game, 0) != replay.final:
            raise _otherwise("ended in another state than the recorded one")

    def close(self) -> None:
        """Ends what the game runs. Twice is fine."""
        self.game.close()


def _otherwise(what: str) -> DataCorrupt:
    return DataCorrupt(f"the match, played again, {what}: the rules changed unnoticed, or the file is forged")


def verify(replay: Replay) -> None:
    """Plays it through; raises `DataCorrupt` or `VersionMismatch` when it does not end as recorded."""
    playback = Playback(replay)
    try:
        for _ in playback.frames():
            pass
    finally:
        playback.close()
