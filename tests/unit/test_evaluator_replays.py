"""Replays of the evaluator: which matches are kept, and that they verify."""

from __future__ import annotations

import logging
import multiprocessing
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rival_files import CYCLES, seats, stored
from test_evaluator_arena import BASED, CONSTANT, ME, OTHER, assignment, load

from evaluator.clean.arena import Arena
from evaluator.clean.replays import LIVE_SECONDS, Recorder
from league.agent.rivals import RivalSeats
from league.games.base import EXTERNAL, BatchedGame
from league.games.registry import make_batched
from league.players import Assignment, MatchResult, Player, PlayerKind
from league.replay import MatchRecorder, Recipe, Replay, load_replay, save_replay, verify
from league.replay.highlights import LIVES, Highlight, add_highlights, read_highlights
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


def finished(
    recording: Recorder,
    game: BatchedGame,
    number: int,
    pair: tuple[Player, Player],
    *,
    outcome: float = 0.5,
    **stats: tuple[float, float],
) -> None:
    """Plays a match to its end, and makes up its outcome and totals."""
    match = assignment(number, *pair, seed=number)
    recording.begin(0, match)
    game.reset(np.array([number], np.uint64))
    game.bots_N2[0] = EXTERNAL
    for _ in range(0, FRAMES, 4):
        recording.note(game.idle_actions(), 4)
        game.step(game.idle_actions(), 4)
    assert game.ended_N[0]
    game.outcomes_N[0] = outcome
    for name, both in stats.items():
        game.final_stats_N2S[0, :, game.spec.stats.index(name)] = both
    recording.end(0, game)


@pytest.fixture
def highlights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], dict[str, str]]:
    """The highlights by kind. Outcomes and totals are made up, so no replay would verify."""
    monkeypatch.setattr(MatchRecorder, "finish", lambda self, *_: played_again(self))

    def played_again(take: MatchRecorder) -> Replay:
        found = take._played(take.recipe.make(), lambda: False)
        assert found is not None
        return found

    return lambda: {one.kind: one.match_id for one in read_highlights(tmp_path)}


def test_the_best_rally_and_the_closest_match_are_kept_whoever_wins(
    tmp_path: Path, highlights: Callable[[], dict[str, str]]
) -> None:
    game = make_batched("brawl", 1, max_frames=FRAMES)
    recording = recorder(tmp_path, most=1)
    done = [
        {"hits": (9, 2), "damage_dealt": (90, 20), "knockouts": (1, 0), "outcome": 1.0},
        {"hits": (5, 4), "damage_dealt": (50, 45), "knockouts": (2, 3), "outcome": 0.0},
        {"hits": (6, 6), "damage_dealt": (70, 70), "knockouts": (3, 3), "outcome": 0.5},
        {"hits": (4, 5), "damage_dealt": (52, 47), "knockouts": (0, 1), "outcome": 0.0},
        {"hits": (9, 0), "damage_dealt": (400, 0), "knockouts": (3, 0), "outcome": 1.0},
    ]
    for number, totals in enumerate(done):
        finished(recording, game, number, (ME, OTHER), **totals)
    found = highlights()
    assert (found["rally"], found["closest"]) == ("2", "1")  # a draw was not decided
    assert kept(tmp_path) >= {"1", "2"}
    again = recorder(tmp_path, most=1)  # a restarted evaluator knows them
    finished(again, game, 7, (ME, OTHER), outcome=1.0, hits=(5, 5), damage_dealt=(9, 0))
    assert (highlights()["rally"], highlights()["closest"]) == ("2", "1")


def test_a_milestone_s_win_over_its_hardest_bot_is_kept(
    tmp_path: Path, highlights: Callable[[], dict[str, str]]
) -> None:
    game = make_batched("brawl", 1, max_frames=FRAMES)
    recording = replace(recorder(tmp_path), milestones=frozenset([ME.name]))
    seats = [(ME, BASED), (CONSTANT, ME), (CONSTANT, ME), (ME, BASED), (BASED, ME), (ME, OTHER)]
    outcomes = [1.0, 1.0, 0.0, 1.0, 0.0, 1.0]  # wins all against based, one of two against constant
    for number, (pair, outcome) in enumerate(zip(seats, outcomes, strict=True)):
        finished(recording, game, number, pair, outcome=outcome)
    assert highlights()["win"] == "2"
    assert "2" in kept(tmp_path)
    (tmp_path / "other").mkdir()
    finished(recorder(tmp_path / "other"), game, 0, (ME, BASED), outcome=1.0)
    found = read_highlights(tmp_path / "other")
    assert "win" not in {one.kind for one in found}, "it is no milestone"


def test_a_match_of_any_players_is_live_every_now_and_then(
    tmp_path: Path, highlights: Callable[[], dict[str, str]]
) -> None:
    game = make_batched("brawl", 1, max_frames=FRAMES)
    now = 1000.0
    recording = replace(recorder(tmp_path, "nobody"), clock=lambda: now)
    seen = []
    for number in range(4):
        finished(recording, game, number, (OTHER, BASED))
        seen.append(highlights()["live"])
        now += 0.6 * LIVE_SECONDS
    assert seen == ["0", "0", "2", "2"]
    assert kept(tmp_path) == {"0", "2"}


def test_live_matches_and_a_person_s_replay_push_nothing_out(
    tmp_path: Path, highlights: Callable[[], dict[str, str]]
) -> None:
    """The run keeps one other replay. The first match is the player's first."""
    game = make_batched("brawl", 1, max_frames=FRAMES)
    now = 1000.0
    recording = replace(recorder(tmp_path, BASED.name, most=1), clock=lambda: now)
    finished(recording, game, 0, (ME, BASED))
    first = load_replay(tmp_path / "replays" / "0.replay")
    person = replace(first.seats[0], name="human")
    save_replay(tmp_path / "replays" / "p.replay", replace(first, seats=(person, first.seats[1])))
    os.utime(tmp_path / "replays" / "0.replay", (0, 0))  # the person's is newer
    for number in range(1, LIVES + 3):
        now += LIVE_SECONDS
        finished(recording, game, number, (ME, OTHER))
    assert kept(tmp_path) == {"p", "0"} | {str(number) for number in range(3, LIVES + 3)}
    finished(replace(recording, _seen=set()), game, 99, (ME, BASED))  # another first match
    assert kept(tmp_path) == {"p", "99"} | {str(number) for number in range(3, LIVES + 3)}


def test_live_matches_and_wins_go_on_when_the_clock_steps_back(
    tmp_path: Path, highlights: Callable[[], dict[str, str]]
) -> None:
    game = make_batched("brawl", 1, max_frames=FRAMES)
    now = 10_000.0
    recording = replace(recorder(tmp_path), milestones=frozenset([ME.name]), clock=lambda: now)
    finished(recording, game, 0, (ME, BASED), outcome=1.0)
    now = 1000.0
    finished(recording, game, 1, (ME, CONSTANT), outcome=0.0)
    finished(recording, game, 2, (ME, CONSTANT), outcome=1.0)
    assert (highlights()["live"], highlights()["win"]) == ("1", "2")
    assert read_highlights(tmp_path)[-1].words == "over constant, 1 of 2 matches won in its batch"
    again = replace(recorder(tmp_path), milestones=frozenset([ME.name]), clock=lambda: now)
    finished(again, game, 3, (ME, BASED), outcome=1.0)  # counts begin anew
    assert highlights()["win"] == "2"


@pytest.mark.long
def test_of_two_recorders_the_better_highlight_stays(tmp_path: Path) -> None:
    """Each process adds its own, and none knows the others'."""
    adding = [
        multiprocessing.get_context("spawn").Process(target=add_many, args=(tmp_path, offset))
        for offset in range(2)
    ]
    for process in adding:
        process.start()
    for process in adding:
        process.join()
    found = read_highlights(tmp_path)
    assert [one.value for one in found if one.kind == "rally"] == [41.0]
    assert sum(one.kind == "win" for one in found) == 42
    listed, _ = add_highlights(tmp_path, [rally(9)])
    assert [one.value for one in listed if one.kind == "rally"] == [41.0]


def rally(number: int, kind: str = "rally") -> Highlight:
    return Highlight(
        kind=kind,
        match_id=f"{number}",
        names=("a", "b"),
        winner=f"{number}",
        words="",
        value=float(number),
        at=0.0,
    )


def add_many(folder: Path, offset: int) -> None:
    for number in range(41 - offset, -1, -2):  # the best first
        add_highlights(folder, [rally(number), rally(number, "win")])


def test_a_match_that_can_not_be_kept_is_not_tried_again_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    game = make_batched("brawl", 1, max_frames=FRAMES)
    recording = recorder(tmp_path)
    with caplog.at_level(logging.WARNING, "evaluator"):
        for number in range(3):  # the made-up totals can't be played again
            finished(recording, game, number, (ME, OTHER), hits=(5, 5))
    assert [record.args[0] for record in caplog.records] == ["0"]


def test_a_stop_ends_the_replay_of_a_match(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    game = make_batched("brawl", 1, max_frames=FRAMES)
    with caplog.at_level(logging.WARNING, "evaluator"):
        finished(replace(recorder(tmp_path), should_stop=lambda: True), game, 0, (ME, OTHER))
    assert "stopped" in caplog.text
    assert not kept(tmp_path)


def test_a_damaged_list_of_highlights_is_written_anew(
    tmp_path: Path, highlights: Callable[[], dict[str, str]]
) -> None:
    (tmp_path / "evaluator").mkdir()
    for content in ("[", '[{"kind": 1}]', "[" * 10**5, '{"kind": "live"}'):
        (tmp_path / "evaluator" / "highlights.json").write_text(content)
        assert highlights() == {}
    game = make_batched("brawl", 1, max_frames=FRAMES)
    finished(recorder(tmp_path), game, 0, (ME, BASED))
    assert highlights()["live"] == "0"


def test_totals_that_are_no_numbers_stop_nothing(
    tmp_path: Path, highlights: Callable[[], dict[str, str]]
) -> None:
    game = make_batched("brawl", 1, max_frames=FRAMES)
    recording = recorder(tmp_path)
    finished(recording, game, 0, (ME, OTHER), hits=(np.nan, 1))
    finished(recording, game, 1, (ME, OTHER), hits=(2, 1))
    assert highlights()["rally"] == "1"


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
