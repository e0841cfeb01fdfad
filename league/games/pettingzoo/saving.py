"""A game as plain arrays, and back: every match is its seed and what was done in it.

Shape suffixes as in game.py.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from league.errors import DataCorrupt, VersionMismatch

if TYPE_CHECKING:
    from league.games.pettingzoo.game import PettingZooGame

_ARRAYS = (
    "observations_N2O",
    "final_observations_N2O",
    "reward_terms_N2K",
    "ended_N",
    "outcomes_N",
    "frames_N",
    "final_frames_N",
    "stats_N2S",
    "final_stats_N2S",
    "bots_N2",
    "next_seeds_N",
    "seeds_N",
    "totals_N2",
)


def saved(game: PettingZooGame) -> dict[str, NDArray]:
    """A copy of the game's whole state."""
    state: dict[str, NDArray] = {name: getattr(game, name).copy() for name in _ARRAYS}
    state["history"] = game.matches.history.saved(int(game.frames_N.max()))
    state["broken_N"] = _broken(game)
    state["layout"] = _mark(game)
    return state


def load(game: PettingZooGame, state: dict[str, NDArray]) -> None:
    """Plays the saved matches anew; raises as `PettingZooGame.load` says."""
    if not np.array_equal(state.get("layout", np.zeros(0, np.uint8)), _mark(game)):
        raise VersionMismatch(
            "the saved matches are of another environment, version or time limit: begin new ones"
        )
    for name in _ARRAYS:
        _check(name, state.get(name), getattr(game, name))
    _check("broken_N", state.get("broken_N"), _broken(game))
    frames = int(state["frames_N"].max())
    if "history" not in state or not game.matches.history.fits(state["history"], frames):
        raise DataCorrupt(f"saved array 'history' does not hold the {frames} frames of the matches")
    for name in _ARRAYS:
        getattr(game, name)[...] = state[name]
    game.matches.history.restore(state["history"])
    broken = game.matches.play_anew(state["broken_N"])
    if broken:
        n, reason = next(iter(broken.items()))
        raise DataCorrupt(f"saved match {n} can't be continued: {reason}")


def _check(name: str, value: Any, target: NDArray) -> None:
    if value is None or value.shape != target.shape or value.dtype != target.dtype:
        found = "missing" if value is None else f"{value.dtype}{value.shape}"
        raise DataCorrupt(
            f"saved array {name!r} is {found}, {target.dtype}{target.shape} is wanted: "
            "the state was saved with another number of matches or is damaged"
        )


def _broken(game: PettingZooGame) -> NDArray[np.bool_]:
    return np.array([n in game.matches.broken for n in range(game.num_matches)])


def _mark(game: PettingZooGame) -> NDArray[np.uint8]:
    """What a saved state must share with this game to be continued."""
    options = json.dumps(game.options, sort_keys=True, default=str)
    text = f"{game.spec.name} {game.spec.version} {game.spec.max_frames} {options}"
    return np.frombuffer(text.encode(), np.uint8).copy()
