"""What all pictures have in common: colours of words and lines, and Matplotlib's settings."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK, FAINT, GRID = "#1F2933", "#7A8591", "#E6EAEE"
STYLE: Final[Any] = {
    "font.size": 10,
    "font.family": "DejaVu Sans",
    "text.color": INK,
    "axes.edgecolor": GRID,
    "axes.labelcolor": FAINT,
    "axes.titlesize": 11.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
}
"""For `matplotlib.rc_context`."""


def png_of(figure: Figure) -> bytes:
    """The figure as PNG."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    png = io.BytesIO()
    FigureCanvasAgg(figure).print_png(png)
    return png.getvalue()
