"""Drawing opponents: pure functions of counts, ratings and a seed.

Two stages: a category of the mix, then a player within it. A draw is recomputed from a seed and its
ordinal: words 4·ordinal to 4·ordinal + 3 of `numpy.random.PCG64(seed)` give, in this order, the
category, the player, the learner's seat (the top bit) and the match's seed (the upper 63 bits).
PFSP after Vinyals et al. 2019, on a Beta posterior whose prior mean is the win probability that the
ratings predict:

    a = k·p₀ + wins + ½ draws,  b = k(1 − p₀) + losses + ½ draws
    E[(1−p)²] = b(b+1)/((a+b)(a+b+1)),  E[p(1−p)] = ab/((a+b)(a+b+1)),  E[1−p] = b/(a+b)
"""

from __future__ import annotations

import hashlib
import math
import threading
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from league.stats.payoff import Counts

WORDS = 4
"""Of 64 bits that a draw takes."""
VANISHING = 1e-10
"""A sum of weights below this says nothing: the draw is uniform then."""


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A player that may be drawn, oldest first in a list. All from the asking learner's view."""

    name: str
    counts: Counts
    predicted: float  # win probability of the learner over it, by the ratings
    quality: float  # TrueSkill match quality


@dataclass(frozen=True, kw_only=True)
class Policy:
    """How one of several candidates is drawn; the fields are MatchmakerSettings'."""

    rule: str
    power: float = 2.0
    prior_games: float = 10.0
    recent_count: int = 10
    recent_share: float = 0.99


@dataclass(frozen=True)
class Posterior:
    """Beta distribution of a win probability."""

    a: float
    b: float

    def mean_loss_power(self, power: float) -> float:
        """E[(1−p)^power], by gamma functions for any power."""
        b, n = self.b, self.a + self.b
        return math.exp(
            math.lgamma(b + power) + math.lgamma(n) - math.lgamma(b) - math.lgamma(n + power)
        )

    def variance_weight(self) -> float:
        """E[p(1−p)]."""
        n = self.a + self.b
        return self.a * self.b / (n * (n + 1))

    def mean_loss(self) -> float:
        """E[1−p]."""
        return self.b / (self.a + self.b)

    def mean_capped_loss(self) -> float:
        """E[min(½, 1−p)], by the incomplete beta function."""
        from scipy.special import betainc  # half a second to load, and only this rule wants it

        below = self.mean_loss() * betainc(self.b + 1.0, self.a, 0.5)
        return float(below + 0.5 * betainc(self.a, self.b, 0.5))


def posterior(counts: Counts, predicted: float, prior_games: float) -> Posterior:
    """Beta posterior; a draw counts half a win. `predicted` stays off 0 and 1: no Beta is there."""
    predicted = min(max(predicted, 1e-6), 1.0 - 1e-6)
    return Posterior(
        prior_games * predicted + counts.wins + 0.5 * counts.draws,
        prior_games * (1.0 - predicted) + counts.losses + 0.5 * counts.draws,
    )


def candidate_weights(policy: Policy, candidates: Sequence[Candidate]) -> list[float]:
    """Weights of candidates (oldest first), not normalised."""
    by_age = age_weights(policy, len(candidates))
    if by_age is not None:
        return by_age
    if policy.rule == "quality":
        return [candidate.quality for candidate in candidates]
    return [_pfsp_weight(policy, candidate) for candidate in candidates]


def age_weights(policy: Policy, count: int) -> list[float] | None:
    """Weights of candidates (oldest first) under a rule that needs to know no more of them; else
    None.
    """
    if policy.rule == "uniform":
        return [1.0] * count
    if policy.rule == "latest":
        return [0.0] * (count - 1) + [1.0] * min(count, 1)
    if policy.rule == "recent":
        return _recent_weights(policy, count)
    return None


def _recent_weights(policy: Policy, count: int) -> list[float]:
    newest = min(policy.recent_count, count)
    older = count - newest
    if older == 0:
        return [1.0] * count
    return [(1.0 - policy.recent_share) / older] * older + [policy.recent_share / newest] * newest


def _pfsp_weight(policy: Policy, candidate: Candidate) -> float:
    belief = posterior(candidate.counts, candidate.predicted, policy.prior_games)
    if policy.rule == "pfsp_hard":
        return belief.mean_loss_power(policy.power)
    if policy.rule == "pfsp_var":
        return belief.variance_weight()
    if policy.rule == "pfsp_linear":
        return belief.mean_loss()
    if policy.rule == "pfsp_capped":
        return belief.mean_capped_loss()
    raise ValueError(f"{policy.rule!r} is no sampling rule")


def normalised(weights: Sequence[float]) -> list[float]:
    """Probabilities; uniform when the weights vanish or are no numbers."""
    total = math.fsum(weights)
    if not math.isfinite(total) or total < VANISHING:
        return [1.0 / len(weights)] * len(weights)
    return [weight / total for weight in weights]


def adapted_mix(
    mix: Mapping[str, float], met: Mapping[str, Counts], strength: float, prior_games: float
) -> dict[str, float]:
    """The mix with more weight on whom the learner does not beat: `w (1 + strength · E[1−p])`.

    `met` are its counts against the categories that adapt; p has a Beta posterior around ½, so that
    a few matches say little. The others keep their weights.
    """
    return {
        name: weight * (1.0 + strength * posterior(met[name], 0.5, prior_games).mean_loss())
        if name in met
        else weight
        for name, weight in mix.items()
    }


def category_shares(mix: Mapping[str, float], filled: Mapping[str, bool]) -> dict[str, float]:
    """Probability of each category that has players; an empty one's share goes to the others by
    weight.

    Empty when none has players (or those that have weigh 0).
    """
    weights = {name: weight for name, weight in mix.items() if filled.get(name) and weight > 0.0}
    total = math.fsum(weights.values())
    return {name: weight / total for name, weight in weights.items()}


@dataclass(frozen=True)
class Distribution:
    """Names with probabilities, ready to be drawn from with one uniform number."""

    names: tuple[str, ...]
    probabilities: tuple[float, ...]

    @cached_property
    def _bounds(self) -> list[float]:
        return list(accumulate(self.probabilities))

    def pick(self, uniform: float) -> int:
        """Index whose slice of [0, 1) holds `uniform`; never one of probability 0."""
        index = bisect_right(self._bounds, uniform)
        if index < len(self.names):
            return index
        return max(i for i, probability in enumerate(self.probabilities) if probability > 0.0)


class Draw(NamedTuple):
    """What came out of one seed."""

    category: str
    opponent: str
    probability: float
    learner_seat: int
    match_seed: int


def draw(shares: Distribution, within: Mapping[str, Distribution], seed: int) -> Draw:
    """What older logs say: each match was drawn from a generator of its own."""
    rng = np.random.default_rng(seed)
    category_index = shares.pick(rng.random())
    category = shares.names[category_index]
    candidates = within[category]
    index = candidates.pick(rng.random())
    return Draw(
        category=category,
        opponent=candidates.names[index],
        probability=shares.probabilities[category_index] * candidates.probabilities[index],
        learner_seat=int(rng.integers(2)),
        match_seed=int(rng.integers(1 << 63)),
    )


class Stream:
    """Random words of a seed, from any place on. Any thread may ask."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._generator = np.random.PCG64(seed)
        self._next = 0
        self._lock = threading.Lock()

    def words(self, first: int, count: int) -> list[int]:
        """`count` words of 64 bits from word `first` on."""
        with self._lock:
            if first != self._next:
                self._generator.advance((first - self._next) % 2**128)
            self._next = first + count
            return self._generator.random_raw(count).tolist()


def draws(
    shares: Distribution,
    within: Mapping[str, Distribution],
    stream: Stream,
    ordinals: Sequence[int],
    matches_per_draw: int = 1,
) -> Iterator[Draw]:
    """An opponent, seat and match seed for each of consecutive ordinals; each depends on its own
    alone.

    `matches_per_draw` ordinals in a row, from a multiple of it on, have the opponent of their
    first; seat and seed are always each one's own. Everybody's probability is the same at every
    ordinal all the same.
    """
    first = ordinals[0] - ordinals[0] % matches_per_draw
    words = iter(stream.words(WORDS * first, WORDS * (ordinals[-1] + 1 - first)))
    rows = zip(words, words, words, words, strict=True)
    for ordinal, (of_category, of_player, of_seat, of_seed) in enumerate(rows, first):
        if ordinal % matches_per_draw == 0:
            category_index = shares.pick((of_category >> 11) * 2.0**-53)
            category = shares.names[category_index]
            candidates = within[category]
            index = candidates.pick((of_player >> 11) * 2.0**-53)
            probability = shares.probabilities[category_index] * candidates.probabilities[index]
        if ordinal >= ordinals[0]:
            yield Draw(category, candidates.names[index], probability, of_seat >> 63, of_seed >> 1)


def derived_seed(*parts: int) -> int:
    """A 63-bit seed from integers, the same on every machine."""
    text = ":".join(str(part) for part in parts)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1
