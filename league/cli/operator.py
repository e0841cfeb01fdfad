"""Who gives a command, as the log names them."""

from __future__ import annotations

import getpass
import socket


def operator() -> str:
    """``user@host``."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        user = "somebody"
    return f"{user}@{socket.gethostname()}"[:80]
