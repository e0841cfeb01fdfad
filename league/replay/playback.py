"""Plays replays again and holds them to what they record."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from league.errors import DataCorrupt, VersionMismatch
from league.games.base import EXTERNAL, BatchedGame
from league.replay.match import Replay, final_digest


class Playback:
    """Plays a replay again: `frames` yields what the game draws, and checks the end against the
    record.
    """

    def __init__(self, replay: Replay) -> None:
        self.replay = replay
        self.game = replay.recipe.make()
        try:
            seat(self.game, 0, replay)
        except BaseException:
            self.game.close()
            raise

    def frames(self) -> Iterator[dict[str, Any]]:
        """From the first frame to the last before the end. Raises `DataCorrupt` when the end is
        another.
        """
        game, replay = self.game, self.replay
        game.reset(np.array([replay.seed], np.uint64))
        yield game.frame(0)
        for now, actions_2A in enumerate(replay.actions_T2A, start=1):
            game.step(actions_2A[None])
            check_length(game, 0, replay, now)
            if now < replay.frames:
                yield game.frame(0)
        check_end(game, 0, replay)

    def close(self) -> None:
        """Ends what the game runs. Twice is fine."""
        self.game.close()


def seat(game: BatchedGame, row: int, replay: Replay) -> None:
    """Seats the bots that the game has to play again in `row`. Raises if the replay is not of this
    game.
    """
    spec = game.spec
    if replay.actions_T2A.shape[1:] != (2, spec.action_size):
        raise DataCorrupt(
            f"the replay has actions of shape {replay.actions_T2A.shape[1:]}, {spec.name} takes "
            f"(2, {spec.action_size}): the file was not written by this game"
        )
    for place, contender in enumerate(replay.seats):
        try:
            game.bots_N2[row, place] = spec.bot_index(contender.bot) if contender.bot else EXTERNAL
        except KeyError:
            raise VersionMismatch(
                f"{spec.name} has no bot {contender.bot!r} any more: use the replay with the "
                "Kumite that recorded it"
            ) from None


def check_length(game: BatchedGame, row: int, replay: Replay, now: int) -> None:
    """Raises `DataCorrupt` when the match in `row` ended in its frame `now` and should not have,
    or lasts.
    """
    if bool(game.ended_N[row]) != (now == replay.frames):
        raise _otherwise(f"ended after {now} frames, {replay.frames} are recorded")


def check_end(game: BatchedGame, row: int, replay: Replay) -> None:
    """Raises `DataCorrupt` when the match that just ended in `row` did so otherwise than
    recorded.
    """
    if (outcome := float(game.outcomes_N[row])) != replay.outcome:
        raise _otherwise(f"ended with outcome {outcome:g}, {replay.outcome:g} is recorded")
    if final_digest(game, row) != replay.final:
        raise _otherwise("ended in another state than the recorded one")


def end_frame(game: BatchedGame, last: dict[str, Any]) -> dict[str, Any]:
    """How the match that just ended in row 0 did, as a frame; `last` is the frame before.

    Of a game that keeps no frame of it, `last` with the payoffs and frames of the end.
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


def _otherwise(what: str) -> DataCorrupt:
    return DataCorrupt(
        f"the match, played again, {what}: the rules changed unnoticed, or the file is forged"
    )


def verify(replay: Replay) -> None:
    """Plays it through; raises `DataCorrupt` or `VersionMismatch` when it does not end as
    recorded.
    """
    playback = Playback(replay)
    try:
        for _ in playback.frames():
            pass
    finally:
        playback.close()
