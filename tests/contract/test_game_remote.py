"""Games on servers keep the contract of a batched game, and what a server does wrong costs its
matches only.
"""

from __future__ import annotations

import importlib
import itertools
import json
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
from choice_contract import ChoiceContract
from game_contract import RestingContract, assert_same, history, luck
from game_servers import EXAMPLES, PIG, Push, served, started
from ports import free_port
from waiting import wait_for

from league.cli.main import main
from league.errors import ConfigError, DataCorrupt, Unavailable
from league.games import hosted
from league.games.base import BatchedGame
from league.games.registry import game_spec, make_batched
from league.games.remote import RemoteGame
from league.replay import Contender, MatchRecorder, Recipe, final_digest, verify
from league.v1 import games_pb2 as pb
from learner.doctor import game as doctor

ROOT = Path(__file__).parents[2]
ROWS = 4


class Remote:
    """The game of a server that all tests of the class share."""

    pace = 10
    port: int

    def make(self, num_matches: int, max_frames: int | None = None) -> BatchedGame:
        return make_batched(f"grpc:127.0.0.1:{self.port}", num_matches, max_frames=max_frames)


@pytest.fixture(scope="module")
def pig() -> Iterator[int]:
    with started(PIG) as (_, port):
        yield port


class TestPig(Remote, ChoiceContract):
    @pytest.fixture(autouse=True)
    def _served(self, pig: int) -> None:
        self.port = pig


@pytest.fixture(scope="module")
def keys() -> Iterator[int]:
    with served(Push()) as port:
        yield port


class TestPush(Remote, RestingContract):
    test_halves_of_the_observations_swap_exactly = None  # there are no halves

    @pytest.fixture(autouse=True)
    def _served(self, keys: int) -> None:
        self.port = keys


def node_pig() -> list[str]:
    """The command of Pig in JavaScript."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no node")
    found = "['@grpc/grpc-js', '@grpc/proto-loader'].forEach((name) => require.resolve(name))"
    if subprocess.run([node, "-e", found], cwd=EXAMPLES, capture_output=True).returncode:
        pytest.skip("node finds no @grpc/grpc-js: npm install @grpc/grpc-js @grpc/proto-loader")
    return [node, str(EXAMPLES / "pig_server.js"), "PORT", str(ROOT / "proto" / "league" / "v1")]


def test_pig_in_javascript_plays_the_same_matches_as_in_python() -> None:
    found = []
    for command in (PIG, node_pig()):
        with started(command) as (_, port):
            game = make_batched(f"grpc:127.0.0.1:{port}", 6)
            game.reset(np.arange(6, dtype=np.uint64))
            found.append((game.spec.version, game.frame(0), history(game, luck(game, 120))))
            game.close()
    assert found[0][0] == found[1][0]
    assert found[0][1]["text"] == found[1][1]["text"] == "[0, 0], 0 in this turn"
    assert_same(found[0][2], found[1][2])


@pytest.fixture(scope="module")
def pong(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of Pong in C++, compiled as docs/any-language.md says."""
    tools = ("g++", "protoc", "grpc_cpp_plugin", "pkg-config")
    missing = [tool for tool in tools if shutil.which(tool) is None]
    if missing or subprocess.run(["pkg-config", "--exists", "grpc++"]).returncode:
        pytest.skip(f"no {' '.join(missing) or 'grpc++'}: apt install {PACKAGES}")
    folder = tmp_path_factory.mktemp("pong")
    text = (ROOT / "docs" / "any-language.md").read_text(encoding="utf-8")
    block = next(part for part in text.split("```") if "grpc_cpp_plugin" in part)
    *compiling, serving = block.splitlines()[1:]
    assert serving == "pong/server 50070"
    for name in ("docs", "proto"):
        (folder / name).symlink_to(ROOT / name)
    subprocess.run(["bash", "-euc", "\n".join(compiling)], cwd=folder, check=True)
    with started([str(folder / "pong" / "server"), "PORT"]) as (_, port):
        yield port


PACKAGES = "g++ pkg-config libgrpc++-dev protobuf-compiler-grpc"


class TestPong(Remote, RestingContract):
    test_halves_of_the_observations_swap_exactly = None
    test_several_frames_are_that_many_steps_with_the_keys_held = None  # nobody idles so long
    test_the_time_limit_ends_a_match_with_an_outcome = None  # who idles loses earlier

    @pytest.fixture(autouse=True)
    def _served(self, pong: int) -> None:
        self.port = pong


# -- servers that do wrong ------------------------------------------------------------------------


@pytest.fixture
def push() -> Iterator[tuple[Push, RemoteGame]]:
    """A server, and four matches that it plays."""
    servicer = Push()
    with served(servicer) as port:
        game = begun(port)
        yield servicer, game
        game.close()


def begun(port: int, matches: int = ROWS, step_seconds: float = 60.0) -> RemoteGame:
    game = make_batched(f"grpc:127.0.0.1:{port}", matches, step_seconds=step_seconds)
    assert isinstance(game, RemoteGame)
    game.host.wait_seconds = 240.0
    game.reset(np.arange(matches, dtype=np.uint64))
    wait_for(lambda: plays(game))
    return game


def plays(game: RemoteGame) -> bool:
    """Steps the game. On a busy machine a short limit may be exceeded."""
    game.step(game.idle_actions())
    return not game.failures


def put(numbers: dict[int, float], field: str) -> Callable[[pb.PlayResponse, Any], None]:
    """Puts numbers into a field of a response, by index."""

    def spoil(response: pb.PlayResponse, context: Any) -> None:
        content = np.frombuffer(getattr(response, field), "<f4").copy()
        content[[*numbers]] = [*numbers.values()]
        setattr(response, field, content.tobytes())

    return spoil


def cut(response: pb.PlayResponse, context: Any) -> None:
    response.observations = response.observations[:-4]


def unknown_outcome(response: pb.PlayResponse, context: Any) -> None:
    response.outcomes = b"\x00\x00\x09\x00"


def gives_up(response: pb.PlayResponse, context: Any) -> None:
    response.outcomes = bytes([0, 0, pb.OUTCOME_FAILED, 0])


def too_much(response: pb.PlayResponse, context: Any) -> None:
    response.observations = bytes(8 << 20)


def bomb(response: pb.PlayResponse, context: Any) -> None:
    context.set_compression(grpc.Compression.Gzip)
    response.observations = bytes(16 << 20)  # 16 kB on the wire


def lies(response: pb.PlayResponse, context: Any) -> None:
    context.abort(grpc.StatusCode.OUT_OF_RANGE, "\x1b]8;;x\x07 learner: all is well " + 900 * "é")


def ends(response: pb.PlayResponse, context: Any) -> None:
    raise RuntimeError("the game has a fault")


ALL = list(range(ROWS))
WIDTH = 2 * 3


@pytest.mark.parametrize(
    ("spoil", "rows", "reason"),
    [
        (
            put({WIDTH + 4: float("nan")}, "observations"),
            [1],
            "NaN or infinity in observations: number 1 of seat 1 in row 1",
        ),
        (
            put({2: float("inf")}, "rewards"),
            [1],
            "NaN or infinity in rewards: number 0 of seat 0 in row 1",
        ),
        (gives_up, [2], "could not play"),
        (unknown_outcome, ALL, "outcome 9"),
        (cut, ALL, "92 bytes of observations: 96"),
        (too_much, ALL, "RESOURCE_EXHAUSTED"),
        (bomb, ALL, "RESOURCE_EXHAUSTED"),
        (lies, ALL, "OUT_OF_RANGE"),
        (ends, ALL, "has a fault"),
    ],
)
def test_a_wrong_answer_costs_matches_and_the_next_ones_are_played(
    spoil: Callable[[pb.PlayResponse, Any], None],
    rows: list[int],
    reason: str,
    push: tuple[Push, RemoteGame],
) -> None:
    servicer, game = push
    servicer.spoil = spoil
    game.next_seeds_N[:] = 100 + np.arange(ROWS)
    game.step(game.idle_actions())
    servicer.spoil = lambda response, context: None
    assert sorted(game.failures) == rows
    assert np.flatnonzero(game.ended_N).tolist() == rows
    for told in game.failures.values():
        assert reason in told
        assert told.isprintable()
        assert len(told) < 300
    assert np.isfinite(game.observations_N2O).all()
    assert not game.reward_terms_N2K[rows].any()
    with served(servicer) as port:
        fresh = begun(port, matches=1)
        fresh.reset(np.array([100 + rows[0]], np.uint64))
        assert np.array_equal(game.observations_N2O[rows[0]], fresh.observations_N2O[0])
        fresh.close()
    game.step(game.idle_actions())
    assert not game.failures
    assert game.frames_N[rows].tolist() == [1] * len(rows)


def test_a_server_that_hangs_loses_its_matches() -> None:
    servicer, end = Push(), threading.Event()
    with served(servicer) as port:
        game = begun(port, step_seconds=0.5)
        servicer.spoil = lambda response, context: end.wait()
        game.step(game.idle_actions())
        assert {*game.failures} == {*ALL}
        assert "over 0.5 s" in game.failures[0]
        servicer.spoil = lambda response, context: None
        end.set()
        wait_for(lambda: plays(game))
        game.close()


def test_a_stop_ends_the_wait_for_a_response_and_the_state_is_saved() -> None:
    servicer, end, told = Push(), threading.Event(), list[str]()
    with served(servicer) as port:
        game = begun(port)
        game.host.on_wait = told.append
        game.step(game.idle_actions())
        assert not told
        servicer.spoil = lambda response, context: end.wait()
        game.host.should_stop = lambda: True
        game.step(game.idle_actions())  # within the 60 s that the server may take
        assert {*game.failures} == {*ALL}
        state = game.save()
        assert told
        for reason in told:
            assert reason.startswith(f"waiting for the game's server at 127.0.0.1:{port}: it did")
            assert "stopped" in reason
        end.set()
        servicer.spoil, game.host.should_stop = lambda response, context: None, lambda: False
        game.load(state)
        game.step(game.idle_actions())
        assert game.ended_N.all(), "the matches that could not begin"
        game.step(game.idle_actions())
        assert not game.failures
        assert told[-1] == ""
        game.close()


def test_a_killed_server_is_awaited_and_its_next_matches_are_played() -> None:
    port = free_port()
    with ExitStack() as stack:
        process, _ = stack.enter_context(started(PIG, port))
        game = make_batched(f"grpc:127.0.0.1:{port}", ROWS)
        assert isinstance(game, RemoteGame)
        game.host.wait_seconds = 240.0
        game.reset(np.arange(ROWS, dtype=np.uint64))
        history(game, luck(game, 5))
        state = game.save()
        asked = []

        def come_back() -> bool:
            """The server starts again while the game waits."""
            asked.append(1)
            if len(asked) == 2:
                stack.enter_context(started(PIG, port))
            return False

        game.host.should_stop = come_back
        process.kill()
        process.wait()
        game.step(game.idle_actions())
        assert {*game.failures} == {*ALL}
        assert "(the connection was closed)" in game.failures[0]
        assert len(asked) >= 2
        chances = luck(game, 30)
        history(game, chances)
        game.load(state)
        history(game, chances)
        game.close()


def test_a_wait_ends_when_asked_and_another_game_is_not_played() -> None:
    port = free_port()
    with served(Push(), port):
        game = begun(port)
    with served(Push(version="2"), port):
        stops = iter([False, True])
        game.host.should_stop = lambda: next(stops, True)
        game.step(game.idle_actions())
        assert {*game.failures} == {*ALL}
        assert not game.frames_N.any()
        game.step(game.idle_actions())
        assert {*game.failures} == {*ALL}
        assert all("push 2 " in why and "push 1 " in why for why in game.failures.values())
    with served(Push(), port):
        game.host.should_stop = lambda: False
        game.step(game.idle_actions())
        game.step(game.idle_actions())
        assert not game.failures
    game.close()


def test_matches_that_a_server_does_not_repeat_are_not_continued(
    push: tuple[Push, RemoteGame],
) -> None:
    servicer, game = push
    state = game.save()
    servicer.spoil = put({0: 0.125}, "observations")
    with pytest.raises(DataCorrupt, match="match 0"):
        game.load(state)


@pytest.mark.parametrize("spoiled", [1, 2], ids=["at once", "later"])
def test_a_match_that_fails_when_it_is_played_again_says_so(
    spoiled: int, push: tuple[Push, RemoteGame]
) -> None:
    """Its replay is not written, whether it fails in its first frame or in a later one."""
    servicer, game = push
    name, version = game.spec.name, game.spec.version
    recipe = Recipe(name=name, version=version, max_frames=3, is_allowed=True)
    seats = (Contender(name="main@100"), Contender(name="main@200"))
    take = MatchRecorder(recipe=recipe, seats=seats, bots=(-1, -1), seed=7, match_id="f" * 32)
    take.note(np.zeros((2, 3), np.uint8), 3)
    with closing(recipe.make()) as again:
        again.reset(np.array([7], np.uint64))
        for _ in range(3):
            again.step(again.idle_actions())
        replay = take.finish(0.5, final_digest(again, 0))
    steps = itertools.count(1)

    def fail(response: pb.PlayResponse, context: Any) -> None:
        if next(steps) % 3 == spoiled:
            context.abort(grpc.StatusCode.INTERNAL, "out of cards")

    servicer.spoil = fail
    for playing in (partial(take.finish, 0.5, replay.final), partial(verify, replay)):
        steps = itertools.count(1)
        with pytest.raises(Unavailable, match="out of cards"):
            playing()


def test_keys_and_rewards_keep_their_places(push: tuple[Push, RemoteGame]) -> None:
    _, game = push
    actions_N2A = game.idle_actions()
    actions_N2A[0, 0] = 0, 0, 1
    actions_N2A[0, 1] = 1, 1, 0
    actions_N2A[3, 1] = 0, 1, 0
    game.step(actions_N2A)
    assert game.reward_terms_N2K[:, :, 0].tolist() == [[0.125, 0.25], [0, 0], [0, 0], [0, -0.25]]
    assert game.stats_N2S[0].tolist() == [[2.0, 0.125], [2.0, 0.25]]


def test_matches_continue_from_the_states_of_a_server_that_saves_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(EXAMPLES)
    pig = importlib.import_module("pig_server")
    kinds: list[str] = []

    class Noting(pig.Server):  # type: ignore[misc, name-defined]
        def Play(self, requests: Any, context: Any) -> Iterator[pb.PlayResponse]:
            def noted() -> Iterator[pb.PlayRequest]:
                for request in requests:
                    kinds.append(request.WhichOneof("request"))
                    yield request

            return super().Play(noted(), context)

    with served(Noting()) as port:
        game, fresh = (make_batched(f"grpc:127.0.0.1:{port}", ROWS) for _ in range(2))
        game.reset(np.arange(ROWS, dtype=np.uint64))
        chances = luck(game, 40)
        history(game, chances[:10])
        state, kinds[:] = game.save(), []
        there = history(game, chances[10:])
        kinds.clear()
        fresh.load(state)
        assert kinds == ["load"]
        assert_same(there, history(fresh, chances[10:]))
        kinds.clear()
        none = {"states": np.zeros(0, np.uint8), "state_sizes_N": np.zeros(ROWS, np.int64)}
        fresh.load(state | none)  # of a server that did not save them yet
        assert {*kinds} == {"begin", "step"}
        assert_same(there, history(fresh, chances[10:]))
        game.close()
        fresh.close()


def test_a_match_in_which_nobody_may_choose_fails() -> None:
    servicer = Push(action_kind=pb.ACTION_KIND_CHOICE)

    def forbid(response: pb.PlayResponse, context: Any) -> None:
        response.legal = bytes([1, 0, 0, 0, 0, 0]) + bytes(6) + bytes([0, 0, 0, 1, 1, 1]) + bytes(6)

    with served(servicer) as port, closing(begun(port)) as game:
        servicer.spoil = forbid
        game.step(game.idle_actions())
        assert sorted(game.failures) == [1, 3]
        assert "neither seat of row 1 a legal choice" in game.failures[1]


def test_numbers_out_of_bounds_are_clipped_and_counted(push: tuple[Push, RemoteGame]) -> None:
    servicer, game = push
    servicer.spoil = put({WIDTH + 4: 7.0, 2: -1.0000001}, "observations")
    game.step(game.idle_actions())
    assert not game.failures
    assert game.observations_N2O[1, 1, game.spec.own_size + 1] == 1.0
    assert game.clipped() == {"seat_1/1/-1/1": 1}
    assert not game.clipped()


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"contract": 2}, "version 2 of the contract"),
        ({"seats": 3}, "3 seats"),
        ({"action_kind": 0}, "action kind 0"),
        ({"action_names": [f"key{n}" for n in range(33)]}, "33 actions"),
        ({"action_names": ["up", "up"]}, "two actions"),
        ({"action_names": ["\x1b[31mup"]}, "name"),
        ({"name": "p" * 41}, "name"),
        ({"version": ""}, "name ''"),
        ({"reward_terms": ["win"]}, "'win'"),
        ({"observation_size": 0}, "0 numbers"),
        ({"observation_size": 1 << 30}, "numbers"),
        ({"max_frames": 0}, "0 frames"),
        ({"frames_per_second": -1}, "-1 frames"),
    ],
)
def test_a_description_that_cannot_be_used_is_refused(changes: dict, fault: str) -> None:
    with served(Push(**changes)) as port, pytest.raises(ConfigError) as refused:
        game_spec(f"grpc:127.0.0.1:{port}")
    assert fault in str(refused.value)
    assert str(refused.value).isprintable()


def test_the_version_changes_with_the_description() -> None:
    versions = set()
    for changes in ({}, {"reward_terms": ["pushing"]}, {"version": "1.1"}):
        with served(Push(**changes)) as port:
            versions.add(make_batched(f"grpc:127.0.0.1:{port}", 1).spec.version)
    assert len(versions) == 3
    assert any(version.startswith("push 1.1 ") for version in versions)


@pytest.mark.parametrize("address", ["", "50070", "http://host:50070", "host:port"])
def test_an_address_that_is_none_is_named(address: str) -> None:
    with pytest.raises(ConfigError, match="grpc:HOST:PORT"):
        game_spec(f"grpc:{address}")


def test_a_server_that_is_not_there_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    name = f"grpc:127.0.0.1:{free_port()}"
    assert main(["demo", "random", "random", "--game", name]) == 1
    said = capsys.readouterr().err
    assert name.removeprefix("grpc:") in said
    assert "start its server" in said
    assert said.count("\n") == 1


def test_a_server_that_dies_before_the_first_match_is_named() -> None:
    with served(Push()) as port:
        game = make_batched(f"grpc:127.0.0.1:{port}", 2)
    assert isinstance(game, RemoteGame)
    game.host.wait_seconds = 0.0
    with pytest.raises(Unavailable, match=rf"{port} \(nothing listens there\)"):
        game.reset(np.arange(2, dtype=np.uint64))


def nap(response: pb.PlayResponse, context: Any) -> None:
    time.sleep(0.02)


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (nap, "a decision of 8 matches takes "),
        (cut, "bytes of observations"),
        (put({1: float("nan")}, "observations"), "NaN or infinity in observations: number 1"),
        (lambda response, context: setattr(response, "legal", bytes(6 * 8)), "a legal choice"),
        (lies, "OUT_OF_RANGE"),
    ],
    ids=["slow", "cut", "NaN", "no choice", "raises"],
)
def test_the_doctor_finds_a_server_that_fails_and_nothing_else(
    spoil: Any,
    reason: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if spoil is nap:
        monkeypatch.setattr(doctor, "SLOWEST", 0.01)
    servicer, file = Push(action_kind=pb.ACTION_KIND_CHOICE), tmp_path / "findings.json"
    servicer.spoil = spoil
    with served(servicer) as port:
        game = f"grpc:127.0.0.1:{port}"
        assert main(["doctor", "--game", game, "--json", str(file)]) == 1
    (found,) = json.loads(file.read_text())["findings"]
    assert (found["reason"], found["verdict"]) == ("F", "failure")
    assert reason in found["measured"]
    assert reason in capsys.readouterr().out


def test_a_demo_whose_server_dies_ends_soon_in_plain_words(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hosted.Host, "wait_seconds", 1.0)
    with started(PIG) as (process, port):
        step = RemoteGame.step

        def die(game: RemoteGame, *arguments: Any) -> None:
            process.kill()
            process.wait()
            step(game, *arguments)

        monkeypatch.setattr(RemoteGame, "step", die)
        assert main(["demo", "random", "random", "--game", f"grpc:127.0.0.1:{port}"]) != 0
    *waits, last = capfd.readouterr().err.splitlines()
    assert len(waits) <= 1
    assert last.endswith("the game's server did not answer (the connection was closed)")


def test_a_demo_shows_the_text_of_the_server_and_is_replayed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(tmp_path / "pig.replay")
    with started(PIG) as (_, port):
        words = ["--game", f"grpc:127.0.0.1:{port}"]
        assert main(["demo", "random", "random", *words, "--seed", "1", "--save", file]) == 0
        shown = capsys.readouterr().out
        assert "in this turn" in shown
        assert "hold" in shown
        assert " wins" in shown
        assert main(["replay", file, *words]) == 0
        assert capsys.readouterr().out == shown
        assert main(["replay", file]) == 2, "a file alone chooses no server"
