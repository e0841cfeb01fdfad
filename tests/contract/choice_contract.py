"""What a game of choices keeps beyond the contract of every game."""

from __future__ import annotations

import numpy as np
import pytest
from game_contract import GameContract, actions, arrays, history, luck

from league.errors import InvalidInput
from league.games.base import CHOICE, EXTERNAL, BatchedGame


class ChoiceContract(GameContract):
    """Subclass and override `make`.

    Attributes:
        turns: whether the players decide one after the other; False is both at once in every frame.
        refuses: whether an illegal choice is refused; False where it is a way to lose.
    """

    turns = refuses = True

    def choosing(self, bots: bool = False) -> BatchedGame:
        """Three matches a few frames on."""
        game = self.begun(3, bots=bots)
        history(game, luck(game, 2))
        return game

    def test_everybody_has_a_legal_choice_at_any_time(self) -> None:
        game = self.begun(8)
        assert game.spec.action_kind == CHOICE
        decided_2 = np.zeros(2, bool)
        for luck_N2A in luck(game, 200 // self.pace):
            legal_N2A = game.legal_N2A
            assert legal_N2A is not None
            assert legal_N2A.shape == (8, 2, game.spec.action_size)
            assert legal_N2A.dtype == np.bool_
            assert legal_N2A.any(-1).all()
            deciding_N2 = legal_N2A.sum(-1) > 1
            decided_2 |= deciding_N2.any(0)
            assert deciding_N2.all() or self.turns
            assert not (self.turns and deciding_N2.all(-1).any()), (
                "who waits has exactly one legal choice"
            )
            game.step(actions(game, luck_N2A))
        assert decided_2.all()

    def test_every_legal_choice_is_taken_some_time_and_accepted(self) -> None:
        game = self.begun(16, bots=False)
        taken_A = np.zeros(game.spec.action_size, bool)
        for luck_N2A in luck(game, 300 // self.pace):
            chosen_N2A = actions(game, luck_N2A)
            taken_A |= chosen_N2A.any((0, 1))
            game.step(chosen_N2A)
        assert taken_A.all()

    def refused(
        self, game: BatchedGame, actions_N2A: np.ndarray, match: str, frames: int = 1
    ) -> None:
        before = {name: value.tobytes() for name, value in game.save().items()}
        with pytest.raises(InvalidInput, match=match):
            game.step(actions_N2A, frames)
        assert before == {name: value.tobytes() for name, value in game.save().items()}

    @pytest.mark.parametrize("seat", [0, 1])
    def test_no_choice_two_choices_and_illegal_ones_are_refused_and_change_nothing(
        self, seat: int
    ) -> None:
        game = self.choosing()
        assert game.legal_N2A is not None
        for row in range(3):
            idle = game.idle_actions()
            idle[row, seat] = 0
            self.refused(game, idle, f"seat {seat} of match {row}")
            idle[row, seat, :2] = 1
            self.refused(game, idle, f"seat {seat} of match {row}")
            if not self.refuses:
                continue
            for illegal in np.flatnonzero(~game.legal_N2A[row, seat]):
                idle[row, seat] = 0
                idle[row, seat, illegal] = 1
                name = game.spec.action_names[illegal]
                self.refused(game, idle, f"seat {seat} of match {row} .*{name}")

    def test_nobody_chooses_for_a_bot(self) -> None:
        """A bot's row is not read."""
        with_words, without = self.begun(12), self.begun(12)
        for luck_N2A in luck(with_words, 60):
            chosen_N2A = actions(with_words, luck_N2A)
            with_words.step(chosen_N2A)
            without.step(chosen_N2A * (without.bots_N2 == EXTERNAL)[..., None].astype(np.uint8))
            for name, array in arrays(with_words).items():
                assert np.array_equal(array, arrays(without)[name]), name
