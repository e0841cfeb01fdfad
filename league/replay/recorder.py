"""Records matches while they are played: a single match decision by decision, or a batch of matches
frame by frame.

Shape suffixes: N rows (matches at once), T frames, F frames of a decision, 2 seats, A action width,
B bytes of packed actions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from league.errors import DataCorrupt, InvalidInput, Unavailable
from league.games.base import EXTERNAL, BatchedGame
from league.games.hosted import HostedGame
from league.replay.match import Contender, Recipe, Replay, final_digest


@dataclass(frozen=True, kw_only=True)
class Bout:
    """Describes a match that is still to be played: the players in its seats, and its seed.

    `bots` has the number of the bot in each seat, as in `BatchedGame.bots_N2`.
    """

    seats: tuple[Contender, Contender]
    bots: tuple[int, int] = (EXTERNAL, EXTERNAL)
    seed: int
    pupil: str = ""
    """Name of the player that an agent will learn to imitate from the recording, or "". For this
    purpose, `league.contest.matches.play_bouts` may slow the player down or make it err.
    """

    def match_id(self, recipe: Recipe) -> str:
        """Returns the match's id: 32 hexadecimal digits that depend on game, players and seed."""
        text = f"{recipe} {self}"
        return hashlib.sha256(text.encode()).hexdigest()[:32]


class BatchRecorder:
    """Records the matches in all rows of `game` at once.

    Call `note` after every frame. `finish` returns the match that has just ended in a row.
    """

    def __init__(self, game: BatchedGame, recipe: Recipe) -> None:
        self._game, self._recipe = game, recipe
        self._width = 2 * game.spec.action_size
        self._rows = np.arange(game.num_matches)
        self._told = True
        self._terms_N2K = np.zeros_like(game.reward_terms_N2K)
        self._free_NT2: NDArray[np.bool_] | None = None
        packed = -(-self._width // 8)
        self._played_NTB = np.zeros((game.num_matches, game.spec.max_frames, packed), np.uint8)

    def note(
        self, actions_N2A: NDArray[np.uint8], legal_N2A: NDArray[np.bool_] | None = None
    ) -> None:
        """Stores the actions of the frame that was just played.

        Args:
            actions_N2A: the actions that the caller passed to the game's `step`.
            legal_N2A: in games of choices, the legal choices before the frame.
        """
        game = self._game
        done_N2A = game.played_N2A()
        self._told = done_N2A is not None
        flat = (actions_N2A if done_N2A is None else done_N2A).reshape(len(self._rows), -1)
        now_N = np.where(game.ended_N, game.final_frames_N, game.frames_N) - 1
        self._played_NTB[self._rows, now_N] = np.packbits(flat, axis=1)
        self._terms_N2K *= (now_N > 0)[:, None, None]
        self._terms_N2K += game.reward_terms_N2K
        if legal_N2A is not None:
            if self._free_NT2 is None:
                self._free_NT2 = np.zeros((*self._played_NTB.shape[:2], 2), np.bool_)
            self._free_NT2[self._rows, now_N] = legal_N2A.sum(-1) > 1

    def played(self, row: int, frame: int) -> NDArray[np.uint8]:
        """Returns the actions of a row's seats in a frame of the current match, `[2, A]`."""
        packed = self._played_NTB[row, frame]
        return np.unpackbits(packed, count=self._width).reshape(2, -1)

    def finish(
        self, row: int, bout: Bout, disturbed: tuple[tuple[int, int, int], ...] = ()
    ) -> Replay:
        """Returns the match that ended in `row` in the last frame.

        Some games don't report the actions of their bots. Then the replay has only a bot's name,
        and the bot has to decide again whenever the replay is played.

        Args:
            row: the row.
            bout: describes the match that was played in this row.
            disturbed: the same as in `Replay`.
        """
        game = self._game
        frames = int(game.final_frames_N[row])
        actions = np.unpackbits(self._played_NTB[row, :frames], axis=1, count=self._width)
        first, second = (
            replace(seat, bot="" if self._told or bot == EXTERNAL else game.spec.all_bots[bot].name)
            for seat, bot in zip(bout.seats, bout.bots, strict=True)
        )
        return Replay(
            recipe=self._recipe,
            seats=(first, second),
            seed=bout.seed,
            actions_T2A=actions.reshape(frames, 2, -1),
            outcome=float(game.outcomes_N[row]),
            final=final_digest(game, row),
            match_id=bout.match_id(self._recipe),
            disturbed=tuple((seat, at, min(count, frames - at)) for seat, at, count in disturbed),
            stats=tuple(
                dict(zip(game.spec.stats, totals, strict=True))
                for totals in game.final_stats_N2S[row].tolist()
            ),
            terms=tuple(
                dict(zip(game.spec.reward_terms, sums, strict=True))
                for sums in self._terms_N2K[row].tolist()
            ),
            free_T2=None if self._free_NT2 is None else self._free_NT2[row, :frames].copy(),
        )


@dataclass
class MatchRecorder:
    """Records a match: the actions of the caller's seats, decision by decision."""

    recipe: Recipe
    seats: tuple[Contender, Contender]
    bots: tuple[int, int]  # as in `BatchedGame.bots_N2`
    seed: int
    match_id: str = ""
    _decisions: list[tuple[NDArray[np.uint8], int]] = field(default_factory=list)

    def note(self, actions_2A: NDArray[np.uint8], frames: int = 1) -> None:
        """Stores the actions that the seats are about to hold for `frames` frames."""
        self._decisions.append((np.packbits(actions_2A), frames))

    def finish(
        self, outcome: float, final: str, should_stop: Callable[[], bool] = lambda: False
    ) -> Replay:
        """Returns the match as a replay, after playing it again to record the actions of bots.

        Args:
            outcome: seat 0's outcome: 1 for a win, ½ for a draw, 0 for a loss.
            final: the match's `final_digest`.
            should_stop: called before each decision, and while the game waits for its server. If it
                returns True, the method raises `Unavailable`.

        Raises:
            DataCorrupt: the match ends differently when it is played again.
            InvalidInput: the match does not end at all when it is played again.
            Unavailable: the game fails while it plays the match again, or `should_stop` ended the
                work.
        """
        game, name = self.recipe.make(), self.match_id or self.seed
        try:
            if isinstance(game, HostedGame):
                game.host.should_stop = should_stop
            replay = self._played(game, should_stop)
        finally:
            game.close()
        if replay is None:
            raise InvalidInput(f"match {name} was not recorded to its end")
        if (replay.outcome, replay.final) != (outcome, final):
            raise DataCorrupt(f"match {name} can't be recorded: it ends otherwise")
        return replay

    def _played(self, game: BatchedGame, should_stop: Callable[[], bool]) -> Replay | None:
        recorder, shape = BatchRecorder(game, self.recipe), (1, 2, game.spec.action_size)
        bout = Bout(seats=self.seats, bots=self.bots, seed=self.seed)
        game.bots_N2[0] = self.bots
        game.reset(np.array([self.seed], np.uint64))
        for packed, frames in self._decisions:
            if should_stop():
                raise Unavailable(f"match {self.match_id or self.seed} is not recorded: stopped")
            held_N2A = np.unpackbits(packed, count=shape[1] * shape[2]).reshape(shape)
            for _ in range(frames):
                game.step(held_N2A)
                if 0 in game.failures:
                    name = self.match_id or self.seed
                    raise Unavailable(f"match {name} can't be recorded: {game.failures[0]}")
                recorder.note(held_N2A)
                if game.ended_N[0]:
                    return replace(recorder.finish(0, bout), match_id=self.match_id)
        return None


def keys_for_decision(
    frames_FA: NDArray[np.uint8], before_A: NDArray[np.uint8], held_A: NDArray[np.uint8]
) -> NDArray[np.uint8]:
    """Combines a player's keys in F frames into a single decision, which holds its keys for all of
    these frames.

    The decision holds a key if the player holds it in any of the frames, so that no short press is
    lost. But games react to new presses, and a key that is already held can't be pressed again. So
    if the previous decision holds a key and the player presses it again, the new decision releases
    it.

    Args:
        frames_FA: the player's keys in these frames, `[F, ..., A]`.
        before_A: the player's keys in the frame before these frames, `[..., A]`.
        held_A: the keys of the previous decision, `[..., A]`.

    Returns:
        The keys of the decision, `[..., A]`.
    """
    down_A = frames_FA.any(0)
    earlier_FA = np.concatenate([before_A[None], frames_FA[:-1]])
    tapped_A = (frames_FA > earlier_FA).any(0) & ~frames_FA.all(0)
    return (down_A & ~(tapped_A & (held_A > 0))).astype(np.uint8)
