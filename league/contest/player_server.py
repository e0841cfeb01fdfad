"""Serves a file or a snapshot as a player for other people's leagues (`player.proto`).

A league opens a stream (a gRPC call) for the matches that it plays with the player. A stream has
several seats, each with a match.

Shape suffixes: S seats of a stream, B seats that decide now, O observation, A keys.
"""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from league.agent.contract import AgentState
from league.agent.player_link import CONTRACT, MOST_BYTES
from league.agent.rival_bundles import MODELS, pack
from league.agent.rivals import KEYS, LIMITS, RivalSeats
from league.agent.snapshot import check_rules, load_snapshot
from league.contest.members import Finder, Member
from league.contest.rivals import keep, require_trust
from league.errors import InvalidInput, VersionMismatch
from league.games.base import GameSpec
from league.games.registry import family, game_spec
from league.runs.blobs import BlobFolder
from league.security.settings import SecuritySettings, joined
from league.service.server import GrpcServer
from league.v1 import player_pb2, player_pb2_grpc
from league.v1.player_pb2 import DecideRequest, DecideResponse, PlayerFailure, PlayerHello

SERVICE = player_pb2.DESCRIPTOR.services_by_name["PlayerService"].full_name
MOST_SEATS = 1024
"""Largest number of seats of a stream."""
THREADS = 32
"""Largest number of streams that decide at the same time."""


def find_player(finder: Finder, name: str, folder: Path, *, trust: bool) -> Member:
    """Returns the member that a command names, after checking that it can play.

    Args:
        finder: finds snapshots and rivals of a run.
        name: the name of a snapshot or rival, or the path of an agent's file, folder or model.
        folder: the folder that receives the bundle of a file.
        trust: whether the user agrees to run a file. Otherwise the user is asked at the terminal.

    Raises:
        LeagueError: there is no such member, it can't play, or the user does not agree.
    """
    path = Path(name)
    if path.is_dir() or path.suffix in (".py", *MODELS):
        bundle, blobs = pack(path), BlobFolder(folder)
        require_trust([name], trust=trust)
        return Member(name=path.stem, digest=keep(bundle, blobs), blobs=blobs, is_rival=True)
    spec = finder.settings([name], alone=True).spec()
    (member,) = finder.find(spec, [name])
    if family(spec.name) != "brawl" or member.blobs is None:
        raise InvalidInput(
            f"{name} is a bot of {spec.name}, or plays no brawl: name an agent's file, or a "
            "snapshot of a run of brawl"
        )
    if not member.is_rival:
        load_snapshot(member.blobs, member.digest)
    return member


class Seats(ABC):
    """Plays the seats of a stream."""

    @abstractmethod
    def begin(self, seeds: Mapping[int, int]) -> None:
        """Begins matches with an empty memory. `seeds` maps each seat to a seed for its random
        draws.
        """

    @abstractmethod
    def end(self, seat: int) -> None:
        """Ends a seat's match."""

    @abstractmethod
    def decide(
        self, seats_B: NDArray[np.int64], seen_BO: NDArray[np.float32]
    ) -> tuple[NDArray[np.uint8], dict[int, str]]:
        """Makes the decisions of some seats in a frame.

        Returns:
            The keys `[B, A]`, and a reason for each seat whose match has failed.
        """

    def close(self) -> None:  # noqa: B027 (to override where something runs)
        """Ends all matches."""


class FileSeats(Seats):
    """Plays an agent's file in confined processes, as a league plays a rival."""

    def __init__(self, member: Member, spec: GameSpec) -> None:
        assert member.blobs is not None
        # This process waits for every decision, because the league itself counts late decisions.
        patient = replace(LIMITS, decision_seconds=LIMITS.hang_seconds)
        self._rivals = RivalSeats(member.blobs, patient)
        self._digest = member.digest
        self._seen_SO = np.zeros((MOST_SEATS, spec.observation_size), np.float32)

    def begin(self, seeds: Mapping[int, int]) -> None:
        for seat in seeds:
            self._rivals.seat(seat, self._digest)
        # Waits here, because a league allows more time for a start than for a decision.
        self._rivals.begin(self._seen_SO)

    def end(self, seat: int) -> None:
        self._rivals.vacate(seat)

    def decide(
        self, seats_B: NDArray[np.int64], seen_BO: NDArray[np.float32]
    ) -> tuple[NDArray[np.uint8], dict[int, str]]:
        rests_S, keys_SA = np.ones(MOST_SEATS, np.bool_), np.zeros((MOST_SEATS, KEYS), np.uint8)
        rests_S[seats_B], self._seen_SO[seats_B] = False, seen_BO
        self._rivals.ask(self._seen_SO, rests_S)
        failures = self._rivals.answer(keys_SA)
        # The league itself adds the part of the reason before the colon.
        return keys_SA[seats_B], {seat: why.partition(": ")[2] for seat, why in failures.items()}

    def close(self) -> None:
        self._rivals.close()


class NetworkSeats(Seats):
    """Plays with a snapshot, which decides as often as in its training."""

    def __init__(self, member: Member) -> None:
        assert member.blobs is not None
        self._network, self.card = load_snapshot(member.blobs, member.digest)
        self._state = self._network.initial_state(MOST_SEATS)
        self._frames_S = np.zeros(MOST_SEATS, np.int64)
        self._keys_SA = np.zeros((MOST_SEATS, KEYS), np.uint8)
        self._rngs: dict[int, np.random.Generator] = {}

    @torch.inference_mode()
    def begin(self, seeds: Mapping[int, int]) -> None:
        for seat, seed in seeds.items():
            for x in self._state:
                x[seat] = 0
            self._frames_S[seat], self._rngs[seat] = 0, np.random.default_rng(seed)

    def end(self, seat: int) -> None:
        del self._rngs[seat]

    @torch.inference_mode()
    def decide(
        self, seats_B: NDArray[np.int64], seen_BO: NDArray[np.float32]
    ) -> tuple[NDArray[np.uint8], dict[int, str]]:
        due_B = self._frames_S[seats_B] % self.card.frame_skip == 0
        self._frames_S[seats_B] += 1
        if due_B.any():
            seats = seats_B[due_B]
            rows, never = torch.from_numpy(seats), torch.zeros(len(seats), dtype=torch.bool)
            before = AgentState(*(x[rows] for x in self._state))
            out = self._network.step(torch.from_numpy(seen_BO[due_B]), never, before, None)
            for x, new in zip(self._state, out.state, strict=True):
                x[rows] = new
            draws = np.stack([self._rngs[seat].random(KEYS) for seat in seats.tolist()])
            self._keys_SA[seats] = draws < torch.sigmoid(out.logits_BA).numpy()
        return self._keys_SA[seats_B], {}


class Session:
    """Answers the requests of a stream, and checks everything in them."""

    def __init__(self, member: Member) -> None:
        self._member, self._spec = member, game_spec("brawl")
        self._seats: Seats | None = None
        self._rows: dict[int, int] = {}  # our row for each seat of the league
        self._free = list(range(MOST_SEATS))
        self._lost: dict[int, str] = {}  # the reason for each seat whose match has failed
        self._lock = threading.Lock()  # a league may disconnect while its seats decide

    def respond(self, request: DecideRequest) -> DecideResponse:
        """Returns the response to a request.

        Raises:
            InvalidInput: the request is wrong, or the league plays another game.
            VersionMismatch: the league has another version of the game's rules or of the protocol.
        """
        with self._lock:
            return self._response(request)

    def _response(self, request: DecideRequest) -> DecideResponse:
        response = DecideResponse()
        if self._seats is None:
            self._seats = self._made(request.hello)
            response.hello.CopyFrom(request.hello)
        for seat in request.end:
            self._lost.pop(seat, None)
            if (row := self._rows.pop(seat, None)) is not None:
                self._seats.end(row)
                self._free.append(row)
        for one in request.begin:
            if one.seat in self._rows:
                raise InvalidInput(f"a match begins in seat {one.seat}, which plays: end it first")
            if not self._free:
                raise InvalidInput(f"over {MOST_SEATS:,} seats play in a stream: open another one")
            self._lost.pop(one.seat, None)
            self._rows[one.seat] = self._free.pop()
        if request.begin:
            self._seats.begin({self._rows[one.seat]: one.seed for one in request.begin})
        asked, width = list(request.seats), self._spec.observation_size
        if len(set(asked)) < len(asked) or len(request.observations) != 4 * width * len(asked):
            raise InvalidInput(
                f"{len(request.observations)} bytes for {len(asked)} seats: {4 * width} bytes are "
                "wanted for each seat, and each seat once"
            )
        seen_BO = np.frombuffer(request.observations, "<f4").reshape(len(asked), width)
        if not np.isfinite(seen_BO).all():
            raise InvalidInput("an observation is NaN or infinite: send finite numbers")
        keys_BA = np.zeros((len(asked), KEYS), np.uint8)
        if places := [place for place, seat in enumerate(asked) if seat in self._rows]:
            rows = np.array([self._rows[asked[place]] for place in places])
            keys_BA[places], failures = self._seats.decide(rows, seen_BO[places])
            seat_of = {row: seat for seat, row in self._rows.items()} if failures else {}
            for row, reason in failures.items():
                self._lost[seat_of[row]] = reason
                del self._rows[seat_of[row]]
                self._free.append(row)
        response.keys = keys_BA.tobytes()
        for seat in asked:
            if seat not in self._rows:
                reason = self._lost.get(seat, "no match has begun in this seat")
                response.failures.append(PlayerFailure(seat=seat, reason=reason))
        return response

    def _made(self, hello: PlayerHello) -> Seats:
        spec, member = self._spec, self._member
        if hello.contract != CONTRACT:
            raise VersionMismatch(
                f"the league speaks version {hello.contract} of the contract and this player "
                f"version {CONTRACT}: use the same version of Kumite"
            )
        sizes = hello.observation_size, hello.action_size
        if family(hello.game) != spec.name or sizes != (spec.observation_size, spec.action_size):
            raise InvalidInput(
                f"{member.name} plays {spec.name} with {spec.observation_size} numbers and "
                f"{spec.action_size} keys, and the league plays {hello.game} with {sizes[0]} and "
                f"{sizes[1]}"
            )
        if member.is_rival:
            return FileSeats(member, spec)
        seats = NetworkSeats(member)
        theirs = replace(spec, name=hello.game, version=hello.game_version)
        check_rules(member.name, seats.card, theirs)
        return seats

    def close(self) -> None:
        """Ends all matches."""
        with self._lock:
            if self._seats is not None:
                self._seats.close()


class PlayerServicer(player_pb2_grpc.PlayerServiceServicer):
    """Plays each stream in a separate session."""

    def __init__(self, member: Member) -> None:
        self._member = member
        self._threads = ThreadPoolExecutor(THREADS, "player")

    async def Decide(
        self, requests: AsyncIterator[DecideRequest], context: Any
    ) -> AsyncIterator[DecideResponse]:
        session, loop = Session(self._member), asyncio.get_running_loop()
        try:
            async for request in requests:
                yield await loop.run_in_executor(self._threads, session.respond, request)
        finally:
            self._threads.submit(session.close)


class PlayerServer:
    """Serves a member while the context is open.

    Args:
        member: a rival's bundle, or a snapshot.
        port: the port, or 0 for any free port.
        security: the address to listen on, and who may call.
        folder: the folder of the tokens, if the settings ask for tokens.

    Raises:
        ConfigError: the certificates can't be used, or other machines can reach the server and
            every caller would be accepted.
        Refused: the port is taken.
    """

    def __init__(
        self, member: Member, port: int, *, security: SecuritySettings, folder: Path
    ) -> None:
        self._server = GrpcServer(
            "the player", (SERVICE,), threads=1, most_bytes=MOST_BYTES, security=security,
            run_dir=folder,
        )  # fmt: skip
        servicer = PlayerServicer(member)
        self._server.add(player_pb2_grpc.add_PlayerServiceServicer_to_server, servicer)
        self.port = self._server.listen(port)
        self.address = joined(security.host, self.port)

    def __enter__(self) -> PlayerServer:
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop()
