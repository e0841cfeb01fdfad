"""Two ranks over gloo, as real processes: they stay one learner, bit for bit, and resume as one."""

import argparse
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from learning import MATCHES, STEPS, same

from league.agent.device import choose_devices
from league.cluster.main import parse
from league.errors import ConfigError
from league.runs.settings import LearnerEntry
from league.settings import device_flags
from league.settings.device_flags import DeviceFlags, add_device_flags
from learner.distributed.ranks import Ranks
from learner.ppo.terms import Readings
from learner.settings import LearnerSettings
from learner.train.checkpoint import CheckpointFolder, parts_of


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ranks")
    script = Path(__file__).with_name("rank_process.py")
    processes = [
        subprocess.Popen(
            [sys.executable, str(script), str(folder), str(rank)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(2)
    ]
    said = [process.communicate(timeout=150)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], said
    return folder, [torch.load(folder / f"rank{rank}.pt", weights_only=True) for rank in range(2)]


def test_both_ranks_have_the_same_weights_and_decide_alike(reports):
    one, other = (report["uninterrupted"] for report in reports[1])
    assert same(one["weights"], other["weights"])
    assert one["steps"] == other["steps"] == 4 * 2 * MATCHES * STEPS, "steps of both"
    assert one["rate"] == other["rate"] < 1, "the step size is steered by both"
    for name in ("count", "mean", "m2"):
        assert one["scale"][name] == other["scale"][name]
    assert [(name, step) for name, step, _ in one["references"]] == [
        (name, step) for name, step, _ in other["references"]
    ]
    assert len(one["references"]) == 2, "one was renewed and one stayed"


def test_what_is_logged_is_of_all_ranks(reports):
    one, other = (report["uninterrupted"]["logged"] for report in reports[1])
    scopes = ("loss/", "policy/", "value/", "reference/", "gradient/", "forecast/")
    shared = [name for name in one if name.startswith(scopes)]
    assert {"loss/total", "policy/approx_kl", "value/explained_variance", "reference/kl"} <= set(
        shared
    )
    assert {"loss/forecast", "forecast/first_loss", "forecast/marginal_loss"} <= set(shared)
    assert {name: one[name] for name in shared} == {name: other[name] for name in shared}


def test_each_rank_plays_matches_of_its_own(reports):
    one, other = (report["uninterrupted"] for report in reports[1])
    assert not torch.equal(one["observations"], other["observations"])
    assert not torch.equal(one["keys"], other["keys"]), "the same luck twice teaches half as much"
    assert one["scale"]["return_N"] != other["scale"]["return_N"]


@pytest.mark.parametrize("rank", [0, 1])
def test_two_ranks_resumed_equal_two_that_never_stopped(reports, rank):
    report = reports[1][rank]
    expected, resumed = report["uninterrupted"], report["resumed"]
    assert same(resumed["weights"], expected["weights"])
    assert torch.equal(resumed["observations"], expected["observations"])
    assert resumed["scale"] == expected["scale"]
    assert resumed["rate"] == expected["rate"]
    for (name, step, mine), (_, other_step, theirs) in zip(
        resumed["references"], expected["references"], strict=True
    ):
        assert step == other_step, name
        assert all(torch.equal(a, b) for a, b in zip(mine, theirs, strict=True))


def test_a_checkpoint_holds_every_ranks_part_and_shared_weights_once(reports):
    saved = CheckpointFolder(reports[0] / "checkpoints").read_newest()
    first, second = parts_of(saved)
    assert "network" not in saved["ranks"][0]["algorithm"]
    assert same(first["algorithm"]["network"], second["algorithm"]["network"])
    assert not set(first["environment"]["matches"]) & set(second["environment"]["matches"])
    assert len(parts_of({"algorithm": {}})) == 1, "of one rank, or of an older version"


def test_ranks_tell_each_other_plain_values(reports):
    for rank, report in enumerate(reports[1]):
        said = report["said"]
        assert said["sum"] == [2.0, 1.0]
        assert said["any"] == [True, False]
        assert said["largest"] == 7
        assert said["leading"]["who"] == 0
        assert said["leading"]["tensor"].tolist() == [0, 1, 2]
        expected = [{"who": 0, "long": ""}, {"who": 1, "long": "x" * 100}]
        assert said["gathered"] == ([] if rank else expected)


def test_gradients_add_up_in_shared_memory_as_in_messages(reports):
    for report in reports[1]:
        through_memory, in_messages = report["said"]["gradients"]
        assert (through_memory["shared"], in_messages["shared"]) == (True, False)
        for said in (through_memory, in_messages):
            assert said["gradients"] == [[3.0, 3.0, 3.0], [0.5, 0.5]]
            assert said["beside"] == pytest.approx([1.0 + 2e-9, 8.0], rel=1e-12), (
                "in full precision"
            )


def test_ranks_whose_weights_differ_are_stopped(reports):
    for report in reports[1]:
        assert report["said"]["apart"].startswith(
            "NumericalFault: the ranks' weights are no longer the same"
        )
        assert report["said"]["together"] == "alike"


def test_a_rank_that_is_gone_is_an_error_of_its_own(reports):
    assert reports[1][0]["gone"].startswith("RankGone: another rank of this learner is gone")


def test_readings_are_means_by_share_of_what_was_read():
    readings = Readings(Ranks(), ("a", "b", "nowhere"))
    readings.add("a", 1.0, 0.75)
    readings.add("a", torch.tensor(5.0), 0.25)
    readings.add("b", 3.0, 0.2)  # a part without it is no zero
    assert readings.means() == {"a": pytest.approx(2.0), "b": pytest.approx(3.0)}


def test_a_share_keeps_the_number_of_updates_and_the_size_of_a_rollout():
    whole = LearnerSettings(matches=64, n_steps=16, batch_size=24 * 16)
    share = whole.share(4)
    assert (share.matches, share.batch_size, share.n_steps) == (16, 6 * 16, 16)
    assert whole.share(1) == whole
    with pytest.raises(ConfigError, match=r"a minibatch has 24 sequences .* evenly to 16 ranks"):
        whole.share(16)
    with pytest.raises(ConfigError, match=r"learner\.matches is 64, .* evenly to 3 ranks"):
        whole.share(3)


def flags(*words):
    parser = argparse.ArgumentParser()
    add_device_flags(parser)
    return DeviceFlags.of(parser.parse_args(words))


def test_flags_say_how_many_processes_learn():
    assert flags() == DeviceFlags()
    assert flags("--gpu", "1").ranks == 1
    assert flags("--gpu", "0,2").gpus == (0, 2)
    assert flags("--gpu", "0,2").ranks == flags("--cpu", "--ranks", "2").ranks == 2
    for words in (("--gpu", "0,2"), ("--cpu", "--ranks", "3"), ("--cpu",), ()):
        assert flags(*words).arguments() == words


@pytest.mark.parametrize(
    ("said", "settings", "cores", "gpu", "made"),
    [
        ((), 2, 2, False, ("--cpu", "--ranks", "2")),
        (("--cpu",), 2, 2, True, ("--cpu", "--ranks", "2")),
        ((), 3, 2, False, ("--cpu", "--ranks", "2")),  # one a core
        ((), 2, 1, False, ()),
        ((), 1, 2, False, ()),
        ((), 2, 2, True, ()),  # one process finds the GPU by itself
        (("--gpu", "0"), 2, 2, True, ("--gpu", "0")),
        (("--cpu", "--ranks", "1"), 2, 2, False, ("--cpu", "--ranks", "1")),
        (("--ranks", "1"), 2, 2, False, ("--ranks", "1")),
    ],
)
def test_the_settings_say_how_many_learn_where_no_flag_does(
    said, settings, cores, gpu, made, monkeypatch
):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)), raising=False)
    monkeypatch.setattr(device_flags, "has_no_gpu", lambda: not gpu)
    assert flags(*said).completed(settings, lambda _: True).arguments() == made


def test_a_gpu_is_told_by_the_files_of_its_driver(tmp_path, monkeypatch):
    devices = tuple(str(tmp_path / name) for name in ("nvidia0", "kfd"))
    monkeypatch.setattr(device_flags, "_GPU_DEVICES", devices)
    monkeypatch.setattr(sys, "platform", "linux")
    assert device_flags.has_no_gpu()
    (tmp_path / "kfd").touch()
    assert not device_flags.has_no_gpu()
    (tmp_path / "kfd").unlink()
    monkeypatch.setattr(sys, "platform", "darwin")  # its GPU has no such file: torch is asked
    assert not device_flags.has_no_gpu()


def test_ranks_that_nobody_asked_for_are_no_more_than_share_evenly(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    for matches, ranks in ((128, 4), (126, 3), (127, 1)):
        settings = LearnerSettings(matches=matches, n_steps=32, batch_size=12 * 32)
        assert flags("--cpu").completed(5, settings.is_shared_evenly).ranks == ranks


def test_start_league_hands_the_flags_on_to_its_learner():
    def handed(*words: str, **entry: str) -> tuple[str, ...]:
        return parse(list(words)).learner.arguments(LearnerEntry(**{"name": "main"} | entry))

    assert handed("--cpu", "--ranks", "2") == ("--cpu", "--ranks", "2")
    assert handed("--gpu", "0,1", "--steps", "5") == ("--steps", "5", "--gpu", "0,1")
    assert handed() == ()
    assert handed("--cpu", "--ranks", "2", name="hunter", role="main_exploiter") == (
        "--name",
        "hunter",
        "--cpu",
    )


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--gpu", "0,0"), "0,0 names a GPU twice"),
        (("--gpu", "0,x"), "'0,x' is no list of GPU numbers"),
        (("--ranks", "2"), "--ranks 2 goes with --cpu"),
        (("--cpu", "--ranks", "0"), "'0' is no number of processes"),
        (("--cpu", "--gpu", "0"), "not allowed with"),
    ],
)
def test_flags_that_cannot_be_are_refused_by_start_league(words, sentence):
    with pytest.raises(ConfigError, match=sentence):
        parse(words)


def test_every_process_gets_a_device():
    devices, sentence = choose_devices(DeviceFlags(cpu=True, cpu_ranks=3))
    assert [device.type for device in devices] == ["cpu"] * 3
    assert sentence.endswith(", in 3 processes that learn together.")
    alone, sentence = choose_devices(DeviceFlags(cpu=True))
    assert len(alone) == 1
    assert "together" not in sentence
