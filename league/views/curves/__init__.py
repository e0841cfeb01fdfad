"""Training curves: a run's files as one picture."""

from __future__ import annotations

from pathlib import Path

from league.runs.files import write_whole
from league.runs.folder import CURVES
from league.views.curves.history import History, gather


def draw_curves(run_dir: Path, learner: str = "", out: Path | None = None) -> History:
    """Draws the history of a run's learner to `out` (training_curves.png of the run).

    Raises `NotFound` when the run has no such learner.
    """
    history = gather(run_dir, learner)
    from league.views.curves.figure import draw  # matplotlib takes a second to load

    write_whole(out or run_dir / CURVES, draw(history))
    return history
