"""What a learner does whose disk fills up, and after: run by `test_full_disk.py` on one of 64 MB.

Its matchmaker has another disk. Prints a JSON object of what was seen.
"""

from __future__ import annotations

import csv
import json
import signal
import sqlite3
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from learner_process import learners, matchmaker

from league.rpc.client import MatchmakerClient


def main(disk: Path) -> None:
    with (
        TemporaryDirectory() as folder,
        matchmaker(Path(folder)) as server,
        MatchmakerClient(server.address, wait_seconds=5) as client,
        learners(disk, checkpoint_seconds=0.0) as start,
    ):

        def learner() -> tuple[str, int]:
            (worker,) = client.status().workers or (None,)
            return ("", 0) if worker is None else (worker.activity, worker.step)

        process = start(server.address, "--steps", "1_000_000")
        filler = disk / "filler"
        while learner()[1] < 512 and process.poll() is None:
            time.sleep(0.02)
        while "space" not in learner()[0]:  # older checkpoints give some free
            try:
                with filler.open("ab", buffering=0) as file:
                    while process.poll() is None:
                        file.write(b"x" * 65536)
            except OSError:
                time.sleep(0.02)
            if process.poll() is not None:
                break
        waited_at = learner()[1]
        filler.unlink()
        while learner()[1] < waited_at + 512 and process.poll() is None:
            time.sleep(0.02)
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        code = process.wait()
        with sqlite3.connect(Path(folder) / "league.db") as log:

            def count(table: str) -> int:
                return int(log.execute(f"SELECT count(*) FROM {table}").fetchone()[0])

            with (disk / "learner-main" / "behavior_metrics.csv").open(newline="") as file:
                rows = [row["match_id"] for row in csv.DictReader(file)]
            seen = {
                "code": code,
                "waited_at": waited_at,
                "step": learner()[1],
                "lives": count("incarnations"),
                "lost_results": count("lost_results"),
                "results": count("results"),
                "rows": len(set(rows)),
            }
        print((disk / "learner.log").read_text(), file=sys.stderr)
    print(json.dumps(seen))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
