"""Fuzzes the calls of the matchmaker's two services in one process, led by the code they reach
(atheris).

    pip install --target /tmp/atheris atheris            # it is no part of the project's
    environment PYTHONPATH=/tmp/atheris .venv/bin/python tests/bench/fuzz_coverage.py [-runs=100000]
    [libFuzzer's flags]

The first byte of an input names the method, the rest is the message. Begins from one good message
for every call. Only `LeagueError` may come out of a call, and the log's positions may change only
by calls that were obeyed. libFuzzer prints what it reaches and stops at the first finding.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import atheris  # type: ignore[import-not-found]

sys.path.insert(0, str(Path(__file__).parents[2]))  # learner.py beside this file is not the package
sys.path.insert(0, str(Path(__file__).parents[1] / "service"))
with atheris.instrument_imports(
    include=["matchmaker", "league.rpc.convert", "league.ids", "league.stages"]
):
    from google.protobuf.message import DecodeError
    from google.protobuf.message_factory import GetMessageClass
    from small_league import small_league
    from spoilt_requests import METHODS, lasting_requests
    from test_bounds import positions_of

    from league.errors import LeagueError
    from matchmaker.api.exploiter_service import ExploiterService

NAMES = sorted(METHODS)
READS = ("Get", "List", "Watch")


def main() -> None:
    flags = ["-runs=100000" if not any(flag.startswith("-runs") for flag in sys.argv) else ""]
    with tempfile.TemporaryDirectory() as name, small_league(Path(name), whole=False) as league:
        corpus = Path(name) / "corpus"
        corpus.mkdir()
        for method, request in lasting_requests(league).items():
            if "request_id" in request.DESCRIPTOR.fields_by_name:
                request.request_id = method  # type: ignore[attr-defined]
            (corpus / method).write_bytes(
                bytes([NAMES.index(method)]) + request.SerializeToString()
            )
        context = SimpleNamespace(is_active=lambda: False)
        store, service = league.server.store, league.server.service
        servers = (service, ExploiterService(service))
        seen = SimpleNamespace(positions=positions_of(store))

        def one(data: bytes) -> None:
            is_obeyed = data and call(servers, NAMES[data[0] % len(NAMES)], data[1:], context)
            before, seen.positions = seen.positions, positions_of(store)
            assert is_obeyed or before == seen.positions, (
                "the log changed though the message was refused"
            )

        atheris.Setup([*filter(None, [*sys.argv, *flags]), str(corpus)], one)
        atheris.Fuzz()


def call(servers: tuple[Any, ...], name: str, raw: bytes, context: object) -> bool:
    """Whether the message was obeyed by a call that may change something."""
    method = METHODS[name]
    server = next(one for one in servers if hasattr(one, name))
    try:
        request = GetMessageClass(method.input_type).FromString(raw)
        reply = getattr(server, name)(request, context)
        if method.server_streaming:
            list(reply)
    except (DecodeError, LeagueError):
        return False
    if name == "ReportResults":
        return any(verdict.accepted for verdict in reply.verdicts)
    return not name.startswith(READS)


if __name__ == "__main__":
    main()
