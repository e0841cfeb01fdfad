"""Two players walk on a beam, strike at arm's length, and fall off its ends.

What goes wrong is written in a file `fault` in the working directory: it happens when a player
taunts (G).
"""

from __future__ import annotations

import os
import random
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from gymnasium import spaces

KEYS = ("w", "a", "s", "d", "space", "h", "l", "j", "k", "g")
STANDING, STUN, ATTACK, KO = 1, 5, 8, 11
FAULT = Path("fault").read_text() if Path("fault").exists() else ""

gdown = SimpleNamespace(download=None)


class AnimationSprite2D:
    def load_animation(self, path: str) -> str:
        return path


class Signal:
    def __init__(self) -> None:
        self._handlers: list = []

    def connect(self, handler) -> None:
        self._handlers.append(handler)

    def emit(self, **what) -> None:
        for handler in self._handlers:
            handler(self, **what)


class Platform:
    x = 0.0

    def physics_process(self, dt: float) -> None:
        self.x = (self.x + dt) % 1.0


class Player:
    def __init__(self, x: float) -> None:
        self.start, self.taken, self.stocks, self.weapon = x, 0.0, 3, 0.0
        self.appear()

    def appear(self) -> None:
        self.x, self.y, self.vx, self.damage = self.start, 2.4, 0.0, 0.0
        self.state, self.left = STANDING, 0

    def numbers(self) -> list[float]:
        grounded = float(abs(self.x) <= 7)
        body = [self.x, min(self.y, 7.0), self.vx, 0.0, float(self.start < 0), grounded]
        counts = [1 - grounded, 0.0, float(self.state), 0.0, 0.0, float(self.left)]
        held = [self.damage / 700, float(self.stocks), 2.0 * (self.state == ATTACK), self.weapon]
        return body + counts + held


class WarehouseBrawl:
    def __init__(self) -> None:
        print("a line that nobody asked for", flush=True)
        self.action_space = spaces.Box(0.0, 1.0, (len(KEYS),), np.float32)
        self.obs_helper = self.act_helper = None
        self.hit_during_stun, self.objects = Signal(), {"platform1": Platform()}
        self.reset()

    def reset(self, seed=None):
        side = 5.0 if random.getrandbits(1) else -5.0
        self.players = [Player(side), Player(-side)]
        self._draw_slot()
        return self._observations(), {}

    def _draw_slot(self) -> None:
        self.slot = [random.uniform(2.6, 6.5), np.random.uniform(), 1.0]

    def _observations(self):
        rest = [*self.slot, *[0.0] * 9, self.objects["platform1"].x, 1.0, 0.5, -0.5]
        one, two = (player.numbers() + rest for player in self.players)
        return {0: np.array(one + two), 1: np.array(two + one)}

    def get_stats(self, seat: int):
        return SimpleNamespace(damage_taken=self.players[seat].taken)

    def step(self, action):
        held = [dict(zip(KEYS, np.asarray(action[seat]) > 0.5, strict=True)) for seat in (0, 1)]
        if FAULT and held[0]["g"]:
            fail()
        self._draw_slot()
        over = any(player.stocks <= 0 for player in self.players)
        for seat, player in enumerate(self.players):
            self._act(seat, player, self.players[1 - seat], held[seat])
        return self._observations(), {0: 0, 1: 0}, over, False, {}

    def _act(self, seat: int, me: Player, other: Player, held: dict[str, bool]) -> None:
        if me.left:
            me.left -= 1
            if me.left == 0 and me.state == KO:
                me.appear()
            elif me.left == 0:
                me.state = STANDING
            return
        me.state, me.vx = STANDING, 6.0 * (float(held["d"]) - float(held["a"]))
        me.x += me.vx / 30
        me.weapon = 1.0 if held["h"] else me.weapon
        if abs(me.x) > 7:
            me.y += 0.2
        if me.y > 8:
            me.state, me.left, me.vx, me.weapon = KO, 90, 0.0, 0.0
            me.stocks -= 1
        elif held["j"]:
            me.state = ATTACK
            if abs(me.x - other.x) < 2 and other.state != KO:
                if other.state == STUN:
                    self.hit_during_stun.emit(agent=("player", "opponent")[1 - seat])
                other.damage += 13
                other.taken += 13
                other.state, other.left = STUN, 5
                other.x += 1.0 if other.x > me.x else -1.0


def fail() -> None:
    if FAULT == "hang":
        time.sleep(60)
    if FAULT == "exit":
        os._exit(7)
    if FAULT == "raise":
        raise ArithmeticError("a taunt that raises")
    print("no such fault", file=sys.stderr)
