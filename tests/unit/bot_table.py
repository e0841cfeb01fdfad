"""Plays every scripted bot against every other, and prints payoffs and behaviour as Markdown
tables.

    python tests/unit/bot_table.py [--matches 40] [--stage warehouse]

Shape suffixes: B bots, M matches of a pair, S statistics.
"""

from __future__ import annotations

import argparse
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from league.games.brawl.game import BrawlGame
from league.games.brawl.spec import STATS

FRAMES_PER_MINUTE: Final = 1800


class BotTable(NamedTuple):
    """What all pairs of bots did. `scores_BBM`: 1, 0.5 or 0 for the row's bot; the rest is its
    own too.
    """

    names: tuple[str, ...]
    scores_BBM: NDArray[np.float32]
    frames_BBM: NDArray[np.int32]
    stats_BBMS: NDArray[np.float32]

    def behaviour(self) -> dict[str, NDArray[np.float64]]:
        """Each bot's figures over its matches with all others (not with itself), [B] each."""
        others = ~np.eye(len(self.names), dtype=bool)
        frames_B = (self.frames_BBM.sum(-1) * others).sum(1)
        sums_BS = (self.stats_BBMS.sum(2) * others[..., None]).sum(1, dtype=np.float64)
        matches = self.scores_BBM.shape[2] * (len(self.names) - 1)
        total = {name: sums_BS[:, s] for s, name in enumerate(STATS)}
        minutes_B = frames_B / FRAMES_PER_MINUTE
        return {
            "score": (self.scores_BBM.mean(-1) * others).sum(1) / (len(self.names) - 1),
            "speed": total["speed_sum"] / frames_B,
            "distance": total["distance_sum"] / frames_B,
            "air %": 100.0 * total["air_frames"] / frames_B,
            "attacks/min": total["attacks"] / minutes_B,
            "hits/min": total["hits"] / minutes_B,
            "dodges/min": total["dodges"] / minutes_B,
            "jumps/min": total["jumps"] / minutes_B,
            "keys": total["keys_pressed"] / frames_B,
            "pick-ups": total["pickups"] / matches,
            "falls": total["falls"] / matches,
        }


def play_all(
    matches: int,
    *,
    stage: str = "warehouse",
    names: tuple[str, ...] = (),
    seed: int = 0,
    threads: int = 1,
) -> BotTable:
    """`matches` (even) of every ordered pair: the same seeds once from either seat.

    `names`: the bots, all when empty.
    """
    first = BrawlGame(1, stage=stage)
    names = names or tuple(bot.name for bot in first.spec.bots)
    bots_B = np.array([first.spec.bot_index(name) for name in names], np.int8)
    size, half = len(names), matches // 2
    row, column, k = (a.ravel() for a in np.indices((size, size, 2 * half)))
    game = BrawlGame(len(row), stage=stage, threads=threads)
    seat = k % 2
    here = np.arange(len(row))
    game.bots_N2[here, seat], game.bots_N2[here, 1 - seat] = bots_B[row], bots_B[column]
    game.reset((seed + k // 2).astype(np.uint64))
    scores, stats = (
        np.full(len(row), np.nan, np.float32),
        np.zeros((len(row), len(STATS)), np.float32),
    )
    frames = np.zeros(len(row), np.int32)
    nothing = np.zeros((len(row), 2, game.spec.action_size), np.uint8)
    for _ in range(game.spec.max_frames):
        game.step(nothing)
        now = np.flatnonzero(game.ended_N & np.isnan(scores))
        scores[now] = np.where(seat[now] == 0, game.outcomes_N[now], 1 - game.outcomes_N[now])
        frames[now] = game.final_frames_N[now]
        stats[now] = game.final_stats_N2S[now, seat[now]]
    game.close()
    shape = (size, size, 2 * half)
    return BotTable(
        names, scores.reshape(shape), frames.reshape(shape), stats.reshape(*shape, len(STATS))
    )


def markdown(table: BotTable) -> str:
    """Both tables: behaviour, and the share of wins (draws count half) of the row against the
    column.
    """
    figures = table.behaviour()
    lines = ["| bot | " + " | ".join(figures) + " |", "|---" * (len(figures) + 1) + "|"]
    for b, name in enumerate(table.names):
        values = (f"{figure_B[b]:.2f}" for figure_B in figures.values())
        lines.append(f"| {name} | " + " | ".join(values) + " |")
    lines += [
        "",
        "| % against | " + " | ".join(table.names) + " |",
        "|---" * (len(table.names) + 1) + "|",
    ]
    for name, scores_BM in zip(table.names, table.scores_BBM, strict=True):
        lines.append(
            f"| {name} | " + " | ".join(f"{100 * s:.0f}" for s in scores_BM.mean(-1)) + " |"
        )
    return "\n".join(lines)


def main() -> None:
    """Plays and prints."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--matches", type=int, default=40, help="of each pair, half of them from either seat"
    )
    parser.add_argument("--stage", default="warehouse")
    given = parser.parse_args()
    print(markdown(play_all(given.matches, stage=given.stage)))


if __name__ == "__main__":
    main()
