"""Plans, plays and reports the clean matches of a running league."""
