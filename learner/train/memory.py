"""Out of memory: how it shows, what is freed, and the sentence that says what to lower."""

from __future__ import annotations

import gc
import traceback

import torch

from league.errors import DeviceError
from learner.train.assembly import SessionSettings

_WORDS = (
    "can't allocate memory",  # torch's DefaultCPUAllocator
    "not enough memory",  # the same on Windows
    "out of memory",  # CUDA outside of torch's own allocator
    "alloc_failed",  # cuBLAS and cuDNN: ..._STATUS_ALLOC_FAILED
)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether `error` is one of the ways in which torch, CUDA and NumPy say that memory is at
    its end.
    """
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    words = str(error).lower()
    return isinstance(error, RuntimeError) and any(sign in words for sign in _WORDS)


def release(error: BaseException) -> None:
    """Frees what the failed computation still holds through the frames of `error`."""
    traceback.clear_frames(error.__traceback__)
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def too_little(
    settings: SessionSettings, device: torch.device, kept: str, activity: str = ""
) -> DeviceError:
    """What to say: `activity` is what the learner was at, `kept` what the run goes on from."""
    learner, agent = settings.learner, settings.agent
    during = f" in its {activity}" if activity else ""
    return DeviceError(
        f"{device} has too little memory: the learner ran out of it{during}. Lower learner.batch_size "
        f"({learner.batch_size}, a multiple of n_steps, {learner.n_steps}), raise learner.gradient_parts "
        f"({learner.gradient_parts}: the same step in parts), or lower learner.matches "
        f"({learner.matches}) in the run's config.toml and start again ({kept}), or begin a new run with a "
        f"smaller agent.size ({agent.size})"
    )
