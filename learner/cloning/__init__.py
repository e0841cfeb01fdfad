"""Behaviour cloning: an agent that plays as recorded players did."""
