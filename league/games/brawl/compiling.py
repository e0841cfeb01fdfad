"""How the functions of the step are compiled."""

from numba import njit

# Numba's types leave out these options.
inner = njit(no_cpython_wrapper=True, no_cfunc_wrapper=True)  # pyrefly: ignore[no-matching-overload]
"""Compiles a function that only compiled functions call. Its wrappers for other callers would be
two thirds of the modules that LLVM compiles.
"""
