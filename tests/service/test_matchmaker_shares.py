"""χ² of realised shares against every sampling rule's own, drawn through a real server over a real
socket.

A rule's shares are computed here by quadrature over each posterior, from the counts of the service.
All seeds are fixed, so a p-value is the same on every run.
"""

from __future__ import annotations

import json
from itertools import combinations

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
from small_league import played, small_league, snapshot

from league.cli.main import main
from league.players import Book, Pairing
from league.stats.structure.mixtures import nash_of


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


CIRCLE = {  # scores of the first against the second
    ("main@1", "main@2"): 0.95,
    ("main@2", "main@3"): 0.8,
    ("main@3", "main@1"): 0.65,
    **{(f"main@{step}", "main@4"): 0.95 for step in (1, 2, 3)},
}
NASH = {"snapshots": (), "mixes": {"league": {"snapshots": 3, "based": 1}}}
NASH |= {"within_snapshots": "nash"}


def why_of(league, match):
    return json.loads(league.client.match(match.match_id).why_json)


def test_shares_of_the_nash_mixture_also_after_a_restart(tmp_path, capsys):
    """Three in a circle have shares, the fourth has none, and a newcomer has the mean share."""
    with small_league(tmp_path, **NASH) as league:
        client, fixed = league.client, Fixed()
        client.register_players([snapshot(step) for step in (1, 2, 3, 4)])
        (match,) = client.acquire_matches(league.open(), 1, "league")
        assert why_of(league, match)["rules"]["snapshots"] == "pfsp_hard"  # no mixture yet
        evaluator = client.open_incarnation("evaluator-0").number
        for pair in combinations([f"main@{step}" for step in (1, 2, 3, 4)], 2):
            first, second = pair if pair in CIRCLE else pair[::-1]
            pairing = Pairing(player=first, opponent=second, pairs=20, book=Book.EVAL, seed=1)
            for match in client.acquire_pairings(evaluator, [pairing]):
                won = fixed.wins(pair, CIRCLE[first, second]) == (match.seats[0].name == first)
                client.report_results(evaluator, [played(match, float(won))])
        assert league.server.analyse()
        assert not league.server.analyse()  # nothing new since
        shares = nash_of(client.players(), client.payoff(), client.ratings())
        assert set(shares) == {"main@1", "main@2", "main@3"}
        assert max(shares.values()) > 1.5 * min(shares.values())
        wanted = mixed((0.75, "snapshots", shares), (0.25, "based", {"based": 1.0}))
        assert p_value(drawn(client, "league", draws=2048), wanted) > SURE
        client.register_players([snapshot(5)])
        (match,) = client.acquire_matches(opened(client), 1, "league")
        before = why_of(league, match)
        grown = shares | {"main@4": 0.0, "main@5": 0.25}
        given = dict(before["candidates"]["snapshots"])
        assert given == pytest.approx({name: share / 1.25 for name, share in grown.items()})
        assert before["rules"] == {"snapshots": "nash", "based": "pfsp_hard"}
    with small_league(tmp_path, **NASH) as league:
        matches = league.client.acquire_matches(opened(league.client), 40, "league")
        after = why_of(league, matches[0])
        assert after["candidates"] == before["candidates"]
        drawn_by_nash = next(match for match in matches if match.category == "snapshots")
        words = ["--address", league.server.address]
        assert main(["match", drawn_by_nash.match_id, *words]) == 0
        assert "rule nash chose" in capsys.readouterr().out


def test_a_log_whose_analysis_has_no_shares_is_drawn_from_by_the_default_rule(tmp_path):
    for rule in ("pfsp_hard", "nash"):
        with small_league(tmp_path / rule, **NASH | {"within_snapshots": rule}) as league:
            league.client.register_players([snapshot(1), snapshot(2)])
            old = {"matches": 300, "support": ["main@1"]}  # as older versions wrote it
            with league.server.store.write() as tx:
                league.server.league.log(tx, "analysis", "1 snapshots retire last", **old)
            incarnation = league.open()
            league.play(incarnation, 40)
            (match,) = league.client.acquire_matches(incarnation, 1, "league")
            chances = why_of(league, match)["candidates"]["snapshots"]
            if rule == "pfsp_hard":
                wanted = chances
            assert chances == wanted


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
