"""Implements `league doctor`: why does an agent not learn?

The module `game` measures a game, `training` measures a short training, and `run` reads a run's
files. Each of them checks possible reasons, and reports its verdict on a reason in a `Finding`. The
module `findings` groups the findings: consequences are listed under their cause.
"""
