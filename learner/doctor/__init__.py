"""Implements `league doctor`: why does an agent not learn?

`game` and `training` measure a game and a short training, `run` reads a run's files. Each reason is
judged in a `Finding`. `findings` puts consequences under their causes.
"""
