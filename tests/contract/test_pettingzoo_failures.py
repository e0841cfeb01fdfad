"""Environments that hang, raise, die or forget: their match fails, the others don't notice."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from game_contract import actions, assert_same, history, luck
from numpy.typing import NDArray
from small_environments import CRASH, EXIT, HANG, NAN, PASS, RAISE, SCORE

from league.errors import ConfigError, DataCorrupt, Unavailable
from league.games.base import BatchedGame
from league.games.pettingzoo.draws import environment_seed
from league.games.pettingzoo.game import PettingZooGame
from league.games.registry import game_spec, make_batched

REASONS = {
    HANG: "the environment took over 0.5 s for a step",
    RAISE: "the environment raised ArithmeticError: a button that raises",
    EXIT: "the environment's process exited with 7",
    CRASH: "the environment's process was killed by SIGKILL",
    NAN: "the environment raised ValueError: a reward is [nan, 0.0]",
}


def buttons(matches: int = 6, workers: int = 1, **options: Any) -> PettingZooGame:
    options.setdefault("step_seconds", 0.5)
    game = make_batched("pettingzoo:small_environments:Buttons", matches, workers=workers, **options)
    assert isinstance(game, PettingZooGame)
    return game


def pressed(game: BatchedGame, where: dict[int, int]) -> NDArray[np.uint8]:
    """Seat 0 presses a button in some rows; all else passes."""
    actions_N2A = np.zeros((game.num_matches, 2, 7), np.uint8)
    actions_N2A[:, :, PASS] = 1
    for row, button in where.items():
        actions_N2A[row, 0] = np.eye(7, dtype=np.uint8)[button]
    return actions_N2A


def begun(matches: int = 6, workers: int = 1, **options: Any) -> PettingZooGame:
    game = buttons(matches, workers, **options)
    game.reset(np.arange(matches, dtype=np.uint64))
    return game


@pytest.mark.parametrize("button", [HANG, RAISE, EXIT, CRASH, NAN])
def test_one_environment_fails_and_the_others_go_on_bit_for_bit(button: int) -> None:
    game, calm = begun(), begun()
    other_rows = [0, 1, 2, 4, 5]
    for frame in range(20):
        where = {1: SCORE, 4: SCORE} if frame % 3 else {5: SCORE}
        calm.step(pressed(calm, where))
        game.step(pressed(game, {**where, 3: button} if frame == 7 else where))
        assert dict(game.failures) == ({3: REASONS[button]} if frame == 7 else {})
        for name in ("observations_N2O", "reward_terms_N2K", "ended_N", "frames_N", "stats_N2S"):
            got, wanted = getattr(game, name), getattr(calm, name)
            assert got[other_rows].tobytes() == wanted[other_rows].tobytes(), (name, frame)
        if frame == 7:
            assert game.ended_N.tolist() == [False, False, False, True, False, False]
            assert game.final_frames_N[3] == 7
            assert game.outcomes_N[3] == 0.5
            assert (game.reward_terms_N2K[3] == 0).all()
            assert game.frames_N[3] == 0
    assert game.frames_N[3] == 0  # eight frames later than the others, after 12 of its second match
    assert game.ended_N[3]
    assert game.final_frames_N[3] == 12


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


def test_two_that_hang_in_one_frame_both_fail() -> None:
    game = begun()
    game.step(pressed(game, {}))
    game.step(pressed(game, {1: HANG, 4: HANG}))
    assert sorted(game.failures) == [1, 4]
    assert game.frames_N.tolist() == [2, 0, 2, 2, 0, 2]


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
    broken = set(game.matches.broken)
    assert 4 < len(broken) < 20
    told: set[int] = set()
    for _ in range(5):
        game.step(game.idle_actions())
        assert set(np.flatnonzero(game.ended_N)) == set(game.failures)
        assert (game.final_frames_N[list(game.failures)] == 0).all()
        told |= set(game.failures)
    assert told == broken
    good = game.frames_N > 0
    assert set(np.flatnonzero(~good)) == set(game.matches.broken)
    assert good.sum() > 30
    reason = "the environment raised RuntimeError: got out of bed on the wrong side"
    assert all(told == reason for told in game.failures.values())


def test_a_match_keeps_its_outcome_when_the_next_one_cannot_begin() -> None:
    game = begun(20, bad_starts=0.3, length=2)
    ends = 0
    for _ in range(9):
        game.step(pressed(game, {}))
        for n in np.flatnonzero(game.ended_N):
            assert game.final_frames_N[n] == (0 if n in game.failures else 2)
            ends += n not in game.failures
    assert ends > 30


def test_a_worker_that_dies_while_it_plays_anew_loses_that_match_alone(tmp_path: Path) -> None:
    """Row 3 hangs; row 2's seed then takes the new process down too, in the middle of the others' return."""
    options = {"cursed": environment_seed(2), "marks": str(tmp_path)}
    game, calm = begun(4, **options), begun(4)
    for frame in range(9):
        game.step(pressed(game, {0: SCORE, 3: HANG} if frame == 5 else {0: SCORE}))
        calm.step(pressed(calm, {0: SCORE}))
        assert sorted(game.failures) == {5: [3], 6: [2]}.get(frame, [])
        assert np.array_equal(game.observations_N2O[:2], calm.observations_N2O[:2])
        assert np.array_equal(game.stats_N2S[:2], calm.stats_N2S[:2])


def test_a_worker_killed_between_steps_loses_no_match() -> None:
    game, calm = begun(workers=2), begun(workers=2)
    for frame in range(8):
        if frame == 4:
            os.kill(game._pool.pids[0], signal.SIGKILL)
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


def test_a_match_does_not_depend_on_the_number_of_workers() -> None:
    chances = luck(buttons(6), 30)
    chances[..., HANG:] = 0.0
    found = []
    for workers in (1, 2, 6):
        game = buttons(6, workers)
        game.bots_N2[::2, 1] = 0
        game.bots_N2[1::2] = -1
        game.reset(np.arange(6, dtype=np.uint64))
        game.bots_N2[:] = -1
        found.append(history(game, chances))
        assert len(game._pool.pids) == workers
    assert_same(found[0], found[1])
    assert_same(found[0], found[2])


def test_bots_draw_alike_whatever_the_number_of_workers_and_matches() -> None:
    found = []
    for matches, workers in [(1, 1), (8, 1), (8, 3)]:
        game = make_batched("pettingzoo:small_environments:Nim", matches, workers=workers)
        game.bots_N2[:] = 0
        game.reset(np.arange(matches, dtype=np.uint64))
        found.append(history(game, luck(game, 30)))
    assert_same(found[1], found[2])
    assert_same(found[0], [row[:1] for row in found[1]])


def test_the_random_bot_takes_every_legal_choice_alike() -> None:
    from league.games.pettingzoo.draws import draws, random_choices, random_keys

    seeds_N, frames_N = np.arange(30_000, dtype=np.uint64), np.zeros(30_000, np.int32)
    bits_N2 = draws(seeds_N, frames_N)
    legal_N2A = np.tile(np.array([True, False, True, True, False]), (30_000, 2, 1))
    shares_2A = random_choices(bits_N2, legal_N2A).mean(axis=0)
    assert np.allclose(shares_2A, [1 / 3, 0, 1 / 3, 1 / 3, 0], atol=0.01)
    keys_N2A = random_keys(bits_N2, 4).astype(float)
    assert np.allclose(keys_N2A.mean(axis=0), 0.5, atol=0.01)
    together = np.corrcoef(keys_N2A.reshape(-1, 8).T)
    assert np.abs(together - np.eye(8)).max() < 0.03


def test_what_environments_print_stays_out_of_standard_output(capfd: pytest.CaptureFixture[str]) -> None:
    game = begun(noisy=True)
    game.step(pressed(game, {}))
    game.close()
    assert capfd.readouterr().out == ""


def alive(pids: list[int]) -> list[int]:
    found = []
    for pid in pids:
        with contextlib.suppress(OSError):
            status = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
            if status != "Z":
                found.append(pid)
    return found


def test_closing_ends_the_workers_at_once() -> None:
    game = begun(workers=3)
    pids = game._pool.pids
    assert alive(pids) == pids
    game.close()
    assert alive(pids) == []


ORPHANS = """
import os, sys, threading, time
import numpy as np
from league.games.registry import make_batched
game = make_batched("pettingzoo:small_environments:Buttons", 2, workers=2, step_seconds=60)
game.reset(np.arange(2, dtype=np.uint64))
print(*game._pool.pids, flush=True)
actions = np.zeros((2, 2, 7), np.uint8)
actions[:, :, 0] = 1
actions[1, 0] = np.eye(7)[2]
game.step(actions)
"""


@pytest.fixture
def parent() -> Iterator[subprocess.Popen[str]]:
    """A process with a game of two workers, one of which hangs in a step."""
    process = subprocess.Popen(
        [sys.executable, "-c", ORPHANS],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
    )
    yield process
    process.kill()
    process.wait()


def test_workers_end_with_their_parent_even_in_the_middle_of_a_step(parent: subprocess.Popen[str]) -> None:
    assert parent.stdout is not None
    pids = [int(word) for word in parent.stdout.readline().split()]
    time.sleep(0.5)
    assert len(alive(pids)) == 2
    parent.kill()
    parent.wait()
    until = time.monotonic() + 10
    while alive(pids) and time.monotonic() < until:
        time.sleep(0.05)
    assert alive(pids) == []


def test_workers_end_with_a_process_that_just_ends() -> None:
    code = ORPHANS.replace("game.step(actions)", "")
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
        timeout=60,
        check=True,
    )
    assert done.stderr == ""
    assert alive([int(word) for word in done.stdout.split()]) == []


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("pettingzoo", {}, "name it as pettingzoo:MODULE"),
        ("pettingzoo:no.such.module", {}, "no.such.module can't be imported: No module named 'no'"),
        ("pettingzoo:pettingzoo.classic.conect_four_v3", {}, "can't be imported: No module named 'petting"),
        ("pettingzoo:json", {}, "makes no environment: it has no function parallel_env, env, raw_env"),
        ("pettingzoo:small_environments:Pull", {}, "it has no function Pull"),
        ("pettingzoo:small_environments:Trio", {}, "is played by 3 agents: a league plays games of two"),
        ("pettingzoo:small_environments:Steered", {}, "played by a Box: Discrete, MultiDiscrete and"),
        ("pettingzoo:small_environments:Spoken", {}, "observes a Text: Box, Discrete"),
        ("pettingzoo:small_environments:Shy", {}, "does not tell its spaces: KeyError: 'one'"),
        ("pettingzoo:broken_environment", {}, "can't be imported: SyntaxError: "),
        ("pettingzoo:small_environments:Push", {"colour": "red"}, "unexpected keyword argument 'colour'"),
        ("pettingzoo:collections:Counter", {}, "it must be a PettingZoo environment"),
        ("pettingzoo:small_environments:Push", {"step_seconds": 0}, "step_seconds = 0"),
    ],
)
def test_what_cannot_be_played_is_said_in_a_sentence(
    name: str, options: dict, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_environment.py").write_text("def env(:")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ConfigError, match=message.replace("(", r"\(")):
        game_spec(name, **options)


@pytest.mark.parametrize("missing", ["pettingzoo", "pygame"])
def test_a_missing_extra_is_named(missing: str) -> None:
    code = (
        "import sys\nfrom league.games.registry import game_spec\n"
        f"class Absent:\n    def find_spec(self, name, path=None, target=None):\n"
        f"        if name.partition('.')[0] == {missing!r}:\n"
        f"            raise ModuleNotFoundError('No module named {missing}', name={missing!r})\n"
        "sys.meta_path.insert(0, Absent())\n"
        "try:\n    game_spec('pettingzoo:pettingzoo.classic.tictactoe_v3')\n"
        "except Exception as error:\n    print(type(error).__name__, error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == (
        f"ConfigError pettingzoo.classic.tictactoe_v3 needs {missing}, which isn't installed: "
        "pip install pettingzoo pygame-ce\n"
    )


def test_a_process_that_cannot_make_the_environment_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    game = buttons()
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if not entry.endswith("contract")])
    with pytest.raises(Unavailable, match="no process could make small_environments:Buttons: module small"):
        game.reset(np.arange(6, dtype=np.uint64))


def test_the_spec_starts_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*words: Any, **options: Any) -> None:
        raise AssertionError("a process was started")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    game_spec("pettingzoo:small_environments:Buttons", length=99)


def test_choices_of_an_environment_without_a_mask_are_all_legal() -> None:
    game = make_batched("pettingzoo:small_environments:Nim", 4, blind=True)
    game.reset(np.arange(4, dtype=np.uint64))
    for luck_N2A in luck(game, 40):
        game.step(actions(game, luck_N2A))
        for reason in game.failures.values():
            assert "can't be taken of" in reason
    assert game.legal_N2A is not None
    assert game.legal_N2A.any(axis=1).all()
