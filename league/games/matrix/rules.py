"""One choice of both players at once, paid by a table; or several rounds of it.

Shape suffixes: N positions, 2 players, A actions, O observation width, R rows, C columns.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from league.errors import ConfigError
from league.games.choice_rules import RANDOM_BOT, ChoiceRules, Positions, ScriptedBot, always
from league.games.matrix.payoffs import Payoffs

NOTHING = -1
MAX_ROUNDS = 10_000


class MatrixRules(ChoiceRules):
    """`rounds` rounds of a matrix game.

    Own part of an observation: whether one picks rows, whether columns, and one's last choice. The
    rest: the opponent's last choice. A player doesn't see the other's choice of the current round.
    """

    deals = 1
    record = np.dtype([("round", np.int32), ("last", np.int16, (2,))])

    def __init__(self, payoffs: Payoffs, rounds: int = 1) -> None:
        if isinstance(rounds, bool) or not isinstance(rounds, int) or not 1 <= rounds <= MAX_ROUNDS:
            raise ConfigError(f"rounds is {rounds!r}: a match has 1 to {MAX_ROUNDS}")
        self.name = payoffs.name
        self.matrix_RC = payoffs.matrix_RC
        self.action_names = payoffs.action_names
        self.version = f"1-{_digest(payoffs)}-{rounds}"
        self.longest = rounds
        # Where both players have the same game there are no sides to draw.
        self.draws_sides = not _is_symmetric(payoffs.matrix_RC)
        self._count = len(self.action_names)
        self.own_size = 2 + self._count
        self.observation_size = 2 + 2 * self._count
        seen = [
            f"{who} last choice was {name}"
            for who in ("own", "the other's")
            for name in self.action_names
        ]
        self.observation_names = ("plays the rows", "plays the columns", *seen)
        self.largest_payoff = rounds * float(np.abs(payoffs.matrix_RC).max())
        self._legal_2A = np.arange(self._count) < np.array(payoffs.matrix_RC.shape)[:, None]
        # Row A, also read at NOTHING (-1), is no choice at all.
        self._one_hot = np.vstack(
            [np.eye(self._count, dtype=np.float32), np.zeros(self._count, np.float32)]
        )
        self.bots = (RANDOM_BOT, *(self._always(index) for index in range(self._count)))

    def _always(self, index: int) -> ScriptedBot:
        name = self.action_names[index]
        return ScriptedBot(
            name=f"always-{name}", summary=f"always takes {name}", strategy=always(index)
        )

    def begin(self, deals_N: NDArray[np.int64]) -> Positions:
        positions_N = np.zeros(len(deals_N), self.record)
        positions_N["last"] = NOTHING
        return positions_N

    def legal(self, positions_N: Positions) -> NDArray[np.bool_]:
        return np.broadcast_to(self._legal_2A, (len(positions_N), *self._legal_2A.shape))

    def play(
        self, positions_N: Positions, choices_N2: NDArray[np.intp]
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        positions_N["round"] += 1
        positions_N["last"] = choices_N2
        paid_N = self.matrix_RC[choices_N2[:, 0], choices_N2[:, 1]]
        return paid_N, positions_N["round"] >= self.longest

    def observe(self, positions_N: Positions) -> NDArray[np.float32]:
        last_N2A = self._one_hot[positions_N["last"]]
        views_N2O = np.empty((len(positions_N), 2, self.observation_size), np.float32)
        views_N2O[:, :, :2] = np.eye(2)
        views_N2O[:, :, 2 : self.own_size] = last_N2A
        views_N2O[:, :, self.own_size :] = last_N2A[:, ::-1]
        return views_N2O

    def label(self, position: np.void, player: int) -> str:
        """The side, the round, and the last choices (earlier ones are the infosets before)."""
        own, other = (self._said(position["last"][who]) for who in (player, 1 - player))
        side = ("rows", "columns")[player]
        return f"{side} round {int(position['round']) + 1}" + (
            f" after {own}, {other}" if own else ""
        )

    def describe(self, position: np.void) -> dict[str, Any]:
        return {
            "players": [
                {"side": side, "last": self._said(last)}
                for side, last in zip(("rows", "columns"), position["last"], strict=True)
            ],
            "round": min(int(position["round"]) + 1, self.longest),
            "rounds": self.longest,
        }

    def _said(self, action: int) -> str:
        return "" if action == NOTHING else self.action_names[action]


def _is_symmetric(matrix_RC: NDArray[np.float64]) -> bool:
    """Whether the game is the same from both sides: M = -Mᵀ."""
    return matrix_RC.shape[0] == matrix_RC.shape[1] and bool(
        np.array_equal(matrix_RC, -matrix_RC.T)
    )


def _digest(payoffs: Payoffs) -> str:
    """Of all that makes the game what it is, so that another table is another version."""
    text = f"{payoffs.matrix_RC.tolist()} {payoffs.action_names}"
    return hashlib.sha256(text.encode()).hexdigest()[:8]
