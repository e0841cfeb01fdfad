"""LeagueVecEnv: seats, live observations, rewards, results, and any SB3 algorithm on top."""

import dataclasses
from itertools import pairwise

import numpy as np
import pytest
from learning import MATCHES, assignments, make_env, random_keys, snapshot_player

from league.errors import DataCorrupt, InvalidInput, NothingPlayable
from league.games.registry import make_batched


def play(env, decisions, seed=0):
    rng = np.random.default_rng(seed)
    env.reset()
    history, finished = [], []
    for _ in range(decisions):
        history.append(env.step(random_keys(rng)))
        finished += env.finished
    env.finished = finished
    return history


def test_learner_sees_its_own_half_first_on_either_seat():
    env = make_env()
    play(env, 5)
    views = env.game.observations_N2O
    seen = env.observations()
    seats = env.seat_N
    assert set(seats) == {0, 1}
    for n in range(MATCHES):
        np.testing.assert_array_equal(seen[n], views[n, seats[n]])
        np.testing.assert_array_equal(seen[n, :32], views[n, 1 - seats[n], 32:64])


def test_keys_are_numbers_of_which_those_above_one_half_are_pressed():
    def seen(keys):
        env = make_env()
        env.reset()
        for _ in range(3):
            views = env.step(np.full((MATCHES, 10), keys))[0]
        game = make_batched("brawl", 1)
        game.reset(np.zeros(1, np.uint64))
        game.step(np.full((1, 2, 10), keys))
        return views.tobytes(), game.observations_N2O.tobytes()

    assert seen(0.7) == seen(1) == seen(np.int8(1))
    assert seen(-1) == seen(0.4) == seen(0)
    assert all(a != b for a, b in zip(seen(1), seen(0), strict=True))
    with pytest.raises(InvalidInput, match="nan"):
        seen(np.nan)


def test_opponents_press_keys_and_see_every_frame_from_their_own_seat(monkeypatch):
    env = make_env()
    env.reset()
    act, others = env.opponent_policy.act, 1 - env.seat_N
    assert set(others) == {0, 1}
    seen = []

    def watched(observations_SO, *rest):
        np.testing.assert_array_equal(
            observations_SO, env.game.observations_N2O[np.arange(MATCHES), others]
        )
        seen.append(observations_SO.copy())
        return act(observations_SO, *rest)

    monkeypatch.setattr(env.opponent_policy, "act", watched)
    rng = np.random.default_rng(0)
    for _ in range(3):
        env.step(random_keys(rng))
    assert len(seen) == 3
    assert all((now != last).any(axis=1).all() for last, now in pairwise(seen))
    rows = [n for n, a in enumerate(env.assignments) if a.opponent.kind.value != "bot"]
    other = env._actions_N2A[rows, 1 - env.seat_N[rows]]
    assert other.sum() > 0


def test_every_match_is_reported_once_and_the_next_one_begins():
    env = make_env(max_frames=40)
    history = play(env, 25)
    ended = sum(int(dones.sum()) for _, _, dones, _ in history)
    results = env.source.results
    assert ended == len(results) == len(env.finished) >= 2 * MATCHES
    assert len({result.match_id for result in results}) == len(results)
    assert {assignment.match_id for assignment in env.assignments}.isdisjoint(
        r.match_id for r in results
    )
    for result, match in zip(results, env.finished, strict=True):
        assert result.outcome in (0.0, 0.5, 1.0)
        seat = match.assignment.learner_seat
        assert match.score == (result.outcome if seat == 0 else 1 - result.outcome)
        assert result.seats[seat].player == "main"


def test_the_score_is_the_learners_whatever_its_seat():
    env = make_env(max_frames=500)
    play(env, 260)
    decided = [match for match in env.finished if match.score != 0.5]
    assert {match.assignment.learner_seat for match in decided} == {0, 1}
    for match in decided:
        stocks_ahead = match.stats["knockouts"] - match.stats["falls"]
        assert (match.score == 1.0) == (stocks_ahead > 0)


def test_another_learner_is_never_replaced_by_this_one():
    plan = assignments(20)
    other = dataclasses.replace(plan[0].seats[plan[0].learner_seat], name="rival")
    env = make_env(
        [with_opponent(dataclasses.replace(plan[0], match_id="elsewhere"), other), *plan]
    )
    env.reset()
    (result,) = env.source.results
    assert (result.match_id, result.failed) == ("elsewhere", True)
    assert "rival" in result.failure
    assert [(seat.player, seat.digest) for seat in result.seats] == [
        (player.name, player.digest) for player in with_opponent(plan[0], other).seats
    ]
    assert [assignment.match_id for assignment in env.assignments] == [
        m.match_id for m in plan[:MATCHES]
    ]


def test_when_no_opponent_can_be_loaded_it_ends_with_a_sentence_and_every_match_is_reported():
    plan = [with_opponent(match, snapshot_player("main@9", 9)) for match in assignments(3 * 256)]
    env = make_env(plan)
    env.opponent_policy.seat = _refused
    with pytest.raises(NothingPlayable, match=r"256 .*main@9.* blob .* damaged"):
        env.reset()
    results = env.source.results
    assert len(results) == 256
    assert all(result.failed for result in results)
    assert [result.match_id for result in results] == [match.match_id for match in plan[:256]]


def test_playable_opponents_in_between_begin_the_count_anew():
    broken = snapshot_player("main@9", 9)
    plan = assignments(MATCHES * 256)
    plan = [
        match if n % 256 == 255 else with_opponent(match, broken) for n, match in enumerate(plan)
    ]
    env = make_env(plan)
    seat = env.opponent_policy.seat
    env.opponent_policy.seat = lambda n, digest, **more: (
        _refused() if digest == broken.digest else seat(n, digest, **more)
    )
    env.reset()
    assert len(env.source.results) == MATCHES * 255
    assert all(assignment is not None for assignment in env.assignments)


def with_opponent(match, player):
    seats = (match.seats[0], player) if match.learner_seat == 0 else (player, match.seats[1])
    return dataclasses.replace(match, seats=seats)


def _refused(*_, **__):
    raise DataCorrupt("blob 12ab is damaged")
