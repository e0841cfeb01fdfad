"""Environments that hang, raise, die or forget: their match fails, the others don't notice."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest
from buttons import begun, buttons, pressed
from numpy.typing import NDArray
from small_environments import CRASH, EXIT, HANG, NAN, RAISE, SCORE

from league.errors import DataCorrupt
from league.games.pettingzoo.worker import environment_seed
from league.games.registry import make_batched

REASONS = {
    HANG: "the environment took over 0.5 s for a step",
    RAISE: "the environment raised ArithmeticError: a button that raises",
    EXIT: "the environment's process exited with 7",
    CRASH: "the environment's process was killed by SIGKILL",
    NAN: "the environment raised ValueError: a reward is [nan, 0.0]",
}


ARRAYS = ("observations_N2O", "reward_terms_N2K", "ended_N", "frames_N", "stats_N2S")


def scores(frame: int) -> dict[int, int]:
    return {1: SCORE, 4: SCORE} if frame % 3 else {5: SCORE}


@pytest.fixture(scope="module")
def calm() -> list[dict[str, NDArray]]:
    """What a game shows in which nothing fails, frame by frame."""
    game, shown = begun(), []
    for frame in range(20):
        game.step(pressed(game, scores(frame)))
        shown.append({name: getattr(game, name).copy() for name in ARRAYS})
    return shown


@pytest.mark.parametrize("button", [HANG, RAISE, EXIT, CRASH, NAN])
def test_one_environment_fails_and_the_others_go_on_bit_for_bit(
    button: int, calm: list[dict[str, NDArray]]
) -> None:
    game = begun()
    other_rows = [0, 1, 2, 4, 5]
    for frame, wanted in enumerate(calm):
        game.step(pressed(game, scores(frame) | ({3: button} if frame == 7 else {})))
        assert dict(game.failures) == ({3: REASONS[button]} if frame == 7 else {})
        for name in ARRAYS:
            got = getattr(game, name)[other_rows]
            assert got.tobytes() == wanted[name][other_rows].tobytes(), (name, frame)
        if frame == 7:
            assert game.ended_N.tolist() == [False, False, False, True, False, False]
            assert game.final_frames_N[3] == 7
            assert game.outcomes_N[3] == 0.5
            assert (game.reward_terms_N2K[3] == 0).all()
            assert game.frames_N[3] == 0
    # eight frames later than the others, after 12 of its second match
    assert (game.frames_N[3], game.ended_N[3], game.final_frames_N[3]) == (0, True, 12)


def test_a_match_that_ends_as_another_hangs_keeps_its_outcome() -> None:
    game = begun(length=5)
    for _ in range(4):
        game.step(pressed(game, {1: SCORE}))
    game.step(pressed(game, {0: HANG, 1: SCORE, 5: RAISE}))
    assert sorted(game.failures) == [0, 5]
    assert game.ended_N.all()
    assert game.outcomes_N.tolist() == [0.5, 1.0, 0.5, 0.5, 0.5, 0.5]
    assert game.final_frames_N.tolist() == [4, 5, 5, 5, 5, 4]
    fresh = buttons(length=5)
    fresh.reset(np.arange(6, dtype=np.uint64) + np.uint64(1))
    assert np.array_equal(game.observations_N2O, fresh.observations_N2O)


def test_the_next_match_of_a_failed_one_has_its_next_seed() -> None:
    game = begun()
    game.next_seeds_N[:] = 100
    game.step(pressed(game, {2: RAISE, 3: HANG}))
    fresh = buttons()
    fresh.reset(np.full(6, 100, np.uint64))
    assert np.array_equal(game.observations_N2O[2:4], fresh.observations_N2O[2:4])
    assert (game.next_seeds_N[2:4] != 100).all()


def test_a_start_that_fails_is_told_at_the_next_step_and_the_seed_after_it_is_played() -> None:
    game = begun(40, bad_starts=0.3)
    broken = set(game._broken)
    assert 4 < len(broken) < 20
    told: set[int] = set()
    for _ in range(5):
        game.step(game.idle_actions())
        assert set(np.flatnonzero(game.ended_N)) == set(game.failures)
        assert (game.final_frames_N[list(game.failures)] == 0).all()
        told |= set(game.failures)
    assert told == broken
    good = game.frames_N > 0
    assert set(np.flatnonzero(~good)) == set(game._broken)
    assert good.sum() > 30
    reason = "the environment raised RuntimeError: got out of bed on the wrong side"
    assert all(told == reason for told in game.failures.values())


def test_a_worker_that_dies_while_it_plays_anew_loses_that_match_alone(tmp_path: Path) -> None:
    """Row 3 hangs; row 2's seed then takes the new process down too, in the middle of the
    others' return.
    """
    options = {"cursed": environment_seed(2), "marks": str(tmp_path)}
    game, calm = begun(4, **options), begun(4)
    for frame in range(9):
        game.step(pressed(game, {0: SCORE, 3: HANG} if frame == 5 else {0: SCORE}))
        calm.step(pressed(calm, {0: SCORE}))
        assert sorted(game.failures) == ([2, 3] if frame == 5 else [])
        assert np.array_equal(game.observations_N2O[:2], calm.observations_N2O[:2])
        assert np.array_equal(game.stats_N2S[:2], calm.stats_N2S[:2])


def test_a_worker_killed_between_steps_loses_no_match() -> None:
    game, calm = begun(workers=2), begun(workers=2)
    for frame in range(8):
        if frame == 4:
            os.kill(game.worker_pids[0], signal.SIGKILL)
        for one in (game, calm):
            one.step(pressed(one, {frame % 6: SCORE}))
        assert not game.failures
    assert game.observations_N2O.tobytes() == calm.observations_N2O.tobytes()
    assert game.stats_N2S.tobytes() == calm.stats_N2S.tobytes()


def test_a_slow_batch_is_no_hanging_step() -> None:
    """The time-out is for one call of one environment, not for all that a worker does in a step."""
    game = make_batched("pettingzoo:small_environments:Slow", 12, workers=1, step_seconds=0.5)
    game.reset(np.arange(12, dtype=np.uint64))
    begin = time.monotonic()
    game.step(game.idle_actions())
    assert time.monotonic() - begin > 1.0
    assert not game.failures


def test_a_forgetful_environment_can_be_played_but_neither_loaded_nor_played_anew() -> None:
    game = begun(forgets=True)
    for _ in range(3):
        game.step(pressed(game, {0: SCORE}))
    state = game.save()
    with pytest.raises(DataCorrupt, match="doesn't repeat a match by its seed"):
        begun(forgets=True).load(state)
    game.step(pressed(game, {2: HANG}))
    failures = dict(game.failures)
    assert failures.pop(2) == REASONS[HANG]
    game.step(pressed(game, {}))
    assert not failures.keys() & game.failures.keys()
    failures.update(game.failures)
    assert sorted(failures) == [0, 1, 3, 4, 5]
    assert all("doesn't repeat a match" in reason for reason in failures.values())
