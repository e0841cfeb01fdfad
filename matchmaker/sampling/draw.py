"""Computes the probabilities of a learner's opponents, records them in the log, and draws
opponents.

A draw has two stages: a category of the mix, then a player of this category. Given the
probabilities, a draw depends only on a seed and the match's ordinal (its number among all assigned
matches). The random words 4·ordinal to 4·ordinal + 3 of `numpy.random.PCG64(seed)` give, in this
order, the category, the player, the learner's seat (the top bit) and the match's seed (the upper 63
bits).
"""

from __future__ import annotations

import hashlib
import json
import threading
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from league.players import Book, Player
from league.stats.ratings import RatingTable
from league.status import MixChange
from matchmaker.sampling.candidates import Pool, Slice, candidates_of, slices_of
from matchmaker.sampling.mixes import normalised, weights_of
from matchmaker.settings import MatchmakerSettings
from matchmaker.state.analysis import NO_ANALYSIS, Analysis
from matchmaker.state.exploiters import NO_EXPLOITERS, ExploiterState

WORDS = 4
"""Number of random 64-bit words that a draw uses."""
_DIGITS = 9
"""Decimals of probabilities. Few decimals keep the log's records short."""


@dataclass(frozen=True)
class Distribution:
    """Holds names with probabilities. A uniform number draws a name."""

    names: tuple[str, ...]
    probabilities: tuple[float, ...]

    @cached_property
    def _bounds(self) -> list[float]:
        return list(accumulate(self.probabilities))

    def as_dict(self) -> dict[str, float]:
        """Returns the probability of each name."""
        return dict(zip(self.names, self.probabilities, strict=True))

    def pick(self, uniform: float) -> int:
        """Returns the index of the name that the number `uniform` in [0, 1) draws. A name of
        probability 0 is never drawn.
        """
        index = bisect_right(self._bounds, uniform)
        if index < len(self.names):
            return index
        return max(i for i, probability in enumerate(self.probabilities) if probability > 0.0)


@dataclass(frozen=True)
class DrawTable:
    """Holds the probabilities from which opponents are drawn. `body_json` is the table's record in
    the log.
    """

    shares: Distribution
    within: dict[str, Distribution]
    body_json: str
    matches_per_draw: int = 1


def draw_table(
    settings: MatchmakerSettings,
    learner: Player,
    mix_name: str,
    players: Mapping[str, Player],
    tables: Mapping[Book, RatingTable],
    exploiters: ExploiterState = NO_EXPLOITERS,
    analysis: Analysis = NO_ANALYSIS,
    change: MixChange | None = None,
) -> DrawTable:
    """Computes the probabilities of a learner's opponents. The result depends only on the
    arguments.

    Args:
        settings: the matchmaker's settings.
        learner: the learner.
        mix_name: name of the mix.
        players: all players by name, in order of registration.
        tables: ratings and payoffs of each book.
        exploiters: generations and gates.
        analysis: the league's Nash mixture.
        change: the operator's newest change of the mix, for the record.

    Returns:
        The table.

    Raises:
        NotFound: there is no such mix.
        ConfigError: the mix names a bot that is held out for the evaluator.
    """
    pool = Pool(settings, learner, players, tables, exploiters, analysis)
    parts: dict[str, list[Slice]] = {}
    for part in slices_of(pool, mix_name):
        parts.setdefault(part.category, []).append(part)
    shares = {category: sum(part.weight for part in slices) for category, slices in parts.items()}
    within = {category: _probabilities(slices, pool) for category, slices in parts.items()}
    body: dict[str, Any] = {
        "player": learner.name,
        "mix": mix_name,
        "rule": settings.within_snapshots,
        "shares": shares,
        "candidates": {category: list(chances.items()) for category, chances in within.items()},
    }
    if pool.has_role_rules:
        body["roles"] = settings.roles
    if pool.has_role_rules or settings.within_snapshots == "nash":
        body["rules"] = {category: slices[0].rule for category, slices in parts.items()}
    if settings.matches_per_draw > 1:
        body["matches_per_draw"] = settings.matches_per_draw
    if change is not None:
        body["changed"] = {"event": change.number, "at": change.at, "by": change.by}
    return _table(body, json.dumps(body, separators=(",", ":")))


def draw_table_of(body_json: str) -> DrawTable:
    """Restores a table from its record in the log, so that its draws can be repeated."""
    return _table(json.loads(body_json), body_json)


def _table(body: dict[str, Any], body_json: str) -> DrawTable:
    within = {}
    for category, rows in body["candidates"].items():
        names, probabilities = zip(*rows, strict=True)
        within[category] = Distribution(names, probabilities)
    shares = Distribution(tuple(body["shares"]), tuple(body["shares"].values()))
    return DrawTable(shares, within, body_json, body.get("matches_per_draw", 1))


def _probabilities(slices: Sequence[Slice], pool: Pool) -> dict[str, float]:
    """Returns the probabilities of a category's players. They are summed over the category's
    slices, each of which has a share of the category and its own rule.
    """
    total = sum(part.weight for part in slices)
    mixed: dict[str, float] = {}
    for part in slices:
        candidates = candidates_of(part.players, pool)
        weights_N = weights_of(part.rule, candidates)
        shares_N = (normalised(weights_N) * (part.weight / total)).round(_DIGITS)
        shares = zip(candidates.names, shares_N.tolist(), strict=True)
        if len(slices) == 1:
            return dict(shares)
        for name, share in shares:
            mixed[name] = mixed.get(name, 0.0) + share
    return mixed


class Stream:
    """Generates the random words of a seed, from any position. Several threads may use it."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._generator = np.random.PCG64(seed)
        self._next = 0
        self._lock = threading.Lock()

    def words(self, first: int, count: int) -> list[int]:
        """Returns `count` words of 64 bits, starting at word `first`."""
        with self._lock:
            if first != self._next:
                self._generator.advance((first - self._next) % 2**128)
            self._next = first + count
            return self._generator.random_raw(count).tolist()


class Draw(NamedTuple):
    """Describes a match whose opponent was drawn."""

    category: str
    opponent: str
    probability: float
    learner_seat: int
    match_seed: int


def draws(
    shares: Distribution,
    within: Mapping[str, Distribution],
    stream: Stream,
    ordinals: Sequence[int],
    matches_per_draw: int = 1,
) -> Iterator[Draw]:
    """Draws an opponent, the learner's seat and a seed for each of several matches.

    Args:
        ordinals: ordinals of the matches, without a gap.
        matches_per_draw: number of consecutive matches that share an opponent. A new opponent is
            drawn at each ordinal that is a multiple of this number.

    Yields:
        A draw for each match, in order.
    """
    first = ordinals[0] - ordinals[0] % matches_per_draw
    words = iter(stream.words(WORDS * first, WORDS * (ordinals[-1] + 1 - first)))
    rows = zip(words, words, words, words, strict=True)
    for ordinal, (for_category, for_player, for_seat, for_seed) in enumerate(rows, first):
        if ordinal % matches_per_draw == 0:
            category_index = shares.pick((for_category >> 11) * 2.0**-53)
            category = shares.names[category_index]
            candidates = within[category]
            index = candidates.pick((for_player >> 11) * 2.0**-53)
            probability = shares.probabilities[category_index] * candidates.probabilities[index]
        if ordinal >= ordinals[0]:
            yield Draw(
                category, candidates.names[index], probability, for_seat >> 63, for_seed >> 1
            )


def derived_seed(*parts: int) -> int:
    """Derives a 63-bit seed from integers, in the same way on every machine."""
    text = ":".join(str(part) for part in parts)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1
