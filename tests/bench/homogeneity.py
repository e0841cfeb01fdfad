"""Measures how soon the comparison of workers detects a wrong evaluator, and its false alarms.

    OMP_NUM_THREADS=1 python tests/bench/homogeneity.py [--runs 200] [--matches 10000]

Simulated evaluators share the matches of 60 players, whose strengths span 4 logits. Seats and seeds
affect the outcomes. An evaluator asks for 16 matches at a time: four matches of each of four pairs.
Only players of similar strength form pairs. Half of the time the pairs are random, otherwise they
are the pairs whose scores are least certain, so the schedule depends on earlier outcomes. The
workers are compared after each request.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from league.stats.homogeneity import CERTAIN, Homogeneity, PairOfMatches, found

PLAYERS, NEIGHBOURS, DRAWS, CHOSEN, SEEDS = 60, 3, 0.1, 4, 2
WRONG = {
    "none": "healthy",
    "rules": "wins shifted by 15 points, in favour of either player by chance",
    "taste": "wins shifted by 15 points on average, by what a player is good at",
    "file": "the weights of one player of 60 are corrupted",
    "device": "it computes all networks wrong; 10 of the 60 are bots",
    "draws": "25 % of its matches are drawn, and 10 % of the others'",
    "failures": "5 % of its matches fail, and 0.5 % of the others'",
}
"""What distinguishes the wrong worker from the others."""


class World:
    """Simulates matches by the players' strengths. Worker 0 plays them wrong."""

    def __init__(self, wrong: str, rng: np.random.Generator) -> None:
        self.wrong, self.rng = wrong, rng
        self.strengths = np.linspace(-2.0, 2.0, PLAYERS) + rng.normal(0.0, 0.3, PLAYERS)
        self.favours = rng.normal(0.0, 0.133, PLAYERS)  # mean difference of two players: .15
        self.pair_favours = rng.choice([-0.15, 0.15], (PLAYERS, PLAYERS))
        self.spoilt = int(rng.integers(PLAYERS))

    def play(self, worker: int, a: int, b: int) -> PairOfMatches:
        points, draws, failures = 0.0, 0, 0
        of_seed = self.rng.normal(0.0, 0.5)
        for seat in (0.3, -0.3):
            gap = self.strengths[a] - self.strengths[b] + seat + of_seed
            draw, fails = DRAWS, 0.005
            shift = 0.0
            if worker == 0:
                match self.wrong:
                    case "file":
                        gap -= 5.0 * ((a == self.spoilt) - (b == self.spoilt))
                    case "device":
                        gap -= 2.0 * (bool(a % 6) - bool(b % 6))
                    case "rules":
                        shift = self.pair_favours[a, b]
                    case "taste":
                        shift = self.favours[a] - self.favours[b]
                    case "draws":
                        draw = 0.25
                    case "failures":
                        fails = 0.05
            if self.rng.random() < fails:
                failures += 1
                continue
            wins = np.clip((1.0 - draw) / (1.0 + np.exp(-gap)) + shift, 0.0, 1.0 - draw)
            throw = self.rng.random()
            points += 1.0 if throw < wins else 0.5 * (throw < wins + draw)
            draws += bool(wins <= throw < wins + draw)
        return PairOfMatches(points, draws, failures)


def run(wrong: str, workers: int, matches: int, seed: int) -> tuple[int, int | None, float]:
    """Simulates a run. Returns the number of matches until an alarm, the worker that it names (-1
    for two workers that contradict each other, None without an alarm), and the most evidence in the
    run.
    """
    rng = np.random.default_rng(seed)
    world, watch, most = World(wrong, rng), Homogeneity(), 0.0
    pairs = [(a, b) for a in range(PLAYERS) for b in range(a + 1, min(PLAYERS, a + 1 + NEIGHBOURS))]
    played, points = np.full(len(pairs), 2.0), np.ones(len(pairs))
    speed = rng.uniform(0.5, 1.0, workers)
    at_once = 2 * CHOSEN * SEEDS
    for done in range(at_once, matches + 1, at_once):
        worker = int(rng.choice(workers, p=speed / speed.sum()))
        share = points / played
        known_least = np.argsort(share * (share - 1.0) / played)
        any_of = rng.permutation(len(pairs))
        for chosen in (known_least, any_of)[int(rng.integers(2))][:CHOSEN].tolist():
            a, b = pairs[chosen]
            for _ in range(SEEDS):
                outcome = world.play(worker, a, b)
                watch.add(f"evaluator-{worker}", "eval", f"p{a}", f"p{b}", outcome)
                played[chosen] += 2
                points[chosen] += outcome.points
        suspects = watch.suspects()
        if suspects:
            most = max(most, suspects[0].evidence)
            guilty, torn = found(suspects)
            if guilty is not None or torn:
                who = -1 if guilty is None else int(guilty.worker.rpartition("-")[2])
                return done, who, most
    return matches, None, most


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--matches", type=int, default=10_000)
    parser.add_argument("--wrong", nargs="*", choices=list(WRONG), default=list(WRONG))
    args = parser.parse_args()
    for wrong in args.wrong:
        for workers in (2, 3, 4):
            runs = [run(wrong, workers, args.matches, seed) for seed in range(args.runs)]
            ended = sorted(done for done, who, _ in runs if who is not None)
            right = sum(who == 0 for _, who, _ in runs)
            torn = sum(who == -1 for _, who, _ in runs)
            healthy = len(ended) - right - torn
            line = f"{WRONG[wrong]}, {workers} evaluators: "
            if wrong == "none":
                most = np.exp(max(one[2] for one in runs))
                line += f"{len(ended)} of {len(runs)} alarms, most evidence 1 in {most:,.0f}"
            else:
                when = np.quantile(ended, (0.5, 0.9)) if ended else (np.nan, np.nan)
                line += (
                    f"found {right}, both of two {torn}, a healthy one {healthy} of {len(runs)}; "
                    f"after {when[0]:,.0f} matches, nine of ten after {when[1]:,.0f}"
                )
            print(line, flush=True)
    print(f"an alarm needs 1 in {np.exp(CERTAIN):,.0f}")


if __name__ == "__main__":
    main()
