"""What every batched game must keep; one subclass with `make` for each game."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.typing import NDArray

from league.errors import DataCorrupt
from league.games.base import EXTERNAL, BatchedGame

ARRAYS = (
    "observations_N2O",
    "reward_terms_N2K",
    "ended_N",
    "frames_N",
    "stats_N2S",
    "next_seeds_N",
)


def seeds(n: int) -> NDArray[np.uint64]:
    return np.arange(n, dtype=np.uint64) + np.uint64(2**63)


def keys(game: BatchedGame, steps: int, seed: int = 0) -> NDArray[np.uint8]:
    shape = (steps, game.num_matches, 2, game.spec.action_size)
    return np.random.default_rng(seed).integers(0, 2, shape, dtype=np.uint8)


def history(game: BatchedGame, actions_TN2A: NDArray[np.uint8], frames: int = 1) -> list[NDArray]:
    """Every array after every step, stacked over time."""
    rows: list[list[NDArray]] = [[] for _ in ARRAYS]
    for actions_N2A in actions_TN2A:
        game.step(actions_N2A, frames)
        for row, name in zip(rows, ARRAYS, strict=True):
            row.append(getattr(game, name).copy())
    return [np.stack(row, axis=1) for row in rows]


def assert_same(one: list[NDArray], other: list[NDArray]) -> None:
    for name, a, b in zip(ARRAYS, one, other, strict=True):
        assert a.tobytes() == b.tobytes(), f"{name} differs"


class GameContract:
    """Subclass and override `make`."""

    def make(self, num_matches: int, max_frames: int | None = None) -> BatchedGame:
        raise NotImplementedError

    def begun(self, num_matches: int, max_frames: int | None = None, bots: bool = True) -> BatchedGame:
        """A reset game; with `bots`, a mixture of bots and external seats."""
        game = self.make(num_matches, max_frames)
        if bots:
            choices = np.arange(-1, len(game.spec.bots), dtype=np.int8)
            game.bots_N2[:, 0] = np.resize(choices, num_matches)
            game.bots_N2[:, 1] = np.resize(choices[::-1], num_matches)
        game.reset(seeds(num_matches))
        return game

    def test_shapes_and_types_are_those_of_the_contract(self) -> None:
        game = self.begun(3)
        spec, n = game.spec, 3
        assert (
            game.observations_N2O.shape == game.final_observations_N2O.shape == (n, 2, spec.observation_size)
        )
        assert game.reward_terms_N2K.shape == (n, 2, len(spec.reward_terms))
        assert game.stats_N2S.shape == game.final_stats_N2S.shape == (n, 2, len(spec.stats))
        types = {
            "observations_N2O": np.float32,
            "reward_terms_N2K": np.float32,
            "ended_N": np.bool_,
            "outcomes_N": np.float32,
            "frames_N": np.int32,
            "final_frames_N": np.int32,
            "stats_N2S": np.float32,
            "bots_N2": np.int8,
            "next_seeds_N": np.uint64,
        }
        for name, dtype in types.items():
            assert getattr(game, name).dtype == dtype, name
        assert len(spec.action_names) == spec.action_size
        assert (self.make(1).bots_N2 == EXTERNAL).all()

    def test_arrays_stay_the_same_objects(self) -> None:
        game = self.begun(4, max_frames=20)
        before = {name: getattr(game, name).ctypes.data for name in ARRAYS}
        for actions in keys(game, 60):
            game.step(actions)
        game.load(game.save())
        game.reset(seeds(4))
        assert before == {name: getattr(game, name).ctypes.data for name in ARRAYS}

    def test_a_match_is_the_same_whatever_it_is_played_with(self) -> None:
        many = self.begun(12, max_frames=150)
        actions = keys(many, 400)
        together = history(many, actions)
        for n in range(12):
            alone = self.make(1, 150)
            alone.bots_N2[:] = many.bots_N2[n]
            alone.reset(seeds(12)[n : n + 1])
            assert_same([a[n : n + 1] for a in together], history(alone, actions[:, n : n + 1]))

    def test_a_match_is_the_same_on_another_thread(self) -> None:
        actions = keys(self.make(6), 300)
        with ThreadPoolExecutor(2) as pool:
            games = [self.begun(6, max_frames=100) for _ in range(2)]
            one, other = pool.map(lambda game: history(game, actions), games)
        assert_same(one, other)
        assert_same(one, history(self.begun(6, max_frames=100), actions))

    def test_other_seeds_make_other_matches(self) -> None:
        game = self.begun(32)
        game.reset(seeds(32))
        assert len({row.tobytes() for row in game.observations_N2O}) > 1

    def test_several_frames_are_that_many_steps_with_the_keys_held(self) -> None:
        slow, quick = self.begun(5, max_frames=1000), self.begun(5, max_frames=1000)
        for actions in keys(slow, 60):
            terms = np.zeros_like(slow.reward_terms_N2K)
            for _ in range(4):
                slow.step(actions)
                terms += slow.reward_terms_N2K
                assert not slow.ended_N.any()
            quick.step(actions, frames=4)
            assert np.array_equal(slow.observations_N2O, quick.observations_N2O)
            assert np.allclose(terms, quick.reward_terms_N2K, atol=1e-5)
            assert np.array_equal(slow.stats_N2S, quick.stats_N2S)

    def test_a_saved_state_goes_on_bit_for_bit(self) -> None:
        game = self.begun(6, max_frames=120)
        actions = keys(game, 400)
        history(game, actions[:170])
        state = game.save()
        there = history(game, actions[170:])
        fresh = self.make(6, 120)
        fresh.load(state)
        assert_same(there, history(fresh, actions[170:]))

    def test_what_is_saved_is_a_copy(self) -> None:
        game = self.begun(2)
        state = game.save()
        before = {name: value.tobytes() for name, value in state.items()}
        history(game, keys(game, 5))
        assert before == {name: value.tobytes() for name, value in state.items()}

    def test_a_state_that_does_not_fit_is_refused(self) -> None:
        game = self.begun(2, max_frames=50)
        state = game.save()
        for other in (self.make(3, 50), self.make(2, 60)):
            with pytest.raises(DataCorrupt):
                other.load(state)
        before = game.observations_N2O.copy()
        for name in state:
            with pytest.raises(DataCorrupt):
                game.load({k: v for k, v in state.items() if k != name})
        assert np.array_equal(before, game.observations_N2O)

    def test_every_match_ends_once_with_an_outcome_and_begins_anew(self) -> None:
        game = self.begun(10, max_frames=90)
        ends = np.zeros(10, int)
        played = np.zeros(10, int)
        for actions in keys(game, 300):
            before = game.observations_N2O.copy()
            game.step(actions)
            played += 1
            for n in np.flatnonzero(game.ended_N):
                ends[n] += 1
                assert game.outcomes_N[n] in (0.0, 0.5, 1.0)
                assert game.final_frames_N[n] == played[n] <= 90
                assert not np.array_equal(game.final_observations_N2O[n], before[n])
                assert not np.array_equal(game.final_observations_N2O[n], game.observations_N2O[n])
                played[n] = 0
            assert np.array_equal(game.frames_N, played)
        assert (ends >= 3).all()

    def test_the_time_limit_ends_a_match_with_an_outcome(self) -> None:
        game = self.begun(1, max_frames=40, bots=False)
        idle = np.zeros((1, 2, game.spec.action_size), np.uint8)
        for _ in range(39):
            game.step(idle)
            assert not game.ended_N[0]
        assert game.time_left_N()[0] == pytest.approx(1 / 40)
        game.step(idle)
        assert game.ended_N[0]
        assert game.outcomes_N[0] == 0.5
        assert game.final_frames_N[0] == 40
        game.step(idle)
        assert not game.ended_N[0]

    def test_a_match_begins_anew_from_its_next_seed(self) -> None:
        game = self.begun(4, max_frames=30)
        wanted = np.array([7, 8, 9, 10], np.uint64)
        game.next_seeds_N[:] = wanted
        for actions in keys(game, 30):
            game.step(actions)
        assert game.ended_N.all()
        assert not np.array_equal(game.next_seeds_N, wanted)
        fresh = self.make(4, 30)
        fresh.bots_N2[:] = game.bots_N2
        fresh.reset(wanted)
        assert np.array_equal(game.observations_N2O, fresh.observations_N2O)
        fresh.next_seeds_N[:] = game.next_seeds_N
        actions = keys(game, 50, seed=4)
        assert_same(history(game, actions), history(fresh, actions))

    def test_reset_leaves_the_other_rows_alone(self) -> None:
        game, other = self.begun(4), self.begun(4)
        actions = keys(game, 40)
        history(game, actions[:20])
        history(other, actions[:20])
        where = np.array([False, True, False, True])
        game.reset(seeds(4), where)
        assert game.frames_N.tolist() == [20, 0, 20, 0]
        one, two = history(game, actions[20:]), history(other, actions[20:])
        assert_same([a[~where] for a in one], [b[~where] for b in two])

    def test_observations_stay_in_bounds_and_halves_swap_exactly(self) -> None:
        game = self.begun(40)
        own = game.spec.own_size
        for actions in keys(game, 1500):
            game.step(actions)
            views = game.observations_N2O
            assert np.abs(views).max() <= 1.0
            assert np.array_equal(views[:, 0, :own], views[:, 1, own:])
            assert np.array_equal(views[:, 1, :own], views[:, 0, own:])
        assert np.isfinite(game.stats_N2S).all()

    def test_terms_and_stats_come_back_to_zero_sum_where_they_must(self) -> None:
        game = self.begun(20, max_frames=400)
        win = game.spec.reward_terms.index("win")
        for actions in keys(game, 900):
            game.step(actions)
            assert np.array_equal(game.reward_terms_N2K[:, 0, win], -game.reward_terms_N2K[:, 1, win])
            paid = game.reward_terms_N2K[:, 0, win]
            assert np.array_equal(paid[game.ended_N], 2 * game.outcomes_N[game.ended_N] - 1)
            assert (paid[~game.ended_N] == 0).all()

    def test_a_frame_can_be_written_as_json(self) -> None:
        import json

        game = self.begun(2)
        history(game, keys(game, 3))
        assert json.loads(json.dumps(game.frame(1)))["frame"] == 3
