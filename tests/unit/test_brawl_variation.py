"""Matches that differ from the original's, each by its seed: `variation`, `off_stage_starts`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from league.errors import ConfigError
from league.games.brawl.game import BrawlGame
from league.games.registry import game_spec
from league.games.settings import GameSettings
from league.replay import Recipe
from league.settings.base import resolve
from learner.train.build import SessionSettings, make_game

MATCHES = 200
RIGHT = 3


def begun(**options: Any) -> BrawlGame:
    game = BrawlGame(MATCHES, **options)
    game.reset(np.arange(MATCHES, dtype=np.uint64))
    return game


def pressed(*keys: int) -> np.ndarray:
    actions_N2A = np.zeros((MATCHES, 2, 10), np.uint8)
    actions_N2A[:, 0, list(keys)] = 1
    return actions_N2A


def shown(game: BrawlGame, name: str) -> np.ndarray:
    """Where seat 0 is, or how fast, as a spectator sees it."""
    return np.array([game.frame(n)["players"][0][name] for n in range(MATCHES)])


def walked(game: BrawlGame) -> np.ndarray:
    """Where seat 0 is in each frame of a walk to the right and the slide after it, [T, N]."""
    places = [shown(game, "x")]
    for frame in range(34):
        game.step(pressed(RIGHT) if 20 <= frame < 24 else pressed())
        places.append(shown(game, "x"))
    return np.array(places)


def test_the_platform_begins_anywhere_on_its_way() -> None:
    game, plain = begun(variation=1.0), begun()
    begin_N = [game.frame(n)["platform"]["x"] for n in range(MATCHES)]
    assert np.ptp(begin_N) > 1.5
    assert np.ptp([plain.frame(n)["platform"]["x"] for n in range(MATCHES)]) == 0.0


def test_keys_are_late_in_some_matches_and_grounds_slow_otherwise() -> None:
    varied_TN, plain_TN = walked(begun(variation=1.0)), walked(begun())
    begins_N, plain_begins_N = (
        (np.abs(np.diff(x_TN[18:], axis=0)) > 1e-3).argmax(0) for x_TN in (varied_TN, plain_TN)
    )
    late_N = begins_N - plain_begins_N
    assert set(late_N) == {0, 1}
    assert 0.3 < late_N.mean() < 0.7
    further_N = (varied_TN[-1] - plain_TN[-1])[late_N == 0]
    assert further_N.min() < -0.001 < 0.001 < further_N.max()


def test_views_have_errors_that_matches_do_not() -> None:
    game = begun(variation=1.0)
    for _ in range(5):
        game.step(pressed())
        error_N = game.observations_N2O[:, 0, 0] * 14.0 - shown(game, "x")
        assert 0.05 < np.abs(error_N).max() <= 0.1 + 1e-5
        assert abs(error_N.mean()) < 0.02
        views_N2O = game.observations_N2O
        assert np.array_equal(views_N2O[:, 0, :32], views_N2O[:, 1, 32:64])


def test_a_seed_says_how_a_match_differs_and_nothing_does_without_variation() -> None:
    games = [begun(variation=v) for v in (0.5, 0.5, 0.0)] + [begun()]
    random = np.random.default_rng(0)
    for _ in range(60):
        keys_N2A = (random.random((MATCHES, 2, 10)) < 0.2).astype(np.uint8)
        for game in games:
            game.step(keys_N2A, 4)
    one, again, none, plain = (game.observations_N2O for game in games)
    assert np.array_equal(one, again)
    assert np.array_equal(none, plain)
    assert not np.array_equal(one, plain)


@pytest.mark.parametrize("wrong", [-0.1, 1.5, "much"])
def test_what_is_no_share_is_refused(wrong: Any) -> None:
    with pytest.raises(ConfigError, match="variation"):
        BrawlGame(1, variation=wrong)
    with pytest.raises(ConfigError, match="variation"):
        game_spec("brawl", variation=wrong)
    with pytest.raises(ValueError, match="variation"):
        GameSettings(options={"variation": wrong})


def test_players_begin_off_the_grounds_in_the_share_of_starts_that_is_asked_for() -> None:
    game, plain = begun(off_stage_starts=0.5), begun()
    x_N, plain_x_N = shown(game, "x"), shown(plain, "x")
    moved_N = x_N != plain_x_N
    assert 0.3 < moved_N.mean() < 0.6  # some would touch the platform, and stay at their spawns
    over_pit_N = np.abs(x_N) <= 1.6
    assert (moved_N == (over_pit_N | (np.abs(x_N) >= 7.5))).all()
    assert 0.3 < over_pit_N[moved_N].mean() < 0.95
    for _ in range(60):
        game.step(pressed())
        plain.step(pressed())
    falls_N = game.stats_N2S[:, 0, game.spec.stats.index("falls")]
    assert falls_N[moved_N].mean() > 0.2
    assert not plain.stats_N2S[:, :, plain.spec.stats.index("falls")].any()


def test_a_match_with_such_a_start_follows_from_its_seed() -> None:
    one, other = begun(off_stage_starts=1.0), begun(off_stage_starts=1.0)
    for _ in range(30):
        one.step(pressed(RIGHT))
        other.step(pressed(RIGHT))
    np.testing.assert_array_equal(one.observations_N2O, other.observations_N2O)


def test_only_learners_matches_have_such_starts() -> None:
    flags = ["game.options.off_stage_starts=1"]
    sections = resolve("smoke", assignments=flags, environment={})
    clean = Recipe.of(sections.of(GameSettings)).make(8)
    training = make_game(SessionSettings.of(sections))
    for game in (clean, training):
        game.reset(np.arange(game.num_matches, dtype=np.uint64))
    assert (np.abs([clean.frame(n)["players"][0]["x"] for n in range(8)]) == 5.0).all()
    assert (np.abs([training.frame(n)["players"][0]["x"] for n in range(8)]) != 5.0).any()


@pytest.mark.parametrize("share", [-0.1, 1.5, "often"])
def test_a_share_of_starts_that_is_none_is_refused(share: object) -> None:
    with pytest.raises(ConfigError, match="off_stage_starts"):
        game_spec("brawl", off_stage_starts=share)
    with pytest.raises(ValueError, match="off_stage_starts"):
        GameSettings(options={"off_stage_starts": share})
