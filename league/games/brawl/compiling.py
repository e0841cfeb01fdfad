"""Compiles the functions that play the game's steps, and loads their machine code into a process.

A process that compiles keeps 150 MB of memory for the compiler until it ends. Therefore, processes
load the machine code from Numba's cache on disk. If the cache doesn't have the code, a short-lived
child process compiles it.
"""

from __future__ import annotations

import fcntl
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from numba import njit, typeof
from numba.core.compiler_lock import global_compiler_lock

from league.service import die_with_parent

_njit: Any = njit  # Numba's types leave out some of its options
inner = _njit(no_cpython_wrapper=True, no_cfunc_wrapper=True)
"""Compiles a function that only compiled functions call. The wrappers for other callers are left
out, because they would be two thirds of the modules that LLVM compiles.
"""


def cached(function: Callable[..., None]) -> Any:
    """Compiles a function that allocates no memory, and caches its machine code if the cache folder
    is writable.

    Numba's allocator is left out (`_nrt`), because otherwise a process would have to compile the
    allocator before it could load the code.
    """
    try:
        return _njit(nogil=True, cache=True, _nrt=False)(function)
    except RuntimeError:  # no cache folder: each process compiles
        return njit(nogil=True)(function)


def load(calls: Mapping[Any, tuple[Any, ...]]) -> None:
    """Loads the machine code of the functions in `calls`, for calls with the arguments given there.

    The first call of a function would load the code too. But this call would first load everything
    that Numba needs for compiling, which takes a second and 25 MB. If several processes need the
    same missing code at once, the code is compiled only once. Each of them says on stderr that it
    waits.

    Args:
        calls: arguments by function. The functions are made by `cached` and are attributes of their
            modules.
    """
    wanted = {function: tuple(map(typeof, arguments)) for function, arguments in calls.items()}
    folder = next(iter(wanted)).stats.cache_path
    if folder is None or _has_loaded(wanted):
        return
    words = "(brawl is compiled for this machine, once: this takes a minute)"
    print(words, file=sys.stderr, flush=True)
    with suppress(OSError), Path(folder, "compiling.lock").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not _has_loaded(wanted):
            tied = [sys.executable, die_with_parent.__file__, str(os.getpid()), sys.executable]
            missing = [(f.__module__, f.__name__, types) for f, types in wanted.items()]
            subprocess.run([*tied, "-m", __name__], input=pickle.dumps(missing), check=False)
            _has_loaded(wanted)  # if this fails too, the first call compiles


@global_compiler_lock
def _has_loaded(wanted: Mapping[Any, tuple[Any, ...]]) -> bool:
    """Loads functions from the cache. Returns False if a function is missing."""
    for function, signature in wanted.items():
        if signature not in function.overloads:
            found = function._cache._load_overload(signature, function.targetctx)
            if found is None:
                return False
            function.add_overload(found)
    return True


if __name__ == "__main__":
    for module, name, signature in pickle.load(sys.stdin.buffer):
        getattr(import_module(module), name).compile(signature)
