"""Defines times and bounds of the matchmaker that need no setting."""

LEASE_SECONDS = 300.0
"""Seconds that a lease lives without its worker's progress, longer than the longest update."""
LEASE_LIMIT_SECONDS = 6 * 3600.0
"""Most seconds that a lease lives whatever its worker's progress, longer than any match."""
SWEEP_SECONDS = 2.0
"""Seconds between two sweeps for expired leases."""
MAX_OPEN_LEASES = 65_536
"""Leases that a worker may hold, in case it asks for matches and never reports."""
DRAW_SECONDS = 0.5
"""Seconds for which results alone don't change a draw table. With 2,000 players it takes 5 ms."""
CALL_THREADS = 64
"""Threads that answer calls, and the most calls that share a commit."""
MAX_WATCHERS = 16
"""Streams at a time."""
REQUEST_MEMORY_SECONDS = 6 * 3600.0
"""Seconds for which a reply is kept for a caller that repeats its request."""
