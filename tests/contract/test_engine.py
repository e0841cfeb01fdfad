"""The engine of a single machine."""

from __future__ import annotations

import pytest
from engine_contract import EngineContract

from league.cluster.engine import Engine, LocalChild


class TestLocal(EngineContract):
    engine_name = "local"

    @pytest.fixture
    def engine(self) -> Engine:
        return LocalChild
