"""OpenSpiel's games keep the contract of a batched game."""

from __future__ import annotations

import numpy as np
import pytest
from choice_contract import ChoiceContract
from game_contract import actions, luck

from league.cli.main import main
from league.errors import ConfigError
from league.games.base import BatchedGame
from league.games.registry import game_spec, make_batched

pytest.importorskip("pyspiel")


class Spiel:
    """Game `name`."""

    pace = 10
    name: str

    def make(self, num_matches: int, max_frames: int | None = None) -> BatchedGame:
        return make_batched(f"openspiel:{self.name}", num_matches, max_frames=max_frames)


class TestLeduc(Spiel, ChoiceContract):
    name = "leduc_poker"


class TestPig(Spiel, ChoiceContract):
    name = "pig"


class TestRockPaperScissors(Spiel, ChoiceContract):
    name, turns = "matrix_rps", False


def test_the_spec_says_what_the_game_is() -> None:
    spec = game_spec("openspiel:leduc_poker")
    assert (spec.action_kind, spec.action_size, spec.own_size) == ("choice", 3, 2 + 1 + 3)
    assert spec.observation_size == spec.own_size + 30
    assert (spec.payoff_unit, spec.largest_payoff) == ("points", 13.0)
    assert spec.version.endswith(" leduc_poker()")
    assert game_spec("openspiel:tic_tac_toe").payoff_unit == ""
    assert game_spec("openspiel:matrix_rps").action_names == ("Rock", "Paper", "Scissors")


def test_the_seed_deals_every_hand_alike() -> None:
    game = make_batched("openspiel:kuhn_poker", 6000)
    game.reset(np.arange(6000, dtype=np.uint64))
    cards_N23 = game.observations_N2O[:, :, game.spec.own_size + 2 :][:, :, :3]
    assert (cards_N23.sum(-1) == 1).all(), "a player sees its own card"
    hands = cards_N23.argmax(-1) @ np.array([3, 1])
    counts = np.bincount(hands, minlength=9)
    assert counts[[0, 4, 8]].tolist() == [0, 0, 0]
    assert np.abs(counts[[1, 2, 3, 5, 6, 7]] - 1000).max() < 150


def test_payoffs_are_the_games_own() -> None:
    game = make_batched("openspiel:kuhn_poker", 64)
    game.reset(np.arange(64, dtype=np.uint64))
    paid = set()
    for luck_N2A in luck(game, 40):
        game.step(actions(game, luck_N2A))
        ended = np.flatnonzero(game.ended_N)
        payoffs = game.final_stats_N2S[ended, :, game.spec.stats.index("payoff")]
        assert (payoffs.sum(-1) == 0).all()
        assert np.array_equal(np.sign(payoffs[:, 0]), 2 * game.outcomes_N[ended] - 1)
        paid |= set(payoffs[:, 0].tolist())
    assert paid == {-2.0, -1.0, 1.0, 2.0}


PITS = (*range(1, 7), *range(8, 10))
"""The first eight numbers of mancala that show a pit with stones. Others are not named."""


def test_numbers_out_of_bounds_are_clipped_and_counted() -> None:
    game = make_batched("openspiel:mancala", 1)
    game.reset(np.zeros(1, np.uint64))
    assert game.observations_N2O.max() == 1.0, "a pit has four stones"
    assert {*game.clipped()} == {f"seat_0/{pit}/-1/1" for pit in PITS}
    assert not game.clipped()


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("", "openspiel:NAME"),
        ("tic_tac_to", "did you mean 'tic_tac_toe'"),
        ("kuhn_poker(players=3)", "3 players"),
        ("tiny_hanabi", "alike"),
        ("negotiation", "luck"),
        ("coordinated_mp", "tensor"),
        ("leduc_poker(colour=red)", "colour"),
        ("nfg_game", "can't make"),
    ],
)
def test_what_cannot_be_played_is_said_in_a_sentence(name: str, fault: str) -> None:
    with pytest.raises(ConfigError, match=fault) as refused:
        game_spec(f"openspiel:{name}")
    assert str(refused.value).isprintable()


def test_the_exact_values_of_a_bot_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["exploitability", "--game", "openspiel:kuhn_poker", "random"]) == 0
    ours = capsys.readouterr().out
    assert main(["exploitability", "--game", "kuhn", "random"]) == 0
    assert ours == capsys.readouterr().out
    assert main(["exploitability", "--game", "openspiel:bargaining", "random"]) == 2
    assert "no exact values" in capsys.readouterr().err


def test_a_demo_shows_the_board(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "random", "random", "--game", "openspiel:tic_tac_toe", "--seed", "1"]) == 0
    assert "\t..." in capsys.readouterr().out
