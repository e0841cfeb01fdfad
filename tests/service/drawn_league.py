"""A league with a past, whose opponents are drawn through a real server, and its shares by
quadrature.
"""

from __future__ import annotations

import shutil
from collections import Counter, defaultdict
from contextlib import contextmanager

import numpy as np
import pytest
from scipy import stats
from small_league import played, small_league, snapshot

from league.clock import ManualClock
from league.players import Book, Pairing, Player, PlayerKind, Role
from league.rpc.client import MatchmakerClient
from matchmaker.api.server import MatchmakerServer
from matchmaker.sampling.candidates import Pool, candidates_of
from matchmaker.settings import MatchmakerSettings
from matchmaker.tools.fsck import wrong_draws

DRAWS = 6 * 1024
SURE = 0.005  # of some twenty p-values one is often below .01
LEARNERS = {
    "main": Role.MAIN,
    "other": Role.MAIN,
    "hunter": Role.MAIN_EXPLOITER,
    "sweeper": Role.LEAGUE_EXPLOITER,
}
_WINS = {  # true win rates of the learner (row) against snapshots and bots
    "main": {
        "main@1": 0.9, "main@2": 0.35, "main@3": 0.7, "main@4": 0.65, "other@1": 0.8,
        "other@2": 0.1, "hunter@1": 0.15, "hunter@2": 0.8, "sweeper@1": 0.6,
        "twin@1": 0.3, "twin@2": 0.3,
    },
    "other": {
        "main@1": 0.9, "main@2": 0.85, "main@3": 0.95, "main@4": 0.7, "other@1": 0.6,
        "other@2": 0.8, "hunter@1": 0.6, "hunter@2": 0.7, "sweeper@1": 0.4, "twin@1": 0.7,
        "twin@2": 0.7,
    },
    "hunter": {
        "main@1": 0.7, "main@2": 0.5, "main@3": 0.4, "main@4": 0.0, "other@1": 0.5, "other@2": 0.4,
        "hunter@1": 0.5, "hunter@2": 0.6, "sweeper@1": 0.6, "twin@1": 0.3, "twin@2": 0.3,
    },
    "sweeper": {
        "main@1": 0.9, "main@2": 0.6, "main@3": 0.4, "main@4": 0.2, "other@1": 0.5, "other@2": 0.4,
        "hunter@1": 0.8, "hunter@2": 0.3, "sweeper@1": 0.5, "twin@1": 0.4, "twin@2": 0.4,
    },
}  # fmt: skip
WINS = {
    name: {f"{rival}000000": rate for rival, rate in rates.items()} for name, rates in _WINS.items()
}
"""Steps in millions: too far apart for neighbours to say much about each other."""
BOTS_BEAT = {"constant": 0.05, "random": 0.1, "based": 0.3}
PAST_MIX = {"past": {"snapshots": 2.0, "exploiters": 1.0}}
PAST_MATCHES = 500


def learner(name):
    return Player(name=name, game="brawl", kind=PlayerKind.LIVE, role=LEARNERS[name])


def past():
    """In order of registration."""
    for step in (1_000_000, 2_000_000, 3_000_000, 4_000_000):
        for name in ("main", "other", "hunter", "sweeper", "twin"):
            if f"{name}@{step}" in WINS["main"]:
                role = LEARNERS.get(name, Role.NONE)
                parent = name if name in LEARNERS else ""
                yield snapshot(step, name, role=role, parent=parent)


class Fixed:
    """Outcomes without chance: of n matches of one pair a share is won, to the nearest match."""

    def __init__(self):
        self.met = Counter()

    def wins(self, pair, rate):
        self.met[pair] += 1
        return int(self.met[pair] * rate + 0.5) > int((self.met[pair] - 1) * rate + 0.5)


def lived(folder):
    """The log of a league with results in both books, to be copied."""
    mixes = PAST_MIX | {"league": {"self": 1.0}}
    with small_league(folder, (), whole=False, mixes=mixes, within_snapshots="uniform") as league:
        client, fixed = league.client, Fixed()
        client.register_players([learner(name) for name in LEARNERS if name != "main"])
        client.register_players(list(past()))
        for name in LEARNERS:
            incarnation = client.open_incarnation(f"learner-{name}", name).number
            matches = client.acquire_matches(incarnation, PAST_MATCHES, "past")
            client.report_results(incarnation, [_outcome(fixed, name, match) for match in matches])
        evaluator = client.open_incarnation("evaluator-0").number
        for player in past():
            against = [*BOTS_BEAT, *(["twin@2000000"] if player.name == "twin@1000000" else [])]
            pairings = [
                Pairing(player=player.name, opponent=name, pairs=30, book=Book.EVAL, seed=1)
                for name in against
            ]
            matches = client.acquire_pairings(evaluator, pairings)
            client.report_results(evaluator, [_clean(fixed, match) for match in matches])
    return folder / "league.db"


def _outcome(fixed, name, match):
    won = fixed.wins((name, match.opponent.name), WINS[name][match.opponent.name])
    return played(match, 1.0 if won == (match.learner_seat == 0) else 0.0)


def _clean(fixed, match):
    """The twins do alike against every bot; the others each in their own way."""
    first, second = (seat.name for seat in match.seats)
    if {first, second} == {"twin@1000000", "twin@2000000"}:
        return played(match, float(fixed.wins("twins", 0.5) == (first == "twin@1000000")))
    name, beaten, is_first = (first, second, 1.0) if "@" in first else (second, first, 0.0)
    rate = 1.0 - BOTS_BEAT[beaten] * (
        2.0 if name.startswith("twin") else 1.0 + 1.5 * WINS["main"][name]
    )
    return played(match, is_first if fixed.wins((name, beaten), rate) else 1.0 - is_first)


@contextmanager
def served(history, folder, *, whole=True, **settings):
    """The league of `history` under other settings; whatever they are, its log gives the weights
    drawn by.
    """
    shutil.copy(history, folder / "league.db")
    wanted = MatchmakerSettings(**({"mixes": PAST_MIX} | settings))
    server = MatchmakerServer(folder / "league.db", settings=wanted, clock=ManualClock())
    with server, MatchmakerClient(server.address, wait_seconds=5) as client:
        yield server, client
        with server.store.read() as reader:
            assert not whole or list(wrong_draws(reader)) == []


def opened(client, name="main"):
    """Opens an incarnation that continues: no result is taken back."""
    return client.open_incarnation(f"learner-{name}", name, 0, client.status().log_position).number


def drawn(client, mix="past", name="main", draws=DRAWS):
    """How often each (category, opponent) came."""
    incarnation = opened(client, name)
    counts = Counter()
    for start in range(0, draws, 1024):
        client.release_matches(incarnation)
        matches = client.acquire_matches(incarnation, min(1024, draws - start), mix)
        counts.update((match.category, match.opponent.name) for match in matches)
    return counts


def p_value(counts, wanted):
    """Of the counts, if `wanted` were the shares; nothing may come that has none."""
    assert sum(wanted.values()) == pytest.approx(1.0)
    assert not {key for key in counts if not wanted.get(key)}
    cells = [key for key, share in wanted.items() if share]
    if len(cells) == 1:
        return 1.0
    expected = np.array([wanted[key] for key in cells]) * sum(counts.values())
    assert expected.min() > 3
    return stats.chisquare([counts[key] for key in cells], expected).pvalue


GRID = (np.arange(20_000) + 0.5) / 20_000
RULES = {
    "pfsp_hard": (1 - GRID) ** 2,
    "pfsp_var": GRID * (1 - GRID),
    "pfsp_linear": 1 - GRID,
    "pfsp_capped": np.minimum(0.5, 1 - GRID),
}


def predicted(view, opponent, learner="main"):
    """The win probability that the ratings predict."""
    pool = Pool(MatchmakerSettings(), view.players[learner], view.players, view.tables)
    return float(candidates_of([view.players[opponent]], pool).predicted_N[0])


def remembered(server, learner, names):
    """A learner's matches against each rival and their points, after matches at step 0: each
    counts for .99 of the next one, and neighbours share."""
    scores = defaultdict(list)
    with server.store.read() as reader:
        for row in reader.results():
            if row.book is Book.TRAIN and learner in (row.seat0, row.seat1):
                is_first = row.seat0 == learner
                outcome = row.outcome if is_first else 1.0 - row.outcome
                scores[row.seat1 if is_first else row.seat0].append(outcome)
    own = {}
    for name, found in scores.items():
        weights = 0.99 ** np.arange(len(found))[::-1]
        own[name] = np.array([weights.sum(), weights @ np.array(found)])
    sums = {}
    for name in names:
        (lineage, _, step), shared = name.partition("@"), np.zeros(2)
        for other in own.keys() - {name}:
            if step and other.startswith(f"{lineage}@"):
                gap = abs(int(other.partition("@")[2]) - int(step))
                shared += own[other] * np.exp(-gap / 2e5)
        sums[name] = own[name] + shared * min(1.0, 30.0 / max(shared[0], 1e-9))
    return sums


class Beliefs:
    """What the learner's recent matches and the ratings say of each of its rivals."""

    def __init__(self, server, name="main", k=5.0):
        view = server.league.view
        recent = remembered(server, name, NAMES)
        self.density, self.chance = {}, {}
        for player in past():
            p0 = predicted(view, player.name, name)
            games, points = recent[player.name]
            a, b = k * p0 + points, k * (1 - p0) + games - points
            self.density[player.name] = stats.beta(a, b).pdf(GRID)
            self.chance[player.name] = a / (a + b)

    def shares(self, rule, names):
        if rule == "uniform":
            weights = [1.0] * len(names)
        else:
            weights = [(RULES[rule] * self.density[n]).sum() / self.density[n].sum() for n in names]
        return dict(zip(names, np.array(weights) / np.sum(weights), strict=True))


def mixed(*parts):
    """Shares of (category, name) from (share, category, {name: share})."""
    found = Counter()
    for share, category, within in parts:
        for name, part in within.items():
            found[category, name] += share * part
    return dict(found)


NAMES = [player.name for player in past()]
SNAPSHOTS = [player.name for player in past() if player.role in (Role.NONE, Role.MAIN)]
EXPLOITERS = [player.name for player in past() if player.role not in (Role.NONE, Role.MAIN)]


def by_categories(within):
    """The mix `past` with a rule's shares inside its categories."""
    return mixed((2 / 3, "snapshots", within(SNAPSHOTS)), (1 / 3, "exploiters", within(EXPLOITERS)))
