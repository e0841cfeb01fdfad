"""``bin/league fsck``: is the log of a league whole?"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from league.runs import finding
from league.security.credentials import Credentials, of_run
from matchmaker.sampling.draw import DrawTable, Stream, draw_table_of, draws
from matchmaker.state import folding
from matchmaker.store import invariants
from matchmaker.store.sqlite import SqliteStore
from matchmaker.store.transaction import Reader
from matchmaker.tools.gate_checks import wrong_gates
from matchmaker.tools.recompute import differing_from_shown


def command(
    run: Annotated[
        Path | None, typer.Argument(metavar="RUN", help="The run (default: the newest in runs/).")
    ] = None,
    run_dir: Annotated[
        Path | None, typer.Option(metavar="RUN", help="The same, as other commands take it.")
    ] = None,
) -> int:
    """Checks whether a run's log is whole: every invariant, every draw, every rating.

    While the run continues, this also checks the ratings that its matchmaker shows.
    """
    folder = finding.named_run(run, run_dir)
    db, address = finding.database_of(folder), finding.live_address(folder) or ""
    findings, summary = fsck(db, address, of_run(folder, "read"))
    for line in findings:
        print(line)
    print(f"{db}: {'BROKEN' if findings else 'whole'}; {summary}")
    return 1 if findings else 0


def fsck(
    db: Path, address: str = "", credentials: Credentials | None = None
) -> tuple[list[str], str]:
    """Checks a league's file, and the ratings that the service at `address` shows, if given.

    Returns:
        Findings, one sentence each, none when the league is whole; and a line of what it holds.
    """
    with closing(SqliteStore(db, read_only=True)) as store:
        with store.read() as reader:
            findings, summary = full_scan(reader), _summary(reader)
        if address:
            findings += differing_from_shown(store, address, credentials)
    return findings, summary


def full_scan(reader: Reader) -> list[str]:
    """Every finding that the file alone gives; none when the league is whole."""
    findings = invariants.whole_file(reader)
    findings += wrong_gates(reader)
    findings += folding.differing(reader)
    picks = list(wrong_picks(reader))
    says = "a match is what its seed draws from the recorded weights"
    return findings + ([invariants.finding(says, picks)] if picks else [])


def wrong_picks(reader: Reader) -> Iterator[str]:
    """Ids of drawn matches that drawing again from the recorded weights does not give."""
    tables: dict[int, DrawTable] = {}
    streams: dict[int, Stream] = {}
    for row in reader.drawn_assignments():
        if row.draw not in tables:
            found = None if row.draw is None else reader.draw(row.draw)
            if found is None or row.draw is None:
                yield row.match_id
                continue
            tables[row.draw] = draw_table_of(found.body_json)
        table = tables[row.draw]
        stream = streams.setdefault(row.draw_seed, Stream(row.draw_seed))
        (again,) = draws(table.shares, table.within, stream, [row.ordinal], table.matches_per_draw)
        opponent = (row.seat1, row.seat0)[row.learner_seat]
        drawn = row.category, opponent, row.probability, row.learner_seat, row.seed
        if again != drawn:
            yield row.match_id


def _summary(reader: Reader) -> str:
    counts, leases = reader.counts(), len(reader.open_assignments())
    lost = counts["lost_results"]
    words = f"; {lost} results don't count: a restart returned to a checkpoint before them"
    return (
        f"{counts['players']} players, {counts['assignments']} matches assigned, "
        f"{leases} leases open, {counts['results']} results, {reader.positions()[1]} events"
        f"{words if lost else ''}"
    )
