"""Tournaments of members and files: pairings, matches that survive kills, standings, and a page."""
