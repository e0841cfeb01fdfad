"""One match between two members, frame by frame, with its events in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from league.cli.members import Member, check_sizes
from league.errors import InvalidInput
from league.games.base import CHOICE, EXTERNAL, BatchedGame
from league.games.drawing.lines import seat_text
from league.replay import MatchRecorder, end_frame

HARD_HIT = 12.0
"""Damage within one frame from which a hit is an event, in points."""


class Actor(Protocol):
    """Chooses the keys of one seat, every `frame_skip` frames."""

    frame_skip: int

    def keys(
        self, observation_O: NDArray[np.float32], legal_A: NDArray[np.bool_] | None
    ) -> NDArray[np.uint8]: ...


@dataclass(frozen=True)
class Moment:
    """One frame as the game draws it, and the events since the one before."""

    frame: dict[str, Any]
    events: tuple[str, ...] = ()


@dataclass(frozen=True)
class Ending:
    """The winner's seat (None for a draw), frames played, and totals by seat and stat."""

    winner: int | None
    frames: int
    stats: tuple[dict[str, float], dict[str, float]]


class RecordedActor:
    """Repeats what a seat did in a recorded match, [T, A]."""

    frame_skip = 1

    def __init__(self, actions_TA: NDArray[np.uint8]) -> None:
        self._actions = iter(actions_TA)

    def keys(
        self, observation_O: NDArray[np.float32], legal_A: NDArray[np.bool_] | None
    ) -> NDArray[np.uint8]:
        return next(self._actions)


class _SnapshotActor:
    """Plays a snapshot, which decides as often as it did in training."""

    def __init__(self, member: Member, game: BatchedGame, *, seed: int, greedy: bool) -> None:
        import torch

        from league.agent.batched_policy import BatchedPolicy
        from league.agent.snapshot import load_snapshot, read_card

        # One row is too little work to share: threads on busy cores take five times as long.
        torch.set_num_threads(1)
        assert member.blobs is not None
        blobs = member.blobs
        card = read_card(blobs, member.digest)
        if card.game != game.spec.name:
            raise InvalidInput(
                f"{member.name} plays {card.game}, this is {game.spec.name}: name another member"
            )
        check_sizes(member.name, card.agent, game.spec)
        self.frame_skip = card.frame_skip
        self._policy = BatchedPolicy(1, lambda digest: load_snapshot(blobs, digest)[0], seed=seed)
        self._policy.seat(0, member.digest, greedy=greedy)

    def keys(
        self, observation_O: NDArray[np.float32], legal_A: NDArray[np.bool_] | None
    ) -> NDArray[np.uint8]:
        return self._policy.act(observation_O[None], None if legal_A is None else legal_A[None])[0]


@dataclass
class LiveMatch:
    """A match between two members in a `game` of one match; `ending` is set after `moments`.

    Attributes:
        actors: play the seats that have no bot, instead of the members' own weights.
        recorder: records the actions, when there is one.
    """

    game: BatchedGame
    members: Sequence[Member]
    seed: int
    greedy: bool = False
    actors: Sequence[Actor] | None = None
    recorder: MatchRecorder | None = None
    ending: Ending | None = field(default=None, init=False)

    def moments(self) -> Iterator[Moment]:
        """Plays the match, from its first frame to the last before its end."""
        game = self.game
        actors = [self._actor(seat, member) for seat, member in enumerate(self.members)]
        bots = [EXTERNAL if member.bot is None else member.bot for member in self.members]
        game.bots_N2[0] = bots
        game.reset(np.array([self.seed], np.uint64))
        actions_N2A = game.idle_actions()
        before = game.frame(0)
        yield Moment(before, tuple(self._deals(before)))
        for played in range(game.spec.max_frames + 1):
            for seat, actor in enumerate(actors):
                if actor is not None and played % actor.frame_skip == 0:
                    legal_A = None if game.legal_N2A is None else game.legal_N2A[0, seat]
                    actions_N2A[0, seat] = actor.keys(game.observations_N2O[0, seat], legal_A)
            legal_N2A = None if game.legal_N2A is None else game.legal_N2A.copy()
            if self.recorder is not None:
                self.recorder.note(actions_N2A[0])
            game.step(actions_N2A)
            chosen = tuple(self._choices(legal_N2A))
            if game.ended_N[0]:
                self.ending = self._end()
                if game.spec.action_kind == CHOICE:
                    yield Moment(end_frame(game, before), chosen)
                return
            now = game.frame(0)
            yield Moment(now, (*chosen, *self._hits(before, now)))
            before = now

    def _actor(self, seat: int, member: Member) -> Actor | None:
        if member.bot is not None:
            return None
        if self.actors is not None:
            return self.actors[seat]
        return _SnapshotActor(member, self.game, seed=2 * self.seed + seat, greedy=self.greedy)

    def _deals(self, frame: dict[str, Any]) -> Iterator[str]:
        """What each seat begins with, in games that deal something."""
        for member, seat in zip(self.members, frame.get("seats", ()), strict=False):
            if dealt := seat_text(seat):
                yield f"{member.name} has {dealt}"

    def _choices(self, legal_N2A: NDArray[np.bool_] | None) -> Iterator[str]:
        """What each seat chose in the last frame, where it had a choice."""
        played_N2A = self.game.played_N2A()
        if legal_N2A is None or played_N2A is None:
            return
        for seat, member in enumerate(self.members):
            if legal_N2A[0, seat].sum() > 1:
                yield f"{member.name}: {self.game.spec.action_names[played_N2A[0, seat].argmax()]}"

    def _end(self) -> Ending:
        outcome = float(self.game.outcomes_N[0])
        names = self.game.spec.stats
        first, second = (
            dict(zip(names, map(float, row), strict=True)) for row in self.game.final_stats_N2S[0]
        )
        winner = None if outcome == 0.5 else int(outcome == 0.0)
        return Ending(winner, int(self.game.final_frames_N[0]), (first, second))

    def _hits(self, before: dict[str, Any], now: dict[str, Any]) -> Iterator[str]:
        """Knock-outs and hard hits, in games whose players have stocks and damage."""
        players = zip(before.get("players", ()), now.get("players", ()), strict=True)
        for seat, (old, new) in enumerate(players):
            name, other = self.members[seat].name, self.members[1 - seat].name
            hit = new["damage"] - old["damage"]
            if hit >= HARD_HIT:
                yield f"{other} hits {name} for {hit:.0f} (damage {new['damage']:.0f})"
            if new["stocks"] < old["stocks"]:
                left = "1 stock" if new["stocks"] == 1 else f"{new['stocks']} stocks"
                yield f"{name} is knocked out at damage {old['damage']:.0f}, {left} left"
