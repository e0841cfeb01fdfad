"""Leagues, their members and mixtures, and the matches that commands play."""
