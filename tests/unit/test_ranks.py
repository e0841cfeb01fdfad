"""Several ranks as real processes over gloo: one learner bit for bit, resumed as one, ended as one.

And the flags and settings that say how many ranks there are.
"""

import argparse
import math
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from learning import MATCHES, STEPS, same
from ports import free_port, listening
from rollouts import whole_batch
from test_descent import rolled_out, update
from waiting import wait_for

from league.agent.device import choose_devices
from league.cluster.engine import RENDEZVOUS
from league.cluster.main import parse
from league.errors import ConfigError
from league.runs.settings import LearnerEntry
from league.settings import device_flags
from league.settings.device_flags import DeviceFlags, add_device_flags
from learner.ppo.advantage import ReturnScale
from learner.ppo.loss import WeightedMeans
from learner.settings import LearnerSettings
from learner.train.checkpoint import CheckpointFolder, parts_of


@pytest.fixture(scope="module")
def alone():
    """A learner of one rank after its rollout."""
    return rolled_out()


@pytest.fixture(scope="module")
def reports(tmp_path_factory, alone):
    folder = tmp_path_factory.mktemp("ranks")
    torch.save(vars(whole_batch(alone)), folder / "batch.pt")
    torch.save(alone.references.logits_MTCA, folder / "references.pt")
    script = Path(__file__).with_name("rank_process.py")
    done = subprocess.run(
        [sys.executable, str(script), str(folder)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return folder, [torch.load(folder / f"rank{rank}.pt", weights_only=True) for rank in range(2)]


@pytest.mark.long
def test_ranks_share_weights_and_numbers_and_play_different_matches(reports):
    one, other = (report["uninterrupted"] for report in reports[1])
    assert same(one["weights"], other["weights"])
    assert one["steps"] == other["steps"] == 4 * 2 * MATCHES * STEPS, "steps of both"
    assert one["rate"] == other["rate"] < 1, "both steer the learning rate"
    for name in ("count", "mean", "m2"):
        assert one["scale"][name] == other["scale"][name]
    assert [member[:2] for member in one["references"]] == [m[:2] for m in other["references"]]
    assert len(one["references"]) == 2, "one was renewed and one stayed"
    scopes = ("loss/", "policy/", "value/", "reference/", "gradient/", "forecast/")
    shared = {name: value for name, value in one["logged"].items() if name.startswith(scopes)}
    assert {"loss/forecast", "policy/approx_kl", "reference/kl"} <= shared.keys()
    assert shared == {name: other["logged"][name] for name in shared}
    assert not torch.equal(one["observations"], other["observations"])
    assert not torch.equal(one["keys"], other["keys"])


@pytest.mark.long
@pytest.mark.parametrize("rank", [0, 1])
def test_resumed_ranks_equal_ranks_that_never_stopped(reports, rank):
    report = reports[1][rank]
    expected, resumed = report["uninterrupted"], report["resumed"]
    assert same(resumed["weights"], expected["weights"])
    assert torch.equal(resumed["observations"], expected["observations"])
    assert (resumed["scale"], resumed["rate"]) == (expected["scale"], expected["rate"])
    pairs = zip(resumed["references"], expected["references"], strict=True)
    for (name, step, mine), (_, other_step, theirs) in pairs:
        assert step == other_step, name
        assert all(torch.equal(a, b) for a, b in zip(mine, theirs, strict=True))


def test_a_checkpoint_has_every_ranks_matches_and_the_shared_weights_once(reports):
    saved = CheckpointFolder(reports[0] / "checkpoints").read_newest()
    first, second = parts_of(saved)
    assert "network" not in saved["ranks"][0]["algorithm"]
    assert same(first["algorithm"]["network"], second["algorithm"]["network"])
    assert not set(first["environment"]["matches"]) & set(second["environment"]["matches"])


def test_two_ranks_with_half_of_the_matches_each_make_the_step_of_one(alone, reports):
    """One minibatch, its halves on two ranks; and the return scale over both."""
    expected = update(alone)
    first, second = (report["half"] for report in reports[1])
    assert same(first["weights"], second["weights"])
    for name, value in alone.policy.state_dict().items():
        torch.testing.assert_close(first["weights"][name], value, atol=2e-6, rtol=1e-4)
    for name, value in expected.items():
        if name.startswith(("loss", "policy", "reference")):
            assert first["measured"][name] == pytest.approx(value, rel=1e-4, abs=1e-6), name
    rewards_TN = np.arange(24, dtype=np.float32).reshape(4, 6)
    scale = ReturnScale(6, 0.9)
    for _ in range(2):
        scale.update(rewards_TN, rewards_TN > 20)
    assert first["scale"] == second["scale"] == pytest.approx(scale.scale, rel=1e-6)
    assert first["stops"] == second["stops"] == [True, True], "the second was asked, both stop"


def test_collective_operations(reports):
    for rank, report in enumerate(reports[1]):
        found = report["collectives"]
        assert found["sum"] == [2.0, 1.0]
        assert found["any"] == [True, False]
        assert found["max"] == 7
        assert found["broadcast"] == {"rank": 0}
        assert found["gather"] == ([] if rank else ["", "x" * 100])
        assert found["gradients"] == [[3.0] * 3, [0.5] * 2]
        assert found["extra"] == [2.0, 8.0]
        assert (found["different"], found["broadcasted"]) == ("NumericalFault", "")
    assert reports[1][0]["gone"] == "RankGone"


def test_means_are_weighted_by_share():
    means = WeightedMeans(("a", "b", "nowhere"))
    means.add("a", 1.0, 0.75)
    means.add("a", torch.tensor(5.0), 0.25)
    means.add("b", 3.0, 0.2)  # a part without it is not a zero
    assert means.means(means.sums()) == {"a": pytest.approx(2.0), "b": pytest.approx(3.0)}


# -- the launcher --------------------------------------------------------------------------------

LAUNCH = "import sys; from learner.distributed.launch import launch; " \
    "launch(lambda: exec(sys.argv[1]), int(sys.argv[2]))"  # fmt: skip
WITH_TORCH = f"import learner.distributed.rank_group; {LAUNCH}"
RANK = """
import os, sys, time
from league.errors import *
from learner.distributed.launch import report_failure
def runs(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False
rank = int(os.environ["RANK"])
os.write(1, b"rank %d %d\\n" % (rank, os.getpid()))  # in one piece: the ranks share a pipe
"""


def launched(program, count=2, launch=LAUNCH):
    return subprocess.Popen(
        [sys.executable, "-c", launch, RANK + program, str(count)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize(
    ("program", "code", "named"),
    [
        # rank 0 notices that rank 1 is gone
        (
            "if rank: os.symlink(str(os.getpid()), 'rank 1')\n"  # so it is whole at once
            "if rank: sys.exit(report_failure(StorageFull('no space on /x')))\n"
            "while not os.path.islink('rank 1') or runs(os.readlink('rank 1')): time.sleep(0.01)\n"
            "sys.exit(report_failure(RankGone('another rank has ended')))",
            3,
            "no space on /x",
        ),
        ("if rank: os.kill(os.getpid(), 9)\ntime.sleep(60)", 1, "signal 9"),
    ],
    ids=["full", "killed"],
)
def test_the_launcher_ends_all_ranks_and_names_the_cause(program, code, named):
    process = launched(program)
    printed, errors = process.communicate()
    assert process.returncode == code
    assert named in errors.splitlines()[-1]
    assert errors.count("learner:") == 1
    for line in printed.splitlines():
        with pytest.raises(ProcessLookupError):
            os.kill(int(line.split()[-1]), 0)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_ranks_end_with_their_launcher(number):
    process = launched("time.sleep(600)")
    ranks = [int(process.stdout.readline().split()[-1]) for _ in range(2)]
    time.sleep(0.2)
    process.send_signal(number)
    process.communicate()
    assert process.returncode == (-number if number == signal.SIGKILL else 0)
    wait_for(lambda: not any(Path(f"/proc/{rank}").exists() for rank in ranks))


def test_the_launcher_does_not_keep_what_the_ranks_share():
    program = f"ballast = b'.' * 100_000_000; {LAUNCH}"
    command = [sys.executable, "-c", program, RANK + "time.sleep(600)", "2"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            for _ in range(2):
                process.stdout.readline()
            status = Path(f"/proc/{process.pid}/status")
            wait_for(lambda: int(status.read_text().partition("VmRSS:")[2].split()[0]) < 30_000)
        finally:
            process.terminate()
    assert process.returncode == 0


SUMS = """
import torch
from learner.distributed.rank_group import RankGroup, join, leave
join(torch.device("cpu"))
group, rank = RankGroup(), int(os.environ["RANK"])
random = torch.Generator().manual_seed(rank)
"""


@pytest.mark.long
def test_forked_ranks_get_the_same_sums_as_by_gloo(tmp_path):
    """Odd sizes, more numbers than a slot holds, and more messages than slots."""
    program = f"""
    for size in (3, 5, (1 << 20) + 7, 1, 2, 1 << 20):
        weight = torch.nn.Parameter(torch.zeros(size))
        weight.grad = torch.randn(size, generator=random)
        extra = torch.tensor([rank + 0.5, 2.0])
        expected = group.sum(torch.cat([extra, weight.grad]))
        found = group.sum_gradients([weight], extra)
        found = torch.cat([found, weight.grad])
        torch.testing.assert_close(found, expected)
        everywhere = group.broadcast(found)
        assert torch.equal(found, everywhere), "all ranks have the same bits"
    leave()
    open({str(tmp_path)!r} + f"/{{rank}}", "w").close()
    """
    process = launched(SUMS + textwrap.dedent(program), 3, WITH_TORCH)
    process.communicate()
    assert process.returncode == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0", "1", "2"]


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_ranks_that_meet_at_an_address_listen_there_only():
    program = SUMS + "print(group.max(rank), flush=True); sys.stdin.read(); leave()"
    common = {"WORLD_SIZE": "2", RENDEZVOUS: f"tcp://127.0.0.1:{free_port()}"}
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", f"import os, sys\n{program}"],
            env={**os.environ, **common, "RANK": str(rank)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    try:
        assert [rank.stdout.readline() for rank in ranks] == ["1\n", "1\n"]
        assert {place for rank in ranks for place in listening(rank.pid)} == {"0100007F"}
    finally:
        for rank in ranks:
            rank.kill()
            rank.communicate()


def test_a_sum_ends_when_another_rank_has_ended():
    program = """
    import signal
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the launcher must not end it before it says so
    group.max(0)
    if rank == 1:
        os.kill(os.getpid(), 9)
    weight = torch.nn.Parameter(torch.zeros(3))
    try:
        group.sum_gradients([weight], torch.zeros(1))
    except RankGone as error:
        print("gone", flush=True)
        sys.exit(report_failure(error))
    """
    process = launched(SUMS + textwrap.dedent(program), launch=WITH_TORCH)
    assert "gone" in process.communicate()[0]
    assert process.returncode == 1


# -- how many ranks ------------------------------------------------------------------------------


def test_a_share_keeps_the_number_of_updates_and_the_size_of_a_rollout():
    whole = LearnerSettings(matches=64, n_steps=16, batch_size=24 * 16)
    share = whole.share(4)
    assert (share.matches, share.batch_size, share.n_steps) == (16, 6 * 16, 16)
    assert whole.share(1) == whole
    with pytest.raises(ConfigError, match=r"24 sequences .* 16 ranks"):
        whole.share(16)
    with pytest.raises(ConfigError, match=r"learner\.matches is 64, .* 3 ranks"):
        whole.share(3)


def flags(*words):
    parser = argparse.ArgumentParser()
    add_device_flags(parser)
    return DeviceFlags.of(**vars(parser.parse_args(words)))


@pytest.mark.parametrize(
    ("given", "wanted", "cores", "gpu", "made"),
    [
        ((), 2, 2, False, ("--cpu", "--ranks", "2")),
        (("--cpu",), 2, 2, True, ("--cpu", "--ranks", "2")),
        ((), 3, 2, False, ("--cpu", "--ranks", "2")),  # one a core
        ((), 2, 1, False, ()),
        ((), 1, 2, False, ()),
        ((), 2, 2, True, ()),  # one process finds the GPU
        (("--gpu", "0"), 2, 2, True, ("--gpu", "0")),
        (("--gpu", "0,2"), 2, 2, True, ("--gpu", "0,2")),
        (("--cpu", "--ranks", "1"), 2, 2, False, ("--cpu", "--ranks", "1")),
    ],
)
def test_ranks_where_no_flag_names_them(given, wanted, cores, gpu, made, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)), raising=False)
    monkeypatch.setattr(device_flags, "cpu_quota", lambda: math.inf)
    monkeypatch.setattr(device_flags, "has_no_gpu", lambda: not gpu)
    assert flags(*given).completed(wanted, lambda _: True).arguments() == made
    assert flags(*given).completed(wanted, lambda _: False).arguments() == given


@pytest.mark.parametrize(
    ("groups", "files", "quota"),
    [
        ("0::/", {"cpu.max": "max 100000"}, math.inf),
        ("0::/", {"cpu.max": "150000 100000"}, 1.5),
        ("0::/a/b", {"a/b/cpu.max": "max 100000", "a/cpu.max": "400000 100000"}, 4.0),
        ("4:memory:/\n0::/lost", {"memory/cpu.max": "100000 100000"}, math.inf),
        (
            "5:cpu,cpuacct:/docker/0a1b\n1:name=systemd:/docker/0a1b",
            {"cpu/cpu.cfs_quota_us": "50000", "cpu/cpu.cfs_period_us": "100000"},
            0.5,
        ),
        ("5:cpu:/", {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, math.inf),
    ],
)
def test_a_containers_quota_is_read(tmp_path, groups, files, quota):
    contents = {"proc/self/cgroup": groups}
    contents |= {f"sys/fs/cgroup/{name}": text for name, text in files.items()}
    for name, text in contents.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text + "\n")
    assert device_flags.cpu_quota(tmp_path) == quota


@pytest.mark.parametrize(("quota", "count"), [(0.5, 1), (1.9, 1), (2.0, 2), (math.inf, 3)])
def test_a_quota_limits_the_cores(quota, count, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(3)), raising=False)
    monkeypatch.setattr(device_flags, "cpu_quota", lambda: quota)
    assert device_flags.cores() == count


def test_start_league_hands_the_flags_on_to_its_learners():
    def handed(*words, **entry):
        return parse(list(words)).learner.arguments(LearnerEntry(**{"name": "main"} | entry))

    exploiter = {"name": "hunter", "role": "main_exploiter"}
    assert handed("--cpu", "--ranks", "2") == ("--cpu", "--ranks", "2")
    assert handed("--gpu", "0,1", "--steps", "5") == ("--steps", "5", "--gpu", "0,1")
    assert handed("--cpu", "--ranks", "2", **exploiter) == ("--name", "hunter", "--cpu")


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("--gpu", "0,0"), "0,0"),
        (("--gpu", "0,x"), "0,x"),
        (("--ranks", "2"), "--ranks 2"),
        (("--cpu", "--ranks", "0"), "--ranks 0"),
        (("--cpu", "--gpu", "0"), "--gpu"),
    ],
)
def test_impossible_flags_are_refused(words, named):
    with pytest.raises(ConfigError, match=named):
        parse(words)


def test_every_rank_gets_a_device():
    devices, sentence = choose_devices(DeviceFlags(cpu=True, cpu_ranks=3))
    assert [device.type for device in devices] == ["cpu"] * 3
    assert "3 processes" in sentence
