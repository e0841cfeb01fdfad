"""One learner in several processes, its ranks: how a rank meets the others, and how it is run.

``python -m learner.distributed.team MEETING RANK COUNT FLAG…`` is one rank;
`learner.distributed.launch` starts them all.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from league.errors import LeagueError, RankGone

if TYPE_CHECKING:
    import torch

PATIENCE = timedelta(minutes=30)
"""How long a rank waits for another: longer than any of them waits for the matchmaker."""


@dataclass(frozen=True, kw_only=True)
class Team:
    """A rank's place among the others; alone by default."""

    rank: int = 0
    count: int = 1
    meeting: Path = Path()
    """Folder that all of them know, made for this start."""

    def join(self, device: torch.device) -> None:
        """Makes `torch.distributed`'s default group: numbers on GPUs go by NCCL, all others by
        gloo.
        """
        if self.count == 1:
            return
        import torch

        loopback = "lo" if sys.platform == "linux" else "lo0"
        # all ranks are on this machine
        for variable in ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"):
            os.environ.setdefault(variable, loopback)
        if device.type == "cuda":
            torch.cuda.set_device(device)
        torch.distributed.init_process_group(
            "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo",
            init_method=f"file://{self.meeting / 'meet'}",
            rank=self.rank,
            world_size=self.count,
            timeout=PATIENCE,
        )

    def leave(self) -> None:
        """Ends the group, when all are done."""
        if self.count > 1:
            import torch

            torch.distributed.destroy_process_group()


@dataclass(frozen=True, kw_only=True)
class LastWord:
    """What a rank that failed says to who started it."""

    sentence: str
    exit_code: int
    is_gone: bool
    """Whether it failed only because another rank was gone."""

    def write(self, meeting: Path, rank: int) -> None:
        (meeting / f"rank{rank}.json").write_text(json.dumps(vars(self)), encoding="utf-8")

    @classmethod
    def read(cls, meeting: Path, rank: int) -> LastWord | None:
        """None when it said nothing."""
        try:
            return cls(**json.loads((meeting / f"rank{rank}.json").read_text(encoding="utf-8")))
        except (OSError, ValueError):
            return None

    @classmethod
    def of(cls, error: LeagueError) -> LastWord:
        return cls(
            sentence=str(error), exit_code=error.exit_code, is_gone=isinstance(error, RankGone)
        )


def end_at_once(code: int) -> NoReturn:
    """Ends a process whose work is on disk.

    The interpreter's own end frees what the kernel frees anyhow, and takes a learner seconds on a
    busy machine, of the few that a stop has.
    """
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def main(arguments: Sequence[str]) -> int:
    """Runs one rank. What it fails by is told to who started it, who knows which rank failed
    first.
    """
    from learner.main import attempt, parser, run

    meeting, rank, count, *words = arguments
    team = Team(rank=int(rank), count=int(count), meeting=Path(meeting))
    logging.basicConfig(
        level=logging.WARNING if team.rank else logging.INFO,  # the others would say the same again
        format=f"%(asctime)s %(name)s{f' (rank {team.rank})' if team.rank else ''}: %(message)s",
        stream=sys.stderr,
    )
    error = attempt(lambda: run(parser().parse_args(words), team))
    if error is None:
        return 0
    LastWord.of(error).write(team.meeting, team.rank)
    return error.exit_code


if __name__ == "__main__":
    end_at_once(main(sys.argv[1:]))
