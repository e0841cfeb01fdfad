"""Manages the rows of a game, in which matches begin and end independently of each other.

Shape suffixes: N rows (matches at once), S seats of all rows, 2 seats of a match, A action width.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from league.agent.batched_policy import BatchedPolicy
from league.agent.contract import PlayingNetwork
from league.agent.rivals import RivalSeats
from league.games.base import EXTERNAL, BatchedGame
from league.replay import Bout


class Conduct(NamedTuple):
    """Describes how the rivals (other people's agents) behaved in a match.

    Attributes:
        failed: for each seat, whether its rival failed.
        late: for each seat, how many decisions of its rival came late (0 if the rival failed).
        is_unstarted: whether the match failed because a rival did not start in time.
    """

    failed: tuple[bool, bool]
    late: tuple[int, int]
    is_unstarted: bool


class Table:
    """Seats players in the rows of `game`. A row plays a match or is idle.

    A `BatchedPolicy` plays the seats of networks and rivals. The game itself plays its bots.

    Args:
        game: the game. All of its rows become idle.
        load: returns the network for a digest.
        seed: seed for sampling the networks' actions.
        device: the device on which networks compute.
        rivals: plays the seats of rivals.
    """

    def __init__(
        self,
        game: BatchedGame,
        load: Callable[[str], PlayingNetwork],
        *,
        seed: int,
        device: str = "cpu",
        rivals: RivalSeats | None = None,
    ) -> None:
        self._game, self._rivals, self._failed = game, rivals, set[int]()
        self._policy = BatchedPolicy(
            2 * game.num_matches,
            load,
            seed=seed,
            action_size=game.spec.action_size,
            action_kind=game.spec.action_kind,
            device=device,
            rivals=rivals,
        )
        game.bots_N2[:], game.idle_N[:] = EXTERNAL, True

    @property
    def free(self) -> int:
        """Number of idle rows."""
        return int(self._game.idle_N.sum())

    def seat(self, bouts: Sequence[Bout], greedy: Sequence[bool]) -> list[int]:
        """Begins matches in the first idle rows.

        Args:
            bouts: the matches, at most `free`.
            greedy: for each match, whether its networks take the likeliest action.

        Returns:
            The row of each match.

        Raises:
            ValueError: there are more matches than idle rows.
        """
        rows = np.flatnonzero(self._game.idle_N)[: len(bouts)].tolist()
        if len(rows) < len(bouts):
            raise ValueError(f"{len(bouts)} matches don't fit in {len(rows)} free rows")
        seeds_N = np.zeros(self._game.num_matches, np.uint64)
        where_N = np.zeros(self._game.num_matches, np.bool_)
        for row, bout, is_greedy in zip(rows, bouts, greedy, strict=True):
            seeds_N[row], where_N[row] = bout.seed, True
            self._game.bots_N2[row] = bout.bots
            for seat, contender in enumerate(bout.seats):
                if bout.bots[seat] == EXTERNAL:
                    self._policy.seat(2 * row + seat, contender.digest, greedy=is_greedy)
        if rows:
            self._game.idle_N[rows] = False
            self._game.reset(seeds_N, where_N)
        return rows

    def decide(self) -> NDArray[np.uint8]:
        """Returns actions for all seats, `[N, 2, A]`. Networks and rivals decide for their seats.
        The other seats press no key or make some legal choice.
        """
        game = self._game
        seats = 2 * game.num_matches
        legal_SA = None if game.legal_N2A is None else game.legal_N2A.reshape(seats, -1)
        actions_SA = self._policy.act(game.observations_N2O.reshape(seats, -1), legal_SA)
        return actions_SA.reshape(game.num_matches, 2, -1)

    @property
    def has_rivals(self) -> bool:
        """Whether rivals play. Rivals decide in every frame."""
        return bool(self._policy.rival_seats)

    def decide_rivals(self, actions_N2A: NDArray[np.uint8]) -> None:
        """Lets only the rivals decide, in a frame in which the networks hold their keys. Writes the
        rivals' keys into `actions_N2A`.
        """
        game = self._game
        seats = 2 * game.num_matches
        self._policy.decide_rivals(
            game.observations_N2O.reshape(seats, -1), actions_N2A.reshape(seats, -1)
        )

    def fail_rivals(self) -> None:
        """Ends the matches whose rivals failed in the last frame. Call it after the game's step."""
        failures, self._policy.failures = self._policy.failures, {}
        self._failed = {*failures}
        self._game.fail({seat // 2: reason for seat, reason in failures.items()})

    def late_in(self, row: int) -> tuple[int, int]:
        """Returns how many decisions of each seat's rival came late, in the match of row `row`."""
        return self._policy.late_in(2 * row), self._policy.late_in(2 * row + 1)

    def leave(self, row: int) -> None:
        """Makes a row idle after its match has ended."""
        for seat in (0, 1):
            self._policy.vacate(2 * row + seat)
        self._game.idle_N[row] = True

    def conduct(self, row: int) -> Conduct:
        """Returns how the rivals behaved in the match of row `row`. Call it right after the match
        has ended, before `leave`.
        """
        failed = 2 * row in self._failed, 2 * row + 1 in self._failed
        unstarted = set[int]() if self._rivals is None else self._rivals.unstarted & self._failed
        return Conduct(failed, self.late_in(row), not unstarted.isdisjoint((2 * row, 2 * row + 1)))
