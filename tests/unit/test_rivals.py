"""Rivals play in brawl, and hostile rivals only fail their own matches."""

from __future__ import annotations

import io
import os
import re
import signal
import subprocess
import sys
import time
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from learning import LIVE, assignments, make_env, network_of
from rival_files import CLASS, CYCLES, FORGES, HOSTILE, LIMITS, RUNS_RIGHT, predicts, seats, stored
from rival_models import Original, onnx_model
from sb3_contrib import RecurrentPPO
from stable_baselines3 import A2C, PPO
from waiting import PATIENCE

from league.agent.batched_policy import BatchedPolicy
from league.agent.export.ai2_check import original
from league.agent.rival_bundles import MOST_FILES, bundles, pack, trust, unpack
from league.agent.rivals import RivalSeats, check
from league.contest.matches import paired, play_bouts
from league.errors import DataCorrupt, InvalidInput, NotFound
from league.games.base import EXTERNAL
from league.games.registry import game_spec
from league.players import Assignment, Player, PlayerKind
from league.replay import Bout, Contender, Recipe, verify
from league.runs.blobs import BlobFolder

SPEC = game_spec("brawl")
RECIPE = Recipe(name="brawl", version=SPEC.version, max_frames=90)
RIGHT = SPEC.action_names.index("D")


@pytest.fixture
def blobs(tmp_path: Path) -> BlobFolder:
    return BlobFolder(tmp_path / "blobs")


def bouts(digest: str, name: str = "rival", matches: int = 2) -> list[Bout]:
    bot = SPEC.bot_index("constant")
    first, second = Contender(name=name, digest=digest), Contender(name="constant")
    return paired(first, second, (EXTERNAL, bot), matches, 0)


def test_a_rival_plays_from_both_seats(blobs: BlobFolder, tmp_path: Path) -> None:
    digest = stored(blobs, RUNS_RIGHT, tmp_path)
    rivals, failures = RivalSeats(blobs, LIMITS), dict[Bout, str]()
    played = list(
        play_bouts(
            RECIPE, bouts(digest), network_of, frame_skip=4, seed=0, failures=failures,
            rivals=rivals,
        )
    )  # fmt: skip
    assert failures == {}
    assert rivals.late == 0
    walked = [
        replay.actions_T2A[:, seat, [RIGHT, SPEC.action_names.index("A")]]
        for replay in played
        for seat in (0, 1)
        if replay.seats[seat].name == "rival"
    ]
    assert len(walked) == 2
    for keys_T2 in walked:
        assert keys_T2.sum(1).tolist() == [1] * 90, "in each frame it walks to one side"


def test_a_rival_decides_in_every_frame_and_a_network_at_its_own_pace(
    blobs: BlobFolder, tmp_path: Path
) -> None:
    rival = Contender(name="rival", digest=stored(blobs, CYCLES, tmp_path))
    network = Contender(name="network", digest=f"{7:064x}")
    played = list(
        play_bouts(
            RECIPE, paired(rival, network, (EXTERNAL, EXTERNAL), 2, 0), network_of, frame_skip=4,
            seed=0, rivals=RivalSeats(blobs, LIMITS),
        )
    )  # fmt: skip
    assert len(played) == 2
    for replay in played:
        seat = [contender.name for contender in replay.seats].index("rival")
        rival_TA, network_TA = (replay.actions_T2A[:, one] for one in (seat, 1 - seat))
        assert rival_TA.argmax(1).tolist() == [frame % 10 for frame in range(90)]
        assert (network_TA[:88].reshape(22, 4, 10) == network_TA[:88:4, None]).all()
        assert (network_TA[4:] != network_TA[:-4]).any()
        verify(replay)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_rival_fails_its_matches_alone(
    name: str, blobs: BlobFolder, tmp_path: Path
) -> None:
    text, words = HOSTILE[name]
    good, bad = stored(blobs, RUNS_RIGHT, tmp_path), stored(blobs, text, tmp_path)
    hasty = name in ("loop", "prints")
    limits = replace(LIMITS, decision_seconds=0.1, hang_seconds=1.0) if hasty else LIMITS
    recipe = replace(RECIPE, max_frames=100_000 if hasty else 8)
    failures = dict[Bout, str]()
    played = play_bouts(
        recipe,
        [*bouts(bad, "bad"), *([] if hasty else bouts(good))],
        network_of,
        frame_skip=4,
        seed=0,
        failures=failures,
        rivals=RivalSeats(blobs, limits),
    )
    assert [sorted(seat.name for seat in replay.seats) for replay in played] == [
        ["constant", "rival"]
    ] * (0 if hasty else 2)
    assert len(failures) == 2
    for reason in failures.values():
        assert reason.startswith("the rival failed: ")
        assert re.search(words, reason)
        assert reason.isprintable()
        assert len(reason) < 500


@pytest.mark.parametrize(("seat", "key"), [(1, 2), (2, 1)])
def test_only_keys_of_the_seat_that_is_asked_are_taken(
    seat: int, key: int, blobs: BlobFolder, tmp_path: Path
) -> None:
    """The first seat has the number 1."""
    forged = f"forge(answer({seat}, {key})); time.sleep(3600)"
    digest = stored(blobs, predicts(forged, f"import time\n{FORGES}"), tmp_path)
    with seats(blobs) as rivals:
        rivals.seat(0, digest)
        rivals.ask(np.zeros((1, 74), np.float32))
        (reason,) = rivals.answer(np.zeros((1, 10), np.uint8)).values()
    assert reason == "the rival failed: its process sent no keys"


def rival_match(digest: str, number: int) -> Assignment:
    rival = Player(name="rival", game="brawl", kind=PlayerKind.RIVAL, digest=digest)
    (match,) = assignments(1)
    seats = (LIVE, rival) if number % 2 else (rival, LIVE)
    return replace(
        match,
        match_id=f"rival-{number}",
        seats=seats,
        learner_seat=1 - number % 2,
        category="rivals",
    )


def learner_env(matches: list, rivals: RivalSeats, num_matches: int = 2):
    env = make_env([*matches, *assignments(200)], num_matches=num_matches)
    env.opponent_policy = BatchedPolicy(
        num_matches, network_of, seed=5, action_size=10, rivals=rivals
    )
    env.opponent_policy.set_live(network_of("7"))
    return env


def test_a_learner_meets_a_rival(blobs: BlobFolder, tmp_path: Path) -> None:
    digest = stored(blobs, RUNS_RIGHT, tmp_path)
    with seats(blobs) as rivals:
        env = learner_env([rival_match(digest, number) for number in (0, 1)], rivals)
        env.reset()
        for _ in range(31):
            env.step_arrays(np.zeros((2, 10), np.uint8))
            if not env.source.results:
                assert (env.opponent_actions_NA[:, [1, 3]].sum(1) == 1).all()
        assert [match.assignment.match_id for match in env.finished] == ["rival-0", "rival-1"]
        results = [result for result in env.source.results if result.match_id.startswith("rival")]
        assert [(result.failed, result.frames) for result in results] == [(False, 120)] * 2
        assert rivals.digests == {}


def test_a_result_has_the_late_decisions(blobs: BlobFolder, tmp_path: Path) -> None:
    """The rival answers no decision but the first."""
    text = f"""
import time
calls = 0
{CLASS}def predict(self, obs):
        global calls
        calls += 1
        while calls > 1:
            time.sleep(0.01)
        return [0] * 10
"""
    digest = stored(blobs, text, tmp_path)
    with seats(blobs, replace(LIMITS, decision_seconds=0.05, hang_seconds=600.0)) as rivals:
        env = learner_env([rival_match(digest, number) for number in (0, 1)], rivals)
        env.reset()
        while len(env.source.results) < 2:
            env.step_arrays(np.zeros((2, 10), np.uint8))
    for number, result in enumerate(env.source.results):
        stats = [seat.stats for seat in result.seats]
        late = [numbers.get("late_decisions", 0.0) for numbers in stats]
        seat = number % 2
        assert not result.failed
        assert 4 * 26 <= late[seat] <= 4 * 30 - 1
        assert late[1 - seat] == 0.0
        assert "late_decisions" not in stats[1 - seat]


def test_a_reason_lists_the_lines_that_led_to_it(tmp_path: Path) -> None:
    folder = tmp_path / "agent"
    folder.mkdir()
    (folder / "helper.py").write_text("def choose():\n    return {}['key']\n")
    (folder / "my_agent.py").write_text(predicts("helper.choose()", "import helper"))
    with pytest.raises(InvalidInput, match=r"\(helper.py, line 2, from my_agent.py, line 5\)$"):
        check(pack(folder))


def test_a_rival_that_fails_costs_a_learner_that_match_alone(
    blobs: BlobFolder, tmp_path: Path
) -> None:
    digest = stored(blobs, predicts("1 / 0"), tmp_path)
    with seats(blobs) as rivals:
        env = learner_env([rival_match(digest, 0)], rivals)
        env.reset()
        _, rewards_N, ended_N = env.step_arrays(np.zeros((2, 10), np.uint8))
        assert env.failed_N.tolist() == ended_N.tolist() == [True, False]
        assert rewards_N[0] == 0.0
        (result,) = env.source.results
        assert (result.match_id, result.failed, result.frames) == ("rival-0", True, 0)
        assert "ZeroDivisionError" in result.failure
        assert env.steps_N.tolist() == [0, 1]
        env.step_arrays(np.zeros((2, 10), np.uint8))
        assert not env.failed_N.any(), "the next match of the row goes on"


COUNTS = f"""
calls = 0
{CLASS}def predict(self, obs):
        global calls
        calls += 1
        return [0.6 if calls == key + 1 else 0.5 for key in range(10)]
"""
"""Presses the first key in the first decision, then the second, by a global of the file."""


def decided(rivals: RivalSeats, steps: int = 1, seats_in_all: int = 4) -> list[list[int]]:
    """The keys that are down in each step, by seat: -1 for none."""
    seen = []
    for _ in range(steps):
        actions_SA = np.zeros((seats_in_all, 10), np.uint8)
        rivals.ask(np.zeros((seats_in_all, 74), np.float32))
        assert rivals.answer(actions_SA) == {}
        seen.append([int(row.argmax()) if row.any() else -1 for row in actions_SA])
    return seen


def test_every_match_has_an_object_and_globals_of_its_own(
    blobs: BlobFolder, tmp_path: Path
) -> None:
    digest = stored(blobs, COUNTS, tmp_path)
    with seats(blobs) as rivals:
        for index in (0, 1, 2):
            rivals.seat(index, digest)
        assert decided(rivals, 3) == [[0, 0, 0, -1], [1, 1, 1, -1], [2, 2, 2, -1]]
        rivals.seat(1, digest)  # the next match of the row
        rivals.vacate(2)
        assert decided(rivals, 2) == [[3, 0, -1, -1], [4, 1, -1, -1]]


def test_a_saved_policy_seats_its_rivals_again(blobs: BlobFolder, tmp_path: Path) -> None:
    digest = stored(blobs, COUNTS, tmp_path)
    sizes = {"seed": 1, "action_size": 10}
    observations_SO = np.zeros((2, 74), np.float32)
    with seats(blobs) as rivals, seats(blobs) as others:
        policy = BatchedPolicy(2, network_of, **sizes, rivals=rivals)
        policy.seat(1, digest)
        assert [policy.act(observations_SO)[1].argmax() for _ in range(3)] == [0, 1, 2]
        resumed = BatchedPolicy(2, network_of, **sizes, rivals=others)
        resumed.load_state(policy.save())
        assert [resumed.act(observations_SO)[1].argmax() for _ in range(2)] == [0, 1]
        assert policy.act(observations_SO)[1].argmax() == 3
        resumed.seat(1, f"{1:064x}")
        assert others.digests == {}


def test_a_late_decision_repeats_the_last_keys(blobs: BlobFolder, tmp_path: Path) -> None:
    text = f"""
import os, time
calls = 0
{CLASS}def predict(self, obs):
        global calls
        calls += 1
        while calls == 2 and not os.path.exists({str(tmp_path / "go")!r}):
            time.sleep(0.01)
        return [float(calls == key) for key in range(10)]
"""
    digest = stored(blobs, text, tmp_path)
    with seats(blobs, replace(LIMITS, decision_seconds=0.3)) as rivals:
        rivals.seat(0, digest)
        assert decided(rivals)[0][0] == 1
        assert rivals.late == 0
        assert decided(rivals, 3) == [[1, -1, -1, -1]] * 3
        assert rivals.late == 3
        (tmp_path / "go").touch()
        deadline = time.monotonic() + PATIENCE
        while (key := decided(rivals)[0][0]) < 3:
            assert key in (1, 2)
            assert time.monotonic() < deadline


def test_a_rival_that_fails_again_and_again_is_not_started(
    blobs: BlobFolder, tmp_path: Path
) -> None:
    digest = stored(blobs, predicts("1 / 0"), tmp_path)
    reasons = []
    with seats(blobs) as rivals:
        for _ in range(9):
            rivals.seat(0, digest)
            rivals.ask(np.zeros((1, 74), np.float32))
            reasons += rivals.answer(np.zeros((1, 10), np.uint8)).values()
    assert len(reasons) == 9
    assert all("ZeroDivisionError" in reason for reason in reasons)
    assert ["4 times in a row" in reason for reason in reasons] == [False] * 4 + [True] * 5


def test_a_missing_bundle_fails_the_match(blobs: BlobFolder, tmp_path: Path) -> None:
    digest = stored(blobs, RUNS_RIGHT, tmp_path)
    with seats(blobs) as rivals:
        assert rivals.has(digest)
        rivals.seat(0, digest)
        bundles(blobs).path(digest).write_bytes(b"else")
        rivals.ask(np.zeros((1, 74), np.float32))
        assert "damaged" in rivals.answer(np.zeros((1, 10), np.uint8))[0]
        bundles(blobs).path(digest).unlink()
        assert not rivals.has(digest)
        policy = BatchedPolicy(1, lambda one: blobs.get(one), seed=0, action_size=10, rivals=rivals)
        with pytest.raises(NotFound, match=digest):
            policy.seat(0, digest)


def test_it_has_no_secrets_of_the_league_and_an_empty_folder(
    blobs: BlobFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUMITE_TOKEN", "secret")
    text = predicts(
        "raise ValueError(' '.join([*os.environ, 'files', *os.listdir(), str(os.nice(0))]))",
        "import os",
    )
    with pytest.raises(InvalidInput) as raised:
        check(pack(_file(tmp_path, text)))
    variables, _, files = str(raised.value).partition("files")
    assert "KUMITE" not in variables
    assert set(files.split()[:1]) == {"my_agent.py"}


def test_a_bundle_runs_only_after_this_user_has_agreed(
    blobs: BlobFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a run's folder that comes from another person, with the rivals of that person."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    digest = bundles(blobs).put(pack(_file(tmp_path, RUNS_RIGHT)))

    def failures() -> dict[int, str]:
        with seats(blobs) as made:
            made.seat(0, digest)
            made.ask(np.full((1, 64), 0.5, np.float32))
            return made.answer(np.zeros((1, 10), np.uint8))

    assert "--trust" in failures()[0]
    trust("0" * 64)
    assert "--trust" in failures()[0]
    trust(digest)
    assert failures() == {}


def test_its_processes_die_with_the_league(blobs: BlobFolder, tmp_path: Path) -> None:
    """After kill -9 of the process that plays, also while a rival hangs."""
    digest = stored(blobs, predicts("while True: pass"), tmp_path)
    program = (
        "import sys, numpy as np\nfrom league.agent.rivals import *\n"
        f"seats = RivalSeats(BlobFolder({str(blobs.root)!r}))\nseats.seat(0, {digest!r})\n"
        "seats.ask(np.zeros((1, 74), np.float32))\nseats.answer(np.zeros((1, 10), np.uint8))\n"
        "print('playing', flush=True)\nsys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "playing\n"
        (rival,) = _children(process.pid)
        process.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + PATIENCE
    while Path(f"/proc/{rival}/cmdline").exists() and time.monotonic() < deadline:
        if Path(f"/proc/{rival}/cmdline").read_bytes() == b"":
            break  # a zombie of the machine's init
        time.sleep(0.02)
    assert not _runs(rival)


def _children(parent: int) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == parent:
            found.append(int(stat.parent.name))
    return found


def _runs(pid: int) -> bool:
    try:
        return bool(Path(f"/proc/{pid}/cmdline").read_bytes())
    except OSError:
        return False


def _file(folder: Path, text: str) -> Path:
    file = folder / "agent.py"
    file.write_text(text)
    return file


def test_a_folder_brings_its_files_and_is_packed_alike(tmp_path: Path) -> None:
    folder = tmp_path / "agent"
    (folder / "user").mkdir(parents=True)
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "x.pyc").write_bytes(b"x")
    (folder / ".git").mkdir()
    (folder / ".git" / "config").write_text("token")
    (folder / "helper.py").write_text("KEY = 3\n")
    (folder / "user" / "keys.txt").write_text("0001000000")
    (folder / "my_agent.py").write_text(
        "import helper\n"
        + CLASS
        + "def _gdown(self): return 'user/keys.txt'\n    def predict(self, obs):\n"
        "        keys = [float(key) for key in open(self.file_path).read()]\n"
        "        assert keys.index(1.0) == helper.KEY\n        return keys\n"
    )
    bundle = pack(folder)
    check(bundle)
    os.utime(folder / "helper.py", (1, 1))
    assert pack(folder) == bundle
    out = tmp_path / "out"
    out.mkdir()
    unpack(bundle, out)
    assert sorted(path.relative_to(out).as_posix() for path in out.rglob("*.*")) == [
        "helper.py",
        "my_agent.py",
        "user/keys.txt",
    ]


@pytest.mark.long
@pytest.mark.parametrize("algorithm", [PPO, A2C, RecurrentPPO], ids=lambda kind: kind.__name__)
def test_a_model_of_stable_baselines_plays(algorithm: type, tmp_path: Path) -> None:
    policy = "MlpLstmPolicy" if algorithm is RecurrentPPO else "MlpPolicy"
    options = {} if algorithm is A2C else {"batch_size": 8, "clip_range": lambda left: 0.1 * left}
    model = algorithm(policy, Original(), n_steps=8, **options)
    model.save(tmp_path / "model.zip")
    bundle = pack(tmp_path / "model.zip")
    assert pack(tmp_path / "model.zip") == bundle
    check(bundle)
    algorithm(policy, Original(63), n_steps=8, **options).save(tmp_path / "other.zip")
    with pytest.raises(InvalidInput, match=r"\(63,\): the tournament's 64 numbers"):
        check(pack(tmp_path / "other.zip"))


@pytest.mark.long
def test_a_model_of_onnx_plays(blobs: BlobFolder, tmp_path: Path) -> None:
    onnx_model(tmp_path / "model.onnx")
    digest = bundles(blobs).put(pack(tmp_path / "model.onnx"))
    trust(digest)
    observations_SO = np.zeros((1, 74), np.float32)
    actions_SA = np.zeros((1, 10), np.uint8)
    with seats(blobs) as rivals:
        rivals.seat(0, digest)
        rivals.ask(observations_SO)
        assert rivals.answer(actions_SA) == {}
    assert actions_SA[0].tolist() == (original(observations_SO[0])[:10] > 0.5).tolist()
    onnx_model(tmp_path / "other.onnx", 65)
    with pytest.raises(InvalidInput, match="the tournament's 64 numbers"):
        check(pack(tmp_path / "other.onnx"))
    (tmp_path / "no.onnx").write_bytes(b"no model")
    with pytest.raises(InvalidInput, match="InvalidProtobuf"):
        check(pack(tmp_path / "no.onnx"))
    (tmp_path / "no.zip").write_bytes(b"no zip")
    with pytest.raises(InvalidInput, match="not a zip file"):
        check(pack(tmp_path / "no.zip"))


def test_a_zipped_folder_is_that_folder(tmp_path: Path) -> None:
    folder = tmp_path / "agent"
    folder.mkdir()
    (folder / "my_agent.py").write_text(RUNS_RIGHT)
    (folder / "weights.bin").write_bytes(b"1")
    with zipfile.ZipFile(tmp_path / "agent.zip", "w") as files:
        for inner in folder.iterdir():
            files.write(inner, inner.name)
    assert pack(tmp_path / "agent.zip") == pack(folder)


def test_what_is_no_rival_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidInput, match=r"nobody\.py"):
        pack(tmp_path / "nobody.py")
    folder = tmp_path / "agent"
    folder.mkdir()
    with pytest.raises(InvalidInput, match=r"my_agent\.py"):
        pack(folder)
    (folder / "my_agent.py").write_text("")
    with pytest.raises(InvalidInput, match="no class SubmittedAgent"):
        check(pack(folder))
    (folder / "link").symlink_to("/etc/passwd")
    with pytest.raises(InvalidInput, match="link"):
        pack(folder)
    (folder / "link").unlink()
    (folder / "large").write_bytes(bytes(100))
    monkeypatch.setattr("league.agent.rival_bundles.MOST_BYTES", 99)
    with pytest.raises(InvalidInput, match="99 bytes"):
        pack(folder)
    for number in range(MOST_FILES):
        (folder / str(number)).touch()
    with pytest.raises(InvalidInput, match=f"{MOST_FILES:,}"):
        pack(folder)


def test_a_forged_bundle_writes_nothing_outside(tmp_path: Path) -> None:
    out = tmp_path / "in" / "out"
    out.mkdir(parents=True)
    for name in ("../evil.py", "/tmp/evil.py", "a/../../evil.py"):
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w") as bundle:
            bundle.writestr("my_agent.py", "")
            bundle.writestr(name, "evil")
        with pytest.raises(DataCorrupt):
            unpack(content.getvalue(), out)
    with pytest.raises(DataCorrupt):
        unpack(b"no zip", out)
    assert list(out.iterdir()) == []
    assert [path.name for path in out.parent.iterdir()] == ["out"]
