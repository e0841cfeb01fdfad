"""The engine of a Ray cluster, on two nodes in a namespace of the tests' own."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from engine_contract import SLEEPS, EngineContract, spec_of
from ray_nodes import RayNodes, can_enter, is_inside, run_inside
from waiting import wait_for

from league.cluster.engine import Engine, Place, ProcessSpec
from league.errors import ConfigError
from league.security.credentials import Credentials

if TYPE_CHECKING:
    from league.cluster.remote import RayEngine

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]
inside = pytest.mark.skipif(not is_inside(), reason="runs in a namespace")


@pytest.mark.skipif(is_inside() or not can_enter(), reason="needs namespaces of its own")
def test_in_a_namespace() -> None:
    run_inside(__file__, "-m", "long")


def ray_engine(folder: Path) -> RayEngine:
    from league.cluster.ray import Cluster
    from league.cluster.remote import RayEngine

    (folder / "run.json").touch()
    return RayEngine(Cluster(), [folder / "run.json"], Credentials(), print)


@pytest.fixture(scope="module")
def nodes() -> Iterator[RayNodes]:
    with RayNodes() as nodes, pytest.MonkeyPatch.context() as patch:
        nodes.start("head", cpus=4)
        nodes.wait()
        for name, value in nodes.environment.items():
            patch.setenv(name, value)
        yield nodes


@pytest.fixture(scope="module")
def shared(nodes: RayNodes, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RayEngine]:
    engine = ray_engine(tmp_path_factory.mktemp("run"))
    with engine.cluster:  # Ray ends a process whose node is killed
        yield engine


@inside
class TestRay(EngineContract):
    engine_name = "ray"

    @pytest.fixture
    def engine(self, shared: Engine) -> Engine:
        return shared


def placed(folder: Path, node: str, *, has_steps: bool = False) -> ProcessSpec:
    """A process that only one node suits."""
    spec = spec_of(SLEEPS, folder)
    place = Place(command=spec.command, labels={"name": node}, has_steps=has_steps)
    return replace(spec, place=place)


@inside
def test_a_process_starts_again_on_its_only_node_after_the_node_was_silent(
    nodes: RayNodes, shared: RayEngine, tmp_path: Path
) -> None:
    nodes.start("far")
    nodes.wait()
    spec = placed(tmp_path, "far")
    first = shared(spec)
    wait_for(lambda: first.pid)
    nodes.send("far", signal.SIGSTOP)
    wait_for(lambda: first.poll() is not None)
    again = shared(spec)
    nodes.send("far", signal.SIGCONT)
    wait_for(lambda: again.pid)
    again.kill()
    wait_for(lambda: again.poll() is not None)
    nodes.kill("far")


@inside
def test_ray_prints_its_errors_but_nothing_about_a_dead_node(
    nodes: RayNodes, shared: RayEngine, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    nodes.start("far")
    nodes.wait()
    child = shared(placed(tmp_path, "far"))
    wait_for(lambda: child.pid)
    before = len(shared.cluster.nodes())
    nodes.send("far", signal.SIGKILL, b"/raylet")  # the node's other processes report it
    wait_for(lambda: not nodes.send("far", 0))
    nodes.kill("far")
    wait_for(lambda: child.poll() is not None and len(shared.cluster.nodes()) < before)
    printed = list[str]()

    def says(text: str) -> bool:
        printed.extend(capfd.readouterr())
        return text in "".join(printed)

    ray = shared.cluster.ray
    ray._private.utils.publish_error_to_driver(
        "test", "an error", gcs_client=ray._private.worker.global_worker.gcs_client
    )
    wait_for(lambda: says("an error"))
    assert not says("state-dump")
    assert not says("marked dead")


@inside
def test_a_node_that_sees_the_run_s_folder_again_runs_learners_again(
    shared: RayEngine, tmp_path: Path
) -> None:
    from league.cluster.remote import RayEngine

    seen, told = tmp_path / "run.json", list[str]()
    seen.write_text("here")
    engine = RayEngine(shared.cluster, [seen], Credentials(), lambda text, **_: told.append(text))
    seen.unlink()
    child = engine(placed(tmp_path, "head", has_steps=True))
    wait_for(lambda: any(str(tmp_path) in text for text in told))
    assert not child.pid
    seen.write_text("here")
    wait_for(lambda: child.pid)
    child.kill()
    wait_for(lambda: child.poll() is not None)


@inside
def test_a_learner_that_has_steps_starts_on_no_node_that_does_not_see_them(
    shared: RayEngine, tmp_path: Path
) -> None:
    from league.cluster.remote import RayEngine

    unseen, spec = tmp_path / "run.json", placed(tmp_path, "head", has_steps=True)
    unseen.touch()
    engine = RayEngine(shared.cluster, [unseen], Credentials(), print)
    unseen.unlink()
    engine.check([spec], "127.0.0.1")
    with pytest.raises(ConfigError, match=re.escape(str(tmp_path))):
        engine.check([spec], "127.0.0.1", {spec.name})
    with_store = RayEngine(shared.cluster, [], Credentials(), print, "file:///store")
    with_store.check([spec], "127.0.0.1", {spec.name})


@inside
def test_a_call_sees_the_caller_s_modules_and_no_gpu(
    shared: RayEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUMITE_PATH", "/shared/games:games")
    names = ["KUMITE_PATH", "CUDA_VISIBLE_DEVICES"]
    found = f"/shared/games:{Path('games').absolute()}"  # the node works in another folder
    assert dict(shared.cluster.map(os.getenv, names)) == {0: found, 1: ""}


@inside
def test_a_node_keeps_no_keys_when_a_process_has_ended(shared: RayEngine, tmp_path: Path) -> None:
    from league.cluster.remote import RayEngine

    unseen, certs = tmp_path / "run.json", tmp_path / "certs"
    unseen.touch()
    certs.mkdir()
    (certs / "client.key").write_text("secret")
    engine = RayEngine(shared.cluster, [unseen], Credentials(tls=certs), print)
    unseen.unlink()
    child = engine(spec_of("import sys; print(sys.argv[-1], flush=True);" + SLEEPS, tmp_path))
    words = wait_for(lambda: "here" in (said := log_of(tmp_path).split()) and said)
    folder = Path(words[-2])
    assert (folder / "client.key").read_text() == "secret"
    child.kill()
    wait_for(lambda: child.poll() is not None)
    assert not folder.parent.exists()


def log_of(folder: Path) -> str:
    log = folder / "worker.log"
    return log.read_text() if log.exists() else ""
