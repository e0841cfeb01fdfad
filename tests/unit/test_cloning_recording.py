"""Recording for behaviour cloning: many matches side by side, mistakes marked, keys at an
agent's pace.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from agents import network
from recordings import BASED, GAME, bouts, demos, recorded

from league.agent.recorded_matches import paired, play_bouts
from league.games.base import EXTERNAL
from league.games.settings import GameSettings
from league.replay import Contender, Recipe, Replay, verify


@pytest.fixture(scope="module")
def plain() -> list[tuple[Path, Replay]]:
    return recorded()


@pytest.fixture(scope="module")
def disturbed() -> list[tuple[Path, Replay]]:
    return recorded(0.2)


def test_what_is_recorded_side_by_side_verifies_alone(
    plain: list[tuple[Path, Replay]], disturbed: list[tuple[Path, Replay]]
) -> None:
    for _, replay in plain + disturbed:
        verify(replay)
    assert len({replay.match_id for _, replay in plain}) == 8
    seats = sorted((replay.seed, replay.seats[0].name) for _, replay in plain)
    assert seats == [(seed, name) for seed in range(3, 7) for name in ("based", "random")]


def test_more_matches_than_rows_are_all_played(monkeypatch: pytest.MonkeyPatch) -> None:
    together = {r.match_id: r for _, r in recorded()}
    monkeypatch.setattr("league.agent.recorded_matches.ROWS", 3)
    apart = {r.match_id: r for _, r in recorded()}
    assert apart.keys() == together.keys()
    for match_id, replay in apart.items():
        assert np.array_equal(replay.actions_T2A, together[match_id].actions_T2A)


def test_a_snapshot_is_recorded_at_its_own_pace() -> None:
    crowd = Contender(name="a", digest="a"), Contender(name="b", digest="b")
    made = paired(*crowd, (EXTERNAL, EXTERNAL), 4, 0)
    replays = list(play_bouts(Recipe.of(GAME), made, lambda _: network(), frame_skip=4, seed=0))
    for replay in replays:
        verify(replay)
        first = replay.actions_T2A[::4].repeat(4, axis=0)[: replay.frames]
        assert np.array_equal(replay.actions_T2A, first)
        assert replay.actions_T2A.any()
    again = list(play_bouts(Recipe.of(GAME), made, lambda _: network(), frame_skip=4, seed=1))
    assert not all(
        np.array_equal(a.actions_T2A, b.actions_T2A) for a, b in zip(replays, again, strict=False)
    )


def test_mistakes_take_their_share_and_are_marked(disturbed: list[tuple[Path, Replay]]) -> None:
    frames = sum(replay.frames for _, replay in disturbed)
    taken = 0
    for _, replay in disturbed:
        for seat, first, count in replay.disturbed:
            assert replay.seats[seat].name == "based"
            held = replay.actions_T2A[first : first + count, seat]
            assert (held == held[0]).all()
            taken += count
    assert 0.1 < taken / frames < 0.3


def test_between_mistakes_the_bot_plays_itself(disturbed: list[tuple[Path, Replay]]) -> None:
    """Played again up to a frame that is its own, the bot does what is recorded."""
    replay = next(r for _, r in disturbed if r.disturbed)
    (seat,) = {span[0] for span in replay.disturbed}
    game = replay.recipe.make()
    game.reset(np.array([replay.seed], np.uint64))
    marked = {f for _, first, count in replay.disturbed for f in range(first, first + count)}
    unlike = 0
    for now, actions_2A in enumerate(replay.actions_T2A):
        state = game.save()
        game.bots_N2[0, seat] = BASED
        game.step(actions_2A[None])
        differs = not np.array_equal(game.played_N2A()[0, seat], actions_2A[seat])
        unlike += differs
        assert not (differs and now not in marked), f"frame {now}"
        game.load(state)
        game.step(actions_2A[None])
    assert unlike


def test_a_bot_at_an_agents_pace_plays_what_its_clone_learns() -> None:
    """Its keys change only where decisions are, and each decision is learnt unchanged."""
    replays = play_bouts(
        Recipe.of(GAME), bouts(), lambda _: network(), frame_skip=1, seed=0, pace=4, disturb=0.1
    )
    listed = [(Path("x"), replay) for replay in replays]
    for (_, replay), demonstration in zip(listed, demos(listed), strict=True):
        verify(replay)
        keys_FA = replay.actions_T2A[:, [s.name for s in replay.seats].index("based")]
        held_FA = keys_FA[::4].repeat(4, axis=0)[: len(keys_FA)]
        own_F = demonstration.own_T.repeat(4)[: len(keys_FA)]
        assert np.array_equal(keys_FA[own_F], held_FA[own_F])
        assert np.array_equal(
            demonstration.actions_TA[demonstration.own_T], keys_FA[::4][demonstration.own_T]
        )
        assert not demonstration.own_T.all()


def test_taps_are_followed_by_presses() -> None:
    """based taps the jump key every other frame, and jumps as often as it can. Held on, the key
    jumps once: an agent of its pace that presses what based has down in any frame does not cross
    the pit to win.
    """
    game = GameSettings(name="brawl", match_seconds=30, frame_skip=4, reward="laptop")
    constant = game.spec().bot_index("constant")
    made = paired(
        Contender(name="based"), Contender(name="constant"), (BASED, constant), 12, 0, "based"
    )
    played = play_bouts(Recipe.of(game), made, lambda _: network(), frame_skip=1, seed=0, pace=4)
    scores = [r.outcome if r.seats[0].name == "based" else 1 - r.outcome for r in played]
    assert min(scores) > 0.0
