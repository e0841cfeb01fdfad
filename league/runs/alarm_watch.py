"""Follows a run update by update, says each alarm once, and once more when it is over."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from league.runs import alarms
from league.runs.alarms import Alarm, Streak


class MatchFacts(NamedTuple):
    """A match that ended. `terms` are its weighted reward terms, summed over it."""

    kind: str  # of opponent
    score: float  # the learner's: 1 win, 0.5 draw, 0 loss
    terms: Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class UpdateFacts:
    """What one update tells. `weights` are those of the reward terms in its rollout."""

    step: int
    metrics: Mapping[str, float]
    matches: Sequence[MatchFacts] = ()
    weights: Mapping[str, float] = field(default_factory=dict)


class Change(NamedTuple):
    """An alarm that began at `step`, or is over."""

    alarm: Alarm
    is_over: bool
    step: int

    @property
    def sentence(self) -> str:
        return f"No longer: {self.alarm.title}." if self.is_over else self.alarm.sentence


class AlarmWatch:
    """Keeps what the rules of `league.runs.alarms` look back on, bounded.

    Args:
        largest_entropy: of play that knows nothing, in nats.
        wanted_kl: `learner.desired_kl` or `learner.target_kl`; None when neither is set.
    """

    def __init__(self, largest_entropy: float, wanted_kl: float | None) -> None:
        self._largest, self._wanted_kl = largest_entropy, wanted_kl
        self._series: dict[str, deque[float]] = defaultdict(
            lambda: deque(maxlen=alarms.EXPLAINED_UPDATES)
        )
        self._lost: dict[str, Streak] = {}
        self._won = Streak()
        self._silent: dict[str, Streak] = {}
        self._absolute: deque[Mapping[str, float]] = deque(maxlen=alarms.DOMINANT_MATCHES)
        self._weighted: frozenset[str] = frozenset()
        self._quiet: dict[str, int] = {}
        self.active: dict[str, Alarm] = {}

    def update(self, facts: UpdateFacts) -> list[Change]:
        """Takes in an update and tells what began and what is over."""
        for name in ("policy/entropy", "value/explained_variance", "policy/approx_kl"):
            if name in facts.metrics:
                self._series[name].append(facts.metrics[name])
        self._count_scores(facts.matches)
        self._count_terms(facts.matches, facts.weights)
        now = {alarm.key: alarm for alarm in self._found(facts.metrics)}
        return self._changes(now, facts.step)

    def _found(self, metrics: Mapping[str, float]) -> list[Alarm]:
        total = {term: sum(row.get(term, 0.0) for row in self._absolute) for term in self._weighted}
        return [
            *alarms.entropy_collapse(list(self._series["policy/entropy"]), self._largest),
            *alarms.value_unexplained(list(self._series["value/explained_variance"])),
            *alarms.kl_too_high(list(self._series["policy/approx_kl"]), self._wanted_kl),
            *alarms.never_won(self._lost),
            *alarms.always_won(self._won),
            *alarms.silent_terms(self._silent),
            *alarms.dominant_term(total, len(self._absolute)),
            *alarms.not_finite(metrics),
        ]

    def _count_scores(self, matches: Sequence[MatchFacts]) -> None:
        for match in matches:
            lost = self._lost.get(match.kind, Streak())
            is_lost, is_won = match.score == 0.0, match.score == 1.0
            self._lost[match.kind] = Streak(lost.matches + 1, lost.updates) if is_lost else Streak()
            self._won = Streak(self._won.matches + 1, self._won.updates) if is_won else Streak()
        for kind in {match.kind for match in matches}:
            self._lost[kind] = _next_update(self._lost[kind])
        if matches:
            self._won = _next_update(self._won)

    def _count_terms(self, matches: Sequence[MatchFacts], weights: Mapping[str, float]) -> None:
        weighted = frozenset(term for term, weight in weights.items() if weight)
        if weighted != self._weighted:  # another stage: what a term did before says nothing
            self._absolute.clear()
            self._silent = {term: self._silent.get(term, Streak()) for term in weighted}
            self._weighted = weighted
        for match in matches:
            self._absolute.append({term: abs(match.terms.get(term, 0.0)) for term in weighted})
            for term in weighted:
                silent = self._silent[term]
                fired = match.terms.get(term, 0.0) != 0.0
                self._silent[term] = (
                    Streak() if fired else Streak(silent.matches + 1, silent.updates)
                )
        if matches:
            self._silent = {term: _next_update(streak) for term, streak in self._silent.items()}

    def _changes(self, now: Mapping[str, Alarm], step: int) -> list[Change]:
        changes = []
        for key, alarm in now.items():
            if key not in self.active:
                changes.append(Change(alarm, False, step))
            self.active[key] = alarm
            self._quiet[key] = 0
        for key in [key for key in self.active if key not in now]:
            self._quiet[key] += 1
            if self._quiet[key] >= alarms.QUIET_UPDATES:
                del self._quiet[key]
                changes.append(Change(self.active.pop(key), True, step))
        return changes


def _next_update(streak: Streak) -> Streak:
    return streak._replace(updates=streak.updates + 1) if streak.matches else streak
