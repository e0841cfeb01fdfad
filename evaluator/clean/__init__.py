"""Plans, plays and reports the clean matches (both players frozen) of a running league."""
