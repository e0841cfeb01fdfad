"""Defines the matchmaker's time limits and bounds, apart from its settings."""

LEASE_SECONDS = 300.0
"""Seconds until a lease expires if its worker makes no progress. A learner makes no progress during
an update of its weights, but no update takes this long.
"""
LEASE_LIMIT_SECONDS = 6 * 3600.0
"""Seconds until a lease expires even if its worker makes progress. No match takes this long."""
SWEEP_SECONDS = 2.0
"""Seconds between two sweeps for expired leases."""
MAX_OPEN_LEASES = 65_536
"""Most leases that a worker may hold. The limit stops a worker that asks for matches and never
reports."""
DRAW_SECONDS = 0.5
"""Least number of seconds for which a draw table is reused after new results."""
DRAW_PLAYER_SECONDS = 2.5e-6
"""Processor time of a draw table for each player of the league."""
DRAW_SHARE = 0.1
"""Share of a core that may be spent on draw tables. In a league with many learners and players, a
table is therefore reused for longer.
"""
LONGEST_DRAW_SECONDS = 600.0
"""Longest time for which a draw table is reused after new results."""
CALL_THREADS = 64
"""Number of threads that answer synchronous calls."""
TRANSFER_SECONDS = 600.0
"""Largest time in seconds that sending or receiving a blob may take."""
UPLOAD_BYTES = 10**11
"""Bytes that a token may upload over the whole run. Callers without a token share this amount."""
KEPT_FREE_BYTES = 10**9
"""Bytes of disk space that uploads must leave free for the log."""
DRAFT_SECONDS = 3600.0
"""Age in seconds above which unfinished blob files are removed when the matchmaker starts."""
MAX_WATCHERS = 16
"""Largest number of clients that watch at the same time."""
REQUEST_MEMORY_SECONDS = 6 * 3600.0
"""Seconds for which a reply is kept for a caller that repeats its request."""
