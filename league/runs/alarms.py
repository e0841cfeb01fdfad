"""Defines alarms: rules that detect in a learner's measurements that its training goes wrong.

The learner raises alarms as it runs, and the terminal view shows them. `bin/league doctor` finds
them in the files of a finished run. The thresholds are chosen so that a healthy run raises no
alarms.
"""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Final, NamedTuple

ENTROPY_SHARE: Final = 0.03
"""An entropy below this share of the largest possible entropy raises an alarm. With ten keys, the
policy is then 99.7 % certain of each key, and sampled play explores nothing. A run of the preset
`laptop` that learns ends near 0.28.
"""
ENTROPY_LOW: Final = 0.1
"""A lower share gets a warning from `bin/league doctor`, although it raises no alarm."""
ENTROPY_UPDATES: Final = 10
"""The alarm begins when the entropy was this low in this many updates in a row. A single update
proves nothing.
"""
EXPLAINED_VARIANCE: Final = -0.05
"""A lower explained variance raises an alarm. A critic that always predicts the same value has 0,
so the alarm means that the critic is worse than a constant.
"""
EXPLAINED_UPDATES: Final = 30
"""Number of latest updates over which the explained variance is averaged. A single update says too
little: the first values are below 0, until the critic has seen its first returns.
"""
KL_FACTOR: Final = 3.0
"""The limit of the KL divergence, as a multiple of `learner.desired_kl`. The adaptive learning rate
corrects a divergence above 1.5 times `learner.desired_kl` by itself.
"""
KL_LARGEST: Final = 0.1
"""The limit of the KL divergence if `learner.desired_kl` is not set. With the usual settings, PPO
moves the policy by 0.01 to 0.03 per update. If the mean is several times as large, a clip range of
0.2 no longer limits the policy.
"""
KL_UPDATES: Final = 10
KL_BROKE: Final = 1.0
"""A single update with a larger KL divergence breaks the policy: it leaves the new policy hardly
anything in common with the old one. A low entropy and a critic without gradients follow from it.
"""
EXPLAINS_AGAIN: Final = 0.05
"""A broken policy has recovered when the explained variance was this high in the mean of
`KL_UPDATES` updates, and the entropy has not collapsed.
"""
STREAKS: Final = {"never_won": 300, "always_won": 500, "term_silent": 500}
"""Number of matches in a row after which each of these alarms begins.

- `never_won`: all matches were lost. An agent that wins 1 % of its matches loses 300 in a row with
  a probability of 5 %. A run of the preset `laptop` loses its first hundred matches, although it
  learns.
- `always_won`: all matches were won. There is nothing left to learn, or the game counts wrongly.
- `term_silent`: a reward term with a weight was always 0. The term is broken or out of reach.
"""
STREAK_UPDATES: Final = 20
"""Number of updates that a streak of `STREAKS` must span. In a game of a few moves, hundreds of
matches end in a single update, before the agent could learn anything.
"""
DOMINANT_SHARE: Final = 0.8
"""A reward term with more than this share of the absolute reward raises an alarm, because the other
terms then have hardly any effect.
"""
OUTCOME_TERMS: Final = ("win", "payoff")
"""Reward terms that may make up the whole reward, because they are the goal of the game."""
DOMINANT_MATCHES: Final = 300
QUIET_UPDATES: Final = 10
"""An alarm ends after this many updates without its cause. A shorter time would make it flicker."""
PREFIX: Final = "alarm/"
CLIPPED: Final = "clipped/"
"""Prefix of metrics that count clipping: how often a number of the observation was clipped in an
update.
"""

KINDS: Final = {
    "entropy_collapse": (
        "entropy collapsed",
        "The entropy has collapsed to {percent:.1f} % of its largest value: raise "
        "learner.ent_coef, and start from a snapshot of before it (--from).",
    ),
    "policy_broke": (
        "policy broke",
        "An update broke the policy (KL {value:.3g}), and it has not recovered: lower "
        "learner.learning_rate tenfold, and start a new run, or continue from a snapshot of before "
        "it (--from) if there is one.",
    ),
    "value_unexplained": (
        "critic explains nothing",
        "The critic does worse than a constant (explained variance {value:.2f}): rewards may be "
        "too rare or too large, or learner.learning_rate too high.",
    ),
    "kl_too_high": (
        "KL too high",
        "Updates move the policy too far (KL {value:.3f}): lower learner.learning_rate or "
        "learner.n_epochs, or set learner.desired_kl.",
    ),
    "never_won": (
        "{subject} always wins",
        "All of the last {value:.0f} matches against {subject} were lost: give an easier opponent "
        "or denser rewards first.",
    ),
    "always_won": (
        "every match is won",
        "All of the last {value:.0f} matches were won, against all opponents: add stronger "
        "opponents to the mix.",
    ),
    "term_silent": (
        "{subject} never fires",
        "The reward term {subject} has a weight, and was 0 in {value:.0f} matches: it is out of "
        "reach or broken.",
    ),
    "term_dominates": (
        "{subject} is the whole reward",
        "The reward term {subject} carries {percent:.0f} % of the absolute reward: lower its "
        "weight in game.reward_weights, or raise the others'.",
    ),
    "clipped": (
        "number {parts[1]} of {parts[0]} is clipped",
        "Agent {parts[0]} observed values outside {parts[2]} to {parts[3]}, the bounds of number "
        "{parts[1]}, {value:.0f} times in an update, and learns from clipped ones: correct the "
        "bounds of its observation_space.",
    ),
    "not_finite": (
        "{subject} is not finite",
        "The metric {subject} is not a finite number: the run may be broken.",
    ),
}
"""Title and sentence for each kind of alarm."""


class Alarm(NamedTuple):
    """Describes a problem of a training run.

    `subject` says where the problem is. It is an opponent, a reward term, a metric, the text
    AGENT/INDEX/LOW/HIGH for a number of the observation, or "" for the run as a whole.
    """

    kind: str
    subject: str
    value: float

    @property
    def key(self) -> str:
        """The name of the metric by which a heartbeat reports the alarm: alarm/KIND or
        alarm/KIND/SUBJECT.
        """
        return PREFIX + "/".join(part for part in (self.kind, self.subject) if part)

    @property
    def title(self) -> str:
        """A few words for the alarm."""
        return self._filled(KINDS[self.kind][0])

    @property
    def sentence(self) -> str:
        """A sentence with the measurement and with advice."""
        return self._filled(KINDS[self.kind][1])

    def _filled(self, text: str) -> str:
        parts = [*self.subject.split("/"), "", "", ""]  # a subject may come over the network
        percent = self.value * 100
        return text.format(subject=self.subject, parts=parts, value=self.value, percent=percent)


def of_metrics(metrics: Mapping[str, float]) -> list[Alarm]:
    """Returns the alarms in a heartbeat's metrics."""
    alarms = []
    for name, value in metrics.items():
        kind, _, subject = name.removeprefix(PREFIX).partition("/")
        if name.startswith(PREFIX) and kind in KINDS:
            alarms.append(Alarm(kind, subject, value))
    return alarms


def largest_entropy(action_kind: str, action_size: int) -> float:
    """Returns the entropy of uniform play. If some choices are forbidden, it is an upper bound.

    Args:
        action_kind: ``choice`` for a single choice among all actions, otherwise free keys.
        action_size: how many actions or keys there are.

    Returns:
        The entropy in nats.
    """
    return math.log(action_size) if action_kind == "choice" else action_size * math.log(2.0)


def largest_share(absolute: Mapping[str, float]) -> tuple[str, float]:
    """Returns the term with the largest absolute sum, and this sum's share of all absolute sums.
    The share is 0 if all sums are 0.
    """
    total = sum(absolute.values())
    term = max(absolute, key=lambda name: absolute[name], default="none")
    return term, absolute[term] / total if total > 0 else 0.0


class MatchFacts(NamedTuple):
    """Describes a finished match. `terms` are the weighted reward terms, summed over the match."""

    kind: str  # of opponent
    score: float  # of the learner: 1 win, 0.5 draw, 0 loss
    terms: Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class UpdateFacts:
    """Keeps the measurements of an update. `weights` are the weights that the reward terms had in
    the update's rollout.
    """

    step: int
    metrics: Mapping[str, float]
    matches: Sequence[MatchFacts] = ()
    weights: Mapping[str, float] = field(default_factory=dict)


class Change(NamedTuple):
    """Reports that an alarm began at `step`, or is over."""

    alarm: Alarm
    is_over: bool
    step: int

    @property
    def sentence(self) -> str:
        return f"No longer: {self.alarm.title}." if self.is_over else self.alarm.sentence


class AlarmWatch:
    """Follows a run and reports each alarm once when it begins and once when it ends.

    Args:
        largest_entropy: the entropy of uniform play, in nats.
        wanted_kl: `learner.desired_kl`.
        broke: KL divergence of an earlier update that broke the policy, or 0.

    Attributes:
        active: the alarms that are on, by key.
        broke: as above, for as long as the policy has not recovered.
    """

    def __init__(self, largest_entropy: float, wanted_kl: float | None, broke: float = 0.0) -> None:
        self._largest = largest_entropy
        self._most_kl = KL_LARGEST if wanted_kl is None else KL_FACTOR * wanted_kl
        self._series: dict[str, deque[float]] = defaultdict(lambda: deque(maxlen=EXPLAINED_UPDATES))
        # by kind of alarm and subject: the length of the streak in matches and in updates
        self._streaks: dict[tuple[str, str], tuple[int, int]] = {}
        self._absolute: deque[Mapping[str, float]] = deque(maxlen=DOMINANT_MATCHES)
        self._weighted: frozenset[str] = frozenset()
        self._quiet: dict[str, int] = {}
        self.active: dict[str, Alarm] = {}
        self.broke = broke

    def update(self, facts: UpdateFacts) -> list[Change]:
        """Takes in an update and returns the alarms that began or are over."""
        for name in ("policy/entropy", "value/explained_variance", "policy/approx_kl"):
            if name in facts.metrics:
                self._series[name].append(facts.metrics[name])
        self._judge_break(facts.metrics.get("policy/approx_kl", 0.0))
        self._count(facts.matches, facts.weights)
        now = {alarm.key: alarm for alarm in self._found(facts.metrics)}
        return list(self._changes(now, facts.step))

    def _judge_break(self, divergence: float) -> None:
        if divergence > KL_BROKE and f"{PREFIX}entropy_collapse" not in self.active:
            self.broke = max(self.broke, divergence)
            self._series.clear()  # the measurements of the policy before it
            return
        explained = self._recent("value/explained_variance", KL_UPDATES)
        if explained and fmean(explained) > EXPLAINS_AGAIN and not self._collapsed():
            self.broke = 0.0

    def _collapsed(self) -> list[float]:
        """Returns the newest entropies if all of them are too low, otherwise []."""
        entropies = self._recent("policy/entropy", ENTROPY_UPDATES)
        return entropies if max(entropies, default=math.inf) < ENTROPY_SHARE * self._largest else []

    def _count(self, matches: Sequence[MatchFacts], weights: Mapping[str, float]) -> None:
        weighted = frozenset(term for term, weight in weights.items() if weight)
        if weighted != self._weighted:  # another stage, where earlier terms do not count
            self._absolute.clear()
            for term in self._weighted - weighted:
                self._streaks.pop(("term_silent", term), None)
            self._weighted = weighted
        counted: set[tuple[str, str]] = set()
        for match in matches:
            absolute = {term: abs(match.terms.get(term, 0.0)) for term in weighted}
            self._absolute.append(absolute)
            holds = {("term_silent", term): value == 0.0 for term, value in absolute.items()}
            holds["never_won", match.kind] = match.score == 0.0
            holds["always_won", ""] = match.score == 1.0
            for key, is_so in holds.items():
                count, updates = self._streaks.get(key, (0, 0))
                self._streaks[key] = (count + 1, updates) if is_so else (0, 0)
            counted |= holds.keys()
        for key in counted:
            count, updates = self._streaks[key]
            self._streaks[key] = (count, updates + bool(count))

    def _recent(self, metric: str, updates: int) -> list[float]:
        """Returns a metric's last `updates` values, or [] while it has fewer values."""
        values = list(self._series[metric])[-updates:]
        return values if len(values) == updates else []

    def _found(self, metrics: Mapping[str, float]) -> Iterator[Alarm]:
        if self.broke:
            yield Alarm("policy_broke", "", self.broke)
        elif entropies := self._collapsed():
            yield Alarm("entropy_collapse", "", fmean(entropies) / self._largest)
        explained = self._recent("value/explained_variance", EXPLAINED_UPDATES)
        if explained and fmean(explained) < EXPLAINED_VARIANCE:
            yield Alarm("value_unexplained", "", fmean(explained))
        divergences = self._recent("policy/approx_kl", KL_UPDATES)
        if divergences and fmean(divergences) > self._most_kl:
            yield Alarm("kl_too_high", "", fmean(divergences))
        for (kind, subject), (count, updates) in self._streaks.items():
            if count >= STREAKS[kind] and updates >= STREAK_UPDATES:
                yield Alarm(kind, subject, float(count))
        # if a single term has a weight, the user chose this, and an outcome term may dominate
        if len(self._weighted) > 1 and len(self._absolute) == DOMINANT_MATCHES:
            totals = {term: sum(row[term] for row in self._absolute) for term in self._weighted}
            term, share = largest_share(totals)
            if share > DOMINANT_SHARE and term not in OUTCOME_TERMS:
                yield Alarm("term_dominates", term, share)
        for name, value in metrics.items():
            if name.startswith(CLIPPED):
                yield Alarm("clipped", name.removeprefix(CLIPPED), value)
            if not math.isfinite(value):
                yield Alarm("not_finite", name, value)

    def _changes(self, now: Mapping[str, Alarm], step: int) -> Iterator[Change]:
        for key, alarm in now.items():
            if key not in self.active:
                yield Change(alarm, False, step)
            self.active[key] = alarm
            self._quiet[key] = 0
        for key in sorted(self.active.keys() - now.keys()):
            self._quiet[key] += 1
            if self._quiet[key] >= QUIET_UPDATES:
                del self._quiet[key]
                yield Change(self.active.pop(key), True, step)
