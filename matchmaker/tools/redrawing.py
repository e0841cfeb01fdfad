"""Draws made again from the log, for `fsck`: what the seeds give, and whether the weights were
the log's.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

from league.errors import LeagueError
from matchmaker.sampling.draw import DrawTable, Stream, draw_table_of, draws
from matchmaker.settings import POLICY_FIELDS, MatchmakerSettings
from matchmaker.state.past import DRAWN, Past, evenly
from matchmaker.store.base import Reader

SAMPLED = 200
"""Draws whose weights are found again. Each takes milliseconds in a league of thousands, and a
long run makes a hundred thousand.
"""
_MATCHES = f"""
SELECT a.match_id, a.draw, a.draw_seed, a.ordinal, a.category, a.learner_seat, a.seat0, a.seat1, a.seed,
       a.probability FROM assignments a WHERE {DRAWN} ORDER BY a.ordinal
"""
_FIRST_MATCHES = f"""
SELECT a.draw, a.match_id, min(a.ordinal) FROM assignments a WHERE {DRAWN} GROUP BY a.draw ORDER BY a.draw
"""


def not_redrawn(reader: Reader) -> Iterator[str]:
    """Ids of drawn matches that drawing again from the log does not give."""
    found: dict[int, tuple[DrawTable, Stream | None]] = {}
    streams: dict[int, Stream] = {}
    for (
        match_id,
        number,
        seed,
        ordinal,
        category,
        seat,
        seat0,
        seat1,
        match_seed,
        odds,
    ) in reader.select(_MATCHES):
        if number not in found:
            row = reader.draw(number)
            assert row is not None
            stream = (
                None if row.stream is None else streams.setdefault(row.stream, Stream(row.stream))
            )
            found[number] = draw_table_of(row.body_json), stream
        table, stream = found[number]
        assert stream is not None, seed
        (again,) = draws(table.shares, table.within, stream, [ordinal], table.matches_per_draw)
        opponent = (seat1, seat0)[seat]
        drawn = (
            again.category,
            again.opponent,
            again.learner_seat,
            again.match_seed,
            again.probability,
        )
        if drawn != (category, opponent, seat, match_seed, odds):
            yield match_id


def wrong_weights(reader: Reader, most: int = SAMPLED) -> Iterator[str]:
    """The first match of each draw whose shares and weights are not those that the log gives.

    Of `most` draws, evenly spread over the log: found anew from what it held there, by the policy
    that each names. Draws by a policy of an older version, which does not say all that they depend
    on, are passed over.
    """
    first = {number: match_id for number, match_id, _ in reader.select(_FIRST_MATCHES)}
    policies = {
        key: json.loads(text) for key, text in reader.select("SELECT hash, body_json FROM policies")
    }
    past = Past(reader)
    for number in evenly(list(first), most):
        row = reader.draw(number)
        assert row is not None
        policy = policies[row.policy_hash]
        if not policy.keys() >= set(POLICY_FIELDS):
            continue
        past.move_to(row)
        if not _is_drawn_again(past, MatchmakerSettings().under(policy), json.loads(row.body_json)):
            yield first[number]


def _is_drawn_again(past: Past, settings: MatchmakerSettings, drawn: dict[str, Any]) -> bool:
    try:
        return _alike(json.loads(past.draw_table(settings, drawn).body_json), drawn)
    except (KeyError, LeagueError):  # it names a learner, or a mix, that was not there
        return False


def _alike(one: Any, other: Any) -> bool:
    """Equal, but for the order of categories, which a policy does not keep, and for the last
    digits of numbers: another machine's arithmetic may round otherwise.
    """
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_alike(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_alike, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-15)
    return bool(one == other)
