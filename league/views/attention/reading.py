"""What an agent attended to, decision by decision, in a match that was recorded.

The match is played again, and the encoder reads what the agent saw. Attention depends on what was
seen alone, so these are the very weights of the moment, whatever luck chose the keys.

Shape suffixes: T decisions, O observation, D width, P pooled outputs, h heads.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from league.agent.network import AgentNetwork
from league.agent.snapshot import SnapshotCard
from league.errors import InvalidInput
from league.replay import Playback, Replay


class Event(NamedTuple):
    """Damage that `victim` (a seat) took in one frame, in points; infinite: it lost a stock."""

    frame: int
    victim: int
    damage: float


def events_of(
    frames: Sequence[Mapping[str, Any]], winner: int | None, most_frames: int
) -> list[Event]:
    """Hits and knock-outs in order; none in games whose frames have no fighters.

    A match with a `winner` (a seat) that ended before `most_frames`, when time is up, ended by a
    knock-out, which its last frame does not show yet.
    """
    found = []
    for number, (before, now) in enumerate(pairwise(frames), start=1):
        players = zip(before.get("players", ()), now.get("players", ()), strict=True)
        for seat, (old, new) in enumerate(players):
            if new["damage"] > old["damage"]:
                found.append(Event(number, seat, new["damage"] - old["damage"]))
            if new["stocks"] < old["stocks"]:
                found.append(Event(number, seat, math.inf))
    if frames[0].get("players") and winner is not None and len(frames) < most_frames:
        found.append(Event(len(frames) - 1, 1 - winner, math.inf))
    return found


def key_frames(events: Sequence[Event], first: int, last: int, count: int) -> list[int]:
    """Up to `count` frames of first … last worth a picture, in order and apart from each other.

    Knock-outs come first, then hits by their damage, then what lies furthest from all of them.
    """
    apart = max(1, (last - first) // (count + 1))
    chosen: list[int] = []
    for event in sorted(events, key=lambda event: -event.damage):
        is_apart = all(abs(event.frame - other) >= apart for other in chosen)
        if first <= event.frame <= last and is_apart and len(chosen) < count:
            chosen.append(event.frame)
    while len(chosen) < count:
        gaps = sorted({first, last, *chosen})
        widest, middle = max(((b - a, (a + b) // 2) for a, b in pairwise(gaps)), default=(0, first))
        if widest < 2:
            break
        chosen.append(middle)
    return sorted(chosen) or [first]


@dataclass(frozen=True, kw_only=True)
class Reading:
    """A match as one of its agents read it. The last of P is the newest output, of age 0.

    Attributes:
        seat: the agent's.
        names: of both players, by seat.
        match_id: "" when the replay has none.
        frame_skip: frames between decisions.
        frames_per_second: of the game.
        reach: earlier entries that an output takes in before its own.
        frame_T: frame of each decision.
        latent_TD: strategy latents.
        latent_TP, context_TP: attention over outputs, mean over heads: of the learned query, and
            of the agent's own observation. Outputs from before the match have weight 0.
        events: hits and knock-outs.
        frames: as the game draws them.
    """

    seat: int
    names: tuple[str, str]
    match_id: str
    frame_skip: int
    frames_per_second: int
    reach: int
    frame_T: NDArray[np.int64]
    latent_TD: NDArray[np.float32]
    latent_TP: NDArray[np.float32]
    context_TP: NDArray[np.float32]
    events: list[Event]
    frames: list[dict[str, Any]] = field(repr=False)

    @property
    def second_T(self) -> NDArray[np.float64]:
        """Time of each decision in the match."""
        return self.frame_T / self.frames_per_second

    @property
    def age_P(self) -> NDArray[np.float64]:
        """Age of each output in seconds."""
        slots = self.latent_TP.shape[1]
        return np.arange(slots - 1, -1, -1) * self.frame_skip / self.frames_per_second


def agent_seat(replay: Replay, wanted: int | None) -> int:
    """The seat of the agent to read: the one that is wanted, else the first that weights played.

    Raises `InvalidInput` when no weights played there.
    """
    played = [seat for seat, contender in enumerate(replay.seats) if contender.digest]
    names = [contender.name for contender in replay.seats]
    if wanted is None and played:
        return played[0]
    if wanted in played:
        return wanted
    if not played:
        raise InvalidInput(f"{names[0]} and {names[1]} have no weights: name a match of a snapshot")
    raise InvalidInput(
        f"{names[wanted or 0]} in seat {wanted} has no weights: read --seat {played[0]}"
    )


def read_match(replay: Replay, seat: int, network: torch.nn.Module, card: SnapshotCard) -> Reading:
    """Plays the match again and reads it with the agent of `seat`.

    Raises `InvalidInput` when the agent has no attention or plays another game, `DataCorrupt` or
    `VersionMismatch` when the replay can't be played again.
    """
    name = replay.seats[seat].name
    if not isinstance(network, AgentNetwork):
        raise InvalidInput(f"{name} is no agent with a strategy encoder: it attends to nothing")
    if card.game != replay.recipe.name:
        raise InvalidInput(f"{name} plays {card.game}, the match is one of {replay.recipe.name}")
    playback, frames, seen = Playback(replay), [], []
    try:
        for number, frame in enumerate(playback.frames()):
            frames.append(frame)
            if number % card.frame_skip == 0:
                seen.append(playback.game.observations_N2O[0, seat].astype(np.float32))
    finally:
        playback.close()
    seen_TO, spec = np.stack(seen), playback.game.spec
    if seen_TO.shape[1] != network.config.observation_size:
        raise InvalidInput(
            f"{name} sees {network.config.observation_size} numbers, the match shows "
            f"{seen_TO.shape[1]}: it was trained with other options of the game"
        )
    obs_T1O = torch.from_numpy(seen_TO).unsqueeze(1)
    starts_T1 = torch.zeros(obs_T1O.shape[:2], dtype=torch.bool)
    starts_T1[0] = True
    with torch.inference_mode():
        pooled = network.eval().encode(obs_T1O, starts_T1, 0)
    winner = None if replay.outcome == 0.5 else int(replay.outcome == 0.0)
    return Reading(
        seat=seat,
        names=(replay.seats[0].name, replay.seats[1].name),
        match_id=replay.match_id,
        frame_skip=card.frame_skip,
        frames_per_second=spec.frames_per_second,
        reach=network.config.sequence_length - network.config.pool,
        frame_T=np.arange(len(seen_TO)) * card.frame_skip,
        latent_TD=pooled.latent[:, 0].numpy(),
        latent_TP=pooled.latent_weights[:, 0].mean(-1).numpy(),
        context_TP=pooled.context_weights[:, 0].mean(-1).numpy(),
        events=events_of(frames, winner, spec.max_frames),
        frames=frames,
    )


def summary_of(weights_TP: NDArray[np.floating], age_P: NDArray[np.floating]) -> list[float] | None:
    """Attention in numbers, over the decisions at which all outputs were there; None without any.

    Returns:
        The mean age of what is attended to, in seconds; its 5th and 95th percentiles; entropy over
        that of attention which looks at all outputs alike; and the share of the weights' variance
        that age alone explains: 1 is the same at every decision, whatever happened.
    """
    slots = weights_TP.shape[1]
    full_TP = np.asarray(weights_TP[slots - 1 :], np.float64)
    if not len(full_TP) or slots < 2:
        return None
    age_T = full_TP @ age_P
    entropy_T = -(full_TP * np.log(np.clip(full_TP, 1e-12, 1.0))).sum(1)
    total = np.square(full_TP - full_TP.mean()).sum()
    left = np.square(full_TP - full_TP.mean(0)).sum()
    return [
        float(age_T.mean()),
        *np.quantile(age_T, (0.05, 0.95)).tolist(),
        float(entropy_T.mean() / np.log(slots)),
        float(1.0 - left / total) if total > 0 else 1.0,
    ]
