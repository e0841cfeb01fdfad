"""What a learner tells of itself: one flat dictionary of numbers, made once per update."""

from __future__ import annotations

import time
from collections import defaultdict, deque
from collections.abc import Sequence

from league.players import PlayerKind
from learner.rollout.finished import FinishedMatch
from learner.rollout.league_vec_env import LeagueVecEnv

RECENT = 100
"""Matches over which win rates are taken."""
FEWEST = 10
"""Matches that a snapshot must have played to count as hardest or easiest."""


class Progress:
    """Keeps recent results and clock readings, and turns them into metrics.

    The names are the contract with every reader (terminal view, TensorBoard, heartbeats).
    """

    def __init__(self, target_steps: int, frames_per_second: int) -> None:
        self._target, self._fps = target_steps, frames_per_second
        self._scores: dict[str, deque[float]] = defaultdict(lambda: deque(maxlen=RECENT))
        self._against: dict[PlayerKind, dict[str, deque[float]]] = defaultdict(
            lambda: defaultdict(lambda: deque(maxlen=RECENT))
        )
        self._sides: dict[float, deque[float]] = defaultdict(lambda: deque(maxlen=RECENT))
        self._rewards: deque[float] = deque(maxlen=RECENT)
        self._frames: deque[int] = deque(maxlen=RECENT)
        self._marks: deque[tuple[float, int, int, dict[str, float]]] = deque(maxlen=20)

    def add(self, matches: Sequence[FinishedMatch]) -> None:
        """Takes in matches that ended."""
        for match in matches:
            won = float(match.score == 1.0)
            opponent = match.assignment.opponent
            self._scores[match.assignment.category].append(won)
            self._against[opponent.kind][opponent.name].append(won)
            if "spawn_side" in match.stats:
                self._sides[match.stats["spawn_side"]].append(won)
            self._rewards.append(match.reward)
            self._frames.append(match.frames)

    def mark(self, step: int, frames: int, busy: dict[str, float]) -> None:
        """Notes the clock after an update; `busy` are seconds so far per kind of work."""
        self._marks.append((time.monotonic(), step, frames, busy))

    def metrics(self) -> dict[str, float]:
        """Everything that is known now."""
        values: dict[str, float] = {"progress/target_steps": float(self._target)}
        values.update(self._rates())
        if self._rewards:
            values["reward/episode_mean"] = sum(self._rewards) / len(self._rewards)
            values["match/seconds_mean"] = sum(self._frames) / len(self._frames) / self._fps
        for category, scores in self._scores.items():
            values[f"winrate/{category}"] = sum(scores) / len(scores)
        values.update(self._by_opponent())
        for side, scores in self._sides.items():
            values[f"winrate_from/{'left' if side < 0 else 'right'}"] = sum(scores) / len(scores)
        return values

    def _by_opponent(self) -> dict[str, float]:
        """Each bot by its name; of the snapshots, who come and go, the hardest and the easiest."""
        bots = self._against[PlayerKind.BOT]
        values = {f"winrate_against/{name}": sum(won) / len(won) for name, won in bots.items()}
        known = [won for won in self._against[PlayerKind.SNAPSHOT].values() if len(won) >= FEWEST]
        rates = [sum(won) / len(won) for won in known]
        if rates:
            values["winrate_against/hardest_snapshot"] = min(rates)
            values["winrate_against/easiest_snapshot"] = max(rates)
        return values

    def _rates(self) -> dict[str, float]:
        if not self._marks:
            return {}
        last_at, last_step, last_frames, busy = self._marks[-1]
        values = {"progress/steps": float(last_step), "progress/frames": float(last_frames)}
        first_at, first_step, first_frames, busy_before = self._marks[0]
        elapsed = last_at - first_at
        if elapsed <= 0:
            return values
        rate = (last_step - first_step) / elapsed
        values["rate/steps_per_second"] = rate
        values["rate/frames_per_second"] = (last_frames - first_frames) / elapsed
        if rate > 0:
            values["progress/seconds_left"] = max(0, self._target - last_step) / rate
        for kind, seconds in busy.items():
            values[f"time/{kind}_share"] = (seconds - busy_before[kind]) / elapsed
        return values


def busy_seconds(
    env: LeagueVecEnv, inference: float, learning: float, waiting: float, references: float
) -> dict[str, float]:
    """Seconds so far by kind of work, as `Progress.mark` takes them."""
    return {
        "game": env.game_seconds,
        "opponents": env.opponents_seconds,
        "inference": inference,
        "learning": learning,
        "waiting": waiting,
        "references": references,
    }
