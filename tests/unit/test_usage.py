"""What a run takes of its machine, as the terminal view says it."""

from __future__ import annotations

from pathlib import Path

import pytest

from league.cluster.usage import Usage
from league.settings.device_flags import DeviceFlags

MEGABYTE = 1_000_000


@pytest.fixture
def smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program in place of NVIDIA's, which prints a line for each GPU that it is asked about."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    program = tmp_path / "bin" / "nvidia-smi"
    program.parent.mkdir()
    script = "#!/bin/sh\nfor word; do case $word in --id=*) ids=${word#--id=};; esac; done\n"
    script += 'echo "$ids" | tr , "\\n" | sed "s/.*/&0, 2048, 4096/"\n'
    program.write_text(script)
    program.chmod(0o755)
    return program


def words(folder: Path, *gpus: int, cpu: bool = False) -> str:
    usage = Usage(folder, DeviceFlags(gpus=gpus, cpu=cpu))
    usage.measure(0.0)
    return usage.words


def test_the_disk_at_the_end_follows_from_the_growth_without_the_start(tmp_path: Path) -> None:
    usage = Usage(tmp_path, DeviceFlags(cpu=True))
    file = tmp_path / "learner" / "step.pt"
    file.parent.mkdir()
    found = []
    for share, megabytes in ((0.0, 0), (0.01, 40), (0.1, 100), (0.2, 110), (1.0, 190)):
        file.write_bytes(bytes(megabytes * MEGABYTE))
        usage.measure(share)
        found.append(usage.words)
    assert [", at the end" in said for said in found] == [False, False, True, True, False]
    assert found[3] == "disk 110.0 MB, at the end 190.0 MB"


def test_a_run_that_continues_is_foreseen_from_what_it_adds(tmp_path: Path) -> None:
    usage = Usage(tmp_path, DeviceFlags(cpu=True))
    for share, megabytes in ((0.0, 100), (0.5, 100), (0.6, 110)):  # at first nobody knows its steps
        (tmp_path / "file").write_bytes(bytes(megabytes * MEGABYTE))
        usage.measure(share)
    assert usage.words == "disk 110.0 MB, at the end 150.0 MB"


def test_the_gpus_of_the_learners_are_shown(
    smi: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert words(tmp_path).endswith(" · GPU 0 % 2.0/4.0 GiB")
    assert words(tmp_path, 2, 3).endswith("GPU 20 %, 30 % 4.0/8.0 GiB")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5,7")
    assert words(tmp_path, 1).endswith("GPU 70 % 2.0/4.0 GiB")


def test_nothing_is_said_of_gpus_without_one(smi: Path, tmp_path: Path) -> None:
    assert "GPU" not in words(tmp_path, cpu=True)
    smi.write_text("#!/bin/sh\necho No devices were found\nexit 6\n")
    assert "GPU" not in words(tmp_path)
    smi.unlink()
    assert "GPU" not in words(tmp_path)
