"""Kuhn's poker and Leduc hold'em."""

from __future__ import annotations

from league.games.base import BatchedGame


def make_kuhn(num_matches: int, *, max_frames: int | None = None) -> BatchedGame:
    """N hands of Kuhn's poker at once: three cards, one bet."""
    from league.games.choice_game import ChoiceGame
    from league.games.poker.rules import PokerRules
    from league.games.poker.variants import KUHN

    return ChoiceGame(PokerRules(KUHN), num_matches, max_frames)


def make_leduc(num_matches: int, *, max_frames: int | None = None) -> BatchedGame:
    """N hands of Leduc hold'em at once: six cards, two rounds of bets, a public card between
    them.
    """
    from league.games.choice_game import ChoiceGame
    from league.games.poker.rules import PokerRules
    from league.games.poker.variants import LEDUC

    return ChoiceGame(PokerRules(LEDUC), num_matches, max_frames)
