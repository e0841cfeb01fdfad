"""Checkpoint files survive crashes, damage and a full disk."""

import errno
import io
import os
import zipfile

import pytest
import torch
from learning import STEPS, make_env, make_model

from league.errors import ConfigError, DataCorrupt, StorageFull, VersionMismatch
from learner.train.checkpoint import (
    FORMAT,
    CheckpointFolder,
    algorithm_state,
    load_weights,
    read_checkpoint,
)


def test_newest_is_read_and_only_so_many_are_kept(tmp_path):
    folder = CheckpointFolder(tmp_path, keep=2)
    for step in (10, 20, 30):
        folder.write(step, {"step": step})
    assert folder.read_newest()["step"] == 30
    assert len(folder.files()) == 2


def test_a_damaged_checkpoint_falls_back_to_the_one_before(tmp_path, caplog):
    folder = CheckpointFolder(tmp_path)
    folder.write(10, {"step": 10})
    newest = folder.write(20, {"step": 20})
    newest.write_bytes(newest.read_bytes()[:40])
    assert folder.read_newest()["step"] == 10
    assert "damaged" in caplog.text


def test_checkpoints_that_do_not_fit_are_kept_next_to_new_ones(tmp_path):
    folder = CheckpointFolder(tmp_path, keep=2)
    for step in (10, 20, 30):
        folder.write(step, {"step": step})
    assert folder.read_newest(lambda values: values["step"] < 20) is None
    assert len(folder.files()) == 2, "they stay until there is one that fits"
    (tmp_path / "step_000000000020.unfit").touch()  # of an earlier restore
    folder.write(20, {"step": "another 20"})
    assert folder.read_newest()["step"] == "another 20"
    kept = {path.name: read_checkpoint(path)["step"] for path in tmp_path.glob("*.unfit")}
    assert kept == {"step_000000000020.unfit": 20, "step_000000000030.unfit": 30}


def test_another_format_is_refused(tmp_path):
    path = tmp_path / "step_000000000001.pt"
    torch.save({"format": 99}, path)
    with pytest.raises(VersionMismatch, match=path.name):
        CheckpointFolder(tmp_path).read_newest()


def test_code_in_a_checkpoint_is_not_run(tmp_path):
    class Evil:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "ran"),)

    path = tmp_path / "evil.pt"
    torch.save({"format": 1, "x": Evil()}, path)
    with pytest.raises(DataCorrupt):
        read_checkpoint(path)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("reason", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_keeps_the_older_ones_and_says_so(tmp_path, monkeypatch, reason):
    folder = CheckpointFolder(tmp_path)
    folder.write(10, {"step": 10})

    def full(_):
        raise OSError(reason, os.strerror(reason))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageFull, match=str(tmp_path)):
        folder.write(20, {"step": 20})
    assert [path.name for path in tmp_path.iterdir()] == ["step_000000000010.pt"]


def test_weights_of_another_size_are_refused_in_a_sentence():
    model = make_model(make_env())
    values = algorithm_state(model)
    name = next(iter(values["network"]))
    values["network"][name] = torch.zeros(3)
    with pytest.raises(ConfigError):
        load_weights(model, values)


def test_how_a_step_is_computed_is_not_restored():
    """A checkpoint of a program that made a step in many calls doesn't slow down one that makes
    it in one.
    """
    model, other = make_model(make_env()), make_model(make_env())
    model.learn(STEPS)
    values = algorithm_state(model)
    for group in values["optimizer"]["param_groups"]:
        group.update(fused=False, foreach=None, lr=0.5)
    load_weights(other, values)
    (group,) = other.policy.optimizer.param_groups
    assert (group["fused"], group["lr"]) == (True, 0.5)
    moments = zip(
        model.policy.optimizer.state.values(), other.policy.optimizer.state.values(), strict=True
    )
    assert all(torch.equal(one["exp_avg"], two["exp_avg"]) for one, two in moments)


@pytest.mark.parametrize("kind", ["pipe", "device", "compressed", "overlapping", "legacy"])
def test_a_file_that_would_fill_the_memory_is_no_checkpoint(tmp_path, kind):
    folder = CheckpointFolder(tmp_path)
    folder.write(10, {"step": 10})
    newest = folder.write(20, {"step": 20, "zeros": torch.zeros(1_000_000)})
    content = newest.read_bytes()
    newest.unlink()
    if kind == "pipe":
        os.mkfifo(newest)
    elif kind == "device":
        newest.symlink_to("/dev/zero")
    elif kind == "compressed":
        with zipfile.ZipFile(io.BytesIO(content)) as read, zipfile.ZipFile(newest, "w") as file:
            for part in read.infolist():
                file.writestr(part.filename, read.read(part), zipfile.ZIP_DEFLATED)
        assert newest.stat().st_size < 100_000
    elif kind == "overlapping":  # the directory names one part's bytes many times
        with zipfile.ZipFile(newest, "w") as file:
            file.writestr("a/data/0", bytes(100_000))
            file.filelist *= 3
    else:
        values = {"format": FORMAT, "step": 20}
        torch.save(values, newest, _use_new_zipfile_serialization=False)
    with pytest.raises(DataCorrupt, match=newest.name):
        read_checkpoint(newest)
    assert folder.read_newest()["step"] == 10
