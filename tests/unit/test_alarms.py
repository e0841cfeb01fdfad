"""A run that looks wrong raises each alarm once, and reports once that it is over."""

import math

import pytest

from league.runs import alarms
from league.runs.alarms import Alarm, AlarmWatch, MatchFacts, UpdateFacts

TEN_KEYS = 10 * math.log(2)


@pytest.mark.parametrize(
    ("metric", "values", "wanted_kl", "is_ill"),
    [
        ("policy/entropy", [0.1] * 10, None, True),
        ("policy/entropy", [5.0] * 90 + [0.1] * 10, None, True),
        ("policy/entropy", [0.1] * 9, None, False),  # nine updates prove nothing
        ("policy/entropy", [0.1] * 9 + [0.5], None, False),
        ("policy/entropy", [2.0] * 50, None, False),  # where a healthy laptop run ends
        ("policy/entropy", [0.22] * 10, None, False),  # just above 3 % of 6.93
        ("value/explained_variance", [-0.3] * 30, None, True),
        ("value/explained_variance", [0.8] * 100 + [-0.2] * 30, None, True),
        ("value/explained_variance", [-0.3] * 29, None, False),
        ("value/explained_variance", [-0.04] * 30, None, False),  # noise
        ("value/explained_variance", [-1.0] * 5 + [0.5] * 25, None, False),
        ("policy/approx_kl", [0.05] * 10, 0.012, True),
        ("policy/approx_kl", [0.03] * 10, 0.012, False),
        ("policy/approx_kl", [0.05] * 9, 0.012, False),
        ("policy/approx_kl", [0.05] * 10, None, False),
        ("policy/approx_kl", [0.2] * 10, None, True),
        ("policy/approx_kl", [0.01] * 9 + [0.2], 0.012, False),  # one bad update
        ("loss/value", [math.nan], None, True),
        ("loss/value", [-0.1], None, False),
    ],
)
def test_a_metric_raises_its_alarm(metric, values, wanted_kl, is_ill):
    watch = AlarmWatch(TEN_KEYS, wanted_kl)
    for step, value in enumerate(values):
        watch.update(UpdateFacts(step=step, metrics={metric: value}))
    assert bool(watch.active) == is_ill


@pytest.mark.parametrize(
    ("updates", "each", "score", "kinds"),
    [
        (23, 13, 0.0, []),  # 299 matches
        (20, 15, 0.0, ["never_won"]),
        (25, 20, 0.0, ["never_won", "term_silent"]),
        (25, 20, 1.0, ["always_won", "term_silent"]),
        (25, 20, 0.5, ["term_silent"]),
        (19, 300, 0.0, []),  # a game of one move: too little was learnt in between
    ],
)
def test_streaks(updates, each, score, kinds):
    watch = AlarmWatch(TEN_KEYS, None)
    for step in range(updates):
        watch.update(update(step, matches=matches(each, score=score), weights={"combo": 1.0}))
    assert sorted(alarm.kind for alarm in watch.active.values()) == kinds


@pytest.mark.parametrize(
    ("terms", "count", "term"),
    [
        ({"combo": 81.0, "damage": 19.0}, 300, "combo"),
        ({"combo": 80.0, "damage": 20.0}, 300, None),
        ({"combo": 99.0, "damage": 1.0}, 299, None),
        ({"combo": 100.0}, 300, None),  # one term alone is a choice
        ({"win": 99.0, "damage": 1.0}, 300, None),  # the outcome is what it is about
        ({"win": 0.0, "damage": 0.0}, 300, None),
    ],
)
def test_dominant_term(terms, count, term):
    watch = AlarmWatch(TEN_KEYS, None)
    watch.update(update(0, matches=matches(count, **terms), weights=dict.fromkeys(terms, 1.0)))
    assert [alarm.subject for alarm in watch.active.values()] == ([term] if term else [])


def test_the_largest_entropy_is_of_free_keys_or_of_one_choice():
    assert alarms.largest_entropy("keys", 10) == pytest.approx(TEN_KEYS)
    assert alarms.largest_entropy("choice", 3) == pytest.approx(math.log(3))


@pytest.mark.parametrize("kind", alarms.KINDS)
def test_an_alarm_travels_as_a_metric(kind):
    text = alarms.KINDS[kind][1]
    subject = "left/3/-1/1" if "{parts" in text else "based" if "{subject}" in text else ""
    sent = Alarm(kind, subject, 0.875)
    (received,) = alarms.of_metrics(
        {sent.key: 0.875, "loss/policy": 1.0, "alarm/of_another_version": 1.0}
    )
    assert received == sent
    assert all(part in sent.sentence for part in sent.subject.split("/"))
    assert "{" not in sent.sentence + sent.title


def update(step, *, matches=(), weights=None, **metrics):
    named = {name.replace("__", "/"): value for name, value in metrics.items()}
    return UpdateFacts(step=step, metrics=named, matches=matches, weights=weights or {})


def told(watch, updates):
    return [
        (c.alarm.kind, c.alarm.subject, c.is_over, c.step) for u in updates for c in watch.update(u)
    ]


def test_an_alarm_is_said_once_and_once_more_when_it_is_over():
    series = [3.0] * 5 + [0.01] * 20 + [3.0] * 5 + [0.01] * 2 + [3.0] * 30
    updates = [update(step, policy__entropy=value) for step, value in enumerate(series)]
    assert told(AlarmWatch(TEN_KEYS, None), updates) == [
        ("entropy_collapse", "", False, 14),
        ("entropy_collapse", "", True, 34),  # ten updates after the last that had its cause, 24
    ]


BREAK = update(0, policy__approx_kl=226.0, policy__entropy=1.1, value__explained_variance=-0.02)
DEAD = {"policy__approx_kl": 0.0, "policy__entropy": 0.0, "value__explained_variance": 0.0}
RANDOM = {**DEAD, "policy__entropy": 5.6}
WELL = {"policy__approx_kl": 0.01, "policy__entropy": 4.8, "value__explained_variance": 0.4}


@pytest.mark.parametrize("after", [DEAD, RANDOM])
def test_a_policy_that_an_update_broke_keeps_its_one_alarm_until_it_recovers(after):
    watch = AlarmWatch(TEN_KEYS, 0.012)
    ill = [BREAK, *(update(step, **after) for step in range(1, 60))]
    assert told(watch, ill) == [("policy_broke", "", False, 0)]
    assert watch.active["alarm/policy_broke"].value == 226.0
    resumed = AlarmWatch(TEN_KEYS, 0.012, watch.broke)
    assert told(resumed, [update(60, **after)]) == [("policy_broke", "", False, 60)]
    well = [update(step, **WELL) for step in range(61, 100)]
    assert [found[:3] for found in told(resumed, well)] == [("policy_broke", "", True)]
    assert resumed.broke == 0.0


def test_an_update_that_breaks_a_policy_without_entropy_is_not_the_cause():
    low = [update(step, **{**WELL, "policy__entropy": 0.1}) for step in range(12)]
    after = [update(step, **DEAD) for step in range(13, 30)]
    found = told(AlarmWatch(TEN_KEYS, None), [*low, BREAK, *after])
    assert {kind for kind, *_ in found} == {"entropy_collapse", "kl_too_high"}


def test_a_clipped_number_is_told_at_once_by_its_name():
    metrics = {f"{alarms.CLIPPED}left/3/-1/1": 40.0, "loss/value": 0.5}
    updates = [UpdateFacts(step=step, metrics=metrics if step < 3 else {}) for step in range(20)]
    assert told(AlarmWatch(TEN_KEYS, None), updates) == [
        ("clipped", "left/3/-1/1", False, 0),
        ("clipped", "left/3/-1/1", True, 12),
    ]


def matches(count, kind="based", score=0.0, **terms):
    return [MatchFacts(kind, score, terms)] * count


def test_losses_are_counted_for_each_kind_of_opponent_and_a_draw_ends_them():
    watch = AlarmWatch(TEN_KEYS, None)
    lose = [update(step, matches=[*matches(10), *matches(1, "random", 1.0)]) for step in range(30)]
    assert told(watch, lose) == [("never_won", "based", False, 29)]
    drawn = [update(30, matches=matches(1, score=0.5)), *(update(step) for step in range(31, 41))]
    assert told(watch, drawn) == [("never_won", "based", True, 39)]


def test_only_terms_with_a_weight_are_missed_and_from_the_stage_on_that_gives_them_one():
    watch = AlarmWatch(TEN_KEYS, None)
    rows, before = matches(20, score=0.5, win=1.0, damage=0.5), {"win": 1, "damage": 1, "combo": 0}
    first = [update(s, matches=rows, weights=before) for s in range(60)]
    assert told(watch, first) == []
    second = [update(s, matches=rows, weights={**before, "combo": 2}) for s in range(60, 100)]
    assert told(watch, second) == [("term_silent", "combo", False, 84)]


def test_wins_and_losses_of_a_term_do_not_cancel_out():
    watch = AlarmWatch(TEN_KEYS, None)
    rows = [
        *matches(10, score=1.0, knockout=5.0, damage=0.5),
        *matches(10, knockout=-5.0, damage=0.5),
    ]
    updates = [update(s, matches=rows, weights={"knockout": 1, "damage": 1}) for s in range(20)]
    assert told(watch, updates) == [("term_dominates", "knockout", False, 14)]


def test_a_run_that_learns_is_silent():
    watch = AlarmWatch(TEN_KEYS, 0.012)
    weights, updates = {"win": 1.0, "damage": 1.0, "toward": 1.0}, []
    for s in range(400):
        share = s / 400
        scores = [float(n < 10 * share) for n in range(10)]
        rows = [
            MatchFacts("based", x, {"win": 10 * x - 5, "damage": share, "toward": 2.0})
            for x in scores
        ]
        explained = -0.3 if s % 40 == 0 else share - 0.03  # an occasional bad update
        told_of = {"policy__entropy": 6.9 - 5 * share, "value__explained_variance": explained}
        updates.append(update(s, matches=rows, weights=weights, policy__approx_kl=0.02, **told_of))
    assert told(watch, updates) == []
