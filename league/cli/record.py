"""``league record`` and ``exploitability``: many matches, and exact values of small games."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from league.cli.connection import League, with_league
from league.cli.options import AsJson, Blobs, GameName, Greedy, Seed
from league.cli.output import columns, print_table, say
from league.errors import InvalidInput
from league.games.base import CHOICE, EXTERNAL

if TYPE_CHECKING:  # these load numpy, numba and torch
    from league.cli.members import Member
    from league.games.base import GameSpec
    from league.games.settings import GameSettings

SCORES = columns(
    "player opponent matches# wins# draws# losses# score# score_as_first# score_as_second#"
)
VALUES = columns("player nash_conv# exploitability# value# best_as_first# best_as_second#")
VALUES_CAPTION = (
    "payoffs a match: nash_conv = best_as_first + best_as_second, what best responses win; "
    "exploitability is half of that, 0 in equilibrium; value: of the first seat against itself"
)
MOST_MATCHES = 100_000
LONGEST_PACE = 30


@with_league
def record(
    league: League,
    player: Annotated[
        str, typer.Argument(metavar="PLAYER", help="A bot, a snapshot, or a .safetensors file.")
    ],
    opponents: Annotated[list[str], typer.Argument(metavar="OPPONENT...", help="One or more.")],
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder for the replays (default: none).")
    ] = None,
    matches: Annotated[
        int, typer.Option(min=1, max=MOST_MATCHES, help="Against each opponent, seats swapped.")
    ] = 100,
    seed: Seed = 0,
    pace: Annotated[
        int,
        typer.Option(
            min=1,
            max=LONGEST_PACE,
            metavar="N",
            help="PLAYER, a bot, holds its keys for N frames, as an agent with frame_skip N does.",
        ),
    ] = 1,
    disturb: Annotated[
        float,
        typer.Option(
            min=0.0,
            max=0.5,
            metavar="SHARE",
            help="Share of the time that PLAYER errs, so that a clone learns how it recovers.",
        ),
    ] = 0.0,
    greedy: Greedy = False,
    blobs: Blobs = None,
    game: GameName = None,
) -> None:
    """Plays many matches of PLAYER against each OPPONENT, and keeps them as replays."""
    from league.agent.recorded_matches import paired, play_bouts
    from league.cli.members import Finder
    from league.replay import SUFFIX, Contender, Recipe, save_replay

    finder, names = Finder(league, game, blobs), [player, *opponents]
    settings = finder.settings(names)
    changes_keys = bool(disturb) or pace > 1
    if changes_keys and settings.spec().action_kind == CHOICE:
        raise InvalidInput(
            f"--pace and --disturb change keys, and {settings.name} is a game of choices"
        )
    first, *others = finder.find(settings.spec(), names)
    _make_folder(out)
    if settings.name == "brawl":
        say("(brawl; the first match on a machine takes a moment to compile)")
    rows = []
    for other in others:
        frame_skip = _frame_skip(settings, (first, other), pace)
        bouts = paired(
            Contender(name=first.name, digest=first.digest),
            Contender(name=other.name, digest=other.digest),
            (_bot(first), _bot(other)),
            matches,
            seed,
            pupil=first.name if changes_keys else "",
        )
        played: list[tuple[int, float]] = []
        for replay in play_bouts(
            Recipe.of(settings),
            bouts,
            _loader((first, other)),
            frame_skip=frame_skip,
            seed=seed,
            greedy=greedy,
            pace=pace,
            disturb=disturb,
        ):
            if out is not None:
                save_replay(out / f"{replay.match_id}{SUFFIX}", replay)
            # a member that meets itself counts as the first seat
            seat = 0 if replay.seats[0].name == first.name else 1
            played.append((seat, replay.outcome if seat == 0 else 1.0 - replay.outcome))
        if len(played) < len(bouts):
            say(f"({len(bouts) - len(played)} matches could not be finished and do not count)")
        rows.append(_score_row(first, other, played))
    print_table("Matches", SCORES, rows)
    if out is not None:
        say(f"kept in {out}: bin/league replay FILE shows one, bin/learner clone learns from all")


def _frame_skip(settings: GameSettings, members: Sequence[Member], pace: int) -> int:
    """The frames that the members' networks hold their keys for, which must be equal."""
    from league.agent.snapshot import read_card

    skips = {}
    for member in members:
        if member.blobs is None:
            continue
        card = read_card(member.blobs, member.digest)
        if card.game != settings.name:
            raise InvalidInput(
                f"{member.name} plays {card.game}, not {settings.name}: name another member"
            )
        skips[member.name] = card.frame_skip
    if len(set(skips.values())) > 1:
        listed = " and ".join(f"{name} every {skip} frames" for name, skip in skips.items())
        raise InvalidInput(f"{listed} decide at different paces: name players of one pace, or bots")
    for name, skip in skips.items():
        if pace not in (1, skip):
            raise InvalidInput(f"--pace {pace}: {name} decides every {skip} frames, give that pace")
    return next(iter(skips.values()), 1)


def _loader(members: Sequence[Member]) -> Callable[[str], Any]:
    """Loads the network of a digest."""
    from league.agent.snapshot import load_snapshot

    folders = {member.digest: member.blobs for member in members if member.blobs is not None}
    return lambda digest: load_snapshot(folders[digest], digest)[0]


def _make_folder(folder: Path | None) -> None:
    if folder is None:
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(
            f"--out {folder} can't be a folder ({error.strerror}): name another place"
        ) from None


def _bot(member: Member) -> int:
    return EXTERNAL if member.bot is None else member.bot


def _score_row(
    player: Member, opponent: Member, played: Sequence[tuple[int, float]]
) -> tuple[str, ...]:
    outcomes = [outcome for _, outcome in played]
    counts = [str(outcomes.count(value)) for value in (1.0, 0.5, 0.0)]
    sides = [[outcome for seat, outcome in played if seat == side] for side in (0, 1)]
    scores = [f"{100 * sum(some) / len(some):.1f}%" if some else "" for some in (outcomes, *sides)]
    return (player.name, opponent.name, str(len(played)), *counts, *scores)


@with_league
def exploitability(
    league: League,
    players: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PLAYER...]",
            help="Bots, snapshots or .safetensors files (default: every snapshot of the run).",
        ),
    ] = None,
    blobs: Blobs = None,
    game: GameName = None,
    greedy: Greedy = False,
    as_json: AsJson = False,
) -> None:
    """Computes what a best response wins against members, exactly, in small games."""
    from league.cli.members import Finder
    from league.games import exact

    finder = Finder(league, game, blobs)
    names = players or finder.snapshots()
    settings = finder.settings(names)
    played = settings.make(1)
    try:
        tree = exact.game_tree(exact.rules_of(played))
    finally:
        played.close()
    rows = []
    for member in finder.find(played.spec, names):
        table = _strategy(tree, played.spec, member, greedy)
        numbers = (
            exact.nash_conv(tree, table),
            exact.exploitability(tree, table),
            exact.expected_value(tree, table),
            exact.best_response_value(tree, table, 0),
            exact.best_response_value(tree, table, 1),
        )
        rows.append((member.name, *numbers))
    if as_json:
        for row in rows:
            print(json.dumps(dict(zip((column.name for column in VALUES), row, strict=True))))
        return
    # adding 0.0 removes the sign of a rounded zero
    cells = [(name, *(f"{round(x, 6) + 0.0:.6f}" for x in numbers)) for name, *numbers in rows]
    print_table(f"Exploitability in {settings.name}", VALUES, cells, caption=VALUES_CAPTION)


def _strategy(tree: Any, spec: GameSpec, member: Member, greedy: bool) -> Any:
    """The member's probabilities at every decision of the tree."""
    from league.games.exact import strategy_table, table_of

    if member.bot is not None:
        return strategy_table(tree, tree.rules.bots[member.bot].strategy)
    from league.agent.history_policy import answers
    from league.agent.snapshot import load_snapshot
    from league.cli.members import check_sizes

    assert member.blobs is not None
    network, card = load_snapshot(member.blobs, member.digest)
    if (card.game, card.game_version) != (spec.name, spec.version):
        raise InvalidInput(
            f"{member.name} plays {card.game} version {card.game_version}, this is {spec.name} "
            f"version {spec.version}: name the game with --game, or the run with --run-dir"
        )
    check_sizes(member.name, card.agent, spec)
    return table_of(tree, lambda asked: answers(network, asked, greedy=greedy))
