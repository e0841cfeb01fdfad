"""Plays Warehouse Brawl, a two-player platform fighter, batched and compiled (docs/game.md)."""
