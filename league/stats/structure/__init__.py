"""Studies the structure of a league: equilibria, cycles and near-copies."""
