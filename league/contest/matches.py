"""Plays many matches at once and records each as a replay.

A match that is still to be played is called a bout. Its pupil, if it has one, is the player whose
recorded actions an agent learns to imitate.

Shape suffixes: N rows (matches at once), F frames, 2 seats of a match, A action width.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from league.agent.contract import PlayingNetwork
from league.agent.rivals import RivalSeats
from league.agent.snapshot import load_snapshot, read_card
from league.contest.members import Entrant, Member, check_plays
from league.contest.table import Conduct, Table
from league.errors import InvalidInput
from league.games.base import EXTERNAL, BatchedGame
from league.games.settings import GameSettings
from league.replay import BatchRecorder, Bout, Contender, Recipe, Replay
from league.replay.recorder import keys_for_decision

ROWS = 64
"""Number of matches at once. More matches at once cost memory and gain little speed."""
SHORTEST, LONGEST = 2, 12
"""Smallest and largest length of a pupil's mistake, in frames (see `play_bouts`)."""


def paired(
    first: Contender,
    second: Contender,
    bots: tuple[int, int],
    matches: int,
    seed: int,
    pupil: str = "",
) -> list[Bout]:
    """Makes matches of two players. They play each seed twice, with swapped seats.

    If a player meets itself, each match has its own seed, because swapped seats would repeat the
    match.

    Args:
        first, second: the players.
        bots: for each player, the index of a bot, or `EXTERNAL`.
        matches: the number of matches.
        seed: the first seed. Each further seed is larger by 1.
        pupil: name of the player that `play_bouts` slows down or makes err, or "".
    """
    one = Bout(seats=(first, second), bots=bots, seed=seed, pupil=pupil)
    if (first, bots[0]) == (second, bots[1]):
        return [replace(one, seed=seed + number) for number in range(matches)]
    straight = [replace(one, seed=seed + pair) for pair in range(-(-matches // 2))]
    swapped = [replace(bout, seats=(second, first), bots=(bots[1], bots[0])) for bout in straight]
    return [bout for pair in zip(straight, swapped, strict=True) for bout in pair][:matches]


def play(
    settings: GameSettings,
    members: Sequence[Member],
    bouts: Iterable[Bout],
    *,
    seed: int,
    greedy: bool,
    failures: dict[Bout, str],
    pace: int = 1,
    disturb: float = 0.0,
    rows: int = ROWS,
) -> Iterator[Replay]:
    """Plays matches of members, like `play_bouts`.

    Args:
        settings: the game.
        members: all members that play in these matches.
        bouts, seed, greedy, failures, disturb, rows: as for `play_bouts`.
        pace: number of frames for which a pupil holds its keys, if the pupil is a bot.

    Raises:
        InvalidInput: the networks hold their decisions for different numbers of frames.
    """
    frame_skip, of_digest = pace_of(settings, members, pace), {one.digest: one for one in members}

    def load(digest: str) -> PlayingNetwork:
        member = of_digest[digest]
        if member.network is not None:
            return member.network
        assert member.blobs is not None
        return load_snapshot(member.blobs, digest)[0]

    folder = next((member.blobs for member in members if member.is_rival), None)
    return play_bouts(
        Recipe.of(settings),
        bouts,
        load,
        frame_skip=frame_skip,
        seed=seed,
        greedy=greedy,
        pace=pace,
        disturb=disturb,
        failures=failures,
        rivals=None if folder is None else RivalSeats(folder),
        rows=rows,
    )


def pace_of(settings: GameSettings, members: Sequence[Member], pace: int = 1) -> int:
    """Returns the number of frames between decisions of the members' networks, or 1 without
    networks.

    Raises:
        InvalidInput: a network doesn't play this game, or the networks differ from each other or
            from `pace` in the number of frames between decisions.
    """
    skips = {}
    for member in members:
        if member.network is not None:
            skips[member.name] = settings.frame_skip
        elif member.blobs is not None and not member.is_rival:
            card = read_card(member.blobs, member.digest)
            check_plays(member.name, card, settings.spec())
            skips[member.name] = card.frame_skip
    if len({*skips.values(), *([pace] if pace > 1 else [])}) > 1:
        listed = ", ".join(f"{name} decides every {skip} frames" for name, skip in skips.items())
        listed += f"; --pace {pace}" if pace > 1 else ""
        raise InvalidInput(f"the paces differ ({listed}): name players of one pace, or bots")
    return next(iter(skips.values()), 1)


def bouts_of(
    first: Entrant, second: Entrant, matches: int, seed: int, *, errs: bool = False
) -> list[Bout]:
    """Makes matches in pairs, like `paired`. A mixture draws a member for each pair.

    Args:
        first, second: the players or mixtures.
        matches: the number of matches.
        seed: the first seed.
        errs: whether the first player is the pupil in all matches.

    Returns:
        The matches, in the order of their seeds.
    """

    def pairs_of(one: Member, other: Member, count: int, seed: int) -> list[Bout]:
        seated = one.seated, other.seated
        pupil = one.name if errs else ""
        return paired(one.contender, other.contender, seated, count, seed, pupil=pupil)

    if len(first.members) == len(second.members) == 1:
        return pairs_of(first.members[0], second.members[0], matches, seed)
    rng = np.random.default_rng([seed, 3])
    bouts = list[Bout]()
    while len(bouts) < matches:  # a pair gets two seeds, because a member may meet itself
        bouts += pairs_of(first.draw(rng), second.draw(rng), 2, seed + len(bouts))
    return bouts[:matches]


def play_bouts(
    recipe: Recipe,
    bouts: Iterable[Bout],
    load: Callable[[str], PlayingNetwork],
    *,
    frame_skip: int,
    seed: int,
    greedy: bool = False,
    pace: int = 1,
    disturb: float = 0.0,
    failures: dict[Bout, str] | None = None,
    rivals: RivalSeats | None = None,
    conduct: dict[Bout, Conduct] | None = None,
    rows: int = ROWS,
) -> Iterator[Replay]:
    """Plays all bouts, `rows` at once, and yields each match at its end, except failed matches.

    The result depends only on the arguments, unless rivals (other people's agents) play.

    An agent that learns only from recordings sees only the situations of the recorded player (the
    pupil), and does not learn how to recover from its own mistakes. `disturb` therefore makes the
    pupil err (DART, arXiv 1703.09327). The mistakes are marked, so that the agent does not learn
    them. In a mistake, the pupil's keys are replaced by its own keys from an earlier moment of the
    match. These are the right keys at the wrong time, like the mistakes of an agent that imitates
    the pupil.

    Args:
        recipe: the game.
        bouts: the matches. The next match is taken from here whenever a row is free. In a seat
            without a bot, the snapshot or rival with the seat's digest plays.
        load: returns the network for a digest.
        frame_skip: number of frames between a snapshot's decisions. Rivals decide in every frame.
        seed: seed of the sampling.
        greedy: whether snapshots take the likeliest action instead of sampling.
        pace: number of frames between decisions of a pupil that is a bot. With more than 1, the bot
            plays like an agent that imitates it at this pace (`league.replay.recorder`).
        disturb: share of the frames in which the pupil makes a mistake.
        failures: receives the reason of each match that failed.
        rivals: plays the seats of rivals. It is closed at the end.
        conduct: receives for each match, failed or not, how the rivals behaved in it.
        rows: number of matches at once.

    Raises:
        InvalidInput: `pace` or `disturb` is set in a game that doesn't report its bots' actions.
    """
    game = recipe.make(min(rows, len(bouts)) if isinstance(bouts, Sequence) else rows)
    try:
        spec = game.spec
        if (pace > 1 or disturb) and game.played_N2A() is None:
            raise InvalidInput(
                f"{spec.name} does not report what its players do, so mistakes could not be "
                "marked: leave out --disturb and --pace"
            )
        table = Table(game, load, seed=seed, rivals=rivals)
        recorded = _Recorded(game, table, BatchRecorder(game, recipe), pace, disturb, seed)
        waiting = iter(bouts)
        while recorded.seat(list(islice(waiting, table.free)), greedy):
            late = 0 if rivals is None else rivals.late
            actions_N2A = recorded.decide()
            for frame in range(max(frame_skip, pace)):
                if frame > 0:
                    table.decide_rivals(actions_N2A)
                if rivals is not None and rivals.late > late:  # gives a late rival a frame's time
                    late = rivals.late
                    time.sleep(1.0 / spec.frames_per_second)
                recorded.step(actions_N2A)
                yield from recorded.finished(
                    {} if failures is None else failures, {} if conduct is None else conduct
                )
    finally:
        game.close()
        if rivals is not None:
            rivals.close()


class _Recorded:
    """Plays and records the matches of a table, frame by frame. Pupils decide at their pace, and
    make mistakes.
    """

    def __init__(
        self,
        game: BatchedGame,
        table: Table,
        recorder: BatchRecorder,
        pace: int,
        disturb: float,
        seed: int,
    ) -> None:
        self._game, self._table, self._recorder, self._pace = game, table, recorder, pace
        self.bouts: dict[int, Bout] = {}
        rows = game.num_matches
        self._bots_N2 = np.full((rows, 2), EXTERNAL, np.int8)
        # Seats of pupils, seats of pupils that decide every `pace` frames, and the number of frames
        # that a mistake still lasts.
        self._pupil_N2, self._slow_N2 = np.zeros((2, rows, 2), np.bool_)
        self._left_N2 = np.zeros((rows, 2), np.int64)
        # Keys of the last decision, of the last frame, and of the current mistake.
        self._held_N2A, self._last_N2A, self._wrong_N2A = np.zeros(
            (3, rows, 2, game.spec.action_size), np.uint8
        )
        # Probability that a mistake begins in a frame without a mistake.
        self._chance = disturb / ((SHORTEST + LONGEST) / 2 * (1.0 - disturb))
        self._rng = np.random.default_rng([seed, 2])
        self._mistakes: dict[int, list[tuple[int, int, int]]] = {}
        game.reset(np.zeros(rows, np.uint64))

    def seat(self, bouts: Sequence[Bout], greedy: bool) -> bool:
        """Begins matches in idle rows. Returns whether any match is being played."""
        rows = self._table.seat(bouts, [greedy] * len(bouts))
        for row, bout in zip(rows, bouts, strict=True):
            self.bouts[row], self._mistakes[row] = bout, []
            self._bots_N2[row] = bout.bots
            self._pupil_N2[row] = [seat.name == bout.pupil for seat in bout.seats]
            self._slow_N2[row] = self._pupil_N2[row] & (self._bots_N2[row] != EXTERNAL)
            self._left_N2[row], self._held_N2A[row], self._last_N2A[row] = 0, 0, 0
        return bool(self.bouts)

    def decide(self) -> NDArray[np.uint8]:
        """Returns the actions of the seats that the game itself doesn't play, `[N, 2, A]`."""
        actions_N2A = self._table.decide()
        if self._pace > 1:
            ahead_N2A = self._looked_ahead(actions_N2A)
            self._held_N2A = np.where(self._slow_N2[..., None], ahead_N2A, actions_N2A)
            return self._held_N2A
        return actions_N2A

    def _looked_ahead(self, actions_N2A: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Returns for each seat a decision that imitates its keys in the next `pace` frames,
        `[N, 2, A]`. To know these keys, it plays the frames, and then returns to the present state.
        """
        game, state = self._game, self._game.save()
        frames: list[NDArray[np.uint8]] = []
        game.bots_N2[:] = self._bots_N2
        continues_N11 = np.ones((game.num_matches, 1, 1), np.bool_)
        for _ in range(self._pace):
            game.step(actions_N2A)
            done_N2A = game.played_N2A()
            assert done_N2A is not None
            # After the end of a match its last actions are repeated, because the row then plays the
            # next match.
            frames.append(np.where(continues_N11, done_N2A, frames[-1] if frames else done_N2A))
            continues_N11 &= ~game.ended_N[:, None, None]
        game.load(state)
        return keys_for_decision(np.stack(frames), self._last_N2A, self._held_N2A)

    def step(self, actions_N2A: NDArray[np.uint8]) -> None:
        """Plays and records a frame, in which pupils make mistakes."""
        game = self._game
        begins_N2 = self._rng.random(self._left_N2.shape) < self._chance
        for row, seat in np.argwhere(begins_N2 & self._pupil_N2 & (self._left_N2 == 0)).tolist():
            if now := int(game.frames_N[row]):
                keys_2A = self._recorder.played(row, int(self._rng.integers(now)))
                frames = int(self._rng.integers(SHORTEST, LONGEST + 1))
                self._wrong_N2A[row, seat], self._left_N2[row, seat] = keys_2A[seat], frames
                self._mistakes[row].append((seat, now, frames))
        errs_N2 = self._left_N2 > 0
        slow_N2 = self._slow_N2 & (self._pace > 1)
        game.bots_N2[:] = np.where(slow_N2 | errs_N2, EXTERNAL, self._bots_N2)
        self._last_N2A = np.where(errs_N2[..., None], self._wrong_N2A, actions_N2A)
        legal_N2A = None if game.legal_N2A is None else game.legal_N2A.copy()
        game.step(self._last_N2A)
        self._table.fail_rivals()
        self._recorder.note(self._last_N2A, legal_N2A)
        self._left_N2 = np.maximum(self._left_N2 - 1, 0)

    def finished(self, failures: dict[Bout, str], conduct: dict[Bout, Conduct]) -> Iterator[Replay]:
        """Yields the matches that ended in the last frame. `failures` receives the reason of each
        failed match, and `conduct` how the rivals behaved in each match.
        """
        for row in map(int, np.flatnonzero(self._game.ended_N)):
            bout = self.bouts.pop(row, None)
            if bout is None:
                continue
            self._pupil_N2[row] = False
            conduct[bout] = self._table.conduct(row)
            self._table.leave(row)
            if row in self._game.failures:
                failures[bout] = self._game.failures[row]
            else:
                yield self._recorder.finish(row, bout, tuple(self._mistakes[row]))
