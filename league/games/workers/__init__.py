"""Spreads a learner's matches of a slow game over worker processes, on this machine or others."""
