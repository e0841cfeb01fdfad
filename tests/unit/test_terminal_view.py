"""The terminal view and its plain lines are pure functions of a screen."""

from __future__ import annotations

import io
import math
import re
import subprocess
from collections.abc import Mapping
from dataclasses import fields, replace
from enum import Enum
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import screens
from rich.console import Console

from league.cluster import main as start
from league.cluster.supervisor import Supervisor
from league.cluster.topology import LearnerOptions, plan
from league.players import Player, PlayerKind, Role
from league.runs.folder import Request, open_run, write_config
from league.runs.settings import SupervisorSettings
from league.settings.base import resolve
from league.status import WorkerStatus
from league.v1.evaluator_pb2 import GetEvaluatorStatusResponse
from league.views.facts import Note, Screen
from league.views.terminal.display import LineDisplay, LiveDisplay, print_summary, progress_lines
from league.views.terminal.panels import view

EXPLOITER = replace(
    screens.LEARNER,
    worker="learner-main-exploiter",
    player="main-exploiter.g3",
    step=201_344,
    activity="update",
    metrics={
        "rate/steps_per_second": 2031.0,
        "exploiter/generation": 3.0,
        "exploiter/least_chance": 0.62,
    },
)


def drawn(screen: Screen, width: int = 120, height: int = 44) -> list[str]:
    """The lines that a terminal of this size would show."""
    console = Console(width=width, height=height, file=io.StringIO(), color_system=None)
    with console.capture() as capture:
        console.print(view(screen, width, height), height=height)
    return capture.get().splitlines()


def with_workers(screen: Screen, *workers: WorkerStatus) -> Screen:
    assert screen.league.status is not None
    status = replace(screen.league.status, workers=workers)
    return replace(screen, league=replace(screen.league, status=status, leading="learner-main"))


@pytest.mark.parametrize(("width", "height"), [(80, 24), (160, 45)])
def test_it_fills_the_terminal_and_shows_what_matters_at_every_size(
    width: int, height: int
) -> None:
    for screen in (screens.full(), screens.EMPTY):
        lines = drawn(screen, width, height)
        assert (len(lines), {len(line) for line in lines}) == (height, {width})
    picture = "\n".join(drawn(screens.full(), width, height))
    for words in (
        *("runs/laptop-1", "laptop", "CPU", "43.5 %", "652,310 of 1,500,000 steps", "0:11:40"),
        *("0:07:11 left", "6,212", "league  rollout", "4.710", "-0.013", "3.213"),
        *("0.118", "0.812", "snapshots", "53%", "70›69", "99%", "72%", "15›16", "80% [75– 83]"),
        *("main@650000 ‹", "29.70", "clockwork bot", "constant bot", "17 players", "waiting"),
        *("matchmaker", "learner-main", "↻1", "evaluator-0", "main@650000 joined the league"),
        *("Ctrl-C", "runs/laptop-1/logs"),
    ):
        assert words in picture, words
    assert ("of 17 players" in picture) is (height == 24)  # a small leaderboard leaves out ranks


def test_a_small_terminal_shows_the_browsers_address_whole() -> None:
    logs = "/home/somebody/with/a/long/name/of/a/folder/runs/laptop-1/logs"
    screen = replace(screens.full(), dashboard="http://127.0.0.1:54321", logs_dir=logs)
    assert " http://127.0.0.1:54321 " in drawn(screen, 80, 24)[-1]


def test_a_small_terminal_shows_what_is_needed_whatever_happens() -> None:
    """The address, the newest event, the time left, and what the run takes of the machine."""
    event = "learner-main has made no progress for 30 s, and its game's server does not answer: "
    event += "it is started again after 300 s."
    usage = "disk 310.2 MB, at the end 1.2 GB · GPU 63 % 3.1/139.8 GiB"
    screen = replace(
        screens.full(),
        dashboard="http://127.0.0.1:54321",
        notes=(*screens.full().notes, Note(at=screens.NOW, text=event)),
        usage=usage,
        phase="training",
    )
    league = replace(screen.league, steps=10**10, target_steps=10**12, trouble="No answer yet.")
    lines = drawn(replace(screen, league=league), 80, 24)
    assert len(lines) == 24
    assert event in " ".join(" ".join(lines).split())
    for words in (f" {screen.dashboard} ", "No answer yet.", "0:07:11 left", usage):
        assert any(words in line for line in lines), words


def test_lines_tell_the_same_facts() -> None:
    training, exams, waiting = progress_lines(screens.full())
    for words in ("652,310 of 1,500,000 steps (43.5 %)", "6,212 steps/s", "stage league",
                  "based 72 %", "0:07:11 left"):  # fmt: skip
        assert words in training
    assert "clockwork 80 % of 400" in exams
    assert "evaluator-0" in waiting
    (waits,) = progress_lines(screens.EMPTY)
    assert "learner" in waits
    evaluating = next(progress_lines(replace(screens.full(), phase="evaluating")))
    assert "main@650000 has played 312 of 700 matches, 1 player" in evaluating


@pytest.mark.parametrize(("done", "total", "said"), [(0, 0, ""), (3, 9, "3 of 9"), (3, 0, "gate")])
def test_only_matches_without_a_total_are_those_of_a_gate(done: int, total: int, said: str) -> None:
    screen = replace(screens.full(), phase="evaluating")
    evaluator = GetEvaluatorStatusResponse(current="main@9", matches_done=done, matches_total=total)
    screen = replace(screen, league=replace(screen.league, evaluator=evaluator))
    first = next(iter(progress_lines(screen)))
    assert said in first
    assert ("gate" in first) is (said == "gate")


def test_several_learners_have_a_line_each_and_the_first_main_leads() -> None:
    full = screens.full()
    names = ("learner-main", EXPLOITER.worker, "learner-league-exploiter")
    three = replace(with_workers(full, EXPLOITER, *full.league.workers), learners=names)
    words = "update · 201,344 steps · 2,031 steps/s · generation 3, beats its victims 62 %"
    lines = drawn(three)
    assert any("main-exploiter" in line and words in line for line in lines)
    assert any("league-exploiter" in line and "starting" in line for line in lines)
    assert any("652,310 of" in line for line in lines)
    told = list(progress_lines(three))
    assert told[0].startswith("652,310 of 1,500,000 steps")
    assert told[1] == f"main-exploiter: {words}"


def test_an_exploiters_snapshot_is_not_the_newest_of_the_run() -> None:
    """It may have more steps, and says nothing of how far the main is."""
    league = screens.full().league
    player = Player(name="main-exploiter.g2@900000", game="brawl", kind=PlayerKind.SNAPSHOT,
                    role=Role.MAIN_EXPLOITER, step=900_000)  # fmt: skip
    exploiter = replace(league.ratings[0], player=player)
    newest = replace(league, ratings=(exploiter, *league.ratings)).newest_rated
    assert newest is not None
    assert newest.name == "main@650000"


HOSTILE = "a\x1b[2J\x9b3m\u202e\r\n● forged\x07[/oops][link=u]y"


def spoilt(value: Any) -> Any:
    """`value` with `HOSTILE` for each of its texts."""
    if isinstance(value, Enum | float | int | None):
        return value
    if isinstance(value, str):
        return HOSTILE
    if isinstance(value, Mapping):
        kinds = ("", "winrate/", "time/", "alarm/never_won/")
        return {f"{kind}{HOSTILE}": 0.5 for kind in kinds} | value
    if isinstance(value, tuple):
        return tuple(map(spoilt, value))
    if isinstance(value, GetEvaluatorStatusResponse):
        return GetEvaluatorStatusResponse(current=HOSTILE, queue=[HOSTILE], matches_total=7)
    return replace(value, **{one.name: spoilt(getattr(value, one.name)) for one in fields(value)})


@pytest.mark.parametrize("phase", ["training", "evaluating"])
def test_no_text_of_a_screen_steers_the_terminal_or_is_markup(phase: str) -> None:
    screen = replace(spoilt(screens.full()), phase=phase)
    stream = io.StringIO()
    console = Console(width=120, height=44, file=stream, force_terminal=True)
    for one in (screen, replace(screen, league=replace(screen.league, trouble=""))):
        console.print(view(one, 120, 44), height=44)
        print_summary(console, one, [Path(HOSTILE)])
    styled = stream.getvalue()
    stream.seek(stream.truncate(0))
    LineDisplay(stream, 0.0).show(screen)
    LineDisplay(stream, 0.0).add_note(Note(at=screens.NOW, text=HOSTILE))
    found = re.sub(r"\x1b\[[0-9;]*m", "", styled) + stream.getvalue()
    assert found.replace("\n", "").isprintable()
    assert not [line for line in found.splitlines() if line.lstrip("│ ").startswith("● forged")]
    assert "[/oops][link=u]y" in found


@pytest.mark.parametrize("name", [*screens.METRICS, "exploiter/generation", "alarm/kl_too_high"])
def test_any_number_of_a_worker_can_be_drawn(name: str) -> None:
    full = screens.full()
    for value in (1e308, -1e308, 1e15, math.inf, -math.inf, math.nan):
        worker = replace(screens.LEARNER, metrics=screens.METRICS | {name: value})
        screen = replace(with_workers(full, worker), learners=("learner-main", "learner-other"))
        assert len(drawn(screen)) == 44, value
        assert list(progress_lines(screen)), value


def test_a_picture_that_can_not_be_drawn_gives_way_to_lines() -> None:
    """Whatever the reason is: the supervisor goes on, and says it once."""
    worker = replace(screens.LEARNER, metrics={"rate/steps_per_second": "no number"})
    broken = with_workers(screens.full(), worker)
    stream = io.StringIO()
    display = LiveDisplay(Console(file=stream, force_terminal=True, width=80, height=24), 0.0)
    display.show(screens.full())
    for _ in range(3):
        display.show(broken)
    display.add_note(Note(at=screens.NOW, text="something happened"))
    display.close()
    picture, rest = stream.getvalue().rsplit("\x1b[?1049l", 1)
    assert "KUMITE" in picture
    assert "ValueError" in rest
    assert "something happened" in rest
    assert rest.count("\n") == 2

    stream = io.StringIO()
    lines = LineDisplay(stream, 0.0)
    for screen in (broken, broken, screens.full()):
        lines.show(screen)
    said = stream.getvalue().splitlines()
    assert "ValueError" in said[0]
    assert "652,310 of 1,500,000 steps" in said[1]


def test_line_display_repeats_nothing_and_survives_a_closed_pipe() -> None:
    stream = io.StringIO()
    display = LineDisplay(stream, 0.0)
    display.show(screens.full())
    display.show(screens.full())
    display.add_note(Note(at=screens.NOW, text="something happened"))
    assert len(stream.getvalue().splitlines()) == 4

    class Closed(io.StringIO):
        def write(self, _: str) -> int:
            raise BrokenPipeError

    display = LineDisplay(Closed(), 0.0)
    display.show(screens.full())
    display.add_note(Note(at=screens.NOW, text="nobody hears this"))


def test_summary_has_leaderboard_clean_matches_files_and_time() -> None:
    console = Console(width=110, file=io.StringIO(), color_system=None)
    with console.capture() as capture:
        print_summary(console, screens.full(), [Path("runs/laptop-1/leaderboard.md")])
    text = capture.get()
    for words in ("main@650000 ‹", "constant bot", "80% [75– 83]", "652,310 steps", "0:11:40",
                  "runs/laptop-1/leaderboard.md"):  # fmt: skip
        assert words in text, words


def test_a_short_leaderboard_keeps_the_best_player_before_the_newest_and_the_bots() -> None:
    many = [screens.rating(n, f"main@{n}", 30.0, PlayerKind.SNAPSHOT, n) for n in range(1, 10)]
    bots = [screens.rating(n, f"bot{n}", 1.0, PlayerKind.BOT) for n in range(10, 20)]
    league = replace(screens.full().league, ratings=(*many, *bots))
    shown = [[rating.player.name for rating in league.best(room)] for room in (1, 2, 4)]
    assert shown == [["main@1"], ["main@1", "main@9"], ["main@1", "main@9", "bot10", "bot11"]]


def test_summary_marks_where_the_leaderboard_leaves_players_out() -> None:
    screen = screens.full()
    many = [screens.rating(n, f"main@{n}", 30.0, PlayerKind.SNAPSHOT, n) for n in range(1, 41)]
    bot = screens.rating(41, "camper", 1.0, PlayerKind.BOT)
    screen = replace(screen, league=replace(screen.league, ratings=(*many, bot), evaluations=()))
    console = Console(width=80, file=io.StringIO(), color_system=None)
    with console.capture() as capture:
        print_summary(console, screen, [])
    rows = re.findall(r"│ +(\d+ main@\d+|\d+ camper bot|…)", capture.get())
    assert [row.split()[0] for row in rows] == [*map(str, range(1, 24)), "…", "40", "41"]


@pytest.mark.parametrize("ending", ["done", "late", "interrupted"])
def test_the_wait_for_the_main_results_is_announced_and_ended_by_ctrl_c(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], ending: str
) -> None:
    screen = screens.full()
    screen = replace(screen, league=replace(screen.league, steps=screen.league.target_steps))
    config = tmp_path / "config.toml"
    write_config(config, resolve("smoke", environment={}))
    seen = []

    def run(program: list[str], **_: object) -> SimpleNamespace:
        seen.append(capsys.readouterr().out)
        if ending == "late":
            raise subprocess.TimeoutExpired(program, 60.0)
        return SimpleNamespace(returncode=130 if ending == "interrupted" else 0)

    monkeypatch.setattr(subprocess, "run", run)
    go_on = start._print_end(
        Console(width=80, file=io.StringIO()),
        SimpleNamespace(screen=screen, files=[]),
        SimpleNamespace(path=tmp_path, config=config),
        SimpleNamespace(mains=("learner-main",)),
    )
    assert "at most 2 minutes" in seen[0]
    assert (go_on, len(seen)) == {"interrupted": (False, 1)}.get(ending, (True, 2))
    if ending == "late":
        assert "bin/league report" in seen[1]


def test_an_opened_run_shows_its_steps_before_anything_answers(tmp_path: Path) -> None:
    with open_run(Request(preset="smoke", run_dir=tmp_path / "run")) as folder:
        checkpoints = folder.path / "learner-main" / "checkpoints"
        checkpoints.mkdir(parents=True)
        for name in ("step_000000002048.pt", "step_000000004096.pt", "step_mine.pt"):
            (checkpoints / name).touch()
        topology = plan(folder, LearnerOptions(), SupervisorSettings())
        screen = Supervisor(folder, topology, LineDisplay(io.StringIO()), "no device").screen
    text = "\n".join(drawn(screen))
    assert "4,096 steps" in text
    assert "first snapshot" not in text


def test_a_single_snapshot_is_no_plural() -> None:
    screen = screens.full()
    screen = replace(screen, league=replace(screen.league, snapshots=1))
    console = Console(width=110, file=io.StringIO(), color_system=None)
    with console.capture() as capture:
        print_summary(console, screen, [])
    for text in (capture.get(), "\n".join(drawn(screen))):
        assert re.search("1 active snapshot[^s]", text)


def test_alarms_of_the_learner_stand_in_its_panel_and_in_the_lines() -> None:
    screen = screens.full()
    (worker,) = screen.league.workers
    ill = with_workers(
        screen, replace(worker, metrics={**worker.metrics, "alarm/entropy_collapse": 0.01})
    )
    assert "! entropy collapsed" in "\n".join(drawn(ill, 100, 30))
    assert any("entropy collapsed" in line for line in progress_lines(ill))
    assert "entropy collapsed" not in "\n".join(drawn(screen, 100, 30))
