"""How long a real matchmaker takes to assign a match and to take its result, asked over
loopback.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from league.errors import LeagueError
from league.games.base import GameSpec
from league.ids import new_id
from league.players import Assignment, MatchResult, Player, PlayerKind, SeatResult
from league.rpc.client import MatchmakerClient
from league.settings.base import Sections
from league.settings.file import write_config
from learner.profile.rows import Spread

START_SECONDS = 30.0


@dataclass(frozen=True, kw_only=True)
class RoundTrip:
    """Milliseconds a match, assigned and reported, in batches as the learner asks."""

    milliseconds: Spread
    batch: int


def measure_round_trip(
    sections: Sections,
    spec: GameSpec,
    live: Player,
    snapshots: Sequence[Player],
    folder: Path,
    seconds: float,
) -> RoundTrip | None:
    """Asks a matchmaker of these settings, started for it in `folder`; None when it can't be
    asked.
    """
    config = folder / "config.toml"
    # no evaluator
    write_config(config, sections | {"matchmaker": sections["matchmaker"] | {"admit": "all"}})
    files = ["--db", str(folder / "league.db"), "--config", str(config)]
    process = subprocess.Popen(
        [sys.executable, "-m", "matchmaker", "--port", "0", *files],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout is not None
        word, _, port = process.stdout.readline().strip().partition(" ")
        if word != "ready":
            return None
        with MatchmakerClient(f"127.0.0.1:{port}", wait_seconds=START_SECONDS) as client:
            return _ask(client, sections, spec, live, snapshots, seconds)
    except LeagueError:
        return None
    finally:
        process.terminate()
        process.communicate()


def _ask(
    client: MatchmakerClient,
    sections: Sections,
    spec: GameSpec,
    live: Player,
    snapshots: Sequence[Player],
    seconds: float,
) -> RoundTrip:
    bots = [
        Player(name=b.name, game=spec.name, kind=PlayerKind.BOT, held_out=b.held_out)
        for b in spec.bots
    ]
    client.register_players([*bots, live, *snapshots])
    incarnation = client.open_incarnation(live.creator, live.name).number
    batch, mix = sections["learner"]["matches_ahead"], sections["curriculum"]["stages"][-1]["mix"]
    times: list[float] = []
    end = time.perf_counter() + seconds
    while not times or time.perf_counter() < end:
        started = time.perf_counter()
        assignments = client.acquire_matches(incarnation, batch, mix)
        client.report_results(
            incarnation, [_won(match) for match in assignments], request_id=new_id()
        )
        times.append(1000 * (time.perf_counter() - started) / batch)
    # the first one warms up
    return RoundTrip(milliseconds=Spread.of(times[1:] or times), batch=batch)


def _won(assignment: Assignment) -> MatchResult:
    first, second = (
        SeatResult(player=player.name, digest=player.digest) for player in assignment.seats
    )
    return MatchResult(
        match_id=assignment.match_id,
        lease_token=assignment.lease_token,
        outcome=1.0,
        frames=1,
        seats=(first, second),
        finished_at=time.time(),
    )
