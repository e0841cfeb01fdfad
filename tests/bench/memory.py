"""Measures what the encoder of the opponent's past (`agent.encoder`) and the LSTM are worth.

    OMP_NUM_THREADS=1 .venv/bin/python tests/bench/memory.py FOLDER --games rps brawl --seeds 6
    --steps 500k [--start SNAPSHOT] [--jobs 2] [--until 23:30]

It trains all four combinations (cells) of the encoder and the LSTM (`agent.recurrent`), against
bots whose habits only show in the course of a match. Each match draws a bot, and the agent doesn't
observe which. A piece is a game, a cell and a seed, and all cells of a seed begin with the same
weights. After its training, the agent plays clean matches with other seeds, equally often against
every bot and from both seats. The result of a piece is a file in FOLDER, and the same command skips
pieces whose file exists. The measures:

    points         share of the matches' points, in %
    first, second  the agent's gain in the first and the second half of each match's decisions, as a
                   rate for a whole match. Memory shows in the second half. `rps` is
                   rock-paper-scissors of 60 rounds against twelve classic bots, and the gain is
                   wins minus losses per 100 rounds. An agent that knows the bot reaches 86 in the
                   second half. `brawl` is against eight variants of one bot, and the gain is the
                   number of times that the bot was knocked out minus the number of times that the
                   agent was, per 100 matches

`--start` initialises brawl's agents from a snapshot or checkpoint of the same sizes. If it was
trained with memory, it is worth less to agents without memory.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from datetime import date, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import stats
from stable_baselines3.common.callbacks import BaseCallback

sys.path.insert(0, str(Path(__file__).parents[2]))  # learner.py in this folder is not the package
from league.agent.batched_policy import LIVE, BatchedPolicy
from league.agent.config import AgentConfig
from league.agent.contract import PlayingNetwork
from league.agent.device import keep_memory
from league.console.text import steps_of
from league.games import register
from league.games.base import EXTERNAL, BatchedGame, BotSpec
from league.games.brawl import rules
from league.games.brawl.game import BrawlGame
from league.games.choice_game import ChoiceGame
from league.games.choice_rules import Positions, ScriptedBot
from league.games.matrix import NOTHING, MatrixRules, named_payoffs
from league.games.registry import game_names
from league.players import Player, PlayerKind
from league.runs.blobs import BlobFolder
from league.runs.files import write_whole
from league.settings.base import resolve
from learner.ppo.league_ppo import LeaguePPO
from learner.rollout.mix_source import MixSource
from learner.train.build import SessionSettings, initial_values, make_env, make_game, make_model
from learner.train.checkpoint import load_weights

CELLS = {
    "none": ("none", "false"),
    "LSTM": ("none", "true"),
    "history": ("streaming", "false"),
    "both": ("streaming", "true"),
}
"""Values of `agent.encoder` and `agent.recurrent`."""
CLEAN = 1 << 62
"""First seed of clean matches. Seeds of training matches are smaller."""

# -- rock-paper-scissors ---------------------------------------------------------------------------

TAKE = np.eye(3)
ROUNDS, SLIP = 60, 0.1
"""Rounds of a match, and the share of rounds in which a bot chooses a random hand. In the first
round, all bots do.
"""


class Past(NamedTuple):
    """Describes what N bots know: both players' last hands, and how often the opponent chose each
    hand [N, 3], in all rounds (`counts`) and in rounds after a hand equal to its last one
    (`after`).
    """

    own: NDArray[np.intp]
    other: NDArray[np.intp]
    counts: NDArray[np.int32]
    after: NDArray[np.int32]


def beat(hand_N: Any) -> Any:
    """Returns the hands that beat these hands."""
    return (hand_N + 1) % 3


HABITS: dict[str, Callable[[Past], NDArray[np.float64]]] = {
    "rock": lambda past: TAKE[0],
    "paper": lambda past: TAKE[1],
    "scissors": lambda past: TAKE[2],
    "leaning": lambda past: np.array([0.2, 0.6, 0.2]),
    "cycle": lambda past: TAKE[beat(past.own)],
    "backward": lambda past: TAKE[beat(beat(past.own))],
    "chaser": lambda past: TAKE[beat(past.other)],
    "echo": lambda past: TAKE[past.other],
    "win-stay": lambda past: TAKE[
        np.where(past.other == beat(past.own), beat(past.other), past.own)
    ],
    "counter": lambda past: TAKE[beat(past.counts.argmax(1))],
    "contrary": lambda past: TAKE[beat(past.counts.argmin(1))],
    "markov": lambda past: TAKE[beat(past.after.argmax(1))],
}
"""Each bot's probabilities of the three hands. The last three bots beat the opponent's most
frequent hand, its rarest hand, and the hand that most often followed its last hand. If hands are
equally frequent, the first counts.
"""


def scripted(name: str) -> ScriptedBot:
    """Returns the bot of this name in `HABITS`."""

    def strategy(positions_N: Positions, players_N: NDArray[np.intp], _: Any) -> Any:
        rows, others_N = np.arange(len(players_N)), 1 - players_N
        own, other = (positions_N["last"][rows, who].astype(int) for who in (players_N, others_N))
        counts, after = positions_N["counts"][rows, others_N], positions_N["after"][rows, others_N]
        slip_N1 = np.where(other == NOTHING, 1.0, SLIP)[:, None]
        wanted = HABITS[name](Past(own, other, counts, after[rows, other]))
        return slip_N1 / 3 + (1.0 - slip_N1) * wanted

    return ScriptedBot(name=name, summary="has a habit", strategy=strategy)


class RepeatedRps(MatrixRules):
    """Plays rock-paper-scissors. A position contains what the bots have to know of earlier
    rounds.
    """

    # also counts how often a player chose each hand, in all rounds and after each of its hands
    record = np.dtype(
        [*MatrixRules.record.descr, ("counts", "<i4", (2, 3)), ("after", "<i4", (2, 3, 3))]
    )

    def __init__(self) -> None:
        super().__init__("rps", named_payoffs("rps"), ROUNDS)
        self.bots = tuple(map(scripted, HABITS))

    def play(self, positions_N: Positions, choices_N2: NDArray[np.intp]) -> Any:
        """Counts the hands, and plays the round."""
        rows, last_N2 = np.arange(len(positions_N)), positions_N["last"].astype(int)
        for player in (0, 1):
            last_N, hands_N = last_N2[:, player], choices_N2[:, player]
            positions_N["counts"][rows, player, hands_N] += 1
            positions_N["after"][rows, player, last_N, hands_N] += last_N != NOTHING
        return super().play(positions_N, choices_N2)


def make_rps(num_matches: int, *, max_frames: int | None = None) -> ChoiceGame:
    """Makes matches of `RepeatedRps`."""
    return ChoiceGame(RepeatedRps(), num_matches, max_frames)


# -- brawl -----------------------------------------------------------------------------------------


class Fighter(NamedTuple):
    """Describes a variant of the bot. The bot approaches its opponent and strikes within reach.

    Attributes:
        attack: key of its attacks.
        period, comes: frames. The bot approaches in the first `comes` frames of each period, and
            keeps away in the other frames.
        keeps: the distance at which it keeps away, in units.
        flees: side to which it jumps for a second after a hit: -1 left, 1 right, 0 neither.
        hops: whether it jumps whenever it can.
    """

    attack: int = rules.LIGHT
    period: int = 1
    comes: int = 1
    keeps: float = 4.0
    flees: int = 0
    hops: bool = False


FIGHTERS = {
    "plain": Fighter(),
    "leftward": Fighter(flees=-1),
    "rightward": Fighter(flees=1),
    "heavy": Fighter(attack=rules.HEAVY),
    "quick-beat": Fighter(period=90, comes=45),
    "slow-beat": Fighter(period=240, comes=120),
    "shy": Fighter(comes=0, keeps=2.5),
    "hopper": Fighter(hops=True),
}
REACH, EDGE, TURNS_BACK, OUTER, JUMPS_BELOW = 2.0, 2.0, 6.0, 7.0, 0.0
"""In units: reach of attacks, then distances from the middle at which the grounds begin, at which a
bot turns back, and at which the grounds end. The last value is the height below which a bot jumps
to return to the grounds.
"""


class HabitBrawl(BrawlGame):
    """Plays brawl with the bots of `FIGHTERS`, which decide as often as agents do."""

    def __init__(self, num_matches: int, *, max_frames: int | None = None) -> None:
        super().__init__(num_matches, max_frames=max_frames)
        bots = tuple(BotSpec(name=name, summary=str(one)) for name, one in FIGHTERS.items())
        self.spec = replace(self.spec, bots=bots)
        self.bots_N2 = self.bots_N2.copy()  # the compiled step keeps the original, without bots
        self._hit_N2 = np.zeros((num_matches, 2), np.int32)  # the last frame with a stun
        self._traits = np.array(list(FIGHTERS.values())).T

    def step(self, actions_N2A: NDArray[np.uint8], frames: int = 1) -> None:
        """Plays `frames` frames with constant keys, including the bots' keys.

        The bots press jump and attack only in every other decision, because a key only counts again
        after its release.
        """
        rows, seats = np.nonzero(self.bots_N2 != EXTERNAL)
        attack, period, comes_in, keeps, flees_to, hops = self._traits[:, self.bots_N2[rows, seats]]
        me, other = self._players_N2[rows, seats], self._players_N2[rows, 1 - seats]
        dx, dy, x, now_R = other["x"] - me["x"], other["y"] - me["y"], me["x"], self.frames_N[rows]
        odd_R = now_R // frames % 2 == 1
        hit_R = np.minimum(self._hit_N2[rows, seats], now_R)  # ignores hits of the last match
        hit_R = self._hit_N2[rows, seats] = np.where(me["stun_left"] > 0, now_R, hit_R)
        flees = (flees_to != 0) & (hit_R > 0) & (now_R - hit_R < 30)
        comes = (now_R % period < comes_in) & (other["state"] != rules.KO) & ~flees
        way = np.where(comes, np.sign(dx), -np.sign(dx) * (np.abs(dx) < keeps))
        inward = way * x < 0.0  # a bot that keeps away must not enter or turn over the pit
        way = np.where(~comes & inward & (np.abs(x) < EDGE + 1.0), 0.0, way)
        way = np.where(~comes & (np.abs(x) < EDGE), np.sign(me["vx"]), way)
        way = np.where(flees, flees_to, way)
        way = np.where(np.abs(x) > TURNS_BACK, -np.sign(x), way)
        is_off = ((np.abs(x) < EDGE) | (np.abs(x) > OUTER)) & (me["y"] > JUMPS_BELOW)
        leaps = odd_R & ((me["grounded"] > 0) | (me["vy"] > 0.0))  # no jump is lost on the way up
        jumps = leaps & (is_off | (comes & (dy < 0.0)) | flees | (hops > 0))
        recovers = leaps & is_off & (me["air_jumps"] == 0)
        strikes = odd_R & ~flees & ~recovers & (dx**2 + dy**2 < REACH**2)
        keys = np.where(way < 0, rules.LEFT, np.where(way > 0, rules.RIGHT, 0))
        keys = keys | jumps * rules.JUMP | strikes * attack.astype(int) | recovers * rules.HEAVY
        actions_N2A = np.array(actions_N2A, np.uint8)
        actions_N2A[rows, seats] = keys[:, None] >> np.arange(self.spec.action_size) & 1
        super().step(actions_N2A, frames)


# -- training and clean matches --------------------------------------------------------------------


class Game(NamedTuple):
    """Describes a game: how to make it, its preset with changes, and the weights of statistics in a
    gain.
    """

    factory: Callable[..., BatchedGame]
    preset: str
    changes: Sequence[str]
    gains: Mapping[str, float]


FIXED = ("learner.ent_coef=0.02", "learner.ent_coef_final=0.005", "regularisation.alpha=0")
"""Changes for training against fixed opponents: less entropy, and no reference."""
GAMES = {
    "rps": Game(make_rps, "board", FIXED, {"payoff": 100.0 / ROUNDS}),
    "brawl": Game(HabitBrawl, "laptop", (), {"knockouts": 100.0, "falls": -100.0}),
}


@dataclass(frozen=True, kw_only=True)
class Piece:
    """Describes a training and its clean matches."""

    game: str
    cell: str
    seed: int
    steps: int
    matches: int
    start: str | None

    def settings(self) -> SessionSettings:
        """Returns the preset's settings for this piece, and registers the game in this process."""
        name, game = f"memory-{self.game}", GAMES[self.game]
        if name not in game_names():
            register(name, game.factory)
        encoder, recurrent = CELLS[self.cell]
        own = [f"game.name={name}", f"learner.steps={self.steps}", f"learner.seed={self.seed}"]
        own += [f"agent.encoder={encoder}", f"agent.recurrent={recurrent}", *game.changes]
        return SessionSettings.of(resolve(game.preset, None, own, environment={}))


class Curve(BaseCallback):
    """Keeps the gain of each training match."""

    def __init__(self, gains: Mapping[str, float]) -> None:
        super().__init__()
        self.weights, self.gained = gains, list[float]()

    def _on_step(self) -> bool:
        return True

    def _on_rollout_end(self) -> None:
        assert isinstance(self.model, LeaguePPO)
        for match in self.model.env.finished:
            self.gained.append(sum(match.stats[name] * by for name, by in self.weights.items()))


def trained(piece: Piece) -> tuple[PlayingNetwork, list[float]]:
    """Trains a piece. Returns its network, and the mean gain in each twentieth of the training."""
    settings, curve = piece.settings(), Curve(GAMES[piece.game].gains)
    torch.set_num_threads(settings.learner.threads)
    keep_memory()
    game, cpu = make_game(settings), torch.device("cpu")
    live = Player(name="main", game=game.spec.name, kind=PlayerKind.LIVE)
    source = MixSource({bot.name: 1.0 for bot in game.spec.bots}, game.spec, live, [], piece.seed)
    with tempfile.TemporaryDirectory(prefix="kumite-memory-") as folder:
        blobs, stage = BlobFolder(Path(folder)), settings.curriculum.stages[0]
        env = make_env(settings, game, source, blobs, stage, cpu, live)
        config = AgentConfig.of(settings.agent, game.spec)
        model = make_model(settings, config, env, Path(folder), cpu, lambda: False)
        if piece.start:
            load_weights(model, initial_values(piece.start, blobs, [], piece.game)[0])
        model.learn(piece.steps, callback=curve)
    game.close()
    parts = np.array_split(curve.gained, 20)
    return model.policy.network, [float(np.mean(part)) for part in parts if len(part)]


def clean(network: PlayingNetwork, piece: Piece) -> dict[str, Any]:
    """Measures the network in clean matches, and in their second halves also against each bot."""
    settings, n = piece.settings(), piece.matches
    game, rows = settings.game.make(n), np.arange(n)
    spec, seat_N, bot_N = game.spec, rows % 2, rows // 2 % len(game.spec.bots)
    kind: dict[str, Any] = {"action_size": spec.action_size, "action_kind": spec.action_kind}
    policy = BatchedPolicy(n, lambda digest: network, seed=piece.seed, **kind)
    policy.set_live(network)
    for row in range(n):
        policy.seat(row, LIVE)
    game.bots_N2[rows, 1 - seat_N] = bot_N
    game.reset(np.array([CLEAN + (piece.seed << 20) + row for row in range(n)], np.uint64))
    weights_S = np.array([GAMES[piece.game].gains.get(name, 0.0) for name in spec.stats])
    actions_N2A, gained_TN = game.idle_actions(), [np.zeros(n)]
    playing_N, length_N, points_N = np.ones(n, np.bool_), np.zeros(n, int), np.zeros(n)
    while playing_N.any():
        legal_NA = None if game.legal_N2A is None else game.legal_N2A[rows, seat_N]
        actions_N2A[rows, seat_N] = policy.act(game.observations_N2O[rows, seat_N], legal_NA)
        game.step(actions_N2A, settings.game.frame_skip)
        ended_N1 = game.ended_N[:, None]
        stats_NS = np.where(
            ended_N1, *(of[rows, seat_N] for of in (game.final_stats_N2S, game.stats_N2S))
        )
        gained_TN.append(np.where(playing_N, stats_NS @ weights_S, gained_TN[-1]))
        length_N += playing_N
        won_N = np.where(seat_N == 0, game.outcomes_N, 1.0 - game.outcomes_N)
        points_N = np.where(playing_N & game.ended_N, won_N, points_N)
        playing_N &= ~game.ended_N
    game.close()
    first_N = 2.0 * np.array(gained_TN)[length_N // 2, rows]
    second_N = 2.0 * gained_TN[-1] - first_N
    return {
        "points": float(100.0 * points_N.mean()),
        "first": float(first_N.mean()),
        "second": float(second_N.mean()),
        "by_bot": {bot.name: float(second_N[bot_N == i].mean()) for i, bot in enumerate(spec.bots)},
    }


# -- the study -------------------------------------------------------------------------------------


def result(piece: Piece, file: Path, until: float) -> str:
    """Trains and measures a piece, unless it is too late to begin."""
    if time.time() > until:
        return f"{file.stem}: not begun"
    began = time.monotonic()
    network, curve = trained(piece)
    found = {"piece": asdict(piece), "curve": curve, **clean(network, piece)}
    found["seconds"] = round(time.monotonic() - began)
    write_whole(file, json.dumps(found, indent=1) + "\n")
    return f"{file.stem}: {found['second']:.1f} in the second half, {found['seconds']} s"


def mean_words(values: Sequence[float]) -> str:
    """Formats a mean and half the width of its 95 % interval (Student's t)."""
    if len(values) < 2:
        return "".join(f"{value:.1f}" for value in values)
    reach = stats.t.ppf(0.975, len(values) - 1) * stats.sem(values)
    return f"{np.mean(values):.1f} ± {reach:.1f}"


def table(game: str, found: Mapping[tuple[str, int], Mapping[str, float]]) -> str:
    """Returns the measures of a game in Markdown, with a row for each cell."""
    measures = ("points", "first", "second")
    lines = [[game, "seeds", *measures, *(f"{name} less none" for name in measures)]]
    lines.append(["---"] * len(lines[0]))
    for cell in CELLS:
        own = {seed: one for (of, seed), one in found.items() if of == cell}
        pairs = [(one, found["none", seed]) for seed, one in own.items() if ("none", seed) in found]
        row = [cell, str(len(own))]
        row += [mean_words([one[name] for one in own.values()]) for name in measures]
        less = [mean_words([one[name] - none[name] for one, none in pairs]) for name in measures]
        lines.append([*row, *(less if cell != "none" else [""] * 3)])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def moment(text: str) -> float:
    """Returns the Unix time of HH:MM today, or of an ISO time."""
    return datetime.fromisoformat(text if "T" in text else f"{date.today()}T{text}").timestamp()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--games", nargs="+", choices=GAMES, default=list(GAMES))
    parser.add_argument("--cells", nargs="+", choices=CELLS, default=list(CELLS))
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--steps", type=steps_of, default=500_000, help="500000, 500k or 2M")
    parser.add_argument("--matches", type=int, default=400, help="clean ones of each training")
    parser.add_argument("--start", help="snapshot or checkpoint that brawl's agents begin with")
    parser.add_argument("--jobs", type=int, default=1, help="pieces at once, a process for each")
    parser.add_argument("--until", type=moment, default=math.inf, metavar="HH:MM")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    pieces = {}
    for game, seed, cell in itertools.product(options.games, range(options.seeds), options.cells):
        start = options.start if game == "brawl" else None
        given = {"steps": options.steps, "matches": options.matches, "start": start}
        piece = Piece(game=game, cell=cell, seed=seed, **given)
        file = options.folder / f"{game}-{cell}-{seed}.json"
        if file.exists() and json.loads(file.read_text())["piece"] != asdict(piece):
            raise SystemExit(f"{file} was made with other options: use another folder")
        pieces[file] = piece
    todo = [(piece, file) for file, piece in pieces.items() if not file.exists()]
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.jobs, mp_context=spawn, max_tasks_per_child=1) as pool:
        for done in as_completed([pool.submit(result, *one, options.until) for one in todo]):
            print(done.result(), flush=True)
    for game in options.games:
        files = {file: one for file, one in pieces.items() if one.game == game and file.exists()}
        found = {(one.cell, one.seed): json.loads(file.read_text()) for file, one in files.items()}
        print(f"\n{table(game, found)}")
    print("\nmean ± 95 % (Student's t) over seeds; less none: seed by seed")


if __name__ == "__main__":
    main()
