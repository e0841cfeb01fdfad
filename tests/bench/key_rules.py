"""How much of a player is left when its frames become an agent's decisions, by `cloning.key_rule`.

    OMP_NUM_THREADS=1 python tests/bench/key_rules.py [--matches 100] [--player based] [--frames 4]

The bot plays at full speed and is followed as a clone would follow it at best: keys that hold for
some frames, made of the bot's own next frames by each rule. The follower meets bots that decide
every frame, the bot itself among them, half of the matches from either seat, the same seeds for
every rule; in the last column a twentieth of its time is disturbed. A score counts a draw half.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[2]))  # learner.py beside this file is not the package
from league.agent import bouts
from league.games.settings import GameSettings
from league.replay import Contender, Recipe
from league.replay.recorder import keys_for_decision
from learner.cloning.demonstrations import keys_of_decisions
from learner.cloning.settings import CloningSettings

RULES = get_args(CloningSettings.model_fields["key_rule"].annotation)
DISTURB = 0.05
FOLLOWER = "follower"
Keys = NDArray[np.uint8]


def following(rule: str) -> Callable[[Keys, Keys, Keys], Keys]:
    """The keys to hold for the frames [F, ..., A] by `rule`; the others need no memory of what
    was held.
    """
    if rule == "taps":
        return keys_for_decision

    def keys(frames_FA: Keys, before_A: Keys, held_A: Keys) -> Keys:
        flat_FX = frames_FA.reshape(len(frames_FA), -1)
        return keys_of_decisions(flat_FX, len(frames_FA), rule)[0].reshape(frames_FA.shape[1:])

    return keys


def score(
    game: GameSettings,
    player: str,
    opponent: str,
    rule: str,
    matches: int,
    frames: int,
    disturb: float,
) -> float:
    """The follower's share of points against `opponent`."""
    spec = game.spec()
    bots = spec.bot_index(player), spec.bot_index(opponent)
    made = bouts.paired(
        Contender(name=FOLLOWER), Contender(name=opponent), bots, matches, 0, FOLLOWER
    )
    bouts.keys_for_decision = following(rule)
    played = bouts.play_bouts(
        Recipe.of(game), made, no_weights, frame_skip=1, seed=0, pace=frames, disturb=disturb
    )
    points = [
        match.outcome if match.seats[0].name == FOLLOWER else 1 - match.outcome for match in played
    ]
    return float(np.mean(points))


def no_weights(digest: str) -> bouts.PlayingNetwork:
    raise ValueError(f"bots alone play here, and no {digest}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "--matches", type=int, default=100, help="against each opponent, for each rule"
    )
    parser.add_argument("--player", default="based", help="the bot that is followed")
    parser.add_argument("--opponents", nargs="+", default=["based", "constant", "random"])
    parser.add_argument("--frames", type=int, default=4, help="that a decision lasts")
    options = parser.parse_args()
    game = GameSettings(name="brawl")
    columns = [(name, 0.0) for name in options.opponents] + [(options.player, DISTURB)]
    heads = [f"{name} {share:.0%} disturbed" if share else name for name, share in columns]
    print("rule      " + "  ".join(f"{head:>20}" for head in heads))
    for rule in RULES:
        started = time.perf_counter()
        scores = [
            score(game, options.player, name, rule, options.matches, options.frames, share)
            for name, share in columns
        ]
        took = time.perf_counter() - started
        print(
            f"{rule:8}  " + "  ".join(f"{one:20.1%}" for one in scores) + f"  ({took:.0f} s)",
            flush=True,
        )


if __name__ == "__main__":
    main()
