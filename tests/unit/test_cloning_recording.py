"""Recording for behaviour cloning, and what a clone learns from: many matches side by side,
mistakes marked, keys at an agent's pace; replays that are no good are named.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from agents import network
from recordings import BASED, GAME, SMALL, demos, played, recorded

from league.contest.matches import paired, play_bouts
from league.errors import DataCorrupt, InvalidInput, VersionMismatch
from league.games.base import EXTERNAL
from league.games.registry import make_batched
from league.games.settings import GameSettings
from league.replay import Contender, Recipe, save_replay, verify
from learner.cloning.demonstrations import keys_of_decisions, read_replays

TAPPED = np.array([[0, 0], [1, 0], [0, 0], [0, 1], [1, 1], [0, 0]], np.uint8)


def test_what_is_recorded_side_by_side_verifies_alone() -> None:
    for _, replay in [*recorded(), *recorded(0.2)]:
        verify(replay)
    assert len({replay.match_id for _, replay in recorded()}) == 8
    seats = sorted((replay.seed, replay.seats[0].name) for _, replay in recorded())
    assert seats == [(seed, name) for seed in range(3, 7) for name in ("based", "random")]


def test_more_matches_than_rows_are_all_played(monkeypatch: pytest.MonkeyPatch) -> None:
    together = {r.match_id: r for _, r in recorded()}
    monkeypatch.setattr("league.contest.matches.ROWS", 3)
    apart = {r.match_id: r for _, r in played()}
    assert apart.keys() == together.keys()
    for match_id, replay in apart.items():
        assert np.array_equal(replay.actions_T2A, together[match_id].actions_T2A)


def test_a_snapshot_is_recorded_at_its_own_pace() -> None:
    crowd = Contender(name="a", digest="a"), Contender(name="b", digest="b")
    made = paired(*crowd, (EXTERNAL, EXTERNAL), 4, 0)
    net = network(SMALL)
    replays, again = (
        list(play_bouts(Recipe.of(GAME), made, lambda _: net, frame_skip=4, seed=seed))
        for seed in (0, 1)
    )
    for replay in replays:
        verify(replay)
        first = replay.actions_T2A[::4].repeat(4, axis=0)[: replay.frames]
        assert np.array_equal(replay.actions_T2A, first)
        assert replay.actions_T2A.any()
    assert not all(
        np.array_equal(a.actions_T2A, b.actions_T2A) for a, b in zip(replays, again, strict=False)
    )


def test_mistakes_take_their_share_are_marked_and_are_not_the_players_own() -> None:
    frames = taken = 0
    for (_, replay), demonstration in zip(recorded(0.2), demos(recorded(0.2)), strict=True):
        frames += replay.frames
        marked = set()
        for seat, first, count in replay.disturbed:
            assert replay.seats[seat].name == "based"
            held = replay.actions_T2A[first : first + count, seat]
            assert (held == held[0]).all()
            assert (replay.actions_T2A[:first, seat] == held[0]).all(-1).any()
            marked |= set(range(first, first + count))
        taken += len(marked)
        for t, own in enumerate(demonstration.own_T):
            assert own == marked.isdisjoint(range(4 * t, 4 * t + 4))
    assert 0.1 < taken / frames < 0.3
    assert all(d.own_T.all() for d in demos(recorded(0.2), "random"))


def test_between_mistakes_the_bot_plays_itself() -> None:
    """Played again up to a frame that is its own, the bot does what is recorded."""
    replay = next(r for _, r in recorded(0.2) if r.disturbed)
    (seat,) = {span[0] for span in replay.disturbed}
    game = replay.recipe.make()
    game.reset(np.array([replay.seed], np.uint64))
    marked = {f for _, first, count in replay.disturbed for f in range(first, first + count)}
    unlike = set()
    for now, actions_2A in enumerate(replay.actions_T2A):
        state = game.save()
        game.bots_N2[0, seat] = BASED
        game.step(actions_2A[None])
        if not np.array_equal(game.played_N2A()[0, seat], actions_2A[seat]):
            unlike.add(now)
        game.load(state)
        game.step(actions_2A[None])
    assert unlike
    assert unlike <= marked


def test_a_bot_at_an_agents_pace_plays_what_its_clone_learns() -> None:
    """Its keys change only where decisions are, and each decision is learnt unchanged."""
    listed = played(pace=4, disturb=0.1)
    for (_, replay), demonstration in zip(listed, demos(listed), strict=True):
        verify(replay)
        keys_FA = replay.actions_T2A[:, [s.name for s in replay.seats].index("based")]
        held_FA = keys_FA[::4].repeat(4, axis=0)[: len(keys_FA)]
        own_T = demonstration.own_T
        own_F = own_T.repeat(4)[: len(keys_FA)]
        assert np.array_equal(keys_FA[own_F], held_FA[own_F])
        assert np.array_equal(demonstration.actions_TA[own_T], keys_FA[::4][own_T])
    assert not all(demonstration.own_T.all() for demonstration in demos(listed))


def test_taps_are_followed_by_presses() -> None:
    """based taps the jump key every other frame, and jumps as often as it can. Held on, the key
    jumps once: an agent of its pace that presses what based has down in any frame presses it 0.3
    times a second.
    """
    game = GameSettings(name="brawl", match_seconds=30, frame_skip=4, reward="laptop")
    constant = game.spec().bot_index("constant")
    seats = Contender(name="based"), Contender(name="constant")
    made = paired(*seats, (BASED, constant), 12, 0, "based")
    replays = play_bouts(
        Recipe.of(game), made, lambda _: network(SMALL), frame_skip=1, seed=0, pace=4
    )
    for replay in replays:
        own = [seat.name for seat in replay.seats].index("based")
        jump_F = replay.actions_T2A[:, own, game.spec().action_names.index("space")]
        assert (np.diff(jump_F.astype(int)) > 0).sum() > len(jump_F) / 30


@pytest.mark.parametrize(
    ("frame_skip", "keys"),
    [(4, [[1, 1], [0, 1]]), (2, [[1, 0], [0, 1], [1, 1]]), (1, TAPPED.tolist())],
)
def test_keys_of_decisions(frame_skip: int, keys: list[list[int]]) -> None:
    assert keys_of_decisions(TAPPED, frame_skip).tolist() == keys


@pytest.mark.parametrize("name", ["based", "random"])
def test_a_clone_learns_from_what_the_player_saw(name: str) -> None:
    found = demos(recorded(), name)
    assert len(found) == 8
    for (_, replay), demonstration in zip(recorded(), found, strict=True):
        seat = [s.name for s in replay.seats].index(name)
        game = make_batched("brawl", 1, max_frames=150)
        game.reset(np.array([replay.seed], np.uint64))
        seen_TO = []
        for actions_2A in replay.actions_T2A:
            seen_TO.append(game.observations_N2O[0, seat].copy())
            game.step(actions_2A[None])
        assert np.array_equal(demonstration.obs_TO, seen_TO[::4])
        assert demonstration.own_T.all()


def test_replays_that_are_no_good_are_named(tmp_path: Path) -> None:
    path, good = recorded()[2]
    other = replace(good, recipe=replace(good.recipe, version="0"))
    for name, replay in (("0.replay", good), ("1.replay", other)):
        save_replay(tmp_path / name, replay)
    with pytest.raises(VersionMismatch, match=r"1\.replay .* version 0 "):
        read_replays(tmp_path, GAME)
    with pytest.raises(InvalidInput, match=r"0\.replay .*kuhn"):
        read_replays(tmp_path, GameSettings(name="kuhn", reward="dense"))
    keys = good.actions_T2A.copy()
    keys[-1, 0] ^= 1
    for actions, words in ((keys, ""), (good.actions_T2A[:-1], ".*frames")):
        with pytest.raises(DataCorrupt, match=rf"2\.replay: {words}"):
            demos([*recorded()[:2], (path, replace(good, actions_T2A=actions))])
    first, second = (replace(seat, bot=seat.name) for seat in good.seats)
    with pytest.raises(InvalidInput, match="brawl"):
        demos([(path, replace(good, seats=(first, second)))])
