"""χ² of realised shares against every sampling rule's own, drawn through a real server over a real socket.

What a rule's shares are is computed here anew, by quadrature over each posterior, from the counts that the
service tells. All seeds are fixed, so a p-value is the same on every run.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from contextlib import contextmanager
from functools import partial

import numpy as np
import pytest
from scipy import stats
from small_league import played, small_league, snapshot

from league.client import MatchmakerClient
from league.clock import ManualClock
from league.players import Book, Pairing, Player, PlayerKind, Role
from matchmaker import drawing
from matchmaker.candidates import candidate_of
from matchmaker.server import MatchmakerServer
from matchmaker.settings import MatchmakerSettings

DRAWS = 6 * 1024
SURE = 0.01
LEARNERS = {
    "main": Role.MAIN,
    "other": Role.MAIN,
    "hunter": Role.MAIN_EXPLOITER,
    "sweeper": Role.LEAGUE_EXPLOITER,
}
WINS = {  # true win rates of the learner (row) against snapshots and bots
    "main": {
        "main@1": 0.9, "main@2": 0.35, "main@3": 0.7, "main@4": 0.65, "other@1": 0.8, "other@2": 0.1,
        "hunter@1": 0.15, "hunter@2": 0.8, "sweeper@1": 0.6, "twin@1": 0.3, "twin@2": 0.3,
    },
    "other": {
        "main@1": 0.9, "main@2": 0.8, "main@3": 0.95, "main@4": 0.7, "other@1": 0.6, "other@2": 0.8,
        "hunter@1": 0.6, "hunter@2": 0.7, "sweeper@1": 0.4, "twin@1": 0.7, "twin@2": 0.7,
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
BOTS_BEAT = {"constant": 0.05, "random": 0.1, "based": 0.3}
PAST_MIX = {"past": {"snapshots": 2.0, "exploiters": 1.0}}
PAST_MATCHES = 500


def learner(name):
    return Player(name=name, game="brawl", kind=PlayerKind.LIVE, role=LEARNERS[name])


def past():
    """In order of registration."""
    for step in (1, 2, 3, 4):
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


@pytest.fixture(scope="module")
def history(tmp_path_factory):
    """A league with results in both books, to be copied."""
    folder = tmp_path_factory.mktemp("history")
    mixes = PAST_MIX | {"league": {"self": 1.0}}
    with small_league(
        folder, (), whole=False, mixes=mixes, within_snapshots="uniform", near_copies=0.0
    ) as league:
        client, fixed = league.client, Fixed()
        client.register_players([learner(name) for name in LEARNERS if name != "main"])
        client.register_players(list(past()))
        for name in LEARNERS:
            incarnation = client.open_incarnation(f"learner-{name}", name).number
            matches = client.acquire_matches(incarnation, PAST_MATCHES, "past")
            client.report_results(incarnation, [_outcome(fixed, name, match) for match in matches])
        evaluator = client.open_incarnation("evaluator-0").number
        for player in past():
            against = [*BOTS_BEAT, *(["twin@2"] if player.name == "twin@1" else [])]
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
    if {first, second} == {"twin@1", "twin@2"}:
        return played(match, float(fixed.wins("twins", 0.5) == (first == "twin@1")))
    name, beaten, is_first = (first, second, 1.0) if "@" in first else (second, first, 0.0)
    rate = 1.0 - BOTS_BEAT[beaten] * (2.0 if name.startswith("twin") else 1.0 + 1.5 * WINS["main"][name])
    return played(match, is_first if fixed.wins((name, beaten), rate) else 1.0 - is_first)


@contextmanager
def served(history, folder, **settings):
    """The league of `history` under other settings."""
    shutil.copy(history, folder / "league.db")
    wanted = MatchmakerSettings(**({"near_copies": 0.0, "mixes": PAST_MIX} | settings))
    server = MatchmakerServer(folder / "league.db", settings=wanted, clock=ManualClock())
    with server, MatchmakerClient(server.address, wait_seconds=5) as client:
        yield server, client


def opened(client, name="main"):
    """A learner that goes on from where it was: no result is taken back."""
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


class Beliefs:
    """What the learner's counts and the ratings say of each of its rivals."""

    def __init__(self, server, client, name="main", k=10.0):
        view = server.league.view
        cells = client.payoff(Book.TRAIN, rows=[name])
        counts = {cell.column: cell for cell in cells}
        self.density, self.chance = {}, {}
        for player in past():
            p0 = candidate_of(view.players[player.name], view.players[name], view.tables).predicted
            a = k * p0 + counts[player.name].wins + counts[player.name].draws / 2
            b = k * (1 - p0) + counts[player.name].losses + counts[player.name].draws / 2
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


@pytest.mark.parametrize("rule", ["uniform", *RULES])
def test_shares_are_the_rules(history, tmp_path, rule):
    with served(history, tmp_path, within_snapshots=rule) as (server, client):
        wanted = by_categories(lambda names: Beliefs(server, client).shares(rule, names))
        assert p_value(drawn(client), wanted) > SURE


def test_shares_by_match_quality(history, tmp_path):
    with served(history, tmp_path, within_snapshots="quality") as (server, client):
        view, beta = server.league.view, 25 / 6
        (mine,) = [r for r in client.ratings(Book.TRAIN) if r.player.name == "main"]
        theirs = {r.player.name: r for r in client.ratings(Book.EVAL)}

        def within(names):
            c2 = np.array([2 * beta**2 + mine.sigma**2 + theirs[name].sigma ** 2 for name in names])
            gap = np.array([mine.mu - theirs[name].mu for name in names])
            weights = np.sqrt(2 * beta**2 / c2) * np.exp(-(gap**2) / (2 * c2))
            return dict(zip(names, weights / weights.sum(), strict=True))

        assert view.tables
        assert p_value(drawn(client), by_categories(within)) > SURE


def test_shares_of_the_recent_and_of_the_latest(history, tmp_path):
    def recent(names):
        old = dict.fromkeys(names[:-2], 0.2 / len(names[:-2]))
        return old | dict.fromkeys(names[-2:], 0.4)

    with served(history, tmp_path, within_snapshots="recent", recent_count=2, recent_share=0.8) as (
        _,
        client,
    ):
        assert p_value(drawn(client), by_categories(recent)) > SURE
    with served(history, tmp_path, within_snapshots="latest") as (_, client):
        wanted = by_categories(lambda names: {names[-1]: 1.0})
        assert p_value(drawn(client, draws=2048), wanted) > SURE


def test_shares_of_a_mix_with_empty_categories(history, tmp_path):
    mix = {"snapshots": 7.0, "constant": 0.5, "based": 1.5, "random": 1.0, "clone": 4.0, "reference": 2.0}
    settings = {"mixes": {"league": mix}, "within_snapshots": "uniform"}
    with served(history, tmp_path, **settings) as (_, client):
        parts = {"constant": 0.05, "based": 0.15, "random": 0.1}
        bots = [(share, name, {name: 1.0}) for name, share in parts.items()]
        wanted = mixed((0.7, "snapshots", dict.fromkeys(SNAPSHOTS, 1 / len(SNAPSHOTS))), *bots)
        assert p_value(drawn(client, "league"), wanted) > SURE


def test_near_copies_share_the_weight_of_one(history, tmp_path):
    settings = {"within_snapshots": "pfsp_hard", "near_copies": 0.08}
    with served(history, tmp_path, **settings) as (server, client):
        alone = Beliefs(server, client)
        apart = by_categories(lambda names: alone.shares("pfsp_hard", names))
        assert p_value(drawn(client, draws=1024), apart) > SURE  # until they are looked for
        assert server.find_copies()
        assert not server.find_copies()  # nothing new since
        with server.store.read() as reader:
            (event,) = reader.events_of("clusters")
        assert json.loads(event.data_json)["clusters"] == [["twin@1", "twin@2"]]

        def within(names):
            shares = alone.shares("pfsp_hard", names)
            halved = {name: share / (2 if name.startswith("twin") else 1) for name, share in shares.items()}
            return {name: share / sum(halved.values()) for name, share in halved.items()}

        counts = drawn(client)
        assert p_value(counts, by_categories(within)) > SURE
        assert p_value(counts, apart) < 1e-6
        match = client.acquire_matches(opened(client), 1, "past")[0]
        assert json.loads(client.match(match.match_id).why_json)["clusters"] == event.position
    with served(tmp_path / "league.db", _made(tmp_path / "again"), **settings) as (server, _):
        assert server.league.view.clustering.cluster == {"twin@1": 0, "twin@2": 0}


def _made(folder):
    folder.mkdir()
    return folder


def role_shares(preset, name, beliefs):
    """What each preset's table says of this league, written out by hand."""
    chance = beliefs.chance
    hard, var, capped = (partial(beliefs.shares, rule) for rule in ("pfsp_hard", "pfsp_var", "pfsp_capped"))
    mains, others = [n for n in NAMES if n.startswith("main")], [n for n in NAMES if n.startswith("other")]
    if name == "sweeper":
        return mixed((1.0, "snapshots", (hard if preset == "alphastar-paper" else capped)(NAMES)))
    if (preset, name) == ("alphastar-paper", "hunter"):
        assert chance["main@4"] < 0.2 <= chance["other@2"]
        return mixed((0.75, "snapshots", var(mains + others)), (0.25, "current", {"other@2": 1.0}))
    if (preset, name) == ("alphastar-pseudocode", "hunter"):
        assert chance["main@4"] <= 0.1 < chance["other@2"]
        return mixed((0.5, "easier", var(mains)), (0.5, "current", {"other@2": 1.0}))
    if preset == "alphastar-paper":
        lost = [n for n in NAMES if not n.startswith("sweeper") and chance[n] < 0.5]
        assert bool(lost) == (name == "main")
        current = {"main": "other@2", "other": "main@4"}[name]
        self_share = 0.35 if lost else 0.5
        verified = [(0.15, "forgotten", hard(lost))] if lost else []
        return mixed(
            (0.5, "snapshots", hard(NAMES)),
            (self_share / 2, "self", {name: 1.0}),
            (self_share / 2, "current", {current: 1.0}),
            *verified,
        )
    if name == "main":  # exploited by hunter@1, and other@2 is too strong
        assert chance["hunter@1"] < 0.3
        assert chance["other@2"] <= 0.3
        return mixed(
            (0.5, "snapshots", hard(NAMES)),
            (0.15, "exploiters", hard(["hunter@1", "hunter@2"])),
            (0.175, "self", {"main": 1.0}),
            (0.175, "easier", var(others)),
        )
    assert chance["hunter@1"] > 0.3  # `other` is not exploited, and has forgotten other@1
    assert chance["main@1"] > chance["main@2"] < chance["main@3"] > chance["main@4"]
    assert min(chance[n] for n in mains[:3]) >= 0.7 > chance["other@1"] < chance["other@2"]
    return mixed(
        (0.5, "snapshots", hard(NAMES)),
        (0.075, "forgotten", hard(others)),
        (0.175, "self", {"other": 1.0}),
        (0.25, "current", {"main@4": 1.0}),
    )


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("preset", ["alphastar-paper", "alphastar-pseudocode"])
def test_shares_of_the_roles(history, tmp_path, preset, name):
    mix = {"snapshots": 5.0, "self": 1.0, "exploiters": 2.0, "based": 2.0}
    with served(history, tmp_path, roles=preset, mixes={"league": mix}) as (server, client):
        among = role_shares(preset, name, Beliefs(server, client, name))
        wanted = {key: 0.8 * share for key, share in among.items()} | {("based", "based"): 0.2}
        counts = drawn(client, "league", name)
        assert p_value(counts, wanted) > SURE
        client.heartbeat(opened(client, name), 1, 1, "league")
        told = {share.category: share for share in client.status().shares}
        assert told["based"].configured == pytest.approx(0.2)
        for category in {category for category, _ in wanted}:
            share = sum(part for (one, _), part in wanted.items() if one == category)
            assert told[category].configured == pytest.approx(share)
            realised = sum(count for (one, _), count in counts.items() if one == category)
            assert told[category].matches == realised


@pytest.mark.parametrize(
    "wrong",
    [lambda weight: weight**0.9, lambda weight: weight + 0.02],
    ids=["a power too small", "a floor that is none of the rule's"],
)
def test_slightly_wrong_weights_are_noticed(history, tmp_path, monkeypatch, wrong):
    right = drawing.weights_of
    monkeypatch.setattr(drawing, "weights_of", lambda *of: [wrong(weight) for weight in right(*of)])
    with served(history, tmp_path, within_snapshots="pfsp_hard") as (server, client):
        wanted = by_categories(lambda names: Beliefs(server, client).shares("pfsp_hard", names))
        assert p_value(drawn(client), wanted) < SURE / 10


def test_everybody_beaten_is_drawn_alike_and_not_by_zero(tmp_path):
    """(1 − p)² of players that are always beaten vanishes; dividing by its sum has ended other leagues."""
    settings = {"within_snapshots": "pfsp_hard", "pfsp_power": 16.0, "prior_games": 0.001, "near_copies": 0.0}
    mixes = {"past": {"snapshots": 1.0}}
    with small_league(tmp_path, (1, 2, 3), mixes=mixes, **settings) as league:
        incarnation = league.open()
        league.play(incarnation, 300, mix="past")
        matches = league.client.acquire_matches(incarnation, 999, "past")
        counts = Counter((match.category, match.opponent.name) for match in matches)
        assert p_value(counts, {("snapshots", f"main@{step}"): 1 / 3 for step in (1, 2, 3)}) > SURE
        why = json.loads(league.client.match(matches[0].match_id).why_json)
        assert sum(weight for _, weight in why["candidates"]["snapshots"]) < 1e-10


def test_a_newcomer_takes_what_the_ratings_say_and_not_two_thirds(tmp_path):
    """50 opponents beaten at .95, and one that the learner has not met and is predicted to beat at .8."""
    mixes = {"past": {"snapshots": 1.0}}
    with small_league(tmp_path, range(1, 51), mixes=mixes, near_copies=0.0) as league:
        client, fixed = league.client, Fixed()
        incarnation = league.open()
        for _ in range(5):  # drawn anew each time: who is met less is drawn more
            matches = client.acquire_matches(incarnation, 1000, "past")
            client.report_results(incarnation, [
                played(m, 1.0 if fixed.wins(m.opponent.name, 0.95) == (m.learner_seat == 0) else 0.0)
                for m in matches
            ])  # fmt: skip
        client.register_players([snapshot(99)])
        _rate(league, "main@99", 0.8)
        counts = Counter(m.opponent.name for m in client.acquire_matches(incarnation, 1024, "past"))
        cells = client.payoff(Book.TRAIN, rows=["main"])
        flat = [(1 - cell.wins / cell.games) ** 2 for cell in cells]
    assert len(cells) == 50
    assert 0.25 / (0.25 + sum(flat)) == pytest.approx(0.67, abs=0.02)
    assert counts["main@99"] / 1024 == pytest.approx(0.27, abs=0.05)


def _rate(league, name, chance):
    """Clean matches against a bot, until the learner is predicted to win so often."""
    client, view = league.client, league.server.league.view
    evaluator = client.open_incarnation("evaluator-0").number
    for seed in range(200):
        predicted = candidate_of(view.players[name], view.players["main"], view.tables).predicted
        if view.tables[Book.EVAL].has(name) and abs(predicted - chance) < 0.02:
            return
        pairing = Pairing(player=name, opponent="based", pairs=1, book=Book.EVAL, seed=seed)
        won = predicted > chance
        pair = client.acquire_pairings(evaluator, [pairing])
        client.report_results(evaluator, [played(m, float((m.seats[0].name == name) == won)) for m in pair])
    raise AssertionError(f"{name} could not be rated so: {predicted}")
