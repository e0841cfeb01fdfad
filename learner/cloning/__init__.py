"""Behaviour cloning: an agent that plays as recorded players did, to start from and to hold on
to.
"""
