"""Facts of the machine that a measurement belongs to, and what a process takes of it."""

from __future__ import annotations

import contextlib
import os
import platform
import resource
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any

import torch

from league import __version__

METER_MILLISECONDS = 200


def cores() -> int:
    """CPU cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def facts(device: torch.device) -> dict[str, Any]:
    """What figures depend on beside the settings."""
    told: dict[str, Any] = {
        "system": platform.platform(),
        "processor": _processor(),
        "cores": cores(),
        "memory_bytes": _memory(),
        "load_average": list(os.getloadavg()) if hasattr(os, "getloadavg") else None,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "kumite": __version__,
        "device": str(device),
        "gpu": None,
    }
    if device.type == "cuda":
        told["gpu"] = torch.cuda.get_device_name(device)
        told["gpu_memory_bytes"] = torch.cuda.get_device_properties(device).total_memory
    return told


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _memory() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return None


def memory_use(device: torch.device) -> dict[str, int]:
    """Most bytes that this process held so far: in main memory, and on the GPU."""
    unit = 1 if sys.platform == "darwin" else 1024  # of ru_maxrss
    use = {"peak_resident_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit}
    if device.type == "cuda":
        use["peak_gpu_allocated_bytes"] = torch.cuda.max_memory_allocated(device)
        use["peak_gpu_reserved_bytes"] = torch.cuda.max_memory_reserved(device)
    return use


def offer_to_the_killer() -> None:
    """Should memory run out, Linux ends this process before anybody else's."""
    with contextlib.suppress(OSError):  # not Linux
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")


class GpuMeter:
    """Share of the time in which the GPU computed something, as nvidia-smi tells it; entered for
    a burst.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._process: subprocess.Popen[str] | None = None
        self.busy_share: float | None = None

    def __enter__(self) -> GpuMeter:
        if self._device.type != "cuda":
            return self
        uuid = torch.cuda.get_device_properties(self._device).uuid
        query = ["--query-gpu=utilization.gpu", "--format=csv,noheader,nounits", f"--id=GPU-{uuid}"]
        try:
            self._process = subprocess.Popen(
                ["nvidia-smi", *query, f"--loop-ms={METER_MILLISECONDS}"],
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
        except OSError:  # no driver's tools here: the share stays unknown
            self._process = None
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process is None:
            return
        self._process.terminate()
        text, _ = self._process.communicate()
        shares = [float(line) / 100 for line in text.splitlines() if line.strip().isdigit()]
        if shares:
            self.busy_share = sum(shares) / len(shares)
