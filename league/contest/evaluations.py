"""Requests evaluations, and shows their reports.

An evaluation consists of clean matches (both players frozen), which the run's evaluators play.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

from league.console.output import operator, print_pairs, print_table, progress, say, when
from league.console.text import interval, number
from league.contest.league import League
from league.contest.members import Finder, check_plays, from_file
from league.evaluations import FILES, PAIRED, EvaluationState, Report, mixture_of, targets, text_of
from league.ids import SnapshotName
from league.players import Book, Player, PlayerKind
from league.rpc.client import MatchmakerClient
from league.runs.blobs import SUFFIX, BlobFolder

MEANS = ("damage_dealt", "damage_taken", "knockouts", "falls", "pickups", "payoff")
"""Stats whose means the table shows, if the game has them."""


def ask(
    league: League,
    player: str,
    against: Sequence[str],
    matches: int,
    book: Book,
    game: str | None,
    *,
    wait: bool,
    as_json: bool,
) -> int:
    """Asks the run's evaluators for clean matches and prints the evaluation's number.

    Args:
        player: a member, a mixture or a weights file.
        against: opponents, by default every bot.
        matches: matches against each opponent. An odd number is rounded up.
        book: the kind of matches: with sampled actions (eval) or with the likeliest (greedy).
        game: the flag `--game`.
        wait: whether to wait until the matches have been played, and then print the report.
        as_json: whether to print the report as JSON.

    Returns:
        The exit status.

    Raises:
        Refused: the league is not running.
    """
    league.require_running("ask")
    with league.connect() as client:
        player = _in_league(league, client, player, game)
        bots = [one.name for one in client.players(kinds=[PlayerKind.BOT])]
        met = [_in_league(league, client, one, game) for one in against]
        met = met or [name for name in bots if name not in mixture_of(player)]
        whole = matches + matches % 2  # rounded up to pairs
        asked = client.request_evaluation(player, met, whole, operator(), book)
        report = client.report(asked.number)
        said = f"evaluation {asked.number} of {asked.player} is "
        said += "in the queue of the run's evaluators" if report.is_open else "done"
        if report.matches_done:
            said += f": {report.matches_done} of {report.matches_total} matches are in the log"
        say(said)
        status = client.status()
        evaluators = [one for one in status.workers if not one.player and status.is_running(one)]
        if report.is_open and not evaluators:
            say("(no evaluator is running, so nothing is played: bin/evaluator starts one)")
        if wait:
            report = follow(client, asked.number)
        if wait or as_json:
            return show(report, as_json=as_json)
        print(asked.number)
    return 0


def _in_league(league: League, client: MatchmakerClient, who: str, game: str | None) -> str:
    """Returns the name or mixture `who`. Each weights file in it is replaced by a player of the
    league.
    """
    shares: dict[str, float] = {}
    for name, share in mixture_of(who).items():
        known = _registered(league, client, Path(name), game) if name.endswith(SUFFIX) else name
        shares[known] = shares.get(known, 0.0) + share
    return text_of(shares)


def _registered(league: League, client: MatchmakerClient, file: Path, game: str | None) -> str:
    """Returns the name of the player that has a file's weights, after registering the player if the
    league does not have it.

    A new player is held out of all training, like the players of `bin/league import`. Its weights
    are uploaded if the league is named by its address, and otherwise copied to the run's folder.
    """
    from league.agent.snapshot import load_snapshot

    member = from_file(file)
    for player in client.players(kinds=[PlayerKind.SNAPSHOT, PlayerKind.REFERENCE]):
        if player.digest == member.digest:
            return player.name
    assert member.blobs is not None
    _, card = load_snapshot(member.blobs, member.digest)
    spec = Finder(league, game).settings([]).spec()
    check_plays(str(file), card, spec)
    content = member.blobs.get(member.digest)
    if league.address:
        client.put_blob(content)
    else:
        BlobFolder(league.folder() / "blobs").put(content)
    player = Player(
        name=str(SnapshotName(f"{FILES}:{member.name}", card.step)),
        game=spec.name,
        kind=PlayerKind.SNAPSHOT,
        digest=member.digest,
        step=card.step,
        creator="import",
        card_json=card.to_json(),
        held_out=True,
        milestone=True,  # never retired
    )
    client.register_players([player])
    return player.name


def follow(client: MatchmakerClient, number: int) -> Report:
    """Waits until an evaluation is no longer open, and shows the progress. Returns the report."""
    report = client.report(number)
    with progress() as draw:
        for report in client.watch_reports(number):
            draw(line_of(report))
    return report


def line_of(report: Report) -> str:
    """Returns a line such as «12 main@2000: 40 of 80 matches, open»."""
    evaluation, done = report.evaluation, f"{report.matches_done} of {report.matches_total}"
    return f"{evaluation.number} {evaluation.player}: {done} matches, {evaluation.state.value}"


def show(report: Report, *, as_json: bool = False) -> int:
    """Prints a report. With `as_json`, prints it as JSON with all fields. Returns the exit status:
    1 if the evaluation was cancelled, else 0.
    """
    one = report.evaluation
    status = int(one.state is EvaluationState.CANCELLED)
    if as_json:
        print(json.dumps(asdict(report), default=lambda value: value.value))
        return status
    facts = [
        *(("evaluation", str(one.number)), ("state", one.state.value), ("player", one.player)),
        ("wanted", f"{one.matches} matches against each in the book {one.book.value}"),
        ("played", f"{report.matches_done} of {report.matches_total}"),
        ("asked for", f"by {one.by} at {when(one.at)}"),
    ]
    print_pairs([*facts, ("cancelled by", one.reason)] if status else facts)
    means = [name for name in MEANS if any(name in score.means for score in report.scores)]
    rows = [
        (
            score.opponent,
            *map(str, (score.matches, score.wins, score.draws, score.losses)),
            f"{score.win_rate.value:.1%}" if score.matches else "",
            interval(score.win_rate),
            *(number(score.means[name]) if name in score.means else "" for name in means),
        )
        for score in report.scores
    ]
    captions = ["means a match; the interval is Wilson's of 95 %; a draw is not a win."]
    alone = [replace(one, opponents=(score.opponent,)) for score in report.scores]
    wanted = [sum(target.until for target in targets(evaluation)) for evaluation in alone]
    if any(count > one.matches for count in wanted):
        captions.append(f"More than {one.matches} are wanted: {PAIRED}.")
    if any(score.matches > n for score, n in zip(report.scores, wanted, strict=True)):
        captions.append("More than wanted are there: those played for something else count too.")
    print_table(
        "All clean matches in the log",
        ["opponent", "matches#", "wins#", "draws#", "losses#", "win_rate#", "interval#"]
        + [f"{name}#" for name in means],
        rows,
        caption=" ".join(captions),
        spared=("draws", "losses", "wins", *reversed(means)),
    )
    return status
