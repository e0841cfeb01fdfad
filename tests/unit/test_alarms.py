"""When a run looks ill: each rule by a table of cases, each alarm said once and once when it is
over.
"""

import math

import pytest

from league.runs import alarms
from league.runs.alarms import Alarm, AlarmWatch, MatchFacts, Streak, UpdateFacts

TEN_KEYS = 10 * math.log(2)


def kinds(found):
    return [(alarm.kind, alarm.subject) for alarm in found]


@pytest.mark.parametrize(
    ("entropies", "is_ill"),
    [
        ([0.1] * 10, True),
        ([5.0] * 90 + [0.1] * 10, True),
        ([0.1] * 9, False),  # nine updates prove nothing
        ([0.1] * 9 + [0.5], False),
        ([2.0] * 50, False),  # where a healthy laptop run ends
        ([0.22] * 10, False),  # just above 3 % of 6.93
    ],
)
def test_entropy_collapse(entropies, is_ill):
    assert bool(alarms.entropy_collapse(entropies, TEN_KEYS)) == is_ill


def test_the_largest_entropy_is_of_free_keys_or_of_one_choice():
    assert alarms.largest_entropy("keys", 10) == pytest.approx(TEN_KEYS)
    assert alarms.largest_entropy("choice", 3) == pytest.approx(math.log(3))


@pytest.mark.parametrize(
    ("explained", "is_ill"),
    [
        ([-0.3] * 30, True),
        ([0.8] * 100 + [-0.2] * 30, True),
        ([-0.3] * 29, False),
        ([-0.04] * 30, False),  # noise where nothing can be explained
        ([-1.0] * 5 + [0.5] * 25, False),
    ],
)
def test_explained_variance(explained, is_ill):
    assert bool(alarms.value_unexplained(explained)) == is_ill


@pytest.mark.parametrize(
    ("divergences", "wanted", "is_ill"),
    [
        ([0.05] * 10, 0.012, True),
        ([0.03] * 10, 0.012, False),
        ([0.05] * 9, 0.012, False),
        ([0.05] * 10, None, False),
        ([0.2] * 10, None, True),
        ([0.01] * 9 + [0.2], 0.012, False),  # one bad update
    ],
)
def test_kl(divergences, wanted, is_ill):
    assert bool(alarms.kl_too_high(divergences, wanted)) == is_ill


@pytest.mark.parametrize(
    ("streak", "lost", "won", "silent"),
    [
        (Streak(299, 50), False, False, False),
        (Streak(300, 20), True, False, False),
        (Streak(500, 20), True, True, True),
        # a game of one move: too little was learnt in between
        (Streak(5000, 19), False, False, False),
    ],
)
def test_streaks(streak, lost, won, silent):
    assert kinds(alarms.never_won({"based": streak})) == [("never_won", "based")] * lost
    assert kinds(alarms.always_won(streak)) == [("always_won", "")] * won
    assert kinds(alarms.silent_terms({"combo": streak})) == [("term_silent", "combo")] * silent


@pytest.mark.parametrize(
    ("absolute", "matches", "term"),
    [
        ({"combo": 81.0, "damage": 19.0}, 300, "combo"),
        ({"combo": 80.0, "damage": 20.0}, 300, None),
        ({"combo": 99.0, "damage": 1.0}, 299, None),
        ({"combo": 100.0}, 300, None),  # one term alone is a choice
        ({"win": 99.0, "damage": 1.0}, 300, None),  # the outcome is what it is about
        ({"win": 0.0, "damage": 0.0}, 300, None),
    ],
)
def test_dominant_term(absolute, matches, term):
    assert kinds(alarms.dominant_term(absolute, matches)) == (
        [("term_dominates", term)] if term else []
    )


def test_not_finite():
    metrics = {"loss/value": math.nan, "loss/policy": -0.1, "learning/gradient_norm": math.inf}
    found = [name for _, name in kinds(alarms.not_finite(metrics))]
    assert found == ["loss/value", "learning/gradient_norm"]


@pytest.mark.parametrize("kind", alarms.KINDS)
def test_an_alarm_travels_as_a_metric_and_says_what_was_measured(kind):
    sent = Alarm(kind, "based" if "{subject}" in alarms._SENTENCES[kind] else "", 0.875)
    (received,) = alarms.of_metrics(
        {sent.key: 0.875, "loss/policy": 1.0, "alarm/of_another_version": 1.0}
    )
    assert received == sent
    assert sent.sentence.endswith(".")
    assert sent.subject in sent.sentence
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
        explained = -0.3 if s % 40 == 0 else share - 0.03  # one bad update now and then
        told_of = {"policy__entropy": 6.9 - 5 * share, "value__explained_variance": explained}
        updates.append(update(s, matches=rows, weights=weights, policy__approx_kl=0.02, **told_of))
    assert told(watch, updates) == []
