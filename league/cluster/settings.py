"""Settings of the supervisor: restarts, time-outs of stopping and draining, the terminal view."""

from __future__ import annotations

from pydantic import Field

from league.config import Settings


class SupervisorSettings(Settings):
    """How a league's processes are kept alive, shown and stopped."""

    evaluators: int = Field(default=1, ge=0, le=1)
    """Evaluators to run, 0 or 1. 0 leaves all processor time to training; the leaderboard stays empty."""

    restart_limit: int = Field(default=5, ge=0)
    """Restarts of one process allowed within the window; a fault that needs more is no accident."""

    restart_window_seconds: float = Field(default=300.0, gt=0)
    """Seconds over which restarts are counted."""

    restart_first_seconds: float = Field(default=0.5, ge=0)
    """Seconds before the first restart; each further one in the window waits twice as long."""

    restart_longest_seconds: float = Field(default=30.0, ge=0)
    """Longest wait before a restart, in seconds."""

    stop_worker_seconds: float = Field(default=7.0, gt=0)
    """Seconds that learner and evaluator get to stop; a learner needs up to 6 to save. All in all < 10."""

    stop_matchmaker_seconds: float = Field(default=1.0, gt=0)
    """Seconds the matchmaker gets to close, after the others; each reply is on disk already."""

    drain_seconds: float = Field(default=1800.0, ge=0)
    """Longest wait, after the last step, for the evaluator to finish its queue (seconds)."""

    refresh_seconds: float = Field(default=1.0, gt=0)
    """Seconds between two looks at the league, and two pictures of the terminal view."""

    leaderboard_seconds: float = Field(default=3.0, gt=0)
    """Seconds between two readings of ratings and payoffs, which cost more than the status."""

    curves_minutes: float = Field(default=10.0, ge=0)
    """Minutes between drawings of training_curves.png, and one more at the end; 0 never draws it."""

    line_seconds: float = Field(default=10.0, gt=0)
    """Seconds between two lines when the output is no terminal, or with --headless."""

    log_megabytes: float = Field(default=16.0, gt=0)
    """Size in MB beyond which a process's log is set aside and begun anew."""

    log_files: int = Field(default=3, ge=1)
    """Set-aside logs kept for each process."""
