"""Records whole matches of the original, which a test plays again in our game.

Run it in a checkout as record.py says. All 80 matches take an hour of one core, so numbers of some
(0 to 79) may follow:

    SDL_VIDEODRIVER=dummy PYTHON record_matches.py OUT.npz [NUMBER ...]

The file holds the M matches that last all F frames: `numbers_M`, `start_M24` (as in record.py),
`actions_A2MF` (packed by `numpy.packbits`), `stocks_M2` (left at the end), `places_MT22` (x and y
of both players before every 300th frame, in thousandths), and `weapons_MPW`, the weapons of both
spawners in their order. A weapon has `wait` (frames since its spawner became empty or the match
began until it is due), `came` (frames played when it appeared, 0 for never), `kind` and `x`.
"""

from __future__ import annotations

import contextlib
import io
import random
import sys
from math import copysign
from typing import Any

import numpy as np
import pygame

sys.path.insert(0, "")
pygame.image.load = lambda *_: pygame.Surface((1920, 1080))  # not all pictures are in the checkout
with contextlib.redirect_stdout(io.StringIO()):
    from environment import agent as agents
    from environment.environment import SpawnerVFX
    from record import SPACE, WEAPONS, A, D, G, H, J, K, L, S, W

FRAMES, PLACES_EVERY = 9000, 300
WEAPON = np.dtype([("wait", "i2"), ("came", "i2"), ("kind", "i1"), ("x", "f4")])
ATTACKS = (J, J, J, K, S | J, S | K, L, G, W | J, H, H)
STYLES = {
    "walker": (0.0, 0.09),
    "poker": (0.25, 0.36),
    "fighter": (0.6, 0.75),
    "random": (0.0, 0.6),
    "crosser": (0.0, 0.24),
}
"""How often a player of each style goes to its opponent, and how often it attacks on its way."""
AGENTS = {
    "based": agents.BasedAgent,
    "clockwork": agents.ClockworkAgent,
    "constant": agents.ConstantAgent,
}
PAIRS = (
    *("walker walker", "constant walker", "poker walker", "poker poker", "fighter walker"),
    *("random walker", "crosser walker", "random poker", "crosser poker", "fighter poker"),
    *("crosser crosser", "random random", "constant poker", "fighter constant", "based walker"),
    *("clockwork poker", "constant random", "crosser constant", "based poker", "fighter fighter"),
)


class Player:
    """Walks from goal to goal in a style, and returns to the stage when it leaves it."""

    initialized = False

    def __init__(self, style: str, seed: int, seat: int) -> None:
        self._style, self._draw, self._seat = style, random.Random(seed), seat
        self._left, self._frame, self._held = 0, 0, 0

    def get_env_info(self, env: Any) -> None:
        self._env = env

    def predict(self, _obs: Any) -> np.ndarray:
        me, other = self._env.players[self._seat], self._env.players[1 - self._seat]
        (x, y), (other_x, other_y) = me.body.position, other.body.position
        if self._left == 0:
            self._aim(copysign(4.5, me.start_position[0]), other_x)
        self._left -= 1
        self._frame += 1
        is_off = not 2.1 < abs(x) < 6.9
        goal = self._goal if abs(x) <= 7 else copysign(4.5, x)
        if self._style == "random" and not is_off:
            bits = self._random_keys(x)
        else:
            is_near = abs(other_x - x) < 1.8 and abs(other_y - y) < 1
            bits = D if x < goal - 0.2 else (A if x > goal + 0.2 else 0)
            bits |= self._further_keys(is_off, is_near)
        is_at_edge, ground = abs(x) < 2.6, 0.85 if goal > 0 else 2.85
        if (is_off or x * goal < 0) and me.body.velocity.y >= 0:
            if self._frame % 2 and (is_at_edge or (is_off and y > ground - 1.5)):
                bits |= SPACE
            if self._frame % 3 == 0 and is_off and y > ground + 1:
                bits |= K
        return np.array([bits >> bit & 1 for bit in range(10)], float)

    def _aim(self, home: float, other_x: float) -> None:
        draw, style = self._draw, self._style
        follows, attacks = STYLES[style]
        self._left = draw.choice((3, 5, 8, 13, 20, 40, 60))
        if style == "crosser":
            goal = draw.choice((4.5, -4.5)) + draw.uniform(-2, 2)
        elif draw.random() < follows and (style == "fighter" or other_x * home > 0):
            goal = other_x + draw.choice((-1, 1)) * draw.uniform(0.5, 1.2)
        else:
            goal = home + draw.uniform(-1.9, 1.9)
        self._goal = copysign(min(max(abs(goal), 2.6), 6.4), goal)
        self._attack = draw.choice(ATTACKS) if draw.random() < attacks else 0
        self._hops = draw.random() < 0.2

    def _random_keys(self, x: float) -> int:
        for key in (1 << bit for bit in range(10)):
            if self._draw.random() < 0.04:
                self._held ^= key
            if self._draw.random() < 0.15:
                self._held &= ~key
        if x > 6 or -3.2 < x < 0:
            return (self._held & ~D) | A
        if x < -6 or 0 < x < 3.2:
            return (self._held & ~A) | D
        return self._held

    def _further_keys(self, is_off: bool, is_near: bool) -> int:
        draw, bits = self._draw, 0
        if not is_off and self._attack and draw.random() < 0.3:
            bits |= self._attack
        if not is_off and self._hops and draw.random() < 0.1:
            bits |= SPACE
        strikes = self._style in ("fighter", "poker", "crosser")
        if not is_off and is_near and strikes and draw.random() < 0.15:
            bits |= J
        if self._style in ("poker", "fighter", "walker") and draw.random() < 0.02:
            bits |= H
        return bits


class Match:
    """What is kept of a match; its two `seats` play it."""

    def __init__(self, number: int) -> None:
        styles = PAIRS[number % len(PAIRS)].split()
        if number // len(PAIRS) % 2:
            styles.reverse()
        self.number = number
        self.seats = [Seat(self, seat, style) for seat, style in enumerate(styles)]
        self.places: list[list] = []

    def note(self, env: Any) -> None:
        """Notes where the players are, and which weapons came or went in the last frame."""
        spawners = env.weapon_controller.spawners[:2]
        if env.steps == 0:
            self.start = [[*p.body.position, 0, p.start_position[0]] for p in env.players]
            first = [max(s.last_spawn_frame + s.cooldown_frames, 1) for s in spawners]
            self.weapons = [[(wait, 0, 0, 0)] for wait in first]
        if env.steps % PLACES_EVERY == 0:
            self.places.append([list(player.body.position) for player in env.players])
        for weapons, spawner in zip(self.weapons, spawners, strict=True):
            (wait, came, *_), weapon = weapons[-1], spawner.active_weapon
            if weapon is not None and not came:
                kind, x = WEAPONS.index(weapon.name), spawner.world_pos[0]
                weapons[-1] = (wait, env.steps, kind, x)
            elif weapon is None and came:
                weapons.append((spawner.cooldown_frames, 0, 0, 0))


class Seat:
    """An agent for `run_match` that plays as another, and keeps its actions."""

    initialized = False

    def __init__(self, match: Match, seat: int, style: str) -> None:
        seed = 2 * match.number + seat
        self.actions: list[np.ndarray] = []
        self._match, self._is_first = match, seat == 0
        self._agent = AGENTS[style]() if style in AGENTS else Player(style, seed, seat)

    def get_env_info(self, env: Any) -> None:
        self._env = env
        self._agent.get_env_info(env)

    def predict(self, obs: Any) -> np.ndarray:
        if self._is_first:
            self._match.note(self._env)
        action = np.asarray(self._agent.predict(obs), float)
        self.actions.append(action > 0.5)
        return action


def played(number: int) -> Match:
    random.seed(number)
    np.random.seed(number)
    with contextlib.redirect_stdout(io.StringIO()):
        match = Match(number)
        end = agents.run_match(*match.seats, max_timesteps=FRAMES)
    match.stocks = end.player1.lives_left, end.player2.lives_left
    print(number, len(match.seats[0].actions), "frames, stocks", *match.stocks, flush=True)
    return match


def main() -> None:
    SpawnerVFX._steps = lambda *_: 36  # the length of the missing animation
    SpawnerVFX.show_spawn = lambda self: None
    agents.gdown.download = lambda *_, **__: None
    agents.tqdm = lambda frames, **_: frames
    matches = [played(int(number)) for number in sys.argv[2:] or range(80)]
    matches = [match for match in matches if len(match.seats[0].actions) == FRAMES]
    most = max(len(weapons) for match in matches for weapons in match.weapons)
    weapons_MPW = np.full((len(matches), 2, most), np.array((FRAMES, 0, 0, 0), WEAPON))
    for m, match in enumerate(matches):
        for p, weapons in enumerate(match.weapons):
            weapons_MPW[m, p, : len(weapons)] = weapons
    actions_M2FA = np.array([[seat.actions for seat in match.seats] for match in matches])
    np.savez_compressed(
        sys.argv[1],
        numbers_M=np.array([match.number for match in matches], np.uint8),
        start_M24=np.array([match.start for match in matches], np.float32),
        actions_A2MF=np.packbits(actions_M2FA.transpose(3, 1, 0, 2), axis=-1),
        stocks_M2=np.array([match.stocks for match in matches], np.int8),
        places_MT22=np.rint(np.array([m.places for m in matches]) * 1000).astype(np.int16),
        weapons_MPW=weapons_MPW,
    )


if __name__ == "__main__":
    main()
