"""Defines the colours and Matplotlib settings that all pictures share."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK, FAINT, GRID = "#1F2933", "#7A8591", "#E6EAEE"
PALETTE: Final = (
    *("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"),
    *("#7F4FC9", "#8C6D31", "#555555"),
)
"""Colours of Okabe and Ito, which colour-blind people can distinguish, and three more colours."""
SCREEN_PALETTE: Final = (
    *("#2f81c7", "#d9661f", "#12986f", "#b8689a", "#c98a00", "#3fa6d8"),
    *("#8a63d2", "#96763c", "#7d8590"),
)
"""`PALETTE` for the dashboard, with a lightness that suits both its light and its dark theme."""
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
"""Settings for `matplotlib.rc_context`."""


def png_of(figure: Figure) -> bytes:
    """Returns the figure as PNG."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    png = io.BytesIO()
    FigureCanvasAgg(figure).print_png(png)
    return png.getvalue()
