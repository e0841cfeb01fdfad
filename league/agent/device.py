"""Chooses the device to compute on, and describes the choice in a sentence."""

from __future__ import annotations

import ctypes

import torch

from league.errors import DeviceError
from league.settings.device_flags import (
    DeviceFlags,
    cores_in_words,
    cpu_sentence,
    missing_gpu,
)

_GIB = 1 << 30
# From malloc.h: M_MMAP_MAX, M_TRIM_THRESHOLD, M_TOP_PAD.
_MALLOC_OPTIONS = ((-4, 0), (-1, (1 << 31) - 1), (-2, 64 << 20))


def choose_device(gpu: int | None = None, cpu: bool = False) -> tuple[torch.device, str]:
    """Chooses the device that the flag `--gpu N` or `--cpu` asks for. Without a flag, it chooses
    CUDA if available, else MPS, else the CPU.

    Returns:
        The device, and a sentence with its name, the reason, and its memory or cores.

    Raises:
        DeviceError: the requested GPU does not exist, or both flags are given.
    """
    if gpu is not None and cpu:
        raise DeviceError(f"--gpu {gpu} and --cpu exclude each other: give one of them")
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if gpu is not None:
        if not 0 <= gpu < count:
            names = ", ".join(f"{i} ({torch.cuda.get_device_name(i)})" for i in range(count))
            raise missing_gpu(gpu, names)
        return _cuda(gpu, f"--gpu {gpu}")
    if cpu:
        return torch.device("cpu"), DeviceFlags(cpu=True).cpu_sentence()
    if count:
        return _cuda(0, "the first CUDA device")
    if torch.backends.mps.is_available():
        sentence = f"Computing on the Apple GPU (no CUDA here), {cores_in_words()}."
        return torch.device("mps"), sentence
    return torch.device("cpu"), cpu_sentence()


def choose_devices(flags: DeviceFlags) -> tuple[list[torch.device], str]:
    """Chooses a device for each process of a learner.

    Returns:
        The devices, and a sentence that describes them.

    Raises:
        DeviceError: see `choose_device`.
    """
    if flags.cpu:
        return [torch.device("cpu")] * flags.ranks, flags.cpu_sentence()
    chosen = [choose_device(gpu) for gpu in flags.gpus or (None,)]
    return [device for device, _ in chosen], " ".join(sentence for _, sentence in chosen)


def _cuda(index: int, why: str) -> tuple[torch.device, str]:
    properties = torch.cuda.get_device_properties(index)
    memory = properties.total_memory / _GIB
    sentence = f"Computing on GPU {index}, {properties.name} ({why}), {memory:.1f} GiB of memory."
    return torch.device("cuda", index), sentence


def keep_memory() -> bool:
    """Makes the process keep freed memory for reuse.

    A learner allocates the same large tensors in each update. By default glibc returns freed blocks
    over 128 KiB to the kernel, and a new block then costs a page fault for every 4 KiB. These page
    faults halved the learner's speed on a CPU.

    Returns:
        Whether this setting works here. It needs glibc.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    return all(mallopt(option, value) == 1 for option, value in _MALLOC_OPTIONS)
