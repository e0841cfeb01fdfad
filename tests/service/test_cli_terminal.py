"""What a person sees: commands run on a pseudo-terminal, and the pictures of a fight."""

from __future__ import annotations

import io
import os
import pty
import re
import shutil
import signal
import sys
from pathlib import Path

import numpy as np
import pytest

from league.cli.main import main
from league.games.registry import make_batched
from league.views.match_view import MatchView
from learner.doctor.findings import REASONS


def on_terminal(
    *words: str, columns: int = 110, rows: int = 40, interrupt_at: bytes = b""
) -> tuple[int, str]:
    """Runs ``bin/league`` on a pseudo-terminal; Ctrl-C once `interrupt_at` was seen. Exit
    status, output.
    """
    child, terminal = pty.fork()
    if child == 0:
        # a background job ignores it, and hands that on
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.environ |= {"COLUMNS": str(columns), "LINES": str(rows), "TERM": "xterm-256color"}
        os.execv(sys.executable, [sys.executable, "-m", "league", *words])
    seen = b""
    while True:
        try:
            part = os.read(terminal, 65536)
        except OSError:  # what Linux raises when the other end is closed
            break
        if not part:
            break
        seen += part
        if interrupt_at and interrupt_at in seen:
            os.kill(child, signal.SIGINT)
            interrupt_at = b""
    _, status = os.waitpid(child, 0)
    os.close(terminal)
    # Ctrl-C may cut a write within a character
    return os.waitstatus_to_exitcode(status), seen.decode(errors="replace")


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)


def test_tables_are_drawn_for_a_person(served_run: Path) -> None:
    status, text = on_terminal("ratings", "--run-dir", str(served_run))
    assert status == 0
    assert re.search(r"┃ +player +┃|┃ rank ┃ player", plain(text))
    status, text = on_terminal("payoff", "--run-dir", str(served_run))
    assert status == 0
    assert re.search(r"main@2000 │ +│ +\d+% │", plain(text)), "a matrix: nobody meets himself"


@pytest.mark.long
def test_the_doctor_breaks_its_lines_between_words() -> None:
    small = [
        word
        for one in ("matches=16", "n_steps=16", "batch_size=64")
        for word in ("--set", f"learner.{one}")
    ]
    status, text = on_terminal("doctor", "--game", "matrix:rps", *small, columns=80)
    assert status == 0
    lines = plain(text).splitlines()
    assert max(map(len, lines)) <= 80
    assert len(lines) > len(REASONS)


def test_a_narrow_terminal_shows_match_ids_that_can_be_copied(tmp_path: Path) -> None:
    replays = tmp_path / "replays"
    replays.mkdir()
    (tmp_path / "league.db").touch()
    ids = ["00000001ad756c58eacb40fc3d4cd001", "00000001ad756c58eacb40fc3d4cd002"]
    kept = replays / f"{ids[0]}.replay"
    short = ("--set", "game.match_seconds=2", "--save", str(kept))
    assert main(["demo", "weapon_seeker", "edge_guarder", *short]) == 0
    shutil.copy(kept, replays / f"{ids[1]}.replay")
    shutil.copy(kept, replays / f"1{ids[1]}.replay")
    ids += [f"1{ids[1]}"]
    status, text = on_terminal("replay", "--run-dir", str(tmp_path), columns=80)
    assert status == 0
    shown = re.findall(r"(?m)^│ +(\w+) +│", plain(text))
    assert sorted(name for one in shown for name in ids if name.startswith(one)) == sorted(ids)
    assert "…" not in plain(text).partition("└")[0]


@pytest.mark.long
def test_a_comparison_tells_its_progress_in_a_line() -> None:
    players = ("always-paper", "always-rock", "--game", "matrix:rps")
    status, text = on_terminal("compare", *players, columns=80)
    assert status == 0
    first, *_ = (line for line in re.split(r"[\r\n]+", plain(text)) if "not decided" in line)
    assert re.fullmatch(r"\d+ matches, [^:]*: 100 % of the points go to always-paper", first)
    assert "compile" not in text


def test_a_fight_is_drawn_until_it_ends() -> None:
    short = ("--speed", "1000", "--set", "game.match_seconds=2")
    status, text = on_terminal("demo", "based", "constant", *short)
    assert status == 0
    assert "\x1b[?1049h" in text, "drawn on a screen of its own"
    assert "\x1b[?1049l" in text, "which is given back"
    told = plain(text)
    assert "warehouse" in told
    assert "●●●" in told
    assert re.search(r"based .*constant.* 0: \w+", told)


@pytest.mark.long
def test_the_course_of_a_hand_stays_when_its_picture_closes() -> None:
    status, text = on_terminal("demo", "caller", "aggressive", "--game", "kuhn", "--speed", "1000")
    assert status == 0
    after = plain(text.rpartition("\x1b[?1049l")[2])
    assert re.search("caller .*aggressive.* 0", after)
    assert re.search(r"^1  (caller|aggressive): (call|raise)\r?$", after, re.MULTILINE)
    assert re.search("^0  caller ", after, re.MULTILINE)


@pytest.mark.long
def test_ctrl_c_ends_a_fight_quietly() -> None:
    status, text = on_terminal("demo", "based", "random", interrupt_at="●●●".encode())
    assert status == 0
    assert "\x1b[?1049l" in text
    assert "Traceback" not in text
    assert "seed" not in plain(text), "it was broken off, not played to its end"


@pytest.fixture(scope="module")
def frame() -> dict:
    game = make_batched("brawl", 1)
    game.reset(np.array([0], np.uint64))
    return game.frame(0)


def test_the_picture_fits_the_terminal_and_shows_both(frame: dict) -> None:
    from rich.console import Console

    for size in ((80, 24), (110, 40), (200, 60)):
        console = Console(width=size[0], height=size[1], record=True, file=io.StringIO())
        view = MatchView(["based", "random"])
        view.see(frame)
        console.print(view.draw(["one", "two", "three", "four"], size))
        lines = console.export_text().splitlines()
        assert len(lines) <= size[1], size
        assert max(map(len, lines)) <= size[0]
        told = "\n".join(lines)
        assert told.count("▀") > 1000
        assert "based ●●●" in told
        assert "random ●●●" in told
        assert "two" in told
        assert "one\n" not in told
