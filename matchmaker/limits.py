"""Defines times and bounds of the matchmaker that need no setting."""

LEASE_SECONDS = 300.0
"""Seconds that a lease lives if its worker makes no progress. The longest update is shorter."""
LEASE_LIMIT_SECONDS = 6 * 3600.0
"""Most seconds that a lease lives, even if its worker makes progress. Any match is shorter."""
SWEEP_SECONDS = 2.0
"""Seconds between two sweeps for expired leases."""
MAX_OPEN_LEASES = 65_536
"""Most leases that a worker may hold. The limit stops a worker that asks for matches and never
reports."""
DRAW_SECONDS = 0.5
"""Seconds for which a draw table ignores new results. For 2,000 players a new table takes 5 ms."""
CALL_THREADS = 64
"""Threads that answer calls, and the most calls that share a commit."""
TRANSFER_SECONDS = 600.0
"""Seconds in which a blob must be sent or received."""
UPLOAD_BYTES = 10**11
"""Bytes that a token may upload in the whole run. Without tokens, all callers share them."""
KEPT_FREE_BYTES = 10**9
"""Free bytes of the disk that uploads leave to the log."""
DRAFT_SECONDS = 3600.0
"""Age in seconds from which a starting matchmaker removes an unfinished file among the blobs."""
MAX_WATCHERS = 16
"""Largest number of clients that watch at the same time."""
REQUEST_MEMORY_SECONDS = 6 * 3600.0
"""Seconds for which a reply is kept for a caller that repeats its request."""
