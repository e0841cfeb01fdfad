"""Clean matches on demand: `Benchmark` measures a player, `compare` tests two."""
