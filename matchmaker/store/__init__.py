"""Stores the league's log."""

import sys

if "pandas" not in sys.modules:
    # sqlite-utils imports pandas to support a column type that the log does not use. Importing
    # pandas takes a third of a second.
    sys.modules["pandas"] = None  # pyrefly: ignore[unsupported-operation]
    import sqlite_utils  # noqa: F401

    del sys.modules["pandas"]
