"""Commands of ``bin/league`` that read or replace a run's log."""

from __future__ import annotations

import json
import shlex
import time
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from league.console.options import Assignments, Heading
from league.console.output import folded, operator, print_pairs, print_table, say, when
from league.contest.command import LeagueCommand, LeagueContext
from league.errors import InvalidInput
from league.players import PlayerState
from league.runs import finding
from league.runs.blobs import BlobFolder, BlobKind
from league.runs.store import blob_name, store_of

app = typer.Typer(rich_help_panel=Heading.LOG, add_completion=False)
RunArgument = Annotated[
    Path | None, typer.Argument(metavar="RUN", help="The run (default: the newest in runs/).")
]
RunOption = Annotated[
    Path | None, typer.Option(metavar="RUN", help="The same, as other commands take it.")
]


@app.command()
def backup(
    run_dir: Annotated[Path, typer.Argument(metavar="RUN", help="A run, running or finished.")],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The copy, a new file.")],
) -> None:
    """Copies a run's log consistently, also while the run continues."""
    from matchmaker.store import copies

    database = finding.database_of(finding.checked_run(run_dir))
    results = copies.backup(database, file)
    print(f"{file} holds the log of {run_dir} up to result {results}")


@app.command(rich_help_panel=Heading.TRAIN)
def branch(
    run_dir: Annotated[Path, typer.Argument(metavar="RUN", help="A run, running or finished.")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="The folder of the new run.")],
    assignments: Assignments = None,
) -> None:
    """Makes a new run that continues from a run's newest checkpoint with other settings.

    It has the run's players, matches, ratings and weights, and the run stays as it is.
    """
    from matchmaker.tools import branch as branches

    results = branches.branch(run_dir, new, assignments or [])
    print(f"{new} continues {run_dir} from result {results}")
    print(f"`bin/start-league --run-dir {shlex.quote(str(new))}` starts it")


@app.command()
def restore(
    run_dir: Annotated[Path, typer.Argument(metavar="RUN", help="A run that is not running.")],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A copy that `backup` made.")],
) -> None:
    """Puts a copy of a run's log in its place, and keeps the replaced log in a folder of the run.

    The next start continues from the copy. docs/operations.md says what learners then do.
    """
    from league.runs.folder import locked
    from matchmaker.store import copies
    from matchmaker.store.sqlite import SqliteStore

    database = finding.checked_run(run_dir) / finding.DATABASE
    is_run = (run_dir / "run.json").exists()  # else the folder has only a matchmaker
    with closing(locked(run_dir)) if is_run else nullcontext():
        results, replaced = copies.restore(file, database)
    print(f"{database} holds {file} now, up to result {results}")
    if replaced is not None:
        print(f"the log that it replaces is {replaced}")
    blobs = BlobFolder(run_dir / "blobs")
    with closing(SqliteStore(database, read_only=True)) as store, store.read() as reader:
        active = [player for player in reader.players() if player.state is not PlayerState.RETIRED]
    if missing := [
        player.name for player in active if player.digest and not blobs.has(player.digest)
    ]:
        names = ", ".join(missing[:5]) + (", …" if len(missing) > 5 else "")
        print(f"{len(missing)} players have no weights in {blobs.root}: {names}")
    print(f"`bin/start-league --run-dir {shlex.quote(str(run_dir))}` continues from there")


@app.command()
def fsck(run: RunArgument = None, run_dir: RunOption = None) -> int:
    """Checks whether a run's log is whole: every invariant, every draw, every rating.

    While the run continues, this also checks the ratings that its matchmaker shows.
    """
    from league.security.credentials import of_run
    from matchmaker.tools.fsck import fsck as checked

    folder = finding.named_run(run, run_dir)
    db, address = finding.database_of(folder), finding.live_address(folder) or ""
    findings, summary = checked(db, address, of_run(folder, "read"))
    for line in findings:
        print(line)
    print(f"{db}: {'BROKEN' if findings else 'whole'}; {summary}")
    return 1 if findings else 0


@app.command()
def recompute(run: RunArgument = None, run_dir: RunOption = None) -> int:
    """Computes ratings and payoffs from the log and compares them with the running numbers.

    The exit status is 1 when the run's matchmaker shows other numbers.
    """
    from league.security.credentials import of_run
    from matchmaker.state.books import Books
    from matchmaker.store.sqlite import SqliteStore
    from matchmaker.tools.recompute import differing_from_shown

    run_dir = finding.named_run(run, run_dir)
    address = finding.live_address(run_dir)
    with closing(SqliteStore(finding.database_of(run_dir), read_only=True)) as store:
        with store.read() as reader:
            began = time.perf_counter()
            books = Books.of(reader)
            seconds = time.perf_counter() - began
        findings = differing_from_shown(store, address, of_run(run_dir, "read")) if address else []
    for book, table in books.tables.items():
        drawn, link = table.epoch.draw_probability, table.link
        print(
            f"{book.value}: {len(table.beliefs())} players, {table.games} rated results, "
            f"{len(table.anchors())} anchors; expects {drawn:.3g} draws, "
            f"sharpness {link.sharpness:.2f}, logistic share {link.logistic_share:.1f}"
        )
    print(f"{books.log_position} results of {run_dir} folded in {seconds:.1f} s")
    for line in findings:
        print(line)
    if not address:
        print("no matchmaker serves this run now, so there are no running numbers to compare")
    elif not findings:
        print(f"the numbers that {address} shows are the same, to the last bit")
    return 1 if findings else 0


@app.command()
def prune(
    run: RunArgument = None,
    run_dir: RunOption = None,
    remove: Annotated[
        bool, typer.Option("--remove", help="Remove them (default: only list them).")
    ] = False,
) -> None:
    """Lists the weights of retired snapshots that nothing needs, and with --remove removes them.

    Players, results and ratings stay. The run may continue meanwhile.
    """
    from matchmaker.store.sqlite import SqliteStore
    from matchmaker.tools.prune import unneeded

    folder = finding.named_run(run, run_dir)
    blobs, total = BlobFolder(folder / "blobs"), 0
    object_store = store_of(folder) if remove else None
    database = finding.database_of(folder)
    with closing(SqliteStore(database, read_only=True)) as store, store.read() as reader:
        players = [player for player in unneeded(reader, folder) if blobs.has(player.digest)]
    for player in players:
        path = blobs.path(player.digest)
        print(f"{player.name}\t{path}")
        total += path.stat().st_size
        if remove:
            if object_store is not None:
                object_store.delete(blob_name(player.digest, BlobKind.WEIGHTS))
            path.unlink()
    done = "removed" if remove else "can go: --remove removes them"
    print(f"weights of {len(players)} retired snapshots, {total / 1e6:.1f} MB, {done}")


class MixGroup(TyperGroup):
    """Groups the commands of ``bin/league mix``. The default command is `show`."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # pyrefly: ignore[bad-override]
        return super().parse_args(ctx, _spelled_out(args))

    def resolve_command(self, ctx: typer.Context, args: list[str]) -> Any:  # pyrefly: ignore[bad-override]
        return super().resolve_command(ctx, _spelled_out(args))


def _spelled_out(words: list[str]) -> list[str]:
    return words if words[:1] in (["show"], ["set"], ["--help"]) else ["show", *words]


mix = typer.Typer(
    cls=MixGroup,
    help="Shows which opponents a learner met (`show`, the default), or changes a running mix.",
    add_completion=False,
)
app.add_typer(mix, name="mix", rich_help_panel=Heading.LOOK)


@mix.command("set", cls=LeagueCommand)
def set_mix(
    context: LeagueContext,
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME.OPPONENT=WEIGHT",
            help="A mix, a category or bot of it, and its weight. 0 removes it.",
        ),
    ],
) -> None:
    """Changes weights of mixes of a running league. The change applies from the next draw on."""
    mixes: dict[str, dict[str, float]] = {}
    for word in words:
        name, dot, rest = word.partition(".")
        category, equals, number = rest.partition("=")
        try:
            weight = float(number)
        except ValueError:
            equals = ""
        if not (name and dot and category and equals):
            raise InvalidInput(f"{word!r} is no NAME.OPPONENT=WEIGHT, as league.based=2")
        mixes.setdefault(name, {})[category] = weight
    context.league.require_running("change the mix")
    with context.league.connect() as client:
        for name, weights in mixes.items():
            change = client.set_mix(name, weights, operator())
            say(f"mix {name!r} has {change.words} for all draws from event {change.number} on")


@mix.command("show")
def show_mix(
    run: RunArgument = None,
    run_dir: RunOption = None,
    player: Annotated[str, typer.Option(metavar="NAME", help="A learner.")] = "main",
    last: Annotated[
        float | None,
        typer.Option(metavar="SHARE", help="Only this last share of its steps, as .25."),
    ] = None,
    brief: Annotated[
        bool, typer.Option("--brief", help="Print the last part in a sentence.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one object with all digits.")
    ] = False,
) -> None:
    """Shows which opponents a learner met, and how strong they were, by quarter of its steps.

    An expected score is the score that the sampler expected when it drew the opponent. It is
    computed from the log up to that draw.
    """
    if last is not None and not 0.0 < last <= 1.0:
        raise InvalidInput(f"--last {last:g} is no share: it must be above 0, up to 1")
    from matchmaker.store.sqlite import SqliteStore
    from matchmaker.tools.mix import COLUMNS, changes_of, matches_of, parts_of, row_of, sentence

    folder = finding.named_run(run, run_dir)
    store = SqliteStore(finding.database_of(folder), read_only=True)
    with closing(store), store.read() as reader:
        matches = list(matches_of(reader, player))
        changes = changes_of(reader, matches)
    parts = parts_of(matches, last)
    if as_json:
        print(json.dumps({"player": player, "parts": parts, "changes": changes}))
    elif brief:
        for part in parts[-1:]:
            print(folded(sentence(player, part), indent=2))
    else:
        print_table(f"Opponents of {player}", COLUMNS, map(row_of, parts))
        for change in changes:
            print()
            what = f"{change['by']} set {change['words']} at {when(change['at'])}"
            print_pairs([("changed", f"{change['mix']}: {what}, event {change['number']}")])
            rows = [row_of(change["part"])] if change["part"] else []
            print_table(f"Opponents of {player} since then", COLUMNS, rows)
