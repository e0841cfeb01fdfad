"""Defines the commands that change a league: ``pin``, ``quarantine``, ``stage``, ``pause``,
``resume``, ``import``, ``add`` and ``remove``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from league.console.options import Heading
from league.console.output import operator, print_pairs, print_table, say, when
from league.contest.command import LeagueCommand, LeagueContext, SeveralPlayers
from league.contest.imports import import_snapshots
from league.errors import InvalidInput
from league.players import Book, PlayerKind, PlayerState
from league.stages import (
    NEXT,
    CurriculumStatus,
    Stage,
    evidence_after,
    named_stage,
    one_curriculum,
)

if TYPE_CHECKING:
    from league.rpc.client import MatchmakerClient

app = typer.Typer(rich_help_panel=Heading.CHANGE, add_completion=False)

ANCHORS = "player mu#"
QUARANTINED = "player kind step#"
STAGES = "on stage mix reward ends_by_wins ends_by_steps"
IMPORTED = "player from mu# digest"

Name = Annotated[
    str | None, typer.Argument(metavar="NAME", help="A bot or snapshot; without it: list them.")
]


@app.command(cls=LeagueCommand)
def pin(
    context: LeagueContext,
    player: Name = None,
    mu: Annotated[
        float | None, typer.Option(metavar="POINTS", help="Its rating; a new player has 25.")
    ] = None,
    unpin: Annotated[
        bool, typer.Option("--unpin", help="Rate it again, from its rating before the pin.")
    ] = False,
) -> None:
    """Pins a player at a fixed rating, which makes it an anchor, or unpins it. Without a name,
    lists the anchors.
    """
    _check_change(player, mu is not None, unpin, "--mu POINTS or --unpin")
    if player is not None:
        context.league.require_running("pin")
    with context.league.connect() as client:
        if player is None:
            rows = [(name, f"{value:.2f}") for name, value in sorted(client.anchors().items())]
            print_table("Anchors", ANCHORS, rows)
        elif mu is None:
            position = client.unpin_rating(player, operator()) + 1
            say(f"{player} is rated by its results from log position {position} on")
        else:
            position = client.pin_rating(player, mu, operator()) + 1
            say(f"{player} stays at {mu:.2f} points from log position {position} on")


@app.command(cls=LeagueCommand)
def quarantine(
    context: LeagueContext,
    player: Name = None,
    reason: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Why; the log keeps it.")
    ] = None,
    release: Annotated[bool, typer.Option("--release", help="Let others meet it again.")] = False,
    worker: Annotated[
        str | None, typer.Option(metavar="NAME", help="An evaluator, instead of a player.")
    ] = None,
    repaired: Annotated[
        bool,
        typer.Option("--repaired", help="With --release: old results still don't count."),
    ] = False,
) -> None:
    """Keeps a player or an evaluator out of new matches, or releases it. Without a name, lists the
    quarantined players and evaluators.
    """
    if player is not None and worker is not None:
        raise InvalidInput(f"name the player {player} or the worker {worker}, one at a time")
    if repaired and not (worker and release):
        raise InvalidInput("--repaired is for --worker NAME --release: add these, or leave it out")
    flags = "--reason TEXT or --release"
    _check_change(player or worker, reason is not None, release, flags)
    if player is not None or worker is not None:
        context.league.require_running("change the quarantine")
    with context.league.connect() as client:
        if worker is not None:
            _quarantine_worker(client, worker, reason, repaired=repaired)
        elif player is None:
            quarantined = client.players(states=[PlayerState.QUARANTINED])
            rows = [(player.name, player.kind.value, f"{player.step}") for player in quarantined]
            workers = [worker for worker in client.status().workers if worker.is_quarantined]
            rows += [(worker.worker, "worker", f"{worker.step}") for worker in workers]
            print_table("In quarantine", QUARANTINED, rows)
        elif reason is None:
            state = client.release_player(player, operator())
            say(f"{player} is {state.value} again")
        else:
            client.quarantine(player, reason, operator())
            say(f"{player} gets no matches until `bin/league quarantine {player} --release`")


def _quarantine_worker(
    client: MatchmakerClient, worker: str, reason: str | None, *, repaired: bool
) -> None:
    if reason is None:
        results = client.release_worker(worker, operator(), repaired=repaired)
        counts = f"{results:,} results of its count again" if results else "no more results count"
        say(f"{worker} gets matches again; {counts}")
    else:
        results = client.quarantine_worker(worker, reason, operator())
        say(
            f"{worker} and {results:,} results are out until "
            f"`bin/league quarantine --worker {worker} --release`"
        )


def _check_change(player: str | None, first: bool, second: bool, flags: str) -> None:
    """Raises `InvalidInput` unless there is a name with exactly one of two flags, or neither a name
    nor a flag.
    """
    if first + second != (player is not None):
        raise InvalidInput(f"name a player and give {flags}; or give nothing, to list them")


@app.command(cls=LeagueCommand)
def stage(
    context: LeagueContext,
    stage: Annotated[
        str | None,
        typer.Argument(metavar="STAGE", help=f"The stage to enter ({NEXT}: the following one)."),
    ] = None,
    player: Annotated[
        str, typer.Option(metavar="NAME", help="The live player, where there are several.")
    ] = "",
) -> None:
    """Shows a learner's curriculum stages, or asks the learner to enter one."""
    with context.league.connect() as client:
        status = one_curriculum(client.curricula(), player)
        if stage is None:
            rows = [_stage_row(stage, stage == status.stage) for stage in status.stages]
            print_table(f"Stages of {status.player}", STAGES, rows)
            print_pairs(_stage_facts(client, status))
            return
        named_stage(status, stage)  # checked first: a wrong name is reported even after the run
        context.league.require_running("ask")
        asked = client.ask_stage(stage, operator(), status.player)
        say(f"{status.player} will enter stage {asked.stage!r} before its next rollout")


def _stage_row(stage: Stage, is_on: bool) -> tuple[str, ...]:
    wins = ""
    if stage.until_opponent:
        wins = f"{stage.until_win_rate:.0%} against {stage.until_opponent}"
    steps = "" if stage.max_steps is None else f"{stage.max_steps:,}"
    return ("*" if is_on else "", stage.name, stage.mix, stage.reward, wins, steps)


def _stage_facts(client: MatchmakerClient, status: CurriculumStatus) -> list[tuple[str, str]]:
    """Returns lines about the current stage, its goal, and the estimate of the win rate."""
    stage, place = status.stage, status.place
    how = "by hand" if place.by_hand else "by itself"
    begun = f"{place.since_step:,} ({how})" if place.since_step or place.by_hand else "0"
    lines = [("stage", stage.name), ("since step", begun), ("now at step", f"{status.step:,}")]
    if status.done:
        return [*lines, ("ended by", "nothing more: all steps are done")]
    ends = []
    if stage.until_opponent:
        lines.append(("estimate", _estimate(client, status)))
        ends.append(
            f"an estimate of {stage.until_win_rate:.0%} wins against {stage.until_opponent}"
        )
    if stage.max_steps is not None:
        left = max(0, place.since_step + stage.max_steps - status.step)
        ends.append(f"its time-out in {left:,} steps")
    ended = ", or ".join(ends) or f"hand alone (bin/league stage {NEXT})"
    if place.index + 1 == len(status.stages):
        ended = "the end of the run: it is the last stage"
    lines.append(("ended by", ended))
    if status.asked is not None:
        asked = status.asked
        lines.append(("asked for", f"{asked.stage} by {asked.by} at {when(asked.at)}"))
    return lines


def _estimate(client: MatchmakerClient, status: CurriculumStatus) -> str:
    """Returns the learner's current win rate with its interval, from the learner's own formula."""
    from league.stats.climb import FEWEST_MATCHES, goal_reached, win_rate_now

    player, stage, opponent = status.player, status.stage, status.stage.until_opponent
    clean = client.payoff(Book.EVAL, columns=[opponent])
    training = client.payoff(Book.TRAIN, columns=[opponent], climb=True)
    after, least = evidence_after(status.place), stage.min_matches
    rate = win_rate_now(player, clean, training, status.step, after=after, least=least)
    if rate is None:
        since = " of a snapshot frozen since then" if status.place.by_hand else ""
        return f"none yet: no match{since} against {opponent} has been reported"
    few = "" if rate.matches >= FEWEST_MATCHES else f", fewer than {FEWEST_MATCHES}"
    reached = "reached" if goal_reached(stage, rate) else "not reached"
    return f"{rate.sentence(player, opponent)}{few}: goal {reached}"


@app.command(cls=LeagueCommand)
def pause(context: LeagueContext) -> None:
    """Pauses the learners before their next rollouts. The evaluator continues."""
    context.league.require_running("pause it")
    with context.league.connect() as client:
        client.pause_learners(operator())
    say("learners hold before their next rollouts until `bin/league resume`")


@app.command(cls=LeagueCommand)
def resume(context: LeagueContext) -> None:
    """Ends a pause of the learners."""
    context.league.require_running("resume it")
    with context.league.connect() as client:
        pause = client.pause_learners(operator(), resume=True)
    say(f"learners go on; {pause.by} had paused them at {when(pause.at)}")


@app.command("import", cls=SeveralPlayers)
def import_(
    context: LeagueContext,
    source: Annotated[Path, typer.Argument(metavar="RUN", help="The run they come from.")],
    players: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Snapshots or shell patterns (default: all with clean matches)."
        ),
    ] = None,
    prefix: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The beginning of their names (default: RUN's name)."),
    ] = None,
    sample: Annotated[
        bool,
        typer.Option("--sample", help="Learners meet them too, not only the evaluator."),
    ] = False,
) -> None:
    """Imports another run's snapshots as anchors, which keep their ratings from that run."""
    league = context.league
    imported = import_snapshots(league, source, players or ["*"], prefix=prefix, sample=sample)
    rows = [
        (row.anchor.name, row.origin.player.name, f"{row.origin.mu:.2f}", row.anchor.digest[:12])
        for row in imported
    ]
    print_table("Imported", IMPORTED, rows)
    count = "1 snapshot is an anchor" if len(rows) == 1 else f"{len(rows)} snapshots are anchors"
    meets = "learners and the evaluator" if sample else "the evaluator only"
    say(f"{count} in {league.folder()} now, from {source}, for {meets}")


@app.command(cls=LeagueCommand)
def add(
    context: LeagueContext,
    path: Annotated[
        Path,
        typer.Argument(
            metavar="FILE|FOLDER|HOST:PORT",
            help="An agent for the AI² tournament, a model (.zip of Stable-Baselines3, .onnx), a "
            "player that runs (bin/league player), or a snapshot (.safetensors).",
        ),
    ],
    name: Annotated[str, typer.Option("--as", metavar="NAME", help="Its name in the league.")],
    trust: Annotated[
        bool, typer.Option("--trust", help="Run its Python with your rights, without asking.")
    ] = False,
    player_token: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A file with the token that the running player wants."),
    ] = None,
    player_tls: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="A folder with its ca.pem, and with client.pem and client.key."
        ),
    ] = None,
) -> None:
    """Adds another person's agent to a running league as a rival, or adds another run's snapshot.
    All learners and the evaluator can meet it.
    """
    from league.contest.rivals import add_member  # this loads the compiler

    player = add_member(
        context.league, path, name, trust=trust, token_file=player_token, tls=player_tls
    )
    if player.state is PlayerState.QUARANTINED:
        say(f"{name} is in quarantine: bin/league quarantine {name} --release lets it play again")
        return
    names = ("rivals", name) if player.kind is PlayerKind.RIVAL else ("snapshots",)
    say(
        f"{player.name} ({player.digest[:12]}) is in {context.league.folder()} now: the evaluator "
        f"rates it, and learners meet it if their mix names {' or '.join(names)}"
    )
    config = context.league.folder() / "config.toml"
    if config.is_file():  # a matchmaker that was started alone has no settings file
        with context.league.connect() as client:
            for sentence in _meetings(client, config, names):
                say(sentence)


def _meetings(client: MatchmakerClient, config: Path, names: Sequence[str]) -> Iterator[str]:
    """Yields sentences that say in which stages each learner meets an added player.

    `names` has the categories of a mix that contain the player. For each learner, a sentence lists
    the stages, from the current stage on, whose mix has such a category. If there are other stages,
    another sentence names the command that adds the player to their mixes.
    """
    from league.settings.presets import read_tables

    mixes = read_tables(config).sections.get("matchmaker", {}).get("mixes", {})
    status = client.status()
    for learner in client.curricula():
        stages = learner.stages[learner.place.index :]
        weights = {stage.mix: {**mixes.get(stage.mix, {})} for stage in stages}
        for change in status.changes:
            weights.get(change.mix, {}).update(change.weights)
        for share in status.shares:  # the current mix, including its changes
            if share.player == learner.player and share.mix in weights:
                weights[share.mix][share.category] = share.configured
        lacking = {mix for mix, of_mix in weights.items() if not any(map(of_mix.get, names))}
        meet = [stage.name for stage in stages if stage.mix not in lacking]
        yield f"stages in which {learner.player} meets it from now on: {', '.join(meet) or 'none'}"
        if lacking:
            others = ", ".join(stage.name for stage in stages if stage.mix in lacking)
            words = " ".join(f"{mix}.{names[-1]}=1" for mix in weights if mix in lacking)
            yield f"stages in which it does not: {others}. For these: bin/league mix set {words}"


@app.command(cls=LeagueCommand)
def remove(
    context: LeagueContext,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The rival.")],
) -> None:
    """Removes a rival. It gets no new matches, but its results stay."""
    context.league.require_running("remove")
    with context.league.connect() as client:
        client.remove_rival(name, operator())
    say(f"{name} gets no new matches until `bin/league add` returns it")
