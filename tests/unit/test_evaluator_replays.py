"""Replays of the evaluator: which matches are kept, and that they verify."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rival_files import CYCLES, seats, stored
from test_evaluator_arena import BASED, CONSTANT, ME, OTHER, assignment, load

from evaluator.clean.arena import Arena
from evaluator.clean.replays import Recorder
from league.agent.rivals import RivalSeats
from league.games.base import BatchedGame
from league.games.registry import make_batched
from league.players import Assignment, MatchResult, PlayerKind
from league.replay import Recipe, load_replay, verify
from league.runs.blobs import BlobFolder

FRAMES = 60  # no one can fall off within two seconds


def recorder(folder: Path, *players: str, most: int = 100) -> Recorder:
    recipe = Recipe(name="brawl", version=make_batched("brawl", 1).spec.version, max_frames=FRAMES)
    return Recorder(folder / "replays", recipe, frozenset(players or [ME.name]), most)


def play(
    game: BatchedGame,
    matches: list[Assignment],
    recording: Recorder,
    rivals: RivalSeats | None = None,
) -> dict[str, MatchResult]:
    """Two rows play all matches, one after the other."""
    arena = Arena(game, load, frame_skip=4, seed=0, recorder=recording, rivals=rivals)
    waiting, results = list(matches), {}
    while waiting or arena.busy:
        arena.seat([waiting.pop(0) for _ in range(min(arena.free, len(waiting)))])
        results |= {result.match_id: result for result in arena.step()}
    return results


def kept(folder: Path) -> set[str]:
    return {path.stem for path in (folder / "replays").glob("*.replay")}


@pytest.fixture
def game() -> BatchedGame:
    return make_batched("brawl", 2, max_frames=FRAMES)


def test_a_player_s_first_match_is_kept(game: BatchedGame, tmp_path: Path) -> None:
    seats = [(ME, CONSTANT), (CONSTANT, ME), (ME, OTHER), (ME, CONSTANT), (OTHER, ME)]
    matches = [assignment(n, *pair, seed=n) for n, pair in enumerate(seats)]
    results = play(game, matches, recorder(tmp_path))
    assert {result.outcome for result in results.values()} == {0.5}
    assert kept(tmp_path) == {"0"}
    for name in kept(tmp_path):
        replay = load_replay(tmp_path / "replays" / f"{name}.replay")
        verify(replay)
        assert (replay.match_id, replay.frames) == (name, results[name].frames)
        assert [seat.name for seat in replay.seats] == [p.name for p in seats[int(name)]]
        assert [seat.digest for seat in replay.seats] == [p.digest for p in seats[int(name)]]
        assert replay.seed == int(name)


def test_a_rival_s_keys_of_every_frame_are_kept(game: BatchedGame, tmp_path: Path) -> None:
    """While a match without a rival goes on in the other row, as without the rival."""
    blobs = BlobFolder(tmp_path / "blobs")
    rival = replace(OTHER, kind=PlayerKind.RIVAL, digest=stored(blobs, CYCLES, tmp_path))
    matches = [assignment(0, ME, rival, seed=0), assignment(1, ME, BASED, seed=1)]
    with seats(blobs) as rivals:
        results = play(game, matches, recorder(tmp_path, rival.name, BASED.name), rivals)
    assert {result.frames for result in results.values()} == {FRAMES}
    replay = load_replay(tmp_path / "replays" / "0.replay")
    verify(replay)
    assert replay.actions_T2A[:, 1].argmax(1).tolist() == [frame % 10 for frame in range(FRAMES)]
    network_TA = replay.actions_T2A[:, 0]
    assert (network_TA.reshape(-1, 4, 10) == network_TA[::4, None]).all()
    beside = load_replay(tmp_path / "replays" / "1.replay")
    (folder := tmp_path / "alone").mkdir()
    others = [replace(matches[0], seats=(ME, CONSTANT)), matches[1]]
    play(make_batched("brawl", 2, max_frames=FRAMES), others, recorder(folder, BASED.name))
    alone = load_replay(folder / "replays" / "1.replay")
    assert (alone.actions_T2A == beside.actions_T2A).all()
    assert (alone.final, alone.stats) == (beside.final, beside.stats)


def test_a_match_within_a_longer_one_is_its_own(game: BatchedGame, tmp_path: Path) -> None:
    """Row 1 begins after row 0 and ends before it."""
    recording = recorder(tmp_path, ME.name, OTHER.name)
    generator = np.random.default_rng(0)
    recording.begin(0, assignment(0, ME, CONSTANT))
    for _ in range(3):
        recording.note(generator.integers(0, 2, (2, 2, 10), np.uint8), 4)
    recording.begin(1, assignment(1, OTHER, CONSTANT, seed=1))
    game.reset(np.array([0, 1], np.uint64))
    while not game.ended_N[1]:
        keys_N2A = generator.integers(0, 2, (2, 2, 10), np.uint8)
        recording.note(keys_N2A, 4)
        game.step(keys_N2A, 4)
    recording.end(1, game)
    assert kept(tmp_path) == {"1"}
    verify(load_replay(tmp_path / "replays" / "1.replay"))


@pytest.mark.parametrize("seat", [0, 1])
def test_the_first_loss_is_kept_and_no_win(
    game: BatchedGame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seat: int
) -> None:
    """The outcomes are made up; what is under test is which matches are chosen."""
    outcomes = [0.5, 1.0, 0.0, 0.0]
    chosen: list[str] = []
    monkeypatch.setattr(
        Recorder, "_keep", lambda self, row, match, game: chosen.append(match.take.match_id)
    )
    recording = recorder(tmp_path)
    for number, own in enumerate(outcomes):
        pair = (ME, BASED) if seat == 0 else (BASED, ME)
        recording.begin(0, assignment(number, *pair))
        game.outcomes_N[0] = own if seat == 0 else 1.0 - own
        recording.end(0, game)
    assert chosen == ["0", "2"]


def test_the_oldest_go_first(game: BatchedGame, tmp_path: Path) -> None:
    one_row = make_batched("brawl", 1, max_frames=FRAMES)
    for number in range(3):
        recording = recorder(tmp_path, most=2)
        play(one_row, [assignment(number, ME, CONSTANT, seed=number)], recording)
    assert kept(tmp_path) == {"1", "2"}


def test_what_can_not_be_kept_stops_nothing(
    game: BatchedGame, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "replays").write_text("in the way")
    with caplog.at_level(logging.WARNING, "evaluator"):
        results = play(game, [assignment(0, ME, CONSTANT)], recorder(tmp_path))
    assert list(results) == ["0"]
    assert "match 0" in caplog.text
