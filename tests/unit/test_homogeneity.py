"""The evidence against a worker is an e-value, and says who differs and in what."""

import itertools
import math

import numpy as np
import pytest

from league.stats.homogeneity import CERTAIN, Homogeneity, PairOfMatches, found


def compared(results):
    """Suspects after (worker, players, points, draws, failures)."""
    watch = Homogeneity()
    for worker, players, *of in results:
        watch.add(worker, "eval", *players, PairOfMatches(*of))
    return watch.suspects()


@pytest.mark.parametrize("win", [0.1, 0.5, 0.8])
def test_between_equals_an_evidence_is_expected_as_much_as_it_is_unlikely(win):
    """Over all that three pairs of matches by each of two workers may give; however they come."""
    expected = 0.0
    chances = {0.0: (1 - win) ** 2, 1.0: 2 * win * (1 - win), 2.0: win**2}
    for points in itertools.product(chances, repeat=6):
        workers = "aabbab"
        suspects = compared(
            (worker, ("x", "y"), one, 0, 0) for worker, one in zip(workers, points, strict=True)
        )
        chance = math.prod(chances[one] for one in points)
        expected += chance * math.exp(suspects[0].evidence)
        assert suspects[0].evidence == pytest.approx(suspects[1].evidence), "two can't tell"
    assert 0.8 < expected <= 1.0 + 1e-9


def league(worker_of, count, spoilt, seed=3):
    """Matches of four equal players, of which `spoilt` loses always with worker c."""
    rng = np.random.default_rng(seed)
    pairs = list(itertools.combinations("wxyz", 2))
    for place in range(count):
        worker, players = worker_of(place), pairs[place % len(pairs)]
        points = float(rng.integers(3))
        if worker == "c" and spoilt in players:
            points = 0.0 if players[0] == spoilt else 2.0
        yield worker, players, points, 0, 0


def test_the_worker_with_a_spoilt_player_is_found_and_the_player_named():
    suspects = compared(league(lambda place: "abc"[place // 6 % 3], 900, "x"))
    guilty, torn = found(suspects)
    assert (guilty.worker, guilty.player, torn) == ("c", "x", [])
    assert (guilty.share, guilty.others > 0.4) == (0.0, True)
    assert "x earns 0%" in guilty.words
    assert found(compared(league(lambda place: "abc"[place // 6 % 3], 900, "nobody"))) == (None, [])


def test_of_two_workers_it_is_said_that_they_differ_and_not_which_one_is_wrong():
    guilty, torn = found(compared(league(lambda place: "ac"[place // 6 % 2], 600, "x")))
    assert guilty is None
    assert sorted(one.worker for one in torn) == ["a", "c"]


def test_failures_and_draws_are_compared_over_all_players():
    pairs = list(itertools.combinations("uvwxyz", 2))
    for of_wrong in ((1.0, 0, 1), (1.0, 2, 0)):
        results = []
        for place in range(120):
            worker = "abc"[place // 15 % 3]
            results.append(
                (worker, pairs[place % 15], *(of_wrong if worker == "c" else (1.0, 0, 0)))
            )
        guilty, _ = found(compared(results))
        assert guilty is not None
        assert guilty.worker == "c"
        assert guilty.evidence > CERTAIN
