"""Alarms: rules over a learner's measurements that say when a training run looks wrong.

The learner raises alarms as it runs, the terminal view shows them, and the doctor finds them in the
files of a finished run. Each threshold has its reason; a run that learns raises none.
"""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

ENTROPY_SHARE: Final = 0.03
"""Of the largest possible entropy: with ten keys, the policy is 99.7 % certain of each there, and
sampled play explores nothing. A laptop run that learns ends near 0.28.
"""
ENTROPY_LOW: Final = 0.1
"""Of the same: low enough for the doctor to mention, and no alarm."""
ENTROPY_UPDATES: Final = 10
"""One minibatch proves nothing; ten updates in a row do."""
EXPLAINED_VARIANCE: Final = -0.05
"""A critic that predicts a constant has 0; only a worse one is in trouble."""
EXPLAINED_UPDATES: Final = 30
"""At the start it is below 0 for a few updates, until the critic has seen its first returns."""
KL_FACTOR: Final = 3.0
"""Times the wanted KL divergence. The adaptive step size allows 1.5 and recovers."""
KL_LARGEST: Final = 0.1
"""Without a wanted KL: PPO at its usual settings moves by 0.01 to 0.03 an update, and a clip range
of 0.2 no longer limits it where the mean is several times that.
"""
KL_UPDATES: Final = 10
LOST_MATCHES: Final = 300
"""All lost, against one kind of opponent: an agent that wins 1 % does so once in 20 times. A
laptop run that learns loses its first hundred.
"""
WON_MATCHES: Final = 500
"""All won, against all opponents: there is nothing left to learn, or the game counts wrongly."""
ONE_SIDED_UPDATES: Final = 20
"""Games of a few moves end hundreds of matches in one update, before anything could be learnt."""
SILENT_MATCHES: Final = 500
"""Matches in which a weighted reward term was always 0: it is broken, or out of reach."""
DOMINANT_SHARE: Final = 0.8
"""Of the absolute reward, in one of several weighted terms: the others have no effect."""
OUTCOME_TERMS: Final = ("win", "payoff")
"""Terms that may carry the whole reward: they are what the match is about."""
DOMINANT_MATCHES: Final = 300
QUIET_UPDATES: Final = 10
"""Updates without its cause after which an alarm is over, so that it does not flicker."""
PREFIX: Final = "alarm/"

_TITLES: Final = {
    "entropy_collapse": "entropy collapsed",
    "value_unexplained": "critic explains nothing",
    "kl_too_high": "KL too high",
    "never_won": "{subject} always wins",
    "always_won": "every match is won",
    "term_silent": "{subject} never fires",
    "term_dominates": "{subject} is the whole reward",
    "not_finite": "{subject} is not finite",
}
_SENTENCES: Final = {
    "entropy_collapse": "The entropy has collapsed to {percent:.1f} % of its largest value: raise "
    "learner.ent_coef, and start from a snapshot of before it (--from).",
    "value_unexplained": "The critic does worse than a constant (explained variance {value:.2f}): "
    "rewards may be too rare or too large, or learner.learning_rate too high.",
    "kl_too_high": "Updates move the policy too far (KL {value:.3f}): lower learner.learning_rate "
    "or learner.n_epochs, or set learner.desired_kl.",
    "never_won": "All of the last {value:.0f} matches against {subject} were lost: give an easier "
    "opponent or denser rewards first.",
    "always_won": "All of the last {value:.0f} matches were won, against all opponents: add "
    "stronger opponents to the mix.",
    "term_silent": "The reward term {subject} has a weight, and was 0 in {value:.0f} matches: it "
    "is out of reach or broken.",
    "term_dominates": "The reward term {subject} carries {percent:.0f} % of the absolute reward: "
    "lower its weight in game.reward_weights, or raise the others'.",
    "not_finite": "The metric {subject} is not a finite number: the run may be broken.",
}
KINDS: Final = tuple(_TITLES)


class Alarm(NamedTuple):
    """One trouble. `subject` is an opponent, a term or a metric, "" for the run itself."""

    kind: str
    subject: str
    value: float

    @property
    def key(self) -> str:
        """The metric that carries it in a heartbeat: alarm/KIND or alarm/KIND/SUBJECT."""
        return PREFIX + "/".join(part for part in (self.kind, self.subject) if part)

    @property
    def title(self) -> str:
        """A few words."""
        return _TITLES[self.kind].format(subject=self.subject)

    @property
    def sentence(self) -> str:
        """The measurement, and what to do."""
        percent = self.value * 100
        return _SENTENCES[self.kind].format(subject=self.subject, value=self.value, percent=percent)


def of_metrics(metrics: Mapping[str, float]) -> list[Alarm]:
    """The alarms in a heartbeat's metrics."""
    found = []
    for name, value in metrics.items():
        kind, _, subject = name.removeprefix(PREFIX).partition("/")
        if name.startswith(PREFIX) and kind in _TITLES:
            found.append(Alarm(kind, subject, value))
    return found


def largest_entropy(action_kind: str, action_size: int) -> float:
    """The entropy of uniform play, in nats: of free keys, or of one choice among all.

    Where some choices are forbidden, the true largest value is smaller.
    """
    return math.log(action_size) if action_kind == "choice" else action_size * math.log(2.0)


# -- rules over series, whose newest value comes last --


def entropy_collapse(entropies: Sequence[float], largest: float) -> list[Alarm]:
    """`largest` is the entropy of uniform play, see `largest_entropy`."""
    recent = entropies[-ENTROPY_UPDATES:]
    if len(recent) < ENTROPY_UPDATES or max(recent) >= ENTROPY_SHARE * largest:
        return []
    return [Alarm("entropy_collapse", "", _mean(recent) / largest)]


def value_unexplained(explained: Sequence[float]) -> list[Alarm]:
    """`explained` is 1 - Var[return - value] / Var[return] of each update."""
    recent = explained[-EXPLAINED_UPDATES:]
    if len(recent) < EXPLAINED_UPDATES or _mean(recent) >= EXPLAINED_VARIANCE:
        return []
    return [Alarm("value_unexplained", "", _mean(recent))]


def kl_too_high(divergences: Sequence[float], wanted: float | None) -> list[Alarm]:
    """`wanted` is `learner.desired_kl` or `learner.target_kl`, None when neither is set."""
    recent = divergences[-KL_UPDATES:]
    limit = KL_LARGEST if wanted is None else KL_FACTOR * wanted
    if len(recent) < KL_UPDATES or _mean(recent) <= limit:
        return []
    return [Alarm("kl_too_high", "", _mean(recent))]


class Streak(NamedTuple):
    """How long one thing has happened without exception."""

    matches: int = 0
    updates: int = 0

    def is_long(self, matches: int) -> bool:
        return self.matches >= matches and self.updates >= ONE_SIDED_UPDATES

    def after_update(self) -> Streak:
        return self._replace(updates=self.updates + 1) if self.matches else self


def never_won(lost: Mapping[str, Streak]) -> list[Alarm]:
    """`lost` holds, by kind of opponent, the matches since one was not lost."""
    return [
        Alarm("never_won", kind, float(streak.matches))
        for kind, streak in lost.items()
        if streak.is_long(LOST_MATCHES)
    ]


def always_won(won: Streak) -> list[Alarm]:
    """`won` are the matches, of all kinds, since one was not won."""
    return [Alarm("always_won", "", float(won.matches))] if won.is_long(WON_MATCHES) else []


def silent_terms(silent: Mapping[str, Streak]) -> list[Alarm]:
    """`silent` holds, by weighted reward term, the matches since it was other than 0."""
    return [
        Alarm("term_silent", term, float(streak.matches))
        for term, streak in silent.items()
        if streak.is_long(SILENT_MATCHES)
    ]


def dominant_term(absolute: Mapping[str, float], matches: int) -> list[Alarm]:
    """`absolute` are the absolute weighted sums of the weighted terms over the last `matches`.

    A reward of one term is a choice, and no trouble; nor is one that the outcome carries.
    """
    if len(absolute) < 2 or matches < DOMINANT_MATCHES:
        return []
    term, share = largest_share(absolute)
    is_ill = share > DOMINANT_SHARE and term not in OUTCOME_TERMS
    return [Alarm("term_dominates", term, share)] if is_ill else []


def largest_share(absolute: Mapping[str, float]) -> tuple[str, float]:
    """The term of the largest absolute sum and its share of all; 0 where nothing was paid."""
    total = sum(absolute.values())
    term = max(absolute, key=lambda name: absolute[name], default="none")
    return term, absolute[term] / total if total > 0 else 0.0


def not_finite(metrics: Mapping[str, float]) -> list[Alarm]:
    """An alarm for each metric that is no finite number."""
    return [
        Alarm("not_finite", name, value)
        for name, value in metrics.items()
        if not math.isfinite(value)
    ]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


# -- a run, update by update --


class MatchFacts(NamedTuple):
    """A match that ended. `terms` are its weighted reward terms, summed over it."""

    kind: str  # of opponent
    score: float  # the learner's: 1 win, 0.5 draw, 0 loss
    terms: Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class UpdateFacts:
    """The measurements of one update. `weights` are those of the reward terms in its rollout."""

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
    """Follows a run and reports each alarm once, and then its end.

    Args:
        largest_entropy: of uniform play, in nats.
        wanted_kl: `learner.desired_kl` or `learner.target_kl`; None when neither is set.
    """

    def __init__(self, largest_entropy: float, wanted_kl: float | None) -> None:
        self._largest, self._wanted_kl = largest_entropy, wanted_kl
        self._series: dict[str, deque[float]] = defaultdict(lambda: deque(maxlen=EXPLAINED_UPDATES))
        self._lost: dict[str, Streak] = {}
        self._won = Streak()
        self._silent: dict[str, Streak] = {}
        self._absolute: deque[Mapping[str, float]] = deque(maxlen=DOMINANT_MATCHES)
        self._weighted: frozenset[str] = frozenset()
        self._quiet: dict[str, int] = {}
        self.active: dict[str, Alarm] = {}

    def update(self, facts: UpdateFacts) -> list[Change]:
        """Takes in an update and returns the alarms that began or are over."""
        for name in ("policy/entropy", "value/explained_variance", "policy/approx_kl"):
            if name in facts.metrics:
                self._series[name].append(facts.metrics[name])
        self._count_scores(facts.matches)
        self._count_terms(facts.matches, facts.weights)
        now = {alarm.key: alarm for alarm in self._found(facts.metrics)}
        return list(self._changes(now, facts.step))

    def _found(self, metrics: Mapping[str, float]) -> list[Alarm]:
        total = {term: sum(row.get(term, 0.0) for row in self._absolute) for term in self._weighted}
        return [
            *entropy_collapse(list(self._series["policy/entropy"]), self._largest),
            *value_unexplained(list(self._series["value/explained_variance"])),
            *kl_too_high(list(self._series["policy/approx_kl"]), self._wanted_kl),
            *never_won(self._lost),
            *always_won(self._won),
            *silent_terms(self._silent),
            *dominant_term(total, len(self._absolute)),
            *not_finite(metrics),
        ]

    def _count_scores(self, matches: Sequence[MatchFacts]) -> None:
        for match in matches:
            lost = self._lost.get(match.kind, Streak())
            is_lost, is_won = match.score == 0.0, match.score == 1.0
            self._lost[match.kind] = Streak(lost.matches + 1, lost.updates) if is_lost else Streak()
            self._won = Streak(self._won.matches + 1, self._won.updates) if is_won else Streak()
        for kind in {match.kind for match in matches}:
            self._lost[kind] = self._lost[kind].after_update()
        if matches:
            self._won = self._won.after_update()

    def _count_terms(self, matches: Sequence[MatchFacts], weights: Mapping[str, float]) -> None:
        weighted = frozenset(term for term, weight in weights.items() if weight)
        if weighted != self._weighted:  # another stage, where earlier terms do not count
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
            self._silent = {term: streak.after_update() for term, streak in self._silent.items()}

    def _changes(self, now: Mapping[str, Alarm], step: int) -> Iterator[Change]:
        for key, alarm in now.items():
            if key not in self.active:
                yield Change(alarm, False, step)
            self.active[key] = alarm
            self._quiet[key] = 0
        for key in [key for key in self.active if key not in now]:
            self._quiet[key] += 1
            if self._quiet[key] >= QUIET_UPDATES:
                del self._quiet[key]
                yield Change(self.active.pop(key), True, step)
