"""What every batched game must keep; one subclass of `KeysContract` or `ChoiceContract` for
each.
"""

from __future__ import annotations

import json

import numpy as np
import pytest
from numpy.typing import NDArray

from league.errors import DataCorrupt, InvalidInput
from league.games.base import EXTERNAL, BatchedGame

ARRAYS = (
    "observations_N2O",
    "reward_terms_N2K",
    "ended_N",
    "frames_N",
    "stats_N2S",
    "next_seeds_N",
    "legal_N2A",  # of games of choices
)


def arrays(game: BatchedGame) -> dict[str, NDArray]:
    """What a game writes in every step, by name."""
    found = {name: getattr(game, name) for name in ARRAYS}
    return {name: array for name, array in found.items() if array is not None}


def seeds(n: int) -> NDArray[np.uint64]:
    return np.arange(n, dtype=np.uint64) + np.uint64(2**63)


def luck(game: BatchedGame, steps: int, seed: int = 0) -> NDArray[np.float64]:
    """[T, N, 2, A], from which `actions` makes random ones for whatever is legal then."""
    shape = (steps, game.num_matches, 2, game.spec.action_size)
    return np.random.default_rng(seed).random(shape)


def actions(game: BatchedGame, luck_N2A: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Each key with probability 1/2, or one of the legal choices alike."""
    if game.legal_N2A is None:
        return (luck_N2A < 0.5).astype(np.uint8)
    chosen_N21 = np.where(game.legal_N2A, luck_N2A, -1.0).argmax(-1)[..., None]
    return (np.arange(game.spec.action_size) == chosen_N21).astype(np.uint8)


def history(game: BatchedGame, luck_TN2A: NDArray[np.float64], frames: int = 1) -> list[NDArray]:
    """Every array after every step, stacked over time."""
    rows: list[list[NDArray]] = [[] for _ in arrays(game)]
    for luck_N2A in luck_TN2A:
        game.step(actions(game, luck_N2A), frames)
        assert not game.failures
        for row, array in zip(rows, arrays(game).values(), strict=True):
            row.append(array.copy())
    return [np.stack(row, axis=1) for row in rows]


def assert_same(one: list[NDArray], other: list[NDArray]) -> None:
    for name, a, b in zip(ARRAYS, one, other, strict=False):
        assert a.tobytes() == b.tobytes(), f"{name} differs"


class GameContract:
    """What both kinds keep: subclass `KeysContract` or choice_contract.py's, and override `make`.

    Attributes:
        timed: whether a time limit can be set; games that end by themselves may refuse one.
        pace: by how much slow games shorten the long tests.
        rows: matches of the long tests.
    """

    timed = True
    pace = 1
    rows = 12

    def make(self, num_matches: int, max_frames: int | None = None) -> BatchedGame:
        """`num_matches` matches; `max_frames` stays None where the game is not `timed`."""
        raise NotImplementedError

    def strangers(self, num_matches: int) -> list[BatchedGame]:
        """Games whose saved states must be refused: of other rules or another time limit."""
        return [self.made(num_matches, 60)]

    def made(self, num_matches: int, max_frames: int | None = None) -> BatchedGame:
        return self.make(num_matches, max_frames if self.timed else None)

    def begun(
        self, num_matches: int, max_frames: int | None = None, bots: bool = True
    ) -> BatchedGame:
        """A reset game; with `bots`, a mixture of bots and external seats."""
        game = self.made(num_matches, max_frames)
        if bots:
            choices = np.arange(-1, len(game.spec.bots), dtype=np.int8)
            game.bots_N2[:, 0] = np.resize(choices, num_matches)
            game.bots_N2[:, 1] = np.resize(choices[::-1], num_matches)
        game.reset(seeds(num_matches))
        return game

    def test_the_spec_and_the_arrays_fit(self) -> None:
        game = self.begun(3)
        spec = game.spec
        assert game.observations_N2O.shape == (3, 2, spec.observation_size)
        assert 0 < spec.own_size < spec.observation_size
        assert len(spec.action_names) == spec.action_size
        assert {"dense", "sparse"} <= spec.reward_presets.keys()

    def test_arrays_stay_the_same_objects(self) -> None:
        game = self.begun(4, max_frames=20)
        before = {name: array.ctypes.data for name, array in arrays(game).items()}
        history(game, luck(game, 30))
        game.load(game.save())
        game.reset(seeds(4))
        assert before == {name: array.ctypes.data for name, array in arrays(game).items()}

    def test_a_match_is_the_same_whatever_it_is_played_with(self) -> None:
        many = self.begun(self.rows, max_frames=150)
        chances = luck(many, 400 // self.pace)
        together = history(many, chances)
        for n in range(0, self.rows, 5):
            alone = self.made(1, 150)
            alone.bots_N2[:] = many.bots_N2[n]
            alone.reset(seeds(self.rows)[n : n + 1])
            assert_same([a[n : n + 1] for a in together], history(alone, chances[:, n : n + 1]))

    def test_what_bots_played_makes_the_same_match_from_outside(self) -> None:
        """A replay needs no bot; and in games of choices no bot chose what is not legal."""
        told, outside = self.begun(self.rows), self.begun(self.rows)
        outside.bots_N2[:] = EXTERNAL
        for luck_N2A in luck(told, 120 if self.pace == 1 else 40):
            told.step(actions(told, luck_N2A))
            played_N2A = told.played_N2A()
            if played_N2A is None:
                pytest.skip("the game does not tell what was played")
            outside.step(played_N2A)
            for name, array in arrays(told).items():
                assert np.array_equal(array, getattr(outside, name)), name

    def test_other_seeds_make_other_matches(self) -> None:
        game = self.make(32)
        game.bots_N2[:] = game.spec.bot_index("random")
        game.reset(seeds(32))
        seen, paid = history(game, np.zeros((20, 32, 2, game.spec.action_size)))[:2]
        assert (
            len({one.tobytes() + other.tobytes() for one, other in zip(seen, paid, strict=True)})
            > 24
        )

    def test_a_saved_state_goes_on_bit_for_bit(self) -> None:
        limit = 120 if self.pace == 1 else 30  # matches end before and after the state is saved
        game = self.begun(self.rows // 2, max_frames=limit)
        chances = luck(game, 3 * limit)
        before, after = np.split(chances, [limit + limit // 3])
        history(game, before)
        state = game.save()
        there = history(game, after)
        fresh = self.made(self.rows // 2, limit)
        fresh.load(state)
        assert_same(there, history(fresh, after))

    def test_a_state_that_does_not_fit_is_refused(self) -> None:
        game = self.begun(2, max_frames=50)
        state = game.save()
        for other in (self.made(3, 50), *self.strangers(2)):
            with pytest.raises(DataCorrupt):
                other.load(state)
        before = {name: array.copy() for name, array in arrays(game).items()}
        for name in state:
            with pytest.raises(DataCorrupt):
                game.load({k: v for k, v in state.items() if k != name})
        assert all(np.array_equal(before[name], array) for name, array in arrays(game).items())

    def test_every_match_ends_once_with_an_outcome_and_begins_anew(self) -> None:
        limit = 90 // self.pace
        game = self.begun(10, max_frames=limit)
        ends = np.zeros(10, int)
        played = np.zeros(10, int)
        moved = 0
        for luck_N2A in luck(game, 300 // self.pace):
            before = game.observations_N2O.copy()
            game.step(actions(game, luck_N2A))
            played += 1
            for n in np.flatnonzero(game.ended_N):
                ends[n] += 1
                assert game.outcomes_N[n] in (0.0, 0.5, 1.0)
                assert game.final_frames_N[n] == played[n]
                assert played[n] <= limit or not self.timed
                moved += not np.array_equal(game.final_observations_N2O[n], before[n])
                assert not np.array_equal(game.final_observations_N2O[n], game.observations_N2O[n])
                played[n] = 0
            assert np.array_equal(game.frames_N, played)
            assert not game.failures
        assert (ends >= 3).all()
        # rounds may look alike, but a last observation is no older one
        assert moved > ends.sum() / 4

    def test_a_match_begins_anew_from_its_next_seed(self) -> None:
        bots = self.begun(4).bots_N2
        for n, wanted in enumerate(np.array([[7], [8]], np.uint64)):
            game, fresh = self.made(1, 30), self.made(1, 30)
            game.bots_N2[:] = fresh.bots_N2[:] = bots[n]
            game.reset(seeds(1))
            game.next_seeds_N[:] = wanted
            for luck_N2A in luck(game, 60):
                game.step(actions(game, luck_N2A))
                if game.ended_N[0]:
                    break
            assert game.ended_N[0]
            assert not np.array_equal(game.next_seeds_N, wanted)
            fresh.reset(wanted)
            assert np.array_equal(game.observations_N2O, fresh.observations_N2O)
            fresh.next_seeds_N[:] = game.next_seeds_N
            chances = luck(game, 50, seed=4)
            assert_same(history(game, chances), history(fresh, chances))

    def test_reset_leaves_the_other_rows_alone(self) -> None:
        game, other = self.begun(4), self.begun(4)
        chances = luck(game, 40)
        history(game, chances[:19])
        history(other, chances[:19])
        where = np.array([False, True, False, True])
        game.reset(seeds(4), where)
        assert np.array_equal(game.frames_N, np.where(where, 0, other.frames_N))
        assert (game.stats_N2S[~where] == other.stats_N2S[~where]).all()
        assert np.array_equal(game.observations_N2O[where], self.begun(4).observations_N2O[where])
        one, two = history(game, chances[19:]), history(other, chances[19:])
        assert_same([a[~where] for a in one], [b[~where] for b in two])

    def test_a_failed_match_ends_and_the_next_one_begins(self) -> None:
        game, other = self.begun(4), self.begun(4)
        chances = luck(game, 30)
        history(game, chances[:1])
        history(other, chances[:1])
        if not game.ended_N[1]:
            last = game.observations_N2O[1].copy()
        else:
            last = game.final_observations_N2O[1].copy()
        game.fail({})
        assert not game.failures
        game.fail({1: "it hangs"})
        assert game.failures == {1: "it hangs"}
        assert (game.ended_N[1], game.outcomes_N[1], game.frames_N[1]) == (True, 0.5, 0)
        assert np.array_equal(game.final_observations_N2O[1], last)
        assert not game.reward_terms_N2K[1].any()
        others = np.arange(4) != 1
        assert np.array_equal(game.ended_N[others], other.ended_N[others])
        one, two = history(game, chances[1:]), history(other, chances[1:])
        assert_same([a[others] for a in one], [b[others] for b in two])

    def test_observations_stay_in_bounds(self) -> None:
        game = self.begun(self.rows)
        for luck_N2A in luck(game, 1500 // self.pace):
            game.step(actions(game, luck_N2A))
            assert np.abs(game.observations_N2O).max() <= 1.0
        assert np.isfinite(game.stats_N2S).all()

    def test_terms_and_stats_come_back_to_zero_sum_where_they_must(self) -> None:
        game = self.begun(self.rows, max_frames=400 // self.pace)
        win = game.spec.reward_terms.index("win")
        for luck_N2A in luck(game, 900 // self.pace):
            game.step(actions(game, luck_N2A))
            assert np.array_equal(
                game.reward_terms_N2K[:, 0, win], -game.reward_terms_N2K[:, 1, win]
            )
            paid = game.reward_terms_N2K[:, 0, win]
            assert np.array_equal(paid[game.ended_N], 2 * game.outcomes_N[game.ended_N] - 1)
            assert (paid[~game.ended_N] == 0).all()

    def test_actions_of_another_shape_are_refused(self) -> None:
        game = self.begun(3)
        with pytest.raises(InvalidInput, match="shape"):
            game.step(np.zeros((3, 2, game.spec.action_size + 1), np.uint8))

    def test_a_frame_can_be_written_as_json_and_closing_twice_is_fine(self) -> None:
        game = self.begun(2)
        history(game, luck(game, 3))
        assert json.loads(json.dumps(game.frame(1)))["frame"] == game.frames_N[1]
        game.close()
        game.close()


class KeysContract(GameContract):
    """A symmetric game of keys with a time limit, which continues while no key is pressed."""

    def test_several_frames_are_that_many_steps_with_the_keys_held(self) -> None:
        slow, quick = self.begun(5, max_frames=1000), self.begun(5, max_frames=1000)
        for luck_N2A in luck(slow, 60):
            keys_N2A = actions(slow, luck_N2A)
            terms = np.zeros_like(slow.reward_terms_N2K)
            for _ in range(4):
                slow.step(keys_N2A)
                terms += slow.reward_terms_N2K
                assert not slow.ended_N.any()
            quick.step(keys_N2A, frames=4)
            assert np.array_equal(slow.observations_N2O, quick.observations_N2O)
            assert np.allclose(terms, quick.reward_terms_N2K, atol=1e-5)
            assert np.array_equal(slow.stats_N2S, quick.stats_N2S)

    def test_the_time_limit_ends_a_match_with_an_outcome(self) -> None:
        game = self.begun(1, max_frames=40, bots=False)
        idle = game.idle_actions()
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

    def test_halves_of_the_observations_swap_exactly(self) -> None:
        game = self.begun(self.rows)
        own = game.spec.own_size
        for luck_N2A in luck(game, 1500 // self.pace):
            game.step(actions(game, luck_N2A))
            views = game.observations_N2O
            assert np.array_equal(views[:, 0, :own], views[:, 1, own : 2 * own])
            assert np.array_equal(views[:, 1, :own], views[:, 0, own : 2 * own])
            played_N2A = game.played_N2A()
            if 2 * own < game.spec.observation_size:  # the keys that one held come last
                assert played_N2A is not None
                held_N2A = played_N2A * ~game.ended_N[:, None, None]
                assert np.array_equal(views[:, :, 2 * own :], held_N2A)


class RestingContract(KeysContract):
    """What games keep whose matches may wait: `idle_N` lets rows rest."""

    def test_a_row_that_rests_stays_as_it_is(self) -> None:
        game, other = self.begun(3), self.begun(3)
        plays_N = np.array([True, False, True])
        for luck_N2A in luck(game, 12):
            keys_N2A = actions(game, luck_N2A)
            game.idle_N[:] = False
            game.step(keys_N2A, 4)
            before, game.idle_N[:] = game.save(), ~plays_N
            game.step(keys_N2A, 4)
            after = game.save()
            for name in ("observations_N2O", "stats_N2S", "frames_N", "next_seeds_N"):
                assert np.array_equal(before[name][1], after[name][1])
            assert not game.ended_N[1]
            assert not game.reward_terms_N2K[1].any()
            other.step(keys_N2A, 4)
            assert np.array_equal(game.observations_N2O[1], other.observations_N2O[1])
        assert game.frames_N.tolist() == [96, 48, 96]
