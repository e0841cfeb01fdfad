"""Owns the league's state: players, leases, results, ratings. No other service changes it."""
