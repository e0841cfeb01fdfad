"""Implements `league doctor`, which finds out why an agent does not learn.

The module `game` measures a game, `training` measures a short training, and `run` reads a run's
files. Each of these modules checks possible reasons, and reports a `Finding` with a verdict for
each reason. The module `findings` lists consequences under their cause.
"""
