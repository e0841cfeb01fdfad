"""Starts a league's processes on the nodes of a Ray cluster.

Each process has an actor on its node. The actor starts the process as on a single machine, so the
process ends when the actor ends. A thread of the supervisor asks the actor for the exit code and
the log's new bytes, so no call to Ray blocks the supervisor.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from league.cluster.engine import RENDEZVOUS, Child, LocalChild, Place, ProcessSpec
from league.cluster.ray import Actor, Cluster, Sight, last_line
from league.cluster.runner import Folders
from league.errors import ConfigError, LeagueError, RankGone, suppress_full
from league.games.registry import PATH, absolute_users_path
from league.rpc.client import NODE
from league.security.credentials import CA, CLIENT, TOKEN, Credentials
from league.security.settings import is_loopback

_POLL_SECONDS = 0.25
_SILENT_SECONDS = 10.0
"""An actor that gives no answer for this time counts as dead."""
_LOST_SECONDS = 3.0
"""An actor whose connection is lost counts as dead after this time."""
_CLOSED_SECONDS = 60.0
"""Time for which nothing starts on a node that was silent or can't run a process. Ray needs less
time to notice that a node is dead.
"""
_KILL_SECONDS = 2.0
_START_SECONDS = 60.0
_PATIENCE_SECONDS = 15.0
"""Time before the user learns that a process waits for a node."""
_NODE_ID = "ray.io/node-id"
STORE = "KUMITE_CLUSTER__STORE"
_HAVE = "and the Ray cluster has none: see `ray status`, and start a node with `ray start`"


class RayEngine:
    """Starts processes on the nodes of a cluster. Processes without a place start on this machine.

    Args:
        cluster: the cluster.
        files: a file in each folder that a node must see to work in the run's folder.
        credentials: token and certificates for processes on other nodes.
        say: shows a sentence to the user.
        store: the league's object store, or "". With a store, a learner can continue on a node that
            does not see the run's folder.
    """

    def __init__(
        self,
        cluster: Cluster,
        files: Sequence[Path],
        credentials: Credentials,
        say: Callable[..., None],
        store: str = "",
    ) -> None:
        self.cluster, self.say, self.store = cluster, say, store
        self.folders = Folders.of(files)
        self.environment = {TOKEN: credentials.token} if credentials.token else {}
        if PATH in os.environ:
            self.environment[PATH] = absolute_users_path()
        names = (CA, CLIENT, Path(CLIENT).with_suffix(".key"))
        tls = [credentials.tls / name for name in names] if credentials.tls else []
        self.certificates = {file.name: file.read_bytes() for file in tls if file.exists()}
        self._keepers = dict[str, str]()
        # until when a node takes no process, by the node and by whether the process has steps
        self._closed = dict[tuple[str, bool], float]()
        self._is_local = False
        own = [node.name for node in cluster.nodes() if node.id == cluster.node]
        self._own = {NODE: own[0]} if own else {}

    def __call__(self, spec: ProcessSpec) -> Child:
        if spec.place is None:
            return LocalChild(spec, self._own)
        return RayChild(self, spec, spec.place)

    def check(self, specs: Sequence[ProcessSpec], host: str, begun: Collection[str] = ()) -> None:
        """Checks at the start of a league that the cluster's nodes can run its processes.

        Args:
            specs: the processes.
            host: the address that the matchmaker listens on.
            begun: names of processes that have checkpoints in the run's folder.

        Raises:
            ConfigError: no node suits a process, a node can't reach the matchmaker, or a learner
                could start on a node that does not see its checkpoints.
            Unavailable: a node has no Kumite, or does not answer.
        """
        nodes = self.cluster.nodes()
        self._is_local = is_loopback(host)
        far = [node for node in nodes if node.address != self.cluster.address]
        if far and self._is_local:
            raise ConfigError(
                f"node {far[0].name} ({far[0].address}) can't reach a matchmaker that listens on "
                f"{host}: add --set security.host=0.0.0.0, and security.tokens or security.tls"
            )
        blind = self.cluster.blind(nodes, self.folders)
        for spec in specs:
            if spec.place is None:
                continue
            suited = [node for node in nodes if node.suits(spec.place)]
            if not suited:
                raise ConfigError(f"{spec.name} needs a node with {_wants(spec.place)}, {_HAVE}")
            unseen = [node for node in suited if node in blind and not self.store]
            if unseen and spec.place.has_steps and (len(suited) > 1 or spec.name in begun):
                which = "nodes that see it" if spec.name in begun else "one node"
                raise ConfigError(
                    f"node {unseen[0].name} can't see the folder {_folder(self.folders)}, so "
                    f"{spec.name} would lose its steps if it started there: put the run on a disk "
                    "that all nodes mount (--run-dir), name an object store (cluster.store), or "
                    f"keep learners to {which} by a label (cluster.learners)"
                )
            if unseen and spec.place.has_steps:
                self._keepers[spec.name] = suited[0].name

    def selector(self, place: Place) -> dict[str, str]:
        """Returns Ray's label selector for the nodes that may run a process now."""
        closed = self._closed_to(place)
        others = {_NODE_ID: f"!in({','.join(sorted(closed))})"} if closed else {}
        return {**place.labels, **others}

    def avoid(self, nodes: Sequence[str], place: Place) -> None:
        """Starts no such process on these silent nodes for a while, if another node suits it."""
        taken = {*nodes, *self._closed_to(place)}
        if any(node.suits(place) and node.id not in taken for node in self.cluster.nodes()):
            self._close(nodes, place)

    def _closed_to(self, place: Place) -> set[str]:
        now = time.monotonic()
        return {
            node
            for (node, has_steps), until in tuple(self._closed.items())  # of other threads, too
            if has_steps == place.has_steps and until > now
        }

    def _close(self, nodes: Sequence[str], place: Place) -> None:
        keys = [(node, place.has_steps) for node in nodes]
        self._closed |= dict.fromkeys(keys, time.monotonic() + _CLOSED_SECONDS)

    def is_refused(self, spec: ProcessSpec, name: str, sight: Sight) -> bool:
        """Returns whether a node can't run a process now. The node then takes none for a while."""
        place, why = spec.place, ""
        assert place is not None
        if self._is_local and sight.address != self.cluster.address:
            why = "can't reach the matchmaker, which listens on this machine only"
        elif self._would_lose_steps(spec, name, sight):
            why = f"can't see the folder {_folder(self.folders)}, so it runs no learner"
        if why:
            self._close([sight.node], place)
            self.say(f"Node {name} {why}.", is_trouble=True)
        return bool(why)

    def _would_lose_steps(self, spec: ProcessSpec, name: str, sight: Sight) -> bool:
        assert spec.place is not None
        keeps = sight.sees or self.store or self._keepers.get(spec.name) == name
        return spec.place.has_steps and not keeps


def _folder(folders: Folders) -> str:
    return ", ".join(str(Path(file).parent) for file in folders.digests)


def _wants(place: Place) -> str:
    """Returns in words what a process needs from a node."""
    gpus = f" and {place.gpus:g} GPU" if place.gpus else ""
    label = "".join(f" labelled {name}={value}" for name, value in place.labels.items())
    return f"{place.cpus:g} CPU{gpus}{label}"


class RayChild:
    """Runs a process on a node of the cluster. A process with several ranks has an actor for each
    rank, and ends as a whole.
    """

    def __init__(self, engine: RayEngine, spec: ProcessSpec, place: Place) -> None:
        self.pid, self.node = 0, ""
        self._engine, self._spec, self._place = engine, spec, place
        self._ray = engine.cluster.ray
        self._nodes: list[str] = []
        self._selector = dict[str, str]()
        self._has_said = False
        self._code: int | None = None
        self._asked = ""
        self._wake = threading.Event()
        threading.Thread(target=self._run, name=spec.name, daemon=True).start()

    def poll(self) -> int | None:
        """Returns the exit code, or None while the process runs or waits for a node."""
        return self._code

    def terminate(self) -> None:
        """Asks the process to stop."""
        self._asked = self._asked or "terminate"
        self._wake.set()

    def kill(self) -> None:
        """Ends the process and all processes that it started."""
        self._asked = "kill"
        self._wake.set()

    def _run(self) -> None:
        errors, held = self._ray.exceptions, contextlib.ExitStack()
        code = -int(signal.SIGKILL)
        try:
            code = self._live(held)
        except LeagueError as error:
            self._append(f"{self._spec.name}: {error}\n")
            code = error.exit_code
        except Exception as error:  # Ray raises many classes while a node dies
            name = self.node or "that should run this process"
            self._append(f"the node {name} ended or gives no answer: {last_line(error)}\n")
            if isinstance(error, (errors.ActorUnavailableError, errors.GetTimeoutError)):
                self._engine.avoid(self._nodes, self._place)
        finally:
            self._code = code  # first, because the calls to a dead node may block
            held.close()

    def _live(self, held: contextlib.ExitStack) -> int:
        """Runs the process from its start to its end, and returns the exit code."""
        while not self._asked:
            held.pop_all().close()
            self._selector = self._engine.selector(self._place)
            actors = self._actors(held)
            if actors is None or (sights := self._seated(actors)) is None:
                continue
            self._nodes = [sight.node for sight in sights]
            names = {node.id: node.name for node in self._engine.cluster.nodes()}
            hosts = [names.get(sight.node, sight.address) for sight in sights]
            refused = [
                self._engine.is_refused(self._spec, host, sight)
                for host, sight in zip(hosts, sights, strict=True)
            ]
            if not any(refused):
                break
        else:
            return -int(signal.SIGTERM)
        starts = [
            actor.start.remote(*self._order(rank, host, sights))
            for rank, (actor, host) in enumerate(zip(actors, hosts, strict=True))
        ]
        self.pid = self._ray.get(starts, timeout=_START_SECONDS)[0]
        self.node = ", ".join(dict.fromkeys(hosts))
        return self._watch(actors)

    def _actors(self, held: contextlib.ExitStack) -> list[Any] | None:
        """Makes the actors. Returns None if `_until` returned False."""
        ray, place = self._ray, self._place
        actor, many = ray.remote(Actor), [{}]
        options: dict[str, Any] = {
            "num_cpus": place.cpus,
            "num_gpus": place.gpus,
            "max_restarts": 0,
        }
        if place.ranks == 1:
            options["label_selector"] = self._selector
        else:
            bundle = {"CPU": place.cpus, **({"GPU": place.gpus} if place.gpus else {})}
            group = ray.util.placement_group(
                [bundle] * place.ranks, bundle_label_selector=[self._selector] * place.ranks
            )
            held.callback(ray.util.remove_placement_group, group)
            if not self._until(lambda: group.wait(timeout_seconds=1.0)):
                return None
            strategy = ray.util.scheduling_strategies.PlacementGroupSchedulingStrategy
            many = [
                {"scheduling_strategy": strategy(group, placement_group_bundle_index=rank)}
                for rank in range(place.ranks)
            ]
        actors = [actor.options(**options, **own).remote() for own in many]
        for made in actors:
            held.callback(ray.kill, made)
        return actors

    def _seated(self, actors: Sequence[Any]) -> list[Sight] | None:
        """Waits until all actors run on nodes. Returns None if `_until` returned False."""
        asked = [actor.look.remote(self._engine.folders) for actor in actors]
        ready = self._until(
            lambda: len(self._ray.wait(asked, num_returns=len(asked), timeout=0.5)[1]) == 0
        )
        return self._ray.get(asked, timeout=_SILENT_SECONDS) if ready else None

    def _until(self, is_ready: Callable[[], bool]) -> bool:
        """Waits for nodes, and says so if it takes long. Returns False if the process was asked to
        stop, or if other nodes than before may run it now.
        """
        began = time.monotonic()
        while not is_ready():
            if self._asked or self._engine.selector(self._place) != self._selector:
                return False
            if not self._has_said and time.monotonic() - began > _PATIENCE_SECONDS:
                self._has_said = True
                self._engine.say(
                    f"{self._spec.name} waits for a node with {_wants(self._place)}: the nodes of "
                    "the Ray cluster are busy or gone.",
                    is_trouble=True,
                )
        return True

    def _order(
        self, rank: int, host: str, sights: Sequence[Sight]
    ) -> tuple[ProcessSpec, dict[str, str], dict[str, bytes], str]:
        """Returns the arguments of `Runner.start` for a rank."""
        engine, sight, leader = self._engine, sights[rank], sights[0]
        environment = {**engine.environment, NODE: host}
        if engine.store and not sight.sees:  # the process joins the league, and must name its store
            environment[STORE] = engine.store
        if len(sights) > 1:
            environment |= {"WORLD_SIZE": str(len(sights)), "RANK": str(rank), "LOCAL_RANK": "0"}
            environment[RENDEZVOUS] = f"tcp://{leader.address}:{leader.port}"
        command = self._spec.command if sight.sees else self._place.command
        certificates = {} if sight.sees else engine.certificates
        return replace(self._spec, command=command), environment, certificates, sight.address

    def _watch(self, actors: Sequence[Any]) -> int:
        """Hands over the log until all ranks have ended. Returns the exit code."""
        codes: list[int | None] = [None] * len(actors)
        read, sent = [0] * len(actors), ""
        while any(code is None for code in codes):
            if self._asked != sent:
                sent = self._asked
                for actor in actors:
                    actor.end.remote(sent == "kill")
            replies = self._polled(actors, read)
            for rank, (code, written, position) in enumerate(replies):
                codes[rank], read[rank] = code, position
                self._append(written)
            if any(codes) and sent != "kill":  # the other ranks can't continue alone
                self._asked = "kill"
            elif any(code is None for code in codes):
                self._wake.wait(_POLL_SECONDS)
                self._wake.clear()
        with contextlib.suppress(self._ray.exceptions.RayError):
            self._ray.get([actor.clean.remote() for actor in actors], timeout=_KILL_SECONDS)
        failed = [code for code in codes if code]
        first = [code for code in failed if code not in (RankGone.exit_code, -int(signal.SIGKILL))]
        return (first or failed or [0])[0] or 0

    def _polled(self, actors: Sequence[Any], read: Sequence[int]) -> list[Any]:
        """Returns the answers of all actors. Raises an error of Ray if an actor is dead or silent
        for too long.
        """
        patience = _KILL_SECONDS if self._asked == "kill" else _SILENT_SECONDS
        lost_at = 0.0
        while True:
            try:
                asked = [
                    actor.poll.remote(position)
                    for actor, position in zip(actors, read, strict=True)
                ]
                return self._ray.get(asked, timeout=patience)
            except self._ray.exceptions.ActorUnavailableError:
                lost_at = lost_at or time.monotonic()
                if time.monotonic() - lost_at > _LOST_SECONDS:
                    raise
                time.sleep(_POLL_SECONDS)

    def _append(self, written: str | bytes) -> None:
        content = written.encode() if isinstance(written, str) else written
        if content:
            with suppress_full(), self._spec.log.open("ab", buffering=0) as log:
                log.write(content)
