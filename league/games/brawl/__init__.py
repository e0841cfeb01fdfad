"""Warehouse Brawl: a two-player platform fighter, batched and compiled (rules: docs/game.md)."""
