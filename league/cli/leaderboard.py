"""``league leaderboard export``: the leaderboard as a file for people and programs."""

from __future__ import annotations

import argparse
import csv
import io
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from league.cli import connect
from league.cli.output import say, when
from league.errors import InvalidInput
from league.rpc.client import MatchmakerClient
from league.runs.files import write_whole
from league.views.leaderboard_page import render_html
from league.views.standings import Leaderboard, Standing, gather


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    export = actions.add_parser("export", help="write the leaderboard")
    connect.add_arguments(export)
    connect.add_moment(export)
    export.add_argument(
        "--format", choices=sorted(FORMATS), help="default: what FILE ends in, else md"
    )
    export.add_argument("--out", type=Path, metavar="FILE", help="default: print it")
    export.add_argument("--title", help="heading (default: the run folder's name, or the address)")


def run(args: argparse.Namespace) -> int:
    format_name = args.format or (args.out.suffix.lstrip(".") if args.out else "md")
    if format_name not in FORMATS:
        raise InvalidInput(f"{args.out} tells no format: add --format {'|'.join(sorted(FORMATS))}")
    title = args.title or args.address or str(connect.run_folder(args).resolve().name)
    if getattr(args, "at", None) and not args.title:
        title = f"{title}, as of {args.at}"
    with connect.connect(args) as client:
        board = gather(client, title=title, now=time.time())
    text = FORMATS[format_name](board)
    if args.out is None:
        print(text, end="")
        return 0
    write_whole(args.out, text)
    say(f"{args.out} holds {len(board.standings)} players and {board.matches} matches")
    return 0


def export_all(client: MatchmakerClient, folder: Path, *, title: str, now: float) -> list[Path]:
    """Writes ``leaderboard.md``, ``.csv`` and ``.html`` into `folder` and returns their paths."""
    board = gather(client, title=title, now=now)
    paths = [folder / f"leaderboard.{name}" for name in ("md", "csv", "html")]
    for path in paths:
        write_whole(path, FORMATS[path.suffix[1:]](board))
    return paths


def row_of(standing: Standing) -> dict[str, Any]:
    """One player's line as plain values; None where there is nothing to tell."""
    rating, player = standing.rating, standing.rating.player
    return {
        "rank": rating.rank,
        "player": player.name,
        "kind": player.kind.value,
        "role": player.role.value,
        "state": player.state.value,
        "step": player.step,
        "parent": player.parent,
        "score": round(rating.score, 4),
        "mu": round(rating.mu, 4),
        "sigma": round(rating.sigma, 4),
        "pinned": rating.pinned,
        "games": rating.games,
        "wins": rating.wins,
        "draws": rating.draws,
        "losses": rating.losses,
        "win_rate": _rounded(standing.win_rate),
        "wilson_low": _rounded(standing.interval.low),
        "wilson_high": _rounded(standing.interval.high),
        "greedy_games": standing.greedy_games,
        "greedy_win_rate": _rounded(standing.greedy_win_rate),
        "fit": _rounded(None if standing.fit is None else standing.fit.estimate),
        "fit_low": _rounded(None if standing.fit is None else standing.fit.low),
        "fit_high": _rounded(None if standing.fit is None else standing.fit.high),
        "disagrees": _rounded(standing.gap),
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def render_csv(board: Leaderboard) -> str:
    """One row per player, `row_of`'s columns."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    rows = [row_of(standing) for standing in board.standings]
    writer.writerow(rows[0] if rows else list(_EMPTY_ROW))
    writer.writerows(row.values() for row in rows)
    return text.getvalue()


def render_json(board: Leaderboard) -> str:
    """Everything, payoffs and shares too."""
    cells = [vars(cell) | {"games": cell.games} for cell in board.cells]
    whole = {
        "title": board.title,
        "game": board.game,
        "version": board.version,
        "made_at": board.made_at,
        "log_position": board.log_position,
        "agreement": board.agreement,
        "standings": [row_of(standing) for standing in board.standings],
        "payoff": cells,
        "shares": [vars(share) for share in board.shares],
    }
    return json.dumps(whole, indent=1) + "\n"


MARKDOWN = {
    **{
        "rank": "---:",
        "player": "---",
        "kind": "---",
        "step": "---:",
        "score": "---:",
        "mu": "---:",
    },
    **{"sigma": "---:", "fit 95 %": "---:", "disagrees": "---", "games": "---:", "wins": "---:"},
    **{"wins 95 %": "---:", "greedy": "---:"},
}
"""Columns of the table, and how each is aligned."""


def render_markdown(board: Leaderboard) -> str:
    """A table for a README."""
    lines = [
        f"# Leaderboard of {board.title}",
        "",
        f"{board.game}, {board.matches} clean matches, {when(board.made_at)}. Score = mu − 3 sigma. The fit "
        f"of all games has the 95 % interval of mu. {board.agreement} Wins have a 95 % Wilson interval; a "
        "draw is not a win.",
        "",
        f"| {' | '.join(MARKDOWN)} |",
        f"|{'|'.join(MARKDOWN.values())}|",
    ]
    lines += [_markdown_row(standing) for standing in board.standings]
    return "\n".join(lines) + "\n"


def _markdown_row(standing: Standing) -> str:
    rating, player = standing.rating, standing.rating.player
    cells = (
        str(rating.rank),
        f"{player.name} (anchor)" if rating.pinned else player.name,
        player.kind.value,
        f"{player.step:,}" if player.step else "",
        f"**{rating.score:.2f}**",
        f"{rating.mu:.2f}",
        f"{rating.sigma:.2f}",
        "" if standing.fit is None else f"{standing.fit.low:.2f}–{standing.fit.high:.2f}",
        "" if standing.gap is None else f"mu {standing.gap:+.1f}",
        str(rating.games),
        percent(standing.win_rate),
        f"{percent(standing.interval.low)}–{percent(standing.interval.high)}"
        if rating.games
        else "",
        percent(standing.greedy_win_rate),
    )
    return f"| {' | '.join(cells)} |"


def percent(value: float | None) -> str:
    """A share as text, "" for none."""
    return "" if value is None else f"{100 * value:.1f} %"


_EMPTY_ROW = (
    *(
        "rank",
        "player",
        "kind",
        "role",
        "state",
        "step",
        "parent",
        "score",
        "mu",
        "sigma",
        "pinned",
    ),
    *("games", "wins", "draws", "losses", "win_rate", "wilson_low", "wilson_high"),
    *("greedy_games", "greedy_win_rate", "fit", "fit_low", "fit_high", "disagrees"),
)
FORMATS: dict[str, Callable[[Leaderboard], str]] = {
    "csv": render_csv,
    "html": render_html,
    "json": render_json,
    "md": render_markdown,
}
