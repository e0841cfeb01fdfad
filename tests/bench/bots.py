"""Plays each pair of scripted bots, and prints the two tables of docs/game.md.

PYTHONPATH=tests/unit .venv/bin/python tests/bench/bots.py [--matches 40]
"""

from __future__ import annotations

import argparse

import numpy as np
from test_brawl_bots import FRAMES_PER_MINUTE, BotTable, play_all

from league.games.brawl.spec import STATS


def behaviour(table: BotTable) -> dict[str, list[float]]:
    """Returns each bot's figures over its matches with all others."""
    size = len(table.names)
    others = ~np.eye(size, dtype=bool)
    frames_B = (table.frames_BBM.sum(-1) * others).sum(1)
    sums_BS = (table.stats_BBMS.sum(2) * others[..., None]).sum(1, dtype=np.float64)
    total = {name: sums_BS[:, s] for s, name in enumerate(STATS)}
    minutes_B, matches = frames_B / FRAMES_PER_MINUTE, table.scores_BBM.shape[2] * (size - 1)
    return {
        "score": ((table.scores_BBM.mean(-1) * others).sum(1) / (size - 1)).tolist(),
        "speed": (total["speed_sum"] / frames_B).tolist(),
        "distance": (total["distance_sum"] / frames_B).tolist(),
        "air %": (100.0 * total["air_frames"] / frames_B).tolist(),
        "attacks/min": (total["attacks"] / minutes_B).tolist(),
        "hits/min": (total["hits"] / minutes_B).tolist(),
        "dodges/min": (total["dodges"] / minutes_B).tolist(),
        "jumps/min": (total["jumps"] / minutes_B).tolist(),
        "keys": (total["keys_pressed"] / frames_B).tolist(),
        "pick-ups": (total["pickups"] / matches).tolist(),
        "falls": (total["falls"] / matches).tolist(),
    }


def markdown(corner: str, columns: list[str], rows: dict[str, list[str]]) -> str:
    """Returns a Markdown table."""
    lines = [
        f"| {' | '.join(cells)} |"
        for cells in [[corner, *columns], *([n, *c] for n, c in rows.items())]
    ]
    return "\n".join([lines[0], "|" + "---|" * (1 + len(columns)), *lines[1:]])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--matches", type=int, default=40, help="of each ordered pair (even)")
    table = play_all(parser.parse_args().matches)
    figures = behaviour(table)
    of_bots = zip(*figures.values(), strict=True)
    rows = {name: [f"{x:.2f}" for x in row] for name, row in zip(table.names, of_bots, strict=True)}
    print(markdown("bot", list(figures), rows))
    print()
    points_BB = 100.0 * table.scores_BBM.mean(-1)
    points = {b: [f"{x:.0f}" for x in row] for b, row in zip(table.names, points_BB, strict=True)}
    print(markdown("% against", list(table.names), points))


if __name__ == "__main__":
    main()
