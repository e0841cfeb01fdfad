"""AlphaStar's roles: the opponents of each, when a snapshot is due, and when it starts again."""

import pytest

from league.players import Role
from matchmaker.sampling.roles import (
    PAPER,
    PSEUDOCODE,
    Rival,
    Situation,
    branches,
    resets_after_snapshot,
    snapshot_due,
    without_monotonic_suffix,
)

MAIN, HUNTER, SWEEPER = Role.MAIN, Role.MAIN_EXPLOITER, Role.LEAGUE_EXPLOITER
PRESETS = (PAPER, PSEUDOCODE)


def rival(name, chance, role=MAIN):
    return Rival(name=name, parent=name.partition("@")[0], role=role, chance=chance)


def situation(learner, role, mains, past):
    return Situation(learner=learner, role=role, mains=tuple(mains), past=tuple(past))


def shares(preset, case):
    """Label -> share and names, of branches of one label together."""
    made, found = branches(preset, case), {}
    assert sum(branch.share for branch in made) == pytest.approx(1.0)
    for branch in made:
        share, names, rule = found.get(branch.label, (0.0, (), branch.rule))
        assert rule == branch.rule
        found[branch.label] = (
            share + branch.share,
            tuple(dict.fromkeys((*names, *branch.names))),
            rule,
        )
    return found


def assert_shares(found, wanted):
    assert found == {
        label: (pytest.approx(share), names, rule) for label, (share, names, rule) in wanted.items()
    }


ITSELF = rival("main", 0.5)
HARD, VAR = "pfsp_hard", "pfsp_var"


def main_case(past, mains=(ITSELF,)):
    return situation("main", MAIN, mains, past)


def past_of(*chances, others=()):
    mains = [rival(f"main@{step}", chance) for step, chance in enumerate(chances, start=1)]
    return [*mains, *others]


BEATEN, FORGOTTEN = past_of(0.9, 0.8, 0.75), past_of(0.4, 0.8, 0.6)
STRONG_HUNTER, WEAK_HUNTER = rival("hunter@1", 0.2, HUNTER), rival("hunter@1", 0.9, HUNTER)
STRONG_SWEEPER = rival("sweeper@1", 0.1, SWEEPER)


@pytest.mark.parametrize(
    ("preset", "past", "label", "names"),
    [
        (PAPER, BEATEN, "", ()),
        (PSEUDOCODE, BEATEN, "", ()),
        (PAPER, FORGOTTEN, "forgotten", ("main@1",)),
        # the suffix that only falls (.8, .6) is left out
        (PSEUDOCODE, FORGOTTEN, "forgotten", ("main@1", "main@2")),
        (PAPER, [*BEATEN, STRONG_HUNTER], "forgotten", ("hunter@1",)),
        # exploiters come before forgotten mains
        (PSEUDOCODE, [*FORGOTTEN, STRONG_HUNTER], "exploiters", ("hunter@1",)),
        (PAPER, [*BEATEN, WEAK_HUNTER], "", ()),
        (PSEUDOCODE, [*BEATEN, WEAK_HUNTER], "", ()),
        # a league exploiter's snapshot is past, and neither a main nor a main exploiter
        (PAPER, [*BEATEN, STRONG_SWEEPER], "", ()),
        (PAPER, [], "", ()),
        (PSEUDOCODE, [], "", ()),
    ],
)
def test_whom_a_main_plays(preset, past, label, names):
    """Half of all past, and 15 % of what `label` names, else also against itself."""
    wanted = {
        "snapshots": (0.5, tuple(one.name for one in past), HARD),
        "self": (0.35 if label else 0.5, ("main",), "uniform"),
    }
    if label:
        wanted[label] = (0.15, names, HARD)
    assert_shares(shares(preset, main_case(past)), wanted)


def test_forgotten_is_what_is_no_longer_beaten_or_beaten_below_70_percent():
    past = [rival("main@1", 0.6), rival("main@2", 0.65)]
    assert "forgotten" not in shares(PAPER, main_case(past))
    assert shares(PSEUDOCODE, main_case(past))["forgotten"][1] == ("main@1", "main@2")


def test_with_two_mains_self_play_is_shared_out():
    other = rival("other@9", 0.45)
    past = [*BEATEN, other]
    paper = shares(PAPER, main_case(past, (ITSELF, other)))
    assert paper["self"] == (pytest.approx(0.175), ("main",), "uniform")
    assert paper["current"] == (pytest.approx(0.175), ("other@9",), "uniform")
    assert paper["forgotten"] == (0.15, ("other@9",), HARD)


def test_the_pseudocodes_main_plays_the_past_of_a_main_that_is_too_strong():
    past = [*BEATEN, rival("other@1", 0.8), rival("other@9", 0.3)]
    found = shares(PSEUDOCODE, main_case(past, (ITSELF, past[-1])))
    assert found["self"] == (pytest.approx(0.25), ("main",), "uniform")
    assert found["easier"] == (pytest.approx(0.25), ("other@1", "other@9"), VAR)
    barely = [*past[:-1], rival("other@9", 0.301)]
    found = shares(PSEUDOCODE, main_case(barely, (ITSELF, barely[-1])))
    assert found["current"] == (pytest.approx(0.25), ("other@9",), "uniform")


@pytest.mark.parametrize(
    ("preset", "chance", "wanted"),
    [
        (
            PAPER,
            0.20,
            {
                "snapshots": (0.5, ("main@1", "main@9"), VAR),
                "current": (0.5, ("main@9",), "uniform"),
            },
        ),
        (PAPER, 0.19, {"snapshots": (1.0, ("main@1", "main@9"), VAR)}),
        (PSEUDOCODE, 0.101, {"current": (1.0, ("main@9",), "uniform")}),
        (PSEUDOCODE, 0.1, {"easier": (1.0, ("main@1", "main@9"), VAR)}),
    ],
)
def test_whom_a_main_exploiter_plays(preset, chance, wanted):
    newest = rival("main@9", chance)
    past = [rival("main@1", 0.5), newest, rival("hunter@1", 0.5, HUNTER)]
    assert_shares(shares(preset, situation("hunter", HUNTER, [newest], past)), wanted)


@pytest.mark.parametrize(("preset", "rule"), [(PAPER, HARD), (PSEUDOCODE, "pfsp_capped")])
def test_a_league_exploiter_plays_everybodys_past(preset, rule):
    past = [*BEATEN, STRONG_HUNTER, rival("sweeper@1", 0.5, SWEEPER)]
    case = situation("sweeper", SWEEPER, [BEATEN[-1]], past)
    assert shares(preset, case) == {"snapshots": (1.0, tuple(one.name for one in past), rule)}


@pytest.mark.parametrize(
    ("chances", "kept"),
    [
        ([], 0),
        ([0.5], 0),
        ([0.9, 0.8, 0.7], 0),
        ([0.5, 0.5], 0),
        ([0.5, 0.6], 2),
        ([0.5, 0.6, 0.4, 0.3], 2),
        ([0.9, 0.2, 0.3, 0.3], 3),
    ],
)
def test_the_monotonic_suffix_is_left_out(chances, kept):
    past = [rival(f"main@{step}", chance) for step, chance in enumerate(chances)]
    assert without_monotonic_suffix(past) == past[:kept]


N = 1000
DUE = [  # presets, role, least win rate against mains, against all past, steps, due
    *[((PAPER,), MAIN, *row) for row in [(0.9, 0.9, 999, False), (0.1, 0.1, 1000, True)]],
    *[((PAPER,), HUNTER, *row) for row in [(0.71, 0.1, 1, True), (0.10, 0.1, 2000, True)]],
    (PRESETS, HUNTER, 0.70, 0.9, 1999, False),
    ((PSEUDOCODE,), HUNTER, 0.71, 0.1, 999, False),
    ((PSEUDOCODE,), HUNTER, 0.71, 0.1, 1000, True),
    ((PSEUDOCODE,), HUNTER, 0.70, 0.9, 2000, True),
    ((PAPER,), SWEEPER, 0.1, 0.71, 1, True),
    ((PAPER,), SWEEPER, 0.9, 0.70, 999, False),
    ((PAPER,), SWEEPER, 0.1, 0.10, 1000, True),
    *[
        ((PSEUDOCODE,), role, *row)
        for role in (MAIN, SWEEPER)
        for row in [
            (0.1, 0.71, 999, False),
            (0.1, 0.71, 1000, True),
            (0.9, 0.70, 1999, False),
            (0.9, 0.70, 2000, True),
        ]
    ],
]


@pytest.mark.parametrize(("presets", "role", "against_main", "against_past", "steps", "due"), DUE)
def test_when_a_snapshot_is_due(presets, role, against_main, against_past, steps, due):
    mains = [rival("main@9", against_main), rival("other@9", 0.95)]
    past = [rival("main@1", against_past), rival("other@1", 0.95)]
    for preset in presets:
        assert snapshot_due(preset, situation("x", role, mains, past), steps, N) is due


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("role", [HUNTER, SWEEPER])
def test_nobody_to_beat_is_not_beaten(preset, role):
    assert not snapshot_due(preset, situation("x", role, [], []), 999, N)


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize(
    ("role", "uniform", "resets"),
    [
        (MAIN, 0.0, False),
        (HUNTER, 0.0, True),
        (HUNTER, 0.999999, True),
        (SWEEPER, 0.249, True),
        (SWEEPER, 0.25, False),
    ],
)
def test_when_a_learner_starts_again_after_its_snapshot(preset, role, uniform, resets):
    assert resets_after_snapshot(preset, role, uniform) is resets
