"""Plays clean matches (both players frozen) on demand: `Benchmark` measures a player, and `compare`
tests which of two players is stronger.
"""
