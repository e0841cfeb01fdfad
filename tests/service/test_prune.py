"""`bin/league prune`: the weights of retired snapshots go, but for those that something needs."""

from __future__ import annotations

import csv
import json
import os
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from small_league import BOTS, bot, live, snapshot

from league.cli.main import main
from league.games.registry import game_spec
from league.players import Book, Pairing, Player, PlayerKind, PlayerState, Role
from league.replay import Contender, Recipe, Replay, save_replay
from league.rpc.client import MatchmakerClient
from league.runs.blobs import BlobFolder
from league.runs.finding import FORMAT
from matchmaker.api.server import MatchmakerServer
from matchmaker.settings import MatchmakerSettings
from matchmaker.tools.fsck import fsck

LONG_AGO = time.time() - 1e6


class Run:
    """A run of `main` with a snapshot every 1,000 steps, of which the league keeps two."""

    def __init__(self, folder: Path, client: MatchmakerClient) -> None:
        self.folder, self.client, self.blobs = folder, client, BlobFolder(folder / "blobs")
        self.client.register_players([*(bot(name) for name in BOTS), live()])

    def freeze(self, step: int, **changes: object) -> Player:
        own = {"creator": "learner-main", "created_at": LONG_AGO, "parent": "main"}
        player = snapshot(step, **(own | changes))
        player = replace(player, digest=self.blobs.put(player.name.encode()))
        self.client.register_players([player])
        return player

    def retired(self) -> set[str]:
        found = self.client.players([PlayerKind.SNAPSHOT], [PlayerState.RETIRED])
        return {one.name for one in found}

    def without_weights(self) -> set[str]:
        players = self.client.players()
        return {one.name for one in players if one.digest and not self.blobs.has(one.digest)}


def evaluated(folder: Path, *names: str) -> None:
    (folder / "evaluator").mkdir()
    with (folder / "evaluator" / "evaluation_results.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["player"], *([name] for name in names)])


def test_weights_that_nothing_needs_are_listed_and_go_when_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "run.json").write_text(json.dumps({"format": FORMAT}))
    settings = MatchmakerSettings(max_saved=2, mixes={"league": {"snapshots": 1.0}})
    with (
        MatchmakerServer(tmp_path / "league.db", settings=settings) as server,
        MatchmakerClient(server.address) as client,
    ):
        run = Run(tmp_path, client)
        frozen = {step: run.freeze(step) for step in range(1000, 7000, 1000)}
        hunter = client.open_incarnation("learner-hunter").number
        hunt = client.begin_generation(hunter, "hunter", Role.MAIN_EXPLOITER, 1, 0, ())
        run.freeze(7000)
        run.freeze(8000, parent="main@7000", milestone=True)
        reference = Player(
            name="main.reference-1",
            game="brawl",
            kind=PlayerKind.REFERENCE,
            digest=run.blobs.put(b"reference"),
            creator="learner-main",
        )
        main_worker = client.open_incarnation("learner-main", "main").number
        client.register_players([reference])
        client.keep_references(main_worker, [])
        for step in range(9000, 13000, 1000):
            run.freeze(step)
        evaluator = client.open_incarnation("evaluator-0").number
        open_match = Pairing(player="main@3000", opponent="based", pairs=1, book=Book.EVAL, seed=1)
        client.acquire_pairings(evaluator, [open_match])
        closed = Pairing(player="main@4000", opponent="based", pairs=1, book=Book.EVAL, seed=1)
        ids = [one.match_id for one in client.acquire_pairings(evaluator, [closed])]
        client.release_matches(evaluator, ids)
        recipe = Recipe(name="brawl", version=game_spec("brawl").version)
        shown = (Contender(name="main@5000", digest=frozen[5000].digest), Contender(name="based"))
        actions = np.zeros((3, 2, 10), np.uint8)
        (tmp_path / "replays").mkdir()
        file = tmp_path / "replays" / "one.replay"
        replay = Replay(
            recipe=recipe, seats=shown, seed=1, actions_T2A=actions, outcome=0.5, final=""
        )
        save_replay(file, replay)
        with server.store.write() as tx:
            found = {"matches": 300, "clusters": [], "support": ["main@9000"]}
            server.league.log(tx, "analysis", "the support", **found)
        evaluated(tmp_path, *(f"main@{step}" for step in range(1000, 13000, 1000) if step != 2000))

        assert run.retired() == {f"main@{step}" for step in range(1000, 12000, 1000)} - {
            "main@8000"
        }
        assert hunt.victims == ("main@6000",)
        needed = {
            1000: "the oldest",
            2000: "not evaluated",
            3000: "leased",
            5000: "in a replay",
            6000: "a victim",
            7000: "a milestone's parent",
            8000: "a milestone",
            9000: "in the support",
        }
        free = {f"main@{step}" for step in range(1000, 12000, 1000) if step not in needed}
        before = client.players()
        assert main(["prune", str(tmp_path)]) == 0
        listed = capsys.readouterr().out.splitlines()
        assert {line.split("\t")[0] for line in listed[:-1]} == free
        assert run.without_weights() == set(), "nothing goes unless it is asked for"

        checkpoints = tmp_path / "learner-main" / "checkpoints"
        checkpoints.mkdir(parents=True)
        checkpoint = checkpoints / "step_000000012000.pt"
        checkpoint.touch()
        os.utime(checkpoint, (time.time() - 600,) * 2)
        assert main(["prune", str(tmp_path), "--remove"]) == 0
        assert run.without_weights() == free - {"main@4000"}, "a checkpoint's match was against it"
        os.utime(checkpoint, (time.time() + 600,) * 2)
        assert main(["prune", "--run-dir", str(tmp_path), "--remove"]) == 0
        assert run.without_weights() == free
        assert client.players() == before, "rows stay"
        assert main(["prune", str(tmp_path), "--remove"]) == 0
    assert fsck(tmp_path / "league.db")[0] == []
