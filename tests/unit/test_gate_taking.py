"""Gates take results in order, one by one or in batches; certificates hold a decision."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from league.errors import DataCorrupt, InvalidInput
from league.stats.gates import (
    Assigned,
    BernoulliTest,
    Certificate,
    Gate,
    MultinomialTest,
    Result,
    Risks,
    Subject,
    Verdict,
    certify,
    settled,
)

BERNOULLI = BernoulliTest(p0=0.55, p1=0.65)
PAIRS = MultinomialTest(elo0=0, elo1=100)
PATIENT = Risks(alpha=1e-12, beta=1e-12)
"""Bounds that a test does not reach."""
SUBJECT = Subject(
    game="brawl",
    book="eval",
    candidate="main-exploiter@4000",
    candidate_digest="a" * 64,
    opponent="main@9000",
    opponent_digest="b" * 64,
)


def results(scores, first=0):
    return [Result(place, score) for place, score in enumerate(scores, start=first)]


def taken(gate, scores):
    return gate.take(results(scores, gate.last + 1))


matches = st.lists(st.sampled_from([0.0, 0.5, 1.0]), max_size=60)
pairs = st.lists(st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]), max_size=25)


@settings(max_examples=60, deadline=None)
@given(matches, st.lists(st.integers(0, 60), max_size=6), st.sampled_from([0.05, 0.3, 1e-12]))
def test_batches_equal_one_by_one(scores, cuts, risk):
    gate = Gate(test=BERNOULLI, risks=Risks(alpha=risk, beta=risk))
    one_by_one = gate
    for result in results(scores):
        one_by_one = one_by_one.take([result])
    bounds = sorted({0, len(scores), *(min(cut, len(scores)) for cut in cuts)})
    batched = gate
    for low, high in itertools.pairwise(bounds):
        batched = batched.take(results(scores)[low:high])
    assert gate.take(results(scores)) == one_by_one == batched


def test_a_gate_stops_where_it_decides():
    wins = next(n for n in range(1, 100) if BERNOULLI.llr((0, 0, n)) >= Risks().upper)
    gate = taken(Gate(test=BERNOULLI), [1.0] * (wins - 1))
    assert gate.verdict is Verdict.CONTINUE
    accepted = gate.take(results([1.0, 0.0, 0.0], gate.last + 1))
    assert (accepted.verdict, accepted.counts, accepted.last) == (
        Verdict.ACCEPT,
        (0, 0, wins),
        wins - 1,
    )
    assert taken(accepted, [0.0] * 50) == accepted, "what comes after the decision is not counted"
    rejected = taken(Gate(test=BERNOULLI), [0.0] * 50)
    assert rejected.verdict is Verdict.REJECT
    assert rejected.results < 50


def test_a_bound_that_is_reached_exactly_decides():
    test = BernoulliTest(p0=0.25, p1=0.75)  # a win is ln 3 up, a loss ln 3 down
    risks = Risks(alpha=0.25, beta=0.25)  # bounds ± ln 3
    assert taken(Gate(test=test, risks=risks), [1.0]).verdict is Verdict.ACCEPT
    assert taken(Gate(test=test, risks=risks), [0.0]).verdict is Verdict.REJECT
    assert taken(Gate(test=test, risks=risks), [0.5]).verdict is Verdict.CONTINUE


def test_a_gate_at_its_limit_rejects():
    gate = taken(Gate(test=BERNOULLI, limit=6), [1.0, 0.0, 1.0, 1.0, 0.0])
    assert gate.verdict is Verdict.CONTINUE
    gate = taken(gate, [1.0, 1.0])
    assert (gate.verdict, gate.results) == (Verdict.REJECT, 6)
    with pytest.raises(InvalidInput, match="-1"):
        Gate(test=BERNOULLI, limit=-1)


def test_results_are_taken_once_and_in_order():
    gate = Gate(test=BERNOULLI).take([Result(4, 1.0), Result(9, 0.0)])
    assert (gate.last, gate.counts) == (9, (1, 0, 1))
    for late in (9, 5):
        with pytest.raises(InvalidInput, match=rf"\b{late}\b.*\b9\b"):
            gate.take([Result(late, 1.0)])
    with pytest.raises(InvalidInput, match=r"\b12\b"):
        gate.take([Result(12, 1.0), Result(12, 1.0)])


@pytest.mark.parametrize("score", [0.25, -0.5, 1.5, float("nan")])
def test_what_is_no_score_of_a_match_is_refused(score):
    with pytest.raises(InvalidInput, match=re.escape(repr(score))):
        Gate(test=BERNOULLI).take([Result(0, 1.0), Result(1, score)])


def test_pairs_are_counted_by_their_mean():
    gate = taken(Gate(test=PAIRS), [0.75, 1.0, 0.5, 0.0, 0.25, 1.0])
    assert (gate.counts, gate.results, gate.matches) == ((1, 1, 1, 1, 2), 6, 12)


def assigned(ordinal, score=None, *, is_open=False, pair=0):
    return Assigned(ordinal=ordinal, is_open=is_open, score=score, pair=pair)


def test_nothing_after_an_open_lease_is_counted():
    handed_out = [
        assigned(5, 1.0),
        assigned(1, 0.0),
        assigned(2),
        assigned(3, is_open=True),
        assigned(4, 1.0),
    ]
    assert settled(handed_out) == [Result(1, 0.0)]
    closed = [*handed_out[:3], assigned(3, 0.5), handed_out[4]]
    assert settled(closed) == [Result(1, 0.0), Result(3, 0.5), Result(4, 1.0), Result(5, 1.0)]


STAKE = 2.0
LARGEST = 10.0


def paid(ordinal, margin, coin=0.0, pair=0):
    score = 0.5 + 0.5 * float(np.sign(margin))
    return Assigned(
        ordinal=ordinal, is_open=False, score=score, pair=pair, margin=float(margin), coin=coin
    )


def test_with_payoffs_results_count_as_often_as_much_was_at_stake():
    matches = [
        paid(1, 0.5 * LARGEST, 0.499),
        paid(2, 0.5 * LARGEST, 0.501),
        paid(3, -0.1 * LARGEST, 0.099),
        paid(4, -0.1 * LARGEST, 0.101),
        paid(5, 0.0, 0.199),  # as of one stake
        paid(6, 0.0, 0.201),
        paid(7, -LARGEST, 0.999),
        paid(8, 9.0 * LARGEST, 0.999),
        assigned(9, 1.0),  # a game without payoffs
    ]
    counted = [(1, 1.0), (3, 0.0), (5, 0.5), (7, 0.0), (8, 1.0), (9, 1.0)]
    assert settled(matches, stake=STAKE, most=LARGEST) == [Result(*one) for one in counted]
    by_wins = [(one.ordinal, one.score) for one in matches]
    assert settled(matches) == [Result(*one) for one in by_wins], "without a stake all count"


def test_with_payoffs_a_pair_counts_by_the_sum_of_its_matches():
    won = [paid(1, LARGEST, 0.3, pair=7), paid(2, -0.25 * LARGEST, 0.3, pair=7)]
    skipped = [paid(3, LARGEST, 0.4, pair=8), paid(4, -0.25 * LARGEST, 0.4, pair=8)]
    even = [paid(5, 1.0, 0.1, pair=9), paid(6, -1.0, 0.1, pair=9)]
    found = settled([*won, *skipped, *even], paired=True, stake=STAKE, most=LARGEST)
    assert found == [Result(1, 1.0), Result(5, 0.5)]


@pytest.mark.parametrize(
    ("wins", "stake_won", "stake_lost", "drawn", "share", "least", "most"),
    [  # share of what is at stake in decided matches: wins * won / (wins * won + losses * lost)
        (0.80, 1.0, 3.2727, 0.0, 0.55, 0.0, 0.1),
        (0.30, 4.3333, 1.0, 0.0, 0.65, 0.9, 1.0),
        (0.40, 1.0, 1.0, 0.0, 0.40, 0.0, 0.01),
        (0.50, 4.0, 1.0, 0.5, 0.80, 0.9, 1.0),  # with the draws .65
        (0.50, 1.5, 1.0, 0.5, 0.60, 0.0, 0.1),  # .55
        (0.95, 1.0, 19.0, 0.0, 0.50, 0.0, 0.1),  # it wins nearly all matches, and no stake
    ],
)
def test_error_rates_hold_for_the_share_of_what_is_at_stake(
    wins, stake_won, stake_lost, drawn, share, least, most
):
    """An error of 5 % in 200 gates: more than 10 % of them in one of 900 trials."""
    won, lost = wins * stake_won, (1.0 - wins) * stake_lost
    assert won / (won + lost) == pytest.approx(share, abs=1e-4)
    rng, accepted = np.random.default_rng(3), 0
    for _ in range(200):
        gate, ordinal = Gate(test=BernoulliTest(p0=0.55, p1=0.65)), 0
        while gate.verdict is Verdict.CONTINUE:
            margin_G = np.where(rng.random(256) < wins, stake_won, -stake_lost)
            margin_G[rng.random(256) < drawn] = 0.0
            coin_G = rng.random(256)
            matches = [
                paid(ordinal + place, margin, coin)
                for place, (margin, coin) in enumerate(zip(margin_G, coin_G, strict=True))
            ]
            ordinal += 256
            gate = gate.take(settled(matches, stake=won + lost, most=max(stake_won, stake_lost)))
        accepted += gate.verdict is Verdict.ACCEPT
    assert least <= accepted / 200 <= most


def test_pairs_count_whole_or_not_at_all():
    first = [assigned(1, 1.0, pair=7), assigned(2, 0.5, pair=7)]
    failed = [assigned(3, 1.0, pair=8), assigned(4, pair=8)]
    third = [assigned(5, 0.0, pair=9), assigned(6, 0.0, pair=9)]
    assert settled([*third, *failed, *first], paired=True) == [Result(1, 0.75), Result(5, 0.0)]
    waiting = [assigned(3, 1.0, pair=8), assigned(4, pair=8, is_open=True)]
    assert settled([*third, *waiting, *first], paired=True) == [Result(1, 0.75)]
    with pytest.raises(InvalidInput, match=r"\b7\b.*\b3\b"):
        settled([*first, assigned(3, 1.0, pair=7)], paired=True)


def decided():
    gate = taken(Gate(test=BERNOULLI, limit=500), [1.0, 0.5, 1.0] * 30)
    assert gate.verdict is Verdict.ACCEPT
    return certify(gate, SUBJECT, tuple(range(100, 100 + gate.results)))


def test_a_certificate_comes_back_from_json_as_it_was():
    certificate = decided()
    assert Certificate.from_json(certificate.to_json()) == certificate
    assert certificate.seeds[0] == 100
    assert certificate.wilson.low < certificate.mean < certificate.wilson.high
    gate = taken(Gate(test=PAIRS), [0.0, 0.25] * 40)
    pairwise = certify(gate, SUBJECT, (2**64 - 1,) * gate.results)
    read = Certificate.from_json(pairwise.to_json().encode())
    assert (read, read.gate.test, read.verdict) == (pairwise, PAIRS, Verdict.REJECT)


def altered(**changes):
    said = json.loads(decided().to_json())
    for path, value in changes.items():
        *folders, name = path.split("__")
        place = said
        for folder in folders:
            place = place[folder]
        place[name] = value
    return json.dumps(said)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (altered(llr=9.0), "llr 9,"),
        (altered(gate__counts=[10, 5, 12]), "27 results"),
        (altered(verdict="reject"), "'reject'.*'accept'"),
        (altered(gate__risks__alpha=0.2), "lower -2.94444.*-2.77"),
        (altered(wilson__low=0.1), "wilson.low 0.1"),
        (altered(estimate__high=0.9), "estimate.high 0.9"),
        (altered(seeds=[1, 2]), "2 seeds"),
        (altered(winner="me"), "winner"),
        (altered(gate__test__p0=0.9), "p0 0.9"),
        (altered(gate__test__kind="coin"), "coin"),
        ("[]", "certificate"),
        ("{", "JSON"),
    ],
)
def test_a_certificate_that_does_not_hold_is_refused(text, message):
    with pytest.raises(DataCorrupt, match=message):
        Certificate.from_json(text)


def test_only_a_decision_is_certified():
    gate = taken(Gate(test=BERNOULLI), [1.0])
    with pytest.raises(InvalidInput, match="1 results"):
        certify(gate, SUBJECT, (1,))


def test_the_example_of_the_page_runs():
    page = (Path(__file__).parents[2] / "docs" / "gates.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    said = {}
    exec(compile(shown, "docs/gates.md", "exec"), said)
    assert '"verdict": "accept"' in said["text"]
