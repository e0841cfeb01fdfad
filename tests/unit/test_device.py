"""Which device is chosen, and the sentence that says so."""

import pytest
import torch

from league.device import choose_device, keep_memory
from league.errors import DeviceError


@pytest.fixture
def no_gpu(monkeypatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)


@pytest.fixture
def two_gpus(monkeypatch) -> None:
    class Properties:
        name, total_memory = "Test GPU", 80 << 30

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda index: "Test GPU")
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: Properties)


@pytest.mark.usefixtures("no_gpu")
def test_without_a_gpu_the_cpu_is_taken_and_said() -> None:
    device, sentence = choose_device()
    assert device.type == "cpu"
    assert "no GPU found" in sentence
    assert "GiB of memory" in sentence
    assert "core" in sentence


@pytest.mark.usefixtures("no_gpu")
def test_a_gpu_that_is_missing_is_an_error_that_says_what_there_is() -> None:
    with pytest.raises(DeviceError, match="this machine has none") as caught:
        choose_device(gpu=0)
    assert caught.value.exit_code == 2, "wrong input, as any other"


@pytest.mark.usefixtures("two_gpus")
def test_gpus_by_number_and_by_default() -> None:
    assert choose_device(gpu=1)[0] == torch.device("cuda", 1)
    device, sentence = choose_device()
    assert device == torch.device("cuda", 0)
    assert "Test GPU" in sentence
    assert "80.0 GiB" in sentence
    assert choose_device(cpu=True)[0].type == "cpu"
    with pytest.raises(DeviceError, match=r"there are 0 \(Test GPU\), 1"):
        choose_device(gpu=7)


def test_contradicting_flags_are_refused() -> None:
    with pytest.raises(DeviceError, match="exclude"):
        choose_device(gpu=0, cpu=True)


@pytest.mark.usefixtures("no_gpu")
def test_apples_gpu_comes_before_the_cpu(monkeypatch) -> None:
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    device, sentence = choose_device()
    assert device.type == "mps"
    assert "Apple" in sentence


def test_memory_can_be_kept_on_glibc() -> None:
    assert isinstance(keep_memory(), bool)
