"""One match in a test's hands: players put where they are wanted, keys held by name."""

from __future__ import annotations

from typing import Any

import numpy as np

from league.games.brawl import rules
from league.games.brawl.game import BrawlGame

RIGHT_GROUND_Y = 0.85 - 0.5
LEFT_GROUND_Y = 2.85 - 0.5


class Arena:
    """Seat 0 stands at x = 4 and seat 1 at x = 6 on the right ground, both facing right."""

    def __init__(self, *, max_frames: int = 2700, **options: Any) -> None:
        self.game = BrawlGame(1, max_frames=max_frames, **options)
        self.game.reset(np.array([5], np.uint64))
        self.put(0, 4.0, RIGHT_GROUND_Y)
        self.put(1, 6.0, RIGHT_GROUND_Y)
        self.play()

    def put(self, seat: int, x: float, y: float, *, grounded: bool = True, **fields: Any) -> None:
        """Places a seat, at rest and free, and sets further fields of its record."""
        player = self.game._players_N2[0, seat]
        player["x"], player["y"], player["vx"], player["vy"] = x, y, 0.0, 0.0
        for name in ("push_x", "push_y", "bias_vx", "bias_vy", "normal_impulse"):
            player[name] = 0.0
        player["normal"], player["frames_apart"], player["friction_impulse"] = 0, 0, 0.0
        player["facing"], player["grounded"], player["move"] = 1, int(grounded), 0
        player["keys"], player["last_way"] = 0, 0
        player["state"] = rules.STANDING if grounded else rules.IN_AIR
        player["jumps"], player["recovery_of"] = rules.AIR_JUMPS, rules.RECOVERIES
        for name, value in fields.items():
            player[name] = value

    def play(self, first: str = "", second: str = "", frames: int = 1) -> None:
        """Holds keys, written as in "A L" or "space", in both seats for some frames."""
        actions = np.zeros((1, 2, 10), np.uint8)
        for seat, keys in enumerate((first, second)):
            for key in keys.split():
                actions[0, seat, rules.KEY_NAMES.index(key)] = 1
        self.game.step(actions, frames)

    def of(self, seat: int, field: str) -> float:
        """A field of a seat's record."""
        return self.game._players_N2[0, seat][field].item()

    def fields(self, seat: int, *names: str) -> tuple[float, ...]:
        """Several fields of a seat's record."""
        return tuple(self.of(seat, name) for name in names)

    def seen(self, seat: int) -> dict[str, float]:
        """What a seat sees, by name, in units of the observation."""
        names = self.game.spec.observation_names
        return dict(zip(names, self.game.observations_N2O[0, seat].tolist(), strict=True))

    def terms(self, name: str) -> tuple[float, float]:
        """A raw reward term of the last step, of both seats."""
        return self.term(name, 0), self.term(name, 1)

    def term(self, name: str, seat: int = 0) -> float:
        """A raw reward term of the last step."""
        return self.game.reward_terms_N2K[0, seat, self.game.spec.reward_terms.index(name)].item()

    def stat(self, name: str, seat: int = 0) -> float:
        """A statistic of the match so far."""
        return self.game.stats_N2S[0, seat, self.game.spec.stats.index(name)].item()
