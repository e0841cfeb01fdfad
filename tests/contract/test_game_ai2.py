"""A checkout of the original keeps the contract of a batched game; small_original takes its place.

With KUMITE_AI2 (a checkout, whose `.venv` holds its packages) the original itself plays too.
"""

from __future__ import annotations

import ast
import multiprocessing
import os
import shutil
import subprocess
import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from game_contract import RestingContract, assert_same, history, luck, seeds
from numpy.typing import NDArray
from rival_files import LIMITS, RUNS_RIGHT, stored
from thread_workers import threads_of

from league.agent.architectures import network_of
from league.agent.config import SIZES, AgentConfig
from league.agent.rivals import RivalSeats
from league.agent.snapshot import SnapshotCard, save_snapshot
from league.cli.main import main
from league.contest.matches import paired, play_bouts
from league.contest.members import check_plays
from league.errors import ConfigError, InvalidInput, Unavailable, VersionMismatch
from league.games import hosted
from league.games.ai2 import observation
from league.games.ai2.observation import converted
from league.games.ai2.worker import Worker
from league.games.base import EXTERNAL, BatchedGame
from league.games.brawl.rules import KEY_NAMES
from league.games.registry import game_spec, make_batched
from league.games.settings import GameSettings
from league.replay import Bout, Contender, Recipe, load_replay
from league.runs.blobs import BlobFolder
from league.settings.base import resolve

SMALL = Path(__file__).with_name("small_original")
LEFT, RIGHT, STRIKE, TAUNT = (KEY_NAMES.index(name) for name in "ADJG")


def make_worker(command: list[str]) -> Worker:
    return Worker(command[2:-1], 0.0)


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(SMALL)
    monkeypatch.setattr(hosted, "Process", threads_of(make_worker))


def small(matches: int, folder: Path = SMALL, **options: Any) -> BatchedGame:
    return make_batched(f"ai2:{folder}", matches, python=sys.executable, **options)


def pressed(game: BatchedGame, *where: tuple[int, int, int]) -> NDArray[np.uint8]:
    """No key but these: (row, seat, key)."""
    actions_N2A = game.idle_actions()
    for place in where:
        actions_N2A[place] = 1
    return actions_N2A


@pytest.mark.usefixtures("threads")
class TestSmallOriginal(RestingContract):
    pace = 10

    def make(self, num_matches: int, max_frames: int | None = None) -> BatchedGame:
        return small(num_matches, max_frames=max_frames, workers=1)


def stat(game: BatchedGame, name: str) -> list[float]:
    """Of the match that is played in row 0, by seat."""
    return game.stats_N2S[0, :, game.spec.stats.index(name)].tolist()


@pytest.mark.usefixtures("threads")
class TestMatches:
    def begun(self, matches: int = 1, **options: Any) -> BatchedGame:
        game = small(matches, workers=1, **options)
        game.reset(seeds(matches))
        return game

    def test_agents_of_brawl_find_what_they_know(self) -> None:
        spec, brawl = game_spec(f"ai2:{SMALL}", python=sys.executable), game_spec("brawl")
        for name in ("observation_names", "own_size", "action_names", "reward_terms"):
            assert getattr(spec, name) == getattr(brawl, name)
        assert spec.max_frames == 90 * spec.frames_per_second
        assert [bot.name for bot in spec.bots] == ["constant", "random", "based", "clockwork"]
        assert spec.reward_presets["laptop"] == brawl.reward_presets["laptop"]

    def test_observations_are_the_originals_converted(self) -> None:
        game = self.begun()
        side = stat(game, "spawn_side")[0]
        assert sorted(stat(game, "spawn_side")) == [-1.0, 1.0]
        for _ in range(10):
            game.step(pressed(game, (0, 0, RIGHT)))
        raw = [5.0 * side + 2.0, 2.4, 6.0, 0.0, side < 0, 1, 0, 0, 1, 0, 0, 0, 0, 3, 0, 0]
        own = game.observations_N2O[0, 0]
        assert own[: len(raw)] == pytest.approx(converted([*raw, *[0] * 16])[: len(raw)])
        assert np.array_equal(own[:64], game.observations_N2O[0, 1, [*range(32, 64), *range(32)]])
        assert np.array_equal(game.observations_N2O[0, :, 64:], pressed(game, (0, 0, RIGHT))[0])
        assert own[28] > 0, "the platform moves once more a frame, as in the original's matches"

    def test_terms_and_totals_count_what_happened(self) -> None:
        game = self.begun()
        terms = game.spec.reward_terms
        paid = np.zeros(len(terms))
        one, two = (RIGHT, LEFT) if stat(game, "spawn_side")[0] < 0 else (LEFT, RIGHT)
        for _ in range(24):
            game.step(pressed(game, (0, 0, one), (0, 1, two)))
            paid += game.reward_terms_N2K[0, 0]
        assert dict(zip(terms, paid.tolist(), strict=True))["toward_opponent"] == pytest.approx(4.8)
        for _ in range(3):
            game.step(pressed(game, (0, 0, STRIKE)))
            paid += game.reward_terms_N2K[0, 0]
        counted = dict(zip(terms, paid.tolist(), strict=True))
        assert stat(game, "damage_dealt") == [26.0, 0.0]
        assert stat(game, "damage_taken") == [0.0, 26.0]
        assert stat(game, "hits") == [2.0, 0.0]
        assert stat(game, "attacks") == [1.0, 0.0]
        assert counted["damage"] == pytest.approx(26 / 140)
        assert counted["combo"] == 1.0

    def test_a_fall_counts_as_unhit_unless_a_hit_came_in_the_three_seconds_before(self) -> None:
        game = self.begun()
        outward = LEFT if stat(game, "spawn_side")[0] < 0 else RIGHT
        for _ in range(60):
            game.step(pressed(game, (0, 0, outward)))
        assert stat(game, "falls") == [1.0, 0.0]
        assert stat(game, "falls_unhit") == [1.0, 0.0]
        assert stat(game, "knockouts") == [0.0, 1.0]
        inward = RIGHT if outward == LEFT else LEFT
        for _ in range(40):  # the other comes, while this one waits for 90 frames
            game.step(pressed(game, (0, 1, outward)))
        while stat(game, "damage_taken")[0] == 0:
            game.step(pressed(game, (0, 0, inward), (0, 1, STRIKE)))
        while stat(game, "falls")[0] < 2:
            game.step(pressed(game, (0, 0, outward)))
        assert stat(game, "falls_unhit") == [1.0, 0.0]

    @pytest.mark.parametrize("loser", [0, 1])
    def test_stocks_decide(self, loser: int) -> None:
        game = self.begun(max_frames=100)
        outward = LEFT if stat(game, "spawn_side")[loser] < 0 else RIGHT
        for _ in range(100):
            game.step(pressed(game, (0, loser, outward)))
        assert game.ended_N[0]
        assert game.outcomes_N[0] == loser
        game = self.begun()
        game.reset(seeds(1))
        for _ in range(600):
            game.step(pressed(game, (0, loser, outward)))
            if game.ended_N[0]:
                break
        assert game.outcomes_N[0] == loser, "three falls end a match"
        assert game.final_frames_N[0] < 600


@pytest.mark.parametrize(
    ("fault", "reason", "failing"),
    [
        ("raise", "ArithmeticError", [2]),
        ("hang", "0.5 s", [2, 3]),
        ("exit", "exited 7", [2, 3]),
    ],
)
def test_a_failure_costs_its_match_or_those_of_its_process(
    tmp_path: Path, fault: str, reason: str, failing: list[int]
) -> None:
    folder = shutil.copytree(SMALL, tmp_path / "checkout")
    (folder / "fault").write_text(fault)
    game = small(4, folder, workers=2, step_seconds=0.5)
    game.reset(seeds(4))
    game.step(game.idle_actions())
    game.step(pressed(game, (2, 0, TAUNT)))
    assert sorted(game.failures) == failing
    assert all(reason in said for said in game.failures.values())
    game.step(game.idle_actions())
    assert not game.failures
    assert game.frames_N.tolist() == [1 if row in failing else 3 for row in range(4)]
    game.close()


def test_processes_play_the_same_match_in_silence_and_end(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    found, pids = [], set[int]()
    for workers in (1, 3):
        game = small(6, workers=workers)
        game.bots_N2[:, 1] = [0, 1, 2, 3, 1, 2]
        game.reset(seeds(6))
        found.append(history(game, luck(game, 30)))
        pids |= set(game.worker_pids)
        game.close()
    assert_same(*found)
    assert len(pids) == 4
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    assert capfd.readouterr() == ("", "")


ORPHANS = """
import sys, numpy as np
from league.games.registry import make_batched
game = make_batched(sys.argv[1], 2, workers=2, python=sys.executable)
game.reset(np.arange(2, dtype=np.uint64))
print(*game.worker_pids, flush=True)
sys.stdin.read()
"""


def test_no_worker_outlives_a_killed_game() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", ORPHANS, f"ai2:{SMALL}"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        assert parent.stdout is not None
        pids = [int(word) for word in parent.stdout.readline().split()]
        watched = [os.pidfd_open(pid) for pid in pids]
        parent.kill()
    for file in watched:  # readable once the process has ended
        assert multiprocessing.connection.wait([file])
        os.close(file)


def test_what_cannot_be_played_is_said_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"{tmp_path}.*environment/environment"):
        game_spec(f"ai2:{tmp_path}")
    with pytest.raises(ConfigError, match="ai2:FOLDER"):
        game_spec("ai2")
    with pytest.raises(ConfigError, match=r"\.venv/bin/python"):
        game_spec(f"ai2:{SMALL}")
    with pytest.raises(ConfigError, match="/no/python"):
        game_spec(f"ai2:{SMALL}", python="/no/python")
    with pytest.raises(ConfigError, match="workers = -1"):
        small(1, workers=-1)
    with pytest.raises(Unavailable, match="exited 1"):
        make_batched(f"ai2:{SMALL}", 1, python=shutil.which("false")).reset(seeds(1))


def test_a_missing_package_is_named(tmp_path: Path) -> None:
    folder = shutil.copytree(SMALL, tmp_path / "checkout")
    (folder / "environment" / "environment.py").write_text("import pymunk_of_old\n")
    game = small(2, folder)
    with pytest.raises(Unavailable, match="pymunk_of_old"):
        game.reset(seeds(2))
    assert game.worker_pids == []


def test_the_version_is_that_of_the_checkouts_rules(tmp_path: Path) -> None:
    folder = shutil.copytree(SMALL, tmp_path / "checkout")
    version = game_spec(f"ai2:{folder}", python=sys.executable).version
    assert version == game_spec(f"ai2:{SMALL}", python=sys.executable).version
    (folder / "environment" / "agent.py").write_text("# another\n")
    assert small(1, folder).spec.version != version


def table(out: str) -> list[dict[str, str]]:
    heads, *rows = (line.split("\t") for line in out.splitlines())
    return [dict(zip(heads, row, strict=True)) for row in rows]


CARD = SnapshotCard(
    agent=AgentConfig(
        observation_size=64, own_size=32, action_size=10, sequence_length=17, **SIZES["tiny"]
    ),
    game="brawl",
    game_version="of old",
    frame_skip=4,
)


@pytest.mark.parametrize(
    ("game", "here", "error"),
    [
        ("brawl", "ai2", None),
        ("ai2:/elsewhere", "ai2", None),
        ("ai2:/elsewhere", "brawl", None),
        ("brawl", "brawl", VersionMismatch),
        ("kuhn", "ai2", InvalidInput),
    ],
)
def test_agents_of_brawl_and_the_original_play_in_each_other(
    game: str, here: str, error: type[Exception] | None
) -> None:
    spec = game_spec("brawl") if here == "brawl" else small(1).spec
    with pytest.raises(error, match=game) if error else nullcontext():
        check_plays("main@1", replace(CARD, game=game), spec)


def test_a_rival_of_brawl_plays_in_the_original(tmp_path: Path) -> None:
    options = [f"game.options.python={sys.executable}", "game.options.workers=1"]
    words = [f"game.name=ai2:{SMALL}", "game.match_seconds=3", *options]
    settings = resolve(assignments=words, environment={}).of(GameSettings)
    spec, blobs = settings.spec(), BlobFolder(tmp_path / "blobs")
    first = Contender(name="rival", digest=stored(blobs, RUNS_RIGHT, tmp_path))
    seats = EXTERNAL, spec.bot_index("constant")
    failures = dict[Bout, str]()
    played = list(
        play_bouts(
            Recipe.of(settings),
            paired(first, Contender(name="constant"), seats, 2, 0),
            network_of,
            frame_skip=4,
            seed=0,
            failures=failures,
            rivals=RivalSeats(blobs, LIMITS),
        )
    )
    assert failures == {}
    for replay, seat in zip(played, (0, 1), strict=True):
        walks_T2 = replay.actions_T2A[:, seat, [LEFT, RIGHT]]
        assert walks_T2.sum(1).tolist() == [1] * len(walks_T2), "in each frame to one side"
        assert walks_T2[0, 1] == (replay.stats[seat]["spawn_side"] < 0), "to the opponent"


@pytest.mark.parametrize(("version", "status"), [("4", 0), (game_spec("brawl").version, 2)])
def test_an_agent_plays_on_that_saw_fewer_numbers_by_older_rules(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], version: str, status: int
) -> None:
    torch.manual_seed(0)
    card = replace(CARD, game_version=version)
    agent = save_snapshot(BlobFolder(tmp_path), network_of(card.agent), card)
    words = ["record", f"{tmp_path / agent}.safetensors", "based", "--game", "brawl"]
    assert main([*words, "--matches", "4", "--set", "game.match_seconds=10"]) == status
    assert ("sees 64 numbers" in capsys.readouterr().err) == (status == 2)


def test_record_counts_an_agent_of_brawl_by_seat_and_side(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    option = f"game.options.python={sys.executable}"
    torch.manual_seed(0)
    agent = save_snapshot(BlobFolder(tmp_path), network_of(CARD.agent), CARD)
    game = ["--game", f"ai2:{SMALL}", "--set", option, "--set", "game.options.workers=1"]
    words = ["record", f"{agent}.safetensors", "based", *game, "--set", "game.match_seconds=20"]
    words += ["--matches", "8", "--run-dir", "run", "--out", "kept"]
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.json").write_text('{"format": 1, "version": "0.1.0"}')
    (tmp_path / "run" / "config.toml").write_text('extends = "laptop"\n')  # it plays brawl
    assert main(words) == 0
    rows = table(capsys.readouterr().out)
    assert [row["seat"] for row in rows] == ["both", "first", "second", "left", "right"]
    for row in rows:
        counts = [int(row[name]) for name in ("wins", "draws", "losses")]
        assert sum(counts) == int(row["matches"]) == (8 if row["seat"] == "both" else 4)
        assert float(row["low"][:-1]) <= float(row["score"][:-1]) <= float(row["high"][:-1])
    assert float(rows[0]["damage_taken"]) > float(rows[0]["damage_dealt"])
    files = list((tmp_path / "kept").glob("*.replay"))
    won = [replay.winner == replay.names.index(agent[:12]) for replay in map(load_replay, files)]
    assert int(rows[0]["wins"]) == sum(won) > int(rows[0]["losses"])
    assert main(["replay", str(files[0]), *game]) == 0


@pytest.mark.parametrize("name", ["worker.py", "observation.py"])
def test_what_runs_elsewhere_needs_numpy_and_python_3_10_alone(name: str) -> None:
    source = Path(observation.__file__).with_name(name).read_text()
    found = set[str]()
    for node in ast.walk(ast.parse(source, feature_version=(3, 10))):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "league").partition(".")[0])
    assert found <= sys.stdlib_module_names | {"numpy"}


ORIGINAL = os.environ.get("KUMITE_AI2", "")
ITS_OWN_LOOP = """
import random, sys
sys.path.insert(0, ".")
import gdown
gdown.download = lambda *_, **__: None
from environment.agent import BasedAgent, ClockworkAgent, run_match
for seed in (3, 4):
    random.seed(seed)
    stats = run_match(BasedAgent(), ClockworkAgent(), max_timesteps=900)
    found = (stats.player1, stats.player2)
    seconds = round(stats.match_time * 30)
    print("found", seconds, *((p.lives_left, p.damage_taken) for p in found), file=sys.stderr)
"""


@pytest.mark.skipif(not ORIGINAL, reason="KUMITE_AI2 names no checkout of the original")
def test_the_original_plays_as_in_its_own_loop() -> None:
    game = make_batched(f"ai2:{ORIGINAL}", 2, max_frames=900)
    game.bots_N2[:] = game.spec.bot_index("based"), game.spec.bot_index("clockwork")
    game.reset(np.array([3, 4], np.uint64))
    found: dict[int, str] = {}
    while len(found) < 2:
        game.step(game.idle_actions())
        for row in np.flatnonzero(game.ended_N & ~game.idle_N).tolist():
            falls, taken = (
                game.final_stats_N2S[row, :, game.spec.stats.index(name)].tolist()
                for name in ("falls", "damage_taken")
            )
            lives = [(3 - int(fell), hurt) for fell, hurt in zip(falls, taken, strict=True)]
            found[row] = f"found {game.final_frames_N[row]} {lives[0]} {lives[1]}"
            game.idle_N[row] = True
    game.close()
    done = subprocess.run(
        [f"{ORIGINAL}/.venv/bin/python", "-c", ITS_OWN_LOOP],
        cwd=ORIGINAL,
        env={**os.environ, "SDL_VIDEODRIVER": "dummy", "PYTHONPATH": ""},
        capture_output=True,
        text=True,
    )
    lines = [line for line in done.stderr.splitlines() if line.startswith("found")]
    assert [line.replace(".0)", ")") for line in lines] == [
        found[row].replace(".0)", ")") for row in (0, 1)
    ]
