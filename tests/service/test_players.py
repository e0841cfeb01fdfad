"""Players that run elsewhere: a league plays them over gRPC, and neither side trusts the other."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import grpc
import numpy as np
import pytest
from cli_league import make_run, rows, served
from rival_files import CYCLES, LIMITS, predicts, seats, stored

from league.agent.config import SIZES, AgentConfig
from league.agent.network import AgentNetwork
from league.agent.rival_bundles import bundles, link, trust
from league.agent.rivals import Limits, RivalSeats
from league.agent.snapshot import SnapshotCard, save_snapshot
from league.cli.main import main
from league.contest.matches import paired, play_bouts
from league.contest.members import Member
from league.contest.player_server import PlayerServer
from league.errors import ConfigError, InvalidInput, LeagueError, VersionMismatch
from league.games.base import EXTERNAL
from league.games.registry import game_spec
from league.replay import Bout, Contender, Recipe
from league.rpc.status import error_of
from league.runs.blobs import BlobFolder
from league.security.issuing import make_folder
from league.security.settings import SecuritySettings
from league.security.tokens import TokenFile
from league.v1 import player_pb2_grpc
from league.v1.player_pb2 import DecideRequest, DecideResponse, PlayerBeginning, PlayerHello

SPEC = game_spec("brawl")
RECIPE = Recipe(name="brawl", version=SPEC.version, max_frames=40)
HELLO = PlayerHello(
    contract=1,
    game="brawl",
    game_version=SPEC.version,
    observation_size=SPEC.observation_size,
    action_size=SPEC.action_size,
)


@pytest.fixture
def blobs(tmp_path: Path) -> BlobFolder:
    return BlobFolder(tmp_path / "blobs")


def file_member(blobs: BlobFolder, text: str, tmp_path: Path) -> Member:
    return Member(name="file", digest=stored(blobs, text, tmp_path), blobs=blobs, is_rival=True)


@contextmanager
def serving(member: Member, tmp_path: Path, port: int = 0, **security: object) -> Iterator[str]:
    settings = SecuritySettings.model_validate(security)
    with PlayerServer(member, port, security=settings, folder=tmp_path) as server:
        yield server.address


def linked(
    blobs: BlobFolder, address: str, token: Path | None = None, tls: Path | None = None
) -> str:
    """The digest of a rival that plays at an address."""
    digest = bundles(blobs).put(link(address, "brawl", SPEC.version, token, tls))
    trust(digest)
    return digest


def play(
    blobs: BlobFolder, digest: str, matches: int = 2, limits: Limits = LIMITS
) -> tuple[list[np.ndarray], list[str]]:
    """The keys of the rival in each match that ended, `[T, A]`, and the reasons of the others."""
    rival, bot = Contender(name="friend", digest=digest), Contender(name="constant")
    failures = dict[Bout, str]()
    played = play_bouts(
        RECIPE,
        paired(rival, bot, (EXTERNAL, SPEC.bot_index("constant")), matches, 0),
        lambda digest: pytest.fail(digest),
        frame_skip=4,
        seed=0,
        failures=failures,
        rivals=RivalSeats(blobs, limits),
    )
    keys = [
        replay.actions_T2A[:, [seat.name for seat in replay.seats].index("friend")]
        for replay in played
    ]
    return keys, list(failures.values())


def test_a_file_plays_elsewhere_as_here(blobs: BlobFolder, tmp_path: Path) -> None:
    """It decides in every frame and begins each match with a new object."""
    with serving(file_member(blobs, CYCLES, tmp_path), tmp_path) as address:
        played, failures = play(blobs, linked(blobs, address), matches=4)
    assert failures == []
    assert [keys_TA.argmax(1).tolist() for keys_TA in played] == [
        [frame % 10 for frame in range(40)]
    ] * 4


def test_a_file_elsewhere_sees_the_same_numbers(blobs: BlobFolder, tmp_path: Path) -> None:
    text = predicts("return [float(int(abs(x) * 1e5) % 2) for x in obs[:10]]")
    here = stored(blobs, text, tmp_path)
    with serving(file_member(blobs, text, tmp_path), tmp_path) as address:
        played, failures = play(blobs, linked(blobs, address))
    alone, _ = play(blobs, here)
    assert failures == []
    assert all(np.array_equal(one, other) for one, other in zip(played, alone, strict=True))
    assert len(np.unique(np.concatenate(played), axis=0)) > 5


def snapshot(blobs: BlobFolder, version: str = SPEC.version) -> Member:
    sizes = {**SIZES["tiny"], "width": 16, "memory": 16, "observation_hidden": 16}
    config = AgentConfig(
        observation_size=SPEC.observation_size,
        own_size=SPEC.own_size,
        action_size=SPEC.action_size,
        **{**sizes, "feed_forward": 32},
    )
    card = SnapshotCard(agent=config, game="brawl", game_version=version, frame_skip=4)
    digest = save_snapshot(blobs, AgentNetwork(config), card)
    return Member(name="main@0", digest=digest, blobs=blobs)


def test_a_snapshot_plays_elsewhere_at_its_own_pace(blobs: BlobFolder, tmp_path: Path) -> None:
    with serving(snapshot(blobs), tmp_path) as address:
        played, failures = play(blobs, linked(blobs, address), matches=4)
    assert failures == []
    for keys_TA in played:
        assert (keys_TA.reshape(10, 4, 10) == keys_TA[::4, None]).all()
        assert (keys_TA[4:] != keys_TA[:-4]).any()


def test_a_snapshot_of_other_rules_is_refused(blobs: BlobFolder, tmp_path: Path) -> None:
    with serving(snapshot(blobs, version="0"), tmp_path) as address:
        _, failures = play(blobs, linked(blobs, address))
    assert len(failures) == 2
    assert all("main@0 plays brawl version 0" in reason for reason in failures)


def test_a_player_that_fails_tells_why(blobs: BlobFolder, tmp_path: Path) -> None:
    with serving(file_member(blobs, predicts("1 / 0"), tmp_path), tmp_path) as address:
        _, failures = play(blobs, linked(blobs, address))
    assert len(failures) == 2
    for reason in failures:
        assert reason.startswith("the rival failed: ZeroDivisionError")


def test_a_player_that_is_gone_fails_its_matches_until_it_is_back(
    blobs: BlobFolder, tmp_path: Path
) -> None:
    member, seen_SO = file_member(blobs, CYCLES, tmp_path), np.zeros((1, 74), np.float32)
    keys_SA = np.zeros((1, 10), np.uint8)
    with seats(blobs) as rivals:
        with serving(member, tmp_path) as address:
            digest = linked(blobs, address)
            rivals.seat(0, digest)
            for _ in range(3):
                rivals.ask(seen_SO)
                assert rivals.answer(keys_SA) == {}
        for _ in range(2):
            rivals.ask(seen_SO)
            (reason,) = rivals.answer(keys_SA).values()
            assert f"the player at {address} can't play" in reason
            rivals.seat(0, digest)
        rivals.vacate(0)
        with serving(member, tmp_path, int(address.rpartition(":")[2])):
            rivals.seat(0, digest)
            rivals.ask(seen_SO)
            assert rivals.answer(keys_SA) == {}
            assert keys_SA[0].argmax() == 0


class Hostile(player_pb2_grpc.PlayerServiceServicer):
    def __init__(self, spoil: Callable[[DecideRequest, DecideResponse], None]) -> None:
        self._spoil = spoil

    def Decide(self, requests, context):
        for request in requests:
            response = DecideResponse(hello=request.hello, keys=bytes(10 * len(request.seats)))
            self._spoil(request, response)
            yield response


def _more(request: DecideRequest, response: DecideResponse) -> None:
    response.keys += b"1"


def _twos(request: DecideRequest, response: DecideResponse) -> None:
    response.keys = b"\2" * len(response.keys)


def _other(request: DecideRequest, response: DecideResponse) -> None:
    response.hello.contract = 2


def _huge(request: DecideRequest, response: DecideResponse) -> None:
    response.keys = bytes(4 << 20)


def _ends(request: DecideRequest, response: DecideResponse) -> None:
    raise RuntimeError("<b>\x1b[2J")


def _words(request: DecideRequest, response: DecideResponse) -> None:
    for seat in [*request.seats, 10**6]:
        response.failures.add(seat=seat, reason="no \n\x1b[2Jluck " * 1000)


@contextmanager
def hostile(spoil: Callable[[DecideRequest, DecideResponse], None]) -> Iterator[str]:
    server = grpc.server(ThreadPoolExecutor(8))
    player_pb2_grpc.add_PlayerServiceServicer_to_server(Hostile(spoil), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.stop(None).wait()


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (_more, r"it sent (1|11|21) keys for"),
        (_twos, "other keys than 0 and 1"),
        (_other, "version 2 of the contract"),
        (_huge, "larger than max"),
        (_ends, "Exception"),
        (_words, "no  +.2Jluck"),
    ],
)
def test_a_hostile_player_fails_its_own_matches(spoil, words: str, blobs: BlobFolder) -> None:
    with hostile(spoil) as address:
        played, failures = play(blobs, linked(blobs, address))
    assert played == []
    assert len(failures) == 2
    for reason in failures:
        assert reason.startswith("the rival failed: ")
        assert reason.isprintable()
        assert len(reason) < 500
        assert re.search(words, reason)


def test_a_late_player_repeats_its_keys(blobs: BlobFolder) -> None:
    """It answers nothing after its first decision."""
    decided, is_over = threading.Event(), threading.Event()

    def waits(request: DecideRequest, response: DecideResponse) -> None:
        response.keys = b"\1" * len(response.keys)
        if request.seats and decided.is_set():
            is_over.wait()

    limits = replace(LIMITS, decision_seconds=0.5)
    with hostile(waits) as address, seats(blobs, limits) as rivals:
        rivals.seat(0, linked(blobs, address))
        for frame in range(3):
            keys_SA = np.zeros((1, 10), np.uint8)
            rivals.ask(np.zeros((1, 74), np.float32))
            assert rivals.answer(keys_SA) == {}
            assert keys_SA.all()
            assert rivals.late_in(0) == frame
            decided.set()
        is_over.set()


def test_a_match_may_begin_slowly(blobs: BlobFolder, tmp_path: Path) -> None:
    """A beginning has more time than a decision."""
    text = f"import time\ntime.sleep(3.0)\n{CYCLES}"
    limits = replace(LIMITS, decision_seconds=2.0)
    with (
        serving(file_member(blobs, text, tmp_path), tmp_path) as address,
        seats(blobs, limits) as rivals,
    ):
        rivals.seat(0, linked(blobs, address))
        rivals.ask(np.zeros((1, 74), np.float32))
        assert rivals.answer(np.zeros((1, 10), np.uint8)) == {}
        assert rivals.late == 0


def asked(address: str, requests: list[DecideRequest], token: str = "") -> list[DecideResponse]:
    metadata = (("authorization", f"Bearer {token}"),) if token else ()
    with grpc.insecure_channel(address) as channel:
        stub = player_pb2_grpc.PlayerServiceStub(channel)
        try:
            return list(stub.Decide(iter(requests), metadata=metadata, timeout=60.0))
        except grpc.RpcError as failure:
            raise error_of(failure) from None


def row(*, value: float = 0.0, size: int = SPEC.observation_size) -> bytes:
    return np.full(size, value, "<f4").tobytes()


def begun(**fields: object) -> DecideRequest:
    return DecideRequest(hello=HELLO, begin=[PlayerBeginning(seat=7, seed=1)], **fields)


def changed(**fields: object) -> DecideRequest:
    hello = PlayerHello()
    hello.CopyFrom(HELLO)
    for name, value in fields.items():
        setattr(hello, name, value)
    return DecideRequest(hello=hello)


WRONG = {
    "contract": (changed(contract=9), VersionMismatch, "version 9"),
    "game": (changed(game="kuhn"), InvalidInput, "the league plays kuhn"),
    "size": (changed(observation_size=10**9), InvalidInput, "1000000000"),
    "nothing": (DecideRequest(), VersionMismatch, "version 0"),
    "short": (begun(seats=[7], observations=row()[:-1]), InvalidInput, "295 bytes for 1 seats"),
    "twice": (begun(seats=[7, 7], observations=2 * row()), InvalidInput, "each seat once"),
    "nan": (begun(seats=[7], observations=row(value=np.nan)), InvalidInput, "NaN"),
    "again": (
        DecideRequest(hello=HELLO, begin=[PlayerBeginning(seat=7), PlayerBeginning(seat=7)]),
        InvalidInput,
        "seat 7, which plays",
    ),
    "many": (
        DecideRequest(hello=HELLO, begin=[PlayerBeginning(seat=seat) for seat in range(1025)]),
        InvalidInput,
        "over 1,024 seats",
    ),
}


def test_a_hostile_league_gets_sentences(blobs: BlobFolder, tmp_path: Path) -> None:
    with serving(snapshot(blobs), tmp_path) as address:
        for request, error, words in WRONG.values():
            with pytest.raises(error, match=words):
                asked(address, [request])
        first, second = asked(
            address,
            [
                begun(seats=[7, 8], observations=2 * row(), end=[9]),
                DecideRequest(seats=[7], observations=row()),
            ],
        )
        assert (first.hello, len(first.keys)) == (HELLO, 20)
        assert [(one.seat, one.reason) for one in first.failures] == [
            (8, "no match has begun in this seat")
        ]
        assert second.keys == first.keys[:10]
        many = [
            DecideRequest(hello=HELLO, end=range(1000), begin=[{"seat": n} for n in range(1000)])
            for _ in range(3)
        ]
        assert len(asked(address, many)) == 3, "seats of matches that ended are free"


@pytest.mark.long
def test_a_player_that_others_reach_wants_a_token(blobs: BlobFolder, tmp_path: Path) -> None:
    member = snapshot(blobs)
    with pytest.raises(ConfigError, match="nothing says who may ask"):
        PlayerServer(member, 0, security=SecuritySettings(host="0.0.0.0"), folder=tmp_path)
    with serving(member, tmp_path, tokens=True) as address:
        with pytest.raises(LeagueError, match="wants a token"):
            asked(address, [DecideRequest(hello=HELLO)])
        token = TokenFile(tmp_path).folder / "read.token"
        assert asked(address, [DecideRequest(hello=HELLO)], token.read_text().strip())
        assert play(blobs, linked(blobs, address, token))[1] == []
        (reason, _) = play(blobs, linked(blobs, address))[1]
        assert "wants a token" in reason


@pytest.mark.long
def test_a_player_speaks_tls(blobs: BlobFolder, tmp_path: Path) -> None:
    """Without tokens it wants a certificate of the league."""
    make_folder(tmp_path / "certs", clients=["league"])
    with serving(snapshot(blobs), tmp_path, tls=str(tmp_path / "certs")) as address:
        assert play(blobs, linked(blobs, address, tls=tmp_path / "certs"))[1] == []
        assert len(play(blobs, linked(blobs, address))[1]) == 2


@pytest.mark.long
def test_friends_fight_without_handing_over_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, file = tmp_path / "run", tmp_path / "agent.py"
    make_run(run)
    file.write_text(CYCLES)
    at = ["--run-dir", str(run)]

    def call(*words: object, status: int = 0) -> str:
        assert main([*map(str, words), *at]) == status
        out = capsys.readouterr()
        return out.out if status == 0 else out.err

    assert "constant is a bot" in call("player", "constant", status=2)
    assert "--trust" in call("player", file, status=2)
    command = [sys.executable, "-m", "league", "player", str(file), "--trust"]
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "theirs")}
    with (
        served(run, read_only=False),
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as player,
    ):
        try:
            assert player.stdout is not None
            address = f"127.0.0.1:{player.stdout.readline().split()[1]}"
            call("add", address, "--as", "friend")
            (listed,) = [row for row in rows(call("players")) if row["kind"] == "rival"]
            assert (listed["player"], listed["state"]) == ("friend", "active")
            assert "friend" in call("demo", "friend", "constant")
            assert "friend" in call("eval", "main", "--against", "friend", "--matches", 4)
        finally:
            player.send_signal(signal.SIGTERM)
        assert player.wait() == 0
        assert "can't play" in call("add", address, "--as", "other", status=2)
        assert "can't play" in call("demo", "friend", "constant", status=4)
