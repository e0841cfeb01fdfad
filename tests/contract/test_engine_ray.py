"""The engine of a Ray cluster, on two nodes in a namespace of the tests' own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from engine_contract import EngineContract
from ray_nodes import RayNodes, can_enter, is_inside, run_inside

from league.cluster.engine import Engine
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
def shared(nodes: RayNodes, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    engine = ray_engine(tmp_path_factory.mktemp("run"))
    with engine.cluster:  # Ray ends a process whose node is killed
        yield engine


@inside
class TestRay(EngineContract):
    engine_name = "ray"

    @pytest.fixture
    def engine(self, shared: Engine) -> Engine:
        return shared
