"""Matrix games: payoffs, sides, rounds, bots, and tables from files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from league.errors import ConfigError
from league.games.base import BatchedGame
from league.games.choice_game import ChoiceGame
from league.games.matrix import MAX_ACTIONS, read_payoffs
from league.games.registry import game_spec, make_batched
from league.settings.base import lay_over

BRPS = [[0, -25, 50], [25, 0, -5], [-50, 5, 0]]


def begun(name: str, num_matches: int = 1, **options: Any) -> BatchedGame:
    game = make_batched(name, num_matches, **options)
    game.reset(np.arange(num_matches, dtype=np.uint64))
    return game


def one_hot(game: BatchedGame, *choices: tuple[int, int]) -> NDArray[np.uint8]:
    """Choices of both seats by match."""
    return np.eye(game.spec.action_size, dtype=np.uint8)[np.array(choices)]


def test_every_cell_of_biased_rock_paper_scissors_is_paid_to_both_seats() -> None:
    for first in range(3):
        for second in range(3):
            game = begun("matrix:brps")
            game.step(one_hot(game, (first, second)))
            paid = BRPS[first][second]
            assert game.ended_N[0]
            assert game.reward_terms_N2K[0].tolist() == [
                [paid, np.sign(paid)],
                [-paid, -np.sign(paid)],
            ]
            assert game.outcomes_N[0] == (1 + np.sign(paid)) / 2
            assert game.final_stats_N2S[0, :, 0].tolist() == [paid, -paid]
            chosen = game.final_stats_N2S[0, :, 2:]
            assert np.array_equal(chosen, np.eye(3)[[first, second]])
            assert np.array_equal(game.final_observations_N2O[0, 0, 2:].reshape(2, 3), chosen)
            assert np.array_equal(game.final_observations_N2O[0, 1, 2:].reshape(2, 3), chosen[::-1])


def test_sides_are_drawn_where_they_differ_and_nowhere_else() -> None:
    for name, rows in [("matrix:rps", 1.0), ("matrix:brps", 1.0), ("matrix:mp", 0.5)]:
        game = begun(name, 4000)
        first_N2 = game.observations_N2O[:, :, 0]
        assert np.array_equal(first_N2, game.observations_N2O[:, ::-1, 1])
        assert np.array_equal(first_N2, game.stats_N2S[:, :, 1])
        assert first_N2[:, 0].mean() == pytest.approx(rows, abs=0.03)


def test_matching_pennies_pays_who_picks_rows_for_a_match() -> None:
    game = begun("matrix:mp", 64)
    rows_N = game.observations_N2O[:, 0, 0] == 1
    game.step(one_hot(game, *[(0, 0)] * 32, *[(0, 1)] * 32))
    matched_N = np.arange(64) < 32
    assert np.array_equal(game.outcomes_N == 1.0, rows_N == matched_N)
    assert 0 < rows_N.sum() < 64


def test_rounds_show_the_last_choices_and_the_sum_decides() -> None:
    game = begun("matrix:brps", rounds=3)
    assert not game.observations_N2O[0, :, 2:].any()
    game.step(one_hot(game, (0, 2)))
    assert game.reward_terms_N2K[0].tolist() == [[50.0, 0.0], [-50.0, 0.0]]
    assert game.observations_N2O[0, 0].tolist() == [1, 0, *(1, 0, 0), *(0, 0, 1)]
    assert game.observations_N2O[0, 1].tolist() == [0, 1, *(0, 0, 1), *(1, 0, 0)]
    assert game.frame(0)["seats"][1] == {"side": "columns", "last": "scissors", "payoff": -50.0}
    assert game.frame(0)["table"] == {"round": 2, "rounds": 3}
    game.step(one_hot(game, (0, 1)))
    assert not game.ended_N[0]
    game.step(one_hot(game, (0, 1)))
    assert game.ended_N[0]
    assert game.outcomes_N[0] == 0.5  # 50 - 25 - 25
    assert game.reward_terms_N2K[0].tolist() == [[-25.0, 0.0], [25.0, 0.0]]


def test_sums_that_rounding_alone_keeps_from_zero_are_draws(tmp_path: Path) -> None:
    (tmp_path / "tenths.csv").write_text("0.1,0.2,-0.3\n")
    game = begun(f"matrix:{tmp_path / 'tenths.csv'}", rounds=3)
    row_seat = int(game.observations_N2O[0, 0, 0] == 0)
    assert 0.1 + 0.2 - 0.3 != 0.0
    for column in range(3):
        pair = [0, 0]
        pair[1 - row_seat] = column
        game.step(one_hot(game, (pair[0], pair[1])))
    assert game.ended_N[0]
    assert game.outcomes_N[0] == 0.5


def test_bots_choose_as_they_are_called() -> None:
    spec = game_spec("matrix:rps")
    assert [bot.name for bot in spec.bots] == [
        "random",
        "always-rock",
        "always-paper",
        "always-scissors",
    ]
    game = make_batched("matrix:rps", 3000)
    game.bots_N2[:] = [spec.bot_index("always-paper"), spec.bot_index("random")]
    game.reset(np.arange(3000, dtype=np.uint64))
    game.step(game.idle_actions())
    chosen_N2A = game.final_stats_N2S[:, :, 2:]
    assert chosen_N2A[:, 0].sum(0).tolist() == [0, 3000, 0]
    assert chosen_N2A[:, 1].sum(0) == pytest.approx([1000] * 3, abs=100)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return tmp_path / "game.csv"


def test_a_file_of_payoffs_is_a_game(table: Path) -> None:
    table.write_text("\ufeffHawk, dove\n\n -1 ,2.5\n0,1e1\n3,0\n", encoding="utf-8")
    matrix_RC, names = read_payoffs(table)
    assert matrix_RC.tolist() == [[-1, 2.5], [0, 10], [3, 0]]
    assert names == ("hawk", "dove", "2")
    game = begun(f"matrix:{table}", 100)
    assert isinstance(game, ChoiceGame)
    assert game.spec.name == f"matrix:{table}"
    rows_N = game.observations_N2O[:, 0, 0] == 1
    assert 20 < rows_N.sum() < 80
    assert game.legal_N2A is not None
    assert np.array_equal(game.legal_N2A[:, 0, 2], rows_N)
    assert np.array_equal(game.legal_N2A[:, 1, 2], ~rows_N)
    assert game.legal_N2A[:, :, :2].all()


def test_another_table_under_the_same_name_is_another_version(table: Path) -> None:
    versions = set()
    for text in ("1,-1\n-1,1\n", "1,-1\n-1,2\n", "a,b\n1,-1\n-1,1\n"):
        table.write_text(text)
        versions.add(make_batched(f"matrix:{table}", 1).spec.version)
    versions.add(make_batched(f"matrix:{table}", 1, rounds=2).spec.version)
    assert len(versions) == 4


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rock,paper\n", "no payoffs"),
        ("a,b,c\n1,2,3\n\n4,5\n", "line 4.*'4,5'"),
        ("1,b\n3,4\n", "line 1.*'1,b'"),
        ("1,2\n3,nan\n", "line 2.*'3,nan'"),
        ("a,a\n1,2\n", "a, a"),
        ("a,1st place\n1,2\n", "a, 1st place"),
        (",".join(["0"] * (MAX_ACTIONS + 1)), r"\b100\b"),
    ],
)
def test_a_table_that_can_not_be_played_is_refused_by_file_and_line(
    table: Path, text: str, message: str
) -> None:
    table.write_text(text)
    with pytest.raises(ConfigError, match=message) as refused:
        make_batched(f"matrix:{table}", 1)
    assert str(table) in str(refused.value)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"name": "matrix"}, "matrix:NAME"),
        ({"name": "matrix:rsp"}, "'rps'"),
        ({"name": "matrix:none.csv"}, r"none\.csv"),
        ({"name": "matrix:rps", "options": {"rounds": 0}}, "rounds.*0"),
        ({"name": "matrix:rps", "options": {"round": 2}}, "'round'"),
        ({"name": "matrix:rps", "options": {"rounds": 5}, "match_seconds": 4}, r"\b4\b"),
        ({"name": "matrix:rps", "frame_skip": 2}, "frame_skip.*2"),
    ],
)
def test_wrong_settings_are_named(values: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        lay_over({"game": values})
