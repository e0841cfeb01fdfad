"""Chooses a learner's devices by flags: one device, or several with a process for each."""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from league.errors import ConfigError, DeviceError

_GPU_DEVICES = ("nvidia*", "nvhost*", "kfd", "dxg")
"""Device files in /dev of NVIDIA's, AMD's and Windows' drivers."""


def cores() -> int:
    """Returns how many cores this process may use, by its affinity and its container's quota."""
    count = os.cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        count = len(os.sched_getaffinity(0))
    return max(1, int(min(count, cpu_quota())))


def cores_in_words() -> str:
    """Returns the number of `cores` with its noun."""
    count = cores()
    return f"{count} core{'s' if count != 1 else ''}"


def cpu_quota(root: Path = Path("/")) -> float:
    """Returns how many cores Linux's control groups (versions 2 and 1) allow this process.

    Without a limit it is infinite.
    """
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return math.inf
    found = [math.inf]
    for controllers, own in (line.split(":", 2)[1:] for line in lines):
        if controllers and "cpu" not in controllers.split(","):
            continue
        top = root / "sys/fs/cgroup" / ("cpu" if controllers else "")
        files = ("cpu.cfs_quota_us", "cpu.cfs_period_us") if controllers else ("cpu.max",)
        # In a container, `own` may be the group's path on the host, while the container sees the
        # group's files in the top folder.
        for place in (Path(own), *Path(own).parents):
            with contextlib.suppress(OSError, ValueError):
                texts = [(top / place.relative_to("/") / name).read_text() for name in files]
                quota, period = map(float, " ".join(texts).split())
                found.append(quota / period if quota > 0 else math.inf)
    return min(found)


@dataclass(frozen=True, kw_only=True)
class DeviceFlags:
    """Keeps the checked flags `--gpu N[,N…]`, `--cpu` and `--ranks N`."""

    gpus: tuple[int, ...] = ()
    cpu: bool = False
    cpu_ranks: int = 0
    """The value of `--ranks`, 0 without the flag."""

    @property
    def ranks(self) -> int:
        """How many processes learn together."""
        return max(1, len(self.gpus), self.cpu_ranks)

    def completed(self, cpu_ranks: int, is_possible: Callable[[int], bool]) -> DeviceFlags:
        """Adds ranks (processes that learn together) on the CPU if `--cpu` is given or there is no
        GPU.

        Nothing changes if `--gpu` or `--ranks` is given.

        Args:
            cpu_ranks: the wanted number of ranks. The number of cores limits it.
            is_possible: says whether a number of ranks works. If not, the next smaller number is
                tried.

        Returns:
            The flags with their ranks.
        """
        wanted = next((n for n in range(min(cpu_ranks, cores()), 1, -1) if is_possible(n)), 1)
        if wanted == 1 or self.gpus or self.cpu_ranks or not (self.cpu or has_no_gpu()):
            return self
        return DeviceFlags(cpu=True, cpu_ranks=wanted)

    def first(self) -> DeviceFlags:
        """Returns the flags for the first device alone."""
        return DeviceFlags(gpus=self.gpus[:1], cpu=self.cpu)

    def cpu_sentence(self) -> str:
        """Returns the sentence about the device that a start with `--cpu` shows."""
        together = f", in {self.ranks} processes that learn together" if self.ranks > 1 else ""
        return f"Computing on the CPU (--cpu), {cores_in_words()}{together}."

    def arguments(self) -> tuple[str, ...]:
        """Returns the flags for another process's command line."""
        words: list[str] = []
        if self.gpus:
            words += ["--gpu", ",".join(map(str, self.gpus))]
        if self.cpu:
            words += ["--cpu"]
        if self.cpu_ranks:
            words += ["--ranks", str(self.cpu_ranks)]
        return tuple(words)

    @classmethod
    def of(cls, gpu: str | None, cpu: bool, ranks: int | None) -> DeviceFlags:
        """Checks the values of the flags.

        Args:
            gpu: the value of ``--gpu``: numbers of GPUs with commas.
            cpu: whether ``--cpu`` was given.
            ranks: the value of ``--ranks``.

        Raises:
            ConfigError: the values can't be used, or contradict each other.
        """
        numbers = [] if gpu is None else gpu.split(",")
        if not all(number.isdigit() for number in numbers):
            raise ConfigError(f"--gpu {gpu!r} is no list of GPU numbers, as 0 or 0,1")
        if len(set(numbers)) < len(numbers):
            raise ConfigError(f"--gpu {gpu} names a GPU twice: each gets one process")
        if numbers and cpu:
            raise ConfigError(f"--gpu {gpu} and --cpu exclude each other: give one of them")
        if ranks is not None and ranks < 1:
            raise ConfigError(f"--ranks {ranks} is no number of processes, as 2")
        if (ranks or 1) > 1 and not cpu:
            raise ConfigError(f"--ranks {ranks} goes with --cpu; on GPUs name each, as --gpu 0,1")
        return cls(gpus=tuple(map(int, numbers)), cpu=cpu, cpu_ranks=ranks or 0)


GPU_HELP = "Train on the GPU with this number, or on several GPUs together, such as 0,1."
CPU_HELP = "Train on the CPU even if there is a GPU."
RANKS_HELP = "With --cpu: learn in N processes together (default: 2 where it has them)."


def add_device_flags(parser: argparse.ArgumentParser) -> None:
    """Adds the three flags to a parser."""
    parser.add_argument("--gpu", metavar="N[,N]", help=GPU_HELP)
    parser.add_argument("--cpu", action="store_true", help=CPU_HELP)
    parser.add_argument("--ranks", type=int, metavar="N", help=RANKS_HELP)


def cpu_sentence() -> str:
    """Returns the sentence about the device that a start without a GPU shows."""
    return f"Computing on the CPU (no GPU found), {cores_in_words()}."


def missing_gpu(gpu: int, names: str = "") -> DeviceError:
    """Returns the error for a GPU that does not exist. `names` lists the GPUs that exist."""
    there_is = f"there is only {names}" if names else "this machine has none that torch can use"
    return DeviceError(
        f"there is no GPU {gpu}: {there_is}; give another number or --cpu (docs/gpu.md says what a "
        "GPU brings)"
    )


def has_no_gpu() -> bool:
    """Returns whether this machine has no GPU that torch could use, without loading torch."""
    return sys.platform == "linux" and not any(
        any(Path("/dev").glob(pattern)) for pattern in _GPU_DEVICES
    )
