"""The matchmaker: the one owner of the league's state (players, leases, results, ratings)."""
