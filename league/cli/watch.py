"""``league watch``: the league's events as they come. Ctrl-C ends it."""

from __future__ import annotations

import argparse
import json
from typing import Any

from league.cli import connect
from league.cli.output import plain, when
from league.errors import InvalidInput, nearest
from league.players import EVENT_KINDS, Event


def add_arguments(parser: argparse.ArgumentParser) -> None:
    connect.add_arguments(parser)
    parser.add_argument(
        "--after", type=int, default=0, metavar="N", help="begin behind event N (default 0: all)"
    )
    parser.add_argument("--new", action="store_true", help="only what happens from now on")
    parser.add_argument(
        "--kind",
        action="append",
        default=[],
        help=f"only events of this kind; repeatable: {', '.join(EVENT_KINDS)}",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object per line")


def run(args: argparse.Namespace) -> int:
    for kind in args.kind:
        if kind not in EVENT_KINDS:
            hint = nearest(kind, EVENT_KINDS) or f"there are {', '.join(EVENT_KINDS)}"
            raise InvalidInput(f"there is no kind of event {kind!r}: {hint}")
    with connect.connect(args) as client:
        try:
            for event in client.watch(after=-1 if args.new else args.after):
                if not args.kind or event.kind in args.kind:
                    print(_json(event) if args.json else _line(event), flush=True)
        except KeyboardInterrupt:
            pass
    return 0


def _line(event: Event) -> str:
    match_id = _data(event).get("match_id")
    words = f"{event.text} (match {match_id})" if match_id else event.text
    return f"{event.position}\t{when(event.at)}\t{event.kind}\t{plain(words)}"


def _json(event: Event) -> str:
    told = {"position": event.position, "at": event.at, "kind": event.kind, "text": event.text}
    return json.dumps(told | {"data": _data(event)}, sort_keys=True)


def _data(event: Event) -> dict[str, Any]:
    return json.loads(event.data_json) if event.data_json else {}
