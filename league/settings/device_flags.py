"""Flags that choose a learner's devices: one, or one process for each of several."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass

from league.errors import ConfigError

_GPU_DEVICES = ("/dev/nvidia0", "/dev/nvidiactl", "/dev/kfd", "/dev/dxg")
"""Of NVIDIA's, AMD's and Windows' drivers."""


@dataclass(frozen=True, kw_only=True)
class DeviceFlags:
    """`--gpu N[,N…]`, `--cpu` and `--ranks N`, checked."""

    gpus: tuple[int, ...] = ()
    cpu: bool = False
    cpu_ranks: int = 0
    """0: not given."""

    @property
    def ranks(self) -> int:
        """Processes that learn together."""
        return max(1, len(self.gpus), self.cpu_ranks)

    def completed(self, cpu_ranks: int, is_possible: Callable[[int], bool]) -> DeviceFlags:
        """Adds ranks on the CPU where no flag names another device and there is no GPU.

        It adds `cpu_ranks`, at most one a core, and fewer where `is_possible` refuses the number.
        """
        cores = (
            len(os.sched_getaffinity(0))
            if hasattr(os, "sched_getaffinity")
            else os.cpu_count() or 1
        )
        wanted = next((n for n in range(min(cpu_ranks, cores), 1, -1) if is_possible(n)), 1)
        if wanted == 1 or self.gpus or self.cpu_ranks or not (self.cpu or has_no_gpu()):
            return self
        return DeviceFlags(cpu=True, cpu_ranks=wanted)

    def first(self) -> DeviceFlags:
        """The first of the devices alone."""
        return DeviceFlags(gpus=self.gpus[:1], cpu=self.cpu)

    def arguments(self) -> tuple[str, ...]:
        """The flags again, for another process's command line."""
        words: list[str] = []
        if self.gpus:
            words += ["--gpu", ",".join(map(str, self.gpus))]
        if self.cpu:
            words += ["--cpu"]
        if self.cpu_ranks:
            words += ["--ranks", str(self.cpu_ranks)]
        return tuple(words)

    @classmethod
    def of(cls, options: argparse.Namespace) -> DeviceFlags:
        """Of parsed flags; raises `ConfigError` for `--ranks` without `--cpu`."""
        if (options.ranks or 1) > 1 and not options.cpu:
            raise ConfigError(
                f"--ranks {options.ranks} goes with --cpu; on GPUs name each, as --gpu 0,1"
            )
        return cls(gpus=options.gpu, cpu=options.cpu, cpu_ranks=options.ranks or 0)


def add_device_flags(parser: argparse.ArgumentParser) -> None:
    """Adds the three flags."""
    device = parser.add_mutually_exclusive_group()
    device.add_argument(
        "--gpu",
        type=_numbers,
        default=(),
        metavar="N[,N]",
        help="train on the GPU with this number, or on several together, as 0,1",
    )
    device.add_argument(
        "--cpu", action="store_true", help="train on the CPU even if there is a GPU"
    )
    parser.add_argument(
        "--ranks",
        type=_count,
        metavar="N",
        help="with --cpu: learn in N processes together (default: 2 where it has them)",
    )


def has_no_gpu() -> bool:
    """Whether this machine has no GPU that torch could use, without loading torch."""
    return sys.platform == "linux" and not any(map(os.path.exists, _GPU_DEVICES))


def _numbers(text: str) -> tuple[int, ...]:
    words = text.split(",")
    if not all(word.isdigit() for word in words):
        raise argparse.ArgumentTypeError(f"{text!r} is no list of GPU numbers, as 0 or 0,1")
    numbers = tuple(map(int, words))
    if len(set(numbers)) < len(numbers):
        raise argparse.ArgumentTypeError(f"{text} names a GPU twice: each gets one process")
    return numbers


def _count(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of processes, as 2")
    return int(text)
