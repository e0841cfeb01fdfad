"""The figures of brawl's moves belong to the version of its rules."""

from __future__ import annotations

import hashlib

from league.games.brawl.moves import all_moves
from league.games.brawl.spec import brawl_spec

FIGURES = {"7": "88536b6c853bdde2"}
"""Digest of the figures by version. Changed figures need a new version, not another digest."""


def test_changed_figures_raise_the_version() -> None:
    digest = hashlib.sha256(repr(sorted(all_moves().items())).encode()).hexdigest()
    assert {brawl_spec().version: digest[:16]} == FIGURES
