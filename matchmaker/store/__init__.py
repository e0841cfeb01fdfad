"""Stores the league's log."""
