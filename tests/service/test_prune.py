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
from exploiter_league import candidate
from small_league import BOTS, bot, live, snapshot

from league.cli.main import main
from league.games.registry import game_spec
from league.players import Book, Pairing, Player, PlayerKind, PlayerState, Role
from league.replay import Contender, Recipe, Replay, save_replay
from league.rpc.client import MatchmakerClient
from league.runs.blobs import BlobFolder
from league.runs.finding import FORMAT
from matchmaker.acts.players import change_state
from matchmaker.api.server import MatchmakerServer
from matchmaker.settings import MatchmakerSettings
from matchmaker.tools.fsck import fsck

LONG_AGO = time.time() - 1e6


class Run:
    """A run of `main` with a snapshot every 1,000 steps, of which the league keeps two."""

    def __init__(self, folder: Path, server: MatchmakerServer, client: MatchmakerClient) -> None:
        self.folder, self.server, self.client = folder, server, client
        self.blobs = BlobFolder(folder / "blobs")
        self.client.register_players([*(bot(name) for name in BOTS), live()])

    def weighed(self, player: Player) -> Player:
        return replace(player, digest=self.blobs.put(player.name.encode()))

    def freeze(self, step: int, lineage: str = "main", **changes: object) -> Player:
        own = {"creator": f"learner-{lineage}", "created_at": LONG_AGO, "parent": ""}
        player = self.weighed(snapshot(step, lineage, **(own | changes)))
        self.client.register_players([player])
        return player

    def retire(self, *names: str) -> None:
        players = {one.name: one for one in self.client.players()}
        with self.server.store.write() as tx:
            for name in names:
                one, state = players[name], PlayerState.RETIRED
                change_state(self.server.league, tx, one, state, "player_retired", "")

    def retired(self) -> set[str]:
        found = self.client.players([PlayerKind.SNAPSHOT], [PlayerState.RETIRED])
        return {one.name for one in found}

    def without_weights(self) -> set[str]:
        players = self.client.players()
        return {one.name for one in players if one.digest and not self.blobs.has(one.digest)}


def evaluated(folder: Path, names: set[str]) -> None:
    (folder / "evaluator").mkdir()
    with (folder / "evaluator" / "evaluation_results.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["player"], *([name] for name in names)])


def test_weights_that_nothing_needs_are_listed_and_go_when_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "run.json").write_text(json.dumps({"format": FORMAT}))
    settings = MatchmakerSettings(max_saved=2, mixes={"league": {"snapshots": 1.0}})

    def pruned(*flags: str) -> set[str]:
        assert main(["prune", *flags]) == 0
        return {line.split("\t")[0] for line in capsys.readouterr().out.splitlines()[:-1]}

    with (
        MatchmakerServer(tmp_path / "league.db", settings=settings) as server,
        MatchmakerClient(server.address) as client,
    ):
        run = Run(tmp_path, server, client)
        more: dict[int, dict[str, object]] = {
            3000: {"parent": "main@2000"},
            8000: {"parent": "main@7000", "milestone": True},
            12000: {"parent": "main@11000", "created_at": time.time()},
            15000: {"parent": "main@14000"},
        }
        frozen = {step: run.freeze(step, **more.get(step, {})) for step in range(1000, 11000, 1000)}
        hunter = client.open_incarnation("learner-hunter").number
        hunt = client.begin_generation(hunter, "hunter", Role.MAIN_EXPLOITER, 1, 0, ())
        hunter = client.open_incarnation("learner-hunter", hunt.player).number
        for step in (500, 600):
            client.open_gate(hunter, run.weighed(candidate(hunt, step)))
            client.give_up_gate(hunter, f"{hunt.player}@{step}", "the test")
        then = f"{hunt.player}@500"
        client.begin_generation(hunter, "hunter", Role.MAIN_EXPLOITER, 2, 0, ["based"], parent=then)
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
        for step in range(11000, 16000, 1000):
            run.freeze(step, **more.get(step, {}))
        for step in (100, 200, 300):
            run.freeze(step, "other")
        run.retire("main@8000", "other@200", "other@300")
        evaluator = client.open_incarnation("evaluator-0").number
        open_match = Pairing(player="main@4000", opponent="based", pairs=1, book=Book.EVAL, seed=1)
        client.acquire_pairings(evaluator, [open_match])
        closed = Pairing(player="main@5000", opponent="based", pairs=1, book=Book.EVAL, seed=1)
        ids = [one.match_id for one in client.acquire_pairings(evaluator, [closed])]
        client.release_matches(evaluator, ids)
        client.request_evaluation("based", ["other@200=1,random=1"], 4, "bob")
        unwanted = client.request_evaluation("main@13000", ["based"], 4, "bob")
        client.cancel_evaluation(unwanted.number, "the test", "bob")
        recipe = Recipe(name="brawl", version=game_spec("brawl").version)
        shown = (Contender(name="main@6000", digest=frozen[6000].digest), Contender(name="based"))
        actions = np.zeros((3, 2, 10), np.uint8)
        (tmp_path / "replays").mkdir()
        (tmp_path / "replays" / "damaged.replay").write_bytes(b"no replay")
        file = tmp_path / "replays" / "one.replay"
        replay = Replay(
            recipe=recipe, seats=shown, seed=1, actions_T2A=actions, outcome=0.5, final=""
        )
        save_replay(file, replay)
        with server.store.write() as tx:
            for name in ("main@13000", "main@9000"):
                found = {"matches": 300, "support": [name]}
                server.league.log(tx, "analysis", "the support", **found)

        retired = {f"main@{step}" for step in range(1000, 15000, 1000)}
        retired |= {then, f"{hunt.player}@600", *(f"other@{step}" for step in (100, 200, 300))}
        assert run.retired() == retired
        assert hunt.victims == ("main@10000",)
        needed = {
            "main@1000": "the oldest",
            "main@2000": "the parent of one that is not evaluated",
            "main@3000": "not evaluated",
            "main@4000": "leased",
            "main@6000": "in a replay",
            "main@7000": "a milestone's parent",
            "main@8000": "a milestone",
            "main@9000": "in the support",
            "main@10000": "a victim of an earlier generation",
            then: "what the generation began with",
            "main@14000": "the parent of one that plays",
            "other@100": "the oldest of another learner",
            "other@200": "in an evaluation",
            "other@300": "its newest",
        }
        free, before = retired - needed.keys(), client.players()
        folder = str(tmp_path)
        assert pruned(folder) == free | {"main@2000", "main@3000"}, "without an evaluator"
        evaluated(tmp_path, retired - {"main@3000"})
        assert pruned(folder) == free
        assert run.without_weights() == set(), "nothing goes unless it is asked for"

        checkpoints = tmp_path / "learner-main" / "checkpoints"
        checkpoints.mkdir(parents=True)
        early, late = (checkpoints / f"step_{step:012}.pt" for step in (12000, 15000))
        for checkpoint, seconds in ((early, -600), (late, 600)):
            checkpoint.touch()
            os.utime(checkpoint, (time.time() + seconds,) * 2)
        since = {"main@5000", "main@11000", "main@12000"}  # a match, a snapshot, and its parent
        assert pruned(folder, "--remove") == run.without_weights() == free - since
        early.unlink()
        assert pruned("--run-dir", folder, "--remove") == since
        assert run.without_weights() == free
        assert client.players() == before, "rows stay"
        assert pruned(folder, "--remove") == set()
    assert fsck(tmp_path / "league.db")[0] == []
