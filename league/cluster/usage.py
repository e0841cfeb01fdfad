"""Measures how much disk space and GPU time and memory a run uses."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from rich.filesize import decimal

from league.settings.device_flags import DeviceFlags

_SECONDS = 10.0  # between two measurements
_LEAST_SHARE = 0.02  # of the steps: a growth over fewer steps predicts nothing
_SMI = ("nvidia-smi", "--format=csv,noheader,nounits")
_QUERY = "--query-gpu=utilization.gpu,memory.used,memory.total"


class Usage:
    """Keeps the newest measurement as `words`, which is "" before the first measurement.

    Args:
        folder: the run's folder.
        flags: the devices of the run's learners.
    """

    def __init__(self, folder: Path, flags: DeviceFlags) -> None:
        self._folder, self._flags = folder, flags
        self._sizes: list[tuple[float, int]] = []
        self.words = ""

    def start(self, share: Callable[[], float]) -> None:
        """Measures in a thread from now on. `share` returns the share of steps that are done."""

        def run() -> None:
            while True:
                self.measure(share())
                time.sleep(_SECONDS)

        threading.Thread(target=run, name="usage", daemon=True).start()

    def measure(self, share: float) -> None:
        """Measures once. `share` is the share of steps that are done, or 0 if it is unknown."""
        size = 0
        for parent, _, names in os.walk(self._folder):
            for name in names:
                with suppress(OSError):  # it has just been removed
                    size += os.lstat(os.path.join(parent, name)).st_size
        if share > 0.0:
            self._sizes.append((share, size))
        parts = [f"disk {decimal(size)}{self._foreseen()}", *self._gpus()]
        self.words = " · ".join(parts)

    def _foreseen(self) -> str:
        """Predicts the folder's size at the end of the run, and returns it in words. Returns "" if
        the run has just begun or is done.

        The folder is assumed to keep growing as fast as in the second half of the steps so far. The
        first half does not count, because a run first makes files whose number later stays the
        same.
        """
        if not self._sizes:
            return ""
        share, size = self._sizes[-1]
        earlier = [entry for entry in self._sizes if entry[0] <= share / 2]
        old_share, old_size = earlier[-1] if earlier else self._sizes[0]
        if share - old_share < _LEAST_SHARE or share >= 1.0:
            return ""
        final = size + max(0, size - old_size) * (1.0 - share) / (share - old_share)
        return f", at the end {decimal(round(final))}"

    def _gpus(self) -> list[str]:
        """Returns the use of the learners' GPUs in words, or [] without an NVIDIA GPU."""
        if self._flags.cpu:
            return []
        visible = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
        used = [visible[number] if visible[0] and number < len(visible) else str(number)
                for number in self._flags.gpus or (0,)]  # fmt: skip
        try:
            lines = subprocess.run(
                [*_SMI, _QUERY, "--id=" + ",".join(used)],
                capture_output=True,
                text=True,
                timeout=_SECONDS,
                check=True,
            ).stdout.splitlines()
            rows = [[float(number) for number in line.split(",")] for line in lines]
            busy = ", ".join(f"{row[0]:.0f} %" for row in rows)
            taken, whole = (sum(row[column] for row in rows) / 1024 for column in (1, 2))
        except (OSError, subprocess.SubprocessError, ValueError, IndexError):
            return []
        return [f"GPU {busy} {taken:.1f}/{whole:.1f} GiB"] if rows else []
