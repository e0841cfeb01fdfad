"""kill -9 at any moment, started again: the run equals one that was never interrupted, bit for bit.

`bin/learner` as a process, against a real matchmaker. A first run is left alone, and what the
matchmaker drew for it is recorded; a second one in another league plays the same matches and is
killed again and again.

python -m pytest -m slow tests/service/test_exact_resume.py      # every moment, or KUMITE_KILLS of
them
"""

from __future__ import annotations

import dataclasses
import os
import re
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from killed_learner import MOMENTS, NEVER, live
from recorded_draws import RecordedDraws

from league.agent.snapshot import SnapshotCard, load_snapshot
from league.players import PlayerKind
from league.runs.blobs import BlobFolder
from league.settings.base import resolve
from learner.train.checkpoint import CheckpointFolder
from matchmaker.api.server import MatchmakerServer
from matchmaker.settings import MatchmakerSettings

LEARNING = """
[learner]
matches = 8
n_steps = 8
batch_size = 32
n_epochs = 2
learning_rate = 2e-3
learning_rate_final = 1e-3
desired_kl = 1e-5
forecast_coef = 0.3
ent_coef = 0.02
ent_coef_final = 0.001
snapshot_interval = 128

[regularisation]
alpha = 0.2
form = "{form}"
reference_interval = 12
portfolio_size = 4

[[curriculum.stages]]
name = "first"
mix = "first"
max_steps = 320

[[curriculum.stages]]
name = "second"
mix = "second"
{reward}
"""
"""A rollout has 64 steps and 4 updates and is followed by a checkpoint; a snapshot comes every
256 steps, twice the interval, a reference every 192.
"""

KEYS = (
    LEARNING.format(form="loss", reward='reward = "curriculum"')
    + """
[agent]
encoder = "streaming"

[game]
match_seconds = 2

[matchmaker]
matches_per_draw = 1

[matchmaker.mixes]
first = { constant = 1.0, random = 1.0, self = 1.0 }
second = { snapshots = 3.0, reference = 2.0, self = 2.0, based = 1.0 }
"""
)
"""The fighter, keys; rewards that turn from one preset into another while the second stage
lasts.
"""

CHOICES = (
    LEARNING.format(form="reward", reward="")
    + """
[agent]
encoder = "streaming"

[game]
name = "leduc"

[matchmaker]
matches_per_draw = 1

[matchmaker.mixes]
first = { random = 1.0, self = 1.0 }
second = { snapshots = 3.0, reference = 2.0, self = 2.0, random = 1.0 }
"""
)
"""Poker, masked choices; references in the rewards, with memories of both seats."""

WORKERS = CHOICES.replace('name = "leduc"', 'name = "leduc"\nworkers = 2')
"""The same in worker processes, which save their matches."""

HOSTED = CHOICES.replace("leduc", "pettingzoo:small_environments:Nim")
"""An environment in worker processes, whose matches are played again from their actions."""

GAMES = {
    "keys": ("laptop", KEYS),
    "choices": ("board", CHOICES),
    "workers": ("board", WORKERS),
    "hosted": ("board", HOSTED),
}


@dataclass
class League:
    """A matchmaker with recorded draws, and the run folder of its learner."""

    folder: Path
    preset: str
    server: MatchmakerServer
    drawn: RecordedDraws

    def live(self, moment: str, times: int, steps: int, context: str) -> int | None:
        """One life of the learner; returns how it ended."""
        flags = ["--matchmaker", self.server.address, "--run-dir", str(self.folder), "--cpu"]
        flags += ["--preset", self.preset, "--config", str(self.folder / "config.toml")]
        flags += ["--steps", str(steps)]
        return live(flags, moment, times, self.log, context)

    @property
    def log(self) -> Path:
        return self.folder / "learner.log"


@contextmanager
def league(
    folder: Path, game: str, drawn: RecordedDraws, patch: pytest.MonkeyPatch
) -> Iterator[League]:
    folder.mkdir()
    preset, settings = GAMES[game]
    config = folder / "config.toml"
    config.write_text(settings)
    section = MatchmakerSettings.of(resolve(preset, config))
    with patch.context() as own:
        server = MatchmakerServer(folder / "league.db", 0, section, seed=1)
        drawn.of(server, own)
        with server:
            yield League(folder, preset, server, drawn)


def outcome(of: League) -> dict[str, Any]:
    """Everything that a run leaves, without what is of its league (ids, digests) or of the
    clock.
    """
    return {
        "checkpoint": checkpoint(of),
        "results": results(of),
        "members": members(of),
        "files": {
            name: rows(of.folder / "learner-main" / name, left_out)
            for name, left_out in FILES.items()
        },
    }


def checkpoint(of: League) -> dict[str, Any]:
    """The last one. Matches go by their places in the record, seated snapshots by their names."""
    saved = CheckpointFolder(of.folder / "learner-main" / "checkpoints").read_newest()
    assert saved is not None
    names = {player.digest: player.name for player in of.server.league.view.players.values()}
    environment, batched_policy = saved["environment"], saved["environment"]["opponent_policy"]
    environment["matches"] = [of.drawn.places[match_id] for match_id in environment["matches"]]
    batched_policy["digests"] = [names.get(digest, digest) for digest in batched_policy["digests"]]
    for stack in batched_policy["stacks"]:
        stack[2] = [names[digest] for digest in stack[2]]
    card, milestone = saved["pending"]
    saved["pending"] = [lasting(card), milestone]
    for of_the_moment in ("log_position", "ready"):
        del saved[of_the_moment]
    return saved


def lasting(card_json: str) -> dict[str, Any]:
    """A card without the rates and the time of the moment."""
    return vars(dataclasses.replace(SnapshotCard.from_json(card_json), metrics={}, created_at=0.0))


def results(of: League) -> list[tuple[Any, ...]]:
    """The results that count, in the order of the log."""
    with of.server.store.read() as reader:
        return [
            (
                of.drawn.places[row.match_id],
                *(row.seat0, row.seat1, row.outcome, row.frames, row.failed),
                *(row.step0, row.step1, row.end_step0, row.end_step1),
                row.stats,
            )
            for row in reader.results()
            if row.lost_by is None
        ]


def members(of: League) -> dict[str, Any]:
    """Members with weights: what the matchmaker knows of them, their cards and their weights."""
    blobs, found = BlobFolder(of.folder / "blobs"), {}
    for player in of.server.league.view.players.values():
        if player.kind in (PlayerKind.SNAPSHOT, PlayerKind.REFERENCE):
            known = (player.kind, player.state, player.step, player.parent, player.milestone)
            weights = load_snapshot(blobs, player.digest)[0].state_dict()
            found[player.name] = (known, lasting(player.card_json), weights)
    return found


FILES: dict[str, Sequence[int]] = {
    "monitor.csv": (2,),  # the time
    "behavior_metrics.csv": (1,),  # a match's id
    "reward_breakdown.csv": (),
    "strategy_analysis.csv": (),
}


def rows(file: Path, left_out: Sequence[int]) -> list[list[str]]:
    lines = [line.split(",") for line in file.read_text().splitlines() if not line.startswith("#")]
    return [[cell for column, cell in enumerate(line) if column not in left_out] for line in lines]


def differences(one: Any, two: Any, where: str = "") -> Iterator[str]:
    """The places in which two values differ by a bit or more."""
    if type(one) is not type(two):
        yield f"{where}: {type(one).__name__} and {type(two).__name__}"
    elif isinstance(one, dict):
        for key in one.keys() | two.keys():
            if key not in one or key not in two:
                yield f"{where}/{key}: only in {'one' if key in one else 'the other'}"
            else:
                yield from differences(one[key], two[key], f"{where}/{key}")
    elif isinstance(one, list | tuple):
        if len(one) != len(two):
            yield f"{where}: {len(one)} and {len(two)} long"
        for place, (first, second) in enumerate(zip(one, two, strict=False)):
            yield from differences(first, second, f"{where}/{place}")
    elif isinstance(one, torch.Tensor):
        if one.dtype != two.dtype or not torch.equal(one, two):
            yield f"{where}: tensors"
    elif one != two:
        yield f"{where}: {one!r} and {two!r}"


def random_kills(count: int, seed: int) -> list[tuple[str, int]]:
    """`count` moments, each kind in turn, at random times of a life."""
    random = np.random.default_rng(seed)
    kinds = [
        kind for _ in range(-(-count // len(MOMENTS))) for kind in random.permutation(list(MOMENTS))
    ]
    return [
        (str(kind), int(random.integers(1, MOST.get(str(kind), 1) + 1))) for kind in kinds[:count]
    ]


MOST = {
    "in a rollout": 40,
    "in an update": 20,
    "after a step of the optimizer": 20,
    "in a checkpoint's file": 2,
    "before a file has its name": 4,
    "after results": 6,
}
"""Times that something is done in a life of a few rollouts, where it is more than once."""
KILLS = int(os.environ.get("KUMITE_KILLS", len(MOMENTS)))
FEW = 768, "forkserver"
MANY = 2048 + 256 * KILLS, "spawn"
LONG = pytest.mark.long
SLOW = [pytest.mark.slow, pytest.mark.timeout(600 + 60 * KILLS)]


@pytest.mark.timeout(400)  # processes on a machine that may be busy
@pytest.mark.parametrize(
    ("game", "kills", "steps", "context"),
    [
        ("keys", (("in a checkpoint's file", 3), ("in an update", 22)), *FEW),
        pytest.param("choices", (("after a reference", 2), ("in a rollout", 37)), *FEW, marks=LONG),
        pytest.param("workers", (("in a rollout", 37),), *FEW, marks=LONG),
        pytest.param("hosted", (("in a rollout", 37),), *FEW, marks=LONG),
        pytest.param("keys", random_kills(KILLS, 1), *MANY, marks=SLOW),
        pytest.param("choices", random_kills(KILLS, 2), *MANY, marks=SLOW),
    ],
)
def test_a_run_that_is_killed_again_and_again_equals_one_that_was_not(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    game: str,
    kills: Sequence[tuple[str, int]],
    steps: int,
    context: str,
) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "contract")  # the hosted game
    with league(tmp_path / "whole", game, RecordedDraws({}), monkeypatch) as whole:
        assert whole.live(*NEVER, steps, context) == 0, whole.log.read_text()
        expected = outcome(whole)
    exercised(expected, steps)
    with league(
        tmp_path / "killed", game, RecordedDraws(whole.drawn.record), monkeypatch
    ) as killed:
        for moment in kills:
            ended = killed.live(*moment, steps, context)
            assert ended == -signal.SIGKILL, (moment, killed.log.read_text())
        assert killed.live(*NEVER, steps, context) == 0, killed.log.read_text()
        found = outcome(killed)
    assert re.search(r"continues from\D*\d+", killed.log.read_text())
    assert list(differences(found, expected)) == []


def exercised(expected: dict[str, Any], steps: int) -> None:
    """That the run had everything that a checkpoint holds."""
    saved = expected["checkpoint"]
    algorithm = saved["algorithm"]
    assert algorithm["num_timesteps"] == steps
    assert algorithm["updates"] == steps // 16
    assert algorithm["rate_scale"] < 1.0, "the step size was steered"
    assert algorithm["forecast"], "it foretells its opponents"
    assert len(algorithm["references"]["members"]) >= 3, "there is a portfolio"
    assert saved["curriculum"]["index"] == 1, "a stage ended"
    pairs = {result[1:3] for result in expected["results"]}
    assert ("main", "main") in pairs, "the learner meets itself"
    assert any("@" in name for pair in pairs for name in pair), "and snapshots"
    assert any("reference" in name for pair in pairs for name in pair), "and references"
    kinds = [known[0] for known, *_ in expected["members"].values()]
    assert kinds.count(PlayerKind.SNAPSHOT) == steps // 256
    assert kinds.count(PlayerKind.REFERENCE) == 1 + steps // 192
    assert len(expected["results"]) > steps // 32
