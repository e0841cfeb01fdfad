"""Measures how fast the dashboard's pages are in a league of 2,000 players and a million matches.

    .venv/bin/python tests/bench/dashboard.py [MATCHES [PLAYERS]]

The script writes the log as the matchmaker does, serves it, and opens every page in Chromium. For
each page it prints the time to the first paint, and the time that the dashboard's process takes for
a later update without cached data.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))  # matchmaker.py here is not the package

from matchmaker_log import write
from matchmaker_served import Served, fill
from playwright.sync_api import sync_playwright

from league.rpc.client import MatchmakerClient
from league.runs.finding import FORMAT
from league.runs.folder import write_config
from league.settings.base import resolve
from league.views.dashboard.app import PAGES
from league.views.dashboard.pages.payoffs import STRUCTURE_SECONDS
from league.views.dashboard.source import Source
from matchmaker.state import folding
from matchmaker.store.sqlite import SqliteStore

QUERIES = {
    "/player": "?name={name}",
    "/compare": "?first={name}&second=based",
    "/matches": "?player={name}",
}


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
        write(served.db, learner, names, incarnation, count, clean=2)
        served.start()
        (run / "run.json").write_text(json.dumps({"format": FORMAT, "version": "0", "preset": "x"}))
        write_config(run / "config.toml", resolve(environment={}))
        if served.db.name != "league.db":
            (run / "league.db").symlink_to(served.db)
        with MatchmakerClient(served.address) as client:
            _await_fold(served.db, count)
            print(f"{count:,} matches of {len(client.players()):,} players", flush=True)
            updates = _updates(client, run, names[-1])
            paints = _paints(served.address, run, names[-1])
        served.kill()
    print("page\tfirst paint, ms\tupdate, ms")
    for path in PAGES:
        print(f"{path}\t{paints.get(path, 0):.0f}\t{updates.get(path, 0):.0f}")


def _await_fold(db: Path, count: int) -> None:
    """Waits for the first fold. The log was written without folds, and while the matchmaker stores
    the first one, calls wait.
    """
    with closing(SqliteStore(db, read_only=True)) as store:
        while count >= folding.EVERY:
            with store.read() as reader:
                if reader.folds():
                    return
            time.sleep(1)


def _updates(client: MatchmakerClient, run: Path, name: str) -> dict[str, float]:
    """Returns the milliseconds that a second request of each page takes, after its cached data has
    expired.
    """
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
        list(shown.show(source, query))
        time.sleep(STRUCTURE_SECONDS + 1 if path == "/payoffs" else 6)  # cached data has expired
        began = time.perf_counter()
        list(shown.show(source, query))
        found[path] = 1000 * (time.perf_counter() - began)
    source.close()
    return found


def _paints(address: str, run: Path, name: str) -> dict[str, float]:
    """Returns the milliseconds to the first contentful paint of each page."""
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
