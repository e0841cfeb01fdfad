"""PettingZoo's environments, and some made for the purpose, keep the contract of a batched game."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
from choice_contract import ChoiceContract
from game_contract import RestingContract
from pettingzoo.test import api_test, parallel_api_test
from small_environments import Late, LateTurns
from thread_workers import threads_of

from league.errors import InvalidInput
from league.games import hosted
from league.games.base import BatchedGame
from league.games.drawing.painter import draw_frame
from league.games.pettingzoo.workers import Worker
from league.games.registry import game_spec, make_batched


def make_worker(command: list[str]) -> Worker:
    """In test_pettingzoo_failures.py the workers are processes."""
    return Worker(**json.loads(command[-1]) | {"step_seconds": 0.0})


@pytest.fixture(autouse=True)
def _threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosted, "Process", threads_of(make_worker))


class Made:
    """Environment `name`, of one worker."""

    pace = 10
    name: str

    def make(self, num_matches: int, max_frames: int | None = None) -> BatchedGame:
        return make_batched(
            f"pettingzoo:{self.name}", num_matches, max_frames=max_frames, workers=1
        )


class TestNim(Made, ChoiceContract):
    """As other games of choices, but an illegal choice is a loss, as in PettingZoo."""

    name = "small_environments:Nim"
    refuses = False


class TestKeys(Made, RestingContract):
    name = "small_environments"

    test_halves_of_the_observations_swap_exactly = None  # there are no halves


def test_the_spec_says_what_the_environment_is() -> None:
    spec = game_spec("pettingzoo:pettingzoo.classic.connect_four_v3")
    assert (spec.action_kind, spec.action_size, spec.own_size) == ("choice", 7, 2 + 1 + 7)
    assert spec.observation_size == spec.own_size + 6 * 7 * 2
    assert spec.version.endswith(" connect_four_v3")
    assert spec.frames_per_second == 2
    keys = game_spec("pettingzoo:small_environments")
    assert (keys.action_kind, keys.action_size, keys.own_size) == ("keys", 3, 3)
    assert keys.observation_size == 3 + (2 + 1 + 2 + 3)
    assert keys.version.endswith(" push_v0")


def played(game: BatchedGame, choices: list[int]) -> BatchedGame:
    """One match of turns in which `choices` are made in order."""
    for choice in choices:
        actions_N2A = game.idle_actions()
        seat = int(game.observations_N2O[0, 1, 2])
        actions_N2A[0, seat] = 0
        actions_N2A[0, seat, choice] = 1
        game.step(actions_N2A)
    return game


@pytest.mark.parametrize(
    ("choices", "outcome"),
    [([0, 1, 0, 1, 0, 1, 0], 1.0), ([6, 1, 0, 1, 0, 1, 0, 1], 0.0)],
)
def test_connect_four_is_won_by_four_in_a_row(choices: list[int], outcome: float) -> None:
    game = make_batched("pettingzoo:pettingzoo.classic.connect_four_v3", 1)
    game.reset(np.zeros(1, np.uint64))
    played(game, choices[:-1])
    assert not game.ended_N[0]
    played(game, choices[-1:])
    assert game.ended_N[0]
    assert game.outcomes_N[0] == outcome
    assert game.final_frames_N[0] == len(choices)
    assert game.final_stats_N2S[0, :, 1].tolist() == [(len(choices) + 1) // 2, len(choices) // 2]
    assert game.reward_terms_N2K[0, 0].tolist() == [2 * outcome - 1, 2 * outcome - 1]
    board = game.final_observations_N2O[0, 0, game.spec.own_size :].reshape(6, 7, 2)
    assert (board > 0).sum() == len(choices)


def test_a_seat_sees_no_more_than_the_environment_shows_it() -> None:
    """In rock-paper-scissors the other's choice is seen once both were made."""
    game = make_batched("pettingzoo:pettingzoo.classic.rps_v2", 2)
    game.reset(np.zeros(2, np.uint64))
    actions_N2A = np.zeros((2, 2, 3), np.uint8)
    actions_N2A[:, 0, 0] = 1
    actions_N2A[0, 1, 1] = actions_N2A[1, 1, 2] = 1
    before = game.observations_N2O.copy()
    assert np.array_equal(before[0], before[1])
    game.step(actions_N2A)
    seen = game.observations_N2O[:, 0, game.spec.own_size :]
    assert seen.tolist() == [[-1, 1, -1, -1], [-1, -1, 1, -1]]
    assert game.reward_terms_N2K[:, 0, 0].tolist() == [-1.0, 1.0]


def test_the_time_limit_counts_the_rewards_so_far() -> None:
    game = make_batched("pettingzoo:pettingzoo.classic.rps_v2", 1, max_frames=3)
    game.reset(np.zeros(1, np.uint64))
    for frame, winner in enumerate([0, 0, 1]):
        actions_N2A = np.zeros((1, 2, 3), np.uint8)
        actions_N2A[0, winner, 1] = actions_N2A[0, 1 - winner, 0] = 1
        game.step(actions_N2A)
        assert game.ended_N[0] == (frame == 2)
        assert game.reward_terms_N2K[0, winner, 0] == 1.0
        assert game.reward_terms_N2K[0, 1 - winner, 0] == -1.0
    assert game.outcomes_N[0] == 1.0
    assert game.final_stats_N2S[0, 0].tolist() == [0.0, 3.0, 1.0]


def with_stones(game: BatchedGame, wanted: int) -> BatchedGame:
    """Begins a match of `Nim` with this number of stones."""
    for seed in range(40):
        game.reset(np.array([seed], np.uint64))
        if game.observations_N2O[0, 0, game.spec.own_size + wanted] == 1.0:
            return game
    raise AssertionError(f"no seed gives {wanted} stones")


@pytest.mark.parametrize(
    ("number", "prices", "outcome"),
    [
        ("float", (0.1, 1.0), 0.5),
        ("float", (-0.1, -1.0), 0.5),
        ("float", (0.1, 1.0 + 1e-7), 0.0),
        ("float", (1e-12, 0.9e-11), 1.0),
        ("float32", (0.1, 1.0), 0.5),
        ("float32", (0.1, 1.0001), 0.0),
        ("int64", (10**11, 10**12 + 1), 0.0),
    ],
)
@pytest.mark.parametrize("factory", ["Instalments", "instalments_by_turns"])
def test_equal_rewards_are_a_draw_however_they_were_paid(
    factory: str, number: str, prices: tuple[float, float], outcome: float
) -> None:
    """Seat 0 is paid the first price ten times, seat 1 the second price once."""
    name = f"pettingzoo:small_environments:{factory}"
    game = make_batched(name, 2, workers=1, prices=list(prices), number=number)
    game.reset(np.arange(2, dtype=np.uint64))
    once = False
    while not game.ended_N[0]:
        actions_N2A = np.zeros((2, 2, 2), np.uint8)
        actions_N2A[0, 0, 0] = actions_N2A[1, 1, 0] = 1
        acts = game.observations_N2O[0, 1, 2] == 1.0
        if acts and not once:
            actions_N2A[0, 1, 1] = actions_N2A[1, 0, 1] = 1
            once = True
        game.step(actions_N2A)
    assert game.outcomes_N[0] == outcome
    win = game.spec.reward_terms.index("win")
    assert game.reward_terms_N2K[0, :, win].tolist() == [2 * outcome - 1, 1 - 2 * outcome]


def test_an_illegal_choice_loses_whatever_was_earned_before() -> None:
    game = with_stones(make_batched("pettingzoo:small_environments:Nim", 1, stones=5, paid=2.0), 5)
    played(game, [2, 0])
    assert game.stats_N2S[0, :, 2].tolist() == [6.0, 2.0]
    played(game, [2])  # of one stone
    assert game.ended_N[0]
    assert game.outcomes_N[0] == 0.0
    assert game.final_stats_N2S[0, :, 2].tolist() == [5.0, 3.0]
    assert game.final_stats_N2S[0, :, 0].tolist() == [1.0, 0.0]
    assert game.reward_terms_N2K[0].tolist() == [[-1.0, -1.0], [1.0, 1.0]]


@pytest.mark.parametrize("cut", [False, True])
def test_terminations_and_truncations_end_a_match(cut: bool) -> None:
    game = make_batched("pettingzoo:small_environments:Buttons", 1, length=3, cut=cut)
    game.reset(np.zeros(1, np.uint64))
    for frame in range(3):
        game.step(game.idle_actions())
        assert game.ended_N[0] == (frame == 2)


def test_an_agent_that_is_done_leaves_the_other_to_play_on() -> None:
    game = with_stones(
        make_batched("pettingzoo:small_environments:Nim", 1, stones=4, one_leaves=True), 3
    )
    played(game, [2])
    assert not game.ended_N[0]
    assert game.observations_N2O[0, :, 2].tolist() == [1.0, 0.0]
    assert game.legal_N2A is not None
    assert game.legal_N2A[0].tolist() == [[True] * 3, [True, False, False]]
    played(game, [1])
    assert game.ended_N[0]
    assert game.final_stats_N2S[0, :, 2].tolist() == [2.0, -1.0]
    assert game.final_stats_N2S[0, :, 1].tolist() == [2.0, 0.0]


@pytest.mark.parametrize(
    ("factory", "moves", "legal"), [("Late", [7, 6], [2, 2]), ("LateTurns", [6, 4], [1, 2])]
)
def test_an_agent_that_joins_later_acts_as_soon_as_it_is_there(
    factory: str, moves: list[int], legal: list[int]
) -> None:
    """The first earns only while it is alone, the second whenever it can act."""
    game = make_batched(f"pettingzoo:small_environments:{factory}", 1, workers=1)
    game.reset(np.zeros(1, np.uint64))
    assert game.legal_N2A is not None
    for frame in range(9 if factory == "Late" else 10):
        assert not game.ended_N[0]
        acting = game.observations_N2O[0, :, 2].tolist()
        if frame < 3:
            assert acting == [1.0, 0.0]
            assert game.legal_N2A[0].sum(-1).tolist() == [2, 1]
        if frame == 3:
            assert acting[1] == 1.0
            assert game.legal_N2A[0].sum(-1).tolist() == legal
        if factory == "Late" and frame >= 7:
            assert acting == [0.0, 1.0], "who has left doesn't act again"
        actions_N2A = np.zeros((1, 2, 2), np.uint8)
        actions_N2A[0, 0, int(frame < 3)] = actions_N2A[0, 1, int(acting[1])] = 1
        game.step(actions_N2A)
    assert not game.failures
    assert game.ended_N[0]
    assert game.outcomes_N[0] == 0.0
    assert game.final_stats_N2S[0, :, 1].tolist() == moves
    assert game.final_stats_N2S[0, :, 2].tolist() == [3.0, float(moves[1])]


def test_the_late_environments_pass_the_tests_of_pettingzoo() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what the environments leave out
        parallel_api_test(Late(), num_cycles=50)
        api_test(LateTurns(), num_cycles=50)


def test_a_match_with_an_agent_that_no_seat_plays_fails_and_is_not_rated() -> None:
    game = make_batched("pettingzoo:small_environments:Late", 1, workers=1, stranger=True)
    game.reset(np.zeros(1, np.uint64))
    while not game.ended_N[0]:
        game.step(game.idle_actions())
    assert "'stranger'" in game.failures[0]


def test_clipped_values_are_counted_over_all_workers() -> None:
    game = make_batched("pettingzoo:signals:Signals", 4, workers=2)
    game.reset(np.arange(4, dtype=np.uint64))
    shown = 4
    for _ in range(20):
        game.step(game.idle_actions())
        shown += 4 + int(game.ended_N.sum())
    clipped = game.clipped()
    assert {*clipped} == {"left___1m_/1/0/1", "right/1/0/1"}, "three of five signals are above 1"
    assert 0.4 < clipped["right/1/0/1"] / shown < 0.8
    assert not game.clipped()
    assert not make_batched("kuhn", 2).clipped()


def test_a_frame_shows_the_board() -> None:
    game = make_batched("pettingzoo:pettingzoo.classic.connect_four_v3", 1)
    game.reset(np.zeros(1, np.uint64))
    frame = played(game, [3, 4]).frame(0)
    assert (frame["game"], frame["frame"]) == (game.spec.name, 2)
    assert frame["seats"] == [{"acts": True, "payoff": 0.0}, {"acts": False, "payoff": 0.0}]
    assert frame["text"].splitlines()[-1] == ". . . X O . ."
    other = {**frame, "text": frame["text"].replace("X O", "O X")}
    assert not np.array_equal(draw_frame(frame, 960, 540), draw_frame(other, 960, 540))
    own = make_batched("pettingzoo:small_environments", 1)
    own.reset(np.zeros(1, np.uint64))
    assert " against " in own.frame(0)["text"]


def test_a_closed_game_says_so() -> None:
    game = make_batched("pettingzoo:pettingzoo.classic.rps_v2", 2)
    game.reset(np.arange(2, dtype=np.uint64))
    game.close()
    with pytest.raises(InvalidInput):
        game.step(game.idle_actions())
    game.reset(np.arange(2, dtype=np.uint64))
    game.step(game.idle_actions())
