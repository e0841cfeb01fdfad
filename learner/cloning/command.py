"""``league clone``: makes an agent that plays like a member of a league, and compares agent and
member.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from league.console.options import Assignments, Blobs, GameName, Heading, Seed
from league.console.output import print_table, progress, say
from league.console.text import interval
from league.contest.command import LeagueContext, SeveralPlayers
from league.errors import AlreadyExists, InvalidInput
from league.ids import SnapshotName
from league.players import PlayerKind, PlayerState, Role
from league.runs.files import private_folder

if TYPE_CHECKING:
    from league.contest.members import Finder
    from league.games.base import GameSpec
    from league.settings.base import Sections
    from learner.cloning.likeness import Likeness

app = typer.Typer(rich_help_panel=Heading.TRAIN, add_completion=False)


@app.command(cls=SeveralPlayers)
def clone(
    context: LeagueContext,
    player: Annotated[
        str, typer.Argument(metavar="PLAYER", help="A rival, a bot, a snapshot or a live player.")
    ],
    against: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PLAYER",
            help="Its opponents (default: the bots of the run's mixes, and the newest main).",
        ),
    ] = None,
    minutes: Annotated[
        float,
        typer.Option(
            min=0.0,
            max=1440.0,
            help="Time for the matches to learn from, and as much again for those that measure.",
        ),
    ] = 3.0,
    name: Annotated[
        str | None, typer.Option("--as", metavar="NAME", help="Its name (default: clone-PLAYER).")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write the weights there, and add them to no league."),
    ] = None,
    temperature: Annotated[
        float | None,
        typer.Option(
            min=0.01,
            max=10.0,
            help="Temperature at which it draws its keys or choices (default: 0.3 for the keys of "
            "bots and rivals, else 1).",
        ),
    ] = None,
    seed: Seed = 0,
    blobs: Blobs = None,
    game: GameName = None,
    assignments: Assignments = None,
) -> None:
    """Trains an agent to play like PLAYER, measures it, and adds it to the running league as a
    member of the category `clone`.
    """
    import torch

    from league.contest.matches import pace_of
    from league.contest.members import Finder, Member
    from league.games.settings import GameSettings
    from league.runs.blobs import BlobFolder
    from learner.cloning.likeness import Original
    from learner.cloning.main import lineage, member_of
    from learner.exploiter.command import sections_of
    from learner.settings import LearnerSettings

    league, finder = context.league, Finder(context.league, game, blobs, assignments or ())
    name = lineage(name, player)
    clone_name = str(SnapshotName(name, 0))
    if out is None and league.address:
        raise InvalidInput("a clone's weights go into the run's own folder: name it with --run-dir")
    if out is None:
        league.require_running("clone")
    finder.settings([player], alone=True)  # raises for mixtures
    sections, _ = sections_of(finder, [player])
    settings = sections.of(GameSettings)
    spec = settings.spec()
    names = against or default_opponents(finder, sections, spec)
    entrant, *opponents = finder.entrants(spec, [player, *names])
    opponents = [one for one in opponents if one.shares != entrant.shares]
    if not opponents:
        raise InvalidInput(f"{player} has no opponents but itself: name some with --against")
    members = [member for one in (entrant, *opponents) for member in one.members]
    pace_of(settings, members, settings.frame_skip)  # raises for networks with another frame skip
    if out is not None:
        private_folder(out)
    folder = BlobFolder(out or league.folder() / "blobs")
    if out is None and any(known.name == clone_name for known in finder.players):
        raise AlreadyExists(f"the league has {clone_name} already: choose another name with --as")
    torch.set_num_threads(sections.of(LearnerSettings).threads)
    with progress() as show:
        original = Original(
            settings=settings, entrant=entrant, opponents=opponents, seed=seed,
            seconds=60.0 * minutes, temperature=temperature, show=show,
        )  # fmt: skip
        digest, card = original.cloned(sections, folder)
        likeness = original.likeness(Member(name=clone_name, digest=digest, blobs=folder))
    _print(likeness)
    place = folder.path(digest)
    if out is None:
        with league.connect() as client:
            client.register_players([member_of(name, digest, card)])
        say(f"{clone_name} is in {league.folder()} now: learners meet it if their mix names clone")
    say(f"written: {place} (bin/start-league --from trains on from it)")


def default_opponents(finder: Finder, sections: Sections, spec: GameSpec) -> list[str]:
    """Returns the opponents to use without `--against`.

    These are all bots in the run's opponent mixes, except bots that are held out for the evaluator.
    If there is a run, the newest snapshot of a main is added. A main is a learner that is not an
    exploiter.
    """
    named = {name for mix in sections["matchmaker"]["mixes"].values() for name in mix}
    names = [bot.name for bot in spec.bots if bot.name in named and not bot.held_out]
    if finder.league.address or finder.league.run_dir is not None:
        mains = [
            one for one in finder.players
            if one.kind is PlayerKind.SNAPSHOT and one.role is Role.MAIN
            and one.state is PlayerState.ACTIVE
        ]  # fmt: skip
        names += [max(mains, key=lambda one: one.step).name] if mains else []
    return names


def _print(likeness: Likeness) -> None:
    from learner.cloning.likeness import share_of

    rows = []
    columns = {**likeness.points, likeness.original: (likeness.direct, [])}
    for opponent, both in columns.items():
        shares = [share_of(points) for points in both if points]
        cells = [cell for share in shares for cell in (f"{share.value:.1%}", interval(share))]
        rows.append((opponent, str(len(both[0])), *cells, *[""] * (4 - len(cells))))
    print_table(
        f"{likeness.clone} and {likeness.original}",
        ("opponent", "matches#", "clone#", "interval#", f"{likeness.original}#", "interval#"),
        rows,
    )
    for sentence in likeness.sentences():
        print(sentence)
