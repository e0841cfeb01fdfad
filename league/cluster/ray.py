"""Connects to a Ray cluster, and calls functions on its nodes. No other file imports Ray."""

from __future__ import annotations

import os
import secrets
import shlex
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import grpc

from league.cluster.engine import Place
from league.cluster.runner import Folders, Runner, free_port
from league.cluster.settings import ClusterSettings, labels_of
from league.cluster.topology import Spread
from league.errors import ConfigError, InvalidInput, LeagueError, Unavailable
from league.games.registry import PATH, absolute_users_path
from league.runs.files import write_whole
from league.settings.device_flags import cores

_ENVIRONMENT = {
    "RAY_AUTH_MODE": "token",
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",  # each node has its own installation
    "RAY_USAGE_STATS_ENABLED": "0",
    # A dead node's last log lines, which Ray prints on stdout. The supervisor reports dead nodes.
    "RAY_DEDUP_LOGS_SKIP_REGEX": "^Raylet is terminated|^The node with node id",
}
_OBJECT_STORE_BYTES = 100_000_000  # only small objects pass through it
_GCS_SECONDS = 5.0
_GCS_CALL = "/ray.rpc.NodeInfoGcsService/CheckAlive"
_PROBE_SECONDS = 60.0

T = TypeVar("T")
R = TypeVar("R")


def _loaded() -> Any:
    """Imports Ray. Raises `ConfigError` where it is not installed."""
    os.environ.update(_ENVIRONMENT)  # first, because the import reads some of them
    try:
        import ray
    except ImportError:
        raise ConfigError(
            "--engine ray needs Ray, which is not installed: run bin/bootstrap --all in a clone, "
            "or pip install 'kumite[cluster]'"
        ) from None
    return ray


@dataclass(frozen=True, kw_only=True)
class Node:
    """Describes a live node of the cluster. No two nodes have the same `name`."""

    id: str
    name: str
    address: str
    cpus: float
    gpus: float
    labels: Mapping[str, str]

    def suits(self, place: Place) -> bool:
        """Returns whether the node is large enough for a process and has its labels."""
        is_labelled = place.labels.items() <= dict(self.labels).items()
        return is_labelled and self.cpus >= place.cpus and self.gpus >= place.gpus


class Sight(NamedTuple):
    """Holds an actor's answer: its node, the node's address with a free port, and whether the node
    sees the run's folder.
    """

    node: str
    address: str
    port: int
    sees: bool


class Actor(Runner):
    """Runs a process on a node."""

    def look(self, folders: Folders) -> Sight:
        """Describes this node."""
        ray = _loaded()
        address = ray.util.get_node_ip_address()
        node = ray.get_runtime_context().get_node_id()
        return Sight(node, address, free_port(address), folders.are_here())


def _call(work: Callable[[T], R], item: T, environment: Mapping[str, str]) -> R:
    os.environ.update(environment)
    return work(item)


def _sees(folders: Folders) -> bool:
    return folders.are_here()


def last_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[-1][:200] if lines else type(error).__name__


def _check_token(address: str) -> None:
    """Raises `ConfigError` if the cluster answers callers without a token, or `Unavailable` if it
    does not answer.
    """
    with grpc.insecure_channel(address) as channel:
        try:
            channel.unary_unary(_GCS_CALL)(b"", timeout=_GCS_SECONDS, wait_for_ready=True)
        except grpc.RpcError as error:
            if error.code() is grpc.StatusCode.UNAUTHENTICATED:
                return
            raise Unavailable(
                f"no Ray cluster answers at {address} ({error.code().name}): start Ray there, or "
                "set RAY_ADDRESS to the head node's address"
            ) from None
    raise ConfigError(
        f"the Ray cluster at {address} asks for no token, so any caller that reaches it can run "
        "programs on its nodes: start all nodes with RAY_AUTH_MODE=token (docs/scaling.md)"
    )


def _token_file() -> Path | None:
    """Returns the place of Ray's token in the home folder, or None if the environment names another
    token.

    Raises:
        ConfigError: other users can read the token.
    """
    if os.environ.keys() & {"RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"}:
        return None
    token = Path.home() / ".ray" / "auth_token"
    if token.exists() and token.stat().st_mode & 0o077:
        raise ConfigError(
            f"other users can read {token}, and with it run programs on the Ray cluster: chmod 600 "
            f"{shlex.quote(str(token))}"
        )
    return token


class Cluster:
    """Connects to a Ray cluster. Use it as a context manager.

    It joins the cluster of `RAY_ADDRESS`, or else the cluster that this machine belongs to. Without
    a cluster it starts Ray on this machine alone, until the context ends.

    Args:
        is_alone: whether to start Ray on this machine even if there is a cluster.

    Raises:
        ConfigError: Ray is not installed, this machine has no token of the cluster, other users can
            read the token, or the cluster does not ask for a token.
        Unavailable: the cluster does not answer.
    """

    def __init__(self, *, is_alone: bool = False) -> None:
        self.ray, token = _loaded(), _token_file()
        quiet = {"logging_level": "ERROR", "log_to_driver": False}
        named = "" if is_alone else os.environ.get("RAY_ADDRESS", "")
        if named and named != "auto":
            _check_token(named)
        try:
            if is_alone:
                self._start(quiet, token)
            else:
                self.ray.init(address=named or "auto", **quiet)
        except self.ray.exceptions.AuthenticationError:
            raise ConfigError(
                "this machine has no token of the Ray cluster: copy ~/.ray/auth_token of the head "
                "node to the same place here (chmod 600), or name the file as RAY_AUTH_TOKEN_PATH"
            ) from None
        except (ConnectionError, SystemExit) as error:
            if named or isinstance(error, SystemExit):
                raise Unavailable(
                    f"the Ray cluster {named or 'here'} does not answer ({last_line(error)}): is "
                    "it up, and is its token that of ~/.ray/auth_token here?"
                ) from None
            self._start(quiet, token)
        try:
            _check_token(self.ray.get_runtime_context().gcs_address)
        except LeagueError:
            self.ray.shutdown()
            raise
        self.address = str(self.ray.util.get_node_ip_address())
        self.node = str(self.ray.get_runtime_context().get_node_id())

    def _start(self, quiet: Mapping[str, Any], token: Path | None) -> None:
        """Starts Ray on this machine alone. Ray would make a token that other users can read."""
        if token is not None and not token.exists():
            token.parent.mkdir(mode=0o700, exist_ok=True)
            write_whole(token, secrets.token_hex(32), private=True)
        self.ray.init(
            address="local",
            num_cpus=cores(),
            include_dashboard=False,
            object_store_memory=_OBJECT_STORE_BYTES,
            **quiet,
        )

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.ray.shutdown()

    def nodes(self) -> list[Node]:
        """Returns the live nodes. The call may block while a node dies."""
        alive = [node for node in self.ray.nodes() if node["Alive"]]
        hosts = [node["NodeManagerHostname"] for node in alive]
        return [
            Node(
                id=node["NodeID"],
                name=host if hosts.count(host) == 1 else f"{host}-{node['NodeID'][:6]}",
                address=node["NodeManagerAddress"],
                cpus=node["Resources"].get("CPU", 0.0),
                gpus=node["Resources"].get("GPU", 0.0),
                labels=node.get("Labels") or {},
            )
            for node, host in zip(alive, hosts, strict=True)
        ]

    def spread(self, settings: ClusterSettings, host: str, *, is_on_cpu: bool) -> Spread:
        """Returns how to spread a league over the nodes.

        Args:
            settings: the section `[cluster]`.
            host: the address that the matchmaker listens on.
            is_on_cpu: whether learners train on CPUs even if there are GPUs.
        """
        labels = labels_of(settings.learners).items()
        gpus = any(node.gpus and labels <= dict(node.labels).items() for node in self.nodes())
        everywhere = host in ("0.0.0.0", "::", "[::]")
        return Spread(
            settings=settings,
            reached_at=self.address if everywhere else host,
            gpus=settings.gpus if gpus and not is_on_cpu else 0.0,
        )

    def words(self) -> str:
        """Returns the cluster's size in words."""
        nodes = self.nodes()
        cpus, gpus = sum(node.cpus for node in nodes), sum(node.gpus for node in nodes)
        count = f"{len(nodes)} node{'s' if len(nodes) > 1 else ''}"
        return f"Computing on Ray: {count}, {cpus:g} CPUs, {gpus:g} GPUs."

    def blind(self, nodes: Sequence[Node], folders: Folders) -> list[Node]:
        """Returns the nodes that do not see the folders.

        Raises:
            Unavailable: a node has no Kumite, or does not answer.
        """
        strategy = self.ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
        look = self.ray.remote(_sees)
        asked = [
            look.options(num_cpus=0, scheduling_strategy=strategy(node.id, soft=False)).remote(
                folders
            )
            for node in nodes
        ]
        unseen = []
        for node, reply in zip(nodes, asked, strict=True):
            try:
                if not self.ray.get(reply, timeout=_PROBE_SECONDS):
                    unseen.append(node)
            except Exception as error:
                raise Unavailable(
                    f"node {node.name} of the Ray cluster can't run Kumite "
                    f"({last_line(error)}): install the same version of Kumite in the Python "
                    "that runs Ray there"
                ) from None
        return unseen

    def check_shared(self, folder: Path) -> None:
        """Raises `InvalidInput` if a node of the cluster does not see a folder."""
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".seen-") as marker:
            marker.write(os.urandom(16))
            marker.flush()
            for node in self.blind(self.nodes(), Folders.of([Path(marker.name)])):
                raise InvalidInput(
                    f"node {node.name} of the Ray cluster can't see the folder "
                    f"{folder.absolute()}: name a folder that all nodes mount with --out, and keep "
                    "the run there, too"
                )

    def map(
        self, work: Callable[[T], R], items: Sequence[T], cpus: int = 1
    ) -> Iterator[tuple[int, R]]:
        """Calls a function for each item, each call on `cpus` cores of some node.

        A call sees no GPU, because Ray reserves none for it, and all calls would use the first. It
        finds modules where the caller does (`KUMITE_PATH`). Work of a node that dies is done again
        on another node.

        Yields:
            The number of an item and the result, as soon as there is a result.

        Raises:
            LeagueError: the function raised it, or its process was killed.
        """
        call = self.ray.remote(_call).options(num_cpus=cpus)
        environment = {"CUDA_VISIBLE_DEVICES": "", PATH: absolute_users_path()}
        numbers = {
            call.remote(work, item, environment): number for number, item in enumerate(items)
        }
        try:
            while numbers:
                (reply, *_), _ = self.ray.wait(list(numbers))
                try:
                    yield numbers.pop(reply), self.ray.get(reply)
                except self.ray.exceptions.RayTaskError as error:
                    raise error.cause from None
                except self.ray.exceptions.RayError as error:
                    raise LeagueError(f"a training was killed: {last_line(error)}") from None
        finally:
            for reply in numbers:
                self.ray.cancel(reply, force=True)
