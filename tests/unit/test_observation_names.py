"""Every number of an observation has a name, and stands where its name says."""

import numpy as np
import pytest

from league.games.registry import game_spec, make_batched


@pytest.mark.parametrize("name", ["brawl", "kuhn", "leduc", "matrix:rps"])
def test_there_is_one_name_for_each_number(name: str) -> None:
    spec = game_spec(name)
    assert len(spec.observation_names) == len(set(spec.observation_names)) == spec.observation_size


def test_a_fighters_half_comes_first() -> None:
    names = game_spec("brawl").observation_names
    assert names[0] == "own x"
    assert names[32] == "opponent x"
    assert [name.removeprefix("own ") for name in names[:32]] == [
        name.removeprefix("opponent ") for name in names[32:64]
    ]


def test_a_poker_hand_reads_as_it_is_named() -> None:
    game = make_batched("leduc", 32)
    game.reset(np.arange(32, dtype=np.uint64))
    names = game.spec.observation_names
    for row in range(32):
        for seat in (0, 1):
            seen = dict(zip(names, game.observations_N2O[row, seat].tolist(), strict=True))
            assert seen["is player 0"] + seen["is player 1"] == 1
            assert seen["own turn"] == seen["is player 0"]  # player 0 opens
            may = game.legal_N2A[row, seat].tolist()
            assert [bool(seen[f"may {action}"]) for action in game.spec.action_names] == may
            assert sum(seen[f"own rank is {rank}"] for rank in "JQK") == 1
            assert not any(seen[f"public rank is {rank}"] for rank in "JQK")
            assert seen["own chips in the pot"] == seen["the other's chips in the pot"] > 0
    matrix = make_batched("matrix:rps", 1, rounds=3)
    matrix.reset(np.zeros(1, np.uint64))
    matrix.step(np.eye(3, dtype=np.uint8)[None, [0, 2]])
    seen = dict(
        zip(matrix.spec.observation_names, matrix.observations_N2O[0, 0].tolist(), strict=True)
    )
    first, second = matrix.spec.action_names[0], matrix.spec.action_names[2]
    assert (
        seen[f"own last choice was {first}"] == seen[f"the other's last choice was {second}"] == 1
    )
    matrix.close()
