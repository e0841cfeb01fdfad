"""Battles of Pokémon Showdown keep the contract of a batched game.

They need Node, and what bin/league showdown install installs.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from choice_contract import ChoiceContract
from game_contract import actions, history, luck, seeds
from ports import free_port
from thread_workers import threads_of
from waiting import PATIENCE, wait_for

from league.agent.architectures import network_of
from league.agent.config import AgentConfig, AgentSettings
from league.agent.heads import MaskedChoice
from league.cli.main import main
from league.errors import ConfigError, InvalidInput, Unavailable
from league.games import hosted
from league.games.base import BatchedGame
from league.games.registry import game_spec, make_batched
from league.games.showdown.install import installed
from league.replay import Contender, Recipe, Replay, final_digest, save_replay

pytest.importorskip("poke_env")
try:
    installed()
except ConfigError as error:
    pytest.skip(str(error), allow_module_level=True)

from league.games.showdown import worker
from league.games.showdown.server import Server
from league.games.showdown.simulator import Simulator
from league.games.showdown.worker import Worker

SINGLES, DOUBLES = "showdown:gen9randombattle", "showdown:gen9vgc2025regi"
TEAMS = Path(__file__).parents[1] / "data" / "teams"


class Rows:
    """Rows of the one simulator that all tests' workers share: it starts in half a second."""

    firsts = itertools.count(step=100)

    def __init__(self, simulator: Simulator) -> None:
        self.simulator, self.first = simulator, next(self.firsts)

    def ask(self, commands: Sequence[Sequence[Any]]) -> list[Any]:
        moved = [[verb, self.first + row, *rest] for verb, row, *rest in commands]
        return self.simulator.ask(moved)

    def close(self) -> None:
        """The other workers go on playing."""


def make_worker(command: list[str]) -> Worker:
    return Worker(**json.loads(command[-1]) | {"step_seconds": 0.0})


@pytest.fixture(scope="module")
def simulator() -> Iterator[Simulator]:
    started = Simulator(str(installed()))
    yield started
    started.close()


@pytest.fixture(autouse=True)
def _threads(monkeypatch: pytest.MonkeyPatch, simulator: Simulator) -> None:
    monkeypatch.setattr(hosted, "Process", threads_of(make_worker))
    monkeypatch.setattr(worker, "Simulator", lambda folder: Rows(simulator))


def battles(num_matches: int, name: str = SINGLES, **options: Any) -> BatchedGame:
    teams = {"teams": str(TEAMS)} if name == DOUBLES else {}
    return make_batched(name, num_matches, workers=1, **teams, **options)


class TestSingles(ChoiceContract):
    turns = False
    pace, rows = 40, 6

    def make(self, num_matches: int, max_frames: int | None = None) -> BatchedGame:
        return battles(num_matches, max_frames=max_frames)

    # those that play a hundred battles or more
    test_everybody_has_a_legal_choice_at_any_time = None
    test_every_legal_choice_is_taken_some_time_and_accepted = None
    test_every_match_ends_once_with_an_outcome_and_begins_anew = None
    test_observations_stay_in_bounds = None
    test_nobody_chooses_for_a_bot = None
    test_other_seeds_make_other_matches = None


@pytest.fixture(params=[SINGLES, DOUBLES])
def game(request: pytest.FixtureRequest) -> Iterator[BatchedGame]:
    made = battles(3, request.param)
    yield made
    made.close()


def test_battles_of_bots_end_with_an_outcome_and_stay_in_bounds(game: BatchedGame) -> None:
    game.bots_N2[:] = [[2, 0], [0, 2], [1, 0]]
    game.reset(seeds(3))
    ended_N, outcomes_N = np.zeros(3, bool), np.zeros(3)
    for _ in range(120):
        game.step(game.idle_actions())
        assert not game.failures
        assert np.abs(game.observations_N2O).max() <= 1.0
        first_N = game.ended_N & ~ended_N
        outcomes_N[first_N] = game.outcomes_N[first_N]
        ended_N |= game.ended_N
        if ended_N.all():
            break
    assert ended_N.all()
    assert outcomes_N.tolist() == [1.0, 0.0, 1.0]  # rules beat chance


def test_a_player_sees_of_the_opponent_what_the_battle_has_shown() -> None:
    game = battles(4)
    game.reset(seeds(4))
    names = game.spec.observation_names
    known = [place for place, name in enumerate(names) if name.endswith("_known")]
    own, others = np.split(np.array(known), 2)  # of each the one that fights comes first
    assert (game.observations_N2O[:, :, own].sum(-1) == 1 + 6).all()
    assert (game.observations_N2O[:, :, others].sum(-1) == 1 + 1).all()
    fighting = [place for place, name in enumerate(names) if name.startswith("active0_species")]
    team = [place for place, name in enumerate(names) if name.startswith("pokemon0_species")]
    assert (game.observations_N2O[:, :, fighting] == game.observations_N2O[:, :, team]).all()
    hidden = [
        place
        for place, name in enumerate(names)
        if name.startswith("opponent's") and name.endswith(("_item", "_id"))
    ]
    assert (game.observations_N2O[:, :, hidden] == 0.0).all()


def test_what_is_seen_does_not_depend_on_what_comes_after() -> None:
    one, other = battles(2), battles(2)
    for game in (one, other):
        game.reset(seeds(2))
    chances, others = luck(one, 8), luck(one, 8, seed=1)
    others[:4] = chances[:4]
    seen, seen_too = history(one, chances)[0], history(other, others)[0]
    assert np.array_equal(seen[:, :4], seen_too[:, :4])
    assert not np.array_equal(seen[:, 4:], seen_too[:, 4:])


def test_doubles_pick_teams_and_choose_for_two() -> None:
    game = battles(2, DOUBLES)
    assert game.spec.action_size == 45 * 45 + 90
    game.reset(seeds(2))
    legal_N2A = game.legal_N2A
    assert legal_N2A is not None
    assert (legal_N2A[:, :, 2025:]).all()
    assert not legal_N2A[:, :, :2025].any()
    game.step(actions(game, luck(game, 1)[0]))
    assert not legal_N2A[:, :, 2025:].any()
    assert (legal_N2A.sum(-1) > 20).all()
    names = game.spec.action_names
    for place in np.flatnonzero(legal_N2A[0, 0]):
        first, second = names[place].split(", ")
        assert first != second or not first.startswith("switch")
        assert not (first.startswith("tera") and second.startswith("tera"))


def test_teams_are_drawn_by_the_match_and_kept_in_its_stats() -> None:
    game = battles(12, DOUBLES)
    game.reset(seeds(12))
    game.step(actions(game, luck(game, 1)[0]))
    drawn_N2 = game.stats_N2S[:, :, game.spec.stats.index("team")]
    assert set(drawn_N2.ravel().tolist()) == {0.0, 1.0, 2.0}
    again = battles(12, DOUBLES)
    again.reset(seeds(12))
    again.step(actions(again, luck(again, 1)[0]))
    assert np.array_equal(again.stats_N2S[:, :, -1], drawn_N2)


def test_a_team_that_breaks_the_rules_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=str(tmp_path)):
        make_batched(DOUBLES, 1, teams=str(tmp_path))
    text = (TEAMS / "rain.txt").read_text()
    (tmp_path / "bad.txt").write_text(text.replace("- Ice Beam", "- Spore"))
    with pytest.raises(ConfigError, match=r"bad\.txt.*Spore"):
        make_batched(DOUBLES, 1, teams=str(tmp_path))


def test_an_unknown_format_and_a_missing_simulator_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigError, match="gen1ou"):
        make_batched("showdown:gen1ou", 1)
    monkeypatch.setenv("KUMITE_SHOWDOWN", str(tmp_path))
    with pytest.raises(ConfigError, match="showdown install"):
        battles(1)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match="Node"):
        battles(1)


def test_a_choice_that_is_not_legal_is_refused() -> None:
    game = battles(1)
    game.reset(seeds(1))
    illegal = game.idle_actions()
    illegal[0, 1] = np.arange(game.spec.action_size) == 10  # mega evolution is of another time
    with pytest.raises(InvalidInput, match="seat 1 of match 0"):
        game.step(illegal)


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def is_gone(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists()


@pytest.mark.long
def test_a_killed_or_stopped_simulator_costs_its_matches_alone_and_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.undo()  # with a process
    game = battles(2)
    game.reset(seeds(2))
    for number, words in ((signal.SIGKILL, "exited -9"), (signal.SIGSTOP, "stopped by a signal")):
        (pid,) = game.worker_pids  # type: ignore[attr-defined]
        (node,) = children(pid)
        os.kill(node, number)
        game.step(game.idle_actions())
        assert set(game.failures) == {0, 1}
        assert all(words in why for why in game.failures.values())
        assert game.ended_N.all()
        wait_for(lambda: is_gone(node))  # noqa: B023
        game.step(game.idle_actions())
        assert not game.failures
    game.close()


@pytest.mark.parametrize("name", [SINGLES, DOUBLES])
def test_acting_and_learning_agree(name: str) -> None:
    """On the log-probability of each choice among the legal ones."""
    game = battles(2, name)
    config = AgentConfig.of(
        AgentSettings(size="tiny", encoder="none", sequence_length=17), game.spec
    )
    torch.manual_seed(0)
    network = network_of(config)
    game.reset(seeds(2))
    chances = luck(game, 6)
    seen, allowed, state, alone = [], [], network.initial_state(4), []
    starts = torch.ones(4, dtype=torch.bool)
    for luck_N2A in chances:
        assert game.legal_N2A is not None
        obs = torch.from_numpy(game.observations_N2O.reshape(4, -1).copy())
        legal = torch.from_numpy(game.legal_N2A.reshape(4, -1).copy())
        out = network.step(obs, starts, state, torch.ones(4))
        seen.append(obs)
        allowed.append(legal)
        alone.append(MaskedChoice(out.logits_BA, legal).log_probs)
        state, starts = out.state, torch.zeros(4, dtype=torch.bool)
        game.step(actions(game, luck_N2A))
    all_starts = torch.zeros(6, 4, dtype=torch.bool)
    all_starts[0] = True
    first = network.initial_state(4)
    whole = network.unroll(
        torch.stack(seen), all_starts, first.h_BH, first.c_BH, torch.ones(6, 4), 0
    )
    together = MaskedChoice(whole.logits_TBA, torch.stack(allowed)).log_probs
    torch.testing.assert_close(torch.stack(alone), together, atol=1e-5, rtol=0)
    assert torch.isfinite(together).equal(torch.stack(allowed))
    assert (whole.logits_TBA[0] != whole.logits_TBA[1]).any()


def test_a_battle_is_written_as_a_page_of_showdowns_replays(tmp_path: Path) -> None:
    game = battles(1)
    game.bots_N2[0] = [2, 0]
    game.reset(seeds(1))
    done, ended = [], False
    while not ended:
        game.step(game.idle_actions())
        done.append(game.played_N2A()[0])  # type: ignore[index]
        ended = bool(game.ended_N[0])
    replay = Replay(
        recipe=Recipe(name=SINGLES, version=game_spec(SINGLES).version),
        seats=(Contender(name="<b>heuristics"), Contender(name="random")),
        seed=int(seeds(1)[0]),
        actions_T2A=np.stack(done),
        outcome=1.0,
        final=final_digest(game, 0),
    )
    save_replay(tmp_path / "one.replay", replay)
    out = tmp_path / "one.html"
    assert main(["showdown", "replay", str(tmp_path / "one.replay"), "--out", str(out)]) == 0
    page = out.read_text()
    assert "|win|bheuristics" in page
    assert "<b>" not in page
    assert "|turn|2\n" in page


def test_a_member_without_a_server_says_how_to_start_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["showdown", "play", "visitor", "--port", "9"]) == Unavailable.exit_code
    assert "showdown serve --port 9" in capsys.readouterr().err


@pytest.mark.long
def test_a_person_on_a_server_plays_a_member_until_the_server_is_stopped(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The person is poke-env's random player: it speaks as the ordinary client does."""
    from poke_env import AccountConfiguration, ServerConfiguration
    from poke_env.player import RandomPlayer

    port = free_port()
    words = ["showdown", "serve", "--port", str(port)]
    process = subprocess.Popen(
        [sys.executable, "-m", "league", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    assert str(port) in process.stdout.readline()
    with pytest.raises(InvalidInput, match=str(port)):
        Server(port)

    words = ["showdown", "play", "visitor", "--as", "heuristics", "--port", str(port)]
    with ThreadPoolExecutor(1) as threads:
        member = threads.submit(main, words)
        wait_for(lambda: "gen9randombattle" in capsys.readouterr().out)
        person = RandomPlayer(
            account_configuration=AccountConfiguration("visitor", None),
            battle_format="gen9randombattle",
            server_configuration=ServerConfiguration(
                f"ws://127.0.0.1:{port}/showdown/websocket", "http://127.0.0.1:9/"
            ),
        )
        asyncio.run(person.send_challenges("kumite", 1))
        assert member.result() == 0
    name, *counts, other = re.findall(r"kumite|\d+|visitor", capsys.readouterr().out)
    assert (name, other) == ("kumite", "visitor")
    # chance decides who wins, and both sides must know it
    seen = person.n_lost_battles, person.n_tied_battles, person.n_won_battles
    assert sum(seen) == 1
    assert [int(count) for count in counts] == list(seen)
    asyncio.run(person.ps_client.stop_listening())

    (node,) = children(process.pid)
    os.kill(node, signal.SIGSTOP)
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == Unavailable.exit_code
    assert str(port) in said
    wait_for(lambda: is_gone(node))
