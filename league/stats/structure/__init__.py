"""The structure of a league: equilibria, cycles and near-copies."""
