"""Models of other people that play as rivals."""

from __future__ import annotations

from pathlib import Path

import gymnasium
import numpy as np
import onnx


class Original(gymnasium.Env):
    """What a model for the tournament learns in: it sees the original's 64 numbers."""

    action_space = gymnasium.spaces.Box(0.0, 1.0, (10,), np.float32)

    def __init__(self, numbers: int = 64) -> None:
        self.observation_space = gymnasium.spaces.Box(-100.0, 100.0, (numbers,), np.float32)

    def reset(self, **_):
        return self.observation_space.sample(), {}


def onnx_model(file: Path, numbers: int = 64) -> None:
    """A graph whose keys are those of the first ten numbers above 0.5."""
    helper, floats = onnx.helper, onnx.TensorProto.FLOAT
    ends = [
        helper.make_tensor(name, onnx.TensorProto.INT64, [1], [value])
        for name, value in (("from", 0), ("to", 10), ("axis", 1))
    ]
    graph = helper.make_graph(
        [helper.make_node("Slice", ["seen", "from", "to", "axis"], ["keys"])],
        "keys",
        [helper.make_tensor_value_info("seen", floats, [1, numbers])],
        [helper.make_tensor_value_info("keys", floats, [1, 10])],
        ends,
    )
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), file
    )
