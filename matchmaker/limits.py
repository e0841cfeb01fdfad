"""Times and bounds of the matchmaker that need no setting."""

LEASE_SECONDS = 300.0
"""How long a lease lives without its worker's progress: longer than the longest update."""
LEASE_LIMIT_SECONDS = 6 * 3600.0
"""How long a lease lives at most, whatever its worker's progress: longer than any match."""
SWEEP_SECONDS = 2.0
"""Time between two sweeps for leases that ran out."""
MAX_OPEN_LEASES = 65_536
"""Leases that one worker may hold open, in case it asks for matches and never reports."""
DRAW_SECONDS = 0.5
"""How long results alone don't change a draw table: 2,000 players take 5 ms."""
CALL_THREADS = 64
"""Threads that answer calls; that many calls can share one commit."""
MAX_WATCHERS = 16
"""Watch streams at a time."""
REQUEST_MEMORY_SECONDS = 6 * 3600.0
"""How long a reply is kept for a caller that repeats its request."""
