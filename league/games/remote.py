"""Plays a game that runs as a gRPC server, in any language: `grpc:HOST:PORT`.

The contract is proto/league/v1/games.proto. The league does not trust the server, and checks the
bounds of everything that the server sends. If a response breaks the contract, matches fail, but the
league continues.

Shape suffixes: R rows of a request, 2 seats, A action width, V width of a seat's view, K reward
terms.
"""

from __future__ import annotations

import hashlib
import logging
import queue
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import grpc
import numpy as np
from numpy.typing import NDArray

from league.errors import ConfigError, Unavailable, plain
from league.games.base import CHOICE, KEYS, GameSpec, check_saved
from league.games.hosted import Host, check_options
from league.games.seen import (
    MOST_NUMBERS,
    WIN,
    SeenGame,
    clip,
    match_seed,
    seen_spec,
    seen_type,
)
from league.rpc.channel import CHANNEL_OPTIONS, Reminders
from league.status import GAME_SERVER
from league.v1 import games_pb2 as pb
from league.v1.games_pb2_grpc import GameServiceStub

CONTRACT = 1
MOST_KEYS, MOST_CHOICES, MOST_TERMS = 32, 4096, 32
MOST_FRAMES, MOST_FRAMES_PER_SECOND = 1_000_000, 1000
LONGEST_TEXT, LONGEST_STATE, LONGEST_REASON = 20_000, 65_536, 200
DESCRIBE_SECONDS = 5.0
PAUSE_SECONDS = 0.5
STOP_SECONDS = 1.0
"""Longest wait for a response after this program was asked to stop."""
STATS = ("moves", "reward")
STOPPED = f"{GAME_SERVER} did not answer (the program stopped meanwhile)"

_KINDS = {pb.ACTION_KIND_KEYS: KEYS, pb.ACTION_KIND_CHOICE: CHOICE}
_NAME = re.compile(r"[A-Za-z0-9_.+-]{1,40}")
_MOST_BYTES = 1 << 20, (1 << 31) - 1
"""Largest size of a description, and of a message that gRPC can carry, in bytes."""
_UNAVAILABLE = {
    "Connection refused": "nothing listens there",
    "DNS": "its host is unknown",
    "failed to connect": "it can't be reached",
    "reset by peer": "the connection was closed",
    "Socket closed": "the connection was closed",
    "Broken pipe": "the connection was closed",
}
"""Parts of gRPC's messages about failed connections, with plain words for each."""
log = logging.getLogger(__name__)


class RemoteGame(SeenGame):
    """Plays N matches on a server.

    Args:
        num_matches: matches that step together.
        argument: `HOST:PORT` of the server.
        max_frames: frames after which a match ends as a draw. None means the server's limit.
        step_seconds: longest wait for a response. After this time, all matches fail.

    Raises:
        ConfigError: the server's description can't be used.
        Unavailable: no server answers.
    """

    def __init__(
        self,
        num_matches: int,
        *,
        argument: str = "",
        max_frames: int | None = None,
        step_seconds: float = 10.0,
    ) -> None:
        check_options(step_seconds, 0)
        host, _, port = argument.rpartition(":")
        if not host or "/" in host or not port.isdigit():
            raise ConfigError(
                f"game 'grpc' needs the address of its server, not {argument!r}: name it as "
                "grpc:HOST:PORT"
            )
        with _channel(argument, _MOST_BYTES[0]) as channel:
            game = _described(GameServiceStub(channel), argument)
        spec = _spec(argument, game, max_frames)
        server = _Server(argument, game, spec, num_matches, step_seconds)
        super().__init__(spec, num_matches, server)
        self._has_text, self._has_state = game.has_text, game.has_state
        self._loading: list[bytes] = []  # the server's saved states by row, only during `load`

    def request(self, verb: str, rows: list[int]) -> tuple[Any, ...]:
        """Returns a server request's arguments after `rows`. During `load`, the request `begin`
        also gets the match states that the server had saved.
        """
        states = [self._loading[row] for row in rows] if self._loading else []
        return (*super().request(verb, rows), *([states] if verb == "begin" else []))

    def save(self) -> dict[str, NDArray]:
        """Copies the whole state. If the server can save matches, this includes the server's saved
        state of each match.
        """
        states = [b""] * self.num_matches
        if self._has_state:
            good = [row for row in range(self.num_matches) if row not in self._broken]
            for saved in self.ask_all("save", good):
                states = [saved.get(row, b"") for row in range(self.num_matches)]
        sizes_N = np.array([*map(len, states)], np.int64)
        content = np.frombuffer(b"".join(states), np.uint8)
        return super().save() | {"states": content, "state_sizes_N": sizes_N}

    def load(self, state: dict[str, NDArray]) -> None:
        """Continues from a state that `save` returned.

        Raises:
            DataCorrupt: the state does not fit, or a match plays out differently.
            VersionMismatch: the matches were played under other rules, options or another time
                limit.
        """
        check_saved(state, "state_sizes_N", np.zeros(self.num_matches, np.int64))
        ends_N = np.cumsum(state["state_sizes_N"])
        check_saved(state, "states", np.zeros(ends_N[-1], np.uint8))
        if self._has_state and len(state["states"]):
            self._loading = [part.tobytes() for part in np.split(state["states"], ends_N[:-1])]
        try:
            super().load(state)
        finally:
            self._loading = []

    def step(self, actions_N2A: NDArray[np.uint8], frames: int = 1) -> None:
        """Plays frames with the same actions."""
        self.refuse_illegal(self.checked_actions(actions_N2A, frames))
        super().step(actions_N2A, frames)

    def text(self, match: int) -> str:
        """Returns the server's text for a match. If the server has no texts, it returns the
        observation of the seat that has to act.
        """
        if self._has_text:
            return super().text(match)
        seat = int(self.observations_N2O[match, :, 2].argmax())
        view_V = self.observations_N2O[match, seat, self.spec.own_size :]
        return f"seat {seat} sees:\n{np.array2string(view_V, precision=3, threshold=500)}"

    def clipped(self) -> Counter[str]:
        """Counts observed values outside [-1, 1] since the last call."""
        assert isinstance(self.host, _Server)
        counts, self.host.clipped = self.host.clipped, Counter()
        return counts


def _channel(address: str, most_bytes: int) -> grpc.Channel:
    options = [
        *(option for option in CHANNEL_OPTIONS if option[0] != "grpc.max_receive_message_length"),
        ("grpc.max_receive_message_length", most_bytes),
    ]
    return grpc.insecure_channel(f"dns:///{address}", options)


def _described(
    stub: GameServiceStub, address: str, should_stop: Callable[[], bool] = lambda: False
) -> pb.DescribeGameResponse:
    """Asks for the game's description."""
    request = pb.DescribeGameRequest(contract=CONTRACT)
    call = stub.DescribeGame.future(request, timeout=DESCRIBE_SECONDS)
    while True:
        try:
            return call.result(timeout=PAUSE_SECONDS)
        except grpc.FutureTimeoutError:
            if should_stop():
                call.cancel()
        except grpc.FutureCancelledError:
            raise Unavailable(STOPPED) from None
        except grpc.RpcError as failure:
            raise Unavailable(
                f"no game answers at {address} ({_reason(failure)}): start its server there, or "
                "check the address"
            ) from None


def _reason(failure: grpc.RpcError) -> str:
    """Returns the reason why a call failed, in plain words for the usual failures. For other
    failures, it returns gRPC's code and the server's message, shortened and without control
    characters.
    """
    details = failure.details() or ""
    if failure.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
        return "it took too long"
    if failure.code() is grpc.StatusCode.UNAVAILABLE:
        for word, reason in _UNAVAILABLE.items():
            if word in details:
                return reason
    return plain(f"{failure.code().name}: {details}")[:LONGEST_REASON]


def _spec(address: str, game: pb.DescribeGameResponse, max_frames: int | None) -> GameSpec:
    """Checks the description, and returns the spec."""
    if game.contract != CONTRACT:
        raise ConfigError(
            f"the game at {address} speaks version {game.contract} of the contract (games.proto): "
            f"this league speaks version {CONTRACT}"
        )
    kind = _KINDS.get(game.action_kind)
    most = MOST_KEYS if kind == KEYS else MOST_CHOICES
    actions, terms = tuple(game.action_names), tuple(game.reward_terms)
    names = (game.name, game.version, *actions, *terms)
    for is_right, fault in (
        (game.seats == 2, f"has {game.seats} seats: a league plays games of 2"),
        (kind is not None, f"has the action kind {game.action_kind}: take keys or choices"),
        (1 <= len(actions) <= most, f"has {len(actions)} actions: 1 to {most} can be taken"),
        (len(terms) <= MOST_TERMS, f"has {len(terms)} reward terms: up to {MOST_TERMS} are taken"),
        (
            1 <= game.observation_size <= MOST_NUMBERS,
            f"shows {game.observation_size} numbers to a seat: 1 to {MOST_NUMBERS} can be taken",
        ),
        (
            1 <= game.max_frames <= MOST_FRAMES,
            f"has matches of {game.max_frames} frames: 1 to {MOST_FRAMES} can be taken",
        ),
        (
            0 <= game.frames_per_second <= MOST_FRAMES_PER_SECOND,
            f"plays {game.frames_per_second} frames a second: up to {MOST_FRAMES_PER_SECOND} can "
            "be taken",
        ),
        (len({*actions}) == len(actions), "has two actions of one name"),
        (len({*terms, WIN}) == len(terms) + 1, f"has two reward terms of one name, or {WIN!r}"),
        *(
            (
                _NAME.fullmatch(name),
                f"has the name {name[:60]!r}: give 1 to 40 letters, digits or characters of _.+-",
            )
            for name in names
        ),
    ):
        if not is_right:
            raise ConfigError(f"the game at {address} {fault}")
    assert kind is not None
    return seen_spec(
        name=f"grpc:{address}",
        version=f"{game.name} {game.version} {_digest(game)}",
        frames_per_second=game.frames_per_second or 1,
        view_size=game.observation_size,
        action_names=actions,
        action_kind=kind,
        terms=terms,
        stats=STATS,
        max_frames=game.max_frames if max_frames is None else max_frames,
        reward_presets={"dense": dict.fromkeys((*terms, WIN), 1.0), "sparse": {WIN: 1.0}},
    )


def _digest(game: pb.DescribeGameResponse) -> str:
    """Returns 8 hexadecimal digits that identify the rules in a description."""
    rules = pb.DescribeGameResponse()
    rules.CopyFrom(game)
    rules.ClearField("has_text")
    rules.ClearField("has_state")
    return hashlib.sha256(rules.SerializeToString(deterministic=True)).hexdigest()[:8]


class _Stream:
    """Sends requests on a stream (a call of Play), and waits for the response to each."""

    def __init__(self, stub: GameServiceStub) -> None:
        self._requests: queue.SimpleQueue[pb.PlayRequest | None] = queue.SimpleQueue()
        self._responses: queue.SimpleQueue[pb.PlayResponse | str] = queue.SimpleQueue()
        self._wanted: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self._call = stub.Play(iter(self._requests.get, None))
        # gRPC has no time limit for a single response of a stream, so a thread reads the responses.
        # The thread reads only while `ask` waits for a response.
        threading.Thread(target=self._read, name="game-server", daemon=True).start()

    def _read(self) -> None:
        while self._wanted.get():
            try:
                self._responses.put(next(self._call))
            except StopIteration:
                self._responses.put("it has ended the stream")
            except grpc.RpcError as failure:
                self._responses.put(_reason(failure))

    def ask(
        self, request: pb.PlayRequest, seconds: float, should_stop: Callable[[], bool]
    ) -> pb.PlayResponse:
        """Returns the response. Raises `Unavailable` if no response comes in time."""
        self._requests.put(request)
        self._wanted.put(True)
        began = time.monotonic()
        while (waited := time.monotonic() - began) < seconds:
            try:
                response = self._responses.get(timeout=min(PAUSE_SECONDS, seconds - waited))
            except queue.Empty:
                if waited >= STOP_SECONDS and should_stop():
                    raise Unavailable(STOPPED) from None
                continue
            if isinstance(response, str):
                raise Unavailable(f"{GAME_SERVER} did not answer ({response})")
            return response
        raise Unavailable(f"{GAME_SERVER} did not answer (it took over {seconds:g} s)")

    def close(self) -> None:
        """Ends the call and the threads."""
        self._wanted.put(False)
        self._requests.put(None)
        self._call.cancel()


class _Server(Host):
    """Plays matches over a stream to a server. If the server doesn't answer, the host waits for it.

    Args:
        address: HOST:PORT.
        game: the server's description. A server whose description has changed is refused.
        spec: the game.
        num_matches: N.
        step_seconds: longest time for a response.

    Attributes:
        clipped: counts how often each observed number was outside its bounds. `BatchedGame.clipped`
            describes the keys.
    """

    def __init__(
        self,
        address: str,
        game: pb.DescribeGameResponse,
        spec: GameSpec,
        num_matches: int,
        step_seconds: float,
    ) -> None:
        self._address, self._game, self._spec = address, game, spec
        self._step_seconds, self._rows = step_seconds, range(num_matches)
        self._type = seen_type(game.observation_size, spec.action_size, len(game.reward_terms))
        self._is_choice = spec.action_kind == CHOICE
        self._channel: grpc.Channel | None = None
        self._stream: _Stream | None = None
        self._started = False
        self._is_in_trouble, self._remind = False, Reminders(log.warning)
        self.clipped: Counter[str] = Counter()

    @property
    def is_started(self) -> bool:
        """Whether the host was started. It stays true while the server doesn't answer."""
        return self._started

    def start(self) -> None:
        """Connects to the server unless this host is started."""
        if not self._started:
            self._connected()
            self._started = True

    def close(self) -> None:
        """Closes the stream, which ends all matches."""
        self._started = False
        self._drop()
        if self._channel is not None:
            self._channel.close()
            self._channel = None

    def _drop(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def _connected(self) -> _Stream:
        """Returns the stream. Waits while the server doesn't answer or offers another game."""
        deadline = time.monotonic() + self.wait_seconds
        while self._stream is None:
            if self.should_stop():
                raise Unavailable(STOPPED)
            try:
                self._stream = self._opened()
            except Unavailable as error:
                if self.should_stop() or time.monotonic() >= deadline:
                    raise
                self._tell(str(error))
                time.sleep(PAUSE_SECONDS)
        return self._stream

    def _tell(self, error: str) -> None:
        """Logs the reason why no match can continue, and passes it to `on_wait`. An empty `error`
        means that matches continue.
        """
        if error:
            reason = error.replace(GAME_SERVER, "it", 1).replace(f" at {self._address}", "", 1)
            sentence = f"waiting for {GAME_SERVER} at {self._address}: {reason}"
            self.on_wait(sentence[: 2 * LONGEST_REASON])
            self._remind(sentence)
        elif self._is_in_trouble:
            self.on_wait("")
            self._remind = Reminders(log.warning)
        self._is_in_trouble = bool(error)

    def _opened(self) -> _Stream:
        if self._channel is None:
            row = 2 * (4 * self._game.observation_size + self._spec.action_size) + 1
            row += 8 * len(self._game.reward_terms)
            row += (LONGEST_STATE + 8) if self._game.has_state else 0
            most = len(self._rows) * row + _MOST_BYTES[0]
            self._channel = _channel(self._address, min(most, _MOST_BYTES[1]))
        stub = GameServiceStub(self._channel)
        now = _described(stub, self._address, self.should_stop)
        if now != self._game:
            words = (
                plain(f"{game.name} {game.version} ({_digest(game)})")[:LONGEST_REASON]
                for game in (now, self._game)
            )
            raise Unavailable("the game at {} is {} now, not {}".format(self._address, *words))
        return _Stream(stub)

    def run(
        self, verb: str, rows: Sequence[int], arguments: Callable[[list[int]], tuple[Any, ...]]
    ) -> tuple[list[tuple[list[int], Any]], dict[int, str]]:
        """Sends a request to the server. If no response comes, or the response breaks the contract,
        all matches are lost.
        """
        asked = list(rows)
        if not asked:
            return [], {}
        try:
            self._connected()
            answer = getattr(self, f"_{verb}")(asked, *arguments(asked))
        except Unavailable as error:
            self._drop()
            self._tell(str(error))
            return [], dict.fromkeys(self._rows, str(error))
        if verb == "step":  # an answer to `begin` is no proof that steps work
            self._tell("")
        return [(asked, answer)], {}

    def _ask(self, **request: Any) -> pb.PlayResponse:
        message, stream = pb.PlayRequest(**request), self._connected()
        return stream.ask(message, self._step_seconds, self.should_stop)

    def _text(self, rows: list[int]) -> str:
        lines = self._ask(text=pb.TextRequest(row=rows[0])).text[:LONGEST_TEXT].splitlines()
        return "\n".join(map(plain, lines))

    def _save(self, rows: list[int]) -> dict[int, bytes]:
        states = self._ask(save=pb.SaveRequest(rows=rows)).states
        if len(states) != len(rows) or max(map(len, states)) > LONGEST_STATE:
            raise Unavailable(
                f"{GAME_SERVER} sent {len(states)} states: {len(rows)} of up to "
                f"{LONGEST_STATE} bytes are wanted"
            )
        return dict(zip(rows, states, strict=True))

    def _begin(
        self, rows: list[int], seeds: list[int], played: list[bytes], states: list[bytes]
    ) -> tuple[bytes, dict[int, str]]:
        """Begins matches. A saved match continues from the server's saved state. If the server
        can't save states, the match's earlier actions are played again.
        """
        if states:
            response = self._ask(load=pb.LoadRequest(rows=rows, states=states))
            seen_R, failed = self._records(rows, response, np.zeros(len(rows), np.bool_))
            return seen_R.tobytes(), failed
        begin = pb.BeginRequest(
            rows=rows, seeds=[*map(match_seed, seeds)], max_frames=self._spec.max_frames
        )
        seen_R, failed = self._records(rows, self._ask(begin=begin), np.zeros(len(rows), np.bool_))
        width = 2 * self._spec.action_size
        frames_R = [len(actions) // width for actions in played]
        for frame in range(max(frames_R)):
            places = [place for place, frames in enumerate(frames_R) if frame < frames]
            again = [rows[place] for place in places]
            actions = b"".join(
                played[place][frame * width : (frame + 1) * width] for place in places
            )
            seen_R[places], wrong = self._stepped(again, actions, [False] * len(again))
            failed |= wrong
        return seen_R.tobytes(), failed

    def _step(
        self, rows: list[int], actions: bytes, is_last: list[bool]
    ) -> tuple[bytes, dict[int, str]]:
        seen_R, failed = self._stepped(rows, actions, is_last)
        return seen_R.tobytes(), failed

    def _stepped(
        self, rows: list[int], actions: bytes, is_last: list[bool]
    ) -> tuple[NDArray[np.void], dict[int, str]]:
        actions_R2A = np.frombuffer(actions, np.uint8).reshape(len(rows), 2, -1)
        if self._is_choice:
            numbers_R2 = actions_R2A.argmax(-1)
        else:
            powers_A = np.uint32(1) << np.arange(actions_R2A.shape[-1], dtype=np.uint32)
            numbers_R2 = ((actions_R2A != 0) * powers_A).sum(-1)
        step = pb.StepRequest(rows=rows, actions=numbers_R2.reshape(-1).tolist())
        return self._records(rows, self._ask(step=step), np.array(is_last, np.bool_))

    def _records(
        self, rows: list[int], response: pb.PlayResponse, is_last_R: NDArray[np.bool_]
    ) -> tuple[NDArray[np.void], dict[int, str]]:
        """Checks a response to begin, load or step.

        Returns:
            A record of `seen_type` for each row, and the reason for each failed row.

        Raises:
            Unavailable: a field has a wrong size or value.
        """
        seen_R = np.zeros(len(rows), self._type)
        views_R2V = self._field(response, "observations", "<f4", seen_R["views"].shape)
        rewards_R2K = self._field(response, "rewards", "<f4", seen_R["rewards"].shape, 0)
        legal_R2A = self._field(response, "legal", "u1", seen_R["legal"].shape, 1) != 0
        outcomes_R = self._field(response, "outcomes", "u1", (len(rows),), 0)
        if outcomes_R.max() > pb.OUTCOME_FAILED:
            raise Unavailable(
                f"{GAME_SERVER} sent the outcome {outcomes_R.max()}: games.proto lists them"
            )
        ended_R = (outcomes_R != pb.OUTCOME_UNSPECIFIED) | is_last_R
        acting_R2 = legal_R2A.any(-1) if self._is_choice else np.ones((len(rows), 2), np.bool_)
        failed = {
            rows[place]: f"{GAME_SERVER} gave neither seat of row {rows[place]} a legal choice"
            for place in np.flatnonzero(~acting_R2.any(1) & ~ended_R)
        }
        for name, numbers in (("observations", views_R2V), ("rewards", rewards_R2K)):
            for place in np.flatnonzero(~np.isfinite(numbers).all((1, 2))):
                seat, index = np.argwhere(~np.isfinite(numbers[place]))[0]
                failed[rows[place]] = (
                    f"{GAME_SERVER} sent NaN or infinity in {name}: number {index} of seat {seat} "
                    f"in row {rows[place]}"
                )
        failed |= {
            rows[place]: f"{GAME_SERVER} could not play the match to its end"
            for place in np.flatnonzero(outcomes_R == pb.OUTCOME_FAILED)
        }
        seen_R["views"] = np.nan_to_num(views_R2V)
        clip(seen_R["views"], self.clipped)
        seen_R["rewards"] = rewards_R2K
        seen_R["acting"], seen_R["legal"] = acting_R2, legal_R2A
        seen_R["legal"][:, :, 0] |= ~acting_R2
        seen_R["ended"] = ended_R
        seen_R["lead"][outcomes_R == pb.OUTCOME_SEAT_0_WON] = 1
        seen_R["lead"][outcomes_R == pb.OUTCOME_SEAT_1_WON] = -1
        return seen_R, failed

    @staticmethod
    def _field(
        response: pb.PlayResponse,
        name: str,
        kind: str,
        shape: tuple[int, ...],
        default: int | None = None,
    ) -> NDArray[Any]:
        """Returns a field of a response as an array. If the field is empty and there is a
        `default`, all values are the default.
        """
        content, wanted = getattr(response, name), int(np.prod(shape)) * np.dtype(kind).itemsize
        if not content and default is not None:
            return np.full(shape, default, kind)
        if len(content) != wanted:
            raise Unavailable(
                f"{GAME_SERVER} sent {len(content)} bytes of {name}: {wanted} are wanted"
            )
        return np.frombuffer(content, kind).reshape(shape)
