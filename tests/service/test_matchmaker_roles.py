"""χ² of realised shares against the two tables of league roles, written out by hand."""

from __future__ import annotations

from functools import partial

import pytest
from drawn_league import (
    LEARNERS,
    NAMES,
    SURE,
    Beliefs,
    drawn,
    lived,
    mixed,
    opened,
    p_value,
    served,
)


@pytest.fixture(scope="module")
def history(tmp_path_factory):
    return lived(tmp_path_factory.mktemp("history"))


def role_shares(preset, name, beliefs):
    """What each preset's table says of this league, written out by hand."""
    chance = beliefs.chance
    hard, var, capped = (
        partial(beliefs.shares, rule) for rule in ("pfsp_hard", "pfsp_var", "pfsp_capped")
    )
    mains, others = (
        [n for n in NAMES if n.startswith("main")],
        [n for n in NAMES if n.startswith("other")],
    )
    if name == "sweeper":
        return mixed((1.0, "snapshots", (hard if preset == "alphastar-paper" else capped)(NAMES)))
    if (preset, name) == ("alphastar-paper", "hunter"):
        assert chance["main@4000000"] < 0.2 <= chance["other@2000000"]
        return mixed(
            (0.75, "snapshots", var(mains + others)), (0.25, "current", {"other@2000000": 1.0})
        )
    if (preset, name) == ("alphastar-pseudocode", "hunter"):
        assert chance["main@4000000"] <= 0.1 < chance["other@2000000"]
        return mixed((0.5, "easier", var(mains)), (0.5, "current", {"other@2000000": 1.0}))
    if preset == "alphastar-paper":
        lost = [n for n in NAMES if not n.startswith("sweeper") and chance[n] < 0.5]
        assert bool(lost) == (name == "main")
        current = {"main": "other@2000000", "other": "main@4000000"}[name]
        self_share = 0.35 if lost else 0.5
        verified = [(0.15, "forgotten", hard(lost))] if lost else []
        return mixed(
            (0.5, "snapshots", hard(NAMES)),
            (self_share / 2, "self", {name: 1.0}),
            (self_share / 2, "current", {current: 1.0}),
            *verified,
        )
    if name == "main":  # exploited by hunter@1, and other@2 is too strong
        assert chance["hunter@1000000"] < 0.3
        assert chance["other@2000000"] <= 0.3
        return mixed(
            (0.5, "snapshots", hard(NAMES)),
            (0.15, "exploiters", hard(["hunter@1000000", "hunter@2000000"])),
            (0.175, "self", {"main": 1.0}),
            (0.175, "easier", var(others)),
        )
    assert chance["hunter@1000000"] > 0.3  # `other` is not exploited, and has forgotten an `other`
    first, second, third, fourth = (chance[name] for name in mains)
    assert first > second < third > fourth
    assert min(first, second, third) >= 0.7 > chance[others[0]] < chance[others[1]]
    return mixed(
        (0.5, "snapshots", hard(NAMES)),
        (0.075, "forgotten", hard(others)),
        (0.175, "self", {"other": 1.0}),
        (0.25, "current", {"main@4000000": 1.0}),
    )


@pytest.mark.long
@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("preset", ["alphastar-paper", "alphastar-pseudocode"])
def test_shares_of_the_roles(history, tmp_path, preset, name):
    mix = {"snapshots": 5.0, "self": 1.0, "exploiters": 2.0, "based": 2.0}
    with served(history, tmp_path, roles=preset, mixes={"league": mix}) as (server, client):
        among = role_shares(preset, name, Beliefs(server, name))
        wanted = {key: 0.8 * share for key, share in among.items()} | {("based", "based"): 0.2}
        counts = drawn(client, "league", name)
        assert p_value(counts, wanted) > SURE
        client.heartbeat(opened(client, name), 1, 1, "league")
        told = {share.category: share for share in client.status().shares if share.player == name}
        assert told["based"].configured == pytest.approx(0.2)
        for category in {category for category, _ in wanted}:
            share = sum(part for (one, _), part in wanted.items() if one == category)
            assert told[category].configured == pytest.approx(share)
            assert told[category].expected == pytest.approx(share)
            realised = sum(count for (one, _), count in counts.items() if one == category)
            assert told[category].matches == realised
