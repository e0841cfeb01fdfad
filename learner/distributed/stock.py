"""What ended on every rank since the last update, told to the one that writes the files."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from league.players import Assignment
from league.rpc.convert import from_message, to_message
from league.v1 import types_pb2
from learner.distributed.ranks import Ranks, Values
from learner.rollout.finished import FinishedMatch


def of_all_ranks(
    ranks: Ranks, matches: Sequence[FinishedMatch], frames: int
) -> tuple[Sequence[FinishedMatch], int]:
    """The matches that ended on all ranks, in their order, and the frames that all have played.

    On the leading rank; the others get none and 0.
    """
    if ranks.count == 1:
        return matches, frames
    told = ranks.gather({"matches": [_plain(match) for match in matches], "frames": frames})
    return (
        [_match(values) for one in told for values in one["matches"]],
        sum(one["frames"] for one in told),
    )


def _plain(match: FinishedMatch) -> Values:
    return {
        **vars(match),
        "assignment": to_message(match.assignment).SerializeToString().hex(),
        "reward_terms": match.reward_terms.tolist(),
    }


def _match(values: Values) -> FinishedMatch:
    message = types_pb2.Assignment.FromString(bytes.fromhex(values["assignment"]))
    return FinishedMatch(
        **{
            **values,
            "assignment": from_message(Assignment, message),
            "reward_terms": np.array(values["reward_terms"], np.float64),
        }
    )
