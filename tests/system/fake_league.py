"""A supervisor over made-up workers that serve nothing: ``python fake_league.py RUN_DIR LEARNER``.

LEARNER names how the learner behaves: `obeys`, `finishes`, `ignores` (SIGTERM), `hangs` (stopped by
the test; the supervisor has its own time limits), `saves` (finishes, and the evaluator serves: it
has matches of its budget left until there is a file RUN_DIR/spent, and then takes 3 s to stop),
`stays` (finishes, and the run stays open).
Each worker writes its name into RUN_DIR/stopped when it obeys.
"""

from __future__ import annotations

import sys
from pathlib import Path

from league.cluster.engine import ProcessSpec
from league.cluster.supervisor import Supervisor
from league.cluster.topology import EVALUATOR, LEARNER, MATCHMAKER, Topology
from league.runs.folder import Request, open_run
from league.views.terminal.display import LineDisplay

OBEYS = """
import signal, sys, time
def stop(*_):
    time.sleep({pause})
    open({trace!r}, "a").write({name!r} + "\\n")
    sys.exit(0)
signal.signal(15, stop)
print("here", flush=True)
time.sleep(60)
"""
IGNORES = """
import signal, time  # {trace}
signal.signal(15, signal.SIG_IGN)
print("here", flush=True)
time.sleep(60)
"""
SERVES = """
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
import grpc
from league.v1 import evaluator_pb2, evaluator_pb2_grpc
class Servicer(evaluator_pb2_grpc.EvaluatorServiceServicer):
    def GetEvaluatorStatus(self, request, context):
        left = 0 if Path({trace!r}).with_name("spent").exists() else 64
        print("asked", flush=True)
        return evaluator_pb2.GetEvaluatorStatusResponse(drained=True, unspent=left)
server = grpc.server(ThreadPoolExecutor(1))
evaluator_pb2_grpc.add_EvaluatorServiceServicer_to_server(Servicer(), server)
server.add_insecure_port({address!r})
server.start()
"""
FINISHES = "import time; time.sleep(0.3)"
LEARNERS = {
    "obeys": OBEYS,
    "finishes": FINISHES,
    "saves": FINISHES,
    "stays": FINISHES,
    "ignores": IGNORES,
    "hangs": OBEYS,
}


def main(run_dir: Path, learner: str) -> int:
    evaluator = SERVES + OBEYS if learner == "saves" else OBEYS
    codes = {MATCHMAKER: OBEYS, LEARNER: LEARNERS[learner], EVALUATOR: evaluator}
    pauses = {MATCHMAKER: 0.0, LEARNER: 0.3, EVALUATOR: 3.0 if learner == "saves" else 0.3}
    waits = {} if learner == "hangs" else {"stop_worker_seconds": 2.0}
    if learner in ("finishes", "stays"):
        waits["drain_seconds"] = 0.3
    with open_run(Request(preset="smoke", run_dir=run_dir)) as folder:
        specs = tuple(
            ProcessSpec(
                name=name,
                command=(
                    sys.executable,
                    "-c",
                    code.format(
                        trace=str(run_dir / "stopped"),
                        name=name,
                        pause=pauses[name],  # so that the order of being asked shows
                        address=f"127.0.0.1:{folder.port(EVALUATOR)}",
                    ),
                ),
                log=folder.log(name),
            )
            for name, code in codes.items()
        )
        nobody = {name: f"127.0.0.1:{folder.port(name)}" for name in (MATCHMAKER, EVALUATOR)}
        topology = Topology(specs=specs, addresses=nobody)
        display = LineDisplay(sys.stdout, seconds=0.2)
        supervisor = Supervisor(folder, topology, display, "no device", **waits)

        def show_end() -> LineDisplay:
            print("the end", flush=True)
            return display

        return supervisor.run(show_end if learner == "stays" else None)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2]))
