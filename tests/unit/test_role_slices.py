"""What a learner's role goes by, and what becomes of a mix under role rules."""

import json
from dataclasses import replace

import pytest

from league.players import Book, Event, Player, PlayerKind, PlayerState, Role
from league.stats.ratings import RatingTable
from matchmaker.sampling.candidates import (
    Pool,
    configured_shares,
    learner_of,
    situation_of,
    slices_of,
)
from matchmaker.settings import MatchmakerSettings
from matchmaker.state.analysis import Analysis
from matchmaker.state.exploiters import ExploiterState

MIX = {"league": {"snapshots": 3.0, "self": 1.0, "based": 1.0}, "bots": {"based": 1.0}}


def live(name, role=Role.MAIN, state=PlayerState.ACTIVE):
    return Player(name=name, game="brawl", kind=PlayerKind.LIVE, role=role, state=state)


def snapshot(name, role=Role.MAIN, **changes):
    return replace(Player(name=name, game="brawl", kind=PlayerKind.SNAPSHOT, role=role), **changes)


LEAGUE = {
    player.name: player
    for player in (
        Player(name="based", game="brawl", kind=PlayerKind.BOT),
        live("main"),
        live("other"),
        live("gone", state=PlayerState.RETIRED),
        live("young"),
        live("hunter", Role.MAIN_EXPLOITER),
        snapshot("main@1"),
        snapshot("gone@1"),
        snapshot("other@1"),
        snapshot("other@2", state=PlayerState.RETIRED),
        snapshot("other.7@2"),
        snapshot("other@3", held_out=True),
        snapshot("copied@0", Role.CLONE),
        snapshot("hunter@1", Role.MAIN_EXPLOITER),
    )
}


def tables(*games):
    found = {book: RatingTable() for book in Book}
    for game in games:
        found[Book.TRAIN].fold(*game)
    return found


def situation(name, *games):
    return situation_of(Pool(MatchmakerSettings(), LEAGUE[name], LEAGUE, tables(*games)))


def test_the_mains_are_itself_and_the_newest_snapshots_of_the_others():
    assert [(main.name, main.parent) for main in situation("main").mains] == [
        ("main", "main"),
        ("other.7@2", "other"),
    ]
    assert [main.name for main in situation("hunter").mains] == ["main@1", "other.7@2"]


def test_the_past_is_everybodys_active_snapshots_in_order():
    assert [(one.name, one.parent) for one in situation("main").past] == [
        ("main@1", "main"),
        ("gone@1", "gone"),
        ("other@1", "other"),
        ("other.7@2", "other"),
        ("hunter@1", "hunter"),
    ]


def test_chances_are_posterior_means_of_the_learners_own_matches():
    games = [("main", "other@1", 1.0)] * 30 + [("hunter", "other@1", 0.0)] * 50
    chances = {one.name: one.chance for one in situation("main", *games).past}
    assert (5 + 30) / 40 < chances["other@1"] < 1.0
    assert situation("main", *games).mains[0].chance == 0.5
    against = {one.name: one.chance for one in situation("hunter", *games).past}
    assert against["other@1"] < 10 / 60


@pytest.mark.parametrize(
    ("name", "learner"),
    [("main@5", "main"), ("main.3@5", "main"), ("main.b.3@5", "main.b"), ("x@1", "x")],
)
def test_whose_snapshot_it_is(name, learner):
    players = {one: live(one) for one in ("main", "main.b")}
    assert learner_of(snapshot(name), players) == learner


def slices(name, mix, **settings):
    wanted = MatchmakerSettings(mixes=MIX, **settings)
    return slices_of(Pool(wanted, LEAGUE[name], LEAGUE, tables()), mix)


def test_the_categories_of_learners_go_to_the_branches_and_those_of_bots_stay():
    found = slices("main", "league", roles="alphastar-paper")
    assert sum(one.weight for one in found) == pytest.approx(1.0)
    assert {one.category: one.rule for one in found} == {
        "based": "pfsp_hard",
        "snapshots": "pfsp_hard",
        "self": "uniform",
        "current": "uniform",
    }
    assert next(one.weight for one in found if one.category == "based") == pytest.approx(0.2)
    assert next(one.weight for one in found if one.category == "snapshots") == pytest.approx(0.4)


def test_a_mix_of_bots_alone_stays_so():
    (only,) = slices("main", "bots", roles="alphastar-pseudocode")
    assert (only.category, only.weight) == ("based", 1.0)


def test_players_without_a_role_draw_by_the_mix():
    plain = replace(LEAGUE["main"], role=Role.NONE)
    wanted = MatchmakerSettings(mixes=MIX, roles="alphastar-paper")
    found = slices_of(Pool(wanted, plain, LEAGUE, tables()), "league")
    assert {one.category: one.weight for one in found} == pytest.approx(
        {"snapshots": 0.6, "self": 0.2, "based": 0.2}
    )


def test_an_exploiter_without_any_main_plays_itself_meanwhile():
    players = {name: LEAGUE[name] for name in ("based", "hunter")}
    wanted = MatchmakerSettings(mixes={"league": {"snapshots": 1.0}}, roles="alphastar-paper")
    (only,) = slices_of(Pool(wanted, LEAGUE["hunter"], players, tables()), "league")
    assert (only.category, [one.name for one in only.players]) == ("self", ["hunter"])


def test_configured_shares_hold_what_is_empty_too():
    mixes = {"league": {"snapshots": 3.0, "clone": 1.0, "reference": 4.0}}
    pool = Pool(MatchmakerSettings(mixes=mixes), LEAGUE["main"], LEAGUE, tables())
    found = configured_shares(pool, "league")
    assert found == {"snapshots": 0.375, "clone": 0.125, "reference": 0.5}
    assert configured_shares(pool, "old") == {}


def test_only_a_category_with_a_share_of_the_nash_mixture_is_drawn_by_it():
    """An exploiter must beat each of its victims, whatever their shares are."""
    mixes = {"league": dict.fromkeys(("snapshots", "exploiters", "based", "self", "victims"), 1.0)}
    data = {"learner": "main", "number": 1, "player": "main", "role": "main_exploiter"}
    data |= {"victims": ["main@1", "other@1"], "since_step": 0, "parent": ""}
    begun = Event(position=1, at=0.0, kind="generation", text="", data_json=json.dumps(data))
    pool = Pool(
        MatchmakerSettings(mixes=mixes, within_snapshots="nash"),
        LEAGUE["main"],
        LEAGUE,
        tables(),
        ExploiterState([begun]),
        Analysis(shares={"main@1": 1.0, "hunter@1": 0.0}),
    )
    assert {one.category: one.rule for one in slices_of(pool, "league")} == {
        "snapshots": "nash",
        "exploiters": "pfsp_hard",
        "based": "pfsp_hard",
        "self": "pfsp_hard",
        "victims": "pfsp_hard",
    }
