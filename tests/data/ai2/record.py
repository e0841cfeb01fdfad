"""Records what the original game does with fixed keys, as numbers that tests compare ours with.

Run it in a checkout of UTMIST/UTMIST-AI2 (main 89366c1) with that project's own Python:

    SDL_VIDEODRIVER=dummy PYTHON record.py OUT.npz

Frames are played as by the original's `run_match`. The file holds, of S sequences of at most F
frames: `start_S24` (x, y, weapon and spawn of both players), `comes_S2` (frame in which each
spawner's first weapon is due, 0 for never), `keys_SF2` (bits in the order of the action),
`frames_S` (its length), `family_S` (what it is about) and `steps_KS2F`: the numbers of FIELDS after
each frame, each times its SCALE, rounded, as the difference from the frame before. What a match
shows to both alike stands with both.
"""

from __future__ import annotations

import contextlib
import io
import random
import sys

import numpy as np

sys.path.insert(0, "")
with contextlib.redirect_stdout(io.StringIO()):
    from environment.environment import CameraResolution, RenderMode, WarehouseBrawl

FIELDS = (
    *("x", "y", "vx", "vy", "facing", "grounded", "jumps", "state", "recoveries", "dodge"),
    *("stun", "damage", "stocks", "move", "weapon", "dropped_x", "dropped_y", "dropped"),
    *("newer_x", "newer_y", "newer", "right_spawner", "left_spawner", "in_danger"),
)
SCALE = np.array([1000, 1000, 500, 500, *[1] * 11, *[1000, 1000, 1] * 2, 1, 1, 1])
W, A, S, D, SPACE, H, L, J, K, G = (1 << bit for bit in range(10))
FRAMES = 240
WEAPONS = ("Punch", "Spear", "Hammer")


def held(*parts: tuple[int, int]) -> list[int]:
    """Bits by frame of (keys, frames) one after the other."""
    return [keys for keys, frames in parts for _ in range(frames)]


def random_keys(draw: random.Random, wanted: int, chance: float, length: int = FRAMES) -> list[int]:
    """Keys of `wanted`, each held for 1 to 30 frames."""
    bits = [0] * length
    for key in (1 << bit for bit in range(10) if wanted >> bit & 1):
        frame = draw.randrange(12)
        while frame < length:
            frames = draw.choice((1, 1, 2, 3, 5, 8, 13, 20, 30))
            if draw.random() < chance:
                for f in range(frame, min(frame + frames, length)):
                    bits[f] |= key
            frame += frames + 1
    return bits


class Wanderer:
    """Keys that keep a player about the edges of the pit, where the platform presses it."""

    def __init__(self, draw: random.Random) -> None:
        self._draw, self._left = draw, 0

    def keys(self, x: float, y: float) -> int:
        draw = self._draw
        if self._left == 0:
            self._left = draw.choice((3, 5, 8, 13, 20, 40))
            self._goal = draw.choice((-2.6, -1.9, -1.4, 0.0, 1.4, 1.9, 2.6, draw.uniform(-3, 3)))
            self._jumps = draw.random() < 0.5
            self._more = draw.choice((0, 0, 0, 0, J, K, L, S, S | J, S | K, H))
        self._left -= 1
        bits = D if x < self._goal - 0.15 else (A if x > self._goal + 0.15 else 0)
        if (y > 2.2 and draw.random() < 0.3) or (self._jumps and draw.random() < 0.06):
            bits |= SPACE
        if y > 4 and draw.random() < 0.1:
            bits |= K
        return bits | (self._more if draw.random() < 0.15 else 0)


def moves() -> list[tuple[str, list[int], int]]:
    """Each move of each weapon alone: from standing, out of a walk, and in the air."""
    found = []
    ways = {"N": 0, "D": S, "S": D}
    for weapon in range(3):
        for name, way in ways.items():
            for key, frames in ((J, 2), (K, 2), (K, 60)):
                kind = {J: "light", K: "heavy"}[key]
                for what, before in (("stand", [(0, 60)]), ("walk", [(0, 40), (D, 20)])):
                    keys = held(*before, (way | key, frames), (0, 90))
                    found.append((f"{name} {kind} {what} {frames}", keys, weapon))
                keys = held((0, 50), (SPACE, 1), (0, 14), (way | key, frames), (0, 90))
                found.append((f"{name} {kind} air {frames}", keys, weapon))
    return found


def ways_to_move() -> dict[str, list[int]]:
    """Scenes of one mechanic each."""
    scenes = {
        "walk": held((0, 40), (D, 30), (0, 30), (A, 40), (0, 20)),
        "turn": held((0, 40), (D, 20), (A, 20), (D, 1), (0, 10), (A, 2), (D, 20)),
        "both ways": held((0, 40), (D, 10), (D | A, 20), (A, 20), (A | D, 15), (0, 10)),
        "dash": held((0, 40), (D, 5), (D | L, 1), (D, 30), (0, 20)),
        "dash held": held((0, 40), (D | L, 20), (D, 20), (A | L, 20)),
        "backdash": held((0, 40), (D, 5), (0, 5), (A | L, 10), (0, 20), (D, 10), (A | L, 3)),
        "dodge": held((0, 40), (L, 2), (0, 20), (L, 1), (0, 30), (L, 1), (0, 20)),
        "taunt": held((0, 40), (G, 2), (0, 40), (D, 10), (G, 1), (0, 40)),
        "jump": held((0, 40), (SPACE, 1), (0, 60), (SPACE, 20), (0, 40)),
        "jump turned": held((0, 40), (A | SPACE, 1), (A, 20), (D, 20), (0, 40)),
        "air jumps": held((0, 40), *[(SPACE, 1), (0, 9)] * 5, (0, 60)),
        "air jumps aimed": held((0, 40), *[(SPACE | D, 1), (D, 9), (SPACE | A, 1), (A, 9)] * 3),
        "air jump both": held((0, 40), (SPACE, 1), (0, 10), (SPACE | A | D, 2), (0, 50)),
        "air turn": held((0, 40), (SPACE | D, 1), (D, 10), (A, 12), (D, 12), (0, 30)),
        "air turn jump": held((0, 40), (SPACE | D, 1), (D, 10), (A | SPACE, 2), (A, 20)),
        "air turn dodge": held((0, 40), (SPACE | D, 1), (D, 10), (A | L, 2), (A, 20)),
        "air dodge": held((0, 40), (SPACE, 1), (0, 10), (L, 2), (0, 60), (SPACE, 1), (L, 2)),
        "jump and dodge": held((0, 40), (SPACE, 1), (0, 10), (SPACE | L, 1), (0, 50)),
        "jump and attack": held((0, 40), (SPACE, 1), (0, 10), (SPACE | J, 1), (0, 50)),
        "fast fall": held((0, 40), (SPACE, 1), (0, 16), (S, 40), (0, 20)),
        "drag": held((0, 40), (D | SPACE, 1), (D, 15), (0, 60)),
        "off the edge right": held((0, 40), (D, 60), (A, 60), (A | SPACE, 1), (A, 40)),
        "off the edge left": held((0, 40), (A, 60), (D, 60), (D | SPACE, 1), (D, 40)),
        "wall": held((0, 40), (A, 50), (D, 100)),
        "other wall": held((0, 40), (D, 50), (A, 100)),
        "recovery": held((0, 40), (SPACE, 1), (0, 10), (K, 2), (0, 60)),
        "recovery steered": held((0, 40), (SPACE, 1), (0, 10), (K, 2), (D, 40), (A, 30)),
        "recovery turned": held((0, 40), (SPACE, 1), (0, 10), (A | K, 2), (A, 40)),
        "to the platform": held((0, 40), (A | SPACE, 1), (A, 30), (0, 90)),
        "to the platform from the left": held((0, 40), (D | SPACE, 1), (D, 30), (0, 90)),
        "fall out": held((0, 40), (D, 200)),
        "fall out left": held((0, 40), (A, 200)),
        "drop and take": held((0, 30), (H, 2), (0, 20), (H, 1), (0, 5), (D | H, 30), (H, 3)),
        "drop in the air": held((0, 30), (SPACE | D, 1), (D, 8), (H, 1), (D, 20), (H, 1), (0, 30)),
        "through the pit": held((0, 40), (A | SPACE, 1), (A, 60), (A | SPACE, 1), (A, 60)),
    }
    return scenes


def sequences() -> list[dict]:
    draw, found = random.Random(18), []

    def add(family: str, keys_0: list[int], keys_1: list[int], side: int, **more: object) -> None:
        pair = np.zeros((max(FRAMES, len(keys_0)), 2), np.uint16)
        for seat, keys in enumerate((keys_0, keys_1)):
            keys = keys[: len(pair)]
            pair[: len(keys), seat] = keys
        found.append({"family": family, "keys": pair, "side": side, "weapons": (0, 0), **more})

    for name, keys in ways_to_move().items():
        for side in (1, -1):
            add(f"scene: {name}", keys, [0], side, weapons=(int("drop" in name), 0))
    for name, keys, weapon in moves():
        add(f"move: {WEAPONS[weapon]} {name}", keys, [0], 1, weapons=(weapon, 0))
        # someone to hit, a unit in front
        places = (3.5, 0.3), (4.4, 0.3)
        add(f"hit: {WEAPONS[weapon]} {name}", keys, [0], -1, weapons=(weapon, 0), places=places)
    movement = W | A | S | D | SPACE | L
    for number in range(40):
        keys = [random_keys(draw, movement, 0.35) for _ in range(2)]
        add("random movement", *keys, 1 - 2 * (number % 2))
    for weapon in range(3):
        for number in range(20):
            keys = [random_keys(draw, movement | H | J | K | G, 0.3) for _ in range(2)]
            add("random alone", *keys, 1 - 2 * (number % 2), weapons=(weapon, (weapon + 1) % 3))
    for number in range(120):
        wanted = movement | J | K | (H if number % 3 == 0 else 0)
        keys = [random_keys(draw, wanted, 0.3) for _ in range(2)]
        weapons = draw.randrange(3), draw.randrange(3)
        x = draw.choice((-4.0, 4.0)) + draw.uniform(-1.0, 1.0)
        y = 0.3 if x > 0 else 2.3
        places = (x - 0.4, y), (x + 0.4, y)
        add("random contact", *keys, 1 - 2 * (number % 2), weapons=weapons, places=places)
    both = held((0, 20), (H, 1), (0, 20), (H | D, 1), (D, 30))
    for number, wait in enumerate((5, 40, 100)):
        # two weapons are dropped, the older one leaves or is taken, spawners wait for both
        other = held((0, 20 + wait), (H, 1), (0, 400))
        for takes in (False, True):
            keys = held((0, 20), (H, 1), (0, 150), (H if takes else 0, 1), (0, 300))
            comes = (60 + 10 * number, 100)
            add("weapons", keys, other, 1 - 2 * (number % 2), weapons=(1, 2), comes=comes)
        add("weapons", both, other, 1, weapons=(2, 1), comes=(45, 0))
    for number in range(120):
        length, weapons = draw.choice((240, 480, 900)), (draw.randrange(3), draw.randrange(3))
        side = 1 - 2 * (number % 2)
        if number < 70:
            places = tuple((draw.choice((-2.6, 2.6)), -0.5) for _ in range(2))
            add("long: at the edges", [0] * length, [0], side, weapons=weapons, places=places)
            found[-1]["wander"] = number
        else:
            wanted = movement | J | K | (H if number % 3 == 0 else 0)
            keys = [random_keys(draw, wanted, 0.3, length) for _ in range(2)]
            add("long: random keys", *keys, side, weapons=weapons)
    return found


def play(env: WarehouseBrawl, one: dict) -> tuple[np.ndarray, np.ndarray]:
    """Where a sequence begins, and its numbers until its end or a player's last stock."""
    env.reset()
    while (env.players[0].start_position[0] > 0) != (one["side"] > 0):
        env.reset()
    start = np.zeros((2, 4))
    for seat, player in enumerate(env.players):
        player.opponent = env.players[1 - seat]
        player.weapon = WEAPONS[one["weapons"][seat]]
        if "places" in one:
            player.body.position = one["places"][seat]
        start[seat] = [*player.body.position, one["weapons"][seat], player.start_position[0]]
    for spawner, comes in zip(
        env.weapon_controller.spawners, one.get("comes", (0, 0)), strict=True
    ):
        spawner.last_spawn_frame, spawner.cooldown_frames = 0, comes or 10**9
    shown, platform = [], env.objects["platform1"]
    draw = random.Random(one.get("wander", 0))
    wanderers = [Wanderer(draw) for _ in range(2)] if "wander" in one else []
    for bits_2 in one["keys"]:
        for seat, wanderer in enumerate(wanderers):
            bits_2[seat] = wanderer.keys(*env.players[seat].body.position)
        platform.physics_process(0.05)
        action = {
            seat: np.array([bits_2[seat] >> bit & 1 for bit in range(10)], float)
            for seat in range(2)
        }
        env.step(action)
        if min(player.stocks for player in env.players) <= 0:
            break
        row = []
        for player in env.players:
            seen, body = player.get_obs(), player.body
            row.append(
                [
                    *(*body.position, *body.velocity, int(player.facing), seen[5], seen[7]),
                    *(seen[8], seen[9], seen[10], seen[11], player.damage, player.stocks),
                    *seen[14:16],
                    *(*seen[22:28], seen[18], seen[21], player.body.position.y >= 4.2),
                ]
            )
        shown.append(row)
    return start, np.array(shown)


def main() -> None:
    found = sequences()
    with contextlib.redirect_stdout(io.StringIO()):
        env = WarehouseBrawl(resolution=CameraResolution.LOW, mode=RenderMode.NONE)
        played = [play(env, one) for one in found]
    longest = max(len(one["keys"]) for one in found)
    steps = np.zeros((len(found), longest, 2, len(FIELDS)), np.int32)
    keys = np.zeros((len(found), longest, 2), np.uint16)
    for number, (one, (_, shown)) in enumerate(zip(found, played, strict=True)):
        numbers = np.rint(shown * SCALE).astype(np.int32)
        steps[number, : len(shown)] = np.diff(numbers, axis=0, prepend=0)
        keys[number, : len(shown)] = one["keys"][: len(shown)]
    np.savez_compressed(
        sys.argv[1],
        family_S=np.array([one["family"] for one in found]),
        start_S24=np.stack([start for start, _ in played]).astype(np.float32),
        comes_S2=np.array([one.get("comes", (0, 0)) for one in found], np.int32),
        frames_S=np.array([len(shown) for _, shown in played], np.int32),
        keys_SF2=keys,
        steps_KS2F=steps.astype(np.int16).transpose(3, 0, 2, 1).copy(),  # packs best
        fields_K=np.array(FIELDS),
        scale_K=SCALE,
    )
    print(f"{len(found)} sequences, {sum(len(shown) for _, shown in played)} frames")


if __name__ == "__main__":
    main()
