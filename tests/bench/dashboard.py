"""How quick the dashboard's pages are on a league of 2,000 players and a million matches.

    .venv/bin/python tests/bench/dashboard.py [MATCHES [PLAYERS]]

It writes the log as the service does, serves it, and opens every page in Chromium. For each page:
the first paint, and the time of a later update in the dashboard's process (nothing of it kept).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))  # a file beside this one is called matchmaker

from matchmaker_log import _lease
from matchmaker_served import Served, fill
from playwright.sync_api import sync_playwright

from league.games.brawl.spec import STATS
from league.players import Book, MatchResult, SeatResult
from league.rpc.client import MatchmakerClient
from league.runs.finding import FORMAT
from league.settings.base import resolve
from league.settings.file import write_config
from league.views.dashboard.app import PAGES
from league.views.dashboard.source import Source
from matchmaker.store.sqlite import SqliteStore

BATCH = 5_000
QUERIES = {
    "/player": "?name={name}",
    "/compare": "?first={name}&second=based",
    "/matches": "?player={name}",
}


def write(db: Path, learner: str, names: list[str], incarnation: int, count: int) -> None:
    """Half of the matches are the learner's in training, half clean ones of two others."""
    rng = np.random.default_rng(1)
    stats = {name: 1.5 * number for number, name in enumerate(STATS)}
    store = SqliteStore(db)
    with store.read() as reader:
        digests = {player.name: player.digest for player in reader.players()}
    for first in range(1, count + 1, BATCH):
        taken = []
        for ordinal in range(first, min(first + BATCH, count + 1)):
            one, other = (names[place] for place in rng.choice(len(names), 2, replace=False))
            is_clean = ordinal % 2 == 0
            lease = _lease(ordinal, incarnation, one if is_clean else learner, other)
            if is_clean:
                lease = lease._replace(book=Book.EVAL, category="gauntlet", mix="", learner_seat=-1)
            seats = tuple(
                SeatResult(player=name, digest=digests[name], step_start=ordinal, stats=stats)
                for name in (lease.seat0, lease.seat1)
            )
            result = MatchResult(
                match_id=lease.match_id,
                lease_token=lease.lease_token,
                outcome=float(rng.choice([0.0, 0.5, 1.0], p=[0.4, 0.1, 0.5])),
                frames=3000,
                seats=(seats[0], seats[1]),
                finished_at=1.0,
            )
            taken.append((result, lease))
        with store.write() as tx:
            tx.add_assignments([lease for _, lease in taken])
            rows = tx.add_results(taken, time.time())
            tx.close_leases([row.ordinal for row in rows], "reported", 1.0, "")
    store.close()


def main(count: int = 1_000_000, players: int = 2_000) -> None:
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder)
        served = Served(run)
        served.start()
        with MatchmakerClient(served.address) as client:
            (learner,) = fill(client, players)
            incarnation = client.open_incarnation("learner-main", learner).number
            names = [one.name for one in client.players() if one.name != learner]
        served.stop()
        write(served.db, learner, names, incarnation, count)
        served.start()
        (run / "run.json").write_text(json.dumps({"format": FORMAT, "version": "0", "preset": "x"}))
        write_config(run / "config.toml", resolve(environment={}))
        if served.db.name != "league.db":
            (run / "league.db").symlink_to(served.db)
        with MatchmakerClient(served.address) as client:
            print(f"{count:,} matches of {len(client.players()):,} players", flush=True)
            updates = _updates(client, run, names[-1])
            paints = _paints(served.address, run, names[-1])
        served.kill()
    print("page\tfirst paint, ms\tupdate, ms")
    for path in PAGES:
        print(f"{path}\t{paints.get(path, 0):.0f}\t{updates.get(path, 0):.0f}")


def _updates(client: MatchmakerClient, run: Path, name: str) -> dict[str, float]:
    """Milliseconds of a second look at each page, when what was kept has expired."""
    source, found = Source(client, run_dir=run, title="bench"), {}
    for path, shown in PAGES.items():
        query = dict(
            pair.split("=")
            for pair in QUERIES.get(path, "").format(name=name)[1:].split("&")
            if pair
        )
        if path == "/match":
            (line, *_), _ = client.matches(limit=1)
            query = {"match": line.match_id}
        shown.show(source, query)
        for kept in source._kept.values():
            kept.until = min(kept.until, 0.0)
        began = time.perf_counter()
        shown.show(source, query)
        found[path] = 1000 * (time.perf_counter() - began)
    source.close()
    return found


def _paints(address: str, run: Path, name: str) -> dict[str, float]:
    """Milliseconds to the first paint with content of each page."""
    command = [sys.executable, "-m", "league.views.dashboard.main", "--matchmaker", address]
    process = subprocess.Popen(
        [*command, "--run-dir", str(run)], stdout=subprocess.PIPE, text=True, env=dict(os.environ)
    )
    assert process.stdout is not None
    base, found = process.stdout.readline().strip(), {}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        for path in PAGES:
            page = browser.new_page()
            page.goto(base + path + QUERIES.get(path, "").format(name=name))
            page.wait_for_selector(".content section")
            script = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
            found[path] = float(page.evaluate(script))
            page.close()
        browser.close()
    process.terminate()
    process.wait()
    return found


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
