"""Environments that hang, raise, die or forget, the processes they run in, and what can't be
played.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from game_contract import actions, assert_same, history, luck
from numpy.typing import NDArray
from small_environments import CRASH, EXIT, HANG, NAN, PASS, RAISE, SCORE
from test_game_pettingzoo import make_worker
from thread_workers import threads_of
from waiting import wait_for

from league.errors import ConfigError, DataCorrupt, Unavailable
from league.games import hosted
from league.games.base import BatchedGame
from league.games.pettingzoo.game import PettingZooGame
from league.games.registry import game_spec, make_batched
from league.games.seen import draws, random_choices, random_keys

ARRAYS = ("observations_N2O", "reward_terms_N2K", "ended_N", "frames_N", "stats_N2S")


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosted, "Process", threads_of(make_worker))


def buttons(matches: int = 6, workers: int = 1, **options: Any) -> PettingZooGame:
    name = "pettingzoo:small_environments:Buttons"
    game = make_batched(name, matches, workers=workers, **{"step_seconds": 0.5, **options})
    assert isinstance(game, PettingZooGame)
    return game


def begun(matches: int = 6, workers: int = 1, **options: Any) -> PettingZooGame:
    game = buttons(matches, workers, **options)
    game.reset(np.arange(matches, dtype=np.uint64))
    return game


def pressed(game: BatchedGame, where: dict[int, int]) -> NDArray[np.uint8]:
    """Seat 0 presses a button in some rows; all else passes."""
    actions_N2A = np.zeros((game.num_matches, 2, 7), np.uint8)
    actions_N2A[:, :, PASS] = 1
    for row, button in where.items():
        actions_N2A[row, 0] = np.eye(7, dtype=np.uint8)[button]
    return actions_N2A


def scores(frame: int) -> dict[int, int]:
    return {2: SCORE, 4: SCORE} if frame % 3 else {5: SCORE}


FAILURES = (
    (RAISE, "ArithmeticError: a button that raises", [0]),
    (NAN, "[nan, 0.0]", [1]),
    (HANG, "0.5 s", [3, 4, 5]),
    (EXIT, "exited 7", [6, 7, 8]),
    (CRASH, "SIGKILL", [9, 10, 11]),
)
"""Buttons, what names the failure, and the matches that fail with four workers of three matches."""


def test_a_failure_costs_its_match_or_those_of_its_process_and_no_other() -> None:
    game, calm = begun(12, workers=4), begun(12)
    failing = sorted(row for *_, rows in FAILURES for row in rows)
    others = [row for row in range(12) if row not in failing]
    for frame in range(20):
        buttons = {rows[0]: button for button, _, rows in FAILURES} if frame == 7 else {}
        game.step(pressed(game, scores(frame) | buttons))
        calm.step(pressed(calm, scores(frame)))
        assert sorted(game.failures) == (failing if frame == 7 else [])
        for name in ARRAYS:
            got, wanted = getattr(game, name)[others], getattr(calm, name)[others]
            assert got.tobytes() == wanted.tobytes(), (name, frame)
        if frame == 7:
            for _, reason, rows in FAILURES:
                assert all(reason in game.failures[row] for row in rows)
            assert np.flatnonzero(game.ended_N).tolist() == failing
            assert (game.final_frames_N[failing] == 7).all()
            assert (game.outcomes_N[failing] == 0.5).all()
            assert (game.reward_terms_N2K[failing] == 0).all()
            assert (game.frames_N[failing] == 0).all()
    # eight frames later than the others, after 12 of their second matches
    assert (game.frames_N[failing] == 0).all()
    assert game.ended_N[failing].all()
    assert (game.final_frames_N[failing] == 12).all()


def test_the_next_match_of_a_failed_one_has_its_next_seed() -> None:
    game = begun()
    game.next_seeds_N[:] = 100
    game.step(pressed(game, {2: RAISE, 3: HANG}))
    fresh = buttons()
    fresh.reset(np.full(6, 100, np.uint64))
    assert np.array_equal(game.observations_N2O, fresh.observations_N2O)
    assert (game.next_seeds_N != 100).all()


@pytest.mark.usefixtures("threads")
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
    assert set(np.flatnonzero(game.frames_N == 0)) == set(game._broken)
    reason = "the environment raised RuntimeError: got out of bed on the wrong side"
    assert all(told == reason for told in game.failures.values())


def test_a_worker_killed_between_steps_is_replaced() -> None:
    game = begun(workers=2)
    os.kill(game.worker_pids[0], signal.SIGKILL)
    game.step(pressed(game, {}))
    assert sorted(game.failures) == [0, 1, 2]
    game.step(pressed(game, {}))
    assert not game.failures
    assert game.frames_N.tolist() == [1, 1, 1, 2, 2, 2]


@pytest.mark.usefixtures("threads")
def test_a_forgetful_environment_can_be_played_but_not_loaded() -> None:
    game = begun(forgets=True)
    for _ in range(3):
        game.step(pressed(game, {0: SCORE}))
        assert not game.failures
    with pytest.raises(DataCorrupt, match="match 0"):
        begun(forgets=True).load(game.save())


def test_a_match_does_not_depend_on_the_number_of_workers() -> None:
    found = []
    for workers in (1, 3):
        game = make_batched("pettingzoo:small_environments:Nim", 6, workers=workers)
        game.bots_N2[::2, 1] = 0
        game.reset(np.arange(6, dtype=np.uint64))
        found.append(history(game, luck(game, 30)))
    assert_same(*found)


def test_the_random_bot_takes_every_legal_choice_alike() -> None:
    seeds_N, frames_N = np.arange(30_000, dtype=np.uint64), np.zeros(30_000, np.int32)
    bits_N2 = draws(seeds_N, frames_N)
    legal_N2A = np.tile(np.array([True, False, True, True, False]), (30_000, 2, 1))
    shares_2A = random_choices(bits_N2, legal_N2A).mean(axis=0)
    assert np.allclose(shares_2A, [1 / 3, 0, 1 / 3, 1 / 3, 0], atol=0.01)
    keys_N2A = random_keys(bits_N2, 4).astype(float)
    assert np.allclose(keys_N2A.mean(axis=0), 0.5, atol=0.01)
    together = np.corrcoef(keys_N2A.reshape(-1, 8).T)
    assert np.abs(together - np.eye(8)).max() < 0.03


def alive(pids: list[int]) -> list[int]:
    found = []
    for pid in pids:
        with contextlib.suppress(OSError):
            status = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
            if status != "Z":
                found.append(pid)
    return found


def test_closing_ends_the_workers_and_what_they_print_stays_out_of_standard_output(
    capfd: pytest.CaptureFixture[str],
) -> None:
    game = begun(workers=2, noisy=True)
    game.step(pressed(game, {}))
    pids = game.worker_pids
    assert alive(pids) == pids
    game.close()
    assert alive(pids) == []
    assert capfd.readouterr().out == ""


ORPHANS = """
import numpy as np
from league.games.registry import make_batched
game = make_batched("pettingzoo:small_environments:Buttons", 2, workers=2, step_seconds=3)
game.reset(np.arange(2, dtype=np.uint64))
print(*game.worker_pids, flush=True)
actions = np.zeros((2, 2, 7), np.uint8)
actions[:, :, 0] = 1
actions[1, 0] = np.eye(7)[2]
game.step(actions)
"""


def test_workers_end_with_their_parent_even_in_the_middle_of_a_step() -> None:
    path = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    with subprocess.Popen(
        [sys.executable, "-c", ORPHANS], stdout=subprocess.PIPE, text=True, env=path
    ) as parent:
        assert parent.stdout is not None
        pids = [int(word) for word in parent.stdout.readline().split()]
        time.sleep(0.5)
        assert len(alive(pids)) == 2
        parent.kill()
    wait_for(lambda: not alive(pids))


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("pettingzoo", {}, "pettingzoo:MODULE"),
        ("pettingzoo:no.such.module", {}, r"no\.such\.module.*ModuleNotFoundError"),
        ("pettingzoo:json", {}, "json.*parallel_env, env, raw_env"),
        ("pettingzoo:small_environments:Trio", {}, r"Trio.*\b3\b"),
        ("pettingzoo:small_environments:Steered", {}, "Steered.*Box"),
        ("pettingzoo:small_environments:Push", {"colour": "red"}, "'colour'"),
        ("pettingzoo:collections:Counter", {}, "Counter"),
        ("pettingzoo:small_environments:Push", {"step_seconds": 0}, "step_seconds = 0"),
    ],
)
def test_what_cannot_be_played_is_said_in_a_sentence(
    name: str, options: dict, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        game_spec(name, **options)


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("pettingzoo")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pygame", None)
    with pytest.raises(ConfigError, match="pygame"):
        game_spec("pettingzoo:pettingzoo.classic.tictactoe_v3", render_mode="ansi")


def test_a_process_that_cannot_make_the_environment_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    module = tmp_path / "soon_gone.py"
    module.write_text("from small_environments import Buttons as parallel_env\n")
    monkeypatch.syspath_prepend(tmp_path)
    game = make_batched("pettingzoo:soon_gone", 6, workers=2)
    module.unlink()
    with pytest.raises(Unavailable, match="soon_gone"):
        game.reset(np.arange(6, dtype=np.uint64))


@pytest.mark.usefixtures("threads")
def test_choices_of_an_environment_without_a_mask_are_all_legal() -> None:
    game = make_batched("pettingzoo:small_environments:Nim", 4, blind=True)
    game.reset(np.arange(4, dtype=np.uint64))
    for luck_N2A in luck(game, 40):
        game.step(actions(game, luck_N2A))
        for reason in game.failures.values():
            assert "can't be taken of" in reason
    assert game.legal_N2A is not None
    assert game.legal_N2A.any(axis=1).all()
