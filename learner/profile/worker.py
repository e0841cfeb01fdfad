"""One configuration measured in a process of its own: what it takes is its own, and it may run out
of memory.

A fork server loads torch once; every measurement starts from there as a fresh process.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from league.errors import LeagueError
from league.players import Player
from league.settings.base import Sections, build, section_classes

LONGEST = 160
"""Characters that are told of another library's error."""
PRELOADED = ["learner.profile.pipeline", "torch.utils.tensorboard", "league.games.brawl.game"]


@dataclass(frozen=True, kw_only=True)
class Order:
    """What one process measures."""

    sections: Sections
    """All settings, as `league.settings.base.resolve` gives them."""
    device: str
    mix: Mapping[str, float]
    snapshots: tuple[Player, ...]
    blobs: Path
    seconds: float
    """Of each burst."""
    bursts: int
    trace: Path | None = None
    """Where a trace of two more updates goes."""


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What came of an order: bursts as plain values, or why there are none."""

    bursts: list[dict[str, Any]] = field(default_factory=list)
    memory: dict[str, int] = field(default_factory=dict)
    gpu_busy_share: float | None = None
    trace_gpu_busy_share: float | None = None
    failure: str = ""
    error: LeagueError | None = None
    """The failure as the league's own error, where it is one."""
    out_of_memory: bool = False
    """Whether a smaller configuration may fit where this one failed."""
    warning: str = ""
    """What does not spoil the figures and should be known."""


def start_server() -> None:
    """Lets the fork server load torch while something else is done; twice is fine."""
    multiprocessing.get_context("forkserver").set_forkserver_preload(PRELOADED)
    forkserver.ensure_running()


def measure(order: Order) -> Measured:
    """Runs `order` in a fresh process; a failure, the process's death too, is told in the
    result.
    """
    start_server()
    context = multiprocessing.get_context("forkserver")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_answer, args=(order, sender), name="profile")
    process.start()
    sender.close()
    try:
        answer: Measured = receiver.recv()
    except EOFError:
        process.join()
        return Measured(
            failure=_death(process.exitcode), out_of_memory=process.exitcode == -signal.SIGKILL
        )
    except BaseException:
        process.kill()
        raise
    finally:
        process.join()
        receiver.close()
    return answer


def _death(code: int | None) -> str:
    if code is not None and code == -signal.SIGKILL:
        return "its process was killed, most likely because memory ran out"
    return f"its process ended with status {code}"


def _answer(order: Order, sender: Connection) -> None:
    """The body of the process: sends a `Measured`."""
    from learner.train.memory import is_out_of_memory

    try:
        answer = _run(order)
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        size, _, _ = str(error).partition(" for an array")  # numpy goes on with shape and type
        reason = size.splitlines()[0][:LONGEST] if size else "it ran out of it"
        answer = Measured(
            failure=f"too little memory on {order.device}: {reason}", out_of_memory=True
        )
    except LeagueError as error:
        answer = Measured(failure=str(error), error=error)
    sender.send(answer)
    sender.close()


def session_settings(sections: Sections) -> Any:
    """The sections that a learner reads, as its own type."""
    from learner.train.assembly import SessionSettings

    classes, names = section_classes(), [part.name for part in fields(SessionSettings)]
    values: dict[str, Any] = {name: build(classes[name], name, sections[name]) for name in names}
    return SessionSettings(**values)


def _run(order: Order) -> Measured:
    import torch

    from league.agent.device import keep_memory
    from learner.profile.machine import GpuMeter, memory_use, offer_to_the_killer
    from learner.profile.pipeline import Pipeline
    from learner.profile.trace import record_trace

    offer_to_the_killer()
    settings, device = session_settings(order.sections), torch.device(order.device)
    os.environ.setdefault("OMP_NUM_THREADS", str(settings.learner.threads))
    torch.set_num_threads(settings.learner.threads)
    keep_memory()
    with tempfile.TemporaryDirectory(prefix="kumite-profile-") as folder:
        in_a_row = order.sections["matchmaker"]["matches_per_draw"]
        pipeline = Pipeline(
            settings,
            order.mix,
            order.snapshots,
            order.blobs,
            Path(folder),
            device,
            matches_per_draw=in_a_row,
        )
        try:
            pipeline.warm_up(order.seconds)
            with GpuMeter(device) as meter:
                bursts = [pipeline.burst(order.seconds) for _ in range(order.bursts)]
            memory = memory_use(device)
            busy = (
                None if order.trace is None else record_trace(pipeline, order.seconds, order.trace)
            )
        finally:
            pipeline.close()
    return Measured(
        bursts=[asdict(burst) for burst in bursts],
        memory=memory,
        gpu_busy_share=meter.busy_share,
        trace_gpu_busy_share=busy,
        warning=f"a match failed: {pipeline.source.failed}" if pipeline.source.failed else "",
    )
