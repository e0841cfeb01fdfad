"""Matrix games: rock-paper-scissors, matching pennies, or any table of payoffs."""

from __future__ import annotations

from league.games.base import BatchedGame


def make_matrix(
    num_matches: int, *, max_frames: int | None = None, argument: str = "", rounds: int = 1
) -> BatchedGame:
    """N matches of the matrix game `argument`: rps, brps, mp, or a path to a CSV of player 0's
    payoffs.

    A match is one choice of both at once, or `rounds` of them; who earned more in sum wins. Raises
    `ConfigError` for an unknown name or a table that can't be read.
    """
    from league.games.choice_game import ChoiceGame
    from league.games.matrix.payoffs import named_payoffs
    from league.games.matrix.rules import MatrixRules

    return ChoiceGame(MatrixRules(named_payoffs(argument), rounds), num_matches, max_frames)
