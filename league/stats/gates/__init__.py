"""Gates: tests that take results one by one and stop as soon as they have seen enough.

gate = Gate(test=BernoulliTest(p0=0.55, p1=0.65))
gate = gate.take(settled(matches))               # in assignment order, up to the oldest open lease
gate.verdict                                     # Verdict.GO_ON, ACCEPT or REJECT
certified(gate, subject, seeds).to_json()        # what was decided, on what ground

`docs/gates.md` says when to use which test. Everything is a pure function of counts.
"""

from __future__ import annotations

from league.stats.gates.bernoulli import BernoulliTest
from league.stats.gates.bounds import Risks
from league.stats.gates.certificate import WARNING, Certificate, Subject, certified
from league.stats.gates.elo import EloModel, elo_of, score_of
from league.stats.gates.estimate import Estimate, estimated
from league.stats.gates.gate import Gate, Result, Test, Verdict
from league.stats.gates.multinomial import MultinomialTest
from league.stats.gates.order import Assigned, settled, settled_pairs
from league.stats.gates.walk import Forecast, foreseen

__all__ = [
    "WARNING",
    "Assigned",
    "BernoulliTest",
    "Certificate",
    "EloModel",
    "Estimate",
    "Forecast",
    "Gate",
    "MultinomialTest",
    "Result",
    "Risks",
    "Subject",
    "Test",
    "Verdict",
    "certified",
    "elo_of",
    "estimated",
    "foreseen",
    "score_of",
    "settled",
    "settled_pairs",
]
