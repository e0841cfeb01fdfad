"""χ² of realised shares against every sampling rule's own, drawn through a real server over a real
socket.

A rule's shares are computed here by quadrature over each posterior, from the counts of the service.
All seeds are fixed, so a p-value is the same on every run.
"""

from __future__ import annotations

import numpy as np
import pytest
from drawn_league import (
    RULES,
    SNAPSHOTS,
    SURE,
    Beliefs,
    Fixed,
    by_categories,
    drawn,
    lived,
    mixed,
    opened,
    p_value,
    predicted,
    remembered,
    served,
)
from small_league import played

from league.players import Book


@pytest.fixture(scope="module")
def history(tmp_path_factory):
    return lived(tmp_path_factory.mktemp("history"))


@pytest.mark.long
@pytest.mark.parametrize("rule", ["uniform", *RULES])
def test_shares_are_the_rules(history, tmp_path, rule):
    with served(history, tmp_path, within_snapshots=rule) as (server, client):
        wanted = by_categories(lambda names: Beliefs(server).shares(rule, names))
        assert p_value(drawn(client), wanted) > SURE


def test_shares_by_match_quality(history, tmp_path):
    with served(history, tmp_path, within_snapshots="quality") as (server, client):
        view, beta = server.league.view, 25 / 6
        theirs = {r.player.name: r for r in client.ratings(Book.EVAL)}
        older, newer = theirs["main@3000000"], theirs["main@4000000"]
        drift = 10.0 * np.log(4_050_000 / 3_050_000)
        weights = np.array([1 / (older.sigma**2 + drift), 1 / newer.sigma**2])
        mu, variance = np.average([older.mu, newer.mu], weights=weights), 1 / weights.sum()

        def within(names):
            c2 = np.array([2 * beta**2 + variance + theirs[name].sigma ** 2 for name in names])
            gap = np.array([mu - theirs[name].mu for name in names])
            weights = np.sqrt(2 * beta**2 / c2) * np.exp(-(gap**2) / (2 * c2))
            return dict(zip(names, weights / weights.sum(), strict=True))

        assert view.tables
        assert p_value(drawn(client), by_categories(within)) > SURE


def test_shares_of_the_latest(history, tmp_path):
    with served(history, tmp_path, within_snapshots="latest") as (_, client):
        wanted = by_categories(lambda names: {names[-1]: 1.0})
        assert p_value(drawn(client, draws=2048), wanted) > SURE


def test_shares_of_an_adaptive_mix(history, tmp_path):
    """Bots weigh more, the less it is expected to score; all of them together keep their share."""
    written = {"snapshots": 4.0, "constant": 1.0, "based": 2.0, "random": 1.0}
    settings = {"mixes": {"league": written}, "within_snapshots": "uniform", "adaptive": 4.0}
    within = {name: {name: 1.0} for name in written}
    within["snapshots"] = dict.fromkeys(SNAPSHOTS, 1 / len(SNAPSHOTS))

    def shares(weights):
        total = sum(weights.values())
        return mixed(*((weight / total, name, within[name]) for name, weight in weights.items()))

    with served(history, tmp_path, **settings) as (server, client):
        bots = {"constant": 0.9, "based": 0.2, "random": 0.6}
        incarnation, fixed = opened(client), Fixed()
        for match in client.acquire_matches(incarnation, 400, "league"):
            if match.opponent.name in bots:
                won = fixed.wins(match.opponent.name, bots[match.opponent.name])
                outcome = float(won == (match.learner_seat == 0))
                client.report_results(incarnation, [played(match, outcome)])
        recent = remembered(server, "main", tuple(bots))
        grown = {}
        for bot in bots:
            games, points = recent[bot]
            assert games > 10
            chance = (5.0 * predicted(server.league.view, bot) + points) / (5.0 + games)
            grown[bot] = written[bot] * (1 + 4.0 * (1 - chance))
        part = 4.0 / sum(grown.values())
        adapted = written | {bot: weight * part for bot, weight in grown.items()}
        counts = drawn(client, "league")
        assert p_value(counts, shares(adapted)) > SURE
        assert p_value(counts, shares(written)) < 1e-6
