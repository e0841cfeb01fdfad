"""Provides training matches against bots without a league, and clean matches, for the benchmarks.

Clean matches are played as by the evaluator: keys are sampled at temperature 1, and each of `pairs`
match seeds is played from both seats. The seeds are the same for every agent, so agents can be
compared match by match.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from evaluator.clean.arena import Arena
from league.agent.batched_policy import BatchedPolicy
from league.agent.contract import PlayingNetwork
from league.agent.snapshot import load_snapshot
from league.games.registry import make_batched, reward_weights
from league.players import Assignment, Book, MatchResult, Player, PlayerKind, Role
from league.runs.blobs import BlobFolder
from learner.rollout.league_vec_env import LeagueVecEnv
from learner.rollout.source import OpponentSource

LIVE = Player(name="main", game="brawl", kind=PlayerKind.LIVE, role=Role.MAIN)
PARALLEL = 100


def assignment(
    player: Player, opponent: str, number: int, seat: int, seed: int, book: Book
) -> Assignment:
    """Returns a match of `player` against a bot."""
    bot = Player(name=opponent, game="brawl", kind=PlayerKind.BOT)
    return Assignment(
        match_id=f"{opponent}-{number}-{seat}",
        ordinal=number,
        lease_token="",
        lease_deadline=0.0,
        seats=(player, bot) if seat == 0 else (bot, player),
        learner_seat=seat,
        book=book,
        seed=seed,
        category=opponent,
    )


class BotSource:
    """Gives endless training matches against bots, drawn by `mix` (weights by name). The mix may be
    changed between matches.
    """

    def __init__(self, mix: dict[str, float], seed: int) -> None:
        self.mix, self._rng, self._number = mix, np.random.default_rng(seed), 0
        # opponent and learner's score of each match
        self.results: list[tuple[str, float]] = []

    def take(self) -> Assignment:
        self._number += 1
        names = list(self.mix)
        weights = np.array([self.mix[name] for name in names])
        opponent = names[self._rng.choice(len(names), p=weights / weights.sum())]
        seed = int(self._rng.integers(1 << 62))
        return assignment(
            LIVE, opponent, self._number, int(self._rng.integers(2)), seed, Book.TRAIN
        )

    def report(self, result: MatchResult) -> None:
        """Keeps the score. The match's id begins with the opponent's name."""
        opponent, _, seat = result.match_id.rsplit("-", 2)
        self.results.append((opponent, result.outcome if seat == "0" else 1.0 - result.outcome))

    def win_rate(self, opponent: str, last: int) -> float:
        """Returns the share of wins in the newest `last` matches, NaN if there are fewer
        matches.
        """
        scores = [score for name, score in self.results if name == opponent][-last:]
        return (
            float(np.mean([score == 1.0 for score in scores]))
            if len(scores) == last
            else float("nan")
        )


def practice_env(
    source: OpponentSource, matches: int, *, frame_skip: int, reward: str
) -> LeagueVecEnv:
    """Makes matches of brawl against the source's bots."""
    game = make_batched("brawl", matches)

    def nobody(digest: str) -> PlayingNetwork:
        raise NotImplementedError(digest)

    batched_policy = BatchedPolicy(matches, nobody, seed=0, action_size=game.spec.action_size)
    weights = reward_weights(game.spec, reward, {})
    return LeagueVecEnv(game, source, batched_policy, frame_skip=frame_skip, reward_weights=weights)


def clean_matches(player: Player, opponent: str, pairs: int, seed: int) -> list[Assignment]:
    """Returns clean matches: `pairs` seeds, each from both seats."""
    return [
        assignment(player, opponent, pair, seat, (seed << 32) | pair, Book.EVAL)
        for pair in range(pairs)
        for seat in (0, 1)
    ]


def clean_scores(
    network: PlayingNetwork, opponent: str, *, pairs: int, frame_skip: int, seed: int = 0
) -> np.ndarray:
    """Returns the scores `[pairs, 2 seats]` (1 win, 0.5 draw, 0 loss) of `network` in clean matches
    against a bot.
    """
    player = Player(name="main@0", game="brawl", kind=PlayerKind.SNAPSHOT, digest="0" * 64)
    arena = Arena(
        make_batched("brawl", PARALLEL), lambda _: network, frame_skip=frame_skip, seed=seed
    )
    open_matches = iter(clean_matches(player, opponent, pairs, seed))
    scores = np.full((pairs, 2), np.nan)
    while True:
        arena.seat([match for _, match in zip(range(arena.free), open_matches, strict=False)])
        if not arena.busy:
            return scores
        for result in arena.step():
            pair, seat = map(int, result.match_id.rsplit("-", 2)[1:])
            scores[pair, seat] = result.outcome if seat == 0 else 1.0 - result.outcome


def load_network(run: Path, digest: str) -> PlayingNetwork:
    """Loads a snapshot from a run's folder."""
    return load_snapshot(BlobFolder(run / "blobs"), digest, device="cpu")[0]


class CleanSource:
    """Gives clean matches against a bot, which all begin at the same time. Only the first result of
    each match counts, because a row continues with further matches after its own.
    """

    def __init__(self, opponent: str, pairs: int, seed: int = 0) -> None:
        self.scores = np.full((pairs, 2), np.nan)
        self._open = itertools.cycle(clean_matches(LIVE, opponent, pairs, seed))

    def take(self) -> Assignment:
        return next(self._open)

    def report(self, result: MatchResult) -> None:
        """Keeps a match's first result."""
        pair, seat = map(int, result.match_id.rsplit("-", 2)[1:])
        if np.isnan(self.scores[pair, seat]):
            self.scores[pair, seat] = result.outcome if seat == 0 else 1.0 - result.outcome


def clean_scores_by(
    predict: Callable[..., Any], opponent: str, *, pairs: int, frame_skip: int
) -> np.ndarray:
    """Returns the `clean_scores` of anything with the `predict` of Stable-Baselines3's recurrent
    algorithms.
    """
    source = CleanSource(opponent, pairs)
    env = practice_env(source, 2 * pairs, frame_skip=frame_skip, reward="laptop")
    observations, state, begins = env.reset(), None, np.ones(2 * pairs, np.bool_)
    while np.isnan(source.scores).any():
        actions, state = predict(
            observations, state=state, episode_start=begins, deterministic=False
        )
        observations, _, begins, _ = env.step(actions)
    return source.scores
