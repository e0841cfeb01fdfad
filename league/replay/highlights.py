"""Keeps a list of the matches that people should see first. The evaluator writes the list to a file
in the run's folder.

A live match is a match of any two players. Every few seconds the evaluator keeps such a match, for
people who watch the league. A milestone is a snapshot that the evaluator tests more thoroughly.
"""

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
"""The kinds of highlights: a live match, the match in which both players hit most, the longest
match (in games without hits), the closest match that one player won, and a milestone's win over a
bot that it seldom beats.
"""
WORDS = {
    RALLY: "best rally",
    LONGEST: "longest match",
    CLOSEST: "closest match",
    WIN: "win over its hardest bot",
}
"""Words for the kinds of highlights, except for live matches."""
LIVES = 20
"""Largest number of live matches in the list. The newest are kept."""
WINS = 50
"""Largest number of wins in the list. The newest are kept."""
_MOST_BYTES = 2**20
_Word = Annotated[str, Field(max_length=500)]


class Highlight(BaseModel):
    """Names a match of the run, and says why people should see it.

    Attributes:
        kind: one of the kinds above.
        match_id: the id of the match. The run keeps its replay.
        names: the players by seat.
        winner: the player that won, "" after a draw.
        words: says why the match is special.
        value: how good the highlight is, compared with others of the same `place`. For a win, the
            value is the share of matches against this bot that the milestone did not win. For a
            live match, it is 1 if the run keeps the replay only while this list has the match, and
            otherwise 0.
        at: the time when the match ended, in Unix seconds.
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
        """Returns the key of the highlight's place in the list. Of several highlights with the same
        place, the list keeps only the best.

        The key is (kind, detail). The detail is the winner for a win, the match id for a live
        match, and otherwise "".
        """
        return self.kind, {WIN: self.winner, LIVE: self.match_id}.get(self.kind, "")

    @property
    def is_passing(self) -> bool:
        """Returns whether the replay is kept only as long as the list has this highlight."""
        return self.kind == LIVE and self.value == 1.0


_FILE = TypeAdapter(list[Highlight])


def read_highlights(run_dir: Path) -> list[Highlight]:
    """Returns the highlights of a run, the oldest first. Returns [] if the file is missing or
    damaged.
    """
    try:
        with open_file(run_dir / FILE, _MOST_BYTES) as file:
            return _FILE.validate_json(file.read())
    except (FileNotFoundError, DataCorrupt, ValidationError):
        return []


def add_highlights(
    run_dir: Path, new: Iterable[Highlight]
) -> tuple[list[Highlight], list[Highlight]]:
    """Adds highlights to a run's list. If the list already has a highlight with the same place, the
    better of the two stays. Several processes may call this function at once.

    Returns:
        The whole list, and the live matches and wins that were removed because they are too old.
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
                kept[highlight.place] = highlight  # at the end, even if a clock is wrong
        listed = list(kept.values())
        old = [
            highlight
            for kind, most in ((LIVE, LIVES), (WIN, WINS))
            for highlight in [one for one in listed if one.kind == kind][:-most]
        ]
        listed = [highlight for highlight in listed if highlight not in old]
        write_whole(file, _FILE.dump_json(listed))
    return listed, old
