"""An environment as text: its own, or the board that its observation shows."""

from __future__ import annotations

from typing import Any

import numpy as np

from league.games.pettingzoo.environment import Seats

_MARKS = ".XO#@%&*+="
_LONGEST = 20_000


def drawn(seats: Seats) -> str:
    """The environment's own text where it renders some, else what the seat to act observes."""
    if getattr(seats.env, "render_mode", None) == "ansi":
        rendered = seats.env.render()
        if isinstance(rendered, str):
            return rendered[:_LONGEST]
    seat = seats.acting.index(True) if any(seats.acting) else 0
    return f"{seats.agents[seat]} sees:\n{observed(seats.observations[seat])}"[:_LONGEST]


def observed(observation: Any) -> str:
    """An observation in text; planes [height, width, marks] of zeros and ones as a board."""
    if isinstance(observation, dict):
        rest = {key: value for key, value in observation.items() if key != "action_mask"}
        return "\n".join(
            observed(value) if len(rest) == 1 else f"{key}: {observed(value)}"
            for key, value in rest.items()
        )
    numbers = np.asarray(observation)
    is_board = (
        numbers.ndim == 3 and numbers.shape[2] < len(_MARKS) and np.isin(numbers, (0, 1)).all()
    )
    if not is_board:
        return np.array2string(numbers, precision=3, threshold=500)
    marks = np.where(numbers.any(axis=2), numbers.argmax(axis=2) + 1, 0)
    return "\n".join(" ".join(_MARKS[mark] for mark in line) for line in marks)
