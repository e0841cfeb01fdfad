"""Provides gates, sequential tests of a player that stop as soon as the results decide.

gate = Gate(test=BernoulliTest(p0=0.55, p1=0.65))
gate = gate.take(settled(matches))               # in assignment order, up to the oldest open lease
gate.verdict                                     # Verdict.CONTINUE, ACCEPT or REJECT
certify(gate, subject, seeds).to_json()          # the decision and its evidence

`docs/gates.md` says when to use which test. A verdict depends on nothing but the counts of results.
"""
# ruff: noqa: F401

from league.stats.gates.bernoulli import (
    BernoulliTest,
    Counts,
    Risks,
    amount,
    checked_counts,
    mean_score,
    points,
    unit,
)
from league.stats.gates.estimate import Estimate, Forecast, estimate, forecast
from league.stats.gates.gate import (
    WARNING,
    Assigned,
    Certificate,
    Gate,
    Result,
    Subject,
    Verdict,
    certify,
    settled,
)
from league.stats.gates.multinomial import MultinomialTest, Test, elo_of, score_of
