"""Searches settings: many small leagues, each scored by its own clean matches."""
