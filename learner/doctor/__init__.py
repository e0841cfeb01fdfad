"""Implements `league doctor`: why does an agent not learn?

The module `game` measures a game, `training` measures a short training, and `run` reads a run's
files. They judge each possible reason in a `Finding`. The module `findings` puts consequences under
their causes.
"""
