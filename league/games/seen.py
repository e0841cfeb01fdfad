"""Plays games in a host (`hosted.py`), such as worker processes or a server. After each frame the
host reports the seats' views, legal choices and rewards.

Shape suffixes: N matches, R rows, 2 seats, A action width, O observation width, V width of a
seat's view, K reward terms, S stats.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from league.games.base import CHOICE, EXTERNAL, BotSpec, GameSpec
from league.games.choice_game import mixed
from league.games.hosted import Host, HostedGame

WIN = "win"
MOST_NUMBERS, MOST_NAMED = 65_536, 8
CLOSE = 1e-6
"""Smallest excess over a number's bounds that counts as clipping. A smaller excess may be a
rounding error. The excess is relative to the number's absolute value plus the width of its bounds.
"""
_MOVES, _EARNED = -2, -1
"""Indices of the last two stats of every `SeenGame`."""
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def seen_type(view_size: int, action_size: int, terms: int = 1) -> np.dtype[np.void]:
    """Returns the dtype of a row's record: views, legal choices and results of the last frame."""
    return np.dtype(
        [
            ("views", np.float32, (2, view_size)),
            ("acting", np.bool_, (2,)),
            ("legal", np.bool_, (2, action_size)),
            ("rewards", np.float64, (2, terms)),
            ("illegal", np.bool_, (2,)),
            ("ended", np.bool_),
            ("lead", np.int8),  # result of an ended match: 1 if seat 0 won, -1 if seat 1 won
        ]
    )


def seen_spec(*, view_size: int, terms: Sequence[str], max_frames: int, **rest: Any) -> GameSpec:
    """Returns the spec of a `SeenGame`.

    Args:
        view_size: V.
        terms: the reward terms before `win`.
        max_frames: the time limit.
        rest: further fields of the spec.
    """
    action_names = rest["action_names"]
    # the seat (2), whether it has to act (1), and its legal choices
    own_size = 3 + (len(action_names) if rest["action_kind"] == CHOICE else 0)
    random = BotSpec(name="random", summary="makes any legal choice with equal probability")
    return GameSpec(
        observation_size=own_size + view_size,
        own_size=own_size,
        action_size=len(action_names),
        reward_terms=(*terms, WIN),
        bots=(random,),
        max_frames=max_frames,
        **rest,
    )


def observed(seen_R: NDArray[np.void], is_choice: bool) -> NDArray[np.float32]:
    """Returns the observations for records: the seat, whether it has to act, legal choices, view.

    Args:
        seen_R: records of `seen_type`.
        is_choice: whether it is a game of choices.

    Returns:
        float32[R, 2, O].
    """
    seats_R22 = np.broadcast_to(np.eye(2), (len(seen_R), 2, 2))
    legal = [seen_R["legal"]] if is_choice else []
    parts = [seats_R22, seen_R["acting"][:, :, None], *legal, seen_R["views"]]
    return np.concatenate(parts, 2, dtype=np.float32)


def clip(views_R2V: NDArray[np.float32], clipped: Counter[str]) -> None:
    """Clips numbers to [-1, 1] in place.

    Args:
        views_R2V: the views.
        clipped: the counts, which the function increases. `BatchedGame.clipped` describes the keys.
    """
    outside_2V = (np.abs(views_R2V) > 1.0 + CLOSE).sum(0)
    for seat, index in np.argwhere(outside_2V)[:MOST_NAMED].tolist():
        clipped[f"seat_{seat}/{index}/-1/1"] += int(outside_2V[seat, index])
    np.clip(views_R2V, -1.0, 1.0, out=views_R2V)


class SeenGame(HostedGame):
    """Plays N matches in a host that answers with records of `seen_type`.

    The observation of a seat has two parts (`GameSpec`). The own part begins with the number of the
    seat, one-hot (2 numbers), and with whether the seat has to act (1 number). In games of choices
    the legal choices follow (A numbers). The rest of the observation is the seat's view. A seat
    that waits has a single legal choice, the first.

    Args:
        spec: made by `seen_spec`. The last two entries of `spec.stats` are the number of moves and
            the sum of rewards.
        num_matches: matches that step together.
        host: plays the matches.
    """

    def __init__(self, spec: GameSpec, num_matches: int, host: Host) -> None:
        view_size, terms = spec.observation_size - spec.own_size, len(spec.reward_terms) - 1
        super().__init__(spec, num_matches, host, seen_type(view_size, spec.action_size, terms))
        self.totals_N2 = np.zeros((num_matches, 2))
        self._seen_N["legal"][:, :, 0] = True
        self._nothing = self._seen_N[0].copy()
        self.show(np.arange(num_matches))
        # `end` writes only the views of final observations. Their own parts show that no seat acts.
        self.final_observations_N2O[:] = self.observations_N2O

    def begin(self, rows: NDArray[np.intp]) -> None:
        """Begins matches in `rows` with the seeds in `seeds_N`. A match that can't begin fails in
        the next step.
        """
        self.totals_N2[rows] = 0.0
        super().begin(rows)

    def show(self, rows: NDArray[np.intp]) -> None:
        """Writes the observations and legal choices of `rows`."""
        seen_R, is_choice = self._seen_N[rows], self.legal_N2A is not None
        self.observations_N2O[rows] = observed(seen_R, is_choice)
        if self.legal_N2A is not None:
            self.legal_N2A[rows] = seen_R["legal"]

    def play_frame(self, actions_N2A: NDArray[np.uint8]) -> None:
        """Draws the bots' actions and plays a frame."""
        bots_N2, chosen_N2A = self.bots_N2 != EXTERNAL, actions_N2A.copy()
        if bots_N2.any():
            draws_N2 = draws(self.seeds_N, self.frames_N)
            random_N2A = (
                random_keys(draws_N2, self.spec.action_size)
                if self.legal_N2A is None
                else random_choices(draws_N2, self.legal_N2A)
            )
            chosen_N2A[bots_N2] = random_N2A[bots_N2]
        super().play_frame(chosen_N2A)

    def count(self, rows: NDArray[np.intp]) -> None:
        """Adds the rewards and stats of the last frame."""
        rewards_R2K = self._seen_N["rewards"][rows]
        earned_R2 = rewards_R2K.sum(-1)
        self.reward_terms_N2K[rows, :, :-1] += rewards_R2K
        self.totals_N2[rows] += earned_R2
        self.stats_N2S[rows, :, _MOVES] += self.observations_N2O[rows, :, 2]  # who acted
        self.stats_N2S[rows, :, _EARNED] += earned_R2

    def end(self, rows: NDArray[np.intp]) -> NDArray[np.float64]:
        """Writes the final views, and returns the results that the host reports."""
        seen_R = self._seen_N[rows]
        self.final_observations_N2O[rows, :, self.spec.own_size :] = seen_R["views"]
        return seen_R["lead"].astype(np.float64)

    def own_state(self) -> dict[str, NDArray]:
        """Returns the seeds, and the sum of rewards so far."""
        return super().own_state() | {"totals_N2": self.totals_N2}

    def text(self, match: int) -> str:
        """Returns a match as text."""
        return str(self.ask("text", match))

    def frame(self, match: int) -> dict[str, Any]:
        """Returns a match's current state, including its text."""
        text = self._broken.get(match, "")
        if not text and self.host.is_started:
            text = self.text(match)
        acting_2 = self.observations_N2O[match, :, 2]
        return {
            "game": self.spec.name,
            "frame": int(self.frames_N[match]),
            "max_frames": self.spec.max_frames,
            "seats": [
                {"acts": bool(acts), "payoff": float(paid)}
                for acts, paid in zip(acting_2, self.totals_N2[match], strict=True)
            ],
            "text": text,
        }


def match_seed(seed: int) -> int:
    """Returns the seed that the host gets. It is below 2^31, as NumPy's older generators need."""
    return int(mixed(np.array([seed], np.uint64))[0] >> np.uint64(33))


def draws(seeds_N: NDArray[np.uint64], frames_N: NDArray[np.int32]) -> NDArray[np.uint64]:
    """Derives 64 random bits for each seat by hashing the match's seed and frame.

    The draws of a match don't depend on other matches, and a saved match needs no random state.

    Args:
        seeds_N: uint64, the matches' seeds.
        frames_N: int32, the frames played.

    Returns:
        uint64[N, 2].
    """
    moments_N2 = 2 * frames_N.astype(np.uint64)[:, None] + np.array([[1, 2]], np.uint64)
    return mixed(mixed(seeds_N)[:, None] + moments_N2 * _GOLDEN)


def random_choices(draws_N2: NDArray[np.uint64], legal_N2A: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """Draws one of each seat's legal choices with equal probability.

    Args:
        draws_N2: uint64, random bits.
        legal_N2A: bool, the legal choices.

    Returns:
        uint8[N, 2, A], one-hot.
    """
    places_N2A = legal_N2A.cumsum(axis=2)
    chosen_N2 = draws_N2 % places_N2A[:, :, -1].astype(np.uint64)
    return (legal_N2A & (places_N2A == chosen_N2[:, :, None].astype(np.int64) + 1)).astype(np.uint8)


def random_keys(draws_N2: NDArray[np.uint64], size: int) -> NDArray[np.uint8]:
    """Presses each key with probability 1/2.

    Args:
        draws_N2: uint64, random bits.
        size: A, the number of keys.

    Returns:
        uint8[N, 2, A].
    """
    numbers_A = np.arange(1, size + 1, dtype=np.uint64) * _GOLDEN
    return (mixed(draws_N2[:, :, None] + numbers_A) >> np.uint64(63)).astype(np.uint8)
