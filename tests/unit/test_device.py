"""Which device is chosen, and the sentence that says so; whether freed memory is kept."""

import ctypes
import platform
import subprocess
import sys

import pytest
import torch

from league.agent.device import choose_device, choose_devices, keep_memory
from league.errors import DeviceError
from league.settings.device_flags import DeviceFlags


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
    assert "core" in sentence


@pytest.mark.usefixtures("no_gpu")
def test_a_gpu_that_is_missing_is_an_error_that_says_what_there_is() -> None:
    with pytest.raises(DeviceError, match=r"\b0\b") as caught:
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
    with pytest.raises(DeviceError, match=r"\b0 \(Test GPU\), 1"):
        choose_device(gpu=7)


def test_contradicting_flags_are_refused() -> None:
    with pytest.raises(DeviceError, match="exclude"):
        choose_device(gpu=0, cpu=True)


@pytest.mark.usefixtures("no_gpu")
def test_several_gpus_are_told_each(two_gpus) -> None:
    devices, sentence = choose_devices(DeviceFlags(gpus=(1, 0)))
    assert devices == [torch.device("cuda", 1), torch.device("cuda", 0)]
    assert "GPU 1, Test GPU" in sentence
    assert "GPU 0, Test GPU" in sentence
    with pytest.raises(DeviceError, match="GPU 2"):
        choose_devices(DeviceFlags(gpus=(0, 2)))


def test_apples_gpu_comes_before_the_cpu(monkeypatch) -> None:
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    device, sentence = choose_device()
    assert device.type == "mps"
    assert "Apple" in sentence


FAULTS = """
import ctypes, resource
from league.agent.device import keep_memory

libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, (ctypes.c_size_t,)
libc.memset.argtypes = (ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t)
libc.free.argtypes = (ctypes.c_void_p,)

def faults(size=64 << 20):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    block = libc.malloc(size)
    libc.memset(block, 1, size)
    libc.free(block)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

faults()
given_back = faults()
assert keep_memory()
faults()
print(given_back, faults())
"""


@pytest.mark.long
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="glibc alone has the option")
def test_freed_memory_is_kept_for_the_next_block_on_glibc() -> None:
    """In a separate process, for it can't be undone; 64 MiB, which glibc maps whatever was
    freed before.
    """
    done = subprocess.run(
        [sys.executable, "-c", FAULTS], capture_output=True, text=True, check=True
    )
    given_back, kept = (int(word) for word in done.stdout.split())
    assert given_back >= 32, "a page fault for each page again, be it a huge one"
    assert kept <= 8


@pytest.mark.parametrize("library", [None, object()])
def test_without_glibc_keeping_memory_is_no_error(monkeypatch, library: object) -> None:
    def load(name: None) -> object:
        if library is None:
            raise OSError("no library can be opened")
        return library

    monkeypatch.setattr(ctypes, "CDLL", load)
    assert keep_memory() is False
