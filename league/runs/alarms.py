"""When a training run looks ill: rules over what a learner measures, as pure functions.

Each rule answers with `Alarm`s, of which none is good. They are read by the learner as it runs, by
the terminal view, and from the files of a finished run. Every threshold stands here with its
reason; they are set so that a run that learns is silent.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

ENTROPY_SHARE: Final = 0.03
"""Of the largest possible entropy: with ten keys, each is left or pressed with 99.7 % certainty
there, and sampled play explores nothing. A laptop run that learns ends near 0.28.
"""
ENTROPY_LOW: Final = 0.1
"""Of the same: worth a word to who asks, and no alarm."""
ENTROPY_UPDATES: Final = 10
"""One minibatch proves nothing; ten updates in a row do."""

EXPLAINED_VARIANCE: Final = -0.05
"""A critic that says the same of all states has 0; noise around that is no trouble, to be worse
is.
"""
EXPLAINED_UPDATES: Final = 30
"""At the start it is below 0 for a few updates, until the critic has seen its first returns."""

KL_FACTOR: Final = 3.0
"""Times the wanted KL divergence. The adaptive step size allows 1.5 and comes back by itself."""
KL_LARGEST: Final = 0.1
"""Where none is wanted: PPO at its usual settings moves by 0.01 to 0.03 an update, and a clip
range of 0.2 no longer holds it where the mean is several times that.
"""
KL_UPDATES: Final = 10

LOST_MATCHES: Final = 300
"""All lost, against one kind of opponent: by one that wins 1 % this happens once in 20 times. A
laptop run that learns loses its first hundred.
"""
WON_MATCHES: Final = 500
"""All won, against everybody: nobody is left to learn from, or the game counts wrongly."""
ONE_SIDED_UPDATES: Final = 20
"""In games of a few moves hundreds of matches end in one update, before anything could be
learnt.
"""

SILENT_MATCHES: Final = 500
"""In which a reward term with a weight never was anything but 0: it is broken, or out of reach."""
DOMINANT_SHARE: Final = 0.8
"""Of the absolute reward, in one of several weighted terms: the others steer nothing."""
OUTCOME_TERMS: Final = ("win", "payoff")
"""What a match is about may carry all: that is no shaping gone wrong, and where training is to
end.
"""
DOMINANT_MATCHES: Final = 300

QUIET_UPDATES: Final = 10
"""Updates without its cause after which an alarm is over, so that one on the brink is said once."""


class Alarm(NamedTuple):
    """One trouble. `subject` is whom it is about (an opponent, a term, a metric), "" for the run
    itself.
    """

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
        """What was measured, and what to do."""
        return _SENTENCES[self.kind].format(
            subject=self.subject, value=self.value, percent=self.value * 100
        )


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
    "value_unexplained": "The critic does worse than a constant (explained variance {value:.2f}): rewards "
    "may be too rare or too large, or learner.learning_rate too high.",
    "kl_too_high": "Updates move the policy too far (KL {value:.3f}): lower learner.learning_rate or "
    "learner.n_epochs, or set learner.desired_kl.",
    "never_won": "All of the last {value:.0f} matches against {subject} were lost: give an easier "
    "opponent or denser rewards first.",
    "always_won": "All of the last {value:.0f} matches were won, against everybody: add stronger opponents "
    "to the mix.",
    "term_silent": "The reward term {subject} has a weight, and was 0 in {value:.0f} matches: it is out of "
    "reach or broken.",
    "term_dominates": "The reward term {subject} carries {percent:.0f} % of the absolute reward: lower its "
    "weight in game.reward_weights, or raise the others'.",
    "not_finite": "The metric {subject} is not a finite number: the run may be broken.",
}
KINDS: Final = tuple(_TITLES)


def of_metrics(metrics: Mapping[str, float]) -> list[Alarm]:
    """The alarms that a heartbeat's metrics carry."""
    found = []
    for name, value in metrics.items():
        kind, _, subject = name.removeprefix(PREFIX).partition("/")
        if name.startswith(PREFIX) and kind in _TITLES:
            found.append(Alarm(kind, subject, value))
    return found


def largest_entropy(action_kind: str, action_size: int) -> float:
    """Of play that knows nothing, in nats: of so many free keys, or of one choice among all.

    Where some choices are forbidden the true largest value is smaller.
    """
    return math.log(action_size) if action_kind == "choice" else action_size * math.log(2.0)


# -- rules: the newest value last
# ----------------------------------------------------------------------


def entropy_collapse(entropies: Sequence[float], largest: float) -> list[Alarm]:
    """`largest` is the entropy of play that knows nothing, see `largest_entropy`."""
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
    """How long nothing else has happened."""

    matches: int = 0
    updates: int = 0


def never_won(lost: Mapping[str, Streak]) -> list[Alarm]:
    """`lost` holds, by kind of opponent, the matches since one was not lost."""
    return [
        Alarm("never_won", kind, float(streak.matches))
        for kind, streak in lost.items()
        if streak.matches >= LOST_MATCHES and streak.updates >= ONE_SIDED_UPDATES
    ]


def always_won(won: Streak) -> list[Alarm]:
    """`won` are the matches, of all kinds, since one was not won."""
    if won.matches < WON_MATCHES or won.updates < ONE_SIDED_UPDATES:
        return []
    return [Alarm("always_won", "", float(won.matches))]


def silent_terms(silent: Mapping[str, Streak]) -> list[Alarm]:
    """`silent` holds, by reward term with a weight, the matches since it was other than 0."""
    return [
        Alarm("term_silent", term, float(streak.matches))
        for term, streak in silent.items()
        if streak.matches >= SILENT_MATCHES and streak.updates >= ONE_SIDED_UPDATES
    ]


def dominant_term(absolute: Mapping[str, float], matches: int) -> list[Alarm]:
    """`absolute` are the absolute weighted sums of the weighted terms over the last `matches`.

    A reward of one term alone is a choice, and no trouble; one that the outcome carries is none
    either.
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
    """Of all metrics of an update."""
    return [
        Alarm("not_finite", name, value)
        for name, value in metrics.items()
        if not math.isfinite(value)
    ]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
