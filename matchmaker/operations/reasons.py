"""Why results are refused, in one word for counters: the sentences themselves carry names and numbers."""

from __future__ import annotations

import re

REASONS: tuple[tuple[str, str], ...] = (
    ("unknown_match", r"never assigned"),
    ("lease_token", r"lease token"),
    ("other_incarnation", r"belongs to incarnation"),
    ("fenced", r"is fenced"),
    ("released", r"handed back"),
    ("abandoned", r"started anew"),
    ("wrong_player", r"was assigned to"),
    ("wrong_digest", r"was assigned with digest"),
    ("out_of_bounds", r"is out of range|is none|no time|no finite number|are the most|can't be used|seats"),
)
"""Label, and what the sentence holds; the first that fits counts."""
_COMPILED = [(label, re.compile(pattern)) for label, pattern in REASONS]
OTHER = "other"


def reason_of(sentence: str) -> str:
    """The label for a refusal's sentence."""
    return next((label for label, pattern in _COMPILED if pattern.search(sentence)), OTHER)
