"""Lists matches that people should see first, in a file that the evaluator writes into a run."""

from __future__ import annotations

import fcntl
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from league.errors import DataCorrupt
from league.runs.files import open_file, write_whole

FILE = Path("evaluator") / "highlights.json"
LIVE, RALLY, LONGEST, CLOSEST, WIN = "live", "rally", "longest", "closest", "win"
"""Kinds: live matches, the match in which both players hit most, the longest match of a game
without hits, the closest decided match, and a milestone's win over a hard bot.
"""
LIVES = 20
"""How many live matches are listed at most. The newest are kept."""
WINS = 50
"""How many wins are listed at most. The newest are kept."""
_MOST_BYTES = 2**20
_Word = Annotated[str, Field(max_length=500)]


class Highlight(BaseModel):
    """Names a match of the run, and says why people should see it.

    Attributes:
        kind: one of the kinds above.
        match_id: the match, whose replay the run keeps.
        names: the players by seat.
        winner: the player that won, "" after a draw.
        words: what is special about it.
        value: among matches of the same `place`, a match with a larger value is better. For a win,
            it is the share of matches that the milestone did not win against the bot. For a live
            match, it is 1 if its replay is kept for no other reason, else 0.
        at: when the match ended, in Unix seconds.
    """

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)
    kind: _Word
    match_id: _Word
    names: tuple[_Word, _Word]
    winner: _Word
    words: _Word
    value: float
    at: float

    @property
    def place(self) -> tuple[str, str]:
        """Returns the kind, with the winner for a win and with the match id for a live match. The
        list has only the best highlight of each place.
        """
        return self.kind, {WIN: self.winner, LIVE: self.match_id}.get(self.kind, "")

    @property
    def is_passing(self) -> bool:
        """Returns whether the run keeps the match only as long as it is listed."""
        return self.kind == LIVE and self.value == 1.0


_FILE = TypeAdapter(list[Highlight])


def read_highlights(run_dir: Path) -> list[Highlight]:
    """Returns the highlights of a run, the oldest first, and [] for a damaged file."""
    try:
        with open_file(run_dir / FILE, _MOST_BYTES) as file:
            return _FILE.validate_json(file.read())
    except (FileNotFoundError, DataCorrupt, ValidationError):
        return []


def add_highlights(
    run_dir: Path, new: Iterable[Highlight]
) -> tuple[list[Highlight], list[Highlight]]:
    """Adds highlights to a run's list. A highlight replaces the listed highlight of its place only
    if it is better. Several processes may call this at once.

    Returns:
        The whole list, and the live matches and wins that are too old for it.
    """
    file = run_dir / FILE
    file.parent.mkdir(exist_ok=True)
    with file.with_suffix(".lock").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        kept = {highlight.place: highlight for highlight in read_highlights(run_dir)}
        for highlight in new:
            other = kept.get(highlight.place)
            if other is None or highlight.value > other.value:
                kept.pop(highlight.place, None)
                kept[highlight.place] = highlight  # at the end, as clocks may be wrong
        listed = list(kept.values())
        old = [
            highlight
            for kind, most in ((LIVE, LIVES), (WIN, WINS))
            for highlight in [one for one in listed if one.kind == kind][:-most]
        ]
        listed = [highlight for highlight in listed if highlight not in old]
        write_whole(file, _FILE.dump_json(listed))
    return listed, old
