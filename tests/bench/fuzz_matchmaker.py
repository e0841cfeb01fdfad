"""Fuzzes both services of a matchmaker's real process: malformed messages, as many as one likes.

    .venv/bin/python tests/bench/fuzz_matchmaker.py [--messages 1000000] [--seed 0] [--typed 0.1]

A tenth are messages with any values in any fields (hypothesis strategies made from the
descriptors), six tenths valid messages with bytes changed, the rest random bytes. Every one must be
refused with one of the codes of `fuzzing.REFUSALS`, in a sentence, or be answered. The log may
change only by messages that were obeyed: its positions are compared after every message that was
refused, and a hash of its tables over every few hundred of which none was obeyed. In the end the
process must live, close whole, and have no traceback in its log. Prints a line a minute and a table
of codes.
"""

from __future__ import annotations

import argparse
import itertools
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc

sys.path.insert(0, str(Path(__file__).parents[2]))  # learner.py beside this file is not the package
sys.path.insert(0, str(Path(__file__).parents[1] / "service"))
from fuzzing import Finding, Fuzzer
from small_league import BOTS, SmallLeague, bot, live, snapshot
from spoilt_requests import SERVICES, lasting_requests
from test_bounds import hash_of_log, positions_of
from test_fuzzing import AUDITED

from league.clock import ManualClock
from league.rpc.client import MatchmakerClient
from matchmaker.store.sqlite import SqliteStore
from matchmaker.tools.fsck import fsck

BATCH = 1000
RENEWED = 20
"""Batches after which the valid messages are made anew: a message may have fenced their workers."""
SETTINGS = """
[matchmaker]
"""


@contextmanager
def served(folder: Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    (folder / "config.toml").write_text(SETTINGS)
    command = [sys.executable, "-m", "matchmaker", "--db", str(folder / "league.db"), "--port", "0"]
    log = (folder / "log").open("w")
    process = subprocess.Popen(
        [*command, "--config", str(folder / "config.toml")],
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield f"127.0.0.1:{process.stdout.readline().split()[1]}", process
    finally:
        process.kill()
        process.wait()
        log.close()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--typed", type=float, default=0.1, help="share of messages with any values in fields"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with served(folder) as (address, process):
            try:
                fuzzer = fuzz(address, folder, options)
            except Finding as finding:
                print(f"FOUND: {finding}")
                return 1
            alive = process.poll() is None
            process.terminate()
            ended = process.wait(20)
        log = (folder / "log").read_text()
        findings, summary = fsck(folder / "league.db")
    print("| code | messages |\n|---|---|")
    for code, count in fuzzer.tally.codes.most_common():
        print(f"| {code} | {count:,} |")
    print(f"obeyed: {dict(fuzzer.tally.obeyed) or 'none'}; the log: {summary}")
    faults = [f"the process had ended ({ended})"] * (not alive) + [f"it ended with {ended}"] * (
        ended != 0
    )
    faults += ["its log holds a traceback"] * ("Traceback" in log) + findings
    print(
        "\n".join(faults) if faults else "no crash, no traceback, no change but by what was obeyed"
    )
    return 1 if faults else 0


def fuzz(address: str, folder: Path, options: argparse.Namespace) -> Fuzzer:
    store = SqliteStore(folder / "league.db", read_only=True)
    with MatchmakerClient(address) as client, grpc.insecure_channel(address) as channel:
        client.register_players([*(bot(name) for name in BOTS), live(), snapshot(1000)])
        league = SmallLeague(None, client, ManualClock())  # type: ignore[arg-type]
        fuzzer = Fuzzer(
            channel,
            SERVICES,
            lasting_requests(league),
            lambda: hash_of_log(store),
            lambda: positions_of(store),
            options.seed,
            AUDITED,
        )
        began = said = time.monotonic()
        for number in itertools.count(1):
            if fuzzer.tally.messages >= options.messages:
                break
            if number % RENEWED == 0:
                fuzzer.renew(lasting_requests(league))
            batch = min(BATCH, options.messages - fuzzer.tally.messages)
            fuzzer.typed(round(options.typed * batch))
            fuzzer.changed(round(0.6 * batch))
            fuzzer.bytes(max(1, batch - round(options.typed * batch) - round(0.6 * batch)))
            if time.monotonic() - said > 60:
                said = time.monotonic()
                done = fuzzer.tally.messages
                print(f"{done:,} messages, {done / (said - began):,.0f} a second", flush=True)
        client.status()
        seconds = time.monotonic() - began
    store.close()
    done = fuzzer.tally.messages
    print(f"{done:,} messages in {seconds:.0f} s, {done / seconds:,.0f} a second")
    return fuzzer


if __name__ == "__main__":
    sys.exit(main())
