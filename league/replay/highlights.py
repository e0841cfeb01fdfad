"""Lists matches that people should see first, in a file that the evaluator writes into a run."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from league.errors import DataCorrupt
from league.runs.files import open_file, write_whole

FILE = Path("evaluator") / "highlights.json"
LIVE, RALLY, LONGEST, CLOSEST, WIN = "live", "rally", "longest", "closest", "win"
"""Kinds: the live match that ended last, the match in which both players hit most, the longest
match of a game without hits, the closest decided match, and a milestone's win over its hardest bot.
"""
WINS = 50
"""How many wins are listed, the newest."""
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
        value: the larger, the better among matches of its kind.
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
        """Returns its kind, and for a win the winner. A newer highlight replaces an older one of
        the same place.
        """
        return self.kind, self.winner if self.kind == WIN else ""


_FILE = TypeAdapter(list[Highlight])


def read_highlights(run_dir: Path) -> list[Highlight]:
    """Returns the highlights of a run, the oldest first, and [] for a damaged file."""
    try:
        with open_file(run_dir / FILE, _MOST_BYTES) as file:
            return _FILE.validate_json(file.read())
    except (FileNotFoundError, DataCorrupt, ValidationError):
        return []


def add_highlights(run_dir: Path, new: Iterable[Highlight]) -> list[Highlight]:
    """Adds highlights to a run's list, and returns the whole list."""
    kept = {highlight.place: highlight for highlight in read_highlights(run_dir)}
    kept |= {highlight.place: highlight for highlight in new}
    listed = sorted(kept.values(), key=lambda highlight: highlight.at)
    wins = [highlight for highlight in listed if highlight.kind == WIN]
    listed = [highlight for highlight in listed if highlight not in wins[:-WINS]]
    (run_dir / FILE).parent.mkdir(exist_ok=True)
    write_whole(run_dir / FILE, _FILE.dump_json(listed))
    return listed
