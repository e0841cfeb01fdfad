"""What are the agent's encoder of the opponent's past (`agent.encoder`) and its LSTM
(`agent.recurrent`) worth? All four cells of the two, against bots whose habits only the course of
a match shows.

    OMP_NUM_THREADS=1 .venv/bin/python tests/bench/memory.py FOLDER --games rps brawl --seeds 6
    --steps 500k [--start SNAPSHOT] [--jobs 2] [--until 23:30]

The bot is drawn for each match, and the agent doesn't know which it is. A piece is a game, a cell
and a seed; all cells of a seed begin with the same weights. After its training it plays clean
matches with other seeds, against every bot equally often and from both seats. Its result is a file
in FOLDER: the same command skips those that exist. What is measured:

    points         share of the matches' points, in %
    first, second  what the agent gained in half of each match's decisions, at the rate of a whole
                   one; memory shows in the second. In `rps`, rock-paper-scissors of 60 rounds
                   against twelve classic bots: wins less losses per 100 rounds, in the second half
                   86 for who knows the bot. In `brawl`, against eight variants of one
                   bot: knock-outs of the bot less its own, per 100 matches

`--start` gives brawl's agents the weights of a snapshot or checkpoint of the same sizes. One that
was trained with memory is worth less to agents without.
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
from learner.exploiter.command import steps_of
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
"""`agent.encoder` and `agent.recurrent`."""
CLEAN = 1 << 62
"""Seeds of clean matches begin here; training draws its own below."""

# -- rock-paper-scissors ---------------------------------------------------------------------------

TAKE = np.eye(3)
ROUNDS, SLIP = 60, 0.1
"""In a share of `SLIP` of the rounds a bot takes any hand, as all do in the first round."""


class Past(NamedTuple):
    """What N bots know: both players' last hands, and how often the other one took each hand
    [N, 3], in all and after its last hand.
    """

    own: NDArray[np.intp]
    other: NDArray[np.intp]
    counts: NDArray[np.int32]
    after: NDArray[np.int32]


def beat(hand_N: Any) -> Any:
    """The hands that win against these."""
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
"""How likely each bot takes each hand. The last three beat the most frequent hand, the rarest one,
and the one that most often followed the last; of equal ones the first.
"""


def scripted(name: str) -> ScriptedBot:
    """The bot of this name in `HABITS`."""

    def strategy(positions_N: Positions, players_N: NDArray[np.intp], _: Any) -> Any:
        rows, others_N = np.arange(len(players_N)), 1 - players_N
        own, other = (positions_N["last"][rows, who].astype(int) for who in (players_N, others_N))
        counts, after = positions_N["counts"][rows, others_N], positions_N["after"][rows, others_N]
        slip_N1 = np.where(other == NOTHING, 1.0, SLIP)[:, None]
        wanted = HABITS[name](Past(own, other, counts, after[rows, other]))
        return slip_N1 / 3 + (1.0 - slip_N1) * wanted

    return ScriptedBot(name=name, summary="has a habit", strategy=strategy)


class RepeatedRps(MatrixRules):
    """Rock-paper-scissors whose positions hold what its bots must know of the rounds before."""

    # with how often a player took a hand, in all and after its hand before
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
    """N matches of `RepeatedRps`."""
    return ChoiceGame(RepeatedRps(), num_matches, max_frames)


# -- brawl -----------------------------------------------------------------------------------------


class Fighter(NamedTuple):
    """What makes a variant of the bot, which comes up to its opponent and strikes within reach.

    Attributes:
        attack: key of its attacks.
        period, comes: frames; of each period it comes in the first ones alone, and else keeps away.
        keeps: how far, in units.
        flees: the side to which it jumps for a second after a hit, -1 the left and 1 the right.
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
"""Units: of attacks; from the middle to where the grounds begin, where it turns and where they end;
and the height below which it jumps to come back to them.
"""


class HabitBrawl(BrawlGame):
    """The fighter with the bots of `FIGHTERS`, which decide as often as agents do."""

    def __init__(self, num_matches: int, *, max_frames: int | None = None) -> None:
        super().__init__(num_matches, max_frames=max_frames)
        bots = tuple(BotSpec(name=name, summary=str(one)) for name, one in FIGHTERS.items())
        self.spec = replace(self.spec, bots=bots)
        self.bots_N2 = self.bots_N2.copy()  # the compiled step keeps its own, without any bot
        self._hit_N2 = np.zeros((num_matches, 2), np.int32)  # the last frame in a stun
        self._traits = np.array(list(FIGHTERS.values())).T

    def step(self, actions_N2A: NDArray[np.uint8], frames: int = 1) -> None:
        """Plays `frames` frames with the keys held, the bots' too.

        These press jump and attack in odd decisions alone: keys count again once they came up.
        """
        rows, seats = np.nonzero(self.bots_N2 != EXTERNAL)
        attack, period, comes_in, keeps, flees_to, hops = self._traits[:, self.bots_N2[rows, seats]]
        me, other = self._players_N2[rows, seats], self._players_N2[rows, 1 - seats]
        dx, dy, x, now_R = other["x"] - me["x"], other["y"] - me["y"], me["x"], self.frames_N[rows]
        odd_R = now_R // frames % 2 == 1
        hit_R = np.minimum(self._hit_N2[rows, seats], now_R)  # of this match, not the one before
        hit_R = self._hit_N2[rows, seats] = np.where(me["stun_left"] > 0, now_R, hit_R)
        flees = (flees_to != 0) & (hit_R > 0) & (now_R - hit_R < 30)
        comes = (now_R % period < comes_in) & (other["state"] != rules.KO) & ~flees
        way = np.where(comes, np.sign(dx), -np.sign(dx) * (np.abs(dx) < keeps))
        inward = way * x < 0.0  # who gets away does not leap into the pit, nor turns over it
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
    """How a game is made, its preset and what differs from it, and the stats that are gains."""

    factory: Callable[..., BatchedGame]
    preset: str
    changes: Sequence[str]
    gains: Mapping[str, float]


FIXED = ("learner.ent_coef=0.02", "learner.ent_coef_final=0.005", "regularisation.alpha=0")
"""Against fixed opponents: less entropy, and no reference."""
GAMES = {
    "rps": Game(make_rps, "board", FIXED, {"payoff": 100.0 / ROUNDS}),
    "brawl": Game(HabitBrawl, "laptop", (), {"knockouts": 100.0, "falls": -100.0}),
}


@dataclass(frozen=True, kw_only=True)
class Piece:
    """One training and its clean matches."""

    game: str
    cell: str
    seed: int
    steps: int
    matches: int
    start: str | None

    def settings(self) -> SessionSettings:
        """The preset's, in one stage; makes the game known to this process."""
        name, game = f"memory-{self.game}", GAMES[self.game]
        if name not in game_names():
            register(name, game.factory)
        encoder, recurrent = CELLS[self.cell]
        own = [f"game.name={name}", f"learner.steps={self.steps}", f"learner.seed={self.seed}"]
        own += [f"agent.encoder={encoder}", f"agent.recurrent={recurrent}", *game.changes]
        return SessionSettings.of(resolve(game.preset, None, own, environment={}))


class Curve(BaseCallback):
    """Keeps what each training match gained."""

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
    """The network of a piece after its training, and the mean gain in each twentieth of it."""
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
    """What the network is worth in clean matches, and in their second halves against each bot."""
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
    """A mean, and half the width of its 95 % interval (Student's t)."""
    if len(values) < 2:
        return "".join(f"{value:.1f}" for value in values)
    reach = stats.t.ppf(0.975, len(values) - 1) * stats.sem(values)
    return f"{np.mean(values):.1f} ± {reach:.1f}"


def table(game: str, found: Mapping[tuple[str, int], Mapping[str, float]]) -> str:
    """What was measured in a game, by cell and seed, in Markdown: a row for each cell."""
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
    """The time that HH:MM is today, or an ISO time."""
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
