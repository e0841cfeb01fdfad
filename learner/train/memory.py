"""Recognises out-of-memory errors, frees memory, and says which settings to lower."""

from __future__ import annotations

import gc
import traceback

import torch

from league.errors import DeviceError
from learner.train.build import SessionSettings

_WORDS = (
    "can't allocate memory",  # torch's DefaultCPUAllocator
    "not enough memory",  # the same on Windows
    "out of memory",  # CUDA outside of torch's own allocator
    "alloc_failed",  # cuBLAS and cuDNN: ..._STATUS_ALLOC_FAILED
)


def is_out_of_memory(error: BaseException) -> bool:
    """Returns whether `error` means that torch, CUDA or NumPy ran out of memory."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    words = str(error).lower()
    return isinstance(error, RuntimeError) and any(sign in words for sign in _WORDS)


def release(error: BaseException) -> None:
    """Frees the tensors that the stack frames in the traceback of `error` still reference."""
    traceback.clear_frames(error.__traceback__)
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def too_little(
    settings: SessionSettings, device: torch.device, rescue: str, activity: str = ""
) -> DeviceError:
    """Makes the error that says which settings to lower.

    Args:
        settings: the learner's settings.
        device: the device whose memory ran out.
        rescue: a clause for the message that says how the run continues.
        activity: the learner's work when memory ran out, "" if unknown.
    """
    learner, agent = settings.learner, settings.agent
    during = f" in its {activity}" if activity else ""
    return DeviceError(
        f"{device} has too little memory: the learner ran out of it{during}. Lower "
        f"learner.batch_size ({learner.batch_size}, a multiple of n_steps, {learner.n_steps}), "
        f"raise learner.gradient_parts ({learner.gradient_parts}: the same step in parts), or "
        f"lower learner.matches ({learner.matches}) in the run's config.toml and start again "
        f"({rescue}), or begin a new run with a smaller agent.size ({agent.size})"
    )
