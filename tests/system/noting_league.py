"""bin/start-league, whose learner and evaluator note each result that the matchmaker acknowledged.

A reply is noted in `RUN/acknowledged` before its process reads it: a kill can't take that back.
"""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from league.cluster import main as cluster
from league.cluster.topology import plan
from league.rpc.client import MatchmakerClient

NOTED = ("learner", "evaluator")


def noting_plan(*arguments: Any, **named: Any) -> Any:
    """The league's processes, of which this file runs those that report results."""
    topology = plan(*arguments, **named)
    specs = [
        replace(spec, command=(spec.command[0], __file__, *spec.command[2:]))
        if spec.command[2] in NOTED
        else spec
        for spec in topology.specs
    ]
    return replace(topology, specs=tuple(specs))


def note(words: Sequence[str]) -> None:
    """Notes the replies to this process, whose arguments `words` are."""
    report = MatchmakerClient.report_results
    notes = Path(words[words.index("--run-dir") + 1]) / "acknowledged"
    file = os.open(notes, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def noted(*arguments: Any, **named: Any) -> Any:
        verdicts, position = report(*arguments, **named)
        lines = [f"{one.match_id} {one.log_position}\n" for one in verdicts if one.accepted]
        os.write(file, "".join(lines).encode())
        return verdicts, position

    MatchmakerClient.report_results = noted  # type: ignore[method-assign]


if __name__ == "__main__":
    module = sys.argv[1]
    if module in NOTED:
        note(sys.argv)
        del sys.argv[1]
        sys.path[0] = os.getcwd()
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    else:
        cluster.plan = noting_plan
        sys.exit(cluster.main(sys.argv[1:]))
