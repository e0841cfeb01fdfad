"""Who starts a learner's ranks says which of them failed first, and ends the rest."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from learner.distributed import launch as launching
from learner.distributed.launch import launch
from learner.distributed.team import LastWord

PLAYS = "import time; time.sleep(60)"
DONE = ""
LOSES = LastWord(sentence="another rank of this learner is gone", exit_code=1, is_gone=True)
FULL = LastWord(sentence="no space to write the checkpoint", exit_code=3, is_gone=False)


def fails(word, rank, seconds):
    """A rank that leaves its last word after some time."""
    return (
        "import sys, time; from pathlib import Path; from learner.distributed.team import LastWord\n"
        f"time.sleep({seconds}); LastWord(**{vars(word)!r}).write(Path(sys.argv[1]), {rank})\n"
        f"sys.exit({word.exit_code})"
    )


@pytest.fixture
def ranks(monkeypatch):
    """Makes `launch` start these programs, rank by rank; gives the processes."""
    started = []

    def begin(*programs):
        def start(meeting, rank, count, words):
            started.append(subprocess.Popen([sys.executable, "-c", programs[rank], str(meeting)]))
            return started[-1]

        monkeypatch.setattr(launching, "_start", start)
        return started

    return begin


def test_all_done_is_done(ranks):
    ranks(DONE, DONE)
    assert launch([], 2) == 0


def test_nothing_is_left_of_where_the_ranks_met(ranks, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    ranks("import sys; from pathlib import Path; Path(sys.argv[1], 'meet').touch()")
    assert launch([], 1) == 0
    assert list(tmp_path.iterdir()) == []


def test_a_meeting_place_goes_with_a_process_that_is_killed():
    program = (
        "import time; from learner.distributed.meeting import meeting_place\n"
        "with meeting_place() as place:\n"
        "    (place / 'meet').touch()\n"
        "    print(place, flush=True)\n"
        "    time.sleep(60)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True
    ) as process:
        place = Path(process.stdout.readline().strip())
        assert (place / "meet").exists()
        process.kill()
    limit = time.monotonic() + 30
    while place.exists():
        assert time.monotonic() < limit
        time.sleep(0.02)


def test_the_first_cause_is_told_and_not_what_followed_from_it(ranks, capfd):
    """Rank 0 notices that rank 1 is gone before rank 1 has ended."""
    started = ranks(fails(LOSES, 0, 0), fails(FULL, 1, 0.5), PLAYS)
    assert launch([], 3) == 3
    assert capfd.readouterr().err == f"learner: {FULL.sentence}\n"
    assert all(process.returncode is not None for process in started)


def test_a_rank_without_a_last_word_is_told_by_how_it_ended(ranks, capfd):
    started = ranks(PLAYS, "import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    assert launch([], 2) == 1
    said = capfd.readouterr().err
    assert said.startswith(
        f"learner: rank 1 (process {started[1].pid}) was ended by signal 9: the others end"
    )
    ranks(PLAYS, "raise ValueError('a fault of the program')")
    assert launch([], 2) == 1
    assert "learner: rank 1" in (last := capfd.readouterr().err.splitlines()[-1])
    assert "broke (exit code 1), its last words are above" in last


def test_who_is_asked_to_stop_before_it_began_has_not_failed(ranks):
    started = ranks(PLAYS, PLAYS)

    def ask():
        while len(started) < 2:
            time.sleep(0.01)
        time.sleep(0.2)
        os.kill(os.getpid(), signal.SIGTERM)

    before = signal.getsignal(signal.SIGTERM)
    threading.Thread(target=ask).start()
    assert launch([], 2) == 0
    assert [process.returncode for process in started] == [-signal.SIGTERM] * 2
    assert signal.getsignal(signal.SIGTERM) is before
