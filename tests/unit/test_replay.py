"""Replays: what is in the file is the match, to the last bit, or it is refused in a sentence."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from league.errors import DataCorrupt, InvalidInput, NotFound, VersionMismatch
from league.games.base import EXTERNAL, BatchedGame
from league.games.registry import make_batched
from league.replay import (
    Contender,
    MatchRecorder,
    Playback,
    Recipe,
    Replay,
    final_digest,
    load_replay,
    verify,
)
from league.replay.file import FORMAT, decode, encode, save_replay

SEATS = (Contender(name="main@100", digest="a" * 64), Contender(name="based"))


def choices(game: BatchedGame, generator: np.random.Generator) -> np.ndarray:
    """Random keys, or a random legal choice for both seats."""
    if game.legal_N2A is None:
        return generator.integers(0, 2, (1, 2, game.spec.action_size), np.uint8)
    drawn = generator.random(game.legal_N2A.shape) * game.legal_N2A
    return (drawn == drawn.max(-1, keepdims=True)).astype(np.uint8)


def record(
    name: str = "brawl",
    bots: tuple[int, int] = (EXTERNAL, EXTERNAL),
    *,
    skip: int = 1,
    seed: int = 7,
) -> Replay:
    """A match of random keys in every seat without a bot."""
    options = {"max_frames": 200} if name == "brawl" else {}
    game = make_batched(name, 1, **options)
    game.bots_N2[0] = bots
    game.reset(np.array([seed], np.uint64))
    recipe = Recipe(name=name, version=game.spec.version, **options)
    take = MatchRecorder(recipe=recipe, seats=SEATS, bots=bots, seed=seed, match_id="f" * 32)
    generator = np.random.default_rng(seed)
    while not game.ended_N[0]:
        actions_N2A = choices(game, generator)
        take.note(actions_N2A[0], skip)
        game.step(actions_N2A, skip)
    return take.finish(float(game.outcomes_N[0]), final_digest(game, 0))


def test_names_in_a_strangers_replay_steer_no_terminal(replay: Replay) -> None:
    """They may be of any length and kind, and commands show them."""
    seats = Contender(name="a\x1b[2J", digest="a" * 64), Contender(name="b\nforged")
    assert dataclasses.replace(replay, seats=seats).names == ("a [2J", "b forged")


@pytest.fixture(scope="module")
def replay() -> Replay:
    """Random keys against based, a decision every 3 frames (the last one is cut short)."""
    return record(bots=(EXTERNAL, 2), skip=3)


def test_what_is_read_is_what_was_written(replay: Replay, tmp_path: Path) -> None:
    path = tmp_path / "match.replay"
    save_replay(path, replay)
    read = load_replay(path)
    assert load_replay(str(path)).final == read.final
    assert np.array_equal(read.actions_T2A, replay.actions_T2A)
    as_dict = [
        dataclasses.asdict(dataclasses.replace(r, actions_T2A=np.zeros(0), stats=(), terms=()))
        for r in (read, replay)
    ]
    assert str(as_dict[0]) == str(as_dict[1])
    verify(read)


def test_played_again_it_is_the_same_frame_by_frame(replay: Replay) -> None:
    game = make_batched("brawl", 1, max_frames=200)
    game.bots_N2[0] = EXTERNAL, 2
    game.reset(np.array([replay.seed], np.uint64))
    played = list(Playback(replay).frames())
    assert len(played) == replay.frames == 200
    for now, frame in enumerate(played):
        assert frame == game.frame(0), f"frame {now}"
        game.step(replay.actions_T2A[now][None])


@pytest.mark.parametrize("name", ["kuhn", "leduc", "matrix:rps"])
def test_games_of_choices(name: str) -> None:
    replay = record(name)
    verify(decode(encode(replay)))
    other = dataclasses.replace(replay, outcome=0.25)
    with pytest.raises(DataCorrupt, match="outcome"):
        verify(other)


def test_bots_of_games_that_do_not_tell_are_played_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    from league.games.brawl.game import BrawlGame

    monkeypatch.setattr(BrawlGame, "played_N2A", BatchedGame.played_N2A)
    replay = record(bots=(EXTERNAL, 1))
    assert [seat.bot for seat in replay.seats] == ["", "random"]
    verify(decode(encode(replay)))
    stranger = dataclasses.replace(replay.seats[1], bot="gone")
    with pytest.raises(VersionMismatch, match="'gone'"):
        verify(dataclasses.replace(replay, seats=(replay.seats[0], stranger)))


def test_other_keys_are_noticed(replay: Replay) -> None:
    keys = replay.actions_T2A.copy()
    keys[-1, 0] ^= 1  # even the last frame's
    with pytest.raises(DataCorrupt):
        verify(dataclasses.replace(replay, actions_T2A=keys))


def test_other_rules_are_refused(replay: Replay) -> None:
    old = dataclasses.replace(replay.recipe, version="0")
    with pytest.raises(VersionMismatch, match=r"version 0\b.*brawl"):
        verify(dataclasses.replace(replay, recipe=old))


def test_files_cut_short_at_any_byte_are_named(replay: Replay) -> None:
    content = encode(replay)
    for length in range(len(content)):
        with pytest.raises(DataCorrupt, match=r"x\.replay"):
            decode(content[:length], "x.replay")


def test_any_flipped_byte_is_noticed(replay: Replay) -> None:
    content = encode(replay)
    for place in range(len(content)):
        broken = bytearray(content)
        broken[place] ^= 0x10
        with pytest.raises(DataCorrupt):
            decode(bytes(broken), "x.replay")


def test_what_is_no_replay_is_named(tmp_path: Path, replay: Replay) -> None:
    picture = tmp_path / "cat.png"
    picture.write_bytes(b"\x89PNG....")
    with pytest.raises(DataCorrupt, match=r"cat\.png"):
        load_replay(picture)
    with pytest.raises(NotFound, match=r"none\.replay"):
        load_replay(tmp_path / "none.replay")
    with pytest.raises(DataCorrupt, match=str(tmp_path)):
        load_replay(tmp_path)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"seats": [{"name": "a"}]}, DataCorrupt),
        ({"shape": [3, 1, 10]}, DataCorrupt),
        ({"shape": [10**6, 2, 10]}, DataCorrupt),
        ({"outcome": None}, DataCorrupt),
        ({"seed": "x"}, DataCorrupt),
        ({"format": FORMAT + 1}, VersionMismatch),
    ],
)
def test_a_header_that_makes_no_sense_is_refused(
    replay: Replay,
    change: dict,
    error: type[Exception],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from league.replay import file

    good = file._header(replay)
    monkeypatch.setattr(file, "_header", lambda _: {**good, **change})
    with pytest.raises(error, match=r"x\.replay"):
        decode(encode(replay), "x.replay")


@pytest.mark.parametrize(
    ("frames", "final", "error"), [(5, "", InvalidInput), (200, "0" * 32, DataCorrupt)]
)
def test_a_record_that_ends_otherwise_than_its_match_is_not_kept(
    replay: Replay, frames: int, final: str, error: type[Exception]
) -> None:
    take = MatchRecorder(recipe=replay.recipe, seats=SEATS, bots=(EXTERNAL, EXTERNAL), seed=1)
    take.note(np.zeros((2, 10), np.uint8), frames)
    with pytest.raises(error):
        take.finish(0.5, final)
